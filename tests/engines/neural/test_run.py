"""Whole runs on a pool: what `play` must share with `act` and `update`, what it stores, and how a killed run goes on."""

from __future__ import annotations

import os
import pickle

import numpy as np
import pytest
import torch
from neural_games import AGENTS, SCALES, build, play, pool
from plain_torch import PlainEnsemblePlusPlus

from ensemblepp.agents.linear.ucb import LinearUCB
from ensemblepp.agents.neural.base import CHUNK, NeuralAgent
from ensemblepp.agents.neural.greedy import Greedy
from ensemblepp.engines import step_by_step as simulation
from ensemblepp.engines.choice import simulate
from ensemblepp.engines.neural import run as neural_rounds
from ensemblepp.engines.neural.compiled import CompiledRun
from ensemblepp.engines.neural.stacked import StackedRun
from ensemblepp.environments.pool import Pool
from ensemblepp.errors import ConfigError, TrainingError
from ensemblepp.storage.checkpoints import Checkpoint
from ensemblepp.trajectory import Trajectory

torch.set_num_threads(1)

SEEDS = (0, 1, 4)
ENGINES = [CompiledRun, StackedRun]


class Hidden:
    """A pool that does not say that it is one: agents play it round by round."""

    def __init__(self, inner: Pool) -> None:
        self.inner = inner
        self.seeds, self.dimension, self.fixed_actions = inner.seeds, inner.dimension, inner.fixed_actions

    def decisions(self):
        return self.inner.decisions()

    def mean_rewards(self):
        return self.inner.mean_rewards()

    def step(self, choice):
        return self.inner.step(choice)


@pytest.fixture
def engine(monkeypatch):
    """A function that makes `play` take an engine."""
    return lambda kind: monkeypatch.setattr(neural_rounds, "_engine", lambda agent: kind)


def assert_equal(left: Trajectory, right: Trajectory) -> None:
    """All that two runs leave, to the last bit."""
    for name in ("time", "regret", "reward", "optimal", "action"):
        assert np.array_equal(getattr(left, name), getattr(right, name)), name
    assert (left.constant_regret is None) == (right.constant_regret is None)
    assert left.constant_regret is None or np.array_equal(left.constant_regret, right.constant_regret)
    assert left.diagnostics.keys() == right.diagnostics.keys()
    for name, values in left.diagnostics.items():
        assert np.array_equal(values, right.diagnostics[name], equal_nan=True), name


# ------------------------------------------------------------------------------------------------ round by round


@pytest.mark.parametrize("kind", ["quadratic", "neural", "contextual"])
@pytest.mark.parametrize(
    "name", ["greedy", "epsilon-greedy", "ensemble++ sphere", "ensemble++ chains", "ensemble+", "bootstrap"]
)
def test_playing_in_pytorch_is_acting_and_updating(engine, name, kind):
    """130 rounds, three chunks of draws, with two logits where rewards are 0 and 1: everything but float64 sums to the bit."""
    engine(StackedRun)
    loss = "cross_entropy" if kind == "neural" else "squared"
    settings = {"loss": loss, "gradient_steps": 2, "update_every": 2, "hidden": [8]}
    whole, single = (build(name, pool(kind, SEEDS), 130, **settings) for _ in range(2))
    played = simulate(pool(kind, SEEDS), whole, 130)
    stepped = simulate(Hidden(pool(kind, SEEDS)), single, 130)
    assert np.array_equal(played.action, stepped.action)
    assert np.array_equal(played.time, stepped.time)
    assert np.array_equal(played.optimal, stepped.optimal)
    for field in ("regret", "reward"):
        np.testing.assert_allclose(getattr(played, field), getattr(stepped, field), rtol=1e-6, atol=1e-6)
    if kind == "contextual":
        np.testing.assert_allclose(played.constant_regret, stepped.constant_regret, rtol=1e-6)
    assert played.diagnostics.keys() == {"loss", "spread", "explored"}
    for field, values in stepped.diagnostics.items():
        assert np.array_equal(played.diagnostics[field], values, equal_nan=True), field
    assert torch.equal(whole.flat, single.flat)
    assert np.isnan(played.diagnostics["loss"][..., :10]).all()
    assert len(np.unique(played.diagnostics["loss"][0, 0])) > 20


@pytest.mark.parametrize("name", AGENTS)
def test_playing_compiled_is_acting_and_updating(name):
    """The same of the compiled rounds, 100 of them: same choices, what the agent says of itself to rounding.

    Of the three seeds one may part, as rounding at the kink of a ReLU can make it (see `test_neural_kernel`).
    """
    whole, single = (build(name, pool("quadratic", SEEDS), 100, hidden=[8]) for _ in range(2))
    played = simulate(pool("quadratic", SEEDS), whole, 100)
    stepped = simulate(Hidden(pool("quadratic", SEEDS)), single, 100)
    same = (played.action == stepped.action).all(axis=-1)
    for left, right in (
        (played.regret, stepped.regret),
        (played.reward, stepped.reward),
        *((played.diagnostics[name], stepped.diagnostics[name]) for name in ("loss", "spread", "explored")),
    ):
        same &= np.isclose(left, right, rtol=1e-3, atol=1e-5, equal_nan=True).all(axis=-1)
    assert same.all(axis=1).sum() >= 2
    # of losses taken as views, the last one would stand at all times
    assert len(np.unique(played.diagnostics["loss"][0, 0])) > 20


@pytest.mark.parametrize("engine_", ENGINES)
def test_a_game_as_one_would_write_it_first(engine, engine_):
    """Both engines against one seed in plain PyTorch, the symmetrised loss direction by direction (tests/plain_torch.py).

    150 rounds, 280 gradient steps, seed by seed: same actions; parameters within 1e-4. Of the three seeds one may part.
    """
    engine(engine_)
    settings = {"hidden": [16, 16], "gradient_steps": 2, "learning_rate": 1e-3}
    environment = pool("quadratic", SEEDS)
    agent = build("ensemble++ coordinate", environment, 150, **settings)
    trajectory = simulate(environment, agent, 150)
    same = []
    for row, seed in enumerate(SEEDS):
        world = pool("quadratic", (seed,))
        plain = PlainEnsemblePlusPlus(build("ensemble++ coordinate", world, 150, **settings), SCALES["posterior_scale"])
        actions = plain.play(world, 150)
        network = plain.network
        expected = {
            "w0": network.trunk[0].weight.T,
            "b0": network.trunk[0].bias[None],
            "w1": network.trunk[2].weight.T,
            "b1": network.trunk[2].bias[None],
            "base": network.base.weight.T,
            "heads": network.heads.weight.T,
        }
        assert expected.keys() == agent.parameters.keys()
        away = max((agent.parameters[name][row] - value).abs().max().item() for name, value in expected.items())
        same.append(actions == trajectory.action[row, 0].tolist() and away < 1e-4)
    assert sum(same) >= 2


# -------------------------------------------------------------------------------------------------- what is stored


@pytest.mark.parametrize("engine_", ENGINES)
def test_stored_rounds_do_not_change_the_run(engine_):
    """Rounds 3, 64, 65 and 140 alone are the entries of all 140: regret and reward sums, diagnostics, actions, parameters."""
    every, some = np.arange(1, 141), np.array([3, 64, 65, 140])
    runs = []
    for time in (every, some):
        environment = pool("quadratic", SEEDS)
        runs.append(play(engine_, build("ensemble++ sphere", environment, 140), environment, 140, time))
    full, few = (run.trajectory() for run in runs)
    assert few.time.tolist() == some.tolist()
    for name in ("regret", "reward", "optimal"):
        assert getattr(few, name).shape == (3, 1, 4)
        assert np.array_equal(getattr(few, name), getattr(full, name)[..., some - 1])
    for name, values in few.diagnostics.items():
        assert np.array_equal(values, full.diagnostics[name][..., some - 1], equal_nan=True)
    assert np.array_equal(few.action, full.action)
    assert torch.equal(runs[0].agent.flat, runs[1].agent.flat)


@pytest.mark.parametrize("engine_", ENGINES)
@pytest.mark.parametrize("kind", ["quadratic", "neural"])
def test_sums_by_hand(engine_, kind):
    """Regret, reward and rounds without regret from the actions alone, with a twin environment's means, offers and noise."""
    environment, twin = pool(kind, SEEDS), pool(kind, SEEDS)
    run = play(engine_, build("ensemble++ chains", environment, 80), environment, 80, np.arange(1, 81))
    trajectory, (offers, noise) = run.trajectory(), twin.draw(80)
    assert trajectory.constant_regret is None
    for seed in range(3):
        means = twin.means[seed, offers[seed]]
        for chain in range(4):
            mean = means[np.arange(80), trajectory.action[seed, chain]]
            regret = means.max(axis=1) - mean
            reward = (noise[seed] < mean) if kind == "neural" else mean + noise[seed]
            np.testing.assert_allclose(trajectory.regret[seed, chain], regret.cumsum(), rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(trajectory.reward[seed, chain], reward.cumsum(), rtol=1e-6, atol=1e-6)
            assert trajectory.optimal[seed, chain].tolist() == (regret == 0).cumsum().tolist()
    assert 0 < trajectory.optimal[0, 0, -1] < 80


@pytest.mark.parametrize("engine_", ENGINES)
def test_regret_of_always_choosing_one_action(engine_):
    """From the rows that a twin shows: the row's best mean minus each action's, cumulated, at the stored rounds."""
    time = np.array([1, 5, 64, 100, 200])
    environment, twin = pool("contextual", SEEDS), pool("contextual", SEEDS)
    trajectory = play(engine_, build("greedy", environment, 200), environment, 200, time).trajectory()
    sums, expected = np.zeros((3, 3)), []
    for round_ in range(1, 201):
        means = twin.mean_rewards()
        sums += means.max(axis=1, keepdims=True) - means
        twin.step(twin.decisions().choose(np.zeros((3, 1), dtype=int)))
        if round_ in time:
            expected.append(sums.copy())
    assert trajectory.constant_regret.shape == (3, 3, 5)
    assert trajectory.constant_regret.dtype == np.float32
    assert trajectory.constant_regret.tolist() == np.stack(expected, axis=-1).tolist()


@pytest.mark.parametrize("engine_", ENGINES)
def test_large_tables_of_actions_are_not_stored(engine, engine_, monkeypatch):
    """3 seeds x 50 rounds are 150 entries; the sums do not need them."""
    engine(engine_)
    environment = pool("quadratic", SEEDS)
    full = simulate(environment, build("greedy", environment, 50), 50)
    assert full.action.shape == (3, 1, 50)
    assert full.action.dtype == np.int32
    monkeypatch.setattr(simulation, "MAX_STORED_ACTIONS", 149)
    environment = pool("quadratic", SEEDS)
    bare = simulate(environment, build("greedy", environment, 50), 50)
    assert bare.action is None
    assert np.array_equal(bare.regret, full.regret)


@pytest.mark.parametrize("engine_", ENGINES)
def test_seconds_are_told_on_request(engine, engine_):
    """Positive, never falling, the same for all chains of a job; everything else is that of a run without them."""
    engine(engine_)
    runs = []
    for timed in (False, True):
        environment = pool("quadratic", SEEDS)
        runs.append(simulate(environment, build("ensemble++ chains", environment, 70, timed=timed), 70))
    seconds = runs[1].diagnostics.pop("seconds")
    assert "seconds" not in runs[0].diagnostics
    assert_equal(*runs)
    assert seconds.shape == runs[1].regret.shape
    assert (seconds == seconds[0, 0]).all()
    assert (np.diff(seconds[0, 0]) >= 0).all()
    assert 0 < seconds[0, 0, -1] < 60


@pytest.mark.parametrize("engine_", ENGINES)
def test_progress_is_told_as_rounds_summed_over_seeds(engine, engine_):
    """150 rounds x 3 seeds, in pieces of at most a chunk."""
    engine(engine_)
    environment, told = pool("quadratic", SEEDS), []
    simulate(environment, build("ensemble++ chains", environment, 150), 150, told.append)
    assert sum(told) == 450
    assert 0 < min(told) <= max(told) <= 3 * CHUNK


# ---------------------------------------------------------------------------------------------- choices and errors


def test_agents_of_linear_heads_are_compiled_and_others_are_not():
    """On the CPU; an agent that does not describe itself as linear heads plays in PyTorch."""

    class Plain(Greedy):
        linear_heads = property()

    environment = pool("quadratic", SEEDS)
    for name in AGENTS:
        assert neural_rounds._engine(build(name, environment, 10)) is CompiledRun
    settings = {"dimension": 6, "horizon": 10, "device": "cpu", "hidden": [], "learning_rate": 0.1, "batch_size": 2}
    settings |= {"weight_decay": 0.0, "buffer_capacity": 5, "gradient_steps": 1, "warm_up": 0}
    assert neural_rounds._engine(Plain((0,), **settings)) is StackedRun


def test_whole_runs_are_for_pools():
    """Environments that are none are played round by round."""
    agent = build("greedy", pool("quadratic", SEEDS), 10)
    assert agent.plays(pool("contextual", SEEDS))
    assert not agent.plays(Hidden(pool("quadratic", SEEDS)))


@pytest.mark.parametrize("engine_", ENGINES)
def test_an_absurd_learning_rate_stops_the_run(engine, engine_):
    """Linear heads that are 1e30 after round 11 predict infinite losses in round 12: seen at a stored round soon after."""
    engine(engine_)
    environment = pool("quadratic", SEEDS)
    agent = build("greedy", environment, 200, learning_rate=1e30, hidden=[])
    with pytest.raises(TrainingError, match=r"^Greedy: the loss of seed 0, 1, 4 is not finite at step 1[2-4]; a smaller"):
        simulate(environment, agent, 200)


@pytest.mark.parametrize("engine_", ENGINES)
def test_a_horizon_beyond_the_data_is_refused(engine, engine_):
    """90 rows x 3 passes are 270 rounds: those are played, the next is an error."""
    engine(engine_)
    environment, told = pool("contextual", SEEDS), []
    with pytest.raises(ConfigError, match=r"^round 271 is beyond the data: 90 rows x 3 pass\(es\)"):
        simulate(environment, build("greedy", environment, 300), 300, told.append)
    assert sum(told) == 270 * 3


# ------------------------------------------------------------------------------------------------- killed and resumed


@pytest.fixture(autouse=True)
def _no_flushing(monkeypatch):
    """A state per round is a lot to wait for the disk for."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


class Killed(Exception):
    """What stands for the end of a process."""


def killer(rounds: int):
    """An `on_step` that raises once so many rounds, summed over seeds, are done."""
    done = 0

    def on_step(count: int) -> None:
        nonlocal done
        done += count
        if done >= rounds:
            raise Killed

    return on_step


#: (agent, environment, settings): whatever has a state of its own.
RESUMED = [
    ("ensemble++ sphere", "quadratic", {"gradient_steps": 2}),
    ("ensemble++ chains", "neural", {"loss": "cross_entropy"}),
    ("ensemble+", "contextual", {}),
    ("bootstrap", "quadratic", {"update_every": 3}),
    ("epsilon-greedy", "contextual", {"hidden": [7]}),
]


@pytest.mark.parametrize("way", ["compiled", "torch", "round by round"])
@pytest.mark.parametrize(("name", "kind", "settings"), RESUMED, ids=str)
def test_a_killed_run_goes_on_to_the_same_bits(engine, tmp_path, name, kind, settings, way):
    """Killed in the first chunk, at its end, and in the third one, each time with a fresh environment and agent.

    The last state before each death is on disk; what the run leaves, and all parameters, are those of an uninterrupted one.
    """
    engine(StackedRun if way == "torch" else CompiledRun)

    def start() -> tuple[Pool | Hidden, NeuralAgent]:
        environment = pool(kind, SEEDS)
        agent = build(name, environment, 140, **settings)
        return (Hidden(environment) if way == "round by round" else environment), agent

    whole = simulate(*start(), 140)
    checkpoint = Checkpoint(tmp_path / "run.checkpoint", "key", every=0)
    for death in (20, 64, 130):
        with pytest.raises(Killed):
            simulate(*start(), 140, killer(3 * death), checkpoint)
    told = []
    environment, agent = start()
    resumed = simulate(environment, agent, 140, told.append, checkpoint)
    assert_equal(resumed, whole)
    # told first what was done before; the fresh agent was not needed
    assert sum(told) == 140 * 3
    assert 3 * 64 <= told[0] < 3 * 130
    assert agent.round == 0


def test_a_killed_run_of_another_agent_goes_on_to_the_same_bits(tmp_path):
    """LinUCB plays round by round and knows nothing of checkpoints: the loop pickles it."""

    def start():
        environment = pool("quadratic", SEEDS)
        return environment, LinearUCB(SEEDS, dimension=6, prior_variance=1.0, width=1.0, delta=0.05)

    whole = simulate(*start(), 60)
    checkpoint = Checkpoint(tmp_path / "run.checkpoint", "key", every=0)
    with pytest.raises(Killed):
        simulate(*start(), 60, killer(3 * 33), checkpoint)
    told = []
    assert_equal(simulate(*start(), 60, told.append, checkpoint), whole)
    assert told[0] == 3 * 32


@pytest.mark.parametrize("engine_", ENGINES)
@pytest.mark.parametrize("key", ["another key", None])
def test_a_checkpoint_that_does_not_fit_is_not_used(engine, tmp_path, engine_, key):
    """Of another specification or code, or cut off in the middle: the run starts anew, and is the same."""
    engine(engine_)

    def start():
        environment = pool("quadratic", SEEDS)
        return environment, build("ensemble++ coordinate", environment, 80)

    whole = simulate(*start(), 80)
    path = tmp_path / "run.checkpoint"
    with pytest.raises(Killed):
        simulate(*start(), 80, killer(3 * 50), Checkpoint(path, "key", every=0))
    if key is None:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    told = []
    assert_equal(simulate(*start(), 80, told.append, Checkpoint(path, key or "key", every=0)), whole)
    assert told[0] < 3 * 20


@pytest.mark.parametrize("engine_", ENGINES)
def test_a_run_that_was_pickled_is_a_run_of_its_own(engine_):
    """Played on, neither changes the other: no memory is shared, and tensors that were parts of others are so again."""
    environment = pool("quadratic", SEEDS)
    run = engine_(build("ensemble++ gaussian", environment, 150), environment, 150, np.arange(1, 151))
    while run.agent.round < 90:
        run.advance()
    kept = pickle.dumps(run)
    copies = [pickle.loads(kept) for _ in range(2)]
    assert torch.equal(copies[0].agent.flat, run.agent.flat)
    for copy in copies:
        while copy.agent.round < 150:
            copy.advance()
    assert run.agent.round == 90
    assert torch.equal(copies[0].agent.flat, copies[1].agent.flat)
    assert not torch.equal(copies[0].agent.flat, run.agent.flat)
    with torch.no_grad():
        copies[0].agent.flat.zero_()
    assert not any(parameter.any() for parameter in copies[0].agent.parameters.values())
    assert all(parameter.any() for parameter in copies[1].agent.parameters.values())
    assert_equal(copies[0].trajectory(), copies[1].trajectory())


def test_an_agent_does_not_go_on_round_by_round_after_compiled_rounds():
    """They keep a buffer of their own, which the agent's training would not see."""
    environment = pool("quadratic", SEEDS)
    agent = build("greedy", environment, 10)
    agent.play(environment, 5, np.array([5]), lambda rounds: None)
    choice = agent.act(environment.decisions())
    with pytest.raises(RuntimeError, match="play all rounds in one call of `play`"):
        agent.update(choice, np.ones((len(SEEDS), 1)))
