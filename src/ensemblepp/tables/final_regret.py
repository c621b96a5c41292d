"""Cumulative regret at the horizon: mean with its 95 % interval over seeds, the median, and the excess over exact TS."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from ensemblepp.analysis.selection import agent_runs, ensemble_sizes
from ensemblepp.analysis.statistics import YARDSTICK, excess_over_yardstick, summary


def build(dataset: xr.Dataset) -> pd.DataFrame:
    """One row per environment, agent and ensemble size; of several pairs of laws, the paper's (gaussian, sphere).

    Tails are heavy at small M, so the medians stand beside the means. Where the study has exact Thompson sampling, the
    excess over it is paired by seed: both met the same bandit and the same noise.
    """
    final = dataset[["regret"]].isel(time=-1).astype(float)
    runs = {str(agent): agent_runs(final, agent) for agent in final["agent"].values}
    # the yardstick has no excess over itself
    compared = [agent for agent in runs if agent != YARDSTICK] if YARDSTICK in runs else []
    excess = {agent: excess_over_yardstick(dataset, agent) for agent in compared}
    rows = []
    for environment in final["environment"].values:
        for agent, of_agent in runs.items():
            for size in ensemble_sizes(of_agent):
                place = {"environment": environment, "ensemble_size": size}
                regret = of_agent["regret"].sel(place).dropna("seed").values
                row = {
                    "environment": str(final["title"].sel(environment=environment).values),
                    "agent": str(of_agent["label"].values),
                    "M": str(size) if size else "-",
                    "seeds": regret.size,
                }
                row |= dict(zip(("mean regret", "95 % low", "95 % high", "median"), summary(regret), strict=True))
                if YARDSTICK in runs:
                    over = excess[agent].sel(place).values if agent in excess else np.array([])
                    row |= dict(zip(("over TS", "over TS low", "over TS high", "over TS median"), summary(over), strict=True))
                rows.append(row)
    return pd.DataFrame(rows)
