"""Regret bounds and ensemble sizes of linear bandit algorithms, and what they come to in the study (paper, Table 2)."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import xarray as xr

from ensemblepp.analysis import theory

NEEDS = {"environments": ["linear_finite", "linear_sphere"]}


def build(dataset: xr.Dataset) -> pd.DataFrame:
    """One row per algorithm and setting; regret and M in numbers for every dimension d of the study, at its horizon.

    K is the largest decision set with that d. Orders are evaluated with constant one; the last row has the lemma's constants.
    """
    horizon = dataset.attrs["horizon"]
    options = [spec["environment"]["options"] for spec in json.loads(dataset.attrs["specs"])]
    # K by d; a compact set has none
    counts = dict.fromkeys(sorted({environment["dimension"] for environment in options}), math.nan)
    for environment in options:
        if "actions" in environment:
            counts[environment["dimension"]] = np.fmax(environment["actions"], counts[environment["dimension"]])
    rows = []
    for bound in theory.REGRET_BOUNDS:
        regrets = [bound.regret_order(d, horizon, actions) for d, actions in counts.items()]
        sizes = [bound.size_order(d, horizon, actions) if bound.size_order else math.nan for d, actions in counts.items()]
        rows.append([bound.method, bound.setting, bound.regret, *regrets, bound.ensemble_size, *sizes])
    asked = [theory.tracking_size(d, horizon, options[0]["prior_variance"]) for d in counts]
    rows.append(["Ensemble++", "any", "-", *[math.nan] * len(counts), "the lemma's, with constants", *asked])
    regrets, sizes = ([f"{name}, d = {d}" for d in counts] for name in ("regret", "M"))
    return pd.DataFrame(rows, columns=["method", "setting", "regret bound", *regrets, "ensemble size", *sizes])
