"""Bandits over a table of contexts: features, order of the rows, rewards and regret."""

import math

import numpy as np
import pytest
from scipy import stats

from ensemblepp.environments.contextual import Contextual
from ensemblepp.environments.scaling import unit_rows
from ensemblepp.errors import ConfigError

CONTEXTS = np.array([[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]], dtype=np.float32)
MEANS = np.array([[1.0, 0.0, 0.2], [0.0, 1.0, 0.2], [0.3, 0.3, 1.0], [0.0, 0.0, 0.0], [-1.0, 2.0, 2.0]])

#: Standard errors that a Monte Carlo mean may be off; 5 are exceeded by chance once in 1.7 million comparisons.
Z = 5.0


def build(seeds=(0, 1, 2), noise=0.0, passes=1, contexts=CONTEXTS, means=MEANS) -> Contextual:
    return Contextual(seeds, contexts, means, noise=noise, passes=passes)


def rows(environment: Contextual, rounds: int) -> np.ndarray:
    """The rows that the next rounds show, (rounds, seeds), read from the features of action 0."""
    shown = []
    for _ in range(rounds):
        decisions = environment.decisions()
        shown.append([int(value) // 2 for value in decisions.features[:, 0, 0]])
        environment.step(decisions.choose(np.zeros((len(environment.seeds), 1), dtype=int)))
    return np.array(shown)


def test_features_are_block_disjoint():
    """Action a of x = (p, q) has x in block a of R^6: (p q 0 0 0 0), (0 0 p q 0 0), (0 0 0 0 p q)."""
    environment = build()
    assert (environment.dimension, environment.fixed_actions) == (6, 3)
    features = environment.decisions().features
    assert features.shape == (3, 3, 6)
    assert features.dtype == np.float32
    for table in features:
        p, q = table[0, :2]
        assert [p, q] in CONTEXTS.tolist()
        assert table.tolist() == [[p, q, 0, 0, 0, 0], [0, 0, p, q, 0, 0], [0, 0, 0, 0, p, q]]


def test_every_row_is_shown_once_per_pass():
    """3 passes over 5 rows: each pass is a permutation of all rows, for every seed."""
    shown = rows(build(passes=3), 15)
    for seed in range(3):
        for start in (0, 5, 10):
            assert sorted(shown[start : start + 5, seed]) == [0, 1, 2, 3, 4]


def test_later_passes_are_shuffled_anew_and_seeds_have_their_own_order():
    """100 rows: two passes, or two seeds, agree in about one place (99.9 % of orders in fewer than 6)."""
    contexts = np.stack([2 * np.arange(100) + 1, np.zeros(100)], axis=1).astype(np.float32)
    shown = rows(build((0, 1), passes=3, contexts=contexts, means=np.zeros((100, 2))), 300)
    passes = [shown[start : start + 100, seed] for start in (0, 100, 200) for seed in (0, 1)]
    for first, one in enumerate(passes):
        assert not np.array_equal(one, np.arange(100))
        for other in passes[:first]:
            assert (one == other).sum() < 6


def test_orders_are_uniform():
    """The first row of 2,000 seeds, chi-square over the 5 rows."""
    first = rows(build(range(2000)), 1)[0]
    assert stats.chisquare(np.bincount(first, minlength=5)).pvalue > 1e-3


def test_one_round_shows_one_row_however_often_it_is_asked():
    environment = build(passes=2)
    for _ in range(10):
        first = environment.decisions().features
        assert np.array_equal(environment.decisions().features, first)
        shown = [int(value) // 2 for value in first[:, 0, 0]]
        assert np.array_equal(environment.mean_rewards(), MEANS[shown])
        environment.step(environment.decisions().choose(np.zeros((3, 1), dtype=int)))


def test_rounds_beyond_the_data_are_refused():
    """5 rows x 2 passes: the 11th round is an error that says what to change."""
    environment = build(passes=2)
    rows(environment, 10)
    with pytest.raises(ConfigError, match=r"^round 11 is beyond the data: 5 rows x 2 pass\(es\); lower the horizon"):
        environment.decisions()


def test_rewards_and_regret_by_hand():
    """Reward MEANS[row, action]; regret the row's greatest entry minus it; two chains of three seeds."""
    environment = build()
    for round_ in range(5):
        decisions = environment.decisions()
        shown = [int(value) // 2 for value in decisions.features[:, 0, 0]]
        index = np.array([[round_ % 3, 2], [1, (round_ + 1) % 3], [0, 1]])
        outcome = environment.step(decisions.choose(index))
        for seed, row in enumerate(shown):
            reward = [MEANS[row][action] for action in index[seed]]
            assert outcome.reward[seed].tolist() == reward
            assert outcome.regret[seed].tolist() == [max(MEANS[row]) - value for value in reward]


def test_noise_has_the_given_standard_deviation_and_is_common_to_chains():
    """2,500 rounds x 4 seeds with noise 0.1."""
    environment = build(range(4), noise=0.1, passes=500)
    noises = []
    for _ in range(2500):
        means = environment.mean_rewards()
        outcome = environment.step(environment.decisions().choose(np.array([[0, 2]] * 4)))
        noises.append(outcome.reward - means[:, [0, 2]])
        assert outcome.regret[:, 0].tolist() == (means.max(axis=1) - means[:, 0]).tolist()
    noises = np.array(noises) / 0.1
    np.testing.assert_allclose(noises[..., 0], noises[..., 1], atol=1e-12)
    assert abs(noises[..., 0].mean()) < Z / math.sqrt(10_000)
    assert stats.kstest(noises[..., 0].ravel(), "norm").pvalue > 1e-3


def test_a_seed_meets_the_same_rows_and_noise_in_any_company():
    together, alone = build((3, 8, 5), noise=1.0, passes=4), build((5,), noise=1.0, passes=4)
    for _ in range(20):
        first, second = together.decisions(), alone.decisions()
        assert np.array_equal(first.features[2], second.features[0])
        outcome = together.step(first.choose(np.ones((3, 1), dtype=int)))
        assert outcome.reward[2] == alone.step(second.choose(np.ones((1, 1), dtype=int))).reward[0]


def test_unit_rows_by_hand():
    """(3, 4) has norm 5; a row of zeros stays; int8 codes do not overflow: (100, 100) has norm 141.4."""
    rows_ = unit_rows(np.array([[3, 4], [0, 0], [100, 100]], dtype=np.int8))
    assert rows_.dtype == np.float32
    np.testing.assert_allclose(rows_, [[0.6, 0.8], [0, 0], [0.5**0.5, 0.5**0.5]], rtol=1e-7)
