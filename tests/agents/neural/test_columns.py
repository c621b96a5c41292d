"""Products by the columns in which features are not 0, against whole ones."""

from __future__ import annotations

import numpy as np
import pytest

from ensemblepp.agents.neural import columns
from ensemblepp.compilation.arithmetic import inner


@inner
def products(items, picked, weight, squared, outputs, above, into):
    columns.product(items, picked, weight, squared, outputs)
    columns.product_back(items, picked, above, into)


def test_columns_of_a_table():
    table = np.array([[[0, 2, 0, -1, 0], [0, 0, 0, 0, 0]], [[0, 0, 0, 0, np.nan], [0, 0, 0, 0, 7]]], dtype=np.float32)
    assert columns.filled(table, 2).tolist() == [[[1, 3], [-1, -1]], [[4, -1], [4, -1]]]
    assert columns.filled(table, 1).shape == (2, 0, 0)


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("blocks", [1, 3])
def test_products_equal_whole_ones(blocks, squared):
    """30 items drawn of 20 rows, with 0 to 4 of 11 numbers each, in `blocks` blocks; items may be drawn twice."""
    source = np.random.default_rng(0)
    table = source.standard_normal((20, 11)).astype(np.float32)
    for count, row in zip(source.integers(0, 5, 20), table, strict=True):
        row[source.permutation(11)[count:]] = 0
    items = columns.Items(table, columns.filled(table[None], 4)[0], blocks)
    picked = source.integers(0, 20 * blocks, 30)
    whole = np.zeros((30, 11 * blocks))
    for row, item in zip(whole, picked, strict=True):
        row.reshape(blocks, 11)[item % blocks] = table[item // blocks]
    weight, above = (source.standard_normal((rows, 6)).astype(np.float32) for rows in (11 * blocks, 30))
    outputs, into = (np.full((rows, 6), np.nan, dtype=np.float32) for rows in (30, 11 * blocks))
    products(items, picked, weight, squared, outputs, above, into)
    np.testing.assert_allclose(outputs, (whole**2 if squared else whole) @ weight, rtol=0, atol=1e-5)
    np.testing.assert_allclose(into, whole.T @ above, rtol=0, atol=1e-5)
