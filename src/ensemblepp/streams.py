"""Random streams: every seed owns independent, named streams that depend on (seed, stream name) and on nothing else.

So all agents meet the same environments and the same reward noise at the same seed (paired comparison), and a seed's
draws do not depend on its block, on how many seeds run beside it, on the device or on the agent.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal

import numpy as np

Stream = Literal["environment", "reward_noise", "agent", "perturbation", "reference", "minibatch"]

#: Widest per-step Gaussian vector: the largest ensemble size, and the largest dimension of exact Thompson sampling.
MAX_WIDTH = 1024

#: Entries below this come from the stream itself, the rest from a second one, so that small ensembles draw little.
_NARROW = 64


def generator(seed: int, stream: str) -> np.random.Generator:
    """The generator of one named stream of one seed."""
    name = int.from_bytes(hashlib.sha256(stream.encode()).digest()[:8], "big")
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence([seed, name])))


class StepNoise:
    """Standard normal vectors, one per (seed, step), drawn ahead in chunks.

    The step-t vector of width w is the first w entries of the step-t vector of any greater width, so agents of one seed
    with different ensemble sizes and laws share their Gaussian draws.

    Args:
        seeds: the seeds, in the order of the leading axis of what is returned.
        stream: the stream's name.
        width: entries per step, 1 to `MAX_WIDTH`.
        chunk: steps drawn at once; changes memory and speed, never the values.

    Raises:
        ValueError: `width` is not in 1..`MAX_WIDTH`.
    """

    def __init__(self, seeds: Sequence[int], stream: Stream, width: int, chunk: int = 64) -> None:
        if not 1 <= width <= MAX_WIDTH:
            raise ValueError(f"width must be in 1..{MAX_WIDTH}, found {width}")
        self._width = width
        self._chunk = chunk
        parts = [(stream, _NARROW)] + ([(f"{stream}/wide", MAX_WIDTH - _NARROW)] if width > _NARROW else [])
        self._generators = [[(generator(seed, name), size) for name, size in parts] for seed in seeds]
        self._table = np.empty((len(seeds), chunk, sum(size for _, size in parts)))
        self._position = chunk

    def next(self) -> np.ndarray:
        """The next step's vectors, shape (seeds, width), float64."""
        if self._position == self._chunk:
            for row, generators in zip(self._table, self._generators, strict=True):
                start = 0
                for source, size in generators:
                    row[:, start : start + size] = source.standard_normal((self._chunk, size))
                    start += size
            self._position = 0
        self._position += 1
        return self._table[:, self._position - 1, : self._width]
