"""How a curve grows with the rounds: its slope in a part of them, and the exponent of a power of t, seed by seed.

Curves are cumulative, with 0 before the first round, and thinned: between two stored rounds they are taken as straight.
"""

from __future__ import annotations

import numpy as np

#: Rounds at which an exponent is fitted, evenly spaced on a logarithmic axis whatever rounds are stored.
POINTS = 20

#: The share of the rounds from which on an exponent is fitted: earlier ones are the start of training.
START = 0.1


def slopes(curves: np.ndarray, time: np.ndarray, first: float, last: float) -> np.ndarray:
    """Increase per round between two shares of the horizon.

    Args:
        curves: (seeds, times).
        time: (times,) rounds, ascending; the last is the horizon.
        first: share of the horizon at which to begin, 0 at the start.
        last: share at which to end.

    Returns:
        (seeds,) numbers.
    """
    ends = np.array([first, last]) * time[-1]
    begin, end = _at(curves, time, ends).T
    return (end - begin) / (ends[1] - ends[0])


def exponents(curves: np.ndarray, time: np.ndarray, start: float = START) -> np.ndarray:
    """b of curve = c t^b from the share `start` of the horizon on, by least squares on logarithms.

    The fit of all seeds together, each with a c of its own and one b, is the mean of these, and its standard error clustered by
    seed is that of this mean.

    Args:
        curves: (seeds, times).
        time: (times,) rounds, ascending; the last is the horizon.
        start: share of the horizon.

    Returns:
        (seeds,) numbers; NaN for a curve that is not above zero all the way.
    """
    rounds = np.geomspace(start * time[-1], time[-1], POINTS)
    values = _at(curves, time, rounds)
    logarithms = np.log(np.where(values > 0, values, np.nan))
    across = np.log(rounds) - np.log(rounds).mean()
    return logarithms @ across / (across @ across)


def _at(curves: np.ndarray, time: np.ndarray, rounds: np.ndarray) -> np.ndarray:
    """(seeds, rounds) values of (seeds, times) curves."""
    stored = np.concatenate([[0.0], time])
    return np.array([np.interp(rounds, stored, np.concatenate([[0.0], curve])) for curve in np.asarray(curves, dtype=float)])
