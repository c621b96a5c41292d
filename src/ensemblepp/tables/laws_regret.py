"""Regret at the horizon for every pair of laws and ensemble size, and its excess over exact TS (paper, linear heat-maps)."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import xarray as xr

from ensemblepp.analysis.selection import agent_runs
from ensemblepp.analysis.statistics import YARDSTICK, summary

FACTORS = ("ensemble_size", "reference", "perturbation")


def build(dataset: xr.Dataset) -> pd.DataFrame:
    """One row per environment, agent, ensemble size, reference and perturbation law.

    Means with 95 % intervals over seeds, beside medians. Where the study has exact Thompson sampling, the excess over it is
    paired by seed: both met the same bandit and the same noise.
    """
    final = dataset[["regret"]].isel(time=-1).astype(float)
    regret = final["regret"].transpose("environment", "agent", *FACTORS, "seed").values
    compared = YARDSTICK in final["agent"].values
    if compared:
        of_yardstick = agent_runs(final, YARDSTICK)["regret"].sel(ensemble_size=0).transpose("environment", "seed").values
    cells = list(itertools.product(*(final[name].values for name in FACTORS)))
    rows = []
    for place, environment in enumerate(final["title"].values):
        for agent, label in enumerate(final["label"].values):
            for (size, *laws), values in zip(cells, regret[place, agent].reshape(len(cells), -1), strict=True):
                if np.isnan(values).all():
                    continue
                row = {
                    "environment": str(environment),
                    "agent": str(label),
                    "M": str(size) if size else "-",
                    "reference": laws[0].replace("none", "-"),
                    "perturbation": laws[1].replace("none", "-"),
                    "seeds": np.count_nonzero(~np.isnan(values)),
                }
                row |= dict(zip(("mean regret", "95 % low", "95 % high", "median"), summary(values), strict=True))
                if compared:
                    over = values - of_yardstick[place] if final["agent"].values[agent] != YARDSTICK else values * np.nan
                    row |= dict(zip(("over TS", "over TS low", "over TS high", "over TS median"), summary(over), strict=True))
                rows.append(row)
    return pd.DataFrame(rows)
