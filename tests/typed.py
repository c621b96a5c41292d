"""What a user writes, for the type checker alone (`make types`): the public names give the types that their docstrings say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_type

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
from ensemblepp.testing import check_agent
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


def every_name(environment: Environment, outcome: Outcome) -> None:
    mine: Agent = Mine([0])
    assert_type(simulate(environment, mine, 10), Trajectory)
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
