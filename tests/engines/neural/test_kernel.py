"""The compiled kernel against PyTorch: gradients of a single step, and logistic functions."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from neural_pools import AGENTS, LOSSES, SEEDS, build, play, pool

from ensemblepp.engines.neural import kernel
from ensemblepp.engines.neural.compiled import CompiledRun
from ensemblepp.engines.neural.stacked import StackedRun

torch.set_num_threads(1)

HIDDEN = [[], [7], [16, 16], [9, 8, 7]]


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
        sigmoid = [kernel._sigmoid(value) for value in values]
        softplus = [kernel._softplus(value) for value in values]
        exact = values.astype(float)
        np.testing.assert_allclose(sigmoid, 1 / (1 + np.exp(-exact)), rtol=1e-6, atol=1e-38)
        np.testing.assert_allclose(softplus, np.logaddexp(0, exact), rtol=1e-6, atol=1e-38)
