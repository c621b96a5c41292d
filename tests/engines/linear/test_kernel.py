"""Parts of the compiled kernel against NumPy: scores and their best, noise tables, triangular factors, passes over state."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from types import SimpleNamespace

import llvmlite.binding
import numba
import numpy as np
import pytest
from linear_bandits import PAIRS, bandit, ensemble

from ensemblepp.agents.linear.greedy import LinearGreedy
from ensemblepp.bandit import LinearInstance
from ensemblepp.engines.choice import simulate
from ensemblepp.engines.linear import kernel
from ensemblepp.engines.linear.compiled import InstanceRun
from ensemblepp.randomness import distributions

TYPES = [np.float32, np.float64]


def from_python(function):
    """What compiled code calls, for Python: once it was compiled inside another function it has no code of its own."""
    return numba.njit(lambda *arguments: function(*arguments))


called = SimpleNamespace(
    **{
        name: from_python(getattr(kernel, f"_{name}"))
        for name in ("score", "winner", "cholesky_update", "back_substitute", "push", "product", "pull")
    }
)


def best_actions(features: np.ndarray, theta: np.ndarray, dtype: type, cuts: tuple[int, ...] = ()) -> list[tuple[float, int]]:
    """Best score and action of every row of theta as the kernel finds them, the panels scored in pieces that end at `cuts`."""
    lanes = kernel.width(dtype)
    actions, dimension = features.shape
    panels = -(-actions // lanes)
    arms = np.empty(panels * dimension * lanes, dtype)
    kernel.pack(features, lanes, arms)
    best, where = np.full((len(theta), lanes), -np.inf, dtype), np.zeros((len(theta), lanes), np.int32)
    ends = [0, *(cut for cut in cuts if cut < panels), panels]
    parameters = np.ascontiguousarray(theta.T, dtype)
    for first, end in itertools.pairwise(ends):
        called.score(arms, first, end, parameters, best, where)
    return [(float(row.max()), called.winner(row, place, lanes, actions)) for row, place in zip(best, where, strict=True)]


# --------------------------------------------------------------------------------------------------------------- scores


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("chains", [1, kernel.TILE])
def test_the_best_action_is_numpy_s_with_the_lowest_index_on_ties(chains, dtype):
    """100 random shapes with whole numbers of -2..2, whose scores are exact and tie often."""
    source, ties = np.random.default_rng(0), 0
    for _ in range(100):
        actions, dimension = source.integers(1, 400), source.integers(1, 12)
        features = source.integers(-2, 3, (actions, dimension)).astype(float)
        theta = source.integers(-2, 3, (chains, dimension)).astype(float)
        scores = theta @ features.T
        cuts = tuple(sorted(source.integers(1, 60, 3).tolist()))
        for found, expected in zip(best_actions(features, theta, dtype, cuts), scores, strict=True):
            assert found == (expected.max(), expected.argmax())
            ties += (expected == expected.max()).sum() > 1
    assert ties > 30


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("actions", "dimension"), [(1, 1), (7, 3), (37, 50), (1500, 20), (333, 1)])
def test_scores_are_numpy_s_up_to_rounding(actions, dimension, dtype):
    """The score and the score of the action found are within d + 1 roundings of the true maximum."""
    source = np.random.default_rng(actions)
    features, theta = source.standard_normal((actions, dimension)), source.standard_normal((kernel.TILE, dimension))
    room = (dimension + 4) * np.finfo(dtype).eps * np.linalg.norm(features, axis=1).max() * np.linalg.norm(theta, axis=1)
    tile = best_actions(features, theta, dtype)
    for chain, (score, action) in enumerate(tile):
        scores = features @ theta[chain]
        assert abs(score - scores.max()) <= room[chain]
        assert scores.max() - scores[action] <= 2 * room[chain]


@pytest.mark.parametrize("dtype", TYPES)
def test_a_score_is_the_same_bits_alone_in_a_tile_and_in_pieces(dtype):
    source = np.random.default_rng(2)
    for actions, dimension in ((5, 3), (97, 11), (640, 50), (1001, 8)):
        features, theta = source.standard_normal((actions, dimension)), source.standard_normal((kernel.TILE, dimension))
        together = best_actions(features, theta, dtype)
        assert [best_actions(features, theta[[chain]], dtype)[0] for chain in range(kernel.TILE)] == together
        assert best_actions(features, theta, dtype, (1, 2, 9, 30)) == together
        assert best_actions(features, theta[::-1], dtype) == together[::-1]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("actions", [1, 5, 17, 81])
def test_padding_never_wins(actions, dtype):
    """All scores are negative, and the last action, which fills the last panel, is the best."""
    features = -1.0 - np.arange(actions, dtype=float)[::-1, None]
    for chains in (1, kernel.TILE):
        assert best_actions(features, np.ones((chains, 1)), dtype) == [(-1.0, actions - 1)] * chains


@pytest.mark.parametrize("dtype", TYPES)
def test_scores_that_are_no_numbers_have_no_best(dtype):
    for actions in (3, 40):
        features = np.full((actions, 2), np.nan)
        assert best_actions(features, np.ones((1, 2)), dtype) == [(-np.inf, -1)]
        features[actions - 1] = 1.0
        assert best_actions(features, np.ones((1, 2)), dtype) == [(2.0, actions - 1)]
        # beyond the greatest number of the type
        features[0] = np.finfo(dtype).max
        assert best_actions(features, np.full((1, 2), 4.0), dtype) == [(np.inf, -1)]


# ---------------------------------------------------------------------------------------------------------------- noise


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", [1, 2, 3, 8, 33, 65, 200, 1024])
def test_noise_tables_are_the_laws(size, dtype):
    """Every law of `distributions` from norms, signs and the two largest entries."""
    gaussian = np.random.default_rng(size).standard_normal((300, size))
    norms, signs, largest = np.empty(300), np.empty((300, size), dtype), np.zeros((300, 2), np.int32)
    kernel.noise_tables(gaussian, norms, signs, largest)
    np.testing.assert_allclose(norms, np.linalg.norm(gaussian, axis=1), rtol=1e-13)
    assert np.array_equal(signs, distributions.reference("cube", gaussian))
    np.testing.assert_allclose(
        np.sqrt(size) * gaussian / norms[:, None], distributions.reference("sphere", gaussian), rtol=1e-13
    )
    rows = np.arange(300)
    for law, kept in (("coordinate", 1), ("sparse", min(2, size)), ("member", 1)):
        built = np.zeros_like(gaussian)
        for i in range(kept):
            positions = largest[:, i]
            built[rows, positions] = np.sqrt(size / kept) * (1.0 if law == "member" else signs[rows, positions])
        expected = distributions.member(gaussian) if law == "member" else distributions.reference(law, gaussian)
        assert np.array_equal(built, expected)


def test_noise_tables_by_hand():
    """(0.5, -3, 1, -2): the largest entries are the second and the fourth; zero counts as positive."""
    gaussian = np.array([[0.5, -3.0, 1.0, -2.0], [0.0, 0.0, -1.0, 0.0], [2.0, 1.0, -2.5, 0.0]])
    norms, signs, largest = np.empty(3), np.empty((3, 4)), np.zeros((3, 2), np.int32)
    kernel.noise_tables(gaussian, norms, signs, largest)
    assert norms.tolist() == pytest.approx([14.25**0.5, 1.0, 11.25**0.5])
    assert signs.tolist() == [[1, -1, 1, -1], [1, 1, -1, 1], [1, 1, -1, 1]]
    assert largest.tolist() == [[1, 3], [2, 0], [2, 0]]


# ---------------------------------------------------------------------------------------------------------------- state


@pytest.mark.parametrize("dimension", [1, 2, 7, 50])
def test_the_cholesky_factor_follows_rank_one_updates(dimension):
    """500 updates of I / 10: R^T R is the precision, R upper triangular; R out = right is solved."""
    source = np.random.default_rng(dimension)
    factor, precision = np.eye(dimension) / np.sqrt(10.0), np.eye(dimension) / 10.0
    for _ in range(500):
        vector = source.uniform(-0.5, 0.5, dimension)
        precision += np.outer(vector, vector)
        called.cholesky_update(factor, vector)
    assert np.array_equal(factor, np.triu(factor))
    assert (np.diag(factor) > 0).all()
    np.testing.assert_allclose(factor, np.linalg.cholesky(precision).T, rtol=1e-10, atol=1e-12)
    right, out = source.standard_normal(dimension), np.zeros(dimension)
    called.back_substitute(factor, right, out)
    np.testing.assert_allclose(out, np.linalg.solve(factor, right), rtol=1e-11)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("count", [0, 1, 3, 8, 65])
@pytest.mark.parametrize("registers", [1, 2, 3, 4, 5, 7, 11])
def test_passes_over_the_state_are_rank_one_update_and_product(registers, count, dtype):
    """For every number of registers a row can have, which are passed in fours, twos and ones."""
    source = np.random.default_rng(registers)
    length = registers * kernel.padded(1)
    rows, steps, along, factors = (
        source.standard_normal(shape).astype(dtype) for shape in ((count, length), count, length, count)
    )
    room = {"rtol": 1e-4, "atol": 1e-4} if dtype is np.float32 else {"rtol": 1e-12, "atol": 1e-12}
    updated = rows + np.outer(steps, along)

    pushed, out = rows.copy(), np.full(length, 7.0, dtype)
    called.push(pushed, steps, along, factors, out)
    np.testing.assert_allclose(pushed, updated, **room)
    assert (out == 7.0).all()

    kept = rows.copy()
    called.product(kept, steps, along, factors, out)
    assert np.array_equal(kept, rows)
    np.testing.assert_allclose(out, rows.T @ factors, **room)

    pulled = rows.copy()
    called.pull(pulled, steps, along, factors, out)
    assert np.array_equal(pulled, pushed)
    np.testing.assert_allclose(out, updated.T @ factors, **room)


# ---------------------------------------------------------------------------------------------------- other processors

NARROW = """
import json, sys
from ensemblepp.engines.linear.vector_code import REGISTER_BYTES
assert REGISTER_BYTES == 32
from ensemblepp.engines.choice import simulate
from linear_bandits import bandit, ensemble
runs = [
    simulate(bandit([1], 6, actions), ensemble([1], 6, size, precision), 60)
    for precision in ("float64", "mixed") for actions, size in ((0, 7), (37, 5), (1203, 8))
]
json.dump([[run.action.tolist(), run.regret.tolist()] for run in runs], sys.stdout)
"""


@pytest.mark.thorough
@pytest.mark.skipif(not llvmlite.binding.get_host_cpu_features().get("avx2"), reason="this processor has other registers")
def test_a_processor_with_narrower_registers_plays_the_same_runs():
    """Registers of 32 bytes, as without AVX-512: other panels and tiles; float64 agrees within 1e-6, mixed in its actions."""
    own = os.environ | {
        "NUMBA_CPU_NAME": "haswell",
        "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    done = subprocess.run([sys.executable, "-c", NARROW], env=own, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = iter(json.loads(done.stdout))
    for precision in ("float64", "mixed"):
        for actions, size in ((0, 7), (37, 5), (1203, 8)):
            here = simulate(bandit([1], 6, actions), ensemble([1], 6, size, precision), 60)
            action, regret = (np.array(values) for values in next(found))
            assert np.array_equal(action, here.action)
            if precision == "float64":
                np.testing.assert_allclose(regret, here.regret, rtol=1e-6, atol=1e-6)
            assert action.shape == (1, len(PAIRS), 60)


# ------------------------------------------------------------------------------------------------------------- pruning


def first_choice(theta: np.ndarray, features: np.ndarray, pruning: bool) -> int:
    """The action that is chosen by the true parameter, with scores in float32."""
    instance = LinearInstance(0, theta, np.zeros, features, actions=len(features))
    agent = LinearGreedy([0], dimension=len(theta), prior_variance=1.0, precision="mixed", pruning=pruning)
    run = InstanceRun(agent, instance)
    assert bool(len(run.actions.scores)) == pruning
    run.state.mean[0, : len(theta)] = theta
    outputs = *(np.empty((1, 1)) for _ in range(3)), np.zeros((1, 1), dtype=np.int32)
    run.advance(1, 0, np.array([1]), outputs)
    return int(outputs[-1][0, 0])


def test_pruning_leaves_room_for_the_rounding_of_scores_and_bounds():
    """Actions of one mean reward: rounding alone decides which has the best score, and a bound without room would miss it."""
    source = np.random.default_rng(0)
    later = 0
    for _ in range(20):
        theta = source.standard_normal(6)
        beside = source.standard_normal((2000, 6))
        beside -= np.outer(beside @ theta / (theta @ theta), theta)
        features = theta / (theta @ theta) + beside
        chosen = first_choice(theta, features, pruning=True)
        assert chosen == first_choice(theta, features, pruning=False)
        # beyond the actions that are scored before anything is pruned
        first = np.argsort(-np.einsum("nd,d->n", features, theta), kind="stable")[:200]
        later += chosen not in first
    assert later >= 10
