"""Numbers that are computed, not measured: constants of the laws, of the lemma, of the cost, and numbers of parameters."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping
from typing import Any

from ensemblepp.analysis import theory
from ensemblepp.claims.verdicts import Exact

#: What `constant` knows.
QUANTITIES = ("optimism", "optimism_printed", "concentration", "sequential_factor", "prior_factor", "update_cost")

#: Relative error of a closed form in floating point.
ROUNDING = 1e-12


def constant(rule: Mapping[str, Any]) -> Iterator[Exact]:
    """A constant of the paper against `analysis.theory`, at every ensemble size of the rule.

    optimism: the least P(<zeta, v> >= sqrt(squared_threshold)) is at least the claimed p.
    optimism_printed: the closed form is the printed number, to its last digit.
    concentration: the claimed rho is exceeded with probability delta at most, for `actions` uniform directions, or for all.
    sequential_factor, prior_factor: of the lemma's proof at `epsilon`, equal to what is printed.
    update_cost: multiplications of an update in `dimension`, at most d^2 M.
    """
    for size in rule["sizes"]:
        yield _constant(rule, size)


def _constant(rule: Mapping[str, Any], size: int) -> Exact:
    quantity, law, printed = rule["quantity"], rule["law"], rule["printed"]
    if quantity == "optimism":
        found, claimed = theory.optimism(law, size, rule["squared_threshold"]), theory.optimism_claimed(law, size)
        return Exact(f"M = {size}: least probability, claimed {claimed:.4g}", found, found >= claimed * (1 - ROUNDING))
    if quantity == "optimism_printed":
        found = theory.optimism_claimed(law, size)
        return Exact(f"closed form, printed {printed:.4f}", found, round(found, 4) == printed)
    if quantity == "concentration":
        bound = theory.concentration_claimed(law, size, rule["actions"])
        found = theory.violation(law, size, rule["actions"], bound)
        words = f"M = {size}: probability beyond {bound:.3g}, allowed {theory.DELTA:g}"
        return Exact(words, found, found <= theory.DELTA)
    if quantity == "update_cost":
        found, most = theory.update_cost(rule["dimension"], size), rule["dimension"] ** 2 * size
        return Exact(f"d = {rule['dimension']}, M = {size}: multiplications, allowed {most:,}", found, found <= most)
    if quantity == "sequential_factor":
        found = theory.sequential_factor(rule["epsilon"])
    else:
        # at epsilon = 16 the factor 256 / epsilon^2 is one
        found = theory.prior_size(1, theory.DELTA, rule["epsilon"]) / theory.prior_size(1, theory.DELTA, 16.0)
    return Exact(f"factor at epsilon = {rule['epsilon']:g}, printed {printed:g}", found, math.isclose(found, printed))


def parameters(rule: Mapping[str, Any]) -> Iterator[Exact]:
    """The paper's formula against the network as built, for all `shapes` (d, C) and sizes with the paper's trunk."""
    for (dimension, classes), size in itertools.product(rule["shapes"], rule["sizes"]):
        shape = {"dimension": dimension, "classes": classes, "ensemble_size": size, "hidden": (64, 64)}
        built, _ = theory.parameter_counts(rule["network"], **shape)
        printed = theory.paper_parameter_count(rule["network"], **shape)
        words = f"d = {dimension}, C = {classes}, M = {size}: built minus formula {printed:,.0f}"
        yield Exact(words, built - printed, built == printed)
