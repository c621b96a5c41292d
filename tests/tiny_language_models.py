"""Small random language models of three architectures, made from their configurations, and posts as their tokens."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import torch
import xarray as xr

from ensemblepp.storage.datasets import write_dataset, write_json
from ensemblepp.text.language_models import CHECKSUMS

VOCABULARY, POSITIONS, HIDDEN = 50, 24, 16

#: Name -> how its hidden states become one vector.
POOLING = {"gpt2": "last", "gpt_neox": "last", "bert": "mean"}


def configuration(name: str):
    """Two layers of width 16, with dropout as the real models have it."""
    from transformers import BertConfig, GPT2Config, GPTNeoXConfig

    shared = {"vocab_size": VOCABULARY}
    if name == "gpt2":
        return GPT2Config(n_layer=2, n_embd=HIDDEN, n_head=2, n_positions=POSITIONS, bos_token_id=0, eos_token_id=0, **shared)
    layers = {"num_hidden_layers": 2, "hidden_size": HIDDEN, "num_attention_heads": 2, "intermediate_size": 32}
    if name == "gpt_neox":
        return GPTNeoXConfig(max_position_embeddings=POSITIONS, bos_token_id=0, eos_token_id=0, **layers, **shared)
    return BertConfig(max_position_embeddings=POSITIONS, **layers, **shared)


def make(name: str, folder: Path) -> Path:
    """A model folder as `acquire` leaves one, but for a tokenizer, which training needs none of."""
    from transformers import AutoModel

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = AutoModel.from_config(configuration(name))
    model.save_pretrained(folder)
    files = [file for file in folder.iterdir() if file.is_file()]
    write_json({file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}, folder / CHECKSUMS)
    return folder


def posts(path: Path, count: int = 40, longest: int = 12) -> Path:
    """A file of tokens as rule tokenise makes one, of 1 to `longest` each; the label is whether token 7 is in a post."""
    source = np.random.default_rng(1)
    length = source.integers(1, longest + 1, count).astype(np.int32)
    length[0] = longest
    token = source.integers(1, VOCABULARY, (count, longest)).astype(np.int32)
    token[np.arange(longest) >= length[:, None]] = 0
    label = np.arange(count) % 2
    token[label == 1, 0] = 7
    token[(label == 0)[:, None] & (token == 7)] = 8
    data = {"token": (("post", "position"), token), "length": ("post", length), "label": ("post", label.astype(np.int8))}
    write_dataset(xr.Dataset(data, {"post": np.arange(count)}), path)
    return path
