"""Davidson et al. (2017): tweets that were labelled hateful, offensive or neither.

"Automated Hate Speech Detection and the Problem of Offensive Language", arXiv:1703.04009, licensed MIT. The texts are
abusive: they never appear in messages or logs. To be blocked is what annotators called hateful or offensive, 83 % of the
tweets; the prepared file keeps their class.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ensemblepp.data import columns, posts
from ensemblepp.data.columns import fail
from ensemblepp.data.sources import RawFile, Source
from ensemblepp.errors import DataError

COMMIT = "cb50f7e9eb855a99abc51423bf40df0e26d6fe30"

#: How many tweets are of class 0, hateful, 1, offensive, and 2, neither.
CLASS_COUNTS = (1_430, 19_190, 4_163)
NEITHER = 2


class Tweets(NamedTuple):
    """The tweets in the order of `posts.order`; all arrays have the shape (tweet,).

    Attributes:
        text: objects (str), never empty.
        kind: int8, the place in `CLASS_COUNTS`.
    """

    text: np.ndarray
    kind: np.ndarray


def read(path: str | Path) -> Tweets:
    """Read and check labeled_data.csv.

    Raises:
        DataError: the file is not the publisher's.
    """
    # the first column is the tweet's number
    names = ["", "class", "tweet"]
    found = columns.read(path, names, names)
    number, kind, text = (found.columns[name] for name in names)
    for row, (one, tweet) in enumerate(zip(kind, text, strict=True)):
        if one not in ("0", "1", "2"):
            fail(path, found.place(row), "class", "unknown class", "0, 1 or 2", "something else")
        if not tweet:
            fail(path, found.place(row), "tweet", "an empty text", "a tweet", "none")
    kinds = np.array(kind, np.int8)
    counts = tuple(np.bincount(kinds, minlength=3).tolist())
    if counts != CLASS_COUNTS:
        raise DataError(f"{path}: tweets of class 0, 1 and 2 (expected {CLASS_COUNTS}, found {counts})")
    places = posts.order(number)
    return Tweets(np.array(text, object)[places], kinds[places])


def rows_available(mirror: str | Path | None = None) -> int:
    """Posts of the prepared file, whatever serves the raw one."""
    return sum(CLASS_COUNTS)


def prepare(raw: Sequence[str | Path], output: str | Path) -> None:
    """Write the tweets as netCDF (`posts.write`), with `kind(post)` beside the label.

    Raises:
        DataError: see `read`; `output` then stays as it was.
    """
    (path,) = raw
    tweets = read(path)
    about = {
        "title": "Davidson et al.",
        "source": "https://github.com/t-davidson/hate-speech-and-offensive-language",
        "reference": "arXiv:1703.04009",
        "license": "MIT",
        "sha256": RAW[0].sha256,
    }
    posts.write(output, tweets.text, (tweets.kind != NEITHER).astype(np.int8), about, kind=tweets.kind)


RAW = (
    RawFile(
        name="hatespeech/davidson_labeled_data.csv",
        sources=(Source(f"{{github}}/t-davidson/hate-speech-and-offensive-language/{COMMIT}/data/labeled_data.csv"),),
        mirror_paths=(
            "hatespeech/davidson_labeled_data.csv.gz",
            "hatespeech/davidson_labeled_data.csv",
            "labeled_data.csv",
        ),
        sha256="fcb8bc7c68120ae4af04a5b9acd58585513ede11e1548ebf36a5c2040b6f6281",
        check=read,
    ),
)
