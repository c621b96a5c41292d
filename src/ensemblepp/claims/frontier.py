"""Regret against parameters: is every other agent beaten by one of no more parameters? (paper, Figure 1)"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any

import xarray as xr

from ensemblepp.analysis import theory
from ensemblepp.analysis.estimates import ratio_of_means
from ensemblepp.analysis.selection import agent_runs, ensemble_sizes
from ensemblepp.claims.measures import chosen, final, paired, require, shown, titled
from ensemblepp.claims.verdicts import NotRun, Part


def frontier(rule: Mapping[str, Any], evidence: Mapping[str, Any], dataset: xr.Dataset) -> Iterator[Part]:
    """For every size of every agent `against`, the ratio to it of the arm `of` at its largest size of no more parameters.

    That size is chosen by parameters alone, all of them, frozen priors included as in the paper's formulas; never by regret.

    Raises:
        NotRun: the arm has no size that is small enough, or parameters are not counted in an environment.
    """
    for environment, arm in itertools.product(chosen(dataset, evidence["environments"]), evidence["of"]):
        own = _counts(dataset, arm["agent"], environment)
        for other in evidence["against"]:
            for size, count in _counts(dataset, other["agent"], environment).items():
                smaller = [one for one, total in own.items() if total <= count]
                if not smaller:
                    raise NotRun(
                        f"{shown(dataset, arm)} has no size with as few parameters as {shown(dataset, other)}, {count:,}"
                    )
                places = max(smaller), size
                both = [
                    final(dataset, {**one, "size": place}, environment, place, rule["measure"])
                    for one, place in zip((arm, other), places, strict=True)
                ]
                above, below = paired(*both)
                words = f"{titled(dataset, environment, *places)}: {shown(dataset, arm)} / {shown(dataset, other)}"
                yield Part(words, ratio_of_means(above, below), above - below)


def _counts(dataset: xr.Dataset, agent: str, environment: str) -> dict[int, int]:
    """All parameters of an agent by its ensemble sizes."""
    require(dataset, "agent", agent)
    specs = json.loads(dataset.attrs["specs"])
    own = [spec for spec in specs if spec["agent"]["name"] == agent and spec["environment"]["name"] == environment]
    network = theory.network_of(own[0]) if own else None
    if network is None:
        raise NotRun(f"parameters of agent '{agent}' in environment '{environment}' are not counted")
    kind, shape = network
    sizes = ensemble_sizes(agent_runs(dataset[["regret"]].isel(time=-1), agent))
    return {size: theory.parameter_counts(kind, **shape, ensemble_size=size)[0] for size in sizes}
