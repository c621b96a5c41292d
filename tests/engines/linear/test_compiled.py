"""The compiled rounds: equal to literal runs, and to themselves however they are cut, pruned or put together."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import literal
import numpy as np
import pytest
from linear_bandits import PAIRS, Given, bandit, ensemble, same

from ensemblepp.agents.linear.chains import LinearChains
from ensemblepp.agents.linear.ensemble_sampling import EnsembleSampling
from ensemblepp.agents.linear.ensemblepp import LinearEnsemblePlusPlus
from ensemblepp.agents.linear.greedy import LinearGreedy
from ensemblepp.agents.linear.thompson_sampling import LinearThompsonSampling
from ensemblepp.bandit import Environment, LinearInstance
from ensemblepp.engines.choice import simulate
from ensemblepp.engines.linear import compiled
from ensemblepp.errors import TrainingError
from ensemblepp.randomness.streams import GaussianRows
from ensemblepp.trajectory import Trajectory


def play(agent: LinearChains, instance: LinearInstance, rounds: int) -> Trajectory:
    """Every one of the rounds in a single instance."""
    return compiled.play(agent, Given(instance), rounds, np.arange(1, rounds + 1), lambda done: None)


# ------------------------------------------------------------------------------------------------ the literal formulas

FINITE = [
    (1, 1, 1),
    (3, 7, 2),
    (10, 37, 3),
    (5, 100, 1),
    (10, 37, 33),
    (7, 100, 65),
    (6, 37, 200),
    (33, 81, 8),
    (50, 37, 8),
    (5, 1500, 2),
    (10, 1500, 8),
]
SPHERE = [(1, 1), (2, 3), (8, 8), (10, 33), (17, 65), (5, 200)]


def assert_literal(environment: Callable[[], Environment], agent: LinearEnsemblePlusPlus, rounds: int) -> None:
    """Every chain's actions, and its regret and rewards within 1e-6 (they are stored in float32), for one seed."""
    trajectory = simulate(environment(), agent, rounds)
    assert trajectory.regret.shape == (1, len(PAIRS), rounds)
    for chain, pair in enumerate(PAIRS):
        by_hand = literal.EnsemblePlusPlus(agent.seeds[0], agent.dimension, agent.ensemble_size, pair)
        run = literal.run(environment(), by_hand, rounds)
        assert trajectory.action[0, chain].tolist() == run.action.tolist(), pair
        np.testing.assert_allclose(trajectory.regret[0, chain], run.regret, rtol=1e-6, atol=1e-7, err_msg=str(pair))
        np.testing.assert_allclose(trajectory.reward[0, chain], run.reward, rtol=1e-6, atol=1e-5, err_msg=str(pair))


@pytest.mark.parametrize(("dimension", "actions", "size"), FINITE)
def test_all_pairs_on_finite_sets_repeat_the_literal_formulas(dimension, actions, size):
    """Sets that fill no panel, one panel, many; 1,500 actions are pruned."""
    seeds = [3 + dimension]
    agent = ensemble(seeds, dimension, size)
    assert_literal(lambda: bandit(seeds, dimension, actions), agent, rounds=60)
    if actions > 1000:
        assert agent.scores_computed < 0.9 * 60 * actions * len(agent.laws)


@pytest.mark.parametrize(("dimension", "actions", "size"), [(4, 1, 2), (5, 7, 3), (10, 37, 8), (20, 100, 33)])
@pytest.mark.parametrize("features", ["cube", "sphere"])
def test_all_pairs_on_fresh_sets_repeat_the_literal_formulas(features, dimension, actions, size):
    options = {"varying": True, "features": features}
    assert_literal(lambda: bandit([1], dimension, actions, **options), ensemble([1], dimension, size), rounds=60)


@pytest.mark.parametrize(("dimension", "size"), SPHERE)
def test_all_pairs_on_the_sphere_repeat_the_literal_formulas(dimension, size):
    """M >= d: below it rounding decides what leaks out of the span of A_0."""
    assert_literal(lambda: bandit([2], dimension, 0), ensemble([2], dimension, size), rounds=100)


def test_the_comparison_can_tell_laws_apart():
    """25 different pairs (Gaussian and sphere perturbations are one) lead to at least 20 different paths."""
    trajectory = simulate(bandit([0], 10, 100), ensemble([0], 10, 8), 200)
    assert len({tuple(path) for path in trajectory.action[0].tolist()}) >= 20


def test_thompson_sampling_repeats_the_literal_formulas():
    for environment in ({"actions": 37}, {"actions": 1200}, {"actions": 20, "varying": True}, {"actions": 0}):
        agent = LinearThompsonSampling([4], dimension=9, prior_variance=10.0, precision="float64")
        trajectory = simulate(bandit([4], 9, **environment), agent, 100)
        run = literal.run(bandit([4], 9, **environment), literal.ThompsonSampling(4, 9), 100)
        assert trajectory.action[0, 0].tolist() == run.action.tolist()
        np.testing.assert_allclose(trajectory.regret[0, 0], run.regret, rtol=1e-6, atol=1e-7)


# ----------------------------------------------------------------------------------------------------------- precision


def test_mixed_precision_stays_on_the_path_of_float64():
    """30 pairs x 4 seeds x 8 bandits over 1,000 rounds: at least 98 % of the runs on the same path, none broken."""
    shares, regrets = [], []
    for dimension, actions, size in itertools.product((10, 50), (100, 1000), (8, 64)):
        seeds = range(4)
        mixed, double = (
            simulate(bandit(seeds, dimension, actions), ensemble(seeds, dimension, size, precision), 1000)
            for precision in ("mixed", "float64")
        )
        shares.append((mixed.action == double.action).all(axis=-1).mean())
        regrets.append(mixed.regret[..., -1])
        assert np.abs(mixed.regret[..., -1].mean() / double.regret[..., -1].mean() - 1) < 0.01
    assert np.mean(shares) >= 0.98
    # theta* has norm sqrt(10 d), features at most sqrt(d / 5): no sound run can lose more than 2 |theta*| |x| a round
    assert np.isfinite(regrets).all()
    assert np.max(regrets) < 1000 * 2 * np.sqrt(10 * 50) * np.sqrt(10)


# ------------------------------------------------------------------------------------------------------------- pruning


def pruned_and_not(precision: str, rounds: int, build, dimension: int, size: int = 8) -> tuple[Trajectory, Trajectory, float]:
    """One instance with and without pruning, and the share of the scores that pruning leaves."""
    runs, counts = [], []
    for pruning in (True, False):
        agent = ensemble([0], dimension, size, precision, pruning=pruning)
        runs.append(play(agent, build(), rounds))
        counts.append(agent.scores_computed)
    return *runs, counts[0] / counts[1]


@pytest.mark.parametrize("precision", ["mixed", "float64"])
@pytest.mark.parametrize(("dimension", "actions", "most"), [(5, 1000, 0.5), (5, 3001, 0.3), (10, 1203, 0.6), (20, 2500, 0.95)])
def test_pruned_runs_are_the_unpruned_ones_to_the_last_bit(precision, dimension, actions, most):
    """And pruning leaves out a good part of the scores."""
    pruned, whole, share = pruned_and_not(precision, 300, lambda: next(bandit([0], dimension, actions).instances()), dimension)
    assert same(pruned, whole)
    assert share < most


@pytest.mark.parametrize("precision", ["mixed", "float64"])
def test_pruned_runs_in_50_dimensions(precision):
    pruned, whole, share = pruned_and_not(precision, 200, lambda: next(bandit([5], 50, 2000).instances()), 50)
    assert same(pruned, whole)
    assert share <= 1


def test_share_of_scores_that_pruning_leaves():
    """d = 10, 10,000 actions, M = 8, 1,000 rounds: at most 15 %."""
    agent = ensemble(range(2), 10, 8, "mixed")
    simulate(bandit(range(2), 10, 10_000), agent, 1000)
    assert agent.scores_computed / (2 * len(agent.laws) * 1000 * 10_000) <= 0.15


def hostile(name: str) -> LinearInstance:
    """Decision sets of 1,203 actions in 3 dimensions on which a careless bound, padding or tie would show."""
    source = np.random.default_rng(1)
    theta, features = source.standard_normal(3), source.uniform(-0.5, 0.5, (1203, 3))
    if name == "tiny theta*":
        theta *= 1e-150
    if name == "small theta*":
        theta *= 1e-6
    if name == "large theta*":
        theta *= 1e6
    if name == "nearly parallel":
        features = features[:1] + 1e-5 * features
    if name == "duplicates":
        features = features[source.integers(0, 40, 1203)]
    if name == "all equal":
        features[:] = features[0]
    if name == "all negative":
        # <x, theta> < 0 for every action, so that padding with zeros would win
        features = -0.3 * theta / np.linalg.norm(theta) + 0.01 * features
    if name == "equally good":
        features -= np.outer(features @ theta - 0.3, theta) / (theta @ theta)
    if name == "orthogonal to theta*":
        features -= np.outer(features @ theta, theta) / (theta @ theta)
    if name == "one axis":
        features[:, 1:] = 0.0
    noise = GaussianRows(0, "reward_noise", 1)
    return LinearInstance(0, theta, lambda rounds: noise.take(rounds)[:, 0], features, actions=1203)


HOSTILE = [
    *("tiny theta*", "small theta*", "large theta*", "nearly parallel", "duplicates", "all equal"),
    *("all negative", "equally good", "orthogonal to theta*", "one axis"),
]


@pytest.mark.parametrize("precision", ["mixed", "float64"])
@pytest.mark.parametrize("name", HOSTILE)
def test_pruning_is_exact_on_hostile_decision_sets(name, precision):
    pruned, whole, share = pruned_and_not(precision, 200, lambda: hostile(name), 3)
    assert same(pruned, whole)
    assert (share < 1) == (name != "all equal"), "there is something to be careful about"


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_decision_sets_repeat_the_literal_formulas(name):
    """Features of the chosen action, hence its reward, in every round; of equal actions any may stand for the others."""
    trajectory = pruned_and_not("float64", 40, lambda: hostile(name), 3)[0]
    instance = hostile(name)
    noise = instance.reward_noise(40)
    for chain in range(0, len(PAIRS), 4):
        agent = literal.EnsemblePlusPlus(0, 3, 8, PAIRS[chain])
        for t, action in enumerate(trajectory.action[0, chain]):
            scores = instance.features @ agent.parameters()
            # the paths may part at a tie that rounding decides, so the literal agent follows the compiled one's
            assert scores.max() - scores[action] <= 1e-9 * np.abs(scores).max()
            agent.observe(instance.features[action], instance.features[action] @ instance.theta + noise[t])


def test_pruning_is_exact_where_theta_is_almost_a_multiple_of_the_truth():
    """No noise and hardly a prior: greedy's theta soon is theta*; only rounding orders 1,003 actions of equal mean reward."""
    source = np.random.default_rng(0)
    theta, features = source.standard_normal(5), source.uniform(-0.5, 0.5, (1003, 5))
    features -= np.outer(features @ theta - 0.3 * np.linalg.norm(theta), theta) / (theta @ theta)
    for precision in ("mixed", "float64"):
        runs = []
        for pruning in (True, False):
            agent = LinearGreedy([0], dimension=5, prior_variance=1e12, precision=precision, pruning=pruning)
            instance = LinearInstance(0, theta, np.zeros, features, actions=1003)
            runs.append(play(agent, instance, 200))
        assert same(*runs), precision


# ------------------------------------------------------------------------------- cut, put together, or played alone


CASES = {
    "finite": ({"dimension": 10, "actions": 37}, 9),
    "pruned": ({"dimension": 6, "actions": 1200}, 8),
    "fresh": ({"dimension": 5, "actions": 30, "varying": True}, 5),
    "sphere": ({"dimension": 7, "actions": 0}, 33),
}


@pytest.mark.parametrize("precision", ["mixed", "float64"])
@pytest.mark.parametrize(("options", "size"), CASES.values(), ids=CASES.keys())
def test_a_chain_does_not_depend_on_those_beside_it(options, size, precision):
    """Each of the 30 pairs alone, and the 12 of two references and all perturbations, equal all 30 at once."""
    dimension = options["dimension"]
    whole = simulate(bandit([6], **options), ensemble([6], dimension, size, precision), 120)
    for chain, (reference, perturbation) in enumerate(PAIRS):
        pair = {"references": [reference], "perturbations": [perturbation]}
        alone = simulate(bandit([6], **options), ensemble([6], dimension, size, precision, **pair), 120)
        assert same(whole, alone, chains=[chain]), (reference, perturbation)
    part = simulate(bandit([6], **options), ensemble([6], dimension, size, precision, references=["cube", "sparse"]), 120)
    rows = [chain for chain, (reference, _) in enumerate(PAIRS) if reference in ("cube", "sparse")]
    assert same(whole, part, chains=rows)


@pytest.mark.parametrize("precision", ["mixed", "float64"])
@pytest.mark.parametrize(("options", "size"), CASES.values(), ids=CASES.keys())
def test_a_seed_does_not_depend_on_those_beside_it(options, size, precision):
    dimension = options["dimension"]
    together = simulate(bandit(range(4), **options), ensemble(range(4), dimension, size, precision), 150)
    assert len(np.unique(together.regret[:, 0, -1])) == 4
    for seed in range(4):
        alone = simulate(bandit([seed], **options), ensemble([seed], dimension, size, precision), 150)
        assert same(together, alone, seeds=[seed])


@pytest.mark.parametrize(
    ("name", "value"),
    [("STATE_BYTES", 1), ("STATE_BYTES", 1 << 40), ("ROUNDS", 1), ("ROUNDS", 7), ("FRESH_BYTES", 1), ("FRESH_BYTES", 9000)],
)
@pytest.mark.parametrize(("options", "size"), CASES.values(), ids=CASES.keys())
def test_memory_bounds_change_no_bit(monkeypatch, options, size, name, value):
    dimension = options["dimension"]
    agents = [ensemble([8], dimension, size, "auto") for _ in range(2)]
    before = simulate(bandit([8], **options), agents[0], 100)
    monkeypatch.setattr(compiled, name, value)
    after = simulate(bandit([8], **options), agents[1], 100)
    assert same(before, after)


@pytest.mark.parametrize("value", [1, 7])
def test_rounds_per_call_change_no_bit_of_thompson_sampling(monkeypatch, value):
    before, after = (LinearThompsonSampling([8], dimension=6, prior_variance=10.0) for _ in range(2))
    expected = simulate(bandit([8], 6, 50), before, 100)
    monkeypatch.setattr(compiled, "ROUNDS", value)
    assert same(simulate(bandit([8], 6, 50), after, 100), expected)


@pytest.mark.parametrize(("options", "size"), CASES.values(), ids=CASES.keys())
def test_a_run_begins_a_longer_one(options, size):
    """The first 100 rounds of 300."""
    dimension = options["dimension"]
    short, long = (simulate(bandit([9], **options), ensemble([9], dimension, size, "auto"), rounds) for rounds in (100, 300))
    for name in ("action", "regret", "reward", "optimal"):
        assert np.array_equal(getattr(short, name), getattr(long, name)[..., :100])


def test_thinned_outputs_are_the_dense_ones_at_the_stored_times():
    """1,000 rounds of 30 chains store about 120 rounds; one chain alone stores all."""
    whole = simulate(bandit([0], 5, 20), ensemble([0], 5, 4), 1000)
    alone = simulate(bandit([0], 5, 20), ensemble([0], 5, 4, references=["cube"], perturbations=["sparse"]), 1000)
    assert len(whole.time) < 121 < len(alone.time) == 1000
    chain = PAIRS.index(("cube", "sparse"))
    for name in ("regret", "reward", "optimal"):
        assert np.array_equal(getattr(whole, name)[:, chain], getattr(alone, name)[:, 0, whole.time - 1])
    assert np.array_equal(whole.action[:, chain], alone.action[:, 0])


def test_actions_are_left_out_where_their_table_is_large(monkeypatch):
    few = simulate(bandit([0], 5, 20), ensemble([0], 5, 4), 50)
    monkeypatch.setattr("ensemblepp.trajectory.MAX_STORED_ACTIONS", 1499)
    many = simulate(bandit([0], 5, 20), ensemble([0], 5, 4), 50)
    assert few.action.shape == (1, 30, 50)
    assert many.action is None
    assert np.array_equal(few.regret, many.regret)


def test_regret_reward_and_optimal_fit_the_actions():
    """Gaps of the chosen actions add up to the regret, means plus noise to the reward, zeros to the optimal rounds."""
    environment = bandit(range(2), 4, 9)
    means = environment.mean_rewards()
    noise = np.stack([GaussianRows(seed, "reward_noise", 1).take(100)[:, 0] for seed in range(2)])
    trajectory = simulate(environment, ensemble(range(2), 4, 3), 100)
    for seed in range(2):
        chosen = means[seed][trajectory.action[seed]]
        gaps = means[seed].max() - chosen
        np.testing.assert_allclose(trajectory.regret[seed], gaps.cumsum(axis=1), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(trajectory.reward[seed], (chosen + noise[seed]).cumsum(axis=1), rtol=1e-5, atol=1e-5)
        assert np.array_equal(trajectory.optimal[seed], (gaps == 0).cumsum(axis=1))
        assert trajectory.optimal[seed, :, -1].max() > 50


def test_rounds_done_are_reported_summed_over_seeds():
    reported = []
    simulate(bandit(range(3), 4, 9), ensemble(range(3), 4, 3), 2500, reported.append)
    assert reported == [1000, 1000, 500] * 3


# -------------------------------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize("actions", [0, 20, 1200])
def test_a_reward_that_is_no_number_names_agent_seed_and_step(actions):
    """The first reward spoils the mean, which the second round's theta shows."""
    with pytest.raises(TrainingError) as error:
        simulate(bandit([7, 8], 5, actions, noise=1e300), ensemble([7, 8], 5, 4), 10)
    assert str(error.value) == (
        "LinearEnsemblePlusPlus (gaussian x sphere), seed 7, step 2: theta is not a number; check prior_variance and noise"
    )


def test_a_later_step_is_named_across_calls_of_the_kernel(monkeypatch):
    monkeypatch.setattr(compiled, "ROUNDS", 4)
    noise = np.zeros(20)
    noise[9] = 1e300
    position = 0

    def take(rounds: int) -> np.ndarray:
        nonlocal position
        position += rounds
        return noise[position - rounds : position]

    instance = LinearInstance(3, np.ones(2), take, np.eye(2), actions=2)
    agent = EnsembleSampling([3], dimension=2, prior_variance=1.0, ensemble_size=3)
    with pytest.raises(TrainingError, match=r"^EnsembleSampling \(member x raw_gaussian\), seed 3, step 11: theta is not"):
        play(agent, instance, 20)


@pytest.mark.parametrize("agent", [LinearThompsonSampling, EnsembleSampling])
def test_an_infinite_prior_is_no_number_at_the_first_step(agent):
    options = {"ensemble_size": 3} if agent is EnsembleSampling else {}
    with pytest.raises(TrainingError, match=r"seed 2, step 1: theta is not a number; check prior_variance and noise$"):
        simulate(bandit([2], 3, 10), agent([2], dimension=3, prior_variance=np.inf, **options), 5)


@pytest.mark.parametrize("precision", ["mixed", "float64"])
def test_scores_beyond_the_numbers_are_an_error_and_not_a_choice(precision):
    """Features of 1e30 and parameters of 1e10 have scores of 1e40: numbers in float64, but none in float32."""
    features = 1e30 * np.random.default_rng(0).standard_normal((20, 3))
    instance = LinearInstance(2, np.ones(3), np.zeros, features, actions=20)
    agent = ensemble([2], 3, 4, precision, prior_variance=1e20)
    if precision == "float64":
        assert np.isfinite(play(agent, instance, 5).regret[..., :1]).all()
    else:
        with pytest.raises(TrainingError, match=r"seed 2, step 1: theta is not a number"):
            play(agent, instance, 5)
