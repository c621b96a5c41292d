"""The constants p and rho of the regret theorem for every reference law: as claimed, and as they are (paper, Table 1)."""

from __future__ import annotations

import json
import math

import pandas as pd
import xarray as xr

from ensemblepp.analysis import theory
from ensemblepp.randomness.distributions import LAWS

#: Ensemble sizes shown: the smallest, the paper's, and one at which the logarithm decides rho.
SIZES = (2, 8, 64)


def build(dataset: xr.Dataset) -> pd.DataFrame:
    """One row per law and ensemble size; rho is for as many actions as the study's largest decision set has.

    p is the least P(<zeta, v> >= threshold) over unit vectors v: the paper states it at 1, its proof needs it at sqrt 2. rho is
    what |<zeta, v>| exceeds with probability delta at most, for any action; the claimed one is tried on uniform directions.
    """
    options = [spec["environment"]["options"] for spec in json.loads(dataset.attrs["specs"])]
    # a compact set, which has no number of actions, needs the bound of the norm
    actions = max((environment["actions"] for environment in options if "actions" in environment), default=None)
    return pd.DataFrame([_row(law, size, actions) for law in LAWS for size in SIZES])


def _row(law: str, size: int, actions: int | None) -> dict[str, object]:
    claimed = theory.optimism_claimed(law, size)
    stated, needed = (theory.optimism(law, size, squared) for squared in (1, 2))
    rho = theory.concentration_claimed(law, size, actions)
    exceeded = theory.violation(law, size, actions, rho)
    return {
        "law": law,
        "M": str(size),
        "p claimed": claimed,
        "p at 1": stated,
        "p at sqrt 2": needed,
        "p by": "closed form" if law in ("gaussian", "sphere") else "enumeration",
        "rho claimed": rho,
        "P(rho exceeded)": exceeded,
        "rho needed": theory.concentration_needed(law, size, actions),
        "rho corrected": theory.concentration_corrected(law, size, actions),
        "verdict": f"{_optimism_verdict(claimed, stated, needed)}, {'rho holds' if exceeded <= theory.DELTA else 'rho fails'}",
    }


def _optimism_verdict(claimed: float, stated: float, needed: float) -> str:
    if math.isnan(claimed):
        return "no p claimed"
    if stated < claimed:
        return "p fails"
    return "p holds" if needed >= claimed else "p fails at sqrt 2"
