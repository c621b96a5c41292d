"""Means and ratios with the wider of two intervals, exact shares, the interquartile mean; what they promise, by simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from ensemblepp.analysis.estimates import Resampled, Share, Studentised, interquartile_mean, mean_of, ratio_of_means
from ensemblepp.analysis.statistics import REPLICATES, resampled_means


def by_loop(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Pivots of the ratio of means, from rows that are drawn one by one: the residuals' spread in each sample."""
    seeds, ratio = len(above), above.mean() / below.mean()
    counts = np.random.default_rng(0).multinomial(seeds, [1 / seeds] * seeds, size=REPLICATES)[:400]
    pivots = []
    for count in counts:
        rows = np.repeat(np.arange(seeds), count)
        sample = above[rows].mean() / below[rows].mean()
        left = above[rows] - sample * below[rows]
        error = left.std(ddof=1) / math.sqrt(seeds) / below[rows].mean()
        pivots.append((sample - ratio) / error)
    return np.array(pivots)


def test_mean_and_error_by_hand():
    """1, 2, 3: mean 2, standard error 1 / sqrt 3."""
    estimate = mean_of(np.array([1.0, 2, 3]))
    assert (estimate.value, estimate.seeds) == (2, 3)
    assert estimate.error == pytest.approx(1 / math.sqrt(3))


def test_ratio_is_of_means():
    """(1 + 9) / (2 + 8) = 1, where the mean of the ratios would be 13/16."""
    estimate = ratio_of_means(np.array([1.0, 9]), np.array([2.0, 8]))
    assert estimate.value == 1
    # residuals -1 and 1, over a mean of 5
    assert estimate.error == pytest.approx(math.sqrt(2) / math.sqrt(2) / 5)


def test_pivots_are_those_of_a_loop():
    source = np.random.default_rng(1)
    above, below = source.lognormal(1, 1, 12), source.lognormal(2, 0.5, 12)
    found = np.random.default_rng(0).multinomial(12, [1 / 12] * 12, size=REPLICATES)
    expected = by_loop(above, below)
    pivots = ratio_of_means(above, below).pivots
    assert len(pivots) == len(found) == REPLICATES
    # the first 400 are among all
    np.testing.assert_allclose(pivots[np.abs(pivots[None] - expected[:, None]).argmin(axis=1)], expected, rtol=1e-6, atol=1e-9)


def test_a_mean_is_a_ratio_to_one_and_may_be_negative():
    values = np.random.default_rng(2).normal(-3, 1, 9)
    mean, ratio = mean_of(values), ratio_of_means(values, np.ones(9))
    assert (mean.value, mean.error) == (ratio.value, ratio.error)
    assert mean.interval()[1] < 0


def test_an_interval_of_what_is_not_negative_is_not_either():
    above = np.array([0.0, 0, 0, 0, 10])
    low, high = ratio_of_means(above, np.array([5.0, 6, 5, 6, 5])).interval()
    assert low == 0
    assert high > 1


def test_the_ends_are_the_wider_of_bootstrap_and_student():
    """Three normal-like pivots by hand: quantiles -2.5 and 1.5 against t = 2.2622 with nine degrees of freedom."""
    student = stats.t.ppf(0.975, 9)
    pivots = np.sort(np.concatenate([np.full(300, -2.5), np.zeros(9400), np.full(300, 1.5)]))
    low, high = Studentised(10.0, 2.0, 10, pivots).interval()
    assert low == pytest.approx(10 - student * 2)
    assert high == pytest.approx(10 + 2.5 * 2)


def test_p_values_belong_to_the_interval():
    """A bound at an end of the 95 % interval has p = 0.025 on that side, whichever of the two is wider there."""
    for seed in range(5):
        estimate = mean_of(np.random.default_rng(seed).lognormal(0, 1, 15))
        low, high = estimate.interval()
        assert estimate.p_above(low) == pytest.approx(0.025, abs=3e-4)
        assert estimate.p_below(high) == pytest.approx(0.025, abs=3e-4)
        assert estimate.p_above(low - 1) < 0.025 < estimate.p_above(low + 0.1)


def test_equal_values_are_certain_up_to_the_number_of_samples():
    estimate = mean_of(np.full(8, 4.0))
    assert estimate.interval() == (4, 4)
    assert estimate.p_above(4) == estimate.p_below(4) == 1
    assert estimate.p_above(3) == pytest.approx(1 / (REPLICATES + 1))


@pytest.mark.parametrize("values", [[], [3.0], [1.0, math.nan, 2.0]])
def test_nothing_is_known_of_one_seed_or_of_missing_ones(values):
    estimate = mean_of(np.array(values))
    assert np.isnan(estimate.interval()).all()
    assert estimate.p_above(-100) == estimate.p_below(100) == 1


def test_three_seeds_give_no_bounds():
    """One sample in nine is a single seed three times, of which no spread is known."""
    assert mean_of(np.array([1.0, 2, 4])).interval() == (-math.inf, math.inf)


# ------------------------------------------------------------------------------------------------------------ coverage

#: Laws of differences, with their means. `lock` is one seed in ten that never recovers.
LAWS = {
    "normal": (lambda source, shape: source.normal(size=shape), 0.0),
    "t with 3 degrees": (lambda source, shape: source.standard_t(3, shape), 0.0),
    "lognormal": (lambda source, shape: source.lognormal(0, 1, shape), math.exp(0.5)),
    "minus lognormal": (lambda source, shape: -source.lognormal(0, 1, shape), -math.exp(0.5)),
    "difference of lognormals": (
        lambda source, shape: source.lognormal(0, 1.5, shape) - source.lognormal(0, 1.5, shape),
        0.0,
    ),
    "lock": (lambda source, shape: source.normal(size=shape) + 20.0 * (source.random(shape) < 0.1), 2.0),
}

#: Least coverage of the 95 % interval with 20 seeds, by law. Skewness costs up to 3 %; a loss that one seed in ten has is not
#: in the sample with probability 0.12, and no interval knows of it.
COVERED = {"lognormal": 0.90, "minus lognormal": 0.90, "lock": 0.84}


def coverage(law: str, studies: int, seeds: int) -> float:
    draw, mean = LAWS[law]
    intervals = (mean_of(study).interval() for study in draw(np.random.default_rng(3), (studies, seeds)))
    return float(np.mean([low <= mean <= high for low, high in intervals]))


@pytest.mark.parametrize("law", LAWS)
def test_coverage_under_heavy_tails(law):
    assert coverage(law, 400, 20) >= COVERED.get(law, 0.93)


@pytest.mark.parametrize("law", ["lognormal", "lock"])
def test_coverage_of_the_papers_200_seeds(law):
    assert coverage(law, 100, 200) >= 0.91


def test_students_interval_alone_would_not_do():
    """The same lognormal studies: 87 % where 93 % are covered."""
    studies = LAWS["lognormal"][0](np.random.default_rng(3), (400, 20))
    low, high = stats.t.interval(0.95, 19, studies.mean(axis=1), stats.sem(studies, axis=1))
    assert np.mean((low <= math.exp(0.5)) & (math.exp(0.5) <= high)) < 0.89


def test_the_bootstrap_alone_would_not_do():
    """Differences of lognormals: 90 % where 97 % are covered."""
    studies = LAWS["difference of lognormals"][0](np.random.default_rng(3), (400, 20))

    def alone(study):
        estimate = mean_of(study)
        low, high = np.quantile(estimate.pivots, (0.025, 0.975))
        return estimate.value - high * estimate.error <= 0 <= estimate.value - low * estimate.error

    assert np.mean([alone(study) for study in studies]) < 0.92


# -------------------------------------------------------------------------------------------------------------- others


def test_resampled_statistics_by_counting():
    samples = np.arange(1.0, 101)
    estimate = Resampled(50.0, 10, samples)
    assert estimate.interval() == (3, 98)
    assert estimate.p_above(5) == pytest.approx(6 / 101)
    assert estimate.p_below(5) == pytest.approx(97 / 101)
    assert Resampled(math.nan, 10, np.array([math.nan, 1])).p_above(-5) == 1


def test_bootstrap_of_a_mean_agrees_with_the_studentised_one():
    values = np.random.default_rng(4).normal(2, 1, 200)
    resampled = Resampled(values.mean(), 200, resampled_means(values))
    np.testing.assert_allclose(resampled.interval(), mean_of(values).interval(), atol=0.02)


def test_a_share_is_that_of_the_binomial_test():
    for count, seeds in ((0, 20), (3, 20), (20, 20)):
        share, test = Share(count, seeds), stats.binomtest(count, seeds, 0.05)
        assert share.interval() == pytest.approx(tuple(test.proportion_ci(0.95, method="exact")), abs=1e-9)
        assert share.p_above(0.05) == pytest.approx(stats.binomtest(count, seeds, 0.05, alternative="greater").pvalue)
        assert share.p_below(0.05) == pytest.approx(stats.binomtest(count, seeds, 0.05, alternative="less").pvalue)


def test_59_seeds_show_that_less_than_one_in_twenty_fails():
    assert Share(0, 58).p_below(0.05) > 0.05 > Share(0, 59).p_below(0.05)


def test_interquartile_mean_by_hand():
    """0, 1, ..., 7 and one that is lost: two of nine are left out at either end."""
    values = np.array([0.0, 1, 2, 3, 4, 5, 6, 7, 1e6])
    value, low, high = interquartile_mean(values)
    assert value == 4
    winsorised = np.array([2.0, 2, 2, 3, 4, 5, 6, 6, 6]).std(ddof=1)
    half = stats.t.ppf(0.975, 4) * winsorised / ((1 - 4 / 9) * 3)
    assert (low, high) == pytest.approx((4 - half, 4 + half))
    assert interquartile_mean(np.array([1.0, 2, 3]))[0] == 2
    assert np.isnan(interquartile_mean(np.array([1.0, 2, 3]))[1])
    assert np.isnan(interquartile_mean(np.array([1.0, math.nan, 2, 3]))).all()


def test_interquartile_mean_keeps_its_coverage_where_tails_are_heavy():
    studies = np.random.default_rng(5).standard_t(2, (2000, 20))
    covered = np.mean([low <= 0 <= high for _, low, high in map(interquartile_mean, studies)])
    assert covered > 0.94
