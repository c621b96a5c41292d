"""Statistics over seeds: the seed is the unit, and every mean comes with an interval."""

from __future__ import annotations

import numpy as np
from scipy import stats

CONFIDENCE = 0.95


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
        half = np.where(count > 1, stats.t.ppf(0.5 + CONFIDENCE / 2, np.maximum(count - 1, 1)) * error, np.nan)
    return mean, mean - half, mean + half
