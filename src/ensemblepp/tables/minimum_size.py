"""Ensemble size at which an agent matches exact TS, by dimension and number of actions, and how it grows (paper, Figure 2b)."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from ensemblepp.analysis.selection import agent_runs, ensemble_sizes
from ensemblepp.analysis.statistics import (
    SIZE_RULES,
    YARDSTICK,
    excess_over_yardstick,
    growth_exponents,
    minimum_size,
    percentile_interval,
    resampled_means,
)

NEEDS = {"agents": ["ts"], "ensembles": True, "environments": ["linear_finite", "linear_sphere"]}


def build(dataset: xr.Dataset) -> pd.DataFrame:
    """One row per agent with an ensemble and environment: M by the paper's two-sided rule and by the one-sided rule.

    Each with its 95 % bootstrap interval over seeds, and the mean excess over TS per round at that M with its standard error.
    An agent's last rows are the exponents a and b of M = c d^a |X|^b, fitted to its M above, with bootstrap intervals. Seeds
    are resampled together in all environments and at all M.

    Raises:
        ResultError: the study has no Thompson sampling.
    """
    options = {spec["environment"]["name"]: spec["environment"]["options"] for spec in json.loads(dataset.attrs["specs"])}
    environments = [options[name] for name in dataset["environment"].values]
    rows = []
    for agent in dataset["agent"].values:
        sizes = ensemble_sizes(agent_runs(dataset[["regret"]].isel(time=-1), agent))
        if agent == YARDSTICK or sizes == [0]:
            continue
        excess = (excess_over_yardstick(dataset, agent) / dataset.attrs["horizon"]).sel(ensemble_size=sizes)
        complete = excess.transpose("seed", "environment", "ensemble_size").dropna("seed").values
        titles = [str(title) for title in dataset["title"].values]
        common = {"agent": str(dataset["label"].sel(agent=agent).values), "seeds": len(complete)}
        rows += [{**row, **common} for row in _sizes(complete, sizes, titles, environments)]
        rows += [{**row, **common} for row in _exponents(complete, sizes, environments)]
    first = ["environment", "agent", "d", "actions", "seeds"]
    table = pd.DataFrame(rows)
    return table[[*first, *(name for name in table.columns if name not in first)]]


def _sizes(
    excess: np.ndarray, sizes: list[int], titles: list[str], environments: list[dict[str, Any]]
) -> list[dict[str, object]]:
    """A row for each environment; `excess` has the shape (seeds, environments, sizes)."""
    rows: list[dict[str, object]] = [
        {"environment": title, "d": str(options["dimension"]), "actions": str(options.get("actions", "-"))}
        for title, options in zip(titles, environments, strict=True)
    ]
    shown = [*map(str, sizes), f"> {sizes[-1]}"]
    for rule in SIZE_RULES:
        for place, (row, positions) in enumerate(zip(rows, zip(*minimum_size(excess, rule), strict=True), strict=True)):
            row |= dict(zip(_columns(rule), (shown[position] for position in positions), strict=False))
            at = excess[:, place, positions[0]] if positions[0] < len(sizes) else np.full(2, np.nan)
            error = at.std(ddof=1) / np.sqrt(len(at)) if len(at) > 1 else np.nan
            row |= {f"{rule}: excess": float(at.mean()), f"{rule}: s.e.": float(error)}
    return rows


def _exponents(excess: np.ndarray, sizes: list[int], environments: list[dict[str, Any]]) -> list[dict[str, object]]:
    """A row for each of d and |X| that differs between environments; a size beyond the grid counts as twice the largest."""
    factors = {"d": [options["dimension"] for options in environments]}
    if all("actions" in options for options in environments):
        factors["|X|"] = [options["actions"] for options in environments]
    factors = {name: values for name, values in factors.items() if len(set(values)) > 1}
    rows: list[dict[str, object]] = [{"environment": f"exponent of {name}", "d": "-", "actions": "-"} for name in factors]
    if not rows:
        return rows
    scale = np.array([*sizes, 2 * sizes[-1]])
    samples = resampled_means(excess)
    for rule, decide in SIZE_RULES.items():
        of_mean, of_samples = (
            growth_exponents(scale[decide(means)], np.column_stack(list(factors.values())))
            for means in (excess.mean(axis=0), samples)
        )
        for row, numbers in zip(rows, zip(of_mean, *percentile_interval(of_samples), strict=True), strict=True):
            row |= dict(zip(_columns(rule), map(float, numbers), strict=True))
    return rows


def _columns(rule: str) -> list[str]:
    return [f"{rule}: M", f"{rule}: low", f"{rule}: high"]
