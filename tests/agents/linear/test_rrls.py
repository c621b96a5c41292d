"""Recursive randomised least squares against its own recursion, and against ensemble sampling with one member."""

import literal
import numpy as np
import pytest
from linear_bandits import bandit

from ensemblepp.agents.linear.ensemble_sampling import EnsembleSampling
from ensemblepp.agents.linear.rrls import RecursiveRandomizedLeastSquares
from ensemblepp.engines.choice import simulate

OPTIONS = {"prior_variance": literal.PRIOR_VARIANCE, "precision": "float64"}

ENVIRONMENTS = {"finite": {"actions": 37}, "pruned": {"actions": 1100}, "fresh": {"actions": 30, "varying": True}}


@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS.keys())
def test_it_is_the_recursive_update(environment):
    """theta_t = Sigma_t (Sigma_{t-1}^-1 theta_{t-1} + x_t (y_t + Z_t)) from theta_0 ~ N(0, Sigma_0), and nothing else."""
    for seed in (1, 4):
        agent = RecursiveRandomizedLeastSquares([seed], dimension=6, ensemble_size=0, **OPTIONS)
        trajectory = simulate(bandit([seed], 6, **environment), agent, 150)
        run = literal.run(bandit([seed], 6, **environment), literal.RecursiveRandomizedLeastSquares(seed, 6), 150)
        assert trajectory.action[0, 0].tolist() == run.action.tolist()
        np.testing.assert_allclose(trajectory.regret[0, 0], run.regret, rtol=1e-6, atol=1e-7)


def test_it_is_ensemble_sampling_with_one_member():
    rrls = RecursiveRandomizedLeastSquares(range(3), dimension=6, ensemble_size=0, **OPTIONS)
    single = EnsembleSampling(range(3), dimension=6, ensemble_size=1, **OPTIONS)
    left, right = (simulate(bandit(range(3), 6, 40), agent, 150) for agent in (rrls, single))
    assert np.array_equal(left.action, right.action)
    assert np.array_equal(left.regret, right.regret)


def test_there_is_one_chain_without_laws():
    rrls = RecursiveRandomizedLeastSquares([3], dimension=2, ensemble_size=0, horizon=5, device="cpu", **OPTIONS)
    assert (rrls.chains, rrls.ensemble_size) == ((("none", "none"),), 1)
