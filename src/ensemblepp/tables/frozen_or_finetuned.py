"""What training the language model is worth: regret with it frozen minus with it fine-tuned, seed by seed."""

from __future__ import annotations

import pandas as pd
import xarray as xr

from ensemblepp.analysis import backbones
from ensemblepp.analysis.statistics import mean_interval

NEEDS = {
    "environments": ["moderation", "moderation_tokens"],
    "agent_kinds": ["text_greedy", "text_ensemblepp", "text_ensembleplus"],
    "variables": ["constant_regret"],
}


def build(dataset: xr.Dataset) -> pd.DataFrame:
    """One row per language model, agent and ensemble size.

    Both agents of a row met the same posts in the same order. The difference is the frozen one's regret minus the fine-tuned
    one's at the horizon, with the 95 % interval over seeds: above zero fine-tuning is better. The verdict is "fine-tuned" or
    "frozen" where the interval leaves out zero, otherwise "undecided".
    """
    rows = []
    for model in backbones.backbones(dataset):
        for pair in backbones.pairs(dataset):
            frozen, tuned = (
                backbones.runs_of(dataset, environment, agent, pair.ensemble_size).isel(time=-1)
                for environment, agent in ((model.frozen, pair.frozen), (model.tuned, pair.tuned))
            )
            difference = (frozen["regret"] - tuned["regret"]).dropna("seed")
            mean, lower, upper = (float(value) for value in mean_interval(difference.values.astype(float)))
            rows.append(
                {
                    "language model": model.title,
                    "agent": pair.label,
                    "M": str(pair.ensemble_size or "-"),
                    "seeds": difference.size,
                    "accuracy, frozen": float((frozen["optimal"] / dataset.attrs["horizon"]).mean("seed")),
                    "accuracy, fine-tuned": float((tuned["optimal"] / dataset.attrs["horizon"]).mean("seed")),
                    "regret, frozen": float(frozen["regret"].mean("seed")),
                    "regret, fine-tuned": float(tuned["regret"].mean("seed")),
                    "difference": mean,
                    "95 % low": lower,
                    "95 % high": upper,
                    "better": "fine-tuned" if lower > 0 else "frozen" if upper < 0 else "undecided",
                }
            )
    return pd.DataFrame(rows)
