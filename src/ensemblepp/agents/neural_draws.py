"""Random numbers of neural agents, drawn ahead for many rounds: callables, rounds -> (seeds or chains, rounds, ...).

The numbers of a round do not depend on how many rounds are asked for at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensemblepp.streams import generator


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
        drawn = [source.standard_normal((rounds, *self._shape), dtype=np.float32) for source in self._generators]
        return np.stack(drawn)
