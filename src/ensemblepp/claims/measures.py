"""What evidence asks of a dataset: an arm's numbers, seed by seed; and what is said where the dataset has none.

An arm is an agent with, where stated, its laws (the mean over those listed, seed by seed) and its own ensemble size:

    {"agent": "linear-ensemble++", "references": ["gaussian"], "perturbations": ["sphere", "cube"], "size": 4}
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from ensemblepp.analysis.moderation import decisions, wording
from ensemblepp.analysis.published import STAND_INS
from ensemblepp.analysis.selection import agent_runs, ensemble_sizes, environment_kinds
from ensemblepp.claims.verdicts import NotRun

Arm = Mapping[str, Any]

#: What is compared: a name of the configuration -> the dataset's variable, and whether it is a share of the rounds.
MEASURES = {
    "regret": ("regret", False),
    "accuracy": ("optimal", True),
    "reviews": ("regret", False),
    "seconds": ("seconds", False),
}

LAWS = {"references": "reference", "perturbations": "perturbation"}


def final(dataset: xr.Dataset, arm: Arm, environment: str, size: int, measure: str) -> xr.DataArray:
    """A measure at the horizon, (seed,) float64.

    Raises:
        NotRun: the dataset does not have it.
    """
    variable, share = MEASURES[measure]
    if measure == "reviews":
        return _reviews(dataset, arm, environment, size)
    values = _runs(dataset, arm, environment, size, variable, last=True)
    return values / dataset.attrs["horizon"] if share else values


def curves(dataset: xr.Dataset, arm: Arm, environment: str, size: int, variable: str) -> xr.DataArray:
    """A cumulative variable over the rounds, (seed, time) float64.

    Raises:
        NotRun: the dataset does not have it.
    """
    if variable == "regret" and STAND_INS in dataset.attrs:
        raise NotRun(f"study '{dataset.attrs['study']}' is published without single seeds before the end")
    return _runs(dataset, arm, environment, size, variable).transpose("seed", "time")


def paired(above: xr.DataArray, below: xr.DataArray) -> tuple[np.ndarray, np.ndarray]:
    """Two arms' numbers at the seeds that both were run with."""
    both = xr.align(above.dropna("seed"), below.dropna("seed"), join="inner")
    return both[0].values, both[1].values


def own_size(dataset: xr.Dataset, arm: Arm, size: int) -> int:
    """The ensemble size at which an arm is looked up: its own, or `size`; 0 for an agent without an ensemble."""
    require(dataset, "agent", arm["agent"])
    sizes = ensemble_sizes(dataset[["regret"]].isel(time=-1).sel(agent=[arm["agent"]]))
    if sizes == [0]:
        return 0
    wanted = arm.get("size") or size
    if wanted not in sizes:
        raise NotRun(f"agent '{arm['agent']}' was run with M = {', '.join(map(str, sizes))}, not with {wanted}")
    return wanted


def shown(dataset: xr.Dataset, arm: Arm) -> str:
    """An arm in words."""
    label = str(dataset["label"].sel(agent=arm["agent"]).values)
    laws = ["/".join(arm[key]) if len(arm[key]) < 3 else f"{len(arm[key])} {key}" for key in LAWS if arm.get(key)]
    return f"{label} ({', '.join(laws)})" if laws else label


def titled(dataset: xr.Dataset, environment: str, *sizes: int) -> str:
    """An environment, and the ensemble sizes that are compared there."""
    title = str(dataset["title"].sel(environment=environment).values)
    ensembles = list(dict.fromkeys(size for size in sizes if size))
    return f"{title}, M = {' and '.join(map(str, ensembles))}" if ensembles else title


def chosen(dataset: xr.Dataset, environments: Sequence[str]) -> list[str]:
    """The environments that are named, or all of the dataset's where none is.

    Raises:
        NotRun: one was not run.
    """
    for name in environments:
        require(dataset, "environment", name)
    return list(environments) or [str(name) for name in dataset["environment"].values]


def require(dataset: xr.Dataset, dimension: str, name: str) -> None:
    """NotRun unless a dataset has an environment or agent."""
    if name not in dataset[dimension].values:
        raise NotRun(f"study '{dataset.attrs['study']}' has no {dimension} '{name}' at this scale")


def _reviews(dataset: xr.Dataset, arm: Arm, environment: str, size: int) -> xr.DataArray:
    """Human reviews over the horizon, (seed,), which follow from regret and right decisions."""
    require(dataset, "environment", environment)
    if environment_kinds(dataset)[environment] != "moderation" or not wording(dataset, environment).reviews:
        raise NotRun(f"environment '{environment}' has no human reviews")
    sums = (_runs(dataset, arm, environment, size, name) for name in ("regret", "optimal"))
    return decisions(dataset, environment, *sums).taken.isel(time=-1, drop=True)


def _runs(dataset: xr.Dataset, arm: Arm, environment: str, size: int, variable: str, *, last: bool = False) -> xr.DataArray:
    require(dataset, "environment", environment)
    place = own_size(dataset, arm, size)
    if variable not in dataset:
        raise NotRun(f"study '{dataset.attrs['study']}' has no variable '{variable}'")
    small = dataset[list(dict.fromkeys(["regret", variable]))].sel(environment=[environment], agent=[arm["agent"]])
    small = small.sel(ensemble_size=[place])
    small = (small.isel(time=-1, drop=True) if last else small).astype(float)
    stated = {dimension: list(arm[key]) for key, dimension in LAWS.items() if arm.get(key)}
    if stated:
        missing = [law for name, laws in stated.items() for law in laws if law not in small[name].values]
        if missing:
            raise NotRun(f"agent '{arm['agent']}' was not run with the law {missing[0]}")
        values = small[variable].sel(stated).squeeze(["environment", "agent", "ensemble_size"], drop=True)
        # a pair that was not run makes the whole NaN: the mean is over those listed, or none
        values = values.mean(["reference", "perturbation"], skipna=False)
    else:
        values = agent_runs(small, arm["agent"])[variable].squeeze(["environment", "ensemble_size"], drop=True)
    if not values.notnull().any():
        raise NotRun(f"agent '{arm['agent']}' was not run in environment '{environment}'")
    if variable == "seconds":
        # seeds of one block share a clock: a block counts once
        values = values.sel(seed=sorted({spec["seeds"][0] for spec in json.loads(dataset.attrs["specs"])}))
    return values.dropna("seed", how="all")
