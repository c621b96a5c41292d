"""Mushroom (UCI): 8,124 mushrooms of 22 nominal attributes, edible or poisonous.

Schlimmer (1981), UCI Machine Learning Repository, https://doi.org/10.24432/C5959T, licensed CC BY 4.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ensemblepp.data.lines import check_blocks, fail, numbered_lines, shown
from ensemblepp.data.sources import RawFile, Source

ROWS = 8124
CLASSES = ("edible", "poisonous")
CLASS_COUNTS = {"e": 4208, "p": 3916}
MISSING = "?"
MISSING_COUNT = 2480

LEGEND = {
    attribute: dict(reversed(value.split("=")) for value in values.split())
    for attribute, values in {
        "cap-shape": "bell=b conical=c convex=x flat=f knobbed=k sunken=s",
        "cap-surface": "fibrous=f grooves=g scaly=y smooth=s",
        "cap-color": "brown=n buff=b cinnamon=c gray=g green=r pink=p purple=u red=e white=w yellow=y",
        "bruises": "bruises=t no=f",
        "odor": "almond=a anise=l creosote=c fishy=y foul=f musty=m none=n pungent=p spicy=s",
        "gill-attachment": "attached=a descending=d free=f notched=n",
        "gill-spacing": "close=c crowded=w distant=d",
        "gill-size": "broad=b narrow=n",
        "gill-color": "black=k brown=n buff=b chocolate=h gray=g green=r orange=o pink=p purple=u red=e white=w yellow=y",
        "stalk-shape": "enlarging=e tapering=t",
        "stalk-root": "bulbous=b club=c cup=u equal=e rhizomorphs=z rooted=r missing=?",
        "stalk-surface-above-ring": "fibrous=f scaly=y silky=k smooth=s",
        "stalk-surface-below-ring": "fibrous=f scaly=y silky=k smooth=s",
        "stalk-color-above-ring": "brown=n buff=b cinnamon=c gray=g orange=o pink=p red=e white=w yellow=y",
        "stalk-color-below-ring": "brown=n buff=b cinnamon=c gray=g orange=o pink=p red=e white=w yellow=y",
        "veil-type": "partial=p universal=u",
        "veil-color": "brown=n orange=o white=w yellow=y",
        "ring-number": "none=n one=o two=t",
        "ring-type": "cobwebby=c evanescent=e flaring=f large=l none=n pendant=p sheathing=s zone=z",
        "spore-print-color": "black=k brown=n buff=b chocolate=h green=r orange=o purple=u white=w yellow=y",
        "population": "abundant=a clustered=c numerous=n scattered=s several=v solitary=y",
        "habitat": "grasses=g leaves=l meadows=m paths=p urban=u waste=w woods=d",
    }.items()
}
"""For each attribute, letter -> word, as UCI's agaricus-lepiota.names documents them."""


class Mushroom(NamedTuple):
    """The parsed file.

    Attributes:
        codes: int8 (row, attribute); the place of the letter among `letters` of that attribute.
        labels: int8 (row,); the place of the class in `CLASSES`.
        letters: one string per attribute, its letters that occur in the file, sorted ('?', missing, is one of them).
    """

    codes: np.ndarray
    labels: np.ndarray
    letters: tuple[str, ...]


def parse(path: str | Path) -> Mushroom:
    """Read and check UCI's agaricus-lepiota.data.

    Raises:
        DataError: the file is not UCI's; names the first faulty line, or the first lines that are not UCI's.
    """
    rows = [_fields(path, number, line) for number, line in numbered_lines(path, ROWS)]
    classes = [row[0] for row in rows]
    counts = {letter: classes.count(letter) for letter in CLASS_COUNTS}
    missing = sum(MISSING in row for row in rows)
    problem = None
    if counts != CLASS_COUNTS:
        problem = f"class counts (expected {_listed(CLASS_COUNTS)}, found {_listed(counts)})"
    elif missing != MISSING_COUNT:
        problem = f"missing values in stalk-root (expected {MISSING_COUNT:,}, found {missing:,})"
    check_blocks(path, "agaricus-lepiota.data", problem)

    columns = list(zip(*rows, strict=True))
    letters = tuple("".join(sorted(set(column))) for column in columns[1:])
    codes = [[seen.index(letter) for letter in column] for seen, column in zip(letters, columns[1:], strict=True)]
    labels = [list(CLASS_COUNTS).index(letter) for letter in classes]
    return Mushroom(np.array(codes, np.int8).T.copy(), np.array(labels, np.int8), letters)


def rows_available(mirror: str | Path | None = None) -> int:
    """Rows of the prepared file, whatever serves the raw one."""
    return ROWS


def prepare(raw: Sequence[str | Path], output: str | Path) -> None:
    """Write the parsed file as netCDF.

    Variables: `code(row, attribute)`, `label(row)`, `letters(attribute)`, `cardinality(attribute)`.
    Attributes stay nominal; the environment chooses their coding.

    Raises:
        DataError: see `parse`; `output` then stays as it was.
    """
    import xarray as xr

    from ensemblepp.storage.datasets import write_dataset

    (path,) = raw
    mushroom = parse(path)
    dataset = xr.Dataset(
        {
            "code": (("row", "attribute"), mushroom.codes),
            "label": ("row", mushroom.labels),
            "letters": ("attribute", np.array(mushroom.letters, object)),
            "cardinality": ("attribute", np.array([len(seen) for seen in mushroom.letters], np.int8)),
        },
        coords={"attribute": np.array(list(LEGEND), object), "class": np.array(CLASSES, object)},
        attrs={
            "title": "Mushroom",
            "source": "UCI Machine Learning Repository, https://doi.org/10.24432/C5959T",
            "license": "CC BY 4.0",
            "sha256": RAW[0].sha256,
        },
    )
    write_dataset(dataset, output)


def _fields(path: str | Path, number: int, line: str) -> list[str]:
    fields = line.split(",")
    if len(fields) != 1 + len(LEGEND):
        fail(path, number, "wrong number of fields", f"{1 + len(LEGEND)} parted by commas", f"{len(fields)}")
    if fields[0] not in CLASS_COUNTS:
        fail(path, number, "unknown class in field 1", " or ".join(CLASS_COUNTS), shown(fields[0]))
    for place, (letter, (attribute, legend)) in enumerate(zip(fields[1:], LEGEND.items(), strict=True), start=2):
        if letter not in legend:
            fail(path, number, f"unknown {attribute} in field {place}", f"one of {' '.join(legend)}", shown(letter))
    return fields


def _listed(counts: dict[str, int]) -> str:
    return " and ".join(f"{count:,} {letter}" for letter, count in counts.items())


RAW = (
    RawFile(
        name="uci/agaricus-lepiota.data",
        sources=(
            Source("{uci}/ml/machine-learning-databases/mushroom/agaricus-lepiota.data"),
            Source("{uci}/static/public/73/mushroom.zip", member="agaricus-lepiota.data"),
        ),
        mirror_paths=("uci/agaricus-lepiota.data", "agaricus-lepiota.data"),
        sha256="e65d082030501a3ebcbcd7c9f7c71aa9d28fdfff463bf4cf4716a3fe13ac360e",
        check=parse,
    ),
)
