"""The compiled rounds against the PyTorch ones: gradients of a single step, then whole runs of every agent that has both."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from neural_games import AGENTS, build, play, pool

from ensemblepp.agents import neural_kernel, neural_rounds
from ensemblepp.agents.neural.base import NeuralAgent
from ensemblepp.engines.choice import simulate
from ensemblepp.engines.neural.compiled import CompiledRun
from ensemblepp.engines.neural.stacked import StackedRun
from ensemblepp.trajectory import Trajectory

torch.set_num_threads(1)

SEEDS = (0, 1, 4)
HIDDEN = [[], [7], [16, 16], [9, 8, 7]]
LOSSES = {"squared": "quadratic", "cross_entropy": "neural"}


@pytest.fixture
def engine(monkeypatch):
    """A function that makes `play` take an engine."""
    return lambda kind: monkeypatch.setattr(neural_rounds, "_engine", lambda agent: kind)


# ------------------------------------------------------------------------------------------------- one gradient step


def step_of_both(name: str, kind: str, rounds: int = 20, **changes) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Gradients, weight decay included, of the only step after `rounds` rounds: by the kernel, and by autograd.

    The kernel's is read off Adam's first moment, which is 0.1 times the gradient after one step.
    """
    gradients = []
    for engine in (CompiledRun, StackedRun):
        environment = pool(kind, SEEDS)
        agent = build(name, environment, rounds, warm_up=rounds - 1, **changes)
        run = play(engine, agent, environment, rounds)
        if engine is CompiledRun:
            found = {}
            for parameter, (_, shape) in agent.layout.items():
                first = run._at[parameter]
                found[parameter] = run._first[:, first : first + int(np.prod(shape[1:]))].reshape(shape) / np.float32(0.1)
            gradients.append(found)
        else:
            gradients.append({parameter: value.grad.numpy() for parameter, value in agent.parameters.items()})
        assert (run._steps == 1).all() if engine is CompiledRun else agent.last_loss.isfinite().all()
    return tuple(gradients)


@pytest.mark.parametrize("hidden", HIDDEN, ids=str)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", AGENTS)
def test_gradients_are_autograd_s(name, loss, hidden):
    """Every parameter of every chain, relative error below 1e-5 (row N5 of the targets: 1.6e-7 was seen)."""
    compiled, autograd = step_of_both(name, LOSSES[loss], loss=loss, hidden=hidden)
    assert compiled.keys() == autograd.keys()
    for parameter, expected in autograd.items():
        found = compiled[parameter]
        assert found.shape == expected.shape
        # biases start at 0, all else has a gradient
        size = np.linalg.norm(expected.reshape(len(expected), -1), axis=1)
        assert (size > 0).all(), parameter
        error = np.linalg.norm((found - expected).reshape(len(expected), -1), axis=1)
        assert (error < 1e-5 * size).all(), parameter


@pytest.mark.parametrize("name", ["ensemble++ coordinate", "ensemble+"])
def test_gradients_on_a_table_of_contexts_are_autograd_s(name):
    """One table for all seeds, sparse features, a buffer that is already full: stored = 12 of 20."""
    compiled, autograd = step_of_both(name, "contextual", buffer_capacity=12)
    for parameter, expected in autograd.items():
        assert np.linalg.norm(compiled[parameter] - expected) < 1e-5 * np.linalg.norm(expected), parameter


def test_weight_decay_is_lambda_over_the_samples_in_the_buffer():
    """What the gradient of Greedy's head has more with lambda = 24 than with 0 is 24 / 12 times the head."""
    plain, _ = step_of_both("greedy", "quadratic", weight_decay=0.0, buffer_capacity=12)
    decayed, _ = step_of_both("greedy", "quadratic", weight_decay=24.0, buffer_capacity=12)
    start = build("greedy", pool("quadratic", SEEDS), 20).parameters
    for parameter, value in start.items():
        np.testing.assert_allclose(decayed[parameter] - plain[parameter], 2 * value.detach(), rtol=1e-4, atol=1e-5)


def test_logistic_functions_do_not_overflow():
    """Against float64, logits up to +-1000: relative error below 1e-6, and exact limits."""
    values = np.array([-1000, -100, -20, -1, 0, 1, 20, 100, 1000], dtype=np.float32)
    with np.errstate(over="ignore", under="ignore"):
        sigmoid = [neural_kernel._sigmoid(value) for value in values]
        softplus = [neural_kernel._softplus(value) for value in values]
        exact = values.astype(float)
        np.testing.assert_allclose(sigmoid, 1 / (1 + np.exp(-exact)), rtol=1e-6, atol=1e-38)
        np.testing.assert_allclose(softplus, np.logaddexp(0, exact), rtol=1e-6, atol=1e-38)


# ------------------------------------------------------------------------------------------------------- whole runs


def both(engine, name: str, kind: str, horizon: int, **changes):
    """(trajectory, agent) of the compiled and of the PyTorch rounds."""
    played = []
    for run in (CompiledRun, StackedRun):
        engine(run)
        environment = pool(kind, SEEDS)
        agent = build(name, environment, horizon, **changes)
        played.append((simulate(environment, agent, horizon), agent))
    return played


def assert_same_run(compiled: tuple[Trajectory, NeuralAgent], reference: tuple[Trajectory, NeuralAgent]) -> None:
    """Same choices in all rounds; parameters within 1e-4; what the agents say of themselves to rounding.

    The two sum in different orders. That alone can turn a ReLU that is at its kink, or a near-tie of two scores: a seed in
    a hundred parts from its twin so. Here at most one of a run's three seeds may; a fault would part them all, and one that
    parts a single seed is found by the tests of seeds alone.
    """
    (found, agent), (expected, twin) = compiled, reference
    assert np.array_equal(found.time, expected.time)
    assert (agent.round, agent.clock.item()) == (twin.round, twin.clock.item())
    assert found.diagnostics.keys() == expected.diagnostics.keys() == {"loss", "spread", "explored"}
    same = (found.action == expected.action).all(axis=-1) & (found.optimal == expected.optimal).all(axis=-1)
    told = found.diagnostics, expected.diagnostics
    for left, right, rtol, atol in (
        (found.regret, expected.regret, 1e-6, 1e-6),
        (found.reward, expected.reward, 1e-6, 1e-6),
        *((*(part[name] for part in told), rtol, 1e-5) for name, rtol in (("loss", 1e-3), ("spread", 1e-3), ("explored", 0))),
    ):
        same &= np.isclose(left, right, rtol, atol, equal_nan=True).all(axis=-1)
    for name, parameter in agent.parameters.items():
        away = (parameter - twin.parameters[name]).detach().abs().flatten(1).amax(dim=1)
        same &= (away < 1e-4).numpy().reshape(same.shape)
    assert same.all(axis=1).sum() >= len(SEEDS) - 1


#: (agent, hidden, gradient steps, update every): each agent in two settings, each setting under several agents.
RUNS = [
    ("greedy", [], 3, 1),
    ("greedy", [9, 8, 7], 1, 1),
    ("epsilon-greedy", [7], 1, 3),
    ("epsilon-greedy", [16, 16], 3, 1),
    ("ensemble++ coordinate", [16, 16], 3, 1),
    ("ensemble++ coordinate", [], 1, 2),
    ("ensemble++ cube", [9, 8, 7], 1, 1),
    ("ensemble++ cube", [7], 3, 4),
    ("ensemble++ sparse", [], 3, 1),
    ("ensemble++ sparse", [16, 16], 1, 1),
    ("ensemble++ gaussian", [7], 3, 2),
    ("ensemble++ gaussian", [9, 8, 7], 1, 1),
    ("ensemble++ sphere", [16, 16], 1, 1),
    ("ensemble++ sphere", [], 3, 3),
    ("ensemble++ chains", [7], 3, 1),
    ("ensemble++ chains", [16, 16], 1, 2),
    ("ensemble+", [16, 16], 3, 1),
    ("ensemble+", [], 1, 1),
    ("ensemble+ released", [7], 1, 2),
    ("ensemble+ released", [9, 8, 7], 3, 1),
    ("bootstrap", [16, 16], 1, 3),
    ("bootstrap", [7], 3, 1),
    ("bootstrap any", [], 1, 1),
    ("bootstrap any", [9, 8, 7], 3, 1),
]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("name", "hidden", "gradient_steps", "update_every"), RUNS, ids=str)
def test_runs_are_those_of_pytorch(engine, name, hidden, gradient_steps, update_every, loss):
    """200 rounds, the buffer of 50 overflows: FIFO, minibatches, random numbers, Adam and the schedule are the same."""
    changes = {"hidden": hidden, "gradient_steps": gradient_steps, "update_every": update_every, "loss": loss}
    compiled, reference = both(engine, name, LOSSES[loss], 200, **changes)
    assert_same_run(compiled, reference)
    assert len(np.unique(compiled[0].action)) == 7
    start = build(name, pool(LOSSES[loss], SEEDS), 200, **changes)
    assert (compiled[1].flat - start.flat).abs().max() > 0.02


@pytest.mark.parametrize("name", ["epsilon-greedy", "ensemble++ coordinate", "ensemble++ chains", "ensemble+", "bootstrap"])
def test_runs_on_a_table_of_contexts_are_those_of_pytorch(engine, name):
    """The same on 3 fixed actions and one table for all seeds; the data's 270 rounds are used up."""
    compiled, reference = both(engine, name, "contextual", 270, gradient_steps=3)
    assert_same_run(compiled, reference)
    assert np.array_equal(compiled[0].constant_regret, reference[0].constant_regret)


# ------------------------------------------------------------------------------------------------------ to the bit


@pytest.mark.parametrize("hidden", [[16, 16], [9, 8, 7]], ids=str)
@pytest.mark.parametrize("name", AGENTS)
def test_seeds_together_are_seeds_alone_to_the_bit(name, hidden):
    """Every chain has a loop of its own: choices, sums, diagnostics and parameters of 3 seeds are those of each alone."""
    changes = {"hidden": hidden, "gradient_steps": 2}
    environment = pool("quadratic", SEEDS)
    agent = build(name, environment, 150, **changes)
    together = simulate(environment, agent, 150)
    for row, seed in enumerate(SEEDS):
        own = pool("quadratic", (seed,))
        single = build(name, own, 150, **changes)
        alone = simulate(own, single, 150)
        for name_ in ("regret", "reward", "optimal", "action"):
            assert np.array_equal(getattr(together, name_)[row], getattr(alone, name_)[0])
        for name_, values in alone.diagnostics.items():
            assert np.array_equal(together.diagnostics[name_][row], values[0], equal_nan=True)
        for name_, parameter in single.parameters.items():
            chains = slice(row * len(agent.chains), (row + 1) * len(agent.chains))
            assert torch.equal(agent.parameters[name_][chains], parameter)


def test_chains_together_are_chains_alone_to_the_bit():
    """Four pairs of laws in one agent, against the agent of each pair."""
    environment = pool("neural", SEEDS)
    agent = build("ensemble++ chains", environment, 150, loss="cross_entropy")
    together = simulate(environment, agent, 150)
    for chain, (reference, perturbation) in enumerate(agent.chains):
        own = pool("neural", SEEDS)
        laws = {"references": [reference], "perturbations": [perturbation]}
        alone = simulate(own, build("ensemble++ chains", own, 150, loss="cross_entropy", **laws), 150)
        for name in ("regret", "reward", "optimal", "action"):
            assert np.array_equal(getattr(together, name)[:, [chain]], getattr(alone, name))
        assert np.array_equal(together.diagnostics["loss"][:, [chain]], alone.diagnostics["loss"], equal_nan=True)
