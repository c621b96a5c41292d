"""Regret at the horizon against the study's first agent, seed by seed: both met the same bandit and the same noise."""

from __future__ import annotations

import pandas as pd
import xarray as xr

from ensemblepp.analysis.selection import agent_runs, ensemble_sizes
from ensemblepp.analysis.statistics import summary

NEEDS = {"compared": True}


def build(dataset: xr.Dataset) -> pd.DataFrame:
    """One row per environment, other agent and ensemble size: its regret minus the first agent's.

    The first agent counts at the same ensemble size, or at its only one; an agent without an ensemble is compared with every
    ensemble size of the first. Positive differences say that the first agent is better.
    """
    final = dataset[["regret"]].isel(time=-1).astype(float)
    names = [str(name) for name in final["agent"].values]
    runs = {name: agent_runs(final, name) for name in names}
    sizes = {name: ensemble_sizes(runs[name]) for name in names}
    first, *others = names
    rows = []
    for environment in final["environment"].values:
        for name in others:
            for size, base in _pairs(sizes[name], sizes[first]):
                own = runs[name]["regret"].sel(environment=environment, ensemble_size=size)
                reference = runs[first]["regret"].sel(environment=environment, ensemble_size=base)
                difference = (own - reference).dropna("seed").values
                if not difference.size:
                    continue
                mean, lower, upper, median = summary(difference)
                rows.append(
                    {
                        "environment": str(final["title"].sel(environment=environment).values),
                        "agent": str(runs[name]["label"].values),
                        "M": str(size) if size else "-",
                        "against": f"{runs[first]['label'].values}" + (f", M = {base}" if base else ""),
                        "seeds": difference.size,
                        "difference": mean,
                        "95 % low": lower,
                        "95 % high": upper,
                        "median": median,
                        "share of the first's regret": mean / float(reference.mean("seed")),
                        "seeds where the first is better": int((difference > 0).sum()),
                    }
                )
    return pd.DataFrame(rows)


def _pairs(own: list[int], first: list[int]) -> list[tuple[int, int]]:
    """(own ensemble size, the first agent's) to compare."""
    if own == [0]:
        return [(0, size) for size in first]
    return [(size, size if size in first else first[0]) for size in own if size in first or len(first) == 1]
