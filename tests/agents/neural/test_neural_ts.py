"""NeuralTS: the law of its samples. Its network, widths and matrix are NeuralUCB's (test_neural_ucb.py)."""

import numpy as np
import torch
from neural_pools import TRAINING
from scipy import stats

from ensemblepp.agents.neural.neural_ts import NeuralTS
from ensemblepp.bandit import Decisions

torch.set_num_threads(1)

#: Standard errors that a Monte Carlo mean may be off; 5 are exceeded by chance once in 1.7 million comparisons.
Z = 5.0


def build(seeds=(0, 1, 2)) -> NeuralTS:
    settings = TRAINING | {"dimension": 5, "horizon": 200, "hidden": (16, 8), "gradient_steps": 2, "warm_up": 4}
    return NeuralTS(seeds, ridge=0.7, exploration=0.3, **settings)


def test_samples_are_independent_normals():
    """2,000 rounds of 4 actions: mean f, standard deviation nu sigma, no correlation between actions, seeds or rounds."""
    agent = build((0, 1))
    features = torch.tensor(np.random.default_rng(3).standard_normal((2, 4, 5)), dtype=torch.float32)
    deviations = []
    for _ in range(2000):
        if agent._left == 0:
            agent.load(64)
        scores = agent.score(features)
        deviations.append(((scores.value - scores.mean) / agent.spread(features)).detach().numpy().astype(float))
        agent.end_round()
    drawn = np.stack(deviations).reshape(2000, 8)
    assert (np.abs(drawn.mean(axis=0)) < Z / np.sqrt(2000)).all()
    off = drawn.T @ drawn / 2000 - np.eye(8)
    assert (np.abs(off) < Z * np.sqrt((1 + np.eye(8)) / 2000)).all()
    assert np.abs((drawn[1:] * drawn[:-1]).mean()) < Z / np.sqrt(8 * 1999)
    assert stats.kstest(drawn.ravel(), "norm").pvalue > 1e-3


def test_a_round_s_samples_do_not_depend_on_who_acted_before():
    """Two agents are fed alike for 70 rounds, more than are drawn at once; the second one is asked from the fourth round on."""
    rng = np.random.default_rng(4)
    leader, watcher = build(), build()
    for round_ in range(70):
        decisions = Decisions(rng.standard_normal((3, 4, 5)).astype(np.float32))
        choice = leader.act(decisions)
        if round_ >= 3:
            np.testing.assert_array_equal(watcher.act(decisions).index, choice.index)
        for agent in (leader, watcher):
            agent.update(choice, np.ones((3, 1)))
