"""Standard normal numbers in compiled code against numpy's own."""

from __future__ import annotations

import numpy as np

from ensemblepp.randomness.ziggurat import fill_normals


def test_numbers_are_numpy_s_to_the_last_bit():
    """Two million in pieces of odd and even lengths, some a hundred of them of the tail; then the generators go on alike."""
    own, theirs = (np.random.Generator(np.random.SFC64(7)) for _ in range(2))
    own.random(1, dtype=np.float32), theirs.random(1, dtype=np.float32)  # half a number is left
    tails = 0
    for count in (0, 1, 2, 3, 1000, 999_999, 1_000_002):
        found = np.empty(count, dtype=np.float32)
        fill_normals(own, found)
        expected = theirs.standard_normal(count, dtype=np.float32)
        assert np.array_equal(found.view(np.uint32), expected.view(np.uint32))
        tails += (np.abs(found) > 3.6541528853610088).sum()
        for draw in (lambda one: one.random(3), lambda one: one.random(1, dtype=np.float32), lambda one: one.integers(1000)):
            assert np.array_equal(draw(own), draw(theirs))
    assert tails > 400


def test_shapes_are_filled_in_order():
    own, theirs = (np.random.Generator(np.random.SFC64(0)) for _ in range(2))
    found = np.empty((3, 4, 5), dtype=np.float32)
    fill_normals(own, found)
    assert np.array_equal(found, theirs.standard_normal((3, 4, 5), dtype=np.float32))
