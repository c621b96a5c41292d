"""Pools: contexts under fixed actions without a table of all their features, and means of each seed's own."""

import tracemalloc

import numpy as np
import pytest
import torch

from ensemblepp.agents.neural.epinet import EpiNet
from ensemblepp.agents.neural.greedy import Greedy
from ensemblepp.engines.choice import simulate
from ensemblepp.environments.contextual import Contextual
from ensemblepp.environments.pool import Pool, Rounds
from ensemblepp.trajectory import Trajectory

torch.set_num_threads(1)

TRAINING = {
    "device": "cpu",
    "hidden": [8],
    "learning_rate": 1e-3,
    "batch_size": 8,
    "weight_decay": 0.1,
    "buffer_capacity": 40,
    "gradient_steps": 1,
    "warm_up": 5,
}
EPINET = {"ensemble_size": 2, "prior_scale": 1.0, "posterior_scale": 0.3, "perturbation_scale": 0.1, "index_samples": 2}
ENGINES = ["neural_compiled", "neural_stacked", "step_by_step"]


class Listed(Pool):
    """A pool whose offers are those of a list, over and over, without noise."""

    def __init__(self, seeds, table, means, offers, **options) -> None:
        super().__init__(seeds, np.asarray(table, dtype=np.float32), np.asarray(means, dtype=float), **options)
        self._offers_of, self._drawn = np.asarray(offers), 0

    def draw(self, rounds: int) -> Rounds:
        places = (self._drawn + np.arange(rounds)) % self._offers_of.shape[1]
        self._drawn += rounds
        return Rounds(self._offers_of[:, places], np.zeros((len(self.seeds), rounds)))


def test_features_of_blocks_by_hand():
    """Rows (1, 2) and (3, 4) in three blocks: item 4 is row 1 in block 1, item 2 row 0 in block 2."""
    pool = Listed((0, 1), [[[1, 2], [3, 4]]], np.zeros((1, 6)), np.zeros((2, 1, 2), dtype=int), blocks=3)
    assert pool.dimension == 6
    features = pool.features(np.array([[4, 2], [0, 5]]))
    assert features.dtype == np.float32
    assert features.tolist() == [
        [[0, 0, 3, 4, 0, 0], [0, 0, 0, 0, 1, 2]],
        [[1, 2, 0, 0, 0, 0], [0, 0, 0, 0, 3, 4]],
    ]


def test_features_of_each_seed_s_own_table():
    """The same items of two seeds, with blocks and without, for one round and for two."""
    table = np.arange(8, dtype=np.float32).reshape(2, 2, 2)
    plain = Listed((0, 1), table, np.zeros((2, 2)), np.zeros((2, 1, 1), dtype=int))
    assert plain.features(np.array([[1], [1]])).tolist() == [[[2, 3]], [[6, 7]]]
    blocks = Listed((0, 1), table, np.zeros((2, 4)), np.zeros((2, 1, 1), dtype=int), blocks=2)
    items = np.array([[[3], [0]], [[3], [0]]])
    assert blocks.features(items).tolist() == [[[[0, 0, 2, 3]], [[0, 1, 0, 0]]], [[[0, 0, 6, 7]], [[4, 5, 0, 0]]]]


def written_out(pool: Contextual) -> Contextual:
    """The same pool with the features of all its items in a table of its own."""
    items = np.arange(pool.means.shape[1])
    pool.table = pool.features(items[None])
    pool.blocks = 1
    return pool


def contextual(seeds=(0, 3)) -> Contextual:
    source = np.random.default_rng(0)
    # negative features too, whose zeros must stay positive
    contexts = source.standard_normal((50, 3)).astype(np.float32)
    return Contextual(seeds, contexts, np.eye(4)[source.integers(4, size=50)], noise=0.1, passes=2)


def play(kind, pool: Pool, engine: str, rounds: int = 90, **options) -> Trajectory:
    agent = kind(pool.seeds, dimension=pool.dimension, horizon=rounds, **TRAINING | options)
    return simulate(pool, agent, rounds, engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_contexts_play_like_the_features_written_out(engine):
    """Greedy for 90 rounds of 4 actions: every number to the last bit, diagnostics too."""
    plain, blocks = (play(Greedy, pool, engine) for pool in (written_out(contextual()), contextual()))
    for name in ("action", "regret", "reward", "optimal", "constant_regret"):
        assert np.array_equal(getattr(plain, name), getattr(blocks, name)), name
    for name, values in plain.diagnostics.items():
        assert np.array_equal(values, blocks.diagnostics[name], equal_nan=True), name


def test_contexts_play_like_the_features_written_out_with_offsets():
    """EpiNet, in PyTorch alone."""
    options = EPINET | {"double_softmax": False}
    plain, blocks = (play(EpiNet, pool, "neural_stacked", 40, **options) for pool in (written_out(contextual()), contextual()))
    assert np.array_equal(plain.action, blocks.action)
    assert np.array_equal(plain.regret, blocks.regret)


@pytest.mark.parametrize("engine", ENGINES)
def test_one_table_may_have_means_for_each_seed(engine):
    """Items 0 and 1 are always offered; 1 is worth more at seed 0, 0 at seed 7: each choice costs what its own seed says."""
    table, means = [[[1, 0], [0, 1]]], [[0.0, 1.0], [2.0, 0.0]]
    pool = Listed((0, 7), table, means, np.tile(np.arange(2), (2, 3, 1)), fixed_actions=2)
    trajectory = play(Greedy, pool, engine, 30)
    for seed, expected in enumerate(means):
        chosen = np.array(expected)[trajectory.action[seed, 0]]
        np.testing.assert_allclose(trajectory.regret[seed, 0], (max(expected) - chosen).cumsum())
        np.testing.assert_allclose(trajectory.reward[seed, 0], chosen.cumsum())
    assert trajectory.constant_regret[:, :, -1].tolist() == [[30, 0], [0, 60]]


def test_memory_grows_with_rows_and_not_with_the_square_of_the_actions():
    """26 classes, 20,000 rows, 16 features: 1.3 MB of contexts and 4.2 MB of means; all features would be 865 MB."""
    rows, actions, width = 20_000, 26, 16
    source = np.random.default_rng(0)
    contexts = source.standard_normal((rows, width), dtype=np.float32)
    label = source.integers(actions, size=rows)
    tracemalloc.start()
    environment = Contextual((0, 1), contexts, np.eye(actions)[label], noise=0.1, passes=1)
    held, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert environment.table.nbytes == rows * width * 4
    assert environment.means.nbytes == rows * actions * 8
    assert held < 8 * rows * (width + 2 * actions)
    assert peak < 16 * rows * (width + 2 * actions)
    assert environment.dimension == actions * width
    for engine in ENGINES:
        trajectory = play(Greedy, Contextual((0, 1), contexts, np.eye(actions)[label], noise=0.1, passes=1), engine, 20)
        assert trajectory.regret[:, 0, -1].max() <= 20
