"""Bring a language model into a local folder, once, whatever it comes from; later steps load it with the network cut."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from ensemblepp.errors import ResultError, UnreachableError
from ensemblepp.storage.datasets import read_json, write_json
from ensemblepp.storage.leftovers import temporary_folder

#: What a transformers model folder needs, whatever the tokenizer's make.
PATTERNS = ("config.json", "*.safetensors*", "tokenizer*", "special_tokens_map.json", "vocab*", "merges.txt")

#: What a tokenizer is read from: one of these.
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt")

#: Written last: a folder that has it is whole.
MARK = "config.json"

#: SHA-256 of every other file of a folder.
CHECKSUMS = "checksums.json"

#: Where a folder's files are from; of the hub, the commit that answered.
ORIGIN = "origin.json"


def acquire(model: Mapping[str, Any], folder: str | Path) -> None:
    """Put the model described by `model` (fields of `config.environments.LanguageModel`) into `folder`, float32 safetensors.

    Raises:
        UnreachableError: the hub cannot be reached or has another file, the package is not installed, the folder does not
            exist, or there is no model in it.
    """
    folder = Path(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with temporary_folder(folder.parent, folder.name) as staged:
        origin = {key: model[key] for key in ("source", "location")}
        if model["source"] == "hub":
            origin |= {"revision": model["revision"], "commit": _from_hub(model, staged)}
        else:
            source = local_source(model)
            if source is None:
                raise UnreachableError(missing(model))
            if source.suffix == ".gguf":
                _from_gguf(source, staged)
            else:
                _copy(source, staged)
        for patterns in ((MARK,), ("*.safetensors",), TOKENIZERS):
            if not any(found for pattern in patterns for found in staged.glob(pattern)):
                needed = " or ".join(patterns)
                raise UnreachableError(f"language model {model['location']}: has no {needed}; it must be a transformers model")
        write_json(origin, staged / ORIGIN)
        write_json({file.name: _digest(file) for file in staged.iterdir() if file.is_file()}, staged / CHECKSUMS)
        folder.mkdir(exist_ok=True)
        # of another model that was here before nothing may stay, its mark least of all
        for old in sorted(filter(Path.is_file, folder.iterdir()), key=lambda path: path.name != MARK):
            old.unlink()
        # the mark goes last, so that an interrupted move never looks like a model
        for file in sorted(staged.iterdir(), key=lambda path: path.name == MARK):
            if file.is_file():
                file.chmod(0o644)  # some writers leave 0600, which shuts out the others of a shared machine
                file.replace(folder / file.name)


def verify(folder: str | Path) -> None:
    """Compare the files of a model folder with what `acquire` wrote, before any of them is loaded.

    Raises:
        ResultError: a file is missing, damaged or not from there.
    """
    remedy = f"delete {folder} and run snakemake again"
    expected = read_json(Path(folder, CHECKSUMS), remedy)
    found = {file.name for file in Path(folder).iterdir()} - {CHECKSUMS}
    for name in sorted(found | expected.keys()):
        path = Path(folder, name)
        if name not in expected:
            raise ResultError(f"{path}: not of this language model; {remedy}")
        if not path.exists():
            raise ResultError(f"{path}: no such file; {remedy}")
        if _digest(path) != expected[name]:
            raise ResultError(f"{path}: damaged (its content differs from its checksum); {remedy}")


def content(folder: str | Path) -> str:
    """The SHA-256 of a model folder's files as `acquire` left them, wherever they are from.

    Raises:
        ResultError: the folder has no checksums, or damaged ones.
    """
    files = read_json(Path(folder, CHECKSUMS), f"delete {folder} and run snakemake again")
    named = "\n".join(f"{name} {digest}" for name, digest in sorted(files.items()) if name != ORIGIN)
    return hashlib.sha256(named.encode()).hexdigest()


def local_source(model: Mapping[str, Any]) -> Path | None:
    """Where a "package" or "folder" model lies on this machine, or None."""
    path = Path(model["location"])
    if model["source"] == "package":
        package, *inside = path.parts
        found = importlib.util.find_spec(package)
        if found is None or not found.submodule_search_locations:
            return None
        path = Path(found.submodule_search_locations[0], *inside)
    return path if path.exists() else None


def missing(model: Mapping[str, Any]) -> str:
    """One line for a model that is not there."""
    package = Path(model["location"]).parts[0]
    if model["source"] == "package" and importlib.util.find_spec(package) is None:
        return f"language model {model['location']}: package '{package}' is not installed (see requirements-models.lock)"
    kind = f"path in package '{package}'" if model["source"] == "package" else model["source"]
    return f"language model {model['location']}: no such {kind}; see language_models in config/environments.yaml"


def hub_address(model: Mapping[str, Any]) -> str:
    """The address of a hub model's configuration, which tells whether the hub answers."""
    endpoint = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    return f"{endpoint}/{model['location']}/resolve/{model['revision']}/{MARK}"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _from_hub(model: Mapping[str, Any], staged: Path) -> str:
    """Bring the files of a hub model; returns the commit that its revision is."""
    from huggingface_hub import HfApi, snapshot_download

    location, revision = model["location"], model["revision"]
    try:
        # a branch may move between two files
        commit = HfApi().model_info(location, revision=revision).sha
        snapshot_download(location, revision=commit, local_dir=staged, allow_patterns=list(PATTERNS))
    except Exception as error:  # the hub's client lets through what the library below it raises, and that has changed twice
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise UnreachableError(
            f"language model {location}@{revision}: the hub cannot be reached ({reason}); name a packaged model or a "
            "local folder under language_models in config/environments.yaml"
        ) from error
    for name, expected in model.get("checksums", {}).items():
        found = _digest(staged / name) if (staged / name).exists() else "no such file"
        if found != expected:
            raise UnreachableError(
                f"language model {location}@{revision}: {name} is not the file that is expected (sha256 {expected}; {found})"
            )
    return commit


def _from_gguf(source: Path, staged: Path) -> None:
    """Dequantise a GGUF file; transformers refuses to save the loaded object itself, so its weights go into a fresh one."""
    import torch
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    with _read_once():
        try:
            loaded = AutoModel.from_pretrained(source.parent, gguf_file=source.name, dtype=torch.float32)
        except Exception as error:  # whatever the libraries below raise, this is no model that they can read
            reason = next(iter(str(error).splitlines()), type(error).__name__)
            raise UnreachableError(f"language model {source}: cannot be read ({reason})") from error
        configuration = type(loaded.config).from_dict(
            {key: value for key, value in loaded.config.to_dict().items() if key != "quantization_config"}
        )
        fresh = type(loaded)(configuration)
        fresh.load_state_dict(loaded.state_dict())
        fresh.save_pretrained(staged)
        AutoTokenizer.from_pretrained(source.parent, gguf_file=source.name).save_pretrained(staged)


@contextmanager
def _read_once() -> Iterator[None]:
    """Let transformers parse a GGUF file once, not for configuration, weights and tokenizer each, and name its tensors once."""
    import gguf

    with ExitStack() as patches:
        for name in ("GGUFReader", "get_tensor_name_map"):
            patches.enter_context(mock.patch.object(gguf, name, functools.cache(getattr(gguf, name))))
        yield


def _copy(source: Path, staged: Path) -> None:
    for pattern in PATTERNS:
        for file in source.glob(pattern):
            shutil.copyfile(file, staged / file.name)
