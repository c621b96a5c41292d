"""Comparisons at the horizon, paired by seed: ratios and differences of two arms, and one arm in other environments."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import xarray as xr

from ensemblepp.analysis.estimates import mean_of, ratio_of_means
from ensemblepp.claims.measures import chosen, final, own_size, paired, shown, titled
from ensemblepp.claims.verdicts import Part


def ratio(rule: Mapping[str, Any], evidence: Mapping[str, Any], dataset: xr.Dataset) -> Iterator[Part]:
    """Mean of every arm `of` over that of every arm `against`, in every environment and at every size."""
    for words, above, below in _pairs(rule, evidence, dataset):
        yield Part(words.replace(" | ", " / "), ratio_of_means(above, below), above - below)


def difference(rule: Mapping[str, Any], evidence: Mapping[str, Any], dataset: xr.Dataset) -> Iterator[Part]:
    """The same, as a difference."""
    for words, above, below in _pairs(rule, evidence, dataset):
        yield Part(words.replace(" | ", " - "), mean_of(above - below), above - below)


def across(rule: Mapping[str, Any], evidence: Mapping[str, Any], dataset: xr.Dataset) -> Iterator[Part]:
    """Mean of every arm in every environment over its mean in the first that is listed."""
    base, *others = chosen(dataset, evidence["environments"])
    for arm, size in itertools.product(evidence["of"], evidence["sizes"]):
        below = final(dataset, arm, base, size, rule["measure"])
        for environment in others:
            above, base_values = paired(final(dataset, arm, environment, size, rule["measure"]), below)
            place = titled(dataset, environment, own_size(dataset, arm, size))
            words = f"{place} / {titled(dataset, base)}: {shown(dataset, arm)}"
            yield Part(words, ratio_of_means(above, base_values), above - base_values)


def _pairs(rule: Mapping[str, Any], evidence: Mapping[str, Any], dataset: xr.Dataset) -> Iterator[tuple]:
    """(words, numbers of an arm, of the other) at the seeds that both have.

    Seeds are paired across environments too, where an arm has one of its own: they may show the same in another form.
    """
    for environment, size in itertools.product(chosen(dataset, evidence["environments"]), evidence["sizes"]):
        for arm, other in itertools.product(evidence["of"], evidence["against"]):
            both = [final(dataset, one, one.get("environment") or environment, size, rule["measure"]) for one in (arm, other)]
            place = titled(dataset, environment, *(own_size(dataset, one, size) for one in (arm, other)))
            yield f"{place}: {shown(dataset, arm)} | {shown(dataset, other)}", *paired(*both)
