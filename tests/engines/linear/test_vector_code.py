"""The vector code against exact fractions: a fused multiply-add is a b + c, rounded once."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from numba import njit

from ensemblepp.compilation.keys import processor_features
from ensemblepp.engines.linear import vector_code
from ensemblepp.engines.linear.vector_code import REGISTER_BYTES, one_pass, tile

TYPES = [np.float32, np.float64]


def fused(left, right, add):
    """a b + c of the numbers' own type, rounded once, half to even; exact arithmetic in between."""
    exact = Fraction(float(left)) * Fraction(float(right)) + Fraction(float(add))
    if left.dtype == np.float64:
        return np.float64(float(exact))
    # a float32 near it, and its neighbours: rounding to float64 first would round twice
    near = np.float32(float(exact))
    beside = (np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf)))
    return min(beside, key=lambda value: (abs(Fraction(float(value)) - exact), int(value.view(np.uint32)) & 1))


def test_the_oracle_rounds_once():
    """(1 + 2^-23)(1 - 2^-23) - 1 = -2^-46; and 1 + 2^-24 + 2^-60 is above the middle, which float64 does not see."""
    unit = np.float32(2.0**-23)
    assert fused(np.float32(1) + unit, np.float32(1) - unit, np.float32(-1)) == -(2.0**-46)
    product = np.float32(2.0**-24) * np.float32(1 + 2.0**-23)
    assert fused(np.float32(1 + 2.0**-23), np.float32(2.0**-24), np.float32(1)) == np.float32(1) + unit
    assert product > 2.0**-24
    assert fused(np.float64(1 + 2.0**-52), np.float64(1 - 2.0**-52), np.float64(-1)) == -(2.0**-104)


def scored(arms, first, groups, dimension, theta, best, where, panels):
    """What `tile` computes, lane by lane."""
    chains, lanes = best.shape
    for group in range(groups):
        for chain in range(chains):
            for j in range(panels):
                panel = first + group * panels + j
                for lane in range(lanes):
                    total = arms.dtype.type(0)
                    for k in range(dimension):
                        total = fused(arms[(panel * dimension + k) * lanes + lane], theta[k, chain], total)
                    if total > best[chain, lane]:
                        best[chain, lane], where[chain, lane] = total, panel


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("chains", "panels"), [(5, 2), (5, 1), (1, 4), (1, 1), (2, 3)])
def test_a_tile_is_its_oracle_to_the_last_bit(chains, panels, dtype):
    """Two groups after one panel that is left out, 3 features; a second call goes on from the first's best."""
    emitted, lanes = tile(chains, panels), REGISTER_BYTES // np.dtype(dtype).itemsize
    run = njit(lambda arms, first, groups, dimension, theta, best, where: emitted(
        arms, first, groups, dimension, theta, best, where
    ))  # fmt: skip
    source, groups, dimension = np.random.default_rng(chains * 10 + panels), 2, 3
    best, where = np.full((chains, lanes), -np.inf, dtype), np.zeros((chains, lanes), np.int32)
    expected, place = best.copy(), where.copy()
    for _ in range(2):
        arms = source.standard_normal((1 + groups * panels) * dimension * lanes).astype(dtype)
        theta = source.standard_normal((dimension, chains)).astype(dtype)
        run(arms, 1, groups, dimension, theta, best, where)
        scored(arms, 1, groups, dimension, theta, expected, place, panels)
        assert np.array_equal(best, expected)
        assert np.array_equal(where, place)
    assert where.min() >= 1


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("update", "product"), [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("vectors", [1, 2])
def test_a_pass_is_its_oracle_to_the_last_bit(vectors, update, product, dtype):
    """Three rows, the second register's worth of columns on; what lies before and after is left as it is."""
    emitted, lanes = one_pass(vectors, update, product), REGISTER_BYTES // np.dtype(dtype).itemsize
    run = njit(lambda rows, first, steps, along, factors, out: emitted(
        rows, rows.shape[0], rows.shape[1], first, steps, along, factors, out
    ))  # fmt: skip
    source, length = np.random.default_rng(vectors), (vectors + 2) * lanes
    rows, along, out = (source.standard_normal(shape).astype(dtype) for shape in ((3, length), length, length))
    steps, factors = source.standard_normal(3).astype(dtype), source.standard_normal(3).astype(dtype)
    expected, total = rows.copy(), out.copy()
    for column in range(lanes, (1 + vectors) * lanes):
        added = dtype(0)
        for m in range(3):
            if update:
                expected[m, column] = fused(steps[m], along[column], rows[m, column])
            added = fused(factors[m], expected[m, column], added)
        if product:
            total[column] = added
    run(rows, lanes, steps, along, factors, out)
    assert np.array_equal(rows, expected)
    assert np.array_equal(out, total)


@pytest.mark.parametrize(
    ("features", "expected"), [("+avx,+avx2,+fma", "32 16"), ("+avx2,+avx512f,-fma", "64 32"), ("", "32 16")]
)
def test_registers_are_those_of_the_processor_that_numba_compiles_for(features, expected):
    command = "from ensemblepp.engines.linear import vector_code as code; print(code.REGISTER_BYTES, code.REGISTERS)"
    own = os.environ | {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": features}
    done = subprocess.run([sys.executable, "-c", command], env=own, capture_output=True, text=True, check=True)
    assert done.stdout.split() == expected.split()


def test_registers_are_this_processor_s_otherwise():
    assert (64 if "avx512f" in processor_features() else 32) == vector_code.REGISTER_BYTES
