"""Classical ensemble sampling against members that are regressed one by one on rewards of their own."""

import literal
import numpy as np
import pytest
from linear_bandits import bandit

from ensemblepp.agents.linear.ensemble_sampling import EnsembleSampling
from ensemblepp.engines.choice import simulate
from ensemblepp.randomness.streams import StepNoise

OPTIONS = {"prior_variance": literal.PRIOR_VARIANCE, "precision": "float64"}

ENVIRONMENTS = {"finite": {"actions": 37}, "pruned": {"actions": 1100}, "fresh": {"actions": 30, "varying": True}}


@pytest.mark.parametrize("size", [1, 2, 7, 30])
@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS.keys())
def test_ensemble_sampling_is_m_ridge_regressions_on_perturbed_rewards(environment, size):
    """Member m: prior sqrt(M) times column m of A_0, noise sqrt(M) z_m; the same action in every round, two seeds."""
    for seed in (0, 5):
        agent = EnsembleSampling([seed], dimension=6, ensemble_size=size, **OPTIONS)
        trajectory = simulate(bandit([seed], 6, **environment), agent, 100)
        run = literal.run(bandit([seed], 6, **environment), literal.EnsembleSampling(seed, 6, size), 100)
        assert trajectory.action[0, 0].tolist() == run.action.tolist()
        np.testing.assert_allclose(trajectory.regret[0, 0], run.regret, rtol=1e-6, atol=1e-7)


def test_ensemble_sampling_on_the_sphere():
    agent = EnsembleSampling([2], dimension=5, ensemble_size=9, **OPTIONS)
    trajectory = simulate(bandit([2], 5, 0), agent, 100)
    run = literal.run(bandit([2], 5, 0), literal.EnsembleSampling(2, 5, 9), 100)
    np.testing.assert_allclose(trajectory.regret[0, 0], run.regret, rtol=1e-6)


@pytest.mark.parametrize("size", [1, 4, 20])
def test_every_member_is_its_own_ridge_solution(size):
    """After 80 rounds step by step: mean + sqrt(M) A e_m, relative error below 1e-9."""
    agent, members = EnsembleSampling([3], dimension=6, ensemble_size=size, **OPTIONS), literal.EnsembleSampling(3, 6, size)
    environment = bandit([3], 6, 25)
    for _ in range(80):
        choice = agent.act(environment.decisions())
        outcome = environment.step(choice)
        agent.update(choice, outcome.reward)
        members.observe(choice.features[0, 0], outcome.reward.item())
    for member in range(size):
        expected = members.member(member)
        found = agent.posterior.mean[0, 0] + np.sqrt(size) * agent.factor[0, 0, :, member]
        assert np.linalg.norm(found - expected) < 1e-9 * np.linalg.norm(expected)


def test_members_act_equally_often():
    """The member of a round is the position of the largest of M normals: counts of 5,000 rounds, chi-square below 5 sigma."""
    positions = np.abs(np.array([noise.next()[0].copy() for noise in [StepNoise([0], "reference", 8)] for _ in range(5000)]))
    counts = np.bincount(positions.argmax(axis=1), minlength=8)
    assert ((counts - 625) ** 2 / 625).sum() < 7 + 5 * np.sqrt(14)


def test_there_is_one_chain_without_laws():
    agent = EnsembleSampling([3], dimension=2, ensemble_size=4, horizon=5, device="cpu", **OPTIONS)
    assert agent.chains == (("none", "none"),)
