"""Posts and whether each is to be blocked: what every data set of posts becomes, and files of the user's that hold some.

A file of the user's (`columns`) has a column of texts and one of labels: yes or no, true or false, 1 or 0, or scores that a
threshold cuts. Every fault is a `DataError` of one line that names the file, the line (or the row of a Parquet file), the
column, what was expected and what was found. Texts never appear in messages or logs: they may be abusive, or private.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from ensemblepp.data import columns
from ensemblepp.data.columns import Columns, fail
from ensemblepp.errors import DataError

#: What becomes of posts that a file holds more than once.
Duplicates = Literal["merge", "keep"]

#: The classes, by label.
CLASSES = ("free", "hate")

_WORDS = {"yes": 1, "no": 0, "true": 1, "false": 0, "1": 1, "0": 0, "1.0": 1, "0.0": 0}
_ORDER = "ensemble++ order of posts"

#: What a message quotes of a label: no text of a post looks like this, should its column be named for the labels'.
_SHORT = re.compile(r"[\w.+-]{1,12}")


class Posts(NamedTuple):
    """The posts of a file, in the order of `order`.

    Attributes:
        text: objects (str), shape (post,), never empty.
        label: int8 (post,), 1 for a post that is to be blocked.
        rows: how many rows the file has.
        merged: how many of these were dropped, since an earlier one has their text.
        contradicted: how many posts had rows of both labels, of which the more frequent one holds.
    """

    text: np.ndarray
    label: np.ndarray
    rows: int
    merged: int
    contradicted: int


def read(path: str | Path, *, text: str, label: str, threshold: float | None = None, duplicates: Duplicates = "merge") -> Posts:
    """Read and check a file of posts.

    Args:
        path: the file.
        text: the column of the posts.
        label: the column of their labels.
        threshold: None: labels are yes or no, true or false, 1 or 0; else they are scores, and a post is to be blocked whose
            score is above this.
        duplicates: "merge" makes one post of rows with one text, whose label is their more frequent one (of scores: their
            mean's; a tie is not blocked); "keep" leaves them.

    Raises:
        DataError: see the module.
    """
    found = columns.read(path, [text, label], {text, label})
    texts, given = found.columns[text], found.columns[label]
    if not texts:
        raise DataError(f"{path}: no rows (expected a post a row, found none)")
    if "" in texts:
        fail(path, found.place(texts.index("")), text, "an empty text", "a post", "none")
    values = np.array(_scores(path, label, given, found) if threshold is not None else _labels(path, label, given, found))
    cut = 0.5 if threshold is None else threshold
    labels = (values > cut).astype(np.int8)
    keys, contradicted = _occurrences(texts), 0
    if duplicates == "merge":
        texts, row = np.unique(np.array(texts, object), return_inverse=True)
        counts = np.bincount(row)
        blocked = np.bincount(row, labels)
        contradicted = int(((blocked > 0) & (blocked < counts)).sum())
        labels = (np.bincount(row, values) / counts > cut).astype(np.int8)
        keys = texts.tolist()
    if len(set(labels.tolist())) == 1:
        only = CLASSES[int(labels[0])]
        raise DataError(
            f"{path}, column '{label}': one class only (expected posts to block and others, found {len(labels):,} {only} ones)"
        )
    places = order(keys)
    return Posts(np.array(texts, object)[places], labels[places], len(values), len(values) - len(labels), contradicted)


def prepare(raw: Sequence[str | Path], output: str | Path, **declared: Any) -> str:
    """Write the posts as netCDF (`write`); `declared` are the keyword arguments of `read`. Returns what the file held.

    Raises:
        DataError: see `read`; `output` then stays as it was.
    """
    (path,) = raw
    posts = read(path, **declared)
    facts = {"rows": posts.rows, "merged": posts.merged, "contradicted": posts.contradicted}
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    name = Path(path).name
    write(output, posts.text, posts.label, {"title": name, "source": name, "sha256": digest} | facts)
    return (
        f"{path}: {len(posts.label):,} posts of {posts.rows:,} rows, {int(posts.label.sum()):,} to be blocked; "
        f"{posts.merged:,} duplicates merged, {posts.contradicted:,} posts with both labels"
    )


def write(output: str | Path, text: np.ndarray, label: np.ndarray, about: Mapping[str, Any], **others: np.ndarray) -> None:
    """Write a prepared file of posts: `text(post)`, `label(post)` and `others`, each (post,), with the attributes `about`."""
    import xarray as xr

    from ensemblepp.storage.datasets import write_dataset

    variables = {"text": text, "label": label, **others}
    classes = {"class": np.array(CLASSES, object)}
    write_dataset(xr.Dataset({name: ("post", values) for name, values in variables.items()}, classes, dict(about)), output)


def order(keys: Iterable[str]) -> np.ndarray:
    """The permutation that puts posts into their data set's order: by the sha256 of a constant and the post's key.

    It looks random and never changes, so the first n posts are a fair sample of all, and two raw files that share
    posts have these in the same relative order.
    """
    digests = [hashlib.sha256(f"{_ORDER} {key}".encode()).digest() for key in keys]
    return np.array(sorted(range(len(digests)), key=digests.__getitem__), np.int64)


def _occurrences(texts: Sequence[str]) -> list[str]:
    """A key for every row: its text, and how often it was met before."""
    met: dict[str, int] = {}
    keys = []
    for text in texts:
        met[text] = met.get(text, 0) + 1
        keys.append(text if met[text] == 1 else f"{text} {met[text] - 1}")
    return keys


def _labels(path: str | Path, name: str, given: Sequence[str], found: Columns) -> list[float]:
    labels = [_WORDS.get(value.casefold()) for value in given]
    if None in labels:
        row = labels.index(None)
        expected = "yes or no, true or false, 1 or 0; for scores set `threshold`"
        fail(path, found.place(row), name, "not a label" if given[row] else "no label", expected, _shown(given[row]))
    return [float(label) for label in labels]


def _scores(path: str | Path, name: str, given: Sequence[str], found: Columns) -> list[float]:
    scores = []
    for row, value in enumerate(given):
        try:
            score = float(value)
        except ValueError:
            score = math.nan
        if not math.isfinite(score):
            fail(path, found.place(row), name, "not a score" if value else "no score", "a finite number", _shown(value))
        scores.append(score)
    return scores


def _shown(value: str) -> str:
    if not value:
        return "none"
    return f"'{value}'" if _SHORT.fullmatch(value) else f"{len(value)} characters"
