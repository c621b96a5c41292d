"""Mean and 95 % t interval over seeds."""

import math

import numpy as np
import pytest
from scipy import stats

from ensemblepp.statistics import mean_interval


def test_three_values_by_hand():
    """1, 2, 3: mean 2, standard deviation 1; with 2 degrees of freedom t = 0.95 / sqrt(2 * 0.975 * 0.025) = 4.3027."""
    mean, lower, upper = mean_interval(np.array([1.0, 2.0, 3.0]))
    assert mean == 2
    assert upper - mean == pytest.approx(0.95 / math.sqrt(0.04875) / math.sqrt(3), rel=1e-12)
    assert mean - lower == pytest.approx(upper - mean)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_interval_is_that_of_scipy(axis):
    values = np.random.default_rng(0).normal(3, 2, (4, 7, 9))
    expected = stats.t.interval(0.95, values.shape[axis] - 1, loc=values.mean(axis=axis), scale=stats.sem(values, axis=axis))
    mean, lower, upper = mean_interval(values, axis)
    np.testing.assert_allclose(mean, values.mean(axis=axis), rtol=1e-13)
    np.testing.assert_allclose(lower, expected[0], rtol=1e-12)
    np.testing.assert_allclose(upper, expected[1], rtol=1e-12)


def test_last_axis_is_the_default():
    values = np.arange(6.0).reshape(2, 3)
    assert mean_interval(values)[0].tolist() == [1, 4]


def test_missing_runs_do_not_count():
    """Every row with NaN gives what its present values give alone; fewer than two values leave no bounds."""
    nan = math.nan
    table = np.array([[1.0, nan, 3.0, 8.0], [nan, 5.0, nan, nan], [nan, nan, nan, nan], [2.0, 2.0, 2.0, nan]])
    mean, lower, upper = mean_interval(table)
    alone = mean_interval(np.array([1.0, 3.0, 8.0]))
    assert (mean[0], lower[0], upper[0]) == pytest.approx(alone, rel=1e-14)
    assert mean[1] == 5
    assert np.isnan([lower[1], upper[1], mean[2], lower[2], upper[2]]).all()
    assert (mean[3], lower[3], upper[3]) == (2, 2, 2)


def test_one_seed_has_a_mean_and_no_interval():
    mean, lower, upper = mean_interval(np.array([[4.0]]))
    assert mean.tolist() == [4]
    assert np.isnan([lower, upper]).all()


def test_infinity_is_a_value():
    """A run that diverged is not a run that is missing: it must show in the mean."""
    mean, lower, upper = mean_interval(np.array([1.0, math.inf, 2.0]))
    assert mean == math.inf
    assert np.isnan([lower, upper]).all()


def test_whole_numbers_are_averaged_as_numbers():
    assert mean_interval(np.array([1, 2]))[0] == 1.5


@pytest.mark.parametrize("seeds", [2, 5, 20])
def test_coverage_is_95_percent(seeds):
    """20,000 normal samples: the share of intervals that hold the true mean is 0.95 within 4 standard errors (0.6 %)."""
    replicates = 20_000
    values = np.random.default_rng(seeds).normal(7, 3, (replicates, seeds))
    _, lower, upper = mean_interval(values)
    covered = np.mean((lower <= 7) & (upper >= 7))
    assert abs(covered - 0.95) < 4 * math.sqrt(0.95 * 0.05 / replicates)
