"""LinUCB against a brute-force implementation: every action's bound by itself, from an explicit inverse."""

import literal
import numpy as np
import pytest
from linear_bandits import bandit

from ensemblepp.agents.linear.ucb import LinearUCB
from ensemblepp.bandit import Decisions
from ensemblepp.engines.choice import simulate
from ensemblepp.environments.contextual import Contextual
from ensemblepp.environments.scaling import unit_rows
from ensemblepp.errors import ConfigError


def agent(seeds, dimension: int, width: float | None = None, delta: float = 0.05, prior_variance: float = 10.0) -> LinearUCB:
    return LinearUCB(
        seeds,
        dimension=dimension,
        prior_variance=prior_variance,
        width=width,
        delta=delta,
        ensemble_size=0,
        horizon=5,
        device="cpu",
    )


@pytest.mark.parametrize(("width", "delta"), [(None, 0.05), (None, 0.5), (0.3, 0.05), (2.0, 0.05)])
@pytest.mark.parametrize(
    "environment", [{"actions": 30}, {"actions": 150}, {"actions": 30, "varying": True}], ids=["fixed", "many", "fresh"]
)
def test_the_action_with_the_greatest_bound_is_taken(environment, width, delta):
    """100 rounds of two seeds, action by action; prior variances 10 and 0.5."""
    for prior_variance in (10.0, 0.5):
        together = simulate(bandit((0, 3), 6, **environment), agent((0, 3), 6, width, delta, prior_variance), 100)
        for row, seed in enumerate((0, 3)):
            brute = literal.UpperConfidenceBound(6, width, delta, prior_variance)
            run = literal.run(bandit([seed], 6, **environment), brute, 100)
            assert together.action[row, 0].tolist() == run.action.tolist()
            np.testing.assert_allclose(together.regret[row, 0], run.regret, rtol=1e-6, atol=1e-6)


def test_unit_vectors_of_which_the_first_set_ties():
    """At the start all unit vectors have the same bound but for rounding, so the brute force follows the agent's choices."""
    environment = bandit([3], 6, 30, varying=True, features="sphere")
    ucb, brute = agent([3], 6), literal.UpperConfidenceBound(6, None, 0.05)
    for step in range(150):
        decisions = environment.decisions()
        choice = ucb.act(decisions)
        bounds = np.array(brute.bounds(decisions.features[0]))
        if step:
            assert choice.index.item() == bounds.argmax()
        assert bounds[choice.index.item()] == pytest.approx(bounds.max(), rel=1e-12)
        reward = environment.step(choice).reward
        ucb.update(choice, reward)
        brute.observe(choice.features[0, 0], reward.item())


def test_contextual_decision_sets():
    source = np.random.default_rng(0)
    contexts, means = unit_rows(source.standard_normal((50, 3))), source.standard_normal((50, 4))
    trajectory = simulate(Contextual([2], contexts, means, noise=0.5, passes=2), agent([2], 12), 100)
    run = literal.run(Contextual([2], contexts, means, noise=0.5, passes=2), literal.UpperConfidenceBound(12, None, 0.05), 100)
    assert trajectory.action[0, 0].tolist() == run.action.tolist()


def test_two_rounds_by_hand():
    """d = 2, Sigma_0 = I, width 1: bounds 1 and 2 of (1, 0) and (0, 2); after (0, 2) has earned 0, 1 and 2 / sqrt(5)."""
    decisions = Decisions(np.array([[[1.0, 0.0], [0.0, 2.0]]]))
    ucb = agent([0], 2, width=1.0, prior_variance=1.0)
    choice = ucb.act(decisions)
    assert choice.index.item() == 1
    ucb.update(choice, np.array([[0.0]]))
    assert ucb.act(decisions).index.item() == 0


def test_variances_that_follow_the_updates_stay_exact():
    """After 500 rounds on one decision set: x^T Sigma x of all actions, kept in O(|X| d) a round, within 1e-9 relatively."""
    ucb, environment = agent([0, 1], 8), bandit([0, 1], 8, 60)
    simulate(environment, ucb, 500)
    features = environment.decisions().features
    expected = np.einsum("snd,sde,sne->sn", features, ucb.posterior.covariance[:, 0], features)
    np.testing.assert_allclose(ucb._variance, expected, rtol=1e-9)


def test_the_sphere_is_refused():
    with pytest.raises(ConfigError, match=r"^this agent needs a finite decision set; leave it out of studies on linear_sphere"):
        simulate(bandit([0], 4, 0), agent([0], 4), 1)
