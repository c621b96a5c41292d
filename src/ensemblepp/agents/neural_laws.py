"""Vectors of the laws of Ensemble++, drawn ahead for many rounds, in the form of `neural_draws`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ensemblepp import distributions
from ensemblepp.agents.neural_draws import Normals
from ensemblepp.streams import GaussianRows


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
        laws: Sequence[str],
        role: Callable[[str, np.ndarray], np.ndarray],
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
        return distributions.reference(self._law, self._normals(rounds))
