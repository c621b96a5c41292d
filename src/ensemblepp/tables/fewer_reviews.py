"""How many reviews an agent saves, seed by seed, against a fixed threshold and random review that are as accurate as it is."""

from __future__ import annotations

import pandas as pd
import xarray as xr

from ensemblepp.analysis import moderation
from ensemblepp.analysis.selection import agent_runs, ensemble_sizes
from ensemblepp.analysis.statistics import mean_interval

NEEDS = {"environments": ["moderation"], "variables": ["threshold_regret", "constant_regret"]}


def build(dataset: xr.Dataset) -> pd.DataFrame:
    """One row per environment, agent, ensemble size and baseline.

    Accuracy is 1 minus the share of rounds in which a free post was removed, reviewed the share of posts that were reviewed.
    Fewer reviews is 1 - reviews of the agent / reviews of the baseline, with its 95 % interval over seeds; below zero, the
    agent needs more of them. The baseline's accuracy at the horizon is the agent's, for each seed.
    """
    rows = []
    horizon = dataset.attrs["horizon"]
    for environment in dataset["environment"].values:
        for agent in dataset["agent"].values:
            runs = agent_runs(dataset, agent)
            for size in ensemble_sizes(runs):
                run = runs.sel(environment=environment, ensemble_size=size)
                if not run["regret"].notnull().any():
                    continue
                found = moderation.decisions(dataset, environment, run["regret"], run["optimal"])
                missed, reviews = (values.isel(time=-1, drop=True).transpose("seed") for values in (found.missed, found.taken))
                for name, of in moderation.BASELINES.items():
                    others = of(dataset, environment, missed).isel(time=-1, drop=True)
                    mean, lower, upper = (float(value) for value in mean_interval((1 - reviews / others).values))
                    rows.append(
                        {
                            "environment": str(dataset["title"].sel(environment=environment).values),
                            "agent": str(runs["label"].values),
                            "M": str(size) if size else "-",
                            "seeds": reviews.size,
                            "accuracy": float(1 - missed.mean() / horizon),
                            "reviewed": float(reviews.mean() / horizon),
                            "baseline": name,
                            "it reviews": float(others.mean() / horizon),
                            "fewer reviews": mean,
                            "95 % low": lower,
                            "95 % high": upper,
                        }
                    )
    return pd.DataFrame(rows)
