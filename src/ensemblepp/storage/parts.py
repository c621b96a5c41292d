"""Datasets too large for the memory: read and written in parts, with the same seals as those of `storage.datasets`."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

import netCDF4
import numpy as np
import xarray as xr

from ensemblepp.errors import ResultError
from ensemblepp.storage.datasets import atomic_path
from ensemblepp.storage.seals import add_seal, check_seal

#: Rows that are compressed, and read back, together.
ROWS = 256


@contextlib.contextmanager
def open_dataset(path: str | Path, *, holds: tuple[str, ...] = ()) -> Iterator[xr.Dataset]:
    """A dataset that `storage.datasets.write_dataset` wrote; what is not asked for stays on the disk.

    Args:
        path: the netCDF file.
        holds: names of variables or attributes without which it is a file of another kind.

    Raises:
        ResultError: the file is missing, not as it was written or of another kind.
    """
    path, remedy = Path(path), "delete it and run snakemake again"
    if not path.exists():
        raise ResultError(f"{path}: no such file; run snakemake to make it")
    check_seal(path, remedy)
    try:
        stored = xr.open_dataset(path, engine="netcdf4", cache=False)
    except Exception as error:  # sealed, and yet no netCDF: the libraries raise anything then
        reason = " ".join(str(error).split())
        raise ResultError(f"{path}: cannot be read as netCDF ({type(error).__name__}: {reason}); {remedy}") from error
    with stored:
        for name in holds:
            if name not in stored.variables and name not in stored.attrs:
                raise ResultError(f"{path}: a file of another kind (there is no '{name}' in it); {remedy}")
        yield stored


def write_in_parts(
    dataset: xr.Dataset, name: str, dimensions: tuple[str, str], parts: Iterable[np.ndarray], path: str | Path
) -> None:
    """Write `dataset` and one variable more, which is never whole in memory, atomically, after reading it back.

    Args:
        dataset: everything else; it has the variable's first dimension.
        name: the variable.
        dimensions: names of its two dimensions.
        parts: (rows, width) float32, in order; together they have all rows.
        path: the netCDF file.

    Raises:
        ResultError: it cannot be written, or what was read back differs from what was to be written.
    """
    count = dataset.sizes[dimensions[0]]
    compressed = {"zlib": True, "complevel": 4, "shuffle": True, "fletcher32": True}
    intended, found, start = hashlib.sha256(), hashlib.sha256(), 0
    with atomic_path(path) as temporary:
        with _written(path):
            dataset.to_netcdf(
                temporary, engine="netcdf4", format="NETCDF4", encoding=dict.fromkeys(dataset.data_vars, compressed)
            )
        with netCDF4.Dataset(temporary, "a") as file:
            for part in parts:
                with _written(path):
                    if not start:
                        file.createDimension(dimensions[1], part.shape[1])
                        chunks = min(count, ROWS), part.shape[1]
                        # all rows are written: none needs to be filled before
                        variable = file.createVariable(
                            name, np.float32, dimensions, chunksizes=chunks, fill_value=False, **compressed
                        )
                    variable[start : start + len(part)] = part
                intended.update(np.ascontiguousarray(part))
                start += len(part)
        with netCDF4.Dataset(temporary) as file:
            for first in range(0, count, ROWS):
                found.update(np.ascontiguousarray(file[name][first : first + ROWS]))
        if start != count or found.digest() != intended.digest():
            raise ResultError(f"{path}: what was written could not be read back; is the disk full?")
        add_seal(temporary)


@contextlib.contextmanager
def _written(path: str | Path) -> Iterator[None]:
    """netCDF says no more of a full disk than "HDF error"."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        raise ResultError(f"{path}: cannot be written ({error}); is the disk full?") from error
