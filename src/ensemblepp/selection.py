"""Parts of a study's dataset that figures and tables ask for by the same rules."""

from __future__ import annotations

import xarray as xr

#: The paper's own pair of laws for linear Ensemble++: Gaussian reference, sphere perturbation.
PAPER_LAWS = {"reference": "gaussian", "perturbation": "sphere"}


def agent_runs(dataset: xr.Dataset, agent: str) -> xr.Dataset:
    """One agent's runs without the dimensions reference and perturbation: the paper's pair if it ran that."""
    runs = dataset.sel(agent=agent)
    present = runs["regret"].notnull().any([name for name in runs["regret"].dims if name not in PAPER_LAWS])
    laws = {
        name: dataset[name].values[present.any([other for other in PAPER_LAWS if other != name]).values] for name in PAPER_LAWS
    }
    chosen = {name: PAPER_LAWS[name] if PAPER_LAWS[name] in values else values[0] for name, values in laws.items()}
    return runs.sel(chosen)


def ensemble_sizes(runs: xr.Dataset) -> list[int]:
    """Ensemble sizes that an agent ran with (0: it has no ensemble)."""
    others = [name for name in runs["regret"].dims if name != "ensemble_size"]
    return [int(size) for size in runs["ensemble_size"].values[runs["regret"].notnull().any(others).values]]


def best_constant(dataset: xr.Dataset, environment: str) -> xr.DataArray:
    """Regret (seed, time) of the constant action with the least regret at the horizon, chosen for each seed."""
    regret = dataset["constant_regret"].sel(environment=environment).dropna("action_index", how="all")
    return regret.isel(action_index=regret.isel(time=-1, drop=True).argmin("action_index"))
