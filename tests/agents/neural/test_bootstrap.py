"""The bootstrapped ensemble: its weights, and what they do; all else of its members is in test_member_heads.py."""

from __future__ import annotations

import numpy as np
import torch
from member_agents import bootstrap

from ensemblepp.agents.neural.bootstrap import Coins
from ensemblepp.bandit import Decisions

torch.set_num_threads(1)

#: Standard errors that a Monte Carlo mean may be off; 5 are exceeded by chance once in 1.7 million comparisons.
Z = 5.0


def test_weights_are_zero_or_two():
    """With probability 1/2 each, for every member and round: 2 seeds x 10,000 rounds x 3 members; mean 1, no correlation."""
    weights = Coins((0, 1), 3)(10_000)
    assert weights.shape == (2, 10_000, 3)
    assert set(np.unique(weights)) == {0.0, 2.0}
    coins = weights.transpose(0, 2, 1).reshape(6, 10_000) - 1
    assert (np.abs(coins.mean(axis=1)) < Z / 100).all()
    assert np.abs(np.corrcoef(coins) - np.eye(6)).max() < Z / 100
    assert np.abs((coins[:, 1:] * coins[:, :-1]).mean(axis=1)).max() < Z / 100


def test_a_member_that_never_sees_a_sample_stays():
    """Weights that are all 0 for member 1, lambda = 0: its head and bias are where they were, the others' are not."""
    agent = bootstrap(weight_decay=0.0, warm_up=0)
    agent.sources["weights"] = lambda rounds: np.tile(np.float32([2, 0, 2, 2]), (2, rounds, 1))
    start = {name: value.detach().clone() for name, value in agent.parameters.items()}
    rng = np.random.default_rng(0)
    for _ in range(10):
        choice = agent.act(Decisions(rng.standard_normal((2, 5, 6)).astype(np.float32)))
        agent.update(choice, np.ones((2, 1)))
    for name in ("heads", "bias"):
        moved = (agent.parameters[name] - start[name]).detach().abs().amax(dim=(0, 1)) > 0
        assert moved.tolist() == [True, False, True, True]
