"""Does an agent beat the best constant action? Paired by seed, as reward gained per round over the horizon."""

from __future__ import annotations

import pandas as pd
import xarray as xr

from ensemblepp.analysis.selection import agent_runs, best_constant, ensemble_sizes
from ensemblepp.analysis.statistics import mean_interval

NEEDS = {"variables": ["constant_regret"]}


def build(dataset: xr.Dataset) -> pd.DataFrame:
    """One row per environment, agent and ensemble size.

    The constant action is the best in hindsight for each seed, so the comparison favours it. The margin is its regret minus
    the agent's, divided by the horizon: expected reward per round, with the 95 % interval over seeds. The verdict is "better"
    or "worse" where the interval leaves out zero, otherwise "undecided".
    """
    rows = []
    for environment in dataset["environment"].values:
        constant = best_constant(dataset, environment).isel(time=-1)
        for agent in dataset["agent"].values:
            runs = agent_runs(dataset, agent)
            for size in ensemble_sizes(runs):
                final = runs["regret"].isel(time=-1).sel(environment=environment, ensemble_size=size)
                margin = ((constant - final) / dataset.attrs["horizon"]).dropna("seed").values
                mean, lower, upper = (float(value) for value in mean_interval(margin))
                rows.append(
                    {
                        "environment": str(dataset["title"].sel(environment=environment).values),
                        "agent": str(runs["label"].values),
                        "M": str(size) if size else "-",
                        "seeds": len(margin),
                        "regret": float(final.mean()),
                        "best constant": float(constant.mean()),
                        "margin per round": mean,
                        "95 % low": lower,
                        "95 % high": upper,
                        "verdict": "better" if lower > 0 else "worse" if upper < 0 else "undecided",
                    }
                )
    return pd.DataFrame(rows)
