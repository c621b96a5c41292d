"""Commands that make what environments read: raw and prepared data, language models, vectors, tokens, ceilings."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ensemblepp.arguments import folder, output
from ensemblepp.cli.shared import require, unedited
from ensemblepp.errors import ConfigError, DataError


def retrieve(options: argparse.Namespace) -> None:
    from ensemblepp.data import DATASETS, load
    from ensemblepp.data.sources import MIRROR_VARIABLE, retrieve

    files = {file.name: file for name in DATASETS for file in load(name).RAW}
    require("--file", options.file, files)
    output(options.output)
    where = retrieve(files[options.file], options.output, os.environ.get(MIRROR_VARIABLE))
    print(f"{options.file}: from {where}", file=sys.stderr)


def check_data(options: argparse.Namespace) -> None:
    import hashlib
    import tempfile

    from ensemblepp.storage.datasets import write_json

    prepare = _preparation(options)
    output(options.output, [".json"])
    with unedited(options.code, _data_code(options), options.output), tempfile.TemporaryDirectory() as folder:
        _say(prepare(options.raw, Path(folder, "prepared.nc")))
        write_json({path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in options.raw}, options.output)


def prepare(options: argparse.Namespace) -> None:
    prepare = _preparation(options)
    with unedited(options.code, _data_code(options), options.output):
        _say(prepare(options.raw, output(options.output, [".nc"])))


def _say(words: str | None) -> None:
    if words:
        print(words, file=sys.stderr)


def _data_code(options: argparse.Namespace) -> list[str]:
    from ensemblepp.registry import DATASETS, OWN_DATASETS

    declared = _declared(options)
    return [OWN_DATASETS[declared.kind] if declared else DATASETS[options.dataset]]


def _preparation(options: argparse.Namespace) -> Callable[[list[Path], Path], str | None]:
    """What prepares --dataset, once its raw files are known to be there."""
    import importlib

    from ensemblepp.registry import DATASETS, OWN_DATASETS

    declared = _declared(options)
    published = declared.published if declared else options.dataset
    for path in options.raw:
        if not path.is_file():
            remedy = "; `python -m ensemblepp retrieve` brings it" if published else ""
            raise DataError(f"{path}: no such file{remedy}")
    module = importlib.import_module(OWN_DATASETS[declared.kind] if declared else DATASETS[published])
    return partial(module.prepare, **declared.declared()) if declared else module.prepare


def _declared(options: argparse.Namespace) -> Any:
    """The entry under `datasets` that --dataset is, as --declared or the configuration has it; None for a published one."""
    from ensemblepp.registry import DATASETS

    if options.declared is None:
        if options.dataset in DATASETS:
            return None
        from ensemblepp.config.loading import read_files

        known = read_files().datasets
        require("--dataset", options.dataset, [*DATASETS, *known])
        return known[options.dataset]
    from pydantic import TypeAdapter, ValidationError

    from ensemblepp.config.datasets import Dataset

    given = options.declared if options.declared.get("kind") == "hate_speech" else options.declared | {"file": "declared.csv"}
    try:
        return TypeAdapter(Dataset).validate_python(given)
    except ValidationError as error:
        raise ConfigError("\n".join(_in_words("--declared", fault) for fault in error.errors())) from None


def _in_words(option: str, fault: Any) -> str:
    # the first part of a data set's place is its kind
    place = fault["loc"][1:] if option == "--declared" else fault["loc"]
    return f"{option}: {'.'.join(map(str, place))}: {fault['msg'][0].lower()}{fault['msg'][1:]}"


def language_model(options: argparse.Namespace) -> None:
    from pydantic import ValidationError

    from ensemblepp.config.environments import LanguageModel
    from ensemblepp.text.language_models import MARK, acquire

    try:
        # how texts are embedded is no matter here
        model = LanguageModel.model_validate({"pooling": "last", **options.spec})
    except ValidationError as error:
        raise ConfigError("\n".join(_in_words("--spec", fault) for fault in error.errors())) from None
    folder(options.folder.parent)
    with unedited(options.code, ["ensemblepp.text.language_models"], options.folder / MARK):
        acquire(model.brought(), options.folder)


def embed(options: argparse.Namespace) -> None:
    output(options.output, [".nc"])
    from ensemblepp import devices
    from ensemblepp.runs.fingerprint import current
    from ensemblepp.runs.progress import Progress
    from ensemblepp.text import precision
    from ensemblepp.text.embedding import embed_posts

    with (
        unedited(options.code, ["ensemblepp.text.embedding"], options.output),
        Progress(options.posts, f"embedding {options.posts} posts") as progress,
    ):
        embed_posts(
            options.prepared,
            options.output,
            folder=options.folder,
            posts=options.posts,
            pooling=options.pooling,
            max_tokens=options.max_tokens,
            precision=precision.resolve(options.precision, options.device),
            device=devices.require(options.device),
            threads=options.threads,
            code=current("ensemblepp.text.forward"),
            on_text=progress.step,
        )


def tokenise(options: argparse.Namespace) -> None:
    output(options.output, [".nc"])
    from ensemblepp.text.tokens import tokenise_posts

    with unedited(options.code, ["ensemblepp.text.tokens"], options.output):
        tokenise_posts(
            options.prepared, options.output, folder=options.folder, posts=options.posts, max_tokens=options.max_tokens
        )


def ceiling(options: argparse.Namespace) -> None:
    output(options.output, [".nc"])
    from ensemblepp.environments.ceiling import write

    with unedited(options.code, ["ensemblepp.environments.ceiling"], options.output):
        write(options.embeddings, options.output, options.scaling)
