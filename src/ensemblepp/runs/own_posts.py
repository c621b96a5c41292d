"""A file of the user's posts as what a moderation environment reads: prepared, embedded, with the supervised ceiling.

Files are named by what decides them, so that a call that was killed, or another one in the same folder, finds what is there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ensemblepp import devices
from ensemblepp.config.environments import LanguageModel
from ensemblepp.data import columns, posts
from ensemblepp.environments import ceiling
from ensemblepp.environments.scaling import Scaling
from ensemblepp.errors import DataError
from ensemblepp.runs.fingerprint import current
from ensemblepp.text import precision
from ensemblepp.text.embedding import embed_posts
from ensemblepp.text.language_models import MARK, acquire


class OwnPosts(NamedTuple):
    """The posts of a file, each once, in the order of the files that are made of them.

    Attributes:
        text: objects (str), (post,).
        label: int8 (post,), 1 for a post that is to be blocked.
        row: int (post,), where in the file a post stands first, from 0.
        merged: rows that are left out, since an earlier one has their text.
        contradicted: posts whose rows had both labels.
        digest: of the file and of how it is read.
    """

    text: np.ndarray
    label: np.ndarray
    row: np.ndarray
    merged: int
    contradicted: int
    digest: str


def read(path: Path, *, text: str, label: str, threshold: float | None) -> OwnPosts:
    """Read and check a file of posts, as `data.posts.read` does.

    Raises:
        DataError: there is a fault in the file, or there are too few posts of one class for a ceiling.
    """
    if not str(path).endswith(columns.SUFFIXES):
        raise DataError(f"{path}: must end in {', '.join(columns.SUFFIXES)}")
    found = posts.read(path, text=text, label=label, threshold=threshold)
    rarer = int(np.bincount(found.label, minlength=2).min())
    if rarer < ceiling.FOLDS:
        raise DataError(
            f"{path}, column '{label}': {rarer} different posts of the rarer class: too few for a supervised fit to compare "
            f"with (expected {ceiling.FOLDS} or more)"
        )
    first: dict[str, int] = {}
    for row, words in enumerate(columns.read(path, [text], {text}).columns[text]):
        first.setdefault(words, row)
    row = np.array([first[words] for words in found.text])
    how = json.dumps([text, label, threshold]).encode()
    digest = hashlib.sha256(path.read_bytes() + how).hexdigest()
    return OwnPosts(found.text, found.label, row, found.merged, found.contradicted, digest)


def places(folder: Path, found: OwnPosts, name: str, model: LanguageModel, scaling: Scaling) -> dict[str, str]:
    """The files that the environment reads, which `make` makes."""
    decides = json.dumps([found.digest, model.model_dump()], sort_keys=True)
    stem = f"{name}-{hashlib.sha256(decides.encode()).hexdigest()[:12]}"
    return {
        "embeddings": (folder / "embeddings" / f"{stem}.nc").as_posix(),
        "ceiling": (folder / "ceilings" / f"{stem}-{scaling}.nc").as_posix(),
    }


def make(
    folder: Path,
    found: OwnPosts,
    files: dict[str, str],
    name: str,
    model: LanguageModel,
    scaling: Scaling,
    *,
    device: str,
    threads: int,
    on_text: Callable[[int], None],
) -> None:
    """Make those of `files` that are missing; `on_text` is told how many more posts are embedded.

    Raises:
        UnreachableError: the language model cannot be had.
        DataError: it cannot be read, or a post has no token.
    """
    if not Path(files["embeddings"]).exists():
        brought = folder / "models" / f"{name}-{_digest(model.brought())}"
        if not (brought / MARK).exists():
            acquire(model.brought(), brought)
        prepared = folder / f"posts-{found.digest[:12]}.nc"
        if not prepared.exists():
            posts.write(prepared, found.text, found.label, {"source": "a file of the user's", "sha256": found.digest})
        embed_posts(
            prepared,
            files["embeddings"],
            folder=brought,
            posts=len(found.label),
            pooling=model.pooling,
            max_tokens=model.max_tokens,
            precision=precision.resolve(model.precision, device),
            device=devices.require(device),
            threads=threads,
            code=current("ensemblepp.text.forward"),
            on_text=on_text,
        )
    if not Path(files["ceiling"]).exists():
        ceiling.write(files["embeddings"], files["ceiling"], scaling)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:12]
