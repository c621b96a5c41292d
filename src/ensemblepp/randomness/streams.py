"""Random streams: every seed owns independent, named streams that depend on (seed, stream name) and on nothing else.

So all agents meet the same environments and the same reward noise at the same seed (paired comparison), and a seed's
draws do not depend on its block, on how many seeds run beside it, on the device or on the agent.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from typing import Literal

import numpy as np

Stream = Literal["environment", "reward_noise", "agent", "perturbation", "reference", "minibatch"]

#: Widest per-step Gaussian vector: the largest ensemble size, and the largest dimension of exact Thompson sampling.
MAX_WIDTH = 1024

#: The entries of a step's vector come from as many streams as its width reaches into, so that small ensembles draw little:
#: entry 0 from the stream itself, entries 1..15 from a second one, and so on.
_BOUNDS = (0, 1, 16, 64, 128, 256, 512, MAX_WIDTH)


def generator(seed: int, stream: str) -> np.random.Generator:
    """The generator of one named stream of one seed."""
    name = int.from_bytes(hashlib.sha256(stream.encode()).digest()[:8], "big")
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence([seed, name])))


class GaussianRows:
    """Standard normal vectors of one seed, one per step.

    The step-t vector of width w is the first w entries of the step-t vector of any greater width, so agents of one seed
    with different ensemble sizes and laws share their Gaussian draws.

    Args:
        seed: the seed.
        stream: the stream's name.
        width: entries per step, 1 to `MAX_WIDTH`.

    Raises:
        ValueError: `width` is not in 1..`MAX_WIDTH`.
    """

    def __init__(self, seed: int, stream: Stream, width: int) -> None:
        if not 1 <= width <= MAX_WIDTH:
            raise ValueError(f"width must be in 1..{MAX_WIDTH}, found {width}")
        self._width = width
        self._parts = [
            (generator(seed, stream if start == 0 else f"{stream}/{start}"), start, end)
            for start, end in itertools.pairwise(_BOUNDS)
            if start < width
        ]

    def take(self, steps: int) -> np.ndarray:
        """The vectors of the next `steps` steps, shape (steps, width), float64."""
        table = np.empty((steps, self._parts[-1][2]))
        for source, start, end in self._parts:
            table[:, start:end] = source.standard_normal((steps, end - start))
        return table[:, : self._width]


class StepNoise:
    """Standard normal vectors, one per (seed, step), for several seeds: `GaussianRows` side by side, drawn ahead in chunks.

    Args:
        seeds: the seeds, in the order of the leading axis of what is returned.
        stream: the stream's name.
        width: entries per step, 1 to `MAX_WIDTH`.
        chunk: steps drawn at once; changes memory and speed, never the values.

    Raises:
        ValueError: `width` is not in 1..`MAX_WIDTH`.
    """

    def __init__(self, seeds: Sequence[int], stream: Stream, width: int, chunk: int = 64) -> None:
        self._rows = [GaussianRows(seed, stream, width) for seed in seeds]
        self._table = np.empty((len(seeds), chunk, width))
        self._position = chunk

    def next(self) -> np.ndarray:
        """The next step's vectors, shape (seeds, width), float64."""
        chunk = self._table.shape[1]
        if self._position == chunk:
            for table, rows in zip(self._table, self._rows, strict=True):
                table[...] = rows.take(chunk)
            self._position = 0
        self._position += 1
        return self._table[:, self._position - 1]
