"""Which steps of a run are stored."""

from __future__ import annotations

import numpy as np

#: Up to this horizon every step is stored, beyond it a log + linear grid.
DENSE_HORIZON = 2000

#: Steps that curves need.
CURVE_POINTS = 120


def time_grid(horizon: int, coarse: bool = False) -> np.ndarray:
    """The steps that are stored, increasing, ending with `horizon`.

    All of them up to 2,000, else about 600; a coarse grid is what curves need of either (`thin`).
    """
    if horizon <= DENSE_HORIZON:
        steps = np.arange(1, horizon + 1)
    else:
        logarithmic = np.geomspace(1, horizon, 200).round()
        linear = np.linspace(1, horizon, 401).round()
        steps = np.unique(np.concatenate([logarithmic, linear]).astype(int))
    return thin(steps) if coarse else steps


def thin(time: np.ndarray) -> np.ndarray:
    """About `CURVE_POINTS` of the stored steps, half of them evenly spaced and half of them logarithmically.

    Thinning what is thin already changes nothing.
    """
    half = CURVE_POINTS // 2
    wanted = np.concatenate([np.geomspace(1, time[-1], half), np.linspace(1, time[-1], half)])
    return time[np.unique(np.searchsorted(time, wanted.round()).clip(max=len(time) - 1))]
