"""Datasets too large for the memory, written in parts; they are read by `storage.datasets.open_dataset`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

import netCDF4
import numpy as np
import xarray as xr

from ensemblepp.errors import ResultError
from ensemblepp.storage.datasets import atomic_path, being_written
from ensemblepp.storage.seals import add_seal

#: Rows that are compressed, and read back, together.
ROWS = 256


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
        with being_written(path):
            dataset.to_netcdf(
                temporary, engine="netcdf4", format="NETCDF4", encoding=dict.fromkeys(dataset.data_vars, compressed)
            )
        with netCDF4.Dataset(temporary, "a") as file:
            for part in parts:
                with being_written(path):
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
