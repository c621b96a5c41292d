"""What a user writes, for the type checker alone (`make lint`): the public names give the types that their docstrings say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, assert_type

import numpy as np
import pandas as pd
import xarray as xr
from matplotlib.figure import Figure

from ensemblepp import (
    Agent,
    Choice,
    Decisions,
    Environment,
    LinearEnsemblePlusPlus,
    Outcome,
    compare,
    generator,
    simulate,
)
from ensemblepp.runs.accessor import BanditAccessor
from ensemblepp.testing import check_agent, check_environment
from ensemblepp.trajectory import Trajectory


class Mine:
    """An agent of the user's."""

    chains: Sequence[tuple[str, str]] = (("none", "none"),)

    def __init__(self, seeds: Sequence[int]) -> None:
        self.seeds = seeds

    def act(self, decisions: Decisions) -> Choice:
        return decisions.choose(np.zeros((len(self.seeds), 1), dtype=int))

    def update(self, choice: Choice, reward: np.ndarray) -> None:
        pass


class Frozen:
    """Another, whose attributes are as narrow as its author likes: constants and properties."""

    chains: Final = (("none", "none"),)

    def __init__(self, seeds: Sequence[int]) -> None:
        self._seeds = tuple(seeds)

    @property
    def seeds(self) -> tuple[int, ...]:
        return self._seeds

    def act(self, decisions: Decisions) -> Choice:
        return decisions.choose(np.zeros((len(self.seeds), 1), dtype=int))

    def update(self, choice: Choice, reward: np.ndarray) -> None:
        pass


class Derived(Agent):
    """Another, which says what it is an agent of."""

    seeds: tuple[int, ...]
    chains = (("none", "none"),)

    def __init__(self, seeds: Sequence[int]) -> None:
        self.seeds = tuple(seeds)

    def act(self, decisions: Decisions) -> Choice:
        return decisions.choose(np.zeros((len(self.seeds), 1), dtype=int))

    def update(self, choice: Choice, reward: np.ndarray) -> None:
        pass


class Slots:
    """An environment of the user's: two actions, the second of which pays."""

    dimension: Literal[2] = 2
    fixed_actions: Literal[2] = 2

    def __init__(self, seeds: Sequence[int]) -> None:
        self.seeds = tuple(seeds)

    def decisions(self) -> Decisions:
        return Decisions(np.tile(np.eye(2), (len(self.seeds), 1, 1)))

    def mean_rewards(self) -> np.ndarray:
        return np.tile([0.0, 1.0], (len(self.seeds), 1))

    def step(self, choice: Choice) -> Outcome:
        reward = choice.features[..., 1]
        return Outcome(reward, 1.0 - reward)


def every_name(environment: Environment, outcome: Outcome) -> None:
    agents: list[Agent] = [Mine([0]), Frozen([0]), Derived([0])]
    environments: list[Environment] = [environment, Slots([0])]
    assert_type(simulate(environments[0], agents[0], 10), Trajectory)
    assert_type(outcome.reward, np.ndarray)
    assert_type(generator(0, "agent"), np.random.Generator)
    linear = LinearEnsemblePlusPlus([0], references=["gaussian"], perturbations=["sphere"], dimension=3, ensemble_size=2)
    assert_type(linear.act(environment.decisions()), Choice)
    found = compare(["ts", Mine], "finite-d10-100", 100, seeds=[1, 2], ensemble_sizes=[2, 4])
    assert_type(found, xr.Dataset)
    shown = BanditAccessor(found)
    assert_type(shown.differences(), pd.DataFrame)
    assert_type(shown.plot(), Figure)
    check_agent(Mine)
    check_agent(Frozen)
    check_agent(Derived)
    check_environment(Slots)
