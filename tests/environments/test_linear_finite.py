"""The finite-action linear bandit (paper, Appendix "Additional Experiments on Linear Bandit")."""

import math

import numpy as np
import pytest
from scipy import stats

from ensemblepp.environments.base import Choice
from ensemblepp.environments.linear_finite import LinearFinite

#: Standard errors that a Monte Carlo mean may be off; 5 are exceeded by chance once in 1.7 million comparisons.
Z = 5.0


def build(seeds=(0, 1), dimension=10, actions=30, feature_bound=5**-0.5, noise=1.0) -> LinearFinite:
    return LinearFinite(
        seeds, dimension=dimension, actions=actions, feature_bound=feature_bound, prior_variance=10.0, noise=noise
    )


def play(environment: LinearFinite, index: np.ndarray):
    return environment.step(environment.decisions().choose(index))


@pytest.mark.parametrize(("dimension", "bound"), [(10, 5**-0.5), (50, 5**-0.5), (50, 50**-0.5)])
def test_features_are_uniform_within_the_bound(dimension, bound):
    """Range, mean 0, variance u^2/3, Kolmogorov-Smirnov; E|x|^2 = d u^2 / 3: d/15 with 1/sqrt(5), 1/3 with 1/sqrt(d)."""
    features = build(range(4), dimension, 2000, bound).decisions().features
    assert features.shape == (4, 2000, dimension)
    values = features.ravel()
    assert 0.999 * bound < np.abs(values).max() <= bound
    assert abs(values.mean()) < Z * bound / math.sqrt(3 * values.size)
    assert stats.kstest(values, stats.uniform(-bound, 2 * bound).cdf).pvalue > 1e-3
    squares = (features**2).sum(axis=2).ravel()
    expected = dimension / 15 if bound == 5**-0.5 else 1 / 3
    assert abs(squares.mean() - expected) < Z * squares.std() / math.sqrt(squares.size)


def test_theta_has_variance_10():
    """500 seeds x 20 entries of N(0, 10)."""
    theta = build(range(500), dimension=20, actions=1).theta.ravel()
    assert abs(theta.mean()) < Z * math.sqrt(10 / theta.size)
    assert abs(theta.var() - 10) < Z * 10 * math.sqrt(2 / theta.size)
    assert stats.kstest(theta / math.sqrt(10), "norm").pvalue > 1e-3


def test_rewards_and_regret_by_brute_force():
    """Without noise: reward <x, theta*>, regret the best of all actions minus it, for two chains of two seeds."""
    environment = build(noise=0.0)
    features = environment.decisions().features
    for first in range(0, 30, 7):
        index = np.array([[first, (first + 11) % 30], [(3 * first) % 30, first]])
        outcome = play(environment, index)
        for seed in range(2):
            values = [sum(x * t for x, t in zip(row, environment.theta[seed], strict=True)) for row in features[seed]]
            for chain in range(2):
                chosen = values[index[seed, chain]]
                assert outcome.reward[seed, chain] == pytest.approx(chosen, rel=1e-12, abs=1e-12)
                assert outcome.regret[seed, chain] == pytest.approx(max(values) - chosen, rel=1e-12, abs=1e-12)


def test_the_best_action_has_exactly_no_regret():
    """So that optimal rounds can be counted; every other action has some."""
    environment = build()
    best = environment.mean_rewards().argmax(axis=1)
    for action in range(30):
        regret = play(environment, np.full((2, 1), action)).regret[:, 0]
        assert (regret >= 0).all()
        assert ((regret == 0) == (best == action)).all()


@pytest.mark.parametrize("noise", [1.0, 0.1])
def test_noise_is_normal_with_the_given_standard_deviation(noise):
    """4 seeds x 5,000 rounds of reward minus mean, shared by the chains of a seed, independent between seeds and rounds."""
    environment = build(range(4), noise=noise)
    index = np.array([[0, 5]] * 4)
    means = np.take_along_axis(environment.mean_rewards(), index, axis=1)
    noises = np.array([play(environment, index).reward - means for _ in range(5000)])
    np.testing.assert_allclose(noises[:, :, 0], noises[:, :, 1], atol=1e-12)
    values = noises[:, :, 0] / noise
    assert abs(values.mean()) < Z / math.sqrt(values.size)
    assert stats.kstest(values.ravel(), "norm").pvalue > 1e-3
    assert np.abs(np.corrcoef(values.T) - np.eye(4)).max() < Z / math.sqrt(5000)
    assert abs((values[1:] * values[:-1]).mean()) < Z / math.sqrt(values.size)


def test_decision_set_and_theta_stay_for_the_whole_run():
    environment = build()
    features, theta = environment.decisions().features.copy(), environment.theta.copy()
    for _ in range(200):
        play(environment, np.zeros((2, 1), dtype=int))
    assert np.array_equal(environment.decisions().features, features)
    assert np.array_equal(environment.theta, theta)


def test_seeds_differ_and_do_not_depend_on_each_other():
    """All of features, theta* and noise; the third seed of three is that seed alone."""
    together, alone = build((0, 1, 6)), build((6,))
    features = together.decisions().features
    assert not np.isclose(features[0], features[1]).any()
    assert not np.isclose(together.theta[0], together.theta[1]).any()
    assert np.array_equal(features[2], alone.decisions().features[0])
    assert np.array_equal(together.theta[2], alone.theta[0])
    for _ in range(100):
        first = play(together, np.zeros((3, 1), dtype=int)).reward
        assert first[2] == play(alone, np.zeros((1, 1), dtype=int)).reward[0]


def test_choosing_returns_the_features_of_the_choice():
    """`Decisions.choose` and `maximise` on a set of three actions; a tie goes to the lowest index."""
    environment = build((0,), dimension=2, actions=3)
    decisions = type(environment.decisions())(np.array([[[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]]))
    choice = decisions.maximise(np.array([[[2.0, 1.0], [1.0, 2.0], [-1.0, -3.0]]]))
    assert isinstance(choice, Choice)
    assert choice.index.tolist() == [[0, 1, 0]]
    assert choice.features.tolist() == [[[1, 0], [0, 1], [1, 0]]]


def test_always_one_action_is_no_policy_to_compare_with():
    assert build().fixed_actions == 0
    assert build().dimension == 10
