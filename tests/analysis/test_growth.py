"""Slopes of parts of a curve and exponents of growth: exact on powers, and a regression with errors clustered by seed."""

import math

import numpy as np
import pytest

from ensemblepp.analysis.estimates import mean_of
from ensemblepp.analysis.growth import POINTS, START, exponents, slopes

TIME = np.array([1, 10, 25, 40, 100, 150, 200])


def test_slopes_between_stored_rounds_by_hand():
    """0 at the start, 10 at round 10, 40 at 40, 100 from 100 on."""
    curve = np.array([[1.0, 10, 25, 40, 100, 100, 100]])
    assert slopes(curve, TIME, 0, 0.25) == pytest.approx([1.0])
    assert slopes(curve, TIME, 0.75, 1) == pytest.approx([0.0])
    # round 70 lies half way between 40 and 100
    assert slopes(curve, TIME, 0.35, 0.5) == pytest.approx([1.0])


@pytest.mark.parametrize("power", [0.5, 0.9, 1.0, 1.3])
def test_exponents_of_powers_whatever_is_stored(power):
    time = np.unique(np.geomspace(1, 10_000, 400).astype(int))
    curves = np.array([3.0, 0.01])[:, None] * time**power
    np.testing.assert_allclose(exponents(curves, time), power, atol=2e-3)


def test_a_ratio_of_slopes_of_four_fifths_is_an_exponent_of_nine_tenths():
    """The two bounds of the claims, "sublinear" and "linear", are one."""
    time = np.arange(1, 10_001)
    curve = (time**0.9)[None]
    assert slopes(curve, time, 0.75, 1) / slopes(curve, time, 0, 0.25) == pytest.approx([0.8], abs=0.01)


def test_a_curve_that_is_not_above_zero_has_no_exponent():
    time = np.arange(1, 101)
    found = exponents(np.stack([np.maximum(0, time - 50.0), time]), time)
    assert math.isnan(found[0])
    assert found[1] == pytest.approx(1)


def test_mean_exponent_is_the_joint_fit_with_errors_clustered_by_seed():
    """Least squares with an intercept for each seed and one slope; its sandwich, one cluster a seed, with n / (n - 1)."""
    source, time, seeds = np.random.default_rng(1), np.arange(1, 1001), 7
    curves = np.cumsum(source.lognormal(0, 1, (seeds, 1000)) * time**-0.3, axis=1)
    rounds = np.geomspace(START * 1000, 1000, POINTS)
    y = np.log([np.interp(rounds, time, curve) for curve in curves]).ravel()
    design = np.column_stack([np.kron(np.eye(seeds), np.ones((POINTS, 1))), np.tile(np.log(rounds), seeds)])
    fitted = np.linalg.lstsq(design, y, rcond=None)[0]
    left = y - design @ fitted
    bread = np.linalg.inv(design.T @ design)
    scores = np.array([design[one].T @ left[one] for one in np.arange(seeds * POINTS).reshape(seeds, POINTS)])
    error = math.sqrt((bread @ scores.T @ scores @ bread)[-1, -1] * seeds / (seeds - 1))
    estimate = mean_of(exponents(curves, time))
    assert estimate.value == pytest.approx(fitted[-1])
    assert estimate.error == pytest.approx(error)
