"""Linear Ensemble++ against the closed form, and step by step against a literal implementation of the paper's equations.

The agent works in information form with Sherman-Morrison updates, batched over seeds and pairs of laws. The literal runs do
none of that. Whole runs in the compiled kernel: tests/engines/linear/test_compiled.py.
"""

import itertools
import math

import literal
import numpy as np
import pytest
from linear_bandits import PAIRS, PERTURBATIONS, Recorder, bandit, ensemble, same

from ensemblepp.agents.linear.ensemblepp import LinearEnsemblePlusPlus
from ensemblepp.engines.choice import simulate
from ensemblepp.randomness.distributions import LAWS
from ensemblepp.randomness.streams import StepNoise

PRIOR_VARIANCE = literal.PRIOR_VARIANCE

#: Standard errors that a Monte Carlo mean may be off; 5 are exceeded by chance once in 1.7 million comparisons.
Z = 5.0


@pytest.mark.parametrize(("dimension", "size", "actions", "rounds"), [(10, 8, 30, 120), (10, 16, 30, 80), (50, 4, 60, 70)])
def test_all_30_pairs_repeat_a_literal_implementation_step_by_step(dimension, size, actions, rounds):
    """Same streams, same A_0: the same action in every round, and so the same regret, for every pair of laws, 2 seeds."""
    seeds = (0, 5)
    trajectory = simulate(bandit(seeds, dimension, actions), ensemble(seeds, dimension, size), rounds, engine="step_by_step")
    assert trajectory.action.shape == (2, 30, rounds)
    for row, seed in enumerate(seeds):
        for chain, pair in enumerate(PAIRS):
            run = literal.run(bandit([seed], dimension, actions), literal.EnsemblePlusPlus(seed, dimension, size, pair), rounds)
            assert trajectory.action[row, chain].tolist() == run.action.tolist(), (seed, pair)
            np.testing.assert_allclose(trajectory.regret[row, chain], run.regret, rtol=1e-6, atol=1e-5)
    # the comparison can tell laws apart: they lead to different paths
    assert len({tuple(path) for path in trajectory.action.reshape(60, rounds).tolist()}) >= 30


def played(dimension: int, size: int, rounds: int):
    """An agent after real rounds: (agent, its A_0, features and rewards met, perturbation Gaussians), round first."""
    seeds = (0, 1)
    environment, agent = bandit(seeds, dimension, 40), ensemble(seeds, dimension, size, references=["gaussian"])
    start, features, rewards = agent.factor, [], []
    for _ in range(rounds):
        choice = agent.act(environment.decisions())
        outcome = environment.step(choice)
        agent.update(choice, outcome.reward)
        features.append(choice.features)
        rewards.append(outcome.reward)
    noise = StepNoise(seeds, "perturbation", size)
    return agent, start, np.array(features), np.array(rewards), np.array([noise.next().copy() for _ in range(rounds)])


def relative_error(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize("size", [1, 2, 8, 10, 64])
def test_factor_after_300_rounds_is_the_perturbed_ridge_solution(size):
    """All six perturbation laws, M below, at and above d = 10, 2 seeds: relative error below 1e-8.

    Twice: by the normal equations (Sigma_0^-1 + X^T X) A = Sigma_0^-1 A_0 + X^T Z, and as the paper's "optimal-solution",
    A = theta* + theta_0, where theta* minimises sum_s (z_s - <theta + theta_0, x_s>)^2 + lambda |theta|^2 (least squares
    by orthogonal factors). The latter needs the prior inside the residual: the loss as printed, without it, is off.
    """
    rounds, dimension = 300, 10
    agent, start, features, rewards, gaussians = played(dimension, size, rounds)
    penalty = np.eye(dimension) / PRIOR_VARIANCE
    for seed, (chain, law) in itertools.product(range(2), enumerate(PERTURBATIONS)):
        x, y, prior = features[:, seed, chain], rewards[:, seed, chain], start[seed, chain]
        z = np.array([literal.perturbation(law, gaussian) for gaussian in gaussians[:, seed]])
        mean = np.linalg.solve(penalty + x.T @ x, x.T @ y)
        factor = np.linalg.solve(penalty + x.T @ x, penalty @ prior + x.T @ z)
        assert relative_error(agent.posterior.mean[seed, chain], mean) < 1e-8
        assert relative_error(agent.factor[seed, chain], factor) < 1e-8

        stacked = np.concatenate([x, np.sqrt(penalty)])
        targets = np.concatenate([z - x @ prior, np.zeros((dimension, size))])
        theta = np.linalg.lstsq(stacked, targets)[0]
        assert relative_error(agent.factor[seed, chain], theta + prior) < 1e-8

        printed = np.linalg.lstsq(stacked, np.concatenate([z, np.zeros((dimension, size))]))[0]
        assert relative_error(agent.factor[seed, chain], printed + prior) > 0.5


def test_error_of_the_factor_does_not_grow_with_the_dimension():
    """d = 50 with M = 8 and M = 128, 300 rounds: still below 1e-8."""
    for size in (8, 128):
        agent, start, features, _, gaussians = played(50, size, 300)
        x, prior = features[:, 1, 1], start[1, 1]
        z = np.array([literal.perturbation("sphere", gaussian) for gaussian in gaussians[:, 1]])
        factor = np.linalg.solve(np.eye(50) / PRIOR_VARIANCE + x.T @ x, prior / PRIOR_VARIANCE + x.T @ z)
        assert relative_error(agent.factor[1, 1], factor) < 1e-8


def test_ensemble_sampling_is_a_slice_of_all_pairs_bit_for_bit():
    """ES, the coordinate reference alone with the sphere perturbation: same actions, regret, posterior and factor."""
    seeds = (0, 1, 2)
    whole, slice_ = ensemble(seeds, 10, 8), ensemble(seeds, 10, 8, references=["coordinate"], perturbations=["sphere"])
    full = simulate(bandit(seeds, 10, 50), whole, 300, engine="step_by_step")
    part = simulate(bandit(seeds, 10, 50), slice_, 300, engine="step_by_step")
    chain = whole.chains.index(("coordinate", "sphere"))
    assert slice_.chains == (("coordinate", "sphere"),)
    assert same(full, part, chains=[chain])
    assert np.array_equal(whole.posterior.mean[:, chain], slice_.posterior.mean[:, 0])
    assert np.array_equal(whole.factor[:, chain], slice_.factor[:, 0])


@pytest.mark.parametrize(
    ("left", "right"), [(("sphere", "gaussian"), ("sphere", "sphere")), (("cube", "gaussian"), ("cube", "sphere"))]
)
def test_gaussian_and_sphere_perturbations_give_the_same_run(left, right):
    """They are one law after the normalisation, so these chains coincide exactly."""
    agent = ensemble((0,), 10, 8)
    trajectory = simulate(bandit((0,), 10, 50), agent, 100, engine="step_by_step")
    first, second = (agent.chains.index(pair) for pair in (left, right))
    assert np.array_equal(trajectory.action[:, first], trajectory.action[:, second])


def spectrum(agent: LinearEnsemblePlusPlus, seed: int, chain: int) -> np.ndarray:
    """Eigenvalues of Sigma^-1/2 A A^T Sigma^-1/2, increasing."""
    root = np.linalg.cholesky(agent.posterior.covariance[seed, chain])
    return np.linalg.svd(np.linalg.solve(root, agent.factor[seed, chain]), compute_uv=False)[::-1] ** 2


@pytest.mark.parametrize("law", LAWS)
def test_large_ensembles_track_the_posterior_covariance(law):
    """M = 1024, d = 20, 300 rounds: Sigma / 2 <= A A^T <= 3 Sigma / 2, the paper's Lemma "incre-uncertainty".

    For independent normal columns the spectrum lies about (1 +- sqrt(d/M))^2 = 0.74 .. 1.30; at M = 64 that is
    0.19 .. 2.43, outside the band.
    """
    seeds = (0, 1)
    for size, inside in ((1024, True), (64, False)):
        agent = ensemble(seeds, 20, size, references=["gaussian"], perturbations=[law])
        simulate(bandit(seeds, 20, 50), agent, 300, engine="step_by_step")
        for seed in range(2):
            values = spectrum(agent, seed, 0)
            assert (values[0] >= 0.5 and values[-1] <= 1.5) == inside


def test_small_ensembles_have_a_singular_covariance():
    """A is d x M: with M < d its rank is M, so Sigma / 2 <= A A^T cannot hold; with M >= d it is d."""
    for size in (1, 4, 10, 30):
        agent = ensemble((0,), 10, size, references=["gaussian"], perturbations=["sphere"])
        simulate(bandit((0,), 10, 50), agent, 50, engine="step_by_step")
        assert np.linalg.matrix_rank(agent.factor[0, 0]) == min(size, 10)


def test_initial_factor_has_the_prior_covariance_on_average():
    """E[A_0 A_0^T] = Sigma_0 over 2,000 seeds: diagonal 10 with variance 2 * 100 / M, off it 0 with variance 100 / M."""
    seeds, size = range(2000), 4
    start = ensemble(seeds, 3, size, references=["gaussian"], perturbations=["sphere"]).factor[:, 0]
    products = start @ start.transpose(0, 2, 1)
    variance = np.where(np.eye(3, dtype=bool), 2.0, 1.0) * PRIOR_VARIANCE**2 / size
    error = np.sqrt(variance / len(seeds))
    assert (np.abs(products.mean(axis=0) - PRIOR_VARIANCE * np.eye(3)) < Z * error).all()
    np.testing.assert_allclose(products.var(axis=0), variance, rtol=0.2)


def test_initial_members_are_nested_in_the_ensemble_size():
    """A_0 has N(0, Sigma_0) columns over sqrt(M): times sqrt(M), a small ensemble's are the first of a large one's."""
    small, large = (math.sqrt(size) * ensemble((3,), 6, size).factor[0, 0] for size in (4, 32))
    np.testing.assert_allclose(small, large[:, :4], rtol=1e-14)


def test_sampled_parameters_have_mean_mu_and_covariance_a_a_transposed():
    """theta = mu + A zeta over 20,000 draws of every reference law; with M < d the covariance is singular, as it must be."""
    agent = ensemble((0,), 5, 3, perturbations=["sphere"])
    simulate(bandit((0,), 5, 30), agent, 20, engine="step_by_step")
    recorder = Recorder()
    for _ in range(20_000):
        agent.act(recorder)
    draws = np.array(recorder.theta)[:, 0]
    for chain in range(len(LAWS)):
        mean, factor = agent.posterior.mean[0, chain], agent.factor[0, chain]
        centred = draws[:, chain] - mean
        assert (np.abs(centred.mean(axis=0)) < Z * centred.std(axis=0) / math.sqrt(20_000)).all()
        products = centred[:, :, None] * centred[:, None, :]
        error = products.std(axis=0) / math.sqrt(20_000)
        assert (np.abs(products.mean(axis=0) - factor @ factor.T) < Z * error + 1e-12).all()


def test_other_seeds_do_not_change_a_run():
    """Seeds 0..3 together equal each of them alone, bit for bit, step by step."""
    together = simulate(bandit(range(4), 10, 50), ensemble(range(4), 10, 8), 100, engine="step_by_step")
    for seed in range(4):
        alone = simulate(bandit([seed], 10, 50), ensemble([seed], 10, 8), 100, engine="step_by_step")
        assert np.array_equal(together.action[seed], alone.action[0])
        assert np.array_equal(together.regret[seed], alone.regret[0])
