"""Progress of a long loop: a bar on a terminal, a line per 10 % in a log file."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator


class Progress:
    """Count `total` steps of the task `name`, on standard error."""

    def __init__(self, total: int, name: str) -> None:
        self._total, self._name, self._done = total, name, 0
        self._bar = None
        if sys.stderr.isatty():
            from tqdm import tqdm

            self._bar = tqdm(total=total, desc=name, unit="step")
        self._start, self._first = 0.0, 0

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    @contextlib.contextmanager
    def telling_of_compilation(self) -> Iterator[None]:
        """Say so when numba compiles, once: the first step then takes long. Code that is found in the cache is not compiled."""
        from numba.core import event

        progress = self

        class Once(event.Listener):
            said = False

            def on_start(self, event: event.Event) -> None:
                if not self.said:
                    self.said = True
                    progress.say("compiling (half a minute; later runs find the code in the cache)")

            def on_end(self, event: event.Event) -> None:
                pass

        with event.install_listener("numba:compile", Once()):
            yield

    def say(self, words: str) -> None:
        """A line, above the bar if there is one."""
        if self._bar is not None:
            self._bar.write(f"{self._name}: {words}", file=sys.stderr)
        else:
            print(f"{self._name}: {words}", file=sys.stderr, flush=True)

    def step(self, count: int = 1) -> None:
        """`count` more steps are done."""
        if not self._done:
            # not earlier: loading libraries is no measure for the steps to come
            self._start = time.perf_counter()
            self._first = count
        self._done += count
        if self._bar is not None:
            self._bar.update(count)
        elif self._done * 10 // self._total > (self._done - count) * 10 // self._total:
            seconds = time.perf_counter() - self._start
            left = seconds / max(self._done - self._first, 1) * (self._total - self._done)
            share = self._done * 100 // self._total
            print(
                f"{self._name}: step {self._done}/{self._total} ({share} %), {seconds:.1f} s, about {left:.0f} s left",
                file=sys.stderr,
                flush=True,
            )
