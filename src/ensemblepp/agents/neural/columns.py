"""Products with features of which most are 0, by the columns in which they are not, for compiled rounds on a CPU."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensemblepp.compilation.arithmetic import inner

#: A first layer takes items by their columns where at most one in so many features is not 0.
SPARSE = 4


class Items(NamedTuple):
    """Items by number: item i is row i // blocks of the table, in block i % blocks of the features."""

    table: np.ndarray  #: (rows, width) float32
    columns: np.ndarray  #: (rows, K) int32: where a row is not 0, then -1; K = 0: rows are multiplied whole
    blocks: int


def filled(table: np.ndarray, few: int) -> np.ndarray:
    """Where the rows of (tables, rows, width) are not 0, (tables, rows, K) int32 with -1 after the last.

    K is 0, and so is the number of rows, where a row has more than `few` such places.
    """
    there = table != 0
    most = int(there.sum(axis=-1).max(initial=0))
    if most > few:
        return np.empty((len(table), 0, 0), dtype=np.int32)
    # those that are filled first, in order
    places = np.argsort(~there, axis=-1, kind="stable")[..., :most].astype(np.int32)
    return np.where(np.take_along_axis(there, places, axis=-1), places, np.int32(-1))


@inner
def product(items, picked, weight, squared, outputs):
    """outputs = features @ weight of the items `picked`, (rows, columns); with the squares of the features if `squared`."""
    width, most = items.table.shape[1], items.columns.shape[1]
    for i in range(len(outputs)):
        first, of = picked[i] % items.blocks * width, picked[i] // items.blocks
        for j in range(weight.shape[1]):
            outputs[i, j] = np.float32(0)
        for k in range(most):
            column = items.columns[of, k]
            if column < 0:
                break
            value = items.table[of, column]
            if squared:
                value *= value
            for j in range(weight.shape[1]):
                outputs[i, j] += value * weight[first + column, j]


@inner
def product_back(items, picked, above, into):
    """into = features.T @ above, with the features of the items `picked`."""
    width, most = items.table.shape[1], items.columns.shape[1]
    for r in range(into.shape[0]):
        for j in range(into.shape[1]):
            into[r, j] = np.float32(0)
    for i in range(len(above)):
        first, of = picked[i] % items.blocks * width, picked[i] // items.blocks
        for k in range(most):
            column = items.columns[of, k]
            if column < 0:
                break
            value = items.table[of, column]
            for j in range(into.shape[1]):
                into[first + column, j] += value * above[i, j]
