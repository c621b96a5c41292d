"""HateCheck: functional tests for hate-speech detection, sentences made from templates, each hateful or not.

Röttger et al. (2021), arXiv:2012.15606, licensed CC BY 4.0. The texts are abusive: they never appear in messages or logs.
They are no natural posts: 69 % are hateful, and the others are made to look alike.
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

COMMIT = "d84302298ceeb34f4b0dde2d8a1f4932c2caa612"
CLASS_COUNTS = {"non-hateful": 1_165, "hateful": 2_563}


class Cases(NamedTuple):
    """The cases in the order of `posts.order`; all arrays have the shape (case,).

    Attributes:
        text: objects (str), never empty.
        label: int8, 1 for hateful.
        functionality: objects (str), what the case tests.
    """

    text: np.ndarray
    label: np.ndarray
    functionality: np.ndarray


def read(path: str | Path) -> Cases:
    """Read and check test_suite_cases.csv.

    Raises:
        DataError: the file is not the publisher's.
    """
    names = ["case_id", "test_case", "label_gold", "functionality"]
    found = columns.read(path, names, names)
    number, text, gold, functionality = (found.columns[name] for name in names)
    for row, (label, case) in enumerate(zip(gold, text, strict=True)):
        if label not in CLASS_COUNTS:
            fail(path, found.place(row), "label_gold", "unknown label", " or ".join(CLASS_COUNTS), "something else")
        if not case:
            fail(path, found.place(row), "test_case", "an empty text", "a case", "none")
    counts = {label: gold.count(label) for label in CLASS_COUNTS}
    if counts != CLASS_COUNTS:
        raise DataError(f"{path}: number of cases (expected {CLASS_COUNTS}, found {counts})")
    places = posts.order(number)
    label = np.array([label == "hateful" for label in gold], np.int8)
    return Cases(np.array(text, object)[places], label[places], np.array(functionality, object)[places])


def rows_available(mirror: str | Path | None = None) -> int:
    """Posts of the prepared file, whatever serves the raw one."""
    return sum(CLASS_COUNTS.values())


def prepare(raw: Sequence[str | Path], output: str | Path) -> None:
    """Write the cases as netCDF (`posts.write`), with `functionality(post)` beside the label.

    Raises:
        DataError: see `read`; `output` then stays as it was.
    """
    (path,) = raw
    cases = read(path)
    about = {
        "title": "HateCheck",
        "source": "https://github.com/paul-rottger/hatecheck-data",
        "reference": "arXiv:2012.15606",
        "license": "CC BY 4.0",
        "sha256": RAW[0].sha256,
    }
    posts.write(output, cases.text, cases.label, about, functionality=cases.functionality)


RAW = (
    RawFile(
        name="hatespeech/hatecheck_test_suite_cases.csv",
        sources=(Source(f"{{github}}/paul-rottger/hatecheck-data/{COMMIT}/test_suite_cases.csv"),),
        mirror_paths=("hatespeech/hatecheck_test_suite_cases.csv", "test_suite_cases.csv"),
        sha256="ecf0dc1e93fccc90b6f880e632b19e635c0f0a68b3157915a9e20b6938f121cf",
        check=read,
    ),
)
