"""The smallest ensemble that matches exact Thompson sampling, and how it grows with the problem (paper, Figure 2b)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import xarray as xr

from ensemblepp.analysis.estimates import Resampled
from ensemblepp.analysis.selection import agent_runs, ensemble_sizes
from ensemblepp.analysis.statistics import SIZE_RULES, excess_over_yardstick, growth_exponents, resampled_means
from ensemblepp.claims.measures import chosen, require, shown
from ensemblepp.claims.verdicts import NotRun, Part

#: Factors of M = c d^a |X|^b, by the option of an environment that holds them.
FACTORS = ("dimension", "actions")


def minimum_size(rule: Mapping[str, Any], evidence: Mapping[str, Any], dataset: xr.Dataset) -> Iterator[Part]:
    """The exponent of the factor `growing` in M = c d^a |X|^b; seeds are resampled together in all environments and sizes.

    M is the smallest by the rule `size_rule` of `analysis.statistics`; one beyond the grid counts as twice the largest.

    Raises:
        NotRun: the environments do not tell the factors apart.
    """
    environments = chosen(dataset, evidence["environments"])
    options = {spec["environment"]["name"]: spec["environment"]["options"] for spec in json.loads(dataset.attrs["specs"])}
    factors = np.array([[options[name][factor] for factor in FACTORS] for name in environments], dtype=float)
    decide, column = SIZE_RULES[rule["size_rule"]], FACTORS.index(rule["growing"])
    for arm in evidence["of"]:
        require(dataset, "agent", arm["agent"])
        sizes = ensemble_sizes(agent_runs(dataset[["regret"]].isel(time=-1), arm["agent"]))
        excess = excess_over_yardstick(dataset, arm["agent"]) / dataset.attrs["horizon"]
        excess = excess.sel(environment=environments, ensemble_size=sizes).transpose("seed", "environment", "ensemble_size")
        complete = excess.dropna("seed").values
        scale = np.array([*sizes, 2 * sizes[-1]])
        of_mean, of_samples = (
            growth_exponents(scale[decide(means)], factors)[..., column]
            for means in (complete.mean(axis=0), resampled_means(complete))
        )
        if np.isnan(of_mean):
            raise NotRun("the environments at this scale do not tell dimension and number of actions apart")
        words = f"{shown(dataset, arm)}: exponent of {rule['growing']}, {rule['size_rule']} rule"
        yield Part(words, Resampled(float(of_mean), len(complete), of_samples))
