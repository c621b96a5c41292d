"""Parts of a study's dataset that figures and tables ask for by the same rules."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xarray as xr

from ensemblepp.analysis import needs, published
from ensemblepp.errors import ResultError
from ensemblepp.storage.datasets import read_dataset

#: The paper's own pair of laws for linear Ensemble++: Gaussian reference, sphere perturbation.
PAPER_LAWS = {"reference": "gaussian", "perturbation": "sphere"}

#: Bytes of a dataset that should be out of memory before the next is read: to look for such garbage takes a tenth of a second.
LARGE = 2**26


def agent_runs(dataset: xr.Dataset, agent: str) -> xr.Dataset:
    """One agent's runs without the dimensions reference and perturbation.

    Of the pairs of laws that the agent ran in an environment, the paper's if it is among them, otherwise the first.
    """
    runs = dataset.sel(agent=agent)
    factors = ("environment", *PAPER_LAWS)
    ran = runs["regret"].notnull().any([name for name in runs["regret"].dims if name not in factors])
    pairs = [_pair(ran.sel(environment=environment)) for environment in dataset["environment"].values]
    # one pair for each environment: indexing along `environment`, point by point
    points = {
        name: xr.DataArray(list(laws), dims="environment")
        for name, laws in zip(PAPER_LAWS, zip(*pairs, strict=True), strict=True)
    }
    return runs.sel(environment=xr.DataArray(dataset["environment"].values, dims="environment"), **points).drop_vars(PAPER_LAWS)


def _pair(ran: xr.DataArray) -> tuple[str, str]:
    """The pair of laws to show, of those at which `ran` (reference, perturbation) is true."""
    stacked = ran.stack(pair=tuple(PAPER_LAWS))
    pairs = list(stacked["pair"].values[stacked.values]) or list(stacked["pair"].values)
    paper = tuple(PAPER_LAWS.values())
    return paper if paper in pairs else pairs[0]


def ensemble_sizes(runs: xr.Dataset) -> list[int]:
    """Ensemble sizes that an agent ran with (0: it has no ensemble)."""
    others = [name for name in runs["regret"].dims if name != "ensemble_size"]
    return [int(size) for size in runs["ensemble_size"].values[runs["regret"].notnull().any(others).values]]


def best_constant(dataset: xr.Dataset, environment: str) -> xr.DataArray:
    """Regret (seed, time) of the constant action with the least regret at the horizon, chosen for each seed."""
    regret = dataset["constant_regret"].sel(environment=environment).dropna("action_index", how="all")
    return regret.isel(action_index=regret.isel(time=-1, drop=True).argmin("action_index"))


def environment_kinds(dataset: xr.Dataset) -> dict[str, str]:
    """Kind of every environment of a study's dataset, by name."""
    return {spec["environment"]["name"]: spec["environment"]["kind"] for spec in json.loads(dataset.attrs["specs"])}


def read_study(path: str | Path, title: str, wanted: Mapping[str, Any]) -> xr.Dataset:
    """A study's dataset from its file, which has what a figure or table needs; a published one will do (`published`).

    Args:
        path: the netCDF file.
        title: what is made of it, as "figure 'training'".
        wanted: what that needs (`needs`).

    Raises:
        ResultError: the file is missing or damaged, is no study's dataset, or does not have what is needed.
    """
    dataset = published.restored(read_dataset(path))
    if "spec" in dataset.attrs:
        raise ResultError(f"{path}: a run file: {title} is made of a study's dataset, as results/<scale>/datasets/uci.nc")
    expected = {"regret": dataset.data_vars, "title": dataset.coords, "label": dataset.coords, "seed": dataset.dims}
    expected |= dict.fromkeys(("study", "horizon", "seeds", "scale", "specs"), dataset.attrs)
    missing = [name for name, place in expected.items() if name not in place]
    if missing:
        raise ResultError(f"{path}: not a study's dataset (it has no '{missing[0]}'); `ensemblepp aggregate` makes one")
    for environment in dataset["environment"].values:
        if not dataset["regret"].sel(environment=environment).notnull().any():
            raise ResultError(f"{path}: environment '{environment}' has no run; make the dataset anew")
    fault = next(needs.unmet(wanted, had(dataset)), None)
    if fault:
        raise ResultError(f"{path}: {title} {fault}")
    return dataset


def had(dataset: xr.Dataset) -> needs.Had:
    """What a study's dataset has, of all that figures and tables may need."""
    specs = json.loads(dataset.attrs["specs"])
    kinds = {spec["agent"]["name"]: spec["agent"]["kind"] for spec in specs}
    # pairs lie in another agent's runs
    agents = {str(name): kinds.get(str(name), "pair") for name in dataset["agent"].values}
    environments = [str(name) for name in dataset["environment"].values]
    variables = {
        environment: [
            name
            for name, values in dataset.data_vars.items()
            if "environment" in values.dims and values.sel(environment=environment).notnull().any()
        ]
        for environment in environments
    }
    all_kinds = environment_kinds(dataset)
    ran = dataset["regret"].sel(ensemble_size=dataset["ensemble_size"] > 0).notnull().any()
    return needs.Had({name: all_kinds[name] for name in environments}, agents, variables, bool(ran))
