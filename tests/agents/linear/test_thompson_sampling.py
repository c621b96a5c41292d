"""Exact Thompson sampling: its posterior after real rounds, and the law of what it draws."""

import math

import literal
import numpy as np
import pytest
from linear_bandits import Recorder, bandit

from ensemblepp.agents.linear.thompson_sampling import LinearThompsonSampling
from ensemblepp.bandit import Decisions
from ensemblepp.engines.choice import simulate
from ensemblepp.randomness.streams import StepNoise

#: Standard errors that a Monte Carlo mean may be off; 5 are exceeded by chance once in 1.7 million comparisons.
Z = 5.0


def play(dimension: int, rounds: int) -> tuple[LinearThompsonSampling, np.ndarray, np.ndarray]:
    """An agent after `rounds` rounds with 3 seeds, and the features and rewards it met, round first."""
    seeds = range(3)
    environment, agent = bandit(seeds, dimension, 40), LinearThompsonSampling(seeds, dimension=dimension, prior_variance=10.0)
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


def test_a_draw_is_the_reference_stream_through_the_cholesky_factor_of_the_precision():
    """theta = mean + R^-1 g, R^T R the precision and R upper triangular, g the seed's next vector of the reference stream."""
    agent, features, rewards = play(6, 30)
    noise = StepNoise(range(3), "reference", 6)
    for _ in range(30):
        noise.next()
    recorder = Recorder()
    agent.act(recorder)
    gaussian = noise.next()
    for seed in range(3):
        mean, covariance = closed_form(features[:, seed], rewards[:, seed])
        upper = np.linalg.cholesky(np.linalg.inv(covariance)).T
        expected = mean + np.linalg.solve(upper, gaussian[seed])
        np.testing.assert_allclose(recorder.theta[0][seed, 0], expected, rtol=1e-9)


def test_the_action_with_the_greatest_value_is_chosen():
    """Brute force over the decision set, for two agents that draw alike."""
    seeds = range(5)
    decisions = Decisions(np.random.default_rng(0).standard_normal((5, 30, 8)))
    agent, twin = (LinearThompsonSampling(seeds, dimension=8, prior_variance=10.0) for _ in range(2))
    recorder = Recorder()
    choice = agent.act(decisions)
    twin.act(recorder)
    for seed in seeds:
        values = [sum(x * t for x, t in zip(row, recorder.theta[0][seed, 0], strict=True)) for row in decisions.features[seed]]
        assert choice.index[seed, 0] == values.index(max(values))
        assert np.array_equal(choice.features[seed, 0], decisions.features[seed, choice.index[seed, 0]])


def test_there_is_one_chain_without_laws():
    agent = LinearThompsonSampling([3], dimension=2, prior_variance=10.0, ensemble_size=0, horizon=5, device="cpu")
    assert agent.chains == (("none", "none"),)
    assert agent.seeds == (3,)


@pytest.mark.parametrize("delta", [None, 0.05])
@pytest.mark.parametrize(
    "environment",
    [{"actions": 37}, {"actions": 1200}, {"actions": 25, "varying": True}, {"actions": 0}],
    ids=["finite", "pruned", "fresh", "sphere"],
)
def test_compiled_and_step_by_step_repeat_literal_runs(environment, delta):
    """The compiled factor follows by rotations what the literal runs factorise anew; float64, d = 9, two seeds."""
    options = {"dimension": 9, "prior_variance": 10.0, "precision": "float64", "inflation_delta": delta}
    compiled = simulate(bandit((0, 4), 9, **environment), LinearThompsonSampling((0, 4), **options), 150)
    stepwise = simulate(bandit((0, 4), 9, **environment), LinearThompsonSampling((0, 4), **options), 150, engine="step_by_step")
    for row, seed in enumerate((0, 4)):
        run = literal.run(bandit([seed], 9, **environment), literal.ThompsonSampling(seed, 9, delta=delta), 150)
        for trajectory in (compiled, stepwise):
            assert trajectory.action[row, 0].tolist() == run.action.tolist()
            np.testing.assert_allclose(trajectory.regret[row, 0], run.regret, rtol=1e-6, atol=1e-6)


def test_mixed_precision_stays_on_the_path_of_float64():
    """Only scores are float32: 40 runs of 1,000 rounds at d = 50."""
    runs = [
        simulate(
            bandit(range(40), 50, 1000),
            LinearThompsonSampling(range(40), dimension=50, prior_variance=10.0, precision=precision),
            1000,
        )
        for precision in ("mixed", "float64")
    ]
    assert (runs[0].action == runs[1].action).all(axis=-1).mean() >= 0.98
