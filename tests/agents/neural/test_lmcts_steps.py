"""The compiled Langevin steps of LMCTS against automatic differentiation in float64."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from ensemblepp.agents.neural import columns
from ensemblepp.agents.neural.lmcts_steps import ROWS, langevin

KEEP, NOISE_RATE = 0.98, 0.05


def by_definition(rate, row, widths, features, count, total, noise):
    """The parameters after all steps, and f(x) at those of the last gradient."""
    for own in noise:
        w = torch.tensor(row, requires_grad=True)
        hidden, begin = torch.tensor(features, dtype=torch.float64), 0
        for fan_in, wide in itertools.pairwise(widths):
            end = begin + fan_in * wide
            hidden = torch.relu(hidden @ w[begin:end].reshape(fan_in, wide) + w[end : end + wide])
            begin = end + wide
        found = hidden @ w[begin:]
        (torch.tensor(count) * found.square() - 2 * torch.tensor(total) * found).sum().backward()
        row = KEEP * row - rate * w.grad.numpy() + NOISE_RATE * own
    return row, found.detach().numpy()


@pytest.mark.parametrize("rows", [1, 40, ROWS, ROWS + 1, 2 * ROWS + 3])
@pytest.mark.parametrize("hidden", [(), (7,), (9, 6)])
@pytest.mark.parametrize("sparse", [False, True])
def test_steps_are_those_of_the_definition(rows, hidden, sparse):
    """Three steps, each from its own gradient; of a sparse row at most 3 of 12 features are not 0."""
    source = np.random.default_rng(rows)
    widths = np.array([12, *hidden])
    size = sum((fan_in + 1) * wide for fan_in, wide in itertools.pairwise(widths)) + widths[-1]
    features = source.standard_normal((rows, 12))
    known = np.empty((rows, 0), dtype=np.int32)
    if sparse:
        for count, x in zip([2, *source.integers(0, 4, rows - 1)], features, strict=True):
            x[source.permutation(12)[count:]] = 0
        # as many columns as a history with longer rows before it would have
        known = np.pad(columns.filled(features[None], 3)[0], ((0, 0), (0, 1)), constant_values=-1)
    count, total = source.integers(1, 5, rows).astype(float), source.standard_normal(rows)
    row, noise = source.standard_normal(size) / 2, source.standard_normal((3, size))
    own = [values.astype(np.float32) for values in (row, features, count, total, noise)]
    rate = 0.02 / rows
    expected, predicted = by_definition(rate, own[0].astype(float), widths, *own[1:])
    predictions = np.full((rows, 1), np.nan, dtype=np.float32)
    items = columns.Items(own[1], known, 1)
    langevin(widths, own[0], items, *own[2:], *map(np.float32, (rate, KEEP, NOISE_RATE)), predictions)
    np.testing.assert_allclose(own[0], expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(predictions[:, 0], predicted, rtol=1e-5, atol=1e-5)
    # what the gradients do is far greater than that
    still, _ = by_definition(0.0, row, widths, *own[1:])
    assert np.abs(expected - still).max() > 0.01
