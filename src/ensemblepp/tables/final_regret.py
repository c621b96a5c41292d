"""Cumulative regret at the horizon: mean with its 95 % interval over seeds, the median, and the excess over exact TS."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from ensemblepp.selection import agent_runs, ensemble_sizes
from ensemblepp.statistics import mean_interval

#: The yardstick of linear bandits, if the study has it.
YARDSTICK = "ts"


def build(dataset: xr.Dataset) -> pd.DataFrame:
    """One row per environment, agent and ensemble size; of several pairs of laws, the paper's (gaussian, sphere).

    Tails are heavy at small M, so the median stands beside the mean. Where the study has exact Thompson sampling, the
    excess over it is paired by seed: both met the same bandit and the same noise.
    """
    final = dataset.isel(time=-1)
    yardstick = agent_runs(final, YARDSTICK)["regret"].sel(ensemble_size=0) if YARDSTICK in final["agent"].values else None
    rows = []
    for environment in final["environment"].values:
        for agent in final["agent"].values:
            runs = agent_runs(final, agent)
            for size in ensemble_sizes(runs):
                regret = runs["regret"].sel(environment=environment, ensemble_size=size).dropna("seed")
                mean, lower, upper = (float(value) for value in mean_interval(regret.values))
                row = {
                    "environment": str(final["title"].sel(environment=environment).values),
                    "agent": str(runs["label"].values),
                    "M": str(size) if size else "-",
                    "seeds": regret.size,
                    "mean regret": mean,
                    "95 % low": lower,
                    "95 % high": upper,
                    "median": float(np.median(regret.values)),
                }
                if yardstick is not None:
                    excess = (regret - yardstick.sel(environment=environment)).values
                    bounds = mean_interval(excess) if agent != YARDSTICK else (np.nan,) * 3
                    row |= dict(zip(("over TS", "over TS low", "over TS high"), map(float, bounds), strict=True))
                rows.append(row)
    return pd.DataFrame(rows)
