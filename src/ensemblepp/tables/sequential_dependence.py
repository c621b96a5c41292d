"""How randomised least squares treats sequential dependence, and at what cost (paper, appendix, Table "comparison")."""

from __future__ import annotations

import json

import pandas as pd
import xarray as xr

from ensemblepp.analysis import theory

NEEDS = {"environments": ["linear_finite", "linear_sphere"]}

#: The paper's M in "ES (M << T)": its Figure 2a has M = 8.
MEMBERS = 8


def build(dataset: xr.Dataset) -> pd.DataFrame:
    """The paper's three rows and, below, Ensemble++ at the M from which its lemma bounds the dependence.

    In numbers, for the study's horizon T and its largest d: updates per round, and what is kept in memory, the covariance with
    d^2 entries and M vectors with d. RLS refits on fresh perturbations: as much as M = T members that act once each.
    """
    horizon = dataset.attrs["horizon"]
    options = [spec["environment"]["options"] for spec in json.loads(dataset.attrs["specs"])]
    d, variance = max((environment["dimension"], environment["prior_variance"]) for environment in options)
    asked = round(theory.tracking_size(d, horizon, variance))
    rows = [
        ("RLS", "T", "O(T)", "high", "none", horizon),
        ("ES", str(MEMBERS), "O(M)", "moderate", "reduced", MEMBERS),
        ("RRLS", "1", "O(1)", "low", "high", 1),
        ("Ensemble++", "the lemma's", "O(M)", "-", "bounded by the lemma", asked),
    ]
    return pd.DataFrame(
        [
            {
                "method": method,
                "M": size,
                "time per round": time,
                "memory": memory,
                "dependence": dependence,
                f"updates per round, T = {horizon}": members,
                f"numbers kept, d = {d}": d**2 + d * members,
            }
            for method, size, time, memory, dependence, members in rows
        ]
    )
