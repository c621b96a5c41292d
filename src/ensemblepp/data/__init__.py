"""The data sets: where their raw files come from, how a raw file is checked, and the prepared file it becomes.

Every data set is one module with the same surface: `RAW`, the raw files that `sources.retrieve` brings, and
`prepare(raw, output)`, which turns them, in the order of `RAW`, into one netCDF file or raises `DataError`. Data sets of
the user's are tables that the configuration declares; `table` reads them all.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from ensemblepp.registry import DATASETS


def load(name: str) -> ModuleType:
    """Import the module of the data set `name`, a key of `DATASETS`.

    Raises:
        KeyError: there is no such data set.
    """
    return importlib.import_module(DATASETS[name])
