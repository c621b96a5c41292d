"""Statistics over seeds: the seed is the unit, and every mean comes with an interval."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import xarray as xr
from scipy import special

from ensemblepp.analysis.selection import agent_runs
from ensemblepp.errors import ResultError

CONFIDENCE = 0.95

#: Bootstrap samples behind every bootstrap interval.
REPLICATES = 10_000

#: Exact Thompson sampling, what the agents of linear bandits are measured against.
YARDSTICK = "ts"

#: Regret per round within which an ensemble "matches" Thompson sampling (paper, Section "Optimal Ensemble Size Scaling").
TOLERANCE = 0.02


def mean_interval(values: np.ndarray, axis: int = -1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and Student's t interval (95 %, n - 1 degrees of freedom) along `axis`.

    NaN entries (runs that do not exist) do not count. With fewer than two values the bounds are NaN.

    Returns:
        (mean, lower, upper), each of the shape of `values` without `axis`.
    """
    values = np.asarray(values, dtype=float)
    present = ~np.isnan(values)
    count = present.sum(axis=axis)
    filled = np.where(present, values, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = filled.sum(axis=axis) / count
        deviation = np.where(present, values - np.expand_dims(mean, axis), 0.0)
        error = np.sqrt((deviation**2).sum(axis=axis) / (count - 1) / count)
        half = np.where(count > 1, special.stdtrit(np.maximum(count - 1, 1), 0.5 + CONFIDENCE / 2) * error, np.nan)
    return mean, mean - half, mean + half


def summary(values: np.ndarray) -> tuple[float, float, float, float]:
    """Mean, its interval's two bounds as in `mean_interval`, and median of numbers, of which NaN do not count."""
    values = np.asarray(values, dtype=float)
    present = values[~np.isnan(values)]
    mean, lower, upper = mean_interval(present)
    return float(mean), float(lower), float(upper), float(np.median(present)) if present.size else np.nan


def excess_over_yardstick(dataset: xr.Dataset, agent: str) -> xr.DataArray:
    """Regret at the horizon minus Thompson sampling's, seed by seed: both met the same bandit and the same noise.

    Args:
        dataset: a study's.
        agent: name of an agent; if it ran several pairs of laws, the paper's counts.

    Returns:
        Array (environment, ensemble_size, seed), float64; NaN where one of the two was not run.

    Raises:
        ResultError: the study has no Thompson sampling.
    """
    if YARDSTICK not in dataset["agent"].values:
        raise ResultError(f"compared with exact Thompson sampling: add agent '{YARDSTICK}' to the study in config/studies.yaml")
    final = dataset[["regret"]].isel(time=-1, drop=True).astype(float)
    yardstick = agent_runs(final, YARDSTICK)["regret"].sel(ensemble_size=0, drop=True)
    return (agent_runs(final, agent)["regret"] - yardstick).transpose("environment", "ensemble_size", "seed")


# ------------------------------------------------------------------------------------------------------------ bootstrap


def resampled_means(values: np.ndarray, replicates: int = REPLICATES) -> np.ndarray:
    """Means over seeds of bootstrap samples: seeds are drawn with replacement, the same ones for all other entries.

    Equal numbers of seeds give the same samples in every call, so results repeat and calls are paired with each other.

    Args:
        values: shape (seeds, ...).
        replicates: number of samples.

    Returns:
        Array (replicates, ...).
    """
    values = np.asarray(values, dtype=float)
    seeds = len(values)
    return (_drawn(seeds, replicates) @ values.reshape(seeds, -1) / seeds).reshape(replicates, *values.shape[1:])


@functools.lru_cache(maxsize=4)
def _drawn(seeds: int, replicates: int) -> np.ndarray:
    """How often each seed is drawn, (replicates, seeds); drawing takes longer than all that is done with it."""
    return np.random.default_rng(0).multinomial(seeds, np.full(seeds, 1 / seeds), size=replicates).astype(float)


def percentile_interval(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The middle 95 % of bootstrap samples along the first axis; its ends are samples, never values between two of them."""
    ends = (0.5 - CONFIDENCE / 2, 0.5 + CONFIDENCE / 2)
    lower, upper = np.quantile(samples, ends, axis=0, method="inverted_cdf")
    return lower, upper


# ---------------------------------------------------------------------------------------------- minimum ensemble size


def first_within(excess: np.ndarray, tolerance: float = TOLERANCE) -> np.ndarray:
    """The paper's rule: the first ensemble size at which |excess| <= tolerance.

    It is two-sided, so a regret that is lower than Thompson sampling's by more than the tolerance fails, and it stops at the
    first size that passes by luck, whatever comes after it.

    Args:
        excess: mean excess over Thompson sampling per round, ensemble sizes along the last axis, ascending.
        tolerance: regret per round.

    Returns:
        Positions along the last axis, of the shape of the others; the number of sizes where none passes.
    """
    return _first(np.abs(excess) <= tolerance)


def stays_below(excess: np.ndarray, tolerance: float = TOLERANCE) -> np.ndarray:
    """The one-sided rule: the first ensemble size from which on excess <= tolerance up to the largest size.

    Arguments and result as for `first_within`.
    """
    below = np.asarray(excess) <= tolerance
    return _first(np.flip(np.logical_and.accumulate(np.flip(below, -1), axis=-1), -1))


#: What decides that an ensemble size is enough.
SIZE_RULES: dict[str, Callable[..., np.ndarray]] = {"two-sided": first_within, "one-sided": stays_below}


def _first(passes: np.ndarray) -> np.ndarray:
    return np.where(passes.any(-1), passes.argmax(-1), passes.shape[-1])


def minimum_size(excess: np.ndarray, rule: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The ensemble size that a rule of `SIZE_RULES` gives, with its 95 % bootstrap interval over seeds.

    Args:
        excess: over Thompson sampling per round, shape (seeds, ..., sizes), sizes ascending.
        rule: its name.

    Returns:
        (position, lowest, highest) along the sizes, each of the shape between; the number of sizes stands for "none of them".
    """
    decide = SIZE_RULES[rule]
    return decide(excess.mean(axis=0)), *percentile_interval(decide(resampled_means(excess)))


def growth_exponents(sizes: np.ndarray, factors: np.ndarray) -> np.ndarray:
    """Exponents a, b, ... of M = c x^a y^b ... by least squares on logarithms.

    Args:
        sizes: M, shape (..., environments).
        factors: x, y, ..., shape (environments, factors).

    Returns:
        Array (..., factors); NaN if the environments do not tell the factors apart.
    """
    design = np.column_stack([np.ones(len(factors)), np.log(factors)])
    if np.linalg.matrix_rank(design) < design.shape[1]:
        return np.full((*sizes.shape[:-1], factors.shape[1]), np.nan)
    return (np.log(sizes) @ np.linalg.pinv(design).T)[..., 1:]
