"""What is said of an agent's draws against the draws themselves: its own acting rule, over and over."""

from __future__ import annotations

import math
import typing

import member_agents
import numpy as np
import pytest
import torch

from ensemblepp import registry
from ensemblepp.agents.neural.dropout import Dropout
from ensemblepp.agents.neural.ensemblepp import NeuralEnsemblePlusPlus
from ensemblepp.agents.neural.epsilon_greedy import EpsilonGreedy
from ensemblepp.agents.neural.greedy import Greedy
from ensemblepp.agents.neural.lmcts import LMCTS
from ensemblepp.agents.neural.neural_linear import NeuralLinear
from ensemblepp.agents.neural.neural_ts import NeuralTS
from ensemblepp.agents.neural.neural_ucb import NeuralUCB
from ensemblepp.bandit import Decisions
from ensemblepp.config.agents import Agent
from ensemblepp.config.neural_agents import NeuralAgentModel
from ensemblepp.randomness.distributions import LAWS, law
from ensemblepp.runs import beliefs, moderate
from ensemblepp.runs.beliefs import above, belief

torch.set_num_threads(1)

DIMENSION = 6
TRAINING = {
    "dimension": DIMENSION,
    "horizon": 5000,
    "device": "cpu",
    "hidden": (),
    "learning_rate": 0.05,
    "batch_size": 8,
    "weight_decay": 0.01,
    "buffer_capacity": 50,
    "gradient_steps": 1,
    "warm_up": 0,
}
SEEDS = (0, 1)

#: Times that an agent acts, and how many standard errors its frequencies may be off.
TIMES, ERRORS = 2000, 4.5


def plusplus(reference: str, size: int = 4, **changes: object) -> NeuralEnsemblePlusPlus:
    laws = {"references": [reference], "perturbations": ["sphere"], "update": "coordinate"}
    scales = {"prior_scale": 0.3, "posterior_scale": 0.5, "perturbation_scale": 0.2}
    return NeuralEnsemblePlusPlus(SEEDS, ensemble_size=size, **laws, **TRAINING | scales | changes)


PAIRS = {
    **{f"{name}, M={size}": (lambda name=name, size=size: plusplus(name, size)) for name in LAWS for size in (1, 5)},
    "sparse-3": lambda: plusplus("sparse-3", 5),
    "cube, M=14": lambda: plusplus("cube", 14),
    "trunk": lambda: plusplus("sphere", hidden=(8, 8)),
    "two logits": lambda: plusplus("gaussian", loss="cross_entropy"),
    "ensemble+": lambda: member_agents.plus(SEEDS, DIMENSION, 5),
    "ensemble+, two logits": lambda: member_agents.plus(SEEDS, DIMENSION, 5, loss="cross_entropy"),
    "ensemble+, any class": lambda: member_agents.plus(SEEDS, DIMENSION, 5, loss="cross_entropy", any_class=True),
    "bootstrap": lambda: member_agents.bootstrap(SEEDS, DIMENSION, 5),
    "neural_linear": lambda: NeuralLinear(SEEDS, prior_variance=0.3, noise=0.5, refresh=100, **TRAINING),
    "neural_ts": lambda: NeuralTS(SEEDS, ridge=1.0, exploration=0.5, **TRAINING | {"hidden": (8,)}),
}


def trained(agent):
    """The agent after six rounds, and two actions as moderation offers them: one context, in a block for each."""
    source = np.random.default_rng(5)
    for _ in range(6):
        offered = Decisions(source.standard_normal((len(SEEDS), 2, DIMENSION)).astype(np.float32))
        agent.update(agent.act(offered), source.random((len(SEEDS), 1)))
    features = np.zeros((len(SEEDS), 2, DIMENSION), dtype=np.float32)
    features[:, 0, :3] = features[:, 1, 3:] = source.standard_normal((len(SEEDS), 3))
    return agent, Decisions(features)


def drawn(agent, offered: Decisions) -> tuple[np.ndarray, np.ndarray]:
    """How often action 1 was taken, (seeds,), and the differences that were drawn, (times, seeds), of an agent that acts."""
    features, taken, differences = agent.tensor(offered.features), 0.0, []
    for _ in range(TIMES):
        taken = taken + agent.act(offered).index[:, 0]
        with torch.no_grad():
            value = agent.score(features).value.numpy()
        differences.append(value[:, 1] - value[:, 0])
        agent.end_round()
    return taken / TIMES, np.array(differences)


@pytest.mark.parametrize("make", PAIRS.values(), ids=PAIRS)
def test_chance_and_spread_are_those_of_the_acting_rule(make):
    """2,000 draws: the frequency of action 1, and the standard deviation of the difference of the two sampled values."""
    agent, offered = trained(make())
    agent.act(offered)
    found = belief(agent, agent.tensor(offered.features))
    taken, differences = drawn(agent, offered)
    error = np.sqrt(found.chance * (1 - found.chance) / TIMES)
    approximate = 0.5 / math.sqrt(beliefs.DRAWN) if getattr(agent, "ensemble_size", 0) == 14 else 0
    assert (np.abs(taken - found.chance) <= ERRORS * np.hypot(error, approximate) + 1e-12).all(), (taken, found)
    centred = (differences - differences.mean(axis=0)) ** 2
    off = np.abs(centred.mean(axis=0) - found.spread**2)
    assert (off <= ERRORS * centred.std(axis=0) / math.sqrt(TIMES) + 2e-3 * found.spread**2).all()
    with torch.no_grad():
        np.testing.assert_allclose(found.value, agent.score(agent.tensor(offered.features)).mean, rtol=1e-6)


def test_most_chances_of_that_test_are_no_certainties():
    """Else it could not fail."""
    sure = 0
    for make in PAIRS.values():
        agent, offered = trained(make())
        agent.act(offered)
        sure += int(((found := belief(agent, agent.tensor(offered.features)).chance) * (1 - found) < 0.01).sum())
    assert sure <= len(PAIRS) // 2


def test_one_direction_for_both_actions_by_hand():
    """Rows (3, 0) and (3, 4), values 1 and 3: the difference is 2 + 4 zeta_2, of spread 4; apart they would have spread 5.8."""
    agent = plusplus("gaussian", 2, posterior_scale=1.0, prior_scale=0.0)
    with torch.no_grad():
        agent.parameters["base"].zero_()
        agent.parameters["heads"].zero_()
        for action, (value, row) in enumerate([(1.0, (3.0, 0.0)), (3.0, (3.0, 4.0))]):
            agent.parameters["base"][:, action, 0] = value
            agent.parameters["heads"][:, action] = torch.tensor(row)
    features = torch.eye(DIMENSION)[:2].expand(len(SEEDS), -1, -1)
    agent.act(Decisions(features.numpy()))
    found = belief(agent, features)
    np.testing.assert_allclose(found.value, [[1, 3]] * 2)
    np.testing.assert_allclose(found.spread, 4)
    np.testing.assert_allclose(found.chance, math.erfc(-0.5 / math.sqrt(2)) / 2)


@pytest.mark.parametrize(
    ("name", "slope", "offset", "expected"),
    [
        ("gaussian", (0.6, 0.8), 1.0, 0.841344746),
        # on a circle of radius sqrt(2), <r, zeta> > -1 on all but a quarter of it
        ("sphere", (0.6, 0.8), 1.0, 0.75),
        # Archimedes: a coordinate of a point on a sphere in three dimensions is uniform
        ("sphere", (1.0, 0.0, 0.0), math.sqrt(3) / 2, 0.75),
        ("sphere", (1.0, 0.0), 2.0, 1.0),
        ("sphere", (2.0,), 1.0, 0.5),
        ("cube", (1.0, 2.0), 2.0, 0.75),
        ("coordinate", (1.0, 2.0), 2.0, 0.75),
        ("sparse", (1.0, 2.0, 0.0), 2.4, 9 / 12),
        ("gaussian", (0.0, 0.0), 0.1, 1.0),
        ("sphere", (0.0, 0.0), -0.1, 0.0),
        ("gaussian", (0.0, 0.0), 0.0, 0.0),
    ],
)
def test_laws_by_hand(name, slope, offset, expected):
    found = above(law(name, len(slope)), np.array([slope]), np.array([offset]))
    np.testing.assert_allclose(found, [expected], atol=1e-9)


def test_agents_that_draw_nothing_have_no_doubt():
    for agent in (
        Greedy(SEEDS, **TRAINING),
        EpsilonGreedy(SEEDS, epsilon=0.5, **TRAINING),
        NeuralUCB(SEEDS, ridge=1.0, exploration=0.5, **TRAINING | {"hidden": (8,)}),
        LMCTS(SEEDS, temperature=0.01, decay_every=20, **TRAINING),
    ):
        agent, offered = trained(agent)
        agent.act(offered)
        found = belief(agent, agent.tensor(offered.features))
        assert np.isnan(found.spread).all()
        assert np.isnan(found.chance).all()
        assert np.isfinite(found.value).all()


def test_an_agent_without_a_formula_is_refused():
    agent, offered = trained(Dropout(SEEDS, rate=0.2, **TRAINING))
    agent.act(offered)
    with pytest.raises(NotImplementedError, match="Dropout: no formula"):
        belief(agent, agent.tensor(offered.features))


def test_every_kind_that_moderate_allows_is_known():
    """A new kind of neural agent has to be told apart here."""
    union = typing.get_args(Agent)[0]
    kinds = [model for model in typing.get_args(union) if issubclass(model, NeuralAgentModel)]
    assert len(kinds) >= 10
    for model in kinds:
        (kind,) = typing.get_args(model.model_fields["kind"].annotation)
        known = beliefs._difference.dispatch(registry.load(registry.AGENTS[kind])) is not beliefs._difference.dispatch(object)
        assert known != issubclass(model, moderate._WITHOUT_FORMULA), kind
