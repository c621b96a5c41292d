"""Statlog Shuttle (UCI): 58,000 rows of 9 integer attributes, 7 very unequal classes (78.6 % are of the first).

Catlett and NASA, UCI Machine Learning Repository, https://doi.org/10.24432/C5WS31, licensed CC BY 4.0. The rows are
those of the training file, then those of the test file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ensemblepp.data.lines import check_blocks, fail, numbered_lines, shown
from ensemblepp.data.sources import RawFile, Source

ATTRIBUTES = 9
CLASSES = ("Rad Flow", "Fpv Close", "Fpv Open", "High", "Bypass", "Bpv Close", "Bpv Open")
CLASS_COUNTS = {
    "shuttle.trn": (34108, 37, 132, 6748, 2458, 6, 11),
    "shuttle.tst": (11478, 13, 39, 2155, 809, 4, 2),
}
ROWS = sum(sum(counts) for counts in CLASS_COUNTS.values())

# The widest value of the two files has six characters; a longer one would not be sure to fit in int32.
_INTEGER = re.compile(r"-?[0-9]{1,8}")


class Shuttle(NamedTuple):
    """The rows of one file.

    Attributes:
        values: int32 (row, 9); the first attribute is time.
        labels: int8 (row,); the place of the class in `CLASSES`, so one less than in the file.
    """

    values: np.ndarray
    labels: np.ndarray


def parse(path: str | Path, name: str) -> Shuttle:
    """Read and check UCI's file `name` ("shuttle.trn", unpacked, or "shuttle.tst") at `path`.

    Raises:
        DataError: the file is not UCI's; names the first faulty line, or the first lines that are not UCI's.
    """
    expected = CLASS_COUNTS[name]
    rows = np.array([_fields(path, number, line) for number, line in numbered_lines(path, sum(expected))], np.int32)
    labels = (rows[:, ATTRIBUTES] - 1).astype(np.int8)
    found = tuple(np.bincount(labels, minlength=len(CLASSES)).tolist())
    problem = None if found == expected else f"class counts (expected {_listed(expected)}, found {_listed(found)})"
    check_blocks(path, name, problem)
    return Shuttle(rows[:, :ATTRIBUTES].copy(), labels)


def rows_available(mirror: str | Path | None = None) -> int:
    """Rows of the prepared file, whatever serves the raw one."""
    return ROWS


def prepare(raw: Sequence[str | Path], output: str | Path) -> None:
    """Write both files, training rows first, as netCDF: `value(row, attribute)` and `label(row)`.

    Raises:
        DataError: see `parse`; `output` then stays as it was.
    """
    import xarray as xr

    from ensemblepp.storage.datasets import write_dataset

    parts = [parse(path, name) for path, name in zip(raw, CLASS_COUNTS, strict=True)]
    dataset = xr.Dataset(
        {
            "value": (("row", "attribute"), np.concatenate([part.values for part in parts])),
            "label": ("row", np.concatenate([part.labels for part in parts])),
        },
        coords={"class": np.array(CLASSES, object)},
        attrs={
            "title": "Statlog (Shuttle)",
            "source": "UCI Machine Learning Repository, https://doi.org/10.24432/C5WS31",
            "license": "CC BY 4.0",
            "sha256": " ".join(file.sha256 for file in RAW),
        },
    )
    write_dataset(dataset, output)


def _fields(path: str | Path, number: int, line: str) -> list[int]:
    fields = line.split(" ")
    if len(fields) != ATTRIBUTES + 1:
        fail(path, number, "wrong number of fields", f"{ATTRIBUTES + 1} parted by one space", f"{len(fields)}")
    for place, field in enumerate(fields, start=1):
        if not _INTEGER.fullmatch(field):
            fail(path, number, f"not a number in field {place}", "an integer of at most 8 digits", shown(field))
    if not 1 <= int(fields[-1]) <= len(CLASSES):
        fail(path, number, f"unknown class in field {ATTRIBUTES + 1}", f"1 to {len(CLASSES)}", fields[-1])
    return [int(field) for field in fields]


def _listed(counts: tuple[int, ...]) -> str:
    return " ".join(f"{count:,}" for count in counts)


RAW = tuple(
    RawFile(
        name=f"uci/{name}",
        sources=(
            Source(f"{{uci}}/ml/machine-learning-databases/statlog/shuttle/{packed}"),
            Source("{uci}/static/public/148/statlog+shuttle.zip", member=packed),
        ),
        mirror_paths=(f"uci/{name}", name),
        sha256=sha256,
        check=partial(parse, name=name),
    )
    for name, packed, sha256 in (
        ("shuttle.trn", "shuttle.trn.Z", "87b24ee9fb5137e1d417659cf905d84d0e15342bbaa60770f1ae83da1a38200a"),
        ("shuttle.tst", "shuttle.tst", "f776934a628d9b94c482cb058a76ddaa63823e0f74aec065813c9dff3b89d661"),
    )
)
