"""A table of the user's: a CSV or Parquet file with a column of labels, checked, and made numbers and codes.

The configuration declares it under `datasets`. A column whose values are all numbers is numeric; one without any number is
nominal, and so is one that is declared nominal, whatever its values. Every fault is a `DataError` of one line that names the
file, the line (or the row of a Parquet file), the column, what was expected and what was found.
"""

from __future__ import annotations

import csv
import functools
import gzip
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple, NoReturn

import numpy as np

from ensemblepp.data.lines import shown
from ensemblepp.errors import DataError

#: The formats that are read, by the end of a file's name.
SUFFIXES = (".csv", ".csv.gz", ".parquet")

#: What to do with a field without a value in a nominal column.
Missing = Literal["error", "category"]

#: Column names that a message lists.
_LISTED = 12

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


class _Columns(NamedTuple):
    """What a file holds: texts, "" where there is no value; or float64, NaN there."""

    columns: dict[str, list[str] | np.ndarray]
    place: Callable[[int], str]  #: row from 0 -> what a message calls it


def header(path: str | Path, columns: Collection[str] = ()) -> list[str]:
    """The names of a file's columns; all of `columns` are among them.

    Raises:
        DataError: the file is missing, empty or unreadable, two columns have one name, or a column is missing.
    """
    if not Path(path).is_file():
        raise DataError(f"{path}: no such file")
    if _is_parquet(path):
        names, first = list(_parquet(path).schema_arrow.names), "columns"
    else:
        names, first = next(_records(path), (1, []))[1], "line 1"
    if not names:
        raise DataError(f"{path}, line 1: the file is empty (expected a line of column names, found none)")
    for place, name in enumerate(names, start=1):
        if not name:
            raise DataError(f"{path}, {first}: column {place} has no name (expected a name for every column)")
        if name in names[: place - 1]:
            raise DataError(
                f"{path}, {first}: two columns have one name (expected different names, "
                f"found '{name}' at places {names.index(name) + 1} and {place})"
            )
    for name in columns:
        if name not in names:
            others = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
            raise DataError(f"{path}, {first}: no column '{name}' (found {', '.join(names[:_LISTED])}{others})")
    return names


def rows_available(path: str | Path) -> int:
    """Rows of the file, counted without parsing them: a line break inside a quoted field counts as one more."""
    stat = Path(path).stat()
    return _count(str(path), stat.st_mtime_ns, stat.st_size)


@functools.cache
def _count(path: str, *_version: int) -> int:
    if _is_parquet(path):
        return _parquet(path).metadata.num_rows
    with _opened(path) as file:
        return max(0, sum(not line.isspace() for line in file) - 1)


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
    names = header(path, [label, *(features or ()), *(nominal or ())])
    kept = [name for name in names if name != label and (features is None or name in features)]
    if not kept:
        raise DataError(f"{path}: no column but the label '{label}' (expected at least one feature)")
    texts = {label, *(nominal or ())}
    found = _read_parquet(path, [label, *kept], texts) if _is_parquet(path) else _read_csv(path, names, [label, *kept])
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
            _fail(path, found.place(column.index("")), name, "no value", "one, or `missing: category`", "none")
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


def _labels(path: str | Path, label: str, found: _Columns) -> tuple[np.ndarray, tuple[str, ...]]:
    column = found.columns[label]
    if not len(column):
        raise DataError(f"{path}: no rows (expected rows after the column names, found none)")
    if "" in column:
        _fail(path, found.place(column.index("")), label, "no label", "a class", "none")
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
            _fail(path, place(text), name, "not a number", "a number, or the column under `nominal`", shown(column[text]))
        numbers = np.array([float(text) if text else np.nan for text in column])
    bad = ~np.isfinite(numbers)
    if bad.any():
        row = int(bad.argmax())
        empty = np.isnan(numbers[row])
        found = "none" if empty else shown(column[row]) if isinstance(column, list) else str(numbers[row])
        _fail(path, place(row), name, "no value" if empty else "not a finite number", "a number", found)
    return numbers


def _fail(path: str | Path, place: str, column: str, reason: str, expected: str, found: str) -> NoReturn:
    raise DataError(f"{path}, {place}, column '{column}': {reason} (expected {expected}, found {found})")


# ------------------------------------------------------------------------------------------------------------- CSV


def _read_csv(path: str | Path, names: list[str], kept: list[str]) -> _Columns:
    places = [names.index(name) for name in kept]
    columns: list[list[str]] = [[] for _ in kept]
    lines: list[int] = []
    # one object for equal texts: most fields of a table are not the first of their kind
    seen: dict[str, str] = {}
    records = _records(path)
    next(records)
    for line, fields in records:
        if len(fields) != len(names):
            raise DataError(
                f"{path}, line {line}: wrong number of fields (expected {len(names)}, as in line 1, found {len(fields)})"
            )
        lines.append(line)
        for column, place in zip(columns, places, strict=True):
            column.append(seen.setdefault(fields[place], fields[place]))
    return _Columns(dict(zip(kept, columns, strict=True)), lambda row: f"line {lines[row]}")


def _records(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """(line that it begins in, fields without blanks around them) of every line that is not empty."""
    line = 0
    try:
        with _opened(path) as file:
            records = csv.reader(
                (text.decode("utf-8-sig" if not number else "utf-8") for number, text in enumerate(file)),
                skipinitialspace=True,
                strict=True,
            )
            for fields in records:
                begin, line = line + 1, records.line_num
                if fields:
                    yield begin, [field.strip() for field in fields]
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}, after line {line}: the file cannot be read on ({error})") from error
    except UnicodeDecodeError as error:
        found = f"byte 0x{error.object[error.start]:02x}"
        raise DataError(f"{path}, line {records.line_num + 1}: not text (expected UTF-8, found {found})") from error
    except csv.Error as error:
        raise DataError(f"{path}, line {line + 1}: not CSV ({error})") from error


def _opened(path: str | Path) -> IO[bytes]:
    return gzip.open(path) if str(path).endswith(".gz") else Path(path).open("rb")


# --------------------------------------------------------------------------------------------------------- Parquet


def _is_parquet(path: str | Path) -> bool:
    return str(path).endswith(".parquet")


def _parquet(path: str | Path) -> Any:
    import pyarrow
    import pyarrow.parquet

    try:
        return pyarrow.parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{path}: not a whole Parquet file ({error})") from error


def _read_parquet(path: str | Path, kept: list[str], texts: Collection[str]) -> _Columns:
    """The columns `kept`; numbers of the columns `texts` as texts."""
    import pyarrow

    table = _parquet(path).read(columns=kept)
    columns: dict[str, list[str] | np.ndarray] = {}
    for name in kept:
        column = table.column(name)
        kind = column.type.value_type if pyarrow.types.is_dictionary(column.type) else column.type
        words = pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind) or pyarrow.types.is_boolean(kind)
        if not words and not pyarrow.types.is_integer(kind) and not pyarrow.types.is_floating(kind):
            raise DataError(f"{path}, column '{name}': unknown type (expected numbers, texts or true and false, found {kind})")
        if words or name in texts:
            # NaN is not equal to itself
            columns[name] = ["" if value is None or value != value else str(value).strip() for value in column.to_pylist()]
        else:
            columns[name] = column.cast(pyarrow.float64(), safe=False).to_numpy()
    return _Columns(columns, lambda row: f"row {row + 1}")
