"""Language models to be trained: from a local folder, with the network cut, and their tokenizers.

Nothing in the folder is run, and no weights are unpickled.
"""

from __future__ import annotations

import importlib
import os
from pathlib import Path
from typing import Any

import torch

from ensemblepp.errors import ConfigError, DataError
from ensemblepp.text.language_models import verify

#: Said to the libraries and not left to their defaults.
_CLOSED = {"local_files_only": True, "trust_remote_code": False}


def get_ready() -> None:
    """Import what takes long of the libraries below, five seconds, for a process that others are forked from."""
    _offline()
    for module in ("transformers.modeling_utils", "transformers.generation.utils"):
        importlib.import_module(module)


def load_tokenizer(folder: str | Path) -> Any:
    """The tokenizer of a model folder (`text.language_models.acquire` makes one).

    Raises:
        ResultError: the folder is not as `acquire` left it.
        DataError: it has no tokenizer that can be read.
    """
    transformers = _library(folder)
    # whatever the library below raises, the folder holds none that it can read
    try:
        return transformers.AutoTokenizer.from_pretrained(str(folder), **_CLOSED)
    except Exception as error:
        raise DataError(_unreadable(folder, "tokenizer", error)) from error


def load_backbone(folder: str | Path, *, gradient_checkpointing: bool = False) -> torch.nn.Module:
    """The model of a folder without a head, float32 on the CPU, never dropping units.

    Args:
        folder: a transformers model folder.
        gradient_checkpointing: compute hidden states a second time for the gradient and do not keep them.

    Raises:
        ResultError: the folder is not as `acquire` left it.
        DataError: it has no model that can be read.
        ConfigError: the model is of a kind that has no gradient checkpointing.
    """
    transformers = _library(folder)
    # torch's numbers are shared by all seeds; weights that are about to be overwritten must not take any
    with torch.random.fork_rng(devices=[]):
        try:
            config = transformers.AutoConfig.from_pretrained(str(folder), **_CLOSED)
            for name, value in list(vars(config).items()):
                if "drop" in name and isinstance(value, float):
                    setattr(config, name, 0.0)
            config.use_cache = False
            model = transformers.AutoModel.from_pretrained(
                str(folder), config=config, dtype=torch.float32, use_safetensors=True, **_CLOSED
            )
        except Exception as error:
            raise DataError(_unreadable(folder, "model", error)) from error
    if getattr(model, "pooler", None) is not None:
        # a second head of encoders, which the hidden states do not come from
        model.pooler = None
    if gradient_checkpointing:
        if not model.supports_gradient_checkpointing:
            raise ConfigError(f"gradient_checkpointing: {type(model).__name__} cannot; leave it out in config/agents.yaml")
        model.activation_checkpointing_enable()
    # the library takes checkpoints while it trains only; no unit is dropped either way
    return model.train(gradient_checkpointing)


def _library(folder: str | Path) -> Any:
    verify(folder)
    return _offline()


def _offline() -> Any:
    # a folder is all it needs: no request may leave the machine
    os.environ["HF_HUB_OFFLINE"] = "1"
    # one thread here, and no words about it when a process is forked
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import transformers

    transformers.utils.logging.disable_progress_bar()
    return transformers


def _unreadable(folder: str | Path, what: str, error: Exception) -> str:
    reason = next(iter(str(error).splitlines()), type(error).__name__)
    return f"{folder}: no {what} can be read ({reason}); delete the folder, and see language_models in config/environments.yaml"
