"""Runs that end in the middle, as if their process had been killed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from ensemblepp.storage.checkpoints import Checkpoint
from ensemblepp.trajectory import Trajectory


class Killed(Exception):
    """What stands for the end of a process."""


def killer(rounds: int) -> Callable[[int], None]:
    """An `on_step` that raises once so many rounds, summed over seeds, are done."""
    done = 0

    def on_step(count: int) -> None:
        nonlocal done
        done += count
        if done >= rounds:
            raise Killed

    return on_step


class EveryFourth(Checkpoint):
    """Saves at every fourth chance, which rounds and not the clock decide; a chunk's end is among them."""

    def __init__(self, path: str | Path, key: str) -> None:
        super().__init__(path, key, every=0)
        self._chances = 0

    def resume(self, fresh: Any) -> Any | None:
        self._chances = 0
        return super().resume(fresh)

    def offer(self, state: Any) -> None:
        self._chances += 1
        if self._chances % 4 == 0:
            super().offer(state)


def assert_equal(left: Trajectory, right: Trajectory) -> None:
    """All that two runs leave, to the last bit."""
    for name in ("time", "regret", "reward", "optimal", "action"):
        assert np.array_equal(getattr(left, name), getattr(right, name)), name
    assert (left.constant_regret is None) == (right.constant_regret is None)
    assert left.constant_regret is None or np.array_equal(left.constant_regret, right.constant_regret)
    assert left.diagnostics.keys() == right.diagnostics.keys()
    for name, values in left.diagnostics.items():
        assert np.array_equal(values, right.diagnostics[name], equal_nan=True), name
