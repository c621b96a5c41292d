"""What the linear agents share: two ways to play that agree, inflation, the exact subspace, and diagnostics."""

from __future__ import annotations

import literal
import numpy as np
import pytest
from linear_bandits import PAIRS, bandit, ensemble, same

from ensemblepp.agents.linear.ensemble_sampling import EnsembleSampling
from ensemblepp.agents.linear.ensemblepp import LinearEnsemblePlusPlus
from ensemblepp.agents.linear.greedy import LinearGreedy
from ensemblepp.agents.linear.rrls import RecursiveRandomizedLeastSquares
from ensemblepp.agents.linear.thompson_sampling import LinearThompsonSampling
from ensemblepp.engines.choice import simulate
from ensemblepp.environments.contextual import Contextual
from ensemblepp.environments.scaling import unit_rows
from ensemblepp.randomness.distributions import LAWS
from ensemblepp.randomness.streams import generator

ENVIRONMENTS = {
    "finite": {"actions": 37},
    "pruned": {"actions": 1200},
    "fresh": {"actions": 25, "varying": True},
    "fresh unit vectors": {"actions": 25, "varying": True, "features": "sphere"},
    "sphere": {"actions": 0},
}


def build(agent: type, seeds, dimension: int, **options):
    """An agent in float64; M = 12 where it has an ensemble, all pairs of laws where it has laws."""
    if agent is LinearEnsemblePlusPlus:
        return ensemble(seeds, dimension, 12, **options)
    size = {"ensemble_size": 12} if agent is EnsembleSampling else {}
    options = {"prior_variance": literal.PRIOR_VARIANCE, "precision": "float64"} | size | options
    return agent(seeds, dimension=dimension, **options)


AGENTS = [
    LinearThompsonSampling,
    LinearEnsemblePlusPlus,
    EnsembleSampling,
    RecursiveRandomizedLeastSquares,
    LinearGreedy,
]


# -------------------------------------------------------------------------------------------- whole runs, step by step


@pytest.mark.parametrize("options", [{}, {"inflation_delta": 0.05}], ids=["plain", "inflated"])
@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS.keys())
@pytest.mark.parametrize("agent", AGENTS)
def test_whole_runs_and_steps_agree(agent, environment, options):
    """The same actions in 150 rounds of three seeds, regret and rewards up to their storage in float32.

    RRLS has M = 1, so on the sphere only d = 1 leaves nothing to rounding (`exact_subspace`).
    """
    seeds = (0, 4, 5)
    dimension = 1 if agent is RecursiveRandomizedLeastSquares and not environment["actions"] else 8
    compiled, stepwise = (build(agent, seeds, dimension, **options) for _ in range(2))
    whole = simulate(bandit(seeds, dimension, **environment), compiled, 150)
    steps = simulate(bandit(seeds, dimension, **environment), stepwise, 150, engine="step_by_step")
    assert "posterior" not in vars(compiled), "it has not played step by step"
    assert "posterior" in vars(stepwise)
    assert np.array_equal(whole.time, steps.time)
    assert np.array_equal(whole.action, steps.action)
    assert np.array_equal(whole.optimal, steps.optimal)
    np.testing.assert_allclose(whole.regret, steps.regret, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(whole.reward, steps.reward, rtol=1e-6, atol=1e-5)
    assert whole.constant_regret is None
    assert whole.diagnostics == steps.diagnostics == {}


@pytest.mark.parametrize("agent", AGENTS)
def test_the_agents_play_other_environments_step_by_step(agent):
    """Contexts of three numbers, four actions with a block of features each: literal runs, action by action."""
    source = np.random.default_rng(0)
    contexts, means = unit_rows(source.standard_normal((60, 3))), source.standard_normal((60, 4))

    def environment(seed: int) -> Contextual:
        return Contextual([seed], contexts, means, noise=0.5, passes=2)

    literals = {
        LinearThompsonSampling: lambda seed, _: literal.ThompsonSampling(seed, 12),
        LinearEnsemblePlusPlus: lambda seed, pair: literal.EnsemblePlusPlus(seed, 12, 12, pair),
        EnsembleSampling: lambda seed, _: literal.EnsembleSampling(seed, 12, 12),
        RecursiveRandomizedLeastSquares: lambda seed, _: literal.RecursiveRandomizedLeastSquares(seed, 12),
        LinearGreedy: lambda seed, _: literal.Ridge(12),
    }
    for seed in (0, 3):
        trajectory = simulate(environment(seed), build(agent, [seed], 12), 100)
        for chain in range(0, trajectory.action.shape[1], 7):
            run = literal.run(environment(seed), literals[agent](seed, PAIRS[chain]), 100)
            assert trajectory.action[0, chain].tolist() == run.action.tolist()
            np.testing.assert_allclose(trajectory.regret[0, chain], run.regret, rtol=1e-6, atol=1e-6)


# ------------------------------------------------------------------------------------------------------------ inflation


@pytest.mark.parametrize("delta", [0.05, 0.9])
@pytest.mark.parametrize("environment", [ENVIRONMENTS["finite"], ENVIRONMENTS["fresh"], ENVIRONMENTS["sphere"]])
@pytest.mark.parametrize("prior_variance", [10.0, 0.3])
def test_inflation_is_the_formula_with_an_explicit_determinant(environment, delta, prior_variance):
    """beta_t = sqrt(lambda) + sqrt(2 log(1/delta) + log det(Sigma^-1 / lambda)), in Ensemble++ and in TS; it matters."""
    options = {"inflation_delta": delta, "prior_variance": prior_variance}
    pair = ("gaussian", "sphere")
    laws = {"references": ["gaussian"], "perturbations": ["sphere"]}
    plain = {"prior_variance": prior_variance}
    for agent, other, reference in (
        (
            ensemble([1], 6, 10, **options, **laws),
            ensemble([1], 6, 10, **plain, **laws),
            literal.EnsemblePlusPlus(1, 6, 10, pair, prior_variance=prior_variance, delta=delta),
        ),
        (
            build(LinearThompsonSampling, [1], 6, **options),
            build(LinearThompsonSampling, [1], 6, **plain),
            literal.ThompsonSampling(1, 6, prior_variance, delta),
        ),
    ):
        trajectory = simulate(bandit([1], 6, **environment), agent, 120)
        run = literal.run(bandit([1], 6, **environment), reference, 120)
        assert trajectory.action[0, 0].tolist() == run.action.tolist()
        np.testing.assert_allclose(trajectory.regret[0, 0], run.regret, rtol=1e-6, atol=1e-7)
        assert not np.array_equal(simulate(bandit([1], 6, **environment), other, 120).regret, trajectory.regret)


# ------------------------------------------------------------------------------------------------------- exact subspace


PAIR = {"references": ["gaussian"], "perturbations": ["sphere"]}


@pytest.mark.parametrize(
    "laws", [("gaussian", "sphere"), ("coordinate", "cube"), ("sphere", "sparse"), ("cube", "raw_gaussian")]
)
@pytest.mark.parametrize(("dimension", "size"), [(8, 3), (8, 1), (20, 7), (50, 4)])
def test_exact_subspace_is_a_run_whose_theta_is_projected(dimension, size, laws):
    """Onto the span of A_0, in every round of a literal run in all d dimensions."""
    options = {"references": laws[:1], "perturbations": laws[1:], "exact_subspace": True}
    trajectory = simulate(bandit([3], dimension, 0), ensemble([3], dimension, size, **options), 200)
    agent = literal.EnsemblePlusPlus(3, dimension, size, laws, subspace=True)
    run = literal.run(bandit([3], dimension, 0), agent, 200)
    np.testing.assert_allclose(trajectory.regret[0, 0], run.regret, rtol=1e-6)
    np.testing.assert_allclose(trajectory.reward[0, 0], run.reward, rtol=1e-5, atol=1e-4)


def test_regret_within_the_subspace_grows_for_ever():
    """Every round costs at least |theta*| minus the length of its part in the span of A_0, and at the end hardly more."""
    seeds = range(20)
    environment = bandit(seeds, 10, 0)
    regret = simulate(environment, ensemble(seeds, 10, 4, exact_subspace=True, **PAIR), 1000).regret[:, 0].astype(float)
    start = np.stack([generator(seed, "agent").standard_normal((4, 10)) for seed in seeds])
    for seed in seeds:
        theta = environment.theta[seed]
        inside = np.linalg.norm(np.linalg.qr(start[seed].T)[0].T @ theta)
        slope = np.linalg.norm(theta) - inside
        # regret is stored in float32
        assert (np.diff(regret[seed]) >= slope - 1e-4 * np.linalg.norm(theta)).all()
        assert 1.0 <= (regret[seed, -1] - regret[seed, -201]) / (200 * slope) < 1.2
    # the plain run leaves the subspace, by rounding alone, and ends far below
    plain = simulate(bandit(seeds, 10, 0), ensemble(seeds, 10, 4, **PAIR), 1000).regret[:, 0]
    assert regret[:, -1].mean() > 3 * plain[:, -1].mean()


def test_exact_subspace_holds_step_by_step_too():
    """Where diagnostics are followed, too, for 100 rounds."""
    agents = [ensemble([3], 8, 3, exact_subspace=True, track_covariance=track, **PAIR) for track in (False, True)]
    compiled, stepwise = (simulate(bandit([3], 8, 0), agent, 100) for agent in agents)
    np.testing.assert_allclose(stepwise.regret, compiled.regret[..., stepwise.time - 1], rtol=1e-6)


@pytest.mark.parametrize(("dimension", "size", "actions"), [(8, 8, 0), (8, 9, 0), (1, 1, 0), (8, 3, 20), (8, 3, 1200)])
def test_exact_subspace_changes_nothing_elsewhere(dimension, size, actions):
    """With M >= d, and on finite sets."""
    plain, exact = (ensemble([2], dimension, size, exact_subspace=exact) for exact in (False, True))
    assert same(simulate(bandit([2], dimension, actions), plain, 100), simulate(bandit([2], dimension, actions), exact, 100))


# ---------------------------------------------------------------------------------------------------------- diagnostics


def eigenvalues(agent, seed: int, chain: int) -> np.ndarray:
    """Of Sigma^-1/2 A A^T Sigma^-1/2, with the symmetric root by an eigen-decomposition; increasing."""
    values, vectors = np.linalg.eigh(agent.posterior.covariance[seed, chain])
    root = vectors @ np.diag(values**-0.5) @ vectors.T
    factor = agent.factor[seed, chain]
    return np.linalg.eigvalsh(root @ factor @ factor.T @ root)


@pytest.mark.parametrize(("dimension", "size"), [(5, 3), (5, 5), (5, 40), (1, 1), (12, 200)])
def test_tracked_eigenvalues_by_brute_force(dimension, size):
    """At the end of 60 rounds, for every pair of laws and two seeds."""
    agent = ensemble(range(2), dimension, size, track_covariance=True)
    trajectory = simulate(bandit(range(2), dimension, 20), agent, 60)
    assert set(trajectory.diagnostics) == {"tracking_low", "tracking_high"}
    low, high = (trajectory.diagnostics[f"tracking_{end}"] for end in ("low", "high"))
    assert low.shape == high.shape == (2, len(PAIRS), len(trajectory.time))
    for seed in range(2):
        for chain in range(len(PAIRS)):
            values = eigenvalues(agent, seed, chain)
            np.testing.assert_allclose(high[seed, chain, -1], values[-1], rtol=1e-5)
            np.testing.assert_allclose(low[seed, chain, -1], values[0], rtol=1e-4, atol=1e-6)
    assert (low >= 0).all()
    if size < dimension:
        assert low.max() < 1e-5, "the rank of A is M"
    else:
        assert low.min() > 0


def test_tracked_eigenvalues_at_the_start_and_for_unchanged_directions():
    """One axis chosen for ever: A A^T / Sigma stays what it was at the start in the other directions, by hand for d = 2."""
    agent = ensemble([0], 2, 1000, track_covariance=True, **PAIR)
    start = agent.factor[0, 0]
    before = agent.diagnostics()
    values = np.linalg.eigvalsh(start @ start.T / 10)
    assert before["tracking_low"].item() == pytest.approx(values[0])
    assert before["tracking_high"].item() == pytest.approx(values[-1])
    trajectory = simulate(bandit([0], 2, 1), agent, 30)
    assert trajectory.diagnostics["tracking_low"].shape == (1, 1, len(trajectory.time))
    # one direction's uncertainty has shrunk, and both kinds stay within the law of large numbers' reach of 1
    assert 0.8 < trajectory.diagnostics["tracking_low"].min() < trajectory.diagnostics["tracking_high"].max() < 1.2


def test_tracking_changes_no_run():
    tracked, plain = ensemble(range(2), 6, 5, track_covariance=True), ensemble(range(2), 6, 5)
    assert plain.diagnostics() == {}
    followed = simulate(bandit(range(2), 6, 30), tracked, 300)
    free = simulate(bandit(range(2), 6, 30), plain, 300)
    assert np.array_equal(followed.action, free.action)
    # diagnostics are taken at about 120 rounds, the same times as all else that is stored
    assert len(followed.time) < 121
    np.testing.assert_allclose(followed.regret, free.regret[..., followed.time - 1], rtol=1e-6, atol=1e-6)


# --------------------------------------------------------------------------------------------------------------- chains


def test_gaussian_perturbations_are_played_once_and_shown_twice():
    """They are the sphere's, draw by draw: 25 chains are run and 30 reported."""
    agent = ensemble([0], 4, 5)
    assert len(agent.chains) == 30
    assert len(agent.laws) == 25
    assert [agent.laws[place] for place in agent.place] == [
        (reference, "sphere" if perturbation == "gaussian" else perturbation) for reference, perturbation in agent.chains
    ]
    trajectory = simulate(bandit([0], 4, 20), agent, 60)
    for reference in LAWS:
        left, right = (PAIRS.index((reference, perturbation)) for perturbation in ("gaussian", "sphere"))
        for name in ("action", "regret", "reward", "optimal"):
            values = getattr(trajectory, name)
            assert np.array_equal(values[:, left], values[:, right])
