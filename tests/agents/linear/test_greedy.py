"""Greedy least squares: literal ridge estimates, and a first round that knows nothing."""

import literal
import numpy as np
import pytest
from linear_bandits import bandit

from ensemblepp.agents.linear.greedy import LinearGreedy
from ensemblepp.engines.choice import simulate

OPTIONS = {"dimension": 7, "prior_variance": literal.PRIOR_VARIANCE}

ENVIRONMENTS = {
    "finite": {"actions": 37},
    "pruned": {"actions": 1100},
    "fresh": {"actions": 30, "varying": True},
    "sphere": {"actions": 0},
}


@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS.keys())
def test_greedy_repeats_literal_ridge_regression(environment):
    for seed in (0, 9):
        trajectory = simulate(bandit([seed], 7, **environment), LinearGreedy([seed], precision="float64", **OPTIONS), 100)
        run = literal.run(bandit([seed], 7, **environment), literal.Ridge(7), 100)
        assert trajectory.action[0, 0].tolist() == run.action.tolist()
        np.testing.assert_allclose(trajectory.regret[0, 0], run.regret, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("precision", ["mixed", "float64"])
@pytest.mark.parametrize("pruning", [True, False])
@pytest.mark.parametrize("actions", [2, 37, 1100])
@pytest.mark.parametrize("varying", [True, False])
def test_the_first_round_takes_the_first_action(actions, varying, pruning, precision):
    """theta = 0 ties all actions; that the kernel sorts them by their true reward must not help: 30 seeds."""
    environment = bandit(range(30), 7, actions, varying=varying)
    means = environment.mean_rewards().copy()
    agent = LinearGreedy(range(30), pruning=pruning, precision=precision, **OPTIONS)
    trajectory = simulate(environment, agent, 3)
    assert (trajectory.action[:, 0, 0] == 0).all()
    np.testing.assert_allclose(trajectory.regret[:, 0, 0], means.max(axis=1) - means[:, 0], rtol=1e-6, atol=1e-6)
    assert trajectory.optimal[:, 0, 0].mean() < 1


def test_the_first_round_on_the_sphere_takes_the_first_axis():
    environment = bandit(range(5), 7, 0)
    regret = simulate(environment, LinearGreedy(range(5), **OPTIONS), 1).regret[:, 0, 0]
    np.testing.assert_allclose(regret, np.linalg.norm(environment.theta, axis=1) - environment.theta[:, 0], rtol=1e-6)


def test_inflation_has_nothing_to_inflate():
    for environment in ENVIRONMENTS.values():
        plain, inflated = (LinearGreedy([0], **OPTIONS, **options) for options in ({}, {"inflation_delta": 0.1}))
        left, right = (simulate(bandit([0], 7, **environment), agent, 50) for agent in (plain, inflated))
        assert np.array_equal(left.regret, right.regret)


def test_it_plays_step_by_step_too():
    """The first round's tie goes to the lowest index there as well."""
    trajectory = simulate(bandit(range(4), 7, 50), LinearGreedy(range(4), **OPTIONS), 1, engine="step_by_step")
    assert (trajectory.action[:, 0, 0] == 0).all()
