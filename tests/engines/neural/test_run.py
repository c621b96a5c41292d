"""What all engines for neural agents share: what a run stores and reports, its errors, and how a killed run goes on."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch
from killed import EveryFourth, Killed, assert_equal, killer
from neural_pools import ENGINES, SCALES, SEEDS, build, compiled, play, pool
from plain_torch import PlainEnsemblePlusPlus

from ensemblepp.agents.neural.base import CHUNK, NeuralAgent
from ensemblepp.engines.choice import simulate
from ensemblepp.engines.neural.run import Run
from ensemblepp.environments.pool import Pool
from ensemblepp.errors import ConfigError, TrainingError
from ensemblepp.storage.checkpoints import Checkpoint

torch.set_num_threads(1)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_as_one_would_write_it_first(engine):
    """Both engines against one seed in plain PyTorch, the symmetrised loss direction by direction (tests/plain_torch.py).

    150 rounds, 280 gradient steps, seed by seed: same actions; parameters within 1e-4. Of the three seeds one may part.
    """
    settings = {"hidden": [16, 16], "gradient_steps": 2, "learning_rate": 1e-3}
    environment = pool("quadratic", SEEDS)
    agent = build("ensemble++ coordinate", environment, 150, **settings)
    trajectory = simulate(environment, agent, 150, engine=engine)
    same = []
    for row, seed in enumerate(SEEDS):
        environment = pool("quadratic", (seed,))
        plain = PlainEnsemblePlusPlus(build("ensemble++ coordinate", environment, 150, **settings), SCALES["posterior_scale"])
        actions = plain.play(environment, 150)
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


@pytest.mark.parametrize("engine", ENGINES)
def test_stored_rounds_do_not_change_the_run(engine):
    """Rounds 3, 64, 65 and 140 alone are the entries of all 140: regret and reward sums, diagnostics, actions, parameters."""
    every, some = np.arange(1, 141), np.array([3, 64, 65, 140])
    runs = []
    for time in (every, some):
        environment = pool("quadratic", SEEDS)
        runs.append(play(ENGINES[engine], build("ensemble++ sphere", environment, 140), environment, 140, time))
    full, few = (run.trajectory() for run in runs)
    assert few.time.tolist() == some.tolist()
    for name in ("regret", "reward", "optimal"):
        assert getattr(few, name).shape == (3, 1, 4)
        assert np.array_equal(getattr(few, name), getattr(full, name)[..., some - 1])
    for name, values in few.diagnostics.items():
        assert np.array_equal(values, full.diagnostics[name][..., some - 1], equal_nan=True)
    assert np.array_equal(few.action, full.action)
    assert torch.equal(runs[0].agent.flat, runs[1].agent.flat)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", ["quadratic", "neural"])
def test_sums_by_hand(engine, kind):
    """Regret, reward and rounds without regret from the actions alone, with a twin environment's means, offers and noise."""
    environment, twin = pool(kind, SEEDS), pool(kind, SEEDS)
    run = play(ENGINES[engine], build("ensemble++ chains", environment, 80), environment, 80, np.arange(1, 81))
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


@pytest.mark.parametrize("engine", ENGINES)
def test_regret_of_always_choosing_one_action(engine):
    """From the rows that a twin shows: the row's best mean minus each action's, cumulated, at the stored rounds."""
    time = np.array([1, 5, 64, 100, 200])
    environment, twin = pool("contextual", SEEDS), pool("contextual", SEEDS)
    trajectory = play(ENGINES[engine], build("greedy", environment, 200), environment, 200, time).trajectory()
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


@pytest.mark.parametrize("engine", ENGINES)
def test_large_tables_of_actions_are_not_stored(engine, monkeypatch):
    """3 seeds x 50 rounds are 150 entries; the sums do not need them."""
    environment = pool("quadratic", SEEDS)
    full = simulate(environment, build("greedy", environment, 50), 50, engine=engine)
    assert full.action.shape == (3, 1, 50)
    assert full.action.dtype == np.int32
    monkeypatch.setattr("ensemblepp.trajectory.MAX_STORED_ACTIONS", 149)
    environment = pool("quadratic", SEEDS)
    bare = simulate(environment, build("greedy", environment, 50), 50, engine=engine)
    assert bare.action is None
    assert np.array_equal(bare.regret, full.regret)


@pytest.mark.parametrize("engine", ENGINES)
def test_seconds_are_recorded_on_request(engine):
    """Positive, never falling, the same for all chains of a job; everything else is that of a run without them."""
    runs = []
    for timed in (False, True):
        environment = pool("quadratic", SEEDS)
        runs.append(simulate(environment, build("ensemble++ chains", environment, 70, timed=timed), 70, engine=engine))
    seconds = runs[1].diagnostics.pop("seconds")
    assert "seconds" not in runs[0].diagnostics
    assert_equal(*runs)
    assert seconds.shape == runs[1].regret.shape
    assert (seconds == seconds[0, 0]).all()
    assert (np.diff(seconds[0, 0]) >= 0).all()
    assert 0 < seconds[0, 0, -1] < 60


@pytest.mark.parametrize("engine", ENGINES)
def test_progress_is_reported_as_rounds_summed_over_seeds(engine):
    """150 rounds x 3 seeds, in pieces of at most a chunk."""
    environment, reported = pool("quadratic", SEEDS), []
    simulate(environment, build("ensemble++ chains", environment, 150), 150, reported.append, engine=engine)
    assert sum(reported) == 450
    assert 0 < min(reported) <= max(reported) <= 3 * CHUNK


# ---------------------------------------------------------------------------------------------- choices and errors


@pytest.mark.parametrize("engine", ENGINES)
def test_an_absurd_learning_rate_stops_the_run(engine):
    """Linear heads that are 1e30 after round 11 predict infinite losses in round 12: seen at a stored round soon after."""
    environment = pool("quadratic", SEEDS)
    agent = build("greedy", environment, 200, learning_rate=1e30, hidden=[])
    with pytest.raises(TrainingError, match=r"^Greedy: the loss of seed 0, 1, 4 is not finite at step 1[2-4]; a smaller"):
        simulate(environment, agent, 200, engine=engine)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_horizon_beyond_the_data_is_refused(engine):
    """90 rows x 3 passes are 270 rounds: those are played, the next is an error."""
    environment, reported = pool("contextual", SEEDS), []
    with pytest.raises(ConfigError, match=r"^round 271 is beyond the data: 90 rows x 3 pass\(es\)"):
        simulate(environment, build("greedy", environment, 300), 300, reported.append, engine=engine)
    assert sum(reported) == 270 * 3


# ------------------------------------------------------------------------------------------------- killed and resumed


@pytest.fixture(autouse=True)
def _no_flushing(monkeypatch):
    """A state per round is a lot to wait for the disk for."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


#: (agent, environment, settings): whatever has a state of its own.
RESUMED = [
    ("ensemble++ sphere", "quadratic", {"gradient_steps": 2}),
    ("ensemble++ chains", "neural", {"loss": "cross_entropy"}),
    ("ensemble+", "contextual", {}),
    ("bootstrap", "quadratic", {"update_every": 3}),
    ("epsilon-greedy", "contextual", {"hidden": [7]}),
    ("epinet", "neural", {"loss": "cross_entropy"}),
    ("neural-ts", "quadratic", {"gradient_steps": 2}),
    ("neural-linear", "contextual", {}),
    ("dropout", "neural", {"loss": "cross_entropy"}),
]


@pytest.mark.parametrize("engine", [*ENGINES, "step_by_step"])
@pytest.mark.parametrize(("name", "kind", "settings"), RESUMED, ids=str)
def test_a_killed_run_goes_on_to_the_same_bits(engine, tmp_path, name, kind, settings):
    """Killed in the first chunk, at its end, and in the third one, each time with a fresh environment and agent.

    A state from shortly before each death is on disk; what the run leaves is that of an uninterrupted one.
    """
    if engine == "neural_compiled":
        engine = compiled(name)[0]

    def start() -> tuple[Pool, NeuralAgent]:
        environment = pool(kind, SEEDS)
        return environment, build(name, environment, 140, **settings)

    whole = simulate(*start(), 140, engine=engine)
    checkpoint = EveryFourth(tmp_path / "run.checkpoint", "key")
    for death in (20, 64, 130):
        with pytest.raises(Killed):
            simulate(*start(), 140, killer(3 * death), checkpoint, engine=engine)
    reported = []
    environment, agent = start()
    resumed = simulate(environment, agent, 140, reported.append, checkpoint, engine=engine)
    assert_equal(resumed, whole)
    # what was done before is reported first; the fresh agent was not needed
    assert sum(reported) == 140 * 3
    assert 3 * 64 <= reported[0] < 3 * 130
    assert agent.round == 0


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("key", ["another key", None])
def test_a_checkpoint_that_does_not_fit_is_not_used(engine, tmp_path, key):
    """Of another specification or code, or cut off in the middle: the run starts anew, and is the same."""

    def start():
        environment = pool("quadratic", SEEDS)
        return environment, build("ensemble++ coordinate", environment, 80)

    whole = simulate(*start(), 80, engine=engine)
    path = tmp_path / "run.checkpoint"
    with pytest.raises(Killed):
        simulate(*start(), 80, killer(3 * 50), EveryFourth(path, "key"), engine=engine)
    if key is None:
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    reported = []
    assert_equal(simulate(*start(), 80, reported.append, EveryFourth(path, key or "key"), engine=engine), whole)
    assert reported[0] < 3 * 20


@pytest.mark.parametrize("engine", ENGINES)
def test_a_run_that_was_saved_is_a_run_of_its_own(engine, tmp_path):
    """Played on, neither changes the other: no memory is shared, and tensors that were parts of others are so again."""

    def fresh() -> Run:
        environment = pool("quadratic", SEEDS)
        return ENGINES[engine](build("ensemble++ gaussian", environment, 150), environment, 150, np.arange(1, 151))

    run, checkpoint = fresh(), Checkpoint(tmp_path / "run.checkpoint", "key", every=0)
    assert checkpoint.resume(fresh()) is None
    while run.agent.round < 90:
        run.advance()
    checkpoint.offer(run)
    copies = [checkpoint.resume(fresh()) for _ in range(2)]
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
