"""Does an agent beat the best constant action? Paired by seed, as reward gained per round over the horizon."""

from __future__ import annotations

import pandas as pd
import xarray as xr

from ensemblepp.analysis.moderation import share_of_the_way
from ensemblepp.analysis.selection import agent_runs, best_constant, ensemble_sizes
from ensemblepp.analysis.statistics import mean_interval

NEEDS = {"variables": ["constant_regret"]}


def build(dataset: xr.Dataset) -> pd.DataFrame:
    """One row per environment, agent and ensemble size.

    The constant action is the best in hindsight for each seed, so the comparison favours it. The margin is its regret minus
    the agent's, divided by the horizon: expected reward per round, with the 95 % interval over seeds. The verdict is "better"
    or "worse" where the interval leaves out zero, otherwise "undecided". Where there is a supervised ceiling, its regret stands
    there too, and which share of the way from the constant action to it an agent went, paired by seed with its interval.
    """
    rows = []
    ceilings = "ceiling_regret" in dataset
    for environment in dataset["environment"].values:
        constant = best_constant(dataset, environment).isel(time=-1)
        for agent in dataset["agent"].values:
            runs = agent_runs(dataset, agent)
            for size in ensemble_sizes(runs):
                final = runs["regret"].isel(time=-1).sel(environment=environment, ensemble_size=size)
                margin = ((constant - final) / dataset.attrs["horizon"]).dropna("seed").values
                mean, lower, upper = (float(value) for value in mean_interval(margin))
                row: dict[str, object] = {
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
                if ceilings:
                    share = share_of_the_way(dataset, environment, final, constant).transpose("seed").values
                    ceiling = dataset["ceiling_regret"].sel(environment=environment).isel(time=-1)
                    names = ("share of the way", "share 95 % low", "share 95 % high")
                    row |= {"ceiling": float(ceiling.mean())}
                    row |= dict(zip(names, map(float, mean_interval(share)), strict=True))
                rows.append(row)
    return pd.DataFrame(rows)
