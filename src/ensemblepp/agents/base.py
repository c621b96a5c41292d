"""What an agent offers: `act` and `update`, batched over seeds (axis 0) and chains within a seed (axis 1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ensemblepp.environments.base import Choice, Decisions, Environment

if TYPE_CHECKING:
    from ensemblepp.checkpoint import Checkpoint
    from ensemblepp.simulate import Trajectory


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


class DiagnosticAgent(Agent, Protocol):
    """An agent that also says something of itself, for run files."""

    def diagnostics(self) -> dict[str, np.ndarray]:
        """Name -> (seeds, chains) of the present state; always the same names, an empty mapping for none."""


class WholeRunAgent(Agent, Protocol):
    """An agent that can also play some environments whole, faster than round by round and with the same outcome."""

    def plays(self, environment: Environment) -> bool:
        """Whether `play` serves for `environment`."""

    def play(
        self,
        environment: Environment,
        horizon: int,
        time: np.ndarray,
        on_step: Callable[[int], None],
        checkpoint: Checkpoint | None,
    ) -> Trajectory:
        """Play `horizon` rounds of every seed; outputs at the rounds `time`; `on_step` hears of rounds done."""
