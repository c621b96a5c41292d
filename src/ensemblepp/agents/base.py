"""What an agent offers: `act` and `update`, batched over seeds (axis 0) and chains within a seed (axis 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from ensemblepp.environments.base import Choice, Decisions


class Agent(Protocol):
    """An agent for several seeds at once.

    A class is constructed as `Agent(seeds, dimension=d, ensemble_size=M, horizon=T, device="cpu", **options)`, where
    `options` are its hyper-parameters as the configuration gives them.
    """

    seeds: Sequence[int]
    #: One (reference, perturbation) pair of law names per chain; ("none", "none") where an agent has no such laws.
    chains: Sequence[tuple[str, str]]

    def act(self, decisions: Decisions) -> Choice:
        """Choose one action for every seed and chain."""

    def update(self, choice: Choice, reward: np.ndarray) -> None:
        """Learn from the rewards, shape (seeds, chains), of the choices made by the last `act`."""
