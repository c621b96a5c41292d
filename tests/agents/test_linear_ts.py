"""Exact Thompson sampling: its posterior after real rounds, and the law of what it draws."""

import math

import numpy as np
import pytest

from ensemblepp.agents.linear_ts import LinearThompsonSampling
from ensemblepp.environments.base import Choice, Decisions
from ensemblepp.environments.linear_finite import LinearFinite
from ensemblepp.streams import StepNoise

#: Standard errors that a Monte Carlo mean may be off; 5 are exceeded by chance once in 1.7 million comparisons.
Z = 5.0


class Recorder:
    """A decision set that keeps the parameter vectors it is asked to maximise."""

    def __init__(self):
        self.theta = []

    def maximise(self, theta):
        self.theta.append(theta.copy())
        return Choice(np.zeros(theta.shape[:2], dtype=int), np.zeros_like(theta))


def bandit(seeds: range, dimension: int) -> LinearFinite:
    return LinearFinite(seeds, dimension=dimension, actions=40, feature_bound=5**-0.5, prior_variance=10.0, noise=1.0)


def play(dimension: int, rounds: int) -> tuple[LinearThompsonSampling, np.ndarray, np.ndarray]:
    """An agent after `rounds` rounds with 3 seeds, and the features and rewards it met, round first."""
    seeds = range(3)
    environment, agent = bandit(seeds, dimension), LinearThompsonSampling(seeds, dimension=dimension, prior_variance=10.0)
    features, rewards = [], []
    for _ in range(rounds):
        choice = agent.act(environment.decisions())
        outcome = environment.step(choice)
        agent.update(choice, outcome.reward)
        features.append(choice.features[:, 0])
        rewards.append(outcome.reward[:, 0])
    return agent, np.array(features), np.array(rewards)


def closed_form(features: np.ndarray, rewards: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance from prior N(0, 10 I) and unit noise: inverse of the prior's precision plus X^T X."""
    covariance = np.linalg.inv(np.eye(features.shape[1]) / 10 + features.T @ features)
    return covariance @ features.T @ rewards, covariance


@pytest.mark.parametrize("dimension", [10, 50])
def test_posterior_after_500_rounds_is_the_textbook_one(dimension):
    """Relative error below 1e-10, in the Frobenius norm, for every seed."""
    agent, features, rewards = play(dimension, 500)
    for seed in range(3):
        mean, covariance = closed_form(features[:, seed], rewards[:, seed])
        assert np.linalg.norm(agent.posterior.mean[seed, 0] - mean) < 1e-10 * np.linalg.norm(mean)
        assert np.linalg.norm(agent.posterior.covariance[seed, 0] - covariance) < 1e-10 * np.linalg.norm(covariance)


def test_draws_have_the_posterior_s_mean_and_covariance():
    """20,000 draws of 3 seeds after 100 rounds, whitened by the closed form: mean 0, covariance I."""
    agent, features, rewards = play(4, 100)
    recorder = Recorder()
    for _ in range(20_000):
        agent.act(recorder)
    draws = np.array(recorder.theta)
    for seed in range(3):
        mean, covariance = closed_form(features[:, seed], rewards[:, seed])
        values, vectors = np.linalg.eigh(covariance)
        white = (draws[:, seed, 0] - mean) @ vectors / np.sqrt(values)
        assert np.abs(white.mean(axis=0)).max() < Z / math.sqrt(20_000)
        error = np.where(np.eye(4, dtype=bool), math.sqrt(2 / 20_000), math.sqrt(1 / 20_000))
        assert (np.abs(white.T @ white / 20_000 - np.eye(4)) < Z * error).all()


def test_a_draw_is_the_reference_stream_through_the_cholesky_factor():
    """theta = mean + L g, with g the seed's next vector of the reference stream."""
    agent, features, rewards = play(6, 30)
    noise = StepNoise(range(3), "reference", 6)
    for _ in range(30):
        noise.next()
    recorder = Recorder()
    agent.act(recorder)
    gaussian = noise.next()
    for seed in range(3):
        mean, covariance = closed_form(features[:, seed], rewards[:, seed])
        expected = mean + np.linalg.cholesky(covariance) @ gaussian[seed]
        np.testing.assert_allclose(recorder.theta[0][seed, 0], expected, rtol=1e-9)


def test_the_action_with_the_greatest_value_is_chosen():
    """Brute force over the decision set, for two agents that draw alike."""
    seeds = range(5)
    decisions = Decisions(np.random.default_rng(0).standard_normal((5, 30, 8)))
    acting, telling = (LinearThompsonSampling(seeds, dimension=8, prior_variance=10.0) for _ in range(2))
    recorder = Recorder()
    choice = acting.act(decisions)
    telling.act(recorder)
    for seed in seeds:
        values = [sum(x * t for x, t in zip(row, recorder.theta[0][seed, 0], strict=True)) for row in decisions.features[seed]]
        assert choice.index[seed, 0] == values.index(max(values))
        assert np.array_equal(choice.features[seed, 0], decisions.features[seed, choice.index[seed, 0]])


def test_there_is_one_chain_without_laws():
    agent = LinearThompsonSampling([3], dimension=2, prior_variance=10.0, ensemble_size=0, horizon=5, device="cpu")
    assert agent.chains == (("none", "none"),)
    assert agent.seeds == (3,)
