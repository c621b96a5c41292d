"""Many statements at once: p values corrected by Holm, and many tasks at once: performance profiles."""

from __future__ import annotations

import numpy as np

from ensemblepp.analysis.statistics import percentile_interval, resampled_means


def holm(p_values: np.ndarray) -> np.ndarray:
    """p values adjusted by Holm's step-down: whoever decides at level a by them errs anywhere with probability a at most.

    Nothing is assumed of how the statements depend on each other.

    Args:
        p_values: (statements,).

    Returns:
        (statements,) adjusted p values, in the order given.
    """
    p_values = np.asarray(p_values, dtype=float)
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(1, np.maximum.accumulate(p_values[order] * factors))
    return adjusted


def performance_profile(scores: np.ndarray, thresholds: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Share of runs, over all tasks alike, whose score is at most a threshold, with a 95 % band over seeds.

    Args:
        scores: (seeds, tasks), such as regret over that of a common yardstick, task by task.
        thresholds: (thresholds,).

    Returns:
        (share, lower, upper), each (thresholds,); seeds are resampled together in all tasks.
    """
    reached = (np.asarray(scores, dtype=float)[:, :, None] <= np.asarray(thresholds)).mean(axis=1)
    return reached.mean(axis=0), *percentile_interval(resampled_means(reached))
