"""The lemma's sandwich: in how many seeds did A A^T leave [1/2, 3/2] of the covariance at any stored round?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr

from ensemblepp.analysis.estimates import Share
from ensemblepp.analysis.theory import TRACKING_INTERVAL
from ensemblepp.claims.measures import chosen, curves, shown, titled
from ensemblepp.claims.verdicts import Part


def sandwich(_rule: Mapping[str, Any], evidence: Mapping[str, Any], dataset: xr.Dataset) -> Iterator[Part]:
    """The share of seeds that left it, with its exact interval; the lemma allows delta."""
    least, most = TRACKING_INTERVAL
    for environment, size in itertools.product(chosen(dataset, evidence["environments"]), evidence["sizes"]):
        for arm in evidence["of"]:
            low, high = (curves(dataset, arm, environment, size, f"tracking_{end}").values for end in ("low", "high"))
            left = np.count_nonzero((low < least).any(axis=1) | (high > most).any(axis=1))
            yield Part(f"{titled(dataset, environment, size)}: {shown(dataset, arm)}", Share(int(left), len(low)))
