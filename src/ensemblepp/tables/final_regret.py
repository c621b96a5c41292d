"""Cumulative regret at the horizon: mean with its 95 % interval over seeds, and the median (tails are heavy at small M)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import xarray as xr

from ensemblepp.selection import agent_runs, ensemble_sizes
from ensemblepp.statistics import mean_interval


def build(dataset: xr.Dataset) -> pd.DataFrame:
    """One row per environment, agent and ensemble size; of several pairs of laws, the paper's (gaussian, sphere)."""
    rows = []
    for environment in dataset["environment"].values:
        for agent in dataset["agent"].values:
            runs = agent_runs(dataset, agent)
            for size in ensemble_sizes(runs):
                final = runs["regret"].isel(time=-1).sel(environment=environment, ensemble_size=size).dropna("seed").values
                mean, lower, upper = mean_interval(final)
                rows.append(
                    {
                        "environment": str(dataset["title"].sel(environment=environment).values),
                        "agent": str(runs["label"].values),
                        "M": str(size) if size else "-",
                        "seeds": len(final),
                        "mean regret": float(mean),
                        "95 % low": float(lower),
                        "95 % high": float(upper),
                        "median": float(np.median(final)),
                    }
                )
    return pd.DataFrame(rows)
