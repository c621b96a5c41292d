"""The finite-action linear bandit (paper, Appendix "Additional Experiments on Linear Bandit")."""

import math

import numpy as np
import pytest
from scipy import stats

from ensemblepp.bandit import Choice
from ensemblepp.environments.linear_finite import LinearFinite

#: Standard errors that a Monte Carlo mean may be off; 5 are exceeded by chance once in 1.7 million comparisons.
Z = 5.0


def build(seeds=(0, 1), dimension=10, actions=30, feature_bound=5**-0.5, noise=1.0, **options) -> LinearFinite:
    return LinearFinite(
        seeds,
        dimension=dimension,
        actions=actions,
        feature_bound=feature_bound,
        prior_variance=10.0,
        noise=noise,
        **options,
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


# -------------------------------------------------------------------------------------------------------- unit vectors


@pytest.mark.parametrize("dimension", [1, 2, 10])
def test_unit_vectors_are_uniform_on_the_sphere(dimension):
    """Norm 1; mean 0, covariance I/d; (1 + x_i)/2 is a beta: 4 seeds x 5,000 actions."""
    features = build(range(4), dimension, 5000, features="sphere").decisions().features.reshape(-1, dimension)
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, rtol=1e-14)
    assert (np.abs(features.mean(axis=0)) < Z / math.sqrt(dimension * len(features))).all()
    products = features[:, :, None] * features[:, None, :]
    error = products.std(axis=0) / math.sqrt(len(features))
    assert (np.abs(products.mean(axis=0) - np.eye(dimension) / dimension) <= Z * error + 1e-12).all()
    if dimension == 1:
        assert abs((features > 0).mean() - 0.5) < Z * 0.5 / math.sqrt(len(features))
    else:
        shape = (dimension - 1) / 2
        assert stats.kstest((features[:, 0] + 1) / 2, stats.beta(shape, shape).cdf).pvalue > 1e-3


# --------------------------------------------------------------------------------------------------- varying contexts


KINDS = [{"features": "cube"}, {"features": "sphere"}]


@pytest.mark.parametrize("kind", KINDS)
def test_fresh_sets_differ_every_round_and_theta_stays(kind):
    """Within a round the set stays, however often it is asked for; all entries are new after it."""
    environment = build(varying=True, **kind)
    theta, sets = environment.theta.copy(), []
    for _ in range(50):
        features = environment.decisions().features
        assert environment.decisions().features is features
        sets.append(features.copy())
        play(environment, np.array([[3], [4]]))
    assert np.array_equal(environment.theta, theta)
    flat = np.array(sets).reshape(50, -1)
    assert len({row.tobytes() for row in flat}) == 50
    assert not np.isclose(flat[1:], flat[:-1]).all(axis=1).any()
    # neighbouring rounds are independent
    products = flat[1:] * flat[:-1]
    assert abs(products.mean()) < Z * products.std() / math.sqrt(products.size)


@pytest.mark.parametrize("dimension", [4, 50])
def test_features_of_fresh_sets_have_the_law_of_fixed_ones(dimension):
    environment = build((0, 1), dimension, 40, varying=True)
    values = []
    for _ in range(100):
        values.append(environment.decisions().features.copy())
        play(environment, np.zeros((2, 1), dtype=int))
    values = np.array(values).ravel()
    assert stats.kstest(values, stats.uniform(-(5**-0.5), 2 * 5**-0.5).cdf).pvalue > 1e-3


@pytest.mark.parametrize("kind", KINDS)
def test_regret_on_fresh_sets_by_brute_force(kind):
    """Against the best action of the round's own set, for two chains of two seeds, without noise."""
    environment = build(noise=0.0, varying=True, **kind)
    for step in range(20):
        features = environment.decisions().features.copy()
        means = environment.mean_rewards().copy()
        index = np.array([[step, 29 - step], [5, step]])
        outcome = play(environment, index)
        for seed in range(2):
            values = [sum(x * t for x, t in zip(row, environment.theta[seed], strict=True)) for row in features[seed]]
            np.testing.assert_allclose(means[seed], values, rtol=1e-9, atol=1e-12)
            for chain in range(2):
                chosen = values[index[seed, chain]]
                assert outcome.reward[seed, chain] == pytest.approx(chosen, rel=1e-12, abs=1e-12)
                assert outcome.regret[seed, chain] == pytest.approx(max(values) - chosen, rel=1e-12, abs=1e-12)


def test_fresh_sets_share_theta_noise_and_the_first_set_with_the_bandit_of_fixed_sets():
    """At one seed they differ in nothing but what comes after the first round."""
    fixed, fresh = build(), build(varying=True)
    assert np.array_equal(fixed.theta, fresh.theta)
    assert np.array_equal(fixed.decisions().features, fresh.decisions().features)
    noises = []
    for environment in (fixed, fresh):
        seen = []
        for _ in range(70):
            mean = environment.mean_rewards()[:, :1].copy()
            seen.append(play(environment, np.zeros((2, 1), dtype=int)).reward - mean)
        noises.append(seen)
    np.testing.assert_allclose(noises[0], noises[1], atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_agents_and_seeds_do_not_change_fresh_sets(kind):
    """Whatever is chosen, and whoever plays beside it: the third seed of three is that seed alone."""
    together, alone = build((0, 1, 6), varying=True, **kind), build((6,), varying=True, **kind)
    for step in range(30):
        features = together.decisions().features
        assert np.array_equal(features[2], alone.decisions().features[0])
        assert not np.isclose(features[0], features[1]).any()
        first = play(together, np.full((3, 2), step))
        second = play(alone, np.array([[7, step]]))
        assert first.reward[2, 1] == second.reward[0, 1]
        assert first.regret[2, 1] == second.regret[0, 1]


# ------------------------------------------------------------------------------------------------------------ instances


def test_instances_are_the_bandit_draw_for_draw():
    """theta*, features and noise of `instances` are what `decisions` and `step` show, seed by seed."""
    environment, given = build((0, 5), noise=0.7), build((0, 5), noise=0.7)
    features = environment.decisions().features
    noises = np.array([play(environment, np.zeros((2, 1), dtype=int)).reward[:, 0] for _ in range(150)])
    noises -= environment.mean_rewards()[:, 0]
    instances = list(given.instances())
    assert [instance.seed for instance in instances] == [0, 5]
    for row, instance in enumerate(instances):
        assert np.array_equal(instance.theta, environment.theta[row])
        assert np.array_equal(instance.features, features[row])
        assert (instance.fresh, instance.actions, instance.sphere) == (None, 30, False)
        drawn = np.concatenate([instance.reward_noise(rounds) for rounds in (1, 9, 140)])
        np.testing.assert_allclose(drawn, noises[:, row], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("dimension", [1, 10, 51])
@pytest.mark.parametrize("kind", KINDS)
def test_instances_of_fresh_sets_are_the_bandit_draw_for_draw(kind, dimension):
    """In portions of any size."""
    environment = build((0, 5), dimension, varying=True, **kind)
    sets, noises = [], []
    for _ in range(60):
        sets.append(environment.decisions().features.copy())
        mean = environment.mean_rewards()[:, 0].copy()
        noises.append(play(environment, np.zeros((2, 1), dtype=int)).reward[:, 0] - mean)
    for row, instance in enumerate(build((0, 5), dimension, varying=True, **kind).instances()):
        assert np.array_equal(instance.theta, environment.theta[row])
        assert (instance.features, instance.actions, instance.sphere) == (None, 30, False)
        portions = (1, 7, 52)
        assert np.array_equal(np.concatenate([instance.fresh(rounds) for rounds in portions]), np.array(sets)[:, row])
        drawn = np.concatenate([instance.reward_noise(rounds) for rounds in portions])
        np.testing.assert_allclose(drawn, np.array(noises)[:, row], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("varying", [True, False])
def test_a_look_at_the_first_decision_set_changes_no_instance(varying):
    """It is the instance's first set, whatever `mean_rewards` or `decisions` have shown of it."""
    looked, untouched = build((2, 3), varying=varying), build((2, 3), varying=varying)
    features = looked.decisions().features.copy()
    means = looked.mean_rewards()
    for row, (instance, again) in enumerate(zip(looked.instances(), untouched.instances(), strict=True)):
        assert np.array_equal(instance.theta, again.theta)
        assert np.array_equal(instance.reward_noise(20), again.reward_noise(20))
        if varying:
            drawn = [np.concatenate([one.fresh(rounds) for rounds in (1, 3, 16)]) for one in (instance, again)]
        else:
            drawn = [instance.features[None], again.features[None]]
        assert np.array_equal(*drawn)
        assert np.array_equal(drawn[0][0], features[row])
        np.testing.assert_allclose(features[row] @ instance.theta, means[row], rtol=1e-9)


def test_an_instance_is_made_when_it_is_asked_for(monkeypatch):
    """So that the decision sets of one seed at a time are in memory."""
    drawn, original = [], LinearFinite._draw
    monkeypatch.setattr(LinearFinite, "_draw", lambda *given: (drawn.append(given[2]), original(*given))[1])
    instances = build((2, 3)).instances()
    assert (next(instances).seed, drawn) == (2, [1])
    assert (next(instances).seed, drawn) == (3, [1, 1])
