"""Estimates over seeds that a decision can rest on: a value, its interval, and how surely it lies beyond a bound.

The seed is the unit. Regret has heavy tails, so either end of an interval is the wider of two: that of the studentised
bootstrap, which knows skewness and is too narrow where both tails are heavy, and Student's t, which is the other way round.
docs/decisions.md says what was measured. Nothing helps where a rare event has not been met by any seed: with n seeds, one
of probability below 1 - 0.05^(1/n) may be missing (26 % at 10 seeds, 14 % at 20).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from scipy import special

from ensemblepp.analysis.statistics import CONFIDENCE, REPLICATES, percentile_interval, resampled_means


class Estimate(Protocol):
    """A number estimated from seeds."""

    value: float
    seeds: int

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Lower and upper end of the two-sided interval."""

    def p_above(self, bound: float) -> float:
        """p value of "it is at most `bound`", small where the estimate is surely above."""

    def p_below(self, bound: float) -> float:
        """p value of "it is at least `bound`", small where the estimate is surely below."""


@dataclass(frozen=True)
class Studentised:
    """A mean, or a ratio of means.

    Attributes:
        value: the estimate.
        error: its standard error.
        seeds: n.
        pivots: (replicates,) what (estimate - value) / error comes to in bootstrap samples, ascending.
        least: what it cannot be below; intervals stay above.
    """

    value: float
    error: float
    seeds: int
    pivots: np.ndarray
    least: float = -math.inf

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """See `Estimate`; without bounds where a bootstrap sample that is one seed alone counts, as with three seeds."""
        if not self.seeds > 1 or math.isnan(self.value):
            return math.nan, math.nan
        if self.error == 0:
            return self.value, self.value
        tail = (1 - confidence) / 2
        student = float(special.stdtrit(self.seeds - 1, 1 - tail))
        low, high = np.quantile(self.pivots, (tail, 1 - tail), method="inverted_cdf")
        return max(self.least, self.value - max(high, student) * self.error), self.value - min(low, -student) * self.error

    def p_above(self, bound: float) -> float:
        """See `Estimate`."""
        return self._tail(self.value - bound, self.pivots)

    def p_below(self, bound: float) -> float:
        """See `Estimate`."""
        return self._tail(bound - self.value, -self.pivots[::-1])

    def _tail(self, distance: float, pivots: np.ndarray) -> float:
        """The larger tail of the two beyond a distance; never below one in so many replicates."""
        if not self.seeds > 1 or math.isnan(distance):
            return 1.0
        least = 1 / (len(pivots) + 1)
        if self.error == 0:
            return least if distance > 0 else 1.0
        reached = distance / self.error
        beyond = len(pivots) - int(np.searchsorted(pivots, reached, side="left"))
        return max((1 + beyond) * least, float(special.stdtr(self.seeds - 1, -reached)))


@dataclass(frozen=True)
class Resampled:
    """Any other statistic of all seeds, by bootstrap samples of it; its interval is the percentiles'.

    Attributes:
        value: the statistic.
        seeds: n.
        samples: (replicates,) the statistic in bootstrap samples.
    """

    value: float
    seeds: int
    samples: np.ndarray

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """See `Estimate`."""
        if np.isnan(self.samples).any():
            return math.nan, math.nan
        if confidence == CONFIDENCE:
            low, high = percentile_interval(self.samples)
        else:
            tail = (1 - confidence) / 2
            low, high = np.quantile(self.samples, (tail, 1 - tail), method="inverted_cdf")
        return float(low), float(high)

    def p_above(self, bound: float) -> float:
        """See `Estimate`."""
        return self._share(self.samples <= bound)

    def p_below(self, bound: float) -> float:
        """See `Estimate`."""
        return self._share(self.samples >= bound)

    def _share(self, beyond: np.ndarray) -> float:
        if np.isnan(self.samples).any() or self.seeds < 2:
            return 1.0
        return float((1 + np.count_nonzero(beyond)) / (1 + beyond.size))


@dataclass(frozen=True)
class Share:
    """A share of seeds in which something happened, with Clopper and Pearson's exact interval.

    Attributes:
        count: seeds in which it did.
        seeds: n.
    """

    count: int
    seeds: int

    @property
    def value(self) -> float:
        return self.count / self.seeds

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """See `Estimate`."""
        tail, missed = (1 - confidence) / 2, self.seeds - self.count
        low = float(special.betaincinv(self.count, missed + 1, tail)) if self.count else 0.0
        high = float(special.betaincinv(self.count + 1, missed, 1 - tail)) if missed else 1.0
        return low, high

    def p_above(self, bound: float) -> float:
        """See `Estimate`: P(at least so many) where each seed has the probability `bound`."""
        return float(special.bdtrc(self.count - 1, self.seeds, bound)) if self.count else 1.0

    def p_below(self, bound: float) -> float:
        """See `Estimate`: P(at most so many)."""
        return float(special.bdtr(self.count, self.seeds, bound))


def mean_of(values: np.ndarray) -> Studentised:
    """The mean of (seeds,) numbers, such as differences that are paired by seed."""
    values = np.asarray(values, dtype=float)
    return replace(ratio_of_means(values, np.ones_like(values)), least=-math.inf)


def ratio_of_means(above: np.ndarray, below: np.ndarray) -> Studentised:
    """mean(above) / mean(below) of (seeds,) numbers that are paired by seed.

    The ratio of means, not the mean of ratios: a seed counts with its regret, as it does in a comparison of means. The standard
    error is the delta method's, within each bootstrap sample too. NaN in a seed makes all of it NaN.
    """
    above, below = np.asarray(above, dtype=float), np.asarray(below, dtype=float)
    seeds = len(above)
    ratio = above.mean() / below.mean() if seeds and below.any() else np.nan
    if seeds < 2 or not np.isfinite(ratio):
        return Studentised(float(ratio), np.nan, seeds, np.full(REPLICATES, np.nan))
    # what is left of a seed, which is centred: no digits are lost to a mean that is far from zero
    left = above - ratio * below
    error = _error(np.mean(left**2), np.abs(below.mean()), seeds)
    means = resampled_means(np.column_stack([left, below, left**2, left * below, below**2]))
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = means[:, 0] / means[:, 1]
        squares = means[:, 2] - 2 * shift * means[:, 3] + shift**2 * means[:, 4]
        # a sample that is one seed alone, again and again, has no spread: what is left is rounding
        squares = np.where(squares > 1e-12 * means[:, 2], squares, 0.0)
        pivots = shift / _error(squares, np.abs(means[:, 1]), seeds)
    least = 0.0 if min(above.min(), below.min()) >= 0 else -math.inf
    return Studentised(float(ratio), float(error), seeds, np.sort(np.where(np.isnan(pivots), 0.0, pivots)), least)


def _error(squares: np.ndarray, below: np.ndarray, seeds: int) -> np.ndarray:
    return np.sqrt(squares / (seeds - 1)) / below


def interquartile_mean(values: np.ndarray, confidence: float = CONFIDENCE) -> tuple[float, float, float]:
    """Mean of the middle half of (seeds,) numbers, and its interval by Tukey and McLaughlin (winsorised variance, Student's t).

    A quarter of the seeds, rounded down, is left out at either end, so a few runs that never recover do not carry it.

    Returns:
        (value, lower, upper); without bounds for fewer than four seeds.
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    seeds, cut = len(ordered), len(ordered) // 4
    middle = ordered[cut : seeds - cut]
    if not seeds or np.isnan(ordered).any():
        return math.nan, math.nan, math.nan
    value = float(middle.mean())
    if seeds < 4:
        return value, math.nan, math.nan
    spread = float(np.clip(ordered, middle[0], middle[-1]).std(ddof=1))
    degrees = len(middle) - 1
    half = float(special.stdtrit(degrees, 0.5 + confidence / 2)) * spread / ((1 - 2 * cut / seeds) * math.sqrt(seeds))
    return value, value - half, value + half
