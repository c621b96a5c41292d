"""Random numbers drawn ahead for many rounds: callables, rounds -> (seeds or chains, rounds, ...).

The numbers of a round do not depend on how many rounds are asked for at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ensemblepp.randomness import distributions
from ensemblepp.randomness.streams import GaussianRows, generator
from ensemblepp.randomness.ziggurat import fill_normals


class Uniforms:
    """Uniform numbers in [0, 1) of several seeds: rounds -> (seeds, rounds, *shape), float32."""

    def __init__(self, seeds: Sequence[int], stream: str, shape: Sequence[int]) -> None:
        self._generators = [generator(seed, stream) for seed in seeds]
        self._shape = tuple(shape)

    def __call__(self, rounds: int) -> np.ndarray:
        return np.stack([source.random((rounds, *self._shape), dtype=np.float32) for source in self._generators])


class Normals:
    """Standard normal numbers of several seeds: rounds -> (seeds, rounds, *shape), float32, like `Uniforms`."""

    def __init__(self, seeds: Sequence[int], stream: str, shape: Sequence[int]) -> None:
        self._generators = [generator(seed, stream) for seed in seeds]
        self._shape = tuple(shape)

    def __call__(self, rounds: int) -> np.ndarray:
        drawn = np.empty((len(self._generators), rounds, *self._shape), dtype=np.float32)
        for source, own in zip(self._generators, drawn, strict=True):
            fill_normals(source, own)
        return drawn


class LawRows:
    """Vectors of laws that share one Gaussian stream: rounds -> (seeds * laws, rounds, M), float32.

    Args:
        seeds: the seeds.
        stream: the stream's name.
        ensemble_size: M.
        laws: one per chain of a seed.
        role: `distributions.reference` or `distributions.perturbation`.
        scale: factor of all of them.
    """

    def __init__(
        self,
        seeds: Sequence[int],
        stream: str,
        ensemble_size: int,
        laws: Sequence[str | distributions.Law],
        role: Callable[[str | distributions.Law, np.ndarray], np.ndarray],
        scale: float = 1.0,
    ) -> None:
        self._rows = [GaussianRows(seed, stream, ensemble_size) for seed in seeds]
        self._laws, self._role, self._scale = tuple(laws), role, scale

    def __call__(self, rounds: int) -> np.ndarray:
        drawn = (rows.take(rounds) for rows in self._rows)
        values = [self._scale * self._role(law, gaussian) for gaussian in drawn for law in self._laws]
        return np.stack(values).astype(np.float32)


class Directions:
    """Update directions of a continuous law: rounds -> (seeds, rounds, gradient steps, directions, M), float32."""

    def __init__(self, seeds: Sequence[int], law: distributions.Law, shape: tuple[int, int, int]) -> None:
        self._normals, self._law = Normals(seeds, "minibatch/directions", shape), law

    def __call__(self, rounds: int) -> np.ndarray:
        return distributions.reference(self._law, self._normals(rounds)).astype(np.float32, copy=False)
