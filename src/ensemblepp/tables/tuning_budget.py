"""Regret by the number of settings that were tried, and the setting that is best of all (not in the paper)."""

from __future__ import annotations

import json

import pandas as pd
import xarray as xr

from ensemblepp.analysis import tuning
from ensemblepp.analysis.selection import agent_runs
from ensemblepp.analysis.statistics import mean_interval


def build(dataset: xr.Dataset) -> pd.DataFrame:
    """One row per environment, agent and number of settings, in powers of two; k = "as is" is the agent untuned.

    `explored` is the share of rounds in which the agent did not take what it held to be best, of the agent untuned and of its
    best setting; it tells of an agent that hardly explores.
    """
    options = {spec["agent"]["name"]: spec["agent"]["options"] for spec in json.loads(dataset.attrs["specs"])}
    rows = []
    for environment in map(str, dataset["environment"].values):
        title = str(dataset["title"].sel(environment=environment).values)
        for agent, names in tuning.settings(dataset).items():
            curve = tuning.budget_curve(dataset, names, environment)
            best = tuning.best(dataset, names, environment)
            if curve is None or best is None:
                continue
            chosen = names[best[0]]
            differs = {key: value for key, value in options[chosen].items() if options[agent].get(key) != value}
            played = {"as is": tuning.final_regret(dataset, agent, environment).values}
            counts = [2**power for power in range(len(names).bit_length())]
            played |= {str(k): curve.sel(time=k).values for k in dict.fromkeys([*counts, len(names)])}
            for k, regret in played.items():
                mean, low, high = (float(value) for value in mean_interval(regret))
                last = k == str(len(names))
                shown = agent if k == "as is" else chosen
                rows.append(
                    {
                        "environment": title,
                        "agent": str(dataset["label"].sel(agent=agent).values),
                        "settings tried": k,
                        "seeds": len(regret),
                        "regret": mean,
                        "95 % low": low,
                        "95 % high": high,
                        "explored": _explored(dataset, shown, environment) if last or k == "as is" else float("nan"),
                        "best setting": ", ".join(f"{key} {value}" for key, value in differs.items()) if last else "-",
                    }
                )
    return pd.DataFrame(rows)


def _explored(dataset: xr.Dataset, agent: str, environment: str) -> float:
    """Share of exploring rounds, as far as agents say it."""
    if "explored" not in dataset:
        return float("nan")
    runs = agent_runs(dataset[["regret", "explored"]].isel(time=[-1]), agent)
    return float(runs["explored"].sel(environment=environment).mean()) / dataset.attrs["horizon"]
