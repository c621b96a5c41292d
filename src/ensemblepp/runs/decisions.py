"""What an agent thought of every post as it was shown: a run once more, round by round, with the choices that it made then.

Run files keep choices, but not what an agent thought of the actions. Playing the same seeds again gives it: the random streams
are the same, and choices are taken from the run file, so that rounding can turn none of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from ensemblepp.environments.contextual import Contextual
from ensemblepp.errors import ConfigError
from ensemblepp.runs.block import build
from ensemblepp.runs.fingerprint import fingerprint
from ensemblepp.specification import Block
from ensemblepp.storage.datasets import read_dataset, write_dataset

if TYPE_CHECKING:
    from ensemblepp.agents.neural.base import NeuralAgent

DIMENSIONS = ("seed", "round")


def decisions(block: Block, code: str, on_step: Callable[[int], None]) -> xr.Dataset:
    """Decisions of a finished block on rows of a table, kept in a file beside its run file; a second call reads it.

    Args:
        block: of a neural agent with one pair of laws that `runs.beliefs` knows, in an environment of two actions.
        code: the fingerprint of its code.
        on_step: told how many rounds, summed over seeds, are done.

    Returns:
        `item` and `action`, int (seed, round): the row that was shown and what was chosen; `value` (seed, round, action),
        `spread` and `chance` (seed, round), float32: what the agent thought before it learnt of the round
        (`runs.beliefs.Belief`).

    Raises:
        ConfigError: the agent has several pairs of laws.
    """
    run = Path(block.path)
    path = run.with_name(f"{run.stem}-decisions.nc")
    about = {"spec": json.dumps(block.spec, sort_keys=True), "code": f"{code} {fingerprint(__name__)}"}
    first, last = block.spec["seeds"]
    if path.exists():
        stored = read_dataset(path, holds=("spec", "code"))
        if {key: stored.attrs[key] for key in about} == about:
            on_step(block.spec["horizon"] * (last - first + 1))
            return stored
    environment, agent = build(block.spec)
    if len(agent.chains) > 1:
        raise ConfigError(f"agents: '{block.spec['agent']['name']}' has several pairs of laws: choose one with a single pair")
    played = _played(environment, agent, _choices(run), block.spec["horizon"], on_step)
    found = xr.Dataset(
        {name: ((*DIMENSIONS, "action_index")[: values.ndim], values) for name, values in played.items()},
        {"seed": list(range(first, last + 1))},
        about,
    )
    write_dataset(found, path)
    return found


def _choices(run: Path) -> np.ndarray | None:
    """The choices (seed, round) of a run file; None where there were too many to be kept."""
    stored = read_dataset(run)
    return stored["action"].isel(reference=0, perturbation=0).values if "action" in stored else None


def _played(
    environment: Contextual, agent: NeuralAgent, choices: np.ndarray | None, horizon: int, on_step: Callable[[int], None]
) -> dict[str, np.ndarray]:
    # here: it takes seconds to import, and what is stored needs none of it
    from ensemblepp.runs.beliefs import belief

    seeds, actions = len(agent.seeds), environment.fixed_actions
    item, action = (np.empty((seeds, horizon), np.int32) for _ in range(2))
    value = np.empty((seeds, horizon, actions), np.float32)
    spread, chance = (np.empty((seeds, horizon), np.float32) for _ in range(2))
    for step in range(horizon):
        offered = environment.decisions()
        item[:, step] = environment.offers()[:, 0] // actions
        choice = agent.act(offered)
        value[:, step], spread[:, step], chance[:, step] = belief(agent, agent.tensor(offered.features))
        if choices is not None:
            choice = offered.choose(choices[:, step, None])
        action[:, step] = choice.index[:, 0]
        agent.update(choice, environment.step(choice).reward)
        on_step(seeds)
    return {"item": item, "action": action, "value": value, "spread": spread, "chance": chance}
