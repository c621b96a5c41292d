"""Measuring Hate Speech: social-media posts, each hate or free.

Kennedy et al. (2020), arXiv:2009.10277, https://doi.org/10.57967/hf/2710, licensed CC BY 4.0. The texts are abusive:
they never appear in messages or logs. Two raw files may stand for the data set, told apart by their first bytes:

- the hub's own parquet file, one row per annotation: 135,556 rows over 39,565 posts, with a continuous score that a
  threshold cuts into the label (the data card calls a score above 0.5 approximately hate);
- a mirror's `mhs_unique_comments.csv.gz`: 15,628 of these posts, whose labels were made by cutting the score at 0.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import tempfile
import zlib
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from ensemblepp.data import posts as shared
from ensemblepp.data.lines import fail, shown
from ensemblepp.data.sources import RawFile, Source, find_in_mirror
from ensemblepp.errors import DataError

REPOSITORY = "ucberkeley-dlab/measuring-hate-speech"
REVISION = "5468f6e118396646b02a2f691e771f6b6d9502ea"
HUB_FILE = "measuring-hate-speech.parquet"
MIRROR_FILE = "mhs_unique_comments.csv.gz"

THRESHOLD = 0.5

#: Each post once, or as often as it was annotated.
Selection = Literal["distinct", "annotations"]


class HubContent(NamedTuple):
    """What the hub's file must hold: so many rows of so many posts, and, where it is known, its sha256."""

    rows: int
    posts: int
    sha256: str | None = None


#: At `REVISION`. The numbers are those of the data card; the checksum is the one that other public projects record.
HUB_CONTENT = HubContent(135_556, 39_565, "6819525ce61bc24344df9fc3f7bf48270b31038273cc27c67fc225b51433b0e1")
MIRROR_POSTS = 15_628
MIRROR_ROWS = 27_112
MIRROR_CLASS_COUNTS = (10_008, 5_620)
MIRROR_LABEL_CUT = 0.0
MIRROR_SHA256 = "aa92441efba4335e7e7fd2c71c5db46490e409bd7b4b12fd55a94102d6133d6f"

_MIRROR_COLUMNS = ["comment_id", "text", "label", "n_rows"]
_HUB_COLUMNS = ["comment_id", "hate_speech_score", "text"]


class Posts(NamedTuple):
    """The posts of a raw file, in the order of `order`; all arrays have the shape (post,).

    Attributes:
        comment_id: int32, unique.
        text: objects (str), never empty.
        label: int8, 1 for hate.
        annotations: int32, how many annotations of the post the raw file is made from.
        source: "hub" or "mirror".
        label_cut: a post is hate if its score is above this.
    """

    comment_id: np.ndarray
    text: np.ndarray
    label: np.ndarray
    annotations: np.ndarray
    source: str
    label_cut: float


def read(path: str | Path, threshold: float | None = None, hub_content: HubContent = HUB_CONTENT) -> Posts:
    """Read and check a raw file of either kind.

    Args:
        path: the raw file.
        threshold: where the hub's score is cut, 0.5 where None is given; the mirror's labels are cut at 0 already.
        hub_content: what the hub's file must hold.

    Raises:
        DataError: it is neither kind of file, or not the one it should be; or the mirror's, for another threshold.
    """
    if _is_parquet(path):
        posts = _read_hub(path, THRESHOLD if threshold is None else threshold, hub_content)
    else:
        posts = _read_mirror(path)
        if threshold not in (None, MIRROR_LABEL_CUT):
            raise DataError(
                f"{path}: threshold {threshold:g} needs the hub's scores (expected {HUB_FILE}, found the mirror's file, whose "
                "labels were cut at 0); put that file into the mirror, or leave threshold out"
            )
    places = order(posts.comment_id)
    return Posts(*(column[places] for column in posts[:4]), posts.source, posts.label_cut)


def order(comment_id: np.ndarray) -> np.ndarray:
    """The permutation that puts posts into the data set's order (`posts.order` of the comment ids)."""
    return shared.order(map(str, comment_id.tolist()))


def repeated(posts: Posts) -> Posts:
    """Every post as often as it was annotated, in an order in which the first n are a fair sample of the annotations."""
    row = np.repeat(np.arange(len(posts.comment_id)), posts.annotations)
    copy = np.arange(len(row)) - np.repeat(np.cumsum(posts.annotations) - posts.annotations, posts.annotations)
    keys = (f"{post} {copy}" for post, copy in zip(posts.comment_id[row].tolist(), copy.tolist(), strict=True))
    places = row[shared.order(keys)]
    return Posts(*(column[places] for column in posts[:4]), posts.source, posts.label_cut)


def prepare(
    raw: Sequence[str | Path],
    output: str | Path,
    posts: Selection = "distinct",
    threshold: float | None = None,
    hub_content: HubContent = HUB_CONTENT,
) -> None:
    """Write the posts as netCDF (`posts.write`), with `annotations(post)` and `comment_id(post)`.

    The attributes `source` and `label_cut` say which raw file it was and where its score was cut, `posts` whether each is
    there once.

    Raises:
        DataError: see `read`; `output` then stays as it was.
    """
    (path,) = raw
    found = read(path, threshold, hub_content)
    if posts == "annotations":
        found = repeated(found)
    about = {
        "title": "Measuring Hate Speech",
        "source": found.source,
        "posts": posts,
        "label_cut": found.label_cut,
        "reference": f"https://huggingface.co/datasets/{REPOSITORY}, arXiv:2009.10277",
        "license": "CC BY 4.0",
        "sha256": hashlib.sha256(Path(path).read_bytes()).hexdigest(),
    }
    others = {"annotations": found.annotations, "comment_id": found.comment_id}
    shared.write(output, found.text, found.label, about, **others)


def posts_file(revision: str = REVISION, hub_content: HubContent = HUB_CONTENT) -> RawFile:
    """The raw file, at `revision` (a branch, tag or commit) of the hub's repository."""
    return RawFile(
        name="hatespeech/posts",
        sources=(Source(f"{{hub}}/datasets/{REPOSITORY}/resolve/{revision}/{HUB_FILE}"),),
        mirror_paths=(f"hatespeech/{HUB_FILE}", HUB_FILE, f"hatespeech/{MIRROR_FILE}", MIRROR_FILE),
        check=partial(read, hub_content=hub_content),
    )


def rows_available(mirror: str | Path | None = None, posts: Selection = "distinct") -> int:
    """How many posts the data set will have: the hub's, or those of the mirror's own file if the mirror serves it."""
    copy = find_in_mirror(posts_file(), mirror)
    if copy is None or _is_parquet(copy):
        return HUB_CONTENT.posts if posts == "distinct" else HUB_CONTENT.rows
    return MIRROR_POSTS if posts == "distinct" else MIRROR_ROWS


def _is_parquet(path: str | Path) -> bool:
    with Path(path).open("rb") as file:
        return file.read(4) == b"PAR1"


def _read_hub(path: str | Path, threshold: float, content: HubContent) -> Posts:
    import datasets
    import pyarrow
    import pyarrow.parquet

    try:
        absent = set(_HUB_COLUMNS) - set(pyarrow.parquet.read_schema(path).names)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{path}: not a whole parquet file ({error})") from error
    if absent:
        raise DataError(f"{path}: columns {', '.join(sorted(absent))} are missing")
    datasets.disable_progress_bars()
    with tempfile.TemporaryDirectory() as cache:  # never the user's shared cache
        table = datasets.Dataset.from_parquet(str(path), columns=_HUB_COLUMNS, cache_dir=cache, keep_in_memory=True)
        frame = table.to_pandas()

    if len(frame) != content.rows:
        raise DataError(f"{path}: number of rows (expected {content.rows:,}, found {len(frame):,})")
    for column in _HUB_COLUMNS:
        empty = frame[column].isna() | (frame[column] == "")
        if empty.any():
            raise DataError(f"{path}, row {int(empty.argmax()) + 1}: wrong {column} (expected a value, found none)")
    groups = frame.groupby("comment_id", sort=True)
    spread = groups["hate_speech_score"].nunique()
    if (spread > 1).any():
        raise DataError(f"{path}: comment {spread.idxmax()} has {spread.max()} scores (expected one per comment)")
    if len(groups) != content.posts:
        raise DataError(f"{path}: number of comments (expected {content.posts:,}, found {len(groups):,})")
    first = groups.first()
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    if content.sha256 not in (None, digest):
        raise DataError(
            f"{path}: every row is well-formed, but this is not the file of revision {REVISION} (sha256 expected "
            f"{content.sha256}, found {digest})"
        )
    return Posts(
        comment_id=first.index.to_numpy(np.int32),
        text=first["text"].to_numpy(object),
        label=(first["hate_speech_score"] > threshold).to_numpy(np.int8),
        annotations=groups.size().to_numpy(np.int32),
        source="hub",
        label_cut=float(threshold),
    )


def _read_mirror(path: str | Path) -> Posts:
    found: dict[int, tuple[str, int, int]] = {}
    line = 0
    try:
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            rows = csv.reader(file, strict=True)
            for row in rows:
                line = rows.line_num
                if line == 1:
                    if row != _MIRROR_COLUMNS:
                        fail(path, 1, "wrong header", ",".join(_MIRROR_COLUMNS), f"{len(row)} other fields")
                    continue
                comment_id, *post = _post(path, line, row)
                if comment_id in found:
                    fail(path, line, "this comment_id was met before", "unique ids", str(comment_id))
                found[comment_id] = tuple(post)
    except (OSError, EOFError, UnicodeDecodeError, zlib.error, csv.Error) as error:
        # The words of a decoding error would quote the text.
        reason = "not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise DataError(
            f"{path}, after line {line}: the file cannot be read on as gzip-packed CSV, nor is it parquet ({reason})"
        ) from error
    if len(found) != MIRROR_POSTS:
        fail(path, max(line, 1), "the file ends after this line", f"{MIRROR_POSTS:,} posts", f"{len(found):,}")

    texts, labels, annotations = zip(*found.values(), strict=True)
    counts = tuple(np.bincount(labels, minlength=2).tolist())
    if counts != MIRROR_CLASS_COUNTS:
        raise DataError(f"{path}: posts labelled 0 and 1 (expected {MIRROR_CLASS_COUNTS}, found {counts})")
    digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    if digest != MIRROR_SHA256:
        raise DataError(
            f"{path}: each line is well-formed, but lines were re-ordered or edited (sha256 expected {MIRROR_SHA256}, "
            f"found {digest})"
        )
    return Posts(
        comment_id=np.array(list(found), np.int32),
        text=np.array(texts, object),
        label=np.array(labels, np.int8),
        annotations=np.array(annotations, np.int32),
        source="mirror",
        label_cut=MIRROR_LABEL_CUT,
    )


def _post(path: str | Path, line: int, row: list[str]) -> tuple[int, str, int, int]:
    """(comment_id, text, label, annotations) of one row. No message quotes the text."""
    if len(row) != len(_MIRROR_COLUMNS):
        fail(path, line, "wrong number of fields", str(len(_MIRROR_COLUMNS)), str(len(row)))
    comment_id, text, label, annotations = row
    if not comment_id.isdecimal():
        fail(path, line, "wrong comment_id", "a whole number", "something else")
    if not text:
        fail(path, line, "wrong text", "a text", "none")
    if label not in ("0", "1"):
        fail(path, line, "wrong label", "0 or 1", shown(label))
    if not annotations.isdecimal() or int(annotations) < 1:
        fail(path, line, "wrong n_rows", "a whole number from 1", shown(annotations))
    return int(comment_id), text, int(label), int(annotations)


RAW = (posts_file(),)
