"""Neural agents on a GPU: the same numbers twice, near those of the CPU, and the same by CUDA graphs as round by round.

Skipped where torch sees no GPU.
"""

from __future__ import annotations

import os
from functools import partial

# before the first matrix product on a GPU: torch refuses deterministic ones without it (the command line sets it as well)
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import numpy as np
import pytest
import torch
from killed import Killed, assert_equal, killer

from ensemblepp.agents.neural.base import NeuralAgent
from ensemblepp.agents.neural.dropout import Dropout
from ensemblepp.agents.neural.ensembleplus import EnsemblePlus
from ensemblepp.agents.neural.ensemblepp import NeuralEnsemblePlusPlus
from ensemblepp.agents.neural.epinet import EpiNet
from ensemblepp.agents.neural.greedy import Greedy
from ensemblepp.agents.neural.lmcts import LMCTS
from ensemblepp.agents.neural.neural_linear import NeuralLinear
from ensemblepp.agents.neural.neural_ts import NeuralTS
from ensemblepp.agents.neural.neural_ucb import NeuralUCB
from ensemblepp.engines.choice import simulate
from ensemblepp.engines.neural import run, stacked
from ensemblepp.environments.candidates import Quadratic
from ensemblepp.environments.contextual import Contextual
from ensemblepp.environments.scaling import unit_rows
from ensemblepp.storage.checkpoints import Checkpoint
from ensemblepp.trajectory import Trajectory

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU on this machine")

TRAINING = {
    "hidden": [64, 64],
    "learning_rate": 1e-3,
    "batch_size": 128,
    "weight_decay": 0.01,
    "buffer_capacity": 100,
    "gradient_steps": 4,
    "warm_up": 16,
}
SCALES = {"ensemble_size": 8, "prior_scale": 1.0, "posterior_scale": 0.1, "perturbation_scale": 0.01}
LAWS = {"references": ["sphere"], "perturbations": ["sphere"], "update": "coordinate"}

AGENTS: dict[str, tuple[type[NeuralAgent], dict]] = {
    "greedy": (Greedy, {}),
    "ensemble++": (NeuralEnsemblePlusPlus, SCALES | LAWS),
    "ensemble+": (EnsemblePlus, SCALES | {"equal_noise": True}),
    "epinet": (EpiNet, SCALES | {"index_samples": 4, "double_softmax": False}),
    "dropout": (Dropout, {"rate": 0.2}),
    "neural-linear": (NeuralLinear, {"prior_variance": 1.0, "noise": 0.1, "refresh": 20}),
    "neural-ucb": (NeuralUCB, {"ridge": 1.0, "exploration": 1.0}),
    "neural-ts": (NeuralTS, {"ridge": 1.0, "exploration": 0.1}),
    "lmcts": (LMCTS, {"temperature": 1e-4, "decay_every": 20}),
}


def agent(name: str, device: str, horizon: int, dimension: int, **changes) -> NeuralAgent:
    kind, options = AGENTS[name]
    return kind(range(4), dimension=dimension, horizon=horizon, device=device, **TRAINING | options | changes)


def candidates() -> Quadratic:
    """Four seeds on 60 candidates, of which 10 are offered."""
    options = {"dimension": 20, "candidates": 60, "offered": 10, "features": "sphere"}
    return Quadratic(range(4), scale=0.01, noise=0.1, **options)


def contexts(name: str, device: str, horizon: int) -> Trajectory:
    """Four seeds on random contexts of three classes."""
    source = np.random.default_rng(0)
    rows = unit_rows(source.standard_normal((400, 20)))
    means = np.eye(3)[(rows[:, :3]).argmax(axis=1)]
    environment = Contextual(range(4), rows, means, noise=0.1, passes=1)
    return simulate(environment, agent(name, device, horizon, environment.dimension), horizon)


@pytest.mark.parametrize("name", AGENTS)
def test_the_same_numbers_twice(name):
    first, second = (contexts(name, "cuda", 200) for _ in range(2))
    np.testing.assert_array_equal(first.regret, second.regret)


@pytest.mark.parametrize("name", AGENTS)
def test_near_the_cpu(name):
    """The first rounds agree exactly; later a rounding difference may turn a near-tie."""
    cpu, cuda = contexts(name, "cpu", 200), contexts(name, "cuda", 200)
    np.testing.assert_array_equal(cpu.action[..., :24], cuda.action[..., :24])
    assert np.abs(cpu.regret[..., -1] - cuda.regret[..., -1]).max() <= 30


@pytest.mark.parametrize("name", AGENTS)
def test_graphs_replay_what_act_and_update_do(name):
    """150 rounds: before the warm-up, over the captures, and over chunks of random numbers."""
    runs = [
        simulate(candidates(), agent(name, "cuda", 150, 20), 150, engine=engine)
        for engine in ("neural_stacked", "step_by_step")
    ]
    np.testing.assert_array_equal(runs[0].action[..., :60], runs[1].action[..., :60])
    assert (runs[0].action == runs[1].action).mean() > 0.9


@pytest.mark.parametrize("name", ["greedy", "ensemble++", "ensemble+"])
def test_replayed_rounds_are_run_rounds(name, monkeypatch):
    """Training in every second round makes two graphs, captured once each; without graphs the same operations, to the bit."""
    runs = []

    class Kept(stacked.StackedRun):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            runs.append(self)

    monkeypatch.setattr(stacked, "play", partial(run.play, Kept))
    replayed = simulate(candidates(), agent(name, "cuda", 150, 20, update_every=2), 150, engine="neural_stacked")
    monkeypatch.setattr(NeuralAgent, "captures", False)
    plain = simulate(candidates(), agent(name, "cuda", 150, 20, update_every=2), 150, engine="neural_stacked")
    assert [set(kept._graphs) for kept in runs] == [{False, True}, set()]
    assert_equal(replayed, plain)
    assert len(np.unique(replayed.diagnostics["loss"][0, 0])) > 20


@pytest.mark.parametrize("name", ["ensemble++", "ensemble+", "lmcts"])
def test_a_killed_run_goes_on_to_the_same_bits(name, tmp_path):
    """Killed after 100 rounds, with graphs captured; the resumed run finds at least 64 done, and captures its own."""

    checkpoint = Checkpoint(tmp_path / "run.checkpoint", "key", every=0)
    whole = simulate(candidates(), agent(name, "cuda", 150, 20), 150)
    with pytest.raises(Killed):
        simulate(candidates(), agent(name, "cuda", 150, 20), 150, killer(4 * 100), checkpoint)
    reported = []
    resumed = simulate(candidates(), agent(name, "cuda", 150, 20), 150, reported.append, checkpoint)
    assert 4 * 64 <= reported[0] < 4 * 150
    assert_equal(whole, resumed)
