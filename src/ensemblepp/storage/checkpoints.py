"""Checkpoints of long simulations: a file beside the run's output that a killed job goes on from, to the same bytes."""

from __future__ import annotations

import pickle
import time
from pathlib import Path
from typing import Any

from ensemblepp.storage.datasets import atomic_path

#: Seconds between two checkpoints.
EVERY = 300.0


class Checkpoint:
    """The state of a simulation in a file.

    Args:
        path: the file; it is written atomically.
        key: what the state belongs to (specification, code, versions); a file with another key is not used.
        every: seconds between two of them.
    """

    def __init__(self, path: str | Path, key: str, every: float = EVERY) -> None:
        self._path, self._key, self._every = Path(path), key, every
        self._last = time.monotonic()

    def load(self) -> Any | None:
        """The state that was saved last, or None if there is none that fits."""
        try:
            with self._path.open("rb") as file:
                if pickle.load(file) != self._key:
                    return None
                return pickle.load(file)
        except Exception:  # there is none, or it is damaged or of another code, which can raise anything
            return None

    def offer(self, state: Any) -> None:
        """Save the state if it is time to. A state that cannot be pickled (an agent of the user's, say) is never saved."""
        if time.monotonic() - self._last < self._every:
            return
        try:
            with atomic_path(self._path) as temporary, temporary.open("wb") as file:
                pickle.dump(self._key, file)
                pickle.dump(state, file, protocol=pickle.HIGHEST_PROTOCOL)
        except (pickle.PicklingError, TypeError, AttributeError):
            self._every = float("inf")
        self._last = time.monotonic()

    def remove(self) -> None:
        """Delete the file: the run is complete."""
        self._path.unlink(missing_ok=True)
