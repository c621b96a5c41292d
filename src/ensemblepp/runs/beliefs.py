"""What an agent thinks of two actions when it chooses between them: how much better the second is, and how sure it is of that.

An agent that explores chooses by the sign of a difference D, the value of action 1 less that of action 0, which it draws anew
in every round. Its doubt about a decision is the probability that it would have decided otherwise with other draws, P(D > 0) or
its complement. One draw makes both values, so their noise is shared, and the spreads of the two do not say what D's is:

    Ensemble++        D = g + <r, zeta>, with g the difference of <h, b> and r that of the rows A^T h of the two actions. The
                      standard deviation is |r| under every reference law, as zeta has covariance I. P(D > 0) is by the law:
                      Phi(g / |r|) of a Gaussian zeta; F(g / (|r| sqrt(M))) on the sphere, with F the distribution function of
                      a coordinate u of a uniform unit vector, (1 + u) / 2 ~ Beta((M - 1) / 2, (M - 1) / 2); of the finite laws,
                      cube, coordinate and sparse, the share of their vectors.
    Ensemble+,        D is uniform on the M members' own differences f_m(1) - f_m(0): their standard deviation (divisor M), and
    bootstrap         the share of them above 0.
    NeuralLinear      D ~ N(<delta, mu>, delta^T Sigma delta), with delta the difference of the two actions' features h.
    NeuralTS          draws the two values independently: D ~ N(f(1) - f(0), nu^2 (sigma^2(1) + sigma^2(0))).
    Greedy,           draw no value: they have neither a spread nor a doubt. An epsilon-greedy agent's random actions are no
    NeuralUCB, LMCTS  belief of its own, and Langevin's noise lies in the training, not in the choice.

EpiNet and dropout are not here: their D is no linear form of what they draw, and has no such formula.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import betainc, ndtr

from ensemblepp.agents.neural.base import NeuralAgent
from ensemblepp.agents.neural.ensemblepp import MAX_DIRECTIONS, NeuralEnsemblePlusPlus
from ensemblepp.agents.neural.greedy import Greedy
from ensemblepp.agents.neural.lmcts import LMCTS
from ensemblepp.agents.neural.member_heads import MemberHeads
from ensemblepp.agents.neural.neural_linear import NeuralLinear
from ensemblepp.agents.neural.neural_ts import NeuralTS
from ensemblepp.agents.neural.neural_ucb import NeuralUCB
from ensemblepp.agents.neural.products import product
from ensemblepp.randomness.distributions import Law, law

#: Vectors that stand for a finite law with too many to be counted.
DRAWN = 4096


class Belief(NamedTuple):
    """What an agent thinks of two actions; of every chain, float64."""

    value: np.ndarray  #: (chains, 2) what it expects of each: the values that it would act by without exploring
    spread: np.ndarray  #: (chains,) standard deviation of D; NaN of agents that draw none
    chance: np.ndarray  #: (chains,) P(D > 0); NaN of agents that draw none


def belief(agent: NeuralAgent, features: torch.Tensor) -> Belief:
    """What an agent thinks of two actions now, between `act` and `update`; changes nothing of it.

    Args:
        agent: a neural agent of one pair of laws.
        features: (chains, 2, dimension).

    Raises:
        NotImplementedError: what the agent draws has no formula here.
    """
    with torch.no_grad():
        value = _numbers(agent.score(features).mean)
        return Belief(value, *_difference(agent, features, value[:, 1] - value[:, 0]))


def above(reference: Law, slope: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """P(offset + <slope, zeta> > 0), (n,), of zeta by a reference law.

    Exact, but for a finite law with more than `MAX_DIRECTIONS` vectors: there it is the share of `DRAWN` fixed ones, whose
    standard error is at most 0.008.

    Args:
        reference: the law of zeta.
        slope: (n, M).
        offset: (n,).
    """
    size = slope.shape[1]
    length = np.linalg.norm(slope, axis=1)
    ratio = np.divide(offset, length, out=np.where(offset > 0, np.inf, -np.inf), where=length > 0)
    if reference.name == "gaussian":
        return ndtr(ratio)
    if reference.name == "sphere" and size > 1:
        place = (1 + ratio / np.sqrt(size)) / 2
        return betainc((size - 1) / 2, (size - 1) / 2, place.clip(0, 1))
    if size == 1:
        zeta = np.array([[1.0], [-1.0]])
    elif reference.directions and reference.count and reference.count(size) <= MAX_DIRECTIONS:
        zeta = reference.directions(size)
    else:
        zeta = reference.zeta(np.random.default_rng(0).standard_normal((DRAWN, size)))
    return (offset[:, None] + slope @ zeta.T > 0).mean(axis=1)


@functools.singledispatch
def _difference(agent: NeuralAgent, features: torch.Tensor, gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviation of D and P(D > 0), (chains,) each; `gap` is D without exploring, (chains,)."""
    raise NotImplementedError(f"{type(agent).__name__}: no formula for the difference of two values that it draws")


@_difference.register(Greedy)
@_difference.register(NeuralUCB)
@_difference.register(LMCTS)
def _(agent: NeuralAgent, features: torch.Tensor, gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.full_like(gap, np.nan), np.full_like(gap, np.nan)


@_difference.register
def _(agent: NeuralEnsemblePlusPlus, features: torch.Tensor, gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # of two logits, the second one acts
    members = agent.ensemble()[..., agent.classes - 1 :: agent.classes]
    rows = _numbers(product(agent.trunk(features), members))
    slope = rows[:, 1] - rows[:, 0]
    return np.linalg.norm(slope, axis=1), above(law(agent.chains[0][0], agent.ensemble_size), slope, gap)


@_difference.register
def _(agent: MemberHeads, features: torch.Tensor, gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    offsets = agent.offsets(features)
    outputs = agent.outputs(features) if offsets is None else agent.outputs(features) + offsets
    outputs = outputs.unflatten(-1, (agent.ensemble_size, agent.classes))
    acting = _numbers(outputs.amax(dim=-1) if agent.linear_heads().any_class else outputs[..., -1])
    differences = acting[:, 1] - acting[:, 0]
    return differences.std(axis=1), (differences > 0).mean(axis=1)


@_difference.register
def _(agent: NeuralLinear, features: torch.Tensor, gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    hidden = agent.trunk(features).to(torch.float64)
    delta = (hidden[:, 1] - hidden[:, 0])[..., None]
    spread = _numbers((delta * torch.linalg.solve(agent.precision, delta)).sum(dim=(1, 2)).sqrt())
    return spread, _normal(gap, spread)


@_difference.register
def _(agent: NeuralTS, features: torch.Tensor, gap: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    spread = np.linalg.norm(_numbers(agent.spread(features)), axis=1)
    return spread, _normal(gap, spread)


def _normal(gap: np.ndarray, spread: np.ndarray) -> np.ndarray:
    return ndtr(gap / spread)


def _numbers(values: torch.Tensor) -> np.ndarray:
    return values.cpu().numpy().astype(float)
