"""Files on disk: one atomic, verified way to write netCDF and JSON, and one way to read them back.

A file that exists under its final name is whole: it was written under a temporary name in the same folder, read
back, flushed to the disk and renamed. Equal datasets give equal bytes, so what changes from run to run (wall
seconds, dates, versions) never goes into netCDF but into a JSON file beside it.

A netCDF file ends with a line that holds the checksum of all bytes before it. HDF5 ignores what follows its own content, so
other programs read the file as it is; here the line is compared first, as a damaged file can crash the library that reads it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ensemblepp.errors import ResultError

#: The last line of a netCDF file.
SEAL = b"\nsha256 %s\n"
SEAL_LENGTH = len(SEAL % bytes(64))


@contextlib.contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path in the folder of `path`; on a clean exit flush it and rename it to `path`.

    If the body raises, the temporary file is removed and whatever stood at `path` stays as it was. The temporary name
    keeps the suffix of `path`, because some writers choose the format by it.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.stem}.", suffix=path.suffix, dir=path.parent)
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
        try:
            dataset.to_netcdf(temporary, engine="netcdf4", format="NETCDF4", encoding=encoding)
        except (OSError, RuntimeError) as error:  # netCDF says no more of a full disk than "HDF error"
            raise ResultError(f"{path}: cannot be written ({error}); is the disk full?") from error
        with xr.open_dataset(temporary, engine="netcdf4") as stored:
            if not stored.load().identical(dataset):
                raise ResultError(f"{path}: what was written could not be read back; is the disk full?")
        with temporary.open("r+b") as file:
            content = file.read()
            file.write(SEAL % hashlib.sha256(content).hexdigest().encode())


def read_dataset(path: str | Path, *, finite: tuple[str, ...] = ()) -> xr.Dataset:
    """Read a dataset that `write_dataset` wrote, into memory.

    Args:
        path: the netCDF file.
        finite: names of variables that must hold finite numbers only.

    Raises:
        ResultError: the file is missing, not as it was written, or a variable of `finite` holds NaN or infinity.
    """
    path = Path(path)
    remedy = "delete it and run snakemake again"
    if not path.exists():
        raise ResultError(f"{path}: no such file; run snakemake to make it")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ResultError(f"{path}: cannot be read ({error}); {remedy}") from error
    seal, content = content[-SEAL_LENGTH:], memoryview(content)[:-SEAL_LENGTH]
    if not seal.startswith(SEAL.split(b"%")[0]):
        raise ResultError(f"{path}: unfinished, or not written by this project (it does not end with its checksum); {remedy}")
    if seal != SEAL % hashlib.sha256(content).hexdigest().encode():
        raise ResultError(f"{path}: damaged (its content differs from its checksum); {remedy}")
    with xr.open_dataset(path, engine="netcdf4") as stored:
        dataset = stored.load()
    for name in finite:
        if name not in dataset or not dataset[name].size:
            raise ResultError(f"{path}: variable '{name}' is missing or empty; {remedy}")
        if not np.isfinite(dataset[name].values).all():
            raise ResultError(f"{path}: variable '{name}' holds values that are not finite; {remedy}")
    return dataset


def write_json(value: Any, path: str | Path) -> None:
    """Write `value` as indented JSON with sorted keys, atomically."""
    with atomic_path(path) as temporary:
        temporary.write_text(json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
