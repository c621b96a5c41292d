"""Parts of a study's dataset that figures and tables ask for by the same rules."""

from __future__ import annotations

import xarray as xr

#: The paper's own pair of laws for linear Ensemble++: Gaussian reference, sphere perturbation.
PAPER_LAWS = {"reference": "gaussian", "perturbation": "sphere"}


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
