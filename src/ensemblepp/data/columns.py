"""Columns of a file of the user's: CSV, Parquet or JSON lines, checked as far as its format goes, each column a list of texts.

Every fault is a `DataError` of one line that names the file, the line (or the row of a Parquet file), the column, what was
expected and what was found. None quotes more of the file than the names of its columns.
"""

from __future__ import annotations

import csv
import functools
import gzip
import json
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, NoReturn

import numpy as np

from ensemblepp.errors import DataError

#: The formats that are read, by the end of a file's name.
SUFFIXES = (".csv", ".csv.gz", ".parquet", ".jsonl", ".jsonl.gz")

#: Column names that a message lists.
_LISTED = 12


class Columns(NamedTuple):
    """What a file holds: texts, "" where there is no value; or float64, NaN there."""

    columns: dict[str, list[str] | np.ndarray]
    place: Callable[[int], str]  #: row from 0 -> what a message calls it


def header(path: str | Path, columns: Collection[str] = ()) -> list[str]:
    """The names of a file's columns; all of `columns` are among them.

    A first column without a name, which pandas makes of its index, is passed over: its name is "".

    Raises:
        DataError: the file is missing, empty or unreadable, two columns have one name, or a column is missing.
    """
    if not Path(path).is_file():
        raise DataError(f"{path}: no such file")
    if _is_parquet(path):
        names, first = list(_parquet(path).schema_arrow.names), "columns"
    elif _is_json_lines(path):
        line, found = next(_objects(path), (1, {}))
        names, first = list(found), f"line {line}"
    else:
        names, first = next(_records(path), (1, []))[1], "line 1"
    if not names:
        raise DataError(f"{path}, line 1: the file is empty (expected a line of column names, found none)")
    for place, name in enumerate(names, start=1):
        if not name and place > 1:
            raise DataError(f"{path}, {first}: column {place} has no name (expected a name for every column)")
        if name in names[: place - 1]:
            raise DataError(
                f"{path}, {first}: two columns have one name (expected different names, "
                f"found '{name}' at places {names.index(name) + 1} and {place})"
            )
    for name in columns:
        if name not in names:
            others = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
            raise DataError(f"{path}, {first}: no column '{name}' (found {', '.join(filter(None, names[:_LISTED]))}{others})")
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
        rows = sum(not line.isspace() for line in file)
    return rows if _is_json_lines(path) else max(0, rows - 1)


def read(path: str | Path, kept: Sequence[str], texts: Collection[str]) -> Columns:
    """The columns `kept`; those of `texts` as texts, whatever their values.

    Raises:
        DataError: see the module.
    """
    names = header(path, kept)
    if _is_parquet(path):
        return _read_parquet(path, kept, texts)
    return _read_json_lines(path, kept) if _is_json_lines(path) else _read_csv(path, names, kept)


def fail(path: str | Path, place: str, column: str, reason: str, expected: str, found: str) -> NoReturn:
    raise DataError(f"{path}, {place}, column '{column}': {reason} (expected {expected}, found {found})")


# ------------------------------------------------------------------------------------------------------------- CSV


def _read_csv(path: str | Path, names: list[str], kept: Sequence[str]) -> Columns:
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
    return Columns(dict(zip(kept, columns, strict=True)), lambda row: f"line {lines[row]}")


def _records(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """(line that it begins in, fields without blanks around them) of every line that is not empty."""
    line = 0
    try:
        records = csv.reader(_lines(path), skipinitialspace=True, strict=True)
        for fields in records:
            begin, line = line + 1, records.line_num
            if fields:
                yield begin, [field.strip() for field in fields]
    except csv.Error as error:
        raise DataError(f"{path}, line {line + 1}: not CSV ({error})") from error


# ------------------------------------------------------------------------------------------------------- JSON lines


def _is_json_lines(path: str | Path) -> bool:
    return str(path).endswith((".jsonl", ".jsonl.gz"))


def _read_json_lines(path: str | Path, kept: Sequence[str]) -> Columns:
    columns: list[list[str]] = [[] for _ in kept]
    lines: list[int] = []
    for line, entries in _objects(path):
        lines.append(line)
        for name, column in zip(kept, columns, strict=True):
            value = entries.get(name)
            if isinstance(value, list | dict):
                found = "a list" if isinstance(value, list) else "an object"
                fail(path, f"line {line}", name, "not a value", "a text, a number, true, false or null", found)
            column.append("" if value is None else value.strip() if isinstance(value, str) else json.dumps(value))
    return Columns(dict(zip(kept, columns, strict=True)), lambda row: f"line {lines[row]}")


def _objects(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """(its number, the object) of every line that is not empty."""
    for number, text in enumerate(_lines(path), start=1):
        if text.isspace():
            continue
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            # a decoder's own words would quote the line
            reason = getattr(error, "msg", "nested too deeply")
            raise DataError(f"{path}, line {number}: not JSON ({reason})") from error
        if not isinstance(found, dict):
            raise DataError(f"{path}, line {number}: not an object (expected names and values in braces)")
        yield number, found


# ------------------------------------------------------------------------------------------------------ lines of both


def _lines(path: str | Path) -> Iterator[str]:
    """The lines of a file in UTF-8, packed or not."""
    number = 0
    try:
        with _opened(path) as file:
            for number, text in enumerate(file, start=1):
                yield text.decode("utf-8-sig" if number == 1 else "utf-8")
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}, after line {number}: the file cannot be read on ({error})") from error
    except UnicodeDecodeError as error:
        found = f"byte 0x{error.object[error.start]:02x}"
        raise DataError(f"{path}, line {number}: not text (expected UTF-8, found {found})") from error


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


def _read_parquet(path: str | Path, kept: Sequence[str], texts: Collection[str]) -> Columns:
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
    return Columns(columns, lambda row: f"row {row + 1}")
