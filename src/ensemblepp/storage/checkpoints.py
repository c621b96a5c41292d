"""Checkpoints of long simulations: a file beside the run's output that a killed job goes on from, to the same bytes.

A checkpoint is an npz archive of plain arrays and texts that ends with its checksum. The checksum is compared first, then the
key, and only then is anything made of what it holds, from the classes of the run itself (`storage.states`).
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from ensemblepp.errors import ResultError
from ensemblepp.storage.datasets import atomic_path
from ensemblepp.storage.seals import add_seal, check_seal
from ensemblepp.storage.states import Parts, UnstorableError, pack, unpack

#: Seconds between two checkpoints.
EVERY = 300.0

_REMEDY = "the run starts over"


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
        self._parts: Parts | None = None

    def resume(self, fresh: Any) -> Any | None:
        """The state that was saved last, or None if there is none that fits; one line on standard error says why not.

        Args:
            fresh: the same simulation at its start. States are made of the classes, functions and methods that it is made of.
        """
        try:
            self._parts = Parts(fresh)
        except (UnstorableError, RecursionError) as error:
            self._give_up(error)
            return None
        if not self._path.exists():
            return None
        try:
            return self._read()
        except ResultError as error:
            print(error, file=sys.stderr, flush=True)
            return None

    def offer(self, state: Any) -> None:
        """Save the state if it is time to. A state that has no plain form (an agent of the user's, say) is never saved."""
        if time.monotonic() - self._last < self._every:
            return
        try:
            table, arrays = pack(state, self._parts)
        except (UnstorableError, RecursionError) as error:
            self._give_up(error)
            return
        texts = {"key": self._key, "table": json.dumps(table)}
        with atomic_path(self._path) as temporary:
            with temporary.open("wb") as file:
                # texts as bytes: an array of letters takes four times as much
                named = {name: np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8) for name, text in texts.items()}
                np.savez(file, allow_pickle=False, **named, **{f"array{place}": array for place, array in enumerate(arrays)})
            add_seal(temporary)
        self._last = time.monotonic()

    def remove(self) -> None:
        """Delete the file: the run is complete."""
        self._path.unlink(missing_ok=True)

    def _read(self) -> Any:
        """The state in the file.

        Raises:
            ResultError: it is damaged, or of another run.
        """
        check_seal(self._path, _REMEDY)
        try:
            with np.load(self._path, allow_pickle=False) as archive:
                if _text(archive["key"]) != self._key:
                    raise ResultError(f"{self._path}: of another specification, code or library version; {_REMEDY}")
                arrays = [archive[f"array{place}"] for place in range(len(archive.files) - 2)]
                return unpack(json.loads(_text(archive["table"])), arrays, self._parts)
        except ResultError:
            raise
        except Exception as error:  # sealed, and yet no state of this run: its parts raise anything then
            found = " ".join(f"{type(error).__name__}: {error}".split())
            raise ResultError(f"{self._path}: holds no state of this run ({found}); {_REMEDY}") from error

    def _give_up(self, error: Exception) -> None:
        print(f"{self._path}: no checkpoints, the run starts over if it is killed ({error})", file=sys.stderr, flush=True)
        self._every = float("inf")


def _text(content: np.ndarray) -> str:
    return content.tobytes().decode("utf-8", "surrogatepass")
