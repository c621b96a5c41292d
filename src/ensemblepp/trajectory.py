"""What a run leaves: cumulative regret and what goes with it, at the rounds that are stored."""

from __future__ import annotations

from dataclasses import dataclass, field

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


#: With more chains x rounds than this, or with diagnostics, the grid of stored steps is a coarse one.
DENSE_ENTRIES = 10_000

#: Per-step actions are stored while a run's table has no more entries than this.
MAX_STORED_ACTIONS = 1_000_000


@dataclass(frozen=True)
class Trajectory:
    """What a simulation leaves, all cumulative over the rounds 1..time.

    Shapes: `time` (times,); `regret`, `reward` and `optimal` (number of rounds with zero regret) are
    (seeds, chains, times); `action` is (seeds, chains, horizon) or None where it would be large; `constant_regret`
    (seeds, actions, times) is what always choosing one action would have cost, or None where that is no policy.
    `diagnostics` are what the agent says of itself at the stored times, (seeds, chains, times) each, not cumulative.
    `policies` are what the environment's own fixed policies would have cost, `..._regret` and `..._optimal`, (seeds, times) or
    (seeds, policies, times).
    """

    time: np.ndarray
    regret: np.ndarray
    reward: np.ndarray
    optimal: np.ndarray
    action: np.ndarray | None
    constant_regret: np.ndarray | None
    diagnostics: dict[str, np.ndarray] = field(default_factory=dict)
    policies: dict[str, np.ndarray] = field(default_factory=dict)


def stores_actions(seeds: int, chains: int, horizon: int) -> bool:
    """Whether a table of all chosen actions is small."""
    return seeds * chains * horizon <= MAX_STORED_ACTIONS


def stored_rounds(chains: int, horizon: int, diagnostics: bool) -> np.ndarray:
    """The rounds that a run of so many chains stores, (times,)."""
    return time_grid(horizon, coarse=diagnostics or chains * horizon > DENSE_ENTRIES)
