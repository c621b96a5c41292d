"""Linear bandits, agents and decision sets that several tests play with."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import literal
import numpy as np

from ensemblepp.agents.linear.ensemblepp import LinearEnsemblePlusPlus
from ensemblepp.bandit import Choice, LinearInstance
from ensemblepp.environments.linear_finite import LinearFinite
from ensemblepp.environments.linear_sphere import LinearSphere
from ensemblepp.randomness import distributions
from ensemblepp.randomness.distributions import LAWS
from ensemblepp.trajectory import Trajectory

PERTURBATIONS = tuple(distributions.PERTURBATIONS)

#: Every pair of a reference and a perturbation law, in the order of the chains of `ensemble`.
PAIRS = list(itertools.product(LAWS, PERTURBATIONS))


def bandit(seeds, dimension: int, actions: int, *, noise: float = 1.0, **options) -> LinearFinite | LinearSphere:
    """A finite bandit, or the unit sphere for `actions` = 0."""
    shared = {"dimension": dimension, "prior_variance": literal.PRIOR_VARIANCE, "noise": noise}
    if not actions:
        return LinearSphere(seeds, **shared)
    return LinearFinite(seeds, actions=actions, feature_bound=5**-0.5, **shared, **options)


def ensemble(seeds, dimension: int, size: int, precision: str = "float64", **options) -> LinearEnsemblePlusPlus:
    """Linear Ensemble++ with all pairs of laws, unless others are given."""
    laws = {"references": LAWS, "perturbations": PERTURBATIONS, "prior_variance": literal.PRIOR_VARIANCE}
    return LinearEnsemblePlusPlus(seeds, dimension=dimension, ensemble_size=size, precision=precision, **laws | options)


def same(left: Trajectory, right: Trajectory, chains=slice(None), seeds=slice(None)) -> bool:
    """Whether those chains and seeds of the left trajectory are the right one, to the last bit."""
    return all(
        np.array_equal(getattr(left, name)[seeds][:, chains], getattr(right, name))
        for name in ("action", "regret", "reward", "optimal")
    )


class Given:
    """An environment that consists of these instances."""

    def __init__(self, *instances: LinearInstance) -> None:
        self._instances = instances
        self.seeds = tuple(one.seed for one in instances)
        self.dimension = len(instances[0].theta) if instances else 1

    def instances(self) -> Iterator[LinearInstance]:
        return iter(self._instances)


class Recorder:
    """A decision set that keeps the parameter vectors it is asked to maximise, (seeds, chains, d) each."""

    def __init__(self) -> None:
        self.theta: list[np.ndarray] = []

    def maximise(self, theta: np.ndarray) -> Choice:
        self.theta.append(theta.copy())
        return Choice(np.zeros(theta.shape[:2], dtype=int), np.zeros_like(theta))
