"""How an agent's regret depends on how many settings were tried: the expected best of k of them.

The best is chosen on some tuning seeds and valued on another, so that a setting that was lucky where it was chosen gains
nothing.
"""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy import special

from ensemblepp.analysis.selection import agent_runs, ensemble_sizes
from ensemblepp.analysis.setting_names import setting_of
from ensemblepp.errors import ResultError


def chances(count: int) -> np.ndarray:
    """Probability that the best of k of `count` settings, drawn without replacement, is the i-th best of all.

    C(count - i, k - 1) / C(count, k): it is drawn, and the k - 1 others are among the count - i that are worse.

    Returns:
        Array (k, i), both from 1 to count; rows sum to one.
    """
    k, i = np.arange(1, count + 1)[:, None], np.arange(1, count + 1)
    return special.comb(count - i, k - 1) / special.comb(count, k)


def expected_best(chosen_by: np.ndarray, valued_by: np.ndarray) -> np.ndarray:
    """Expected value of the setting that is chosen among k of n, for k = 1 to n.

    Args:
        chosen_by: (n,) what is least for the setting that is chosen; of equal ones the first.
        valued_by: (n,) what a setting is worth.

    Returns:
        Array (n,), by k; of equal arguments the expected minimum of k of n values.
    """
    order = np.argsort(chosen_by, kind="stable")
    return chances(len(order)) @ np.asarray(valued_by, dtype=float)[order]


def settings(dataset: xr.Dataset) -> dict[str, list[str]]:
    """Agents of a study whose settings were played, each with the names of these."""
    found: dict[str, list[str]] = {}
    for name in map(str, dataset["agent"].values):
        if setting := setting_of(name):
            found.setdefault(setting[0], []).append(name)
    if not found:
        raise ResultError("needs a study that plays settings: its grid has `settings` in config/studies.yaml")
    return found


def final_regret(dataset: xr.Dataset, agent: str, environment: str) -> xr.DataArray:
    """Regret (seed) at the horizon of an agent at its one ensemble size; NaN where it was not played."""
    runs = agent_runs(dataset[["regret"]].isel(time=[-1]), agent)
    sizes = ensemble_sizes(runs)
    size = sizes[0] if sizes else runs["ensemble_size"].values[0]
    return runs["regret"].sel(environment=environment, ensemble_size=size).isel(time=0, drop=True).astype(float)


def budget_curve(dataset: xr.Dataset, names: list[str], environment: str) -> xr.DataArray | None:
    """Expected regret (seed, time) of the best of k settings at each seed, chosen by the mean over the others; `time` is k.

    None if the settings were not played in the environment.
    """
    regret = np.stack([final_regret(dataset, name, environment).values for name in names])
    if np.isnan(regret).any():
        return None
    seeds = range(regret.shape[1])
    curves = [expected_best(np.delete(regret, seed, axis=1).mean(axis=1), regret[:, seed]) for seed in seeds]
    return xr.DataArray(curves, dims=("seed", "time"), coords={"time": np.arange(1, len(names) + 1)})


def best(dataset: xr.Dataset, names: list[str], environment: str) -> tuple[int, float] | None:
    """(position, mean regret) of the setting with the least mean over all tuning seeds; None if they were not played there."""
    means = [float(final_regret(dataset, name, environment).mean("seed", skipna=False)) for name in names]
    return None if np.isnan(means).any() else (int(np.argmin(means)), float(np.min(means)))
