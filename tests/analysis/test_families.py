"""Holm's correction and performance profiles."""

import numpy as np
import pytest

from ensemblepp.analysis.families import holm, performance_profile


def test_holm_by_hand():
    """0.01 x 4, 0.02 x 3, 0.03 x 2 raised to what stands before it, and 0.9."""
    np.testing.assert_allclose(holm(np.array([0.02, 0.9, 0.01, 0.03])), [0.06, 0.9, 0.04, 0.06])
    assert holm(np.array([])).size == 0
    assert holm(np.array([0.7, 0.8])).tolist() == [1, 1]


def test_holm_is_the_step_down_test():
    """A statement is decided at a level exactly if the procedure, done step by step, gets to it."""
    source = np.random.default_rng(1)
    for _ in range(50):
        values = source.beta(0.3, 2, 12)
        decided = np.zeros(12, bool)
        for step, place in enumerate(np.argsort(values)):
            if values[place] > 0.05 / (12 - step):
                break
            decided[place] = True
        np.testing.assert_array_equal(holm(values) <= 0.05, decided)


def test_holm_keeps_the_level_however_statements_depend():
    """2,000 families of 20 true statements: all alike, or independent; an error anywhere in 5 % at most."""
    source = np.random.default_rng(2)
    alike = np.repeat(source.random((2000, 1)), 20, axis=1)
    for family in (alike, source.random((2000, 20))):
        errors = np.mean([(holm(values) <= 0.05).any() for values in family])
        assert errors < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 2000)


def test_profile_by_hand():
    scores = np.array([[1.0, 2.0], [1.5, 3.0]])
    share, low, high = performance_profile(scores, np.array([0.5, 1.0, 2.0, 3.0]))
    assert share.tolist() == [0, 0.25, 0.75, 1]
    # one seed alone, drawn twice
    assert (low[1], high[1]) == (0, 0.5)
    assert (low <= share).all()
    assert (share <= high).all()


def test_a_profile_grows():
    scores = np.random.default_rng(3).lognormal(size=(10, 5))
    share, low, high = performance_profile(scores, np.linspace(0, 5, 30))
    for curve in (share, low, high):
        assert (np.diff(curve) >= 0).all()
    assert share[0] == pytest.approx(0)
