"""Growth over the rounds: the last quarter's slope against an earlier one's, and the exponent of a power of t."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import xarray as xr

from ensemblepp.analysis import growth
from ensemblepp.analysis.estimates import mean_of, ratio_of_means
from ensemblepp.claims.measures import chosen, curves, own_size, shown, titled
from ensemblepp.claims.verdicts import Part


def slopes(rule: Mapping[str, Any], evidence: Mapping[str, Any], dataset: xr.Dataset) -> Iterator[Part]:
    """Mean slope in the last quarter of the rounds over that in the quarter `quarter`, paired by seed."""
    for words, values in _curves(rule, evidence, dataset):
        quarters = [(one - 1, one) for one in (rule["quarter"], 4)]
        early, late = (growth.slopes(values.values, values["time"].values, first / 4, last / 4) for first, last in quarters)
        yield Part(words, ratio_of_means(late, early), late - early)


def exponent(rule: Mapping[str, Any], evidence: Mapping[str, Any], dataset: xr.Dataset) -> Iterator[Part]:
    """b of c t^b from a tenth of the rounds on, clustered by seed (`analysis.growth.exponents`)."""
    for words, values in _curves(rule, evidence, dataset):
        yield Part(words, mean_of(growth.exponents(values.values, values["time"].values)))


def _curves(rule: Mapping[str, Any], evidence: Mapping[str, Any], dataset: xr.Dataset) -> Iterator[tuple[str, xr.DataArray]]:
    for environment, size in itertools.product(chosen(dataset, evidence["environments"]), evidence["sizes"]):
        for arm in evidence["of"]:
            words = f"{titled(dataset, environment, own_size(dataset, arm, size))}: {shown(dataset, arm)}"
            yield words, curves(dataset, arm, environment, size, rule["measure"])
