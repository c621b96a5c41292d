"""Random streams: every seed owns independent, named streams that depend on (seed, stream name) and on nothing else.

So all agents meet the same environments and the same reward noise at the same seed (paired comparison), and a seed's
draws do not depend on its block, on how many seeds run beside it, on the device or on the agent. Two uses of one stream would
draw the same numbers: nothing opens a name twice in a run.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence

import numpy as np

#: Every stream, and what is drawn from it.
STREAMS = {
    "environment": "what a seed's bandit is: theta*, the reward function, decision sets and candidates, the order of contexts",
    "environment/offers": "which candidates a round offers",
    "reward_noise": "noise of the rewards",
    "agent": "initial parameters that are trained: the factor A_0; the trunk and its heads",
    "agent/prior": "parameters that stay fixed: prior heads, prior networks",
    "agent/probes": "samples that an agent's spread is measured over",
    "agent/langevin": "seed of the noise of Langevin steps",
    "reference": "the Gaussian vectors behind zeta, and behind exact posterior draws",
    "reference/member": "which member of an ensemble acts",
    "reference/actions": "one Gaussian number for every action on offer",
    "reference/units": "which units are dropped in a round",
    "reference/wander": "whether a round's action is random, and which it is",
    "perturbation": "the Gaussian vectors behind z",
    "perturbation/coins": "weights of the bootstrap",
    "minibatch": "which samples a gradient step takes",
    "minibatch/directions": "update directions of continuous laws",
    "minibatch/indices": "indices of a gradient step that are drawn for every sample",
    "minibatch/units": "which units are dropped in a gradient step",
}

#: Streams of a user's own agents and environments begin like this; they are as many as are wanted.
OWN = "own/"

#: Widest per-step Gaussian vector: the largest ensemble size, and the largest dimension of exact Thompson sampling.
MAX_WIDTH = 1024

#: The entries of a step's vector come from as many streams as its width reaches into, so that small ensembles draw little:
#: entry 0 from the stream itself, entries 1..15 from a second one, and so on.
_BOUNDS = (0, 1, 16, 64, 128, 256, 512, MAX_WIDTH)


def generator(seed: int, stream: str) -> np.random.Generator:
    """The generator of one named stream of one seed.

    Raises:
        ValueError: the name is neither in `STREAMS` nor begins with `OWN`.
    """
    if stream not in STREAMS and not stream.startswith(OWN):
        known = ", ".join(STREAMS)
        raise ValueError(f"unknown stream '{stream}': one of {known}, or one of your own that begins with '{OWN}'")
    return _open(seed, stream)


def _open(seed: int, stream: str) -> np.random.Generator:
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
        ValueError: `width` is not in 1..`MAX_WIDTH`, or the stream is unknown.
    """

    def __init__(self, seed: int, stream: str, width: int) -> None:
        if not 1 <= width <= MAX_WIDTH:
            raise ValueError(f"width must be in 1..{MAX_WIDTH}, found {width}")
        self._width = width
        self._parts = [
            (generator(seed, stream) if start == 0 else _open(seed, f"{stream}/{start}"), start, end)
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
        ValueError: `width` is not in 1..`MAX_WIDTH`, or the stream is unknown.
    """

    def __init__(self, seeds: Sequence[int], stream: str, width: int, chunk: int = 64) -> None:
        #: per seed, for those who take its vectors many at a time
        self.rows = [GaussianRows(seed, stream, width) for seed in seeds]
        self._table = np.empty((len(seeds), chunk, width))
        self._position = chunk

    def next(self) -> np.ndarray:
        """The next step's vectors, shape (seeds, width), float64."""
        chunk = self._table.shape[1]
        if self._position == chunk:
            for table, rows in zip(self._table, self.rows, strict=True):
                table[...] = rows.take(chunk)
            self._position = 0
        self._position += 1
        return self._table[:, self._position - 1]
