"""The compact-action linear bandit: every point of the unit sphere is an action."""

import math

import numpy as np
import pytest
from scipy import stats

from ensemblepp.bandit import SphereDecisions
from ensemblepp.environments import linear_sphere
from ensemblepp.environments.linear_finite import LinearFinite
from ensemblepp.environments.linear_sphere import LinearSphere
from ensemblepp.errors import ConfigError

#: Standard errors that a Monte Carlo mean may be off; 5 are exceeded by chance once in 1.7 million comparisons.
Z = 5.0


def build(seeds=(0, 1), dimension=3, noise=1.0, prior_variance=10.0) -> LinearSphere:
    return LinearSphere(seeds, dimension=dimension, prior_variance=prior_variance, noise=noise)


def play(environment: LinearSphere, theta: np.ndarray):
    return environment.step(environment.decisions().maximise(theta))


@pytest.mark.parametrize("prior_variance", [10.0, 0.5])
def test_theta_has_the_prior_s_variance(prior_variance):
    """500 seeds x 20 entries: mean, variance, Kolmogorov-Smirnov."""
    theta = build(range(500), dimension=20, prior_variance=prior_variance).theta.ravel()
    assert abs(theta.mean()) < Z * math.sqrt(prior_variance / theta.size)
    assert abs(theta.var() - prior_variance) < Z * prior_variance * math.sqrt(2 / theta.size)
    assert stats.kstest(theta / math.sqrt(prior_variance), "norm").pvalue > 1e-3


def test_the_best_action_is_the_direction_of_theta_by_hand():
    """(3, 4) -> (0.6, 0.8); the length does not matter; zero takes the first axis; the index is always 0."""
    theta = np.array([[[3.0, 4.0], [-3e-100, -4e-100], [0.0, 0.0]], [[0.0, -2.0], [5.0, 0.0], [1e150, 0.0]]])
    choice = SphereDecisions().maximise(theta)
    np.testing.assert_allclose(
        choice.features, [[[0.6, 0.8], [-0.6, -0.8], [1, 0]], [[0, -1], [1, 0], [1, 0]]], rtol=1e-14, atol=1e-300
    )
    assert choice.index.tolist() == [[0, 0, 0], [0, 0, 0]]


def test_no_other_unit_vector_is_better():
    """20,000 random directions for 8 parameter vectors."""
    source = np.random.default_rng(0)
    theta = source.standard_normal((2, 4, 5))
    chosen = SphereDecisions().maximise(theta).features
    np.testing.assert_allclose(np.linalg.norm(chosen, axis=-1), 1, rtol=1e-14)
    others = source.standard_normal((20_000, 5))
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    best = np.einsum("scd,scd->sc", chosen, theta)
    assert (np.einsum("nd,scd->scn", others, theta) < best[..., None]).all()


def test_reward_and_regret_by_hand(monkeypatch):
    """theta* = (1, 2, 2), |theta*| = 3: its own direction has no regret, the opposite one 6, (0, 1, 0) has 3 - 2."""

    class Draws:
        def standard_normal(self, size):
            assert size == 3
            return np.array([1.0, 2.0, 2.0])

    monkeypatch.setattr(linear_sphere, "generator", lambda seed, stream: Draws())
    environment = build((0,), noise=0.0, prior_variance=1.0)
    asked = np.array([[[2.0, 4.0, 4.0], [-1.0, -2.0, -2.0], [0.0, 7.0, 0.0], [0.0, 0.0, 0.0]]])
    outcome = play(environment, asked)
    np.testing.assert_allclose(outcome.reward, [[3, -3, 2, 1]], rtol=1e-14)
    np.testing.assert_allclose(outcome.regret, [[0, 6, 1, 2]], atol=1e-14)


def test_regret_is_the_norm_of_theta_minus_the_mean_reward():
    """For the bandit as drawn, two seeds x three chains, without noise."""
    environment = build(dimension=6, noise=0.0)
    theta = np.random.default_rng(0).standard_normal((2, 3, 6))
    outcome = play(environment, theta)
    for seed in range(2):
        norm = math.sqrt(sum(value**2 for value in environment.theta[seed]))
        assert environment.mean_rewards()[seed].max() == pytest.approx(norm, rel=1e-14)
        for chain in range(3):
            own = theta[seed, chain]
            mean = sum(x * t for x, t in zip(own, environment.theta[seed], strict=True)) / math.sqrt(sum(x * x for x in own))
            assert outcome.reward[seed, chain] == pytest.approx(mean, rel=1e-12)
            assert outcome.regret[seed, chain] == pytest.approx(norm - mean, rel=1e-12)
    assert np.abs(play(environment, environment.theta[:, None]).regret).max() < 1e-14 * 20


@pytest.mark.parametrize("noise", [1.0, 0.1])
def test_noise_is_normal_and_shared_by_the_chains(noise):
    """4 seeds x 5,000 rounds of reward minus mean: law, independence of seeds and rounds."""
    environment = build(range(4), noise=noise)
    theta = np.random.default_rng(1).standard_normal((4, 2, 3))
    norm = np.linalg.norm(environment.theta, axis=1)[:, None]
    noises = []
    for _ in range(5000):
        outcome = play(environment, theta)
        noises.append(outcome.reward - (norm - outcome.regret))
    noises = np.array(noises)
    np.testing.assert_allclose(noises[:, :, 0], noises[:, :, 1], atol=1e-12)
    values = noises[:, :, 0] / noise
    assert abs(values.mean()) < Z / math.sqrt(values.size)
    assert stats.kstest(values.ravel(), "norm").pvalue > 1e-3
    assert np.abs(np.corrcoef(values.T) - np.eye(4)).max() < Z / math.sqrt(5000)
    assert abs((values[1:] * values[:-1]).mean()) < Z / math.sqrt(values.size)


def test_seeds_differ_and_do_not_depend_on_each_other_nor_on_what_is_chosen():
    together, alone = build((0, 1, 6), dimension=8), build((6,), dimension=8)
    assert not np.isclose(together.theta[0], together.theta[1]).any()
    assert np.array_equal(together.theta[2], alone.theta[0])
    source = np.random.default_rng(0)
    for _ in range(100):
        theta = source.standard_normal((3, 2, 8))
        first = play(together, theta)
        second = play(alone, np.stack([source.standard_normal(8), theta[2, 1]])[None])
        assert first.reward[2, 1] == second.reward[0, 1]
        assert first.regret[2, 1] == second.regret[0, 1]


def test_a_seed_s_theta_and_noise_are_those_of_its_finite_bandit():
    """Studies of both decision sets are paired."""
    sphere = build((0, 3), dimension=5)
    finite = LinearFinite((0, 3), dimension=5, actions=4, feature_bound=1.0, prior_variance=10.0, noise=1.0)
    assert np.array_equal(sphere.theta, finite.theta)
    for left, right in zip(sphere.instances(), finite.instances(), strict=True):
        assert np.array_equal(left.reward_noise(50), right.reward_noise(50))


def test_instances_are_the_bandit_draw_for_draw():
    """theta* and noise of `instances` are what `step` shows, in portions of any size."""
    environment, given = build((0, 5), noise=0.7), build((0, 5), noise=0.7)
    norm = np.linalg.norm(environment.theta, axis=1)[:, None]
    noises = []
    for _ in range(150):
        outcome = play(environment, environment.theta[:, None])
        noises.append((outcome.reward - (norm - outcome.regret))[:, 0])
    instances = list(given.instances())
    assert [instance.seed for instance in instances] == [0, 5]
    for row, instance in enumerate(instances):
        assert np.array_equal(instance.theta, environment.theta[row])
        assert (instance.features, instance.fresh, instance.actions, instance.sphere) == (None, None, 0, True)
        drawn = np.concatenate([instance.reward_noise(rounds) for rounds in (1, 9, 140)])
        np.testing.assert_allclose(drawn, np.array(noises)[:, row], rtol=1e-9, atol=1e-12)


def test_there_is_no_list_of_actions():
    message = r"^this agent needs a finite decision set; leave it out of studies on linear_sphere environments$"
    with pytest.raises(ConfigError, match=message):
        _ = build().decisions().features
    assert (build().fixed_actions, build().dimension) == (0, 3)
