"""A block as a job: it never runs twice at the same time, and ends in good order when it is told to or is out of memory."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType
from typing import Any

from ensemblepp.errors import EnsembleError, ResultError
from ensemblepp.runs import block
from ensemblepp.storage.checkpoints import Checkpoint
from ensemblepp.storage.datasets import read_dataset
from ensemblepp.storage.leases import Lease


class StoppedError(EnsembleError):
    """A job ended before its end: says why, and how it goes on."""


def simulate(
    spec: Mapping[str, Any], output: str | Path, *, code: str = "", on_step: Callable[[int], None] = lambda rounds: None
) -> None:
    """Simulate one block and write it to `output`, as `runs.block.run` does, unless another process does.

    That other one is waited for; then what it wrote is taken, if it is whole and of the same specification and code.

    On SIGTERM, which a cluster sends before it ends a job, a checkpoint is saved and the job ends.

    Raises:
        StoppedError: it was told to end, is out of memory, or another process has taken over.
    """
    output = Path(output)
    with _Stop(output, spec) as stop, Lease(output.with_suffix(".lease"), str(output)) as lease:
        if lease.waited and _finished(output, spec, code):
            print(f"{output}: made by the other process", file=sys.stderr)
            return

        def step(rounds: int) -> None:
            stop.after(rounds)
            on_step(rounds)
            if lease.lost:
                raise StoppedError(f"{output}: another process has taken over, as this one gave no sign of life for minutes")

        class Saved(Checkpoint):
            """A checkpoint that is saved at once, as the last thing that is done, when the job is told to end."""

            def offer(self, state: Any) -> None:
                # once: a signal between the two questions would end the job without what it is to save
                asked = stop.asked
                if asked:
                    self._every = 0
                super().offer(state)
                if asked:
                    stop.end()

        try:
            block.run(spec, output, code=code, on_step=step, checkpoint=Saved)
        except (MemoryError, RuntimeError) as error:
            # of torch, which is not imported for its sake
            if not isinstance(error, MemoryError) and type(error).__name__ != "OutOfMemoryError":
                raise
            remedy = "give the job more memory (mem_mb), or fewer seeds (seeds_per_block in config/studies.yaml)"
            raise StoppedError(f"{output}: out of memory ({error}); {remedy}") from error


class _Stop:
    """SIGTERM as a wish, as long as this is entered: before the first round it is granted at once, later between two."""

    def __init__(self, output: Path, spec: Mapping[str, Any]) -> None:
        self._output, self._checkpoint = output, output.with_suffix(".checkpoint")
        first, last = spec["seeds"]
        self._done, self._total = 0, spec["horizon"] * (last - first + 1)
        self.asked = False
        self._late = False

    def __enter__(self) -> _Stop:
        # elsewhere, as in a test's thread, Python takes no handlers
        self._installed = threading.current_thread() is threading.main_thread()
        if self._installed:
            self._before = signal.signal(signal.SIGTERM, self._ask)
        return self

    def __exit__(self, *_: object) -> None:
        if self._installed:
            signal.signal(signal.SIGTERM, self._before)

    def _ask(self, _signal: int, _frame: FrameType | None) -> None:
        self.asked = True
        if not self._done:
            self.end()

    def after(self, rounds: int) -> None:
        """So many more rounds are done."""
        self._done += rounds
        # an engine with checkpoints has offered one since it was asked, and the job has ended with that
        if self.asked and self._late:
            self.end()
        self._late = self.asked

    def end(self) -> None:
        """End the job."""
        rest = "goes on from its checkpoint" if self._checkpoint.exists() else "begins anew"
        raise StoppedError(f"{self._output}: told to end after {self._done} of {self._total} rounds; a new start {rest}")


def _finished(output: Path, spec: Mapping[str, Any], code: str) -> bool:
    """Whether a whole run file of the same specification and code is there, with what stands beside it."""
    with contextlib.suppress(ResultError):
        stored = read_dataset(output, finite=("regret", "reward"), holds=("spec", "code")).attrs
        return json.loads(stored["spec"]) == spec and stored["code"] == code and output.with_suffix(".json").exists()
    return False
