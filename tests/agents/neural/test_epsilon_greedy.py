"""Epsilon-greedy beside Greedy: the same start and training, and random actions as often as it should."""

import numpy as np
import pytest
import torch
from neural_pools import TRAINING
from scipy import stats

from ensemblepp.agents.neural.epsilon_greedy import EpsilonGreedy
from ensemblepp.agents.neural.greedy import Greedy
from ensemblepp.bandit import Choice, Decisions

torch.set_num_threads(1)

SEEDS = (0, 1, 2)
SETTINGS = TRAINING | {"dimension": 5, "horizon": 200, "gradient_steps": 3, "warm_up": 4}


def build(epsilon: float, hidden=(), **changes) -> EpsilonGreedy:
    return EpsilonGreedy(SEEDS, epsilon=epsilon, hidden=hidden, ensemble_size=0, **SETTINGS | changes)


def test_it_explores_with_probability_epsilon_and_uniformly():
    """8 actions, epsilon = 0.3, 3 seeds x 4,000 rounds without training.

    Another action than Greedy's with probability 0.3 * 7/8; the 7 others equally often; the count is what the agent says.
    """
    agent, plain = build(0.3), Greedy(SEEDS, hidden=(), **SETTINGS)
    decisions = Decisions(np.random.default_rng(1).standard_normal((3, 8, 5)).astype(np.float32))
    best = plain.act(decisions).index
    chosen = []
    for _ in range(4000):
        chosen.append(agent.act(decisions).index)
        agent.end_round()
    offset = (np.stack(chosen) - best) % 8
    counts = np.stack([np.bincount(offset[:, seed, 0], minlength=8) for seed in range(3)])
    assert counts.sum(axis=0)[0] / 12_000 == pytest.approx(1 - 0.3 * 7 / 8, abs=5 * np.sqrt(0.2625 * 0.7375 / 12_000))
    assert stats.chisquare(counts.sum(axis=0)[1:]).pvalue > 1e-3
    assert agent.explored.tolist() == (4000 - counts[:, 0]).tolist()
    # seeds explore in rounds of their own
    explores = (offset[..., 0] > 0).astype(float)
    assert np.abs(np.corrcoef(explores.T) - np.eye(3)).max() < 5 / np.sqrt(4000)


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_epsilon_zero_is_greedy_and_one_never_looks(epsilon):
    """Trained on its own choices for 40 rounds beside Greedy; at epsilon = 1 the predictions do not matter at all."""
    agent, plain = build(epsilon), Greedy(SEEDS, hidden=(), **SETTINGS)
    other = build(epsilon, learning_rate=1.0)
    rng = np.random.default_rng(2)
    same = []
    for _ in range(40):
        decisions = Decisions(rng.standard_normal((3, 6, 5)).astype(np.float32))
        choices = [player.act(decisions) for player in (agent, plain, other)]
        for player, choice in zip((agent, plain, other), choices, strict=True):
            player.update(choice, np.sin(choice.features.sum(axis=2)))
        same.append(choices[0].index == choices[1].index)
        assert epsilon == 0 or np.array_equal(choices[0].index, choices[2].index)
    assert np.all(same) if epsilon == 0 else 0 < np.mean(same) < 0.4
    assert torch.equal(agent.flat, plain.flat) == (epsilon == 0)


def test_it_starts_and_trains_as_greedy():
    """Same start and same minibatches: fed the same data, the same parameters to the last bit."""
    agent, plain = build(0.5, hidden=(16, 16)), Greedy(SEEDS, hidden=(16, 16), **SETTINGS)
    rng = np.random.default_rng(0)
    for _ in range(30):
        features = rng.standard_normal((3, 1, 5)).astype(np.float32)
        choice, reward = Choice(np.zeros((3, 1), dtype=int), features), np.sin(features.sum(axis=2))
        agent.update(choice, reward)
        plain.update(choice, reward)
    assert torch.equal(agent.flat, plain.flat)
