"""The compiled kernels against PyTorch: gradients of a single step, and logistic functions."""

from __future__ import annotations

import numba
import numpy as np
import pytest
import torch
from neural_pools import COMPILED, LOSSES, SEEDS, build, compiled, losses, play, pool

from ensemblepp.compilation import arithmetic
from ensemblepp.engines.neural import network
from ensemblepp.engines.neural.stacked import StackedRun

torch.set_num_threads(1)

HIDDEN = [[], [7], [16, 16], [9, 8, 7]]


def step_of_both(name: str, kind: str, rounds: int = 20, **changes) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Gradients, weight decay included, of the only step after `rounds` rounds: by the kernel, and by autograd.

    The kernel's is read off Adam's first moment, which is 0.1 times the gradient after one step.
    """
    gradients = []
    for engine in (compiled(name)[1], StackedRun):
        environment = pool(kind, SEEDS)
        agent = build(name, environment, rounds, warm_up=rounds - 1, **changes)
        run = play(engine, agent, environment, rounds)
        if engine is not StackedRun:
            found = {}
            for parameter, (_, shape) in agent.layout.items():
                first = run._at[parameter]
                found[parameter] = run._first[:, first : first + int(np.prod(shape[1:]))].reshape(shape) / np.float32(0.1)
            gradients.append(found)
        else:
            gradients.append({parameter: value.grad.numpy() for parameter, value in agent.parameters.items()})
        assert (run._steps == 1).all() if engine is not StackedRun else agent.last_loss.isfinite().all()
    return tuple(gradients)


@pytest.mark.parametrize("hidden", HIDDEN, ids=str)
@pytest.mark.parametrize(("name", "loss"), [(name, loss) for name in COMPILED for loss in losses(name)])
def test_gradients_are_autograd_s(name, loss, hidden):
    """Every parameter of every chain, relative error below 1e-5 (row N5 of the targets: 1.6e-7 was seen)."""
    own, autograd = step_of_both(name, LOSSES[loss], loss=loss, hidden=hidden)
    assert own.keys() == autograd.keys()
    for parameter, expected in autograd.items():
        found = own[parameter]
        assert found.shape == expected.shape
        # biases start at 0, all else has a gradient
        size = np.linalg.norm(expected.reshape(len(expected), -1), axis=1)
        assert (size > 0).all(), parameter
        error = np.linalg.norm((found - expected).reshape(len(expected), -1), axis=1)
        assert (error < 1e-5 * size).all(), parameter


@pytest.mark.parametrize("kind", ["contextual", "one-hot"])
@pytest.mark.parametrize("name", ["ensemble++ coordinate", "ensemble+", "epinet", "neural-ucb", "dropout"])
def test_gradients_on_a_table_of_contexts_are_autograd_s(name, kind):
    """One table for all seeds, sparse features, a buffer that is already full: stored = 12 of 20."""
    own, autograd = step_of_both(name, kind, buffer_capacity=12)
    for parameter, expected in autograd.items():
        assert np.linalg.norm(own[parameter] - expected) < 1e-5 * np.linalg.norm(expected), parameter


def test_weight_decay_is_lambda_over_the_samples_in_the_buffer():
    """What the gradient of Greedy's head has more with lambda = 24 than with 0 is 24 / 12 times the head."""
    plain, _ = step_of_both("greedy", "quadratic", weight_decay=0.0, buffer_capacity=12)
    decayed, _ = step_of_both("greedy", "quadratic", weight_decay=24.0, buffer_capacity=12)
    start = build("greedy", pool("quadratic", SEEDS), 20).parameters
    for parameter, value in start.items():
        np.testing.assert_allclose(decayed[parameter] - plain[parameter], 2 * value.detach(), rtol=1e-4, atol=1e-5)


@numba.njit(**arithmetic.OPTIONS)
def logistic(values, sigmoid, softplus):
    """A loop over many at once, which is vector code."""
    for n in range(len(values)):
        sigmoid[n] = network.sigmoid(values[n])
        softplus[n] = network.softplus(values[n])


def test_logistic_functions():
    """Against float64, all logits between +-20 in steps of 1e-4, and up to +-1000: within 4e-7 of themselves, but what is near
    the least normal number may be 0; exact limits.

    What is no number stays none. A number's place in the array does not matter.
    """
    edges = [-1000, -104, -103, -89, -88, -87.5, -87, 87, 87.5, 88, 89, 104, 1000, np.inf, -np.inf]
    values = np.concatenate([np.arange(-20, 20, 1e-4), edges]).astype(np.float32)
    found = np.empty((2, len(values)), dtype=np.float32)
    logistic(values, *found)
    with np.errstate(over="ignore", under="ignore"):
        exact = values.astype(float)
        np.testing.assert_allclose(found[0], 1 / (1 + np.exp(-exact)), rtol=4e-7, atol=2.4e-38)
        np.testing.assert_allclose(found[1], np.logaddexp(0, exact), rtol=4e-7, atol=2.4e-38)
    assert found[:, -3].tolist() == [1, 1000]
    for shift in (1, 2, 3, 5, 7):
        again = np.empty((2, len(values) - shift), dtype=np.float32)
        logistic(values[shift:].copy(), *again)
        assert np.array_equal(again, found[:, shift:])
    none = np.full(20, np.nan, dtype=np.float32)
    logistic(none.copy(), none, values[:20])
    assert np.isnan(none).all()
    assert np.isnan(values[:20]).all()
