"""The incremental Gaussian posterior against the closed form of Bayesian ridge regression (paper, eq. "incre-posterior")."""

import numpy as np
import pytest

from ensemblepp.agents.linear.posterior import LinearPosterior


def relative_error(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.linalg.norm(found - expected) / np.linalg.norm(expected))


def test_two_observations_by_hand():
    """d = 1, prior variance 10: precision 0.1 + 1 + 4 = 5.1, mean (1 * 3 + 2 * 5) / 5.1."""
    posterior = LinearPosterior(1, 1, 1, 10.0)
    assert posterior.covariance.tolist() == [[[[10.0]]]]
    assert posterior.mean.tolist() == [[[0.0]]]
    posterior.update(np.array([[[1.0]]]), np.array([[3.0]]))
    assert posterior.covariance.item() == pytest.approx(10 / 11)
    assert posterior.mean.item() == pytest.approx(30 / 11)
    posterior.update(np.array([[[2.0]]]), np.array([[5.0]]))
    assert posterior.covariance.item() == pytest.approx(1 / 5.1)
    assert posterior.mean.item() == pytest.approx(13 / 5.1)


@pytest.mark.parametrize(("dimension", "prior_variance"), [(1, 10.0), (7, 10.0), (50, 10.0), (7, 0.3)])
def test_600_updates_equal_the_closed_form(dimension, prior_variance):
    """Covariance (I / prior_variance + X^T X)^-1 and mean covariance X^T y: relative error below 1e-10, 2 seeds x 3 chains."""
    rng = np.random.default_rng(0)
    features = rng.uniform(-(5**-0.5), 5**-0.5, (600, 2, 3, dimension))
    rewards = rng.normal(0, 3, (600, 2, 3))
    posterior = LinearPosterior(2, 3, dimension, prior_variance)
    for row, reward in zip(features, rewards, strict=True):
        posterior.update(row, reward)
    assert posterior.covariance.dtype == np.float64
    for seed in range(2):
        for chain in range(3):
            rows = features[:, seed, chain]
            covariance = np.linalg.inv(np.eye(dimension) / prior_variance + rows.T @ rows)
            mean = covariance @ rows.T @ rewards[:, seed, chain]
            assert relative_error(posterior.covariance[seed, chain], covariance) < 1e-10
            assert relative_error(posterior.mean[seed, chain], mean) < 1e-10


def test_repeating_one_action_leaves_the_other_directions():
    """1,000 times e_1: its variance falls to 1 / (0.1 + 1000), the others keep 10 exactly."""
    posterior = LinearPosterior(1, 1, 3, 10.0)
    for _ in range(1000):
        posterior.update(np.array([[[1.0, 0.0, 0.0]]]), np.array([[2.0]]))
    np.testing.assert_allclose(posterior.covariance[0, 0], np.diag([1 / 1000.1, 10, 10]), rtol=1e-12)
    np.testing.assert_allclose(posterior.mean[0, 0], [2000 / 1000.1, 0, 0], rtol=1e-12)


def test_transform_multiplies_by_the_covariance():
    rng = np.random.default_rng(1)
    posterior = LinearPosterior(2, 2, 4, 10.0)
    for _ in range(5):
        posterior.update(rng.standard_normal((2, 2, 4)), rng.standard_normal((2, 2)))
    vectors = rng.standard_normal((2, 2, 4))
    expected = [[posterior.covariance[s, c] @ vectors[s, c] for c in range(2)] for s in range(2)]
    np.testing.assert_allclose(posterior.transform(vectors), expected, rtol=1e-13)


@pytest.mark.parametrize("prior_variance", [10.0, 0.3])
def test_inflation_is_the_formula_with_an_explicit_determinant(prior_variance):
    """beta_t = sqrt(lambda) + sqrt(2 log(1/delta) + log det(Sigma^-1 / lambda)), before and after 200 updates; else 1."""
    rng = np.random.default_rng(0)
    posterior = LinearPosterior(2, 3, 5, prior_variance)
    assert posterior.inflation(0.1).shape == (2, 3, 1)
    np.testing.assert_allclose(posterior.inflation(0.1), prior_variance**-0.5 + np.sqrt(2 * np.log(10)))
    for _ in range(200):
        posterior.update(rng.uniform(-0.5, 0.5, (2, 3, 5)), rng.standard_normal((2, 3)))
    for delta in (0.01, 0.5):
        determinants = np.linalg.slogdet(prior_variance * np.linalg.inv(posterior.covariance))[1]
        expected = prior_variance**-0.5 + np.sqrt(2 * np.log(1 / delta) + determinants)
        np.testing.assert_allclose(posterior.inflation(delta)[..., 0], expected, rtol=1e-10)
    assert (posterior.inflation(None) == 1.0).all()
