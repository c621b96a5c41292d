"""Synthetic studies whose truth is known, as `aggregate` would write them."""

from __future__ import annotations

import json

import numpy as np
import xarray as xr

#: Rounds that are stored.
TIME = np.array([*range(1, 11), 25, 50, 75, 100])


def study(curves: dict[tuple, np.ndarray], **attributes: object) -> xr.Dataset:
    """A dataset from the final regret, (seeds,), or the curves, (seeds, times), of each (environment, agent, size, laws...).

    Final values grow evenly with the rounds. Laws are those of zeta and z, "none" if they are left out.
    """
    keys = [(*key, "none", "none")[:5] if len(key) == 3 else key for key in curves]
    names = ("environment", "agent", "ensemble_size", "reference", "perturbation")
    coordinates = {name: list(dict.fromkeys(key[place] for key in keys)) for place, name in enumerate(names)}
    coordinates["ensemble_size"] = sorted(coordinates["ensemble_size"])
    seeds = len(next(iter(curves.values())))
    shape = [len(values) for values in coordinates.values()]
    regret = xr.DataArray(np.full([*shape, seeds, len(TIME)], np.nan), {**coordinates, "seed": range(seeds), "time": TIME})
    for key, values in zip(keys, curves.values(), strict=True):
        grown = np.multiply.outer(values, TIME / TIME[-1]) if np.ndim(values) == 1 else values
        regret.loc[dict(zip(names, key, strict=True))] = grown
    agents, environments = coordinates["agent"], coordinates["environment"]
    specs = [
        {
            "environment": {"name": environment, "kind": "quadratic", "options": {"dimension": 100}},
            "agent": {"name": agent, "kind": "neural_ensemblepp", "options": {"loss": "squared", "hidden": [64, 64]}},
            "seeds": [0, seeds - 1],
        }
        for environment in environments
        for agent in agents
    ]
    told = {"study": "small", "horizon": int(TIME[-1]), "specs": json.dumps(specs)}
    return xr.Dataset({"regret": regret, "optimal": regret / 2}, attrs=told | attributes).assign_coords(
        title=("environment", [name.title() for name in environments]), label=("agent", [name.upper() for name in agents])
    )


def evidence(of: list, against: list = (), **changes: object) -> dict:
    """The evidence of a claim, as the configuration gives it; an arm may be an agent's name alone."""
    arms = [[{"agent": arm} if isinstance(arm, str) else arm for arm in group] for group in (of, against)]
    asked = {"study": "small", "environments": [], "sizes": [8], "horizon": 100, "seeds": 10}
    return asked | {"of": arms[0], "against": arms[1]} | changes


def rule(statistic: str, **changes: object) -> dict:
    return {"statistic": statistic, "measure": "regret", "quarter": 1, "at_least": None, "at_most": None} | changes
