"""Files on disk: one atomic, verified way to write netCDF and JSON, and one way to read them back.

A file that exists under its final name is whole: it was written under a temporary name in the same folder, read
back, flushed to the disk and renamed. Equal datasets give equal bytes, so what changes from run to run (wall
seconds, dates, versions) never goes into netCDF but into a JSON file beside it.

A netCDF file ends with a line that holds the checksum of all bytes before it. HDF5 ignores what follows its own content, so
other programs read the file as it is; here the line is compared first (`storage.seals`), as a damaged file can crash or hang
the library that reads it. A JSON object holds the checksum of all else in it, under "sha256".
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ensemblepp.errors import ResultError
from ensemblepp.storage import leftovers
from ensemblepp.storage.seals import add_seal, check_seal

#: What to do about a file that is not as it was written.
_REMEDY = "delete it and run snakemake again"


@contextlib.contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path in the folder of `path`; on a clean exit flush it and rename it to `path`.

    If the body raises, the temporary file is removed and whatever stood at `path` stays as it was. The temporary name
    keeps the suffix of `path`, because some writers choose the format by it. What a killed process left in the folder is
    removed first.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    leftovers.clear(path.parent)
    handle, name = tempfile.mkstemp(prefix=leftovers.prefix(path.stem), suffix=path.suffix, dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_dataset(dataset: xr.Dataset, path: str | Path) -> None:
    """Write `dataset` to `path` as compressed netCDF4, atomically, after reading the written file back.

    Attributes must be strings or numbers (netCDF has no booleans or mappings: store those as JSON text).

    Raises:
        ResultError: it cannot be written, or what was read back differs from what was to be written.
    """
    numeric = [name for name, variable in dataset.data_vars.items() if variable.dtype.kind in "iufb"]
    encoding = {
        name: {"zlib": True, "complevel": 4, "shuffle": True, "fletcher32": True} for name in numeric if dataset[name].ndim
    }
    with atomic_path(path) as temporary:
        with being_written(path):
            dataset.to_netcdf(temporary, engine="netcdf4", format="NETCDF4", encoding=encoding)
        with xr.open_dataset(temporary, engine="netcdf4") as stored:
            if not stored.load().identical(dataset):
                raise ResultError(f"{path}: what was written could not be read back; is the disk full?")
        add_seal(temporary)


@contextlib.contextmanager
def being_written(path: str | Path) -> Iterator[None]:
    """A failure to write `path` in words: netCDF says no more of a full disk than "HDF error"."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        raise ResultError(f"{path}: cannot be written ({error}); is the disk full?") from error


@contextlib.contextmanager
def open_dataset(path: str | Path, *, holds: tuple[str, ...] = ()) -> Iterator[xr.Dataset]:
    """A dataset that `write_dataset` wrote; what is not asked for stays on the disk.

    Args:
        path: the netCDF file.
        holds: names of variables or attributes without which it is a file of another kind.

    Raises:
        ResultError: the file is missing, not as it was written or of another kind.
    """
    path = Path(path)
    if not path.exists():
        raise ResultError(f"{path}: no such file; run snakemake to make it")
    check_seal(path, _REMEDY)
    try:
        stored = xr.open_dataset(path, engine="netcdf4", cache=False)
    except Exception as error:
        raise _no_netcdf(path, error) from error
    with stored:
        for name in holds:
            if name not in stored.variables and name not in stored.attrs:
                raise ResultError(f"{path}: a file of another kind (there is no '{name}' in it); {_REMEDY}")
        yield stored


def read_dataset(path: str | Path, *, finite: tuple[str, ...] = (), holds: tuple[str, ...] = ()) -> xr.Dataset:
    """Read a dataset that `write_dataset` wrote, into memory.

    Args:
        path: the netCDF file.
        finite: names of variables that must hold finite numbers only.
        holds: names of variables or attributes without which it is a file of another kind.

    Raises:
        ResultError: the file is missing, not as it was written or of another kind, or a variable of `finite` holds NaN or
            infinity.
    """
    path = Path(path)
    with open_dataset(path, holds=holds) as stored:
        try:
            dataset = stored.load()
        except Exception as error:
            raise _no_netcdf(path, error) from error
    for name in finite:
        if name not in dataset or not dataset[name].size:
            raise ResultError(f"{path}: variable '{name}' is missing or empty; {_REMEDY}")
        if dataset[name].dtype.kind not in "iufb" or not np.isfinite(dataset[name].values).all():
            raise ResultError(f"{path}: variable '{name}' holds values that are not finite; {_REMEDY}")
    return dataset


def _no_netcdf(path: Path, error: Exception) -> ResultError:
    """What is wrong with a file that is sealed and yet cannot be read: the libraries raise anything then."""
    return ResultError(f"{path}: cannot be read as netCDF ({type(error).__name__}: {_line(error)}); {_REMEDY}")


def write_json(value: Mapping[str, Any], path: str | Path) -> None:
    """Write `value` and its checksum, under "sha256", as indented JSON with sorted keys, atomically."""
    with atomic_path(path) as temporary:
        text = json.dumps({**value, "sha256": _digest(value)}, indent=2, sort_keys=True, ensure_ascii=False)
        temporary.write_text(text + "\n", encoding="utf-8")


def read_json(path: str | Path, remedy: str = _REMEDY) -> dict[str, Any]:
    """Read what `write_json` wrote.

    Args:
        path: the file.
        remedy: what to do about a file that is not as it was written, for the message.

    Raises:
        ResultError: the file is missing, or not as it was written.
    """
    try:
        value = json.loads(Path(path).read_bytes())
    except FileNotFoundError as error:
        raise ResultError(f"{path}: no such file; run snakemake to make it") from error
    except OSError as error:
        raise ResultError(f"{path}: cannot be read ({error}); {remedy}") from error
    except (ValueError, RecursionError) as error:
        raise ResultError(f"{path}: damaged (not JSON: {_line(error)}); {remedy}") from error
    if not isinstance(value, dict) or "sha256" not in value:
        raise ResultError(f"{path}: unfinished, or not written by this project (it holds no checksum); {remedy}")
    if value.pop("sha256") != _digest(value):
        raise ResultError(f"{path}: damaged (its content differs from its checksum); {remedy}")
    return value


def _digest(value: Mapping[str, Any]) -> str:
    # as it is read back: keys are texts then
    plain = json.loads(json.dumps(value))
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _line(error: Exception) -> str:
    """What an error says, on one line."""
    return " ".join(str(error).split())


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
