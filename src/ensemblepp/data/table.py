"""A table of the user's: a file (`columns`) with a column of labels, checked, and made numbers and codes.

The configuration declares it under `datasets`. A column whose values are all numbers is numeric; one without any number is
nominal, and so is one that is declared nominal, whatever its values. Every fault is a `DataError` of one line that names the
file, the line (or the row of a Parquet file), the column, what was expected and what was found.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from ensemblepp.data import columns
from ensemblepp.data.columns import Columns, fail
from ensemblepp.data.lines import shown
from ensemblepp.errors import DataError

#: What to do with a field without a value in a nominal column.
Missing = Literal["error", "category"]


_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Table(NamedTuple):
    """A table that was read and checked.

    Attributes:
        values: float64 (row, numeric column).
        numeric: names of the numeric columns.
        codes: int32 (row, nominal column); the place of the text among the column's categories.
        nominal: names of the nominal columns.
        categories: the texts of every nominal column, in order.
        labels: int32 (row,); the place of the class in `classes`.
        classes: the labels' texts, in order: by number where all are numbers, else by text.
    """

    values: np.ndarray
    numeric: tuple[str, ...]
    codes: np.ndarray
    nominal: tuple[str, ...]
    categories: tuple[tuple[str, ...], ...]
    labels: np.ndarray
    classes: tuple[str, ...]


def read(
    path: str | Path,
    *,
    label: str,
    features: Sequence[str] | None = None,
    nominal: Sequence[str] | None = None,
    missing: Missing = "error",
) -> Table:
    """Read and check a table.

    Args:
        path: the file.
        label: the column of the classes.
        features: the columns to keep; None: all but the label.
        nominal: columns that are nominal even where their values are numbers.
        missing: whether a field without a value is an error, or in nominal columns a category of its own.

    Raises:
        DataError: see the module.
    """
    names = columns.header(path, [label, *(features or ()), *(nominal or ())])
    kept = [name for name in names if name not in ("", label) and (features is None or name in features)]
    if not kept:
        raise DataError(f"{path}: no column but the label '{label}' (expected at least one feature)")
    texts = {label, *(nominal or ())}
    found = columns.read(path, [label, *kept], texts)
    labels, classes = _labels(path, label, found)
    values: dict[str, np.ndarray] = {}
    codes: dict[str, tuple[np.ndarray, tuple[str, ...]]] = {}
    for name in kept:
        column = found.columns[name]
        numbers = None if name in texts else _numbers(path, name, column, found.place)
        if numbers is not None:
            values[name] = numbers
            continue
        if missing == "error" and "" in column:
            fail(path, found.place(column.index("")), name, "no value", "one, or `missing: category`", "none")
        codes[name] = _coded(column)
    rows = len(labels)
    return Table(
        np.stack(list(values.values()), axis=1) if values else np.empty((rows, 0)),
        tuple(values),
        np.stack([code for code, _ in codes.values()], axis=1) if codes else np.empty((rows, 0), np.int32),
        tuple(codes),
        tuple(names for _, names in codes.values()),
        labels,
        classes,
    )


def prepare(raw: Sequence[str | Path], output: str | Path, **declared: Any) -> None:
    """Write the table as netCDF; `declared` are the keyword arguments of `read`.

    Variables: `label(row)`; `value(row, attribute)` if there are numeric columns; `code(row, nominal)`,
    `cardinality(nominal)` and `categories(nominal)`, a JSON list each, if there are nominal ones.

    Raises:
        DataError: see `read`; `output` then stays as it was.
    """
    import xarray as xr

    from ensemblepp.storage.datasets import write_dataset

    (path,) = raw
    table = read(path, **declared)
    variables: dict[str, Any] = {"label": ("row", table.labels)}
    coordinates = {"class": np.array(table.classes, object)}
    if table.numeric:
        variables["value"] = (("row", "attribute"), table.values)
        coordinates["attribute"] = np.array(table.numeric, object)
    if table.nominal:
        variables["code"] = (("row", "nominal"), table.codes)
        variables["cardinality"] = ("nominal", np.array([len(names) for names in table.categories], np.int32))
        listed = [json.dumps(names, ensure_ascii=False) for names in table.categories]
        variables["categories"] = ("nominal", np.array(listed, object))
        coordinates["nominal"] = np.array(table.nominal, object)
    about = {"source": Path(path).name, "sha256": hashlib.sha256(Path(path).read_bytes()).hexdigest()}
    write_dataset(xr.Dataset(variables, coordinates, about), output)


def _labels(path: str | Path, label: str, found: Columns) -> tuple[np.ndarray, tuple[str, ...]]:
    column = found.columns[label]
    if not len(column):
        raise DataError(f"{path}: no rows (expected rows after the column names, found none)")
    if "" in column:
        fail(path, found.place(column.index("")), label, "no label", "a class", "none")
    labels, classes = _coded(column)
    if len(classes) == 1:
        raise DataError(f"{path}, column '{label}': one class only (expected two or more, found '{classes[0]}' in all rows)")
    if 2 * len(classes) > len(column):
        raise DataError(
            f"{path}, column '{label}': not a column of classes (expected two rows or more for a class, "
            f"found {len(classes):,} values in {len(column):,} rows)"
        )
    return labels, classes


def _coded(column: list[str]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Codes, int32 (row,), and what they stand for, in order."""
    present = set(column)
    numbers = all(map(_NUMBER.fullmatch, present))
    names = sorted(present, key=(lambda text: (float(text), text)) if numbers else None)
    codes = {name: code for code, name in enumerate(names)}
    return np.array([codes[text] for text in column], np.int32), tuple(names)


def _numbers(path: str | Path, name: str, column: list[str] | np.ndarray, place: Callable[[int], str]) -> np.ndarray | None:
    """A column as float64 (row,); None if it holds no number, and so is nominal."""
    if isinstance(column, np.ndarray):
        numbers = column
    else:
        matches = [_NUMBER.fullmatch(text) is not None for text in column]
        if not any(matches):
            return None
        text = next((row for row, text in enumerate(column) if text and not matches[row]), None)
        if text is not None:
            fail(path, place(text), name, "not a number", "a number, or the column under `nominal`", shown(column[text]))
        numbers = np.array([float(text) if text else np.nan for text in column])
    bad = ~np.isfinite(numbers)
    if bad.any():
        row = int(bad.argmax())
        empty = np.isnan(numbers[row])
        found = "none" if empty else shown(column[row]) if isinstance(column, list) else str(numbers[row])
        fail(path, place(row), name, "no value" if empty else "not a finite number", "a number", found)
    return numbers
