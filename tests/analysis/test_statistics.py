"""Means with 95 % t intervals, bootstrap over seeds, the excess over Thompson sampling, and minimum ensemble sizes."""

import itertools
import math

import numpy as np
import pytest
import xarray as xr
from scipy import stats

from ensemblepp.analysis.statistics import (
    excess_over_yardstick,
    first_within,
    growth_exponents,
    mean_interval,
    minimum_size,
    percentile_interval,
    resampled_means,
    stays_below,
    summary,
)
from ensemblepp.errors import ResultError


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


# -------------------------------------------------------------------------------------------------------- summary


def test_summary_is_mean_interval_and_median_of_what_is_there():
    values = np.array([5.0, math.nan, 1.0, 3.0, 11.0])
    assert summary(values) == pytest.approx((5, *map(float, mean_interval(np.array([5.0, 1, 3, 11]))[1:]), 4))
    assert summary(np.array([2.0]))[::3] == (2, 2)
    assert np.isnan(summary(np.array([2.0]))[1:3]).all()
    assert np.isnan(summary(np.array([math.nan, math.nan]))).all()


# --------------------------------------------------------------------------------------------------------- excess


def runs(**agents: dict[tuple[str, str, int], list[float]]) -> xr.Dataset:
    """Two environments, the second with ten times the regret of the first; by agent and (reference, perturbation, M)."""
    keys = [key for of_agent in agents.values() for key in of_agent]
    coordinates = {
        "environment": ["near", "far"],
        "agent": list(agents),
        **{
            name: sorted({key[place] for key in keys})
            for place, name in enumerate(("reference", "perturbation", "ensemble_size"))
        },
        "seed": range(len(next(iter(agents["ours"].values())))),
        "time": [1, 2],
    }
    regret = xr.DataArray(np.full([len(values) for values in coordinates.values()], np.nan, np.float32), coordinates)
    for agent, (reference, perturbation, size) in ((agent, key) for agent, of_agent in agents.items() for key in of_agent):
        values = np.array(agents[agent][reference, perturbation, size])
        place = {"agent": agent, "reference": reference, "perturbation": perturbation, "ensemble_size": size}
        regret.loc[place] = np.multiply.outer(np.multiply.outer([1, 10], values), [0.25, 1])
    return xr.Dataset({"regret": regret})


def test_excess_is_paired_by_seed_and_environment_and_takes_the_papers_pair():
    dataset = runs(
        ts={("none", "none", 0): [100.0, 200.0, 300.0]},
        ours={
            ("gaussian", "sphere", 2): [101.0, 202.0, 303.0],
            ("gaussian", "sphere", 4): [99.0, math.nan, 300.0],
            ("cube", "cube", 2): [0.0, 0.0, 0.0],
        },
    )
    excess = excess_over_yardstick(dataset, "ours")
    assert excess.dims == ("environment", "ensemble_size", "seed")
    assert excess.dtype == float
    np.testing.assert_array_equal(excess.sel(ensemble_size=2), [[1, 2, 3], [10, 20, 30]])
    np.testing.assert_array_equal(excess.sel(ensemble_size=4), [[-1, math.nan, 0], [-10, math.nan, 0]])
    assert excess.sel(ensemble_size=0).isnull().all()


def test_excess_needs_thompson_sampling():
    with pytest.raises(ResultError, match=r"add agent 'ts' to the study in config/studies\.yaml"):
        excess_over_yardstick(runs(ours={("none", "none", 2): [1.0]}), "ours")


# ------------------------------------------------------------------------------------------------------ bootstrap


def test_resampled_means_are_those_of_a_loop_over_resampled_rows():
    """A seed counts as often as it is drawn, for all columns alike."""
    values = np.random.default_rng(4).normal(size=(5, 2, 3))
    counts = np.random.default_rng(0).multinomial(5, [0.2] * 5, size=50)
    expected = [np.repeat(values, count, axis=0).mean(axis=0) for count in counts]
    found = resampled_means(values, replicates=50)
    assert found.shape == (50, 2, 3)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert len(np.unique(found[:, 0, 0].round(12))) > 30


def test_resampling_is_drawing_with_replacement():
    """Of three seeds, each of the 27 equally likely draws gives its mean with its share, within 4 standard errors."""
    values = np.array([1.0, 10.0, 100.0])
    means, shares = np.unique([round(sum(draw) / 3, 9) for draw in itertools.product(values, repeat=3)], return_counts=True)
    found, counts = np.unique(resampled_means(values).round(9), return_counts=True)
    np.testing.assert_array_equal(found, means)
    expected = shares / 27
    assert (np.abs(counts / 10_000 - expected) < 4 * np.sqrt(expected * (1 - expected) / 10_000)).all()


def test_equal_numbers_of_seeds_give_the_same_resamples():
    """Calls are paired: what is the same by seed is the same by resample, and a sum of two agents is the sum of theirs."""
    first, second = np.random.default_rng(6).normal(size=(2, 8))
    np.testing.assert_array_equal(resampled_means(first), resampled_means(first))
    np.testing.assert_allclose(resampled_means(first) + resampled_means(second), resampled_means(first + second), rtol=1e-9)


def test_bootstrap_of_many_normal_values_agrees_with_the_t_interval():
    values = np.random.default_rng(7).normal(3, 2, 400)
    lower, upper = percentile_interval(resampled_means(values))
    _, *expected = mean_interval(values)
    np.testing.assert_allclose([lower, upper], expected, atol=0.05 * (expected[1] - expected[0]))


def test_percentiles_are_samples():
    """Of 0, ..., 1000 the 26th from either end; of two values the interval holds both, never one between."""
    assert percentile_interval(np.arange(1001)[::-1]) == (25, 975)
    assert percentile_interval(np.array([[8], [16]] * 50)) == ([8], [16])


# --------------------------------------------------------------------------------------------- minimum ensemble size


@pytest.mark.parametrize(
    ("excess", "within", "below"),
    [
        ((0.5, 0.02, 0.01), 1, 1),
        ((0.01, 0.5, 0.01), 0, 2),
        ((0.5, -0.03, -0.01), 2, 1),
        ((-0.5, -0.03, -0.021), 3, 0),
        ((0.01, 0.01, 0.0201), 0, 3),
        ((math.nan, 0.01, 0.01), 1, 1),
    ],
)
def test_rules(excess, within, below):
    assert first_within(np.array(excess)) == within
    assert stays_below(np.array(excess)) == below


def test_rules_take_tables():
    excess = np.array([[[0.5, 0.0], [0.0, 0.5]], [[0.5, 0.5], [-1.0, -1.0]]])
    assert first_within(excess).tolist() == [[1, 0], [2, 2]]
    assert stays_below(excess).tolist() == [[1, 2], [2, 0]]
    assert first_within(excess, tolerance=0.5).tolist() == [[0, 0], [0, 2]]


@pytest.mark.parametrize("rule", ["two-sided", "one-sided"])
def test_minimum_size_and_its_interval_are_those_of_a_loop(rule):
    source = np.random.default_rng(8)
    excess = np.array([[0.2, 0.06, 0.02, 0.0], [0.06, 0.03, 0.01, 0.01]]) + source.normal(0, 0.1, (9, 2, 4))
    size, lowest, highest = minimum_size(excess, rule)
    for environment in range(2):

        def decide(rows, values=excess[:, environment]):
            means = [sum(values[row, place] for row in rows) / len(rows) for place in range(4)]
            for place in range(4):
                if rule == "two-sided" and abs(means[place]) <= 0.02:
                    return place
                if rule == "one-sided" and max(means[place:]) <= 0.02:
                    return place
            return 4

        counts = np.random.default_rng(0).multinomial(9, [1 / 9] * 9, size=10_000)
        sizes = sorted(decide(np.repeat(range(9), count)) for count in counts)
        assert (size[environment], lowest[environment], highest[environment]) == (decide(range(9)), sizes[249], sizes[9749])
        assert lowest[environment] < highest[environment]


def test_growth_exponents_of_powers():
    """M = 3 d^0.5 |X|^-0.25, and the same with every M doubled."""
    factors = np.array([(d, actions) for d in (10, 20, 50) for actions in (100, 1000)])
    sizes = 3 * factors[:, 0] ** 0.5 * factors[:, 1] ** -0.25
    np.testing.assert_allclose(growth_exponents(np.stack([sizes, 2 * sizes]), factors), [[0.5, -0.25]] * 2, rtol=1e-9)


def test_growth_exponent_is_the_slope_of_least_squares():
    source = np.random.default_rng(9)
    factors, sizes = source.uniform(5, 50, 12), source.uniform(2, 100, 12)
    expected = stats.linregress(np.log(factors), np.log(sizes)).slope
    assert growth_exponents(sizes, factors[:, None])[0] == pytest.approx(expected, rel=1e-9)


def test_growth_exponents_that_cannot_be_told_apart():
    assert np.isnan(growth_exponents(np.array([2.0, 4.0, 8.0]), np.array([(10, 100), (20, 200), (40, 400)]))).all()
