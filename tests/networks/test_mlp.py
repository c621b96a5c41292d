"""The stacked trunk and heads: their start, and their forward pass against torch's own layers."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from ensemblepp.networks import mlp
from ensemblepp.streams import generator

torch.set_num_threads(1)

CPU = torch.device("cpu")

#: Standard errors that a Monte Carlo mean may be off; 5 are exceeded by chance once in 1.7 million comparisons.
Z = 5.0


def sources(*seeds: int) -> list[np.random.Generator]:
    return [generator(seed, "agent") for seed in seeds]


def assert_uniform(values: torch.Tensor, bound: float) -> None:
    """U(-bound, bound): range, mean 0, variance bound^2 / 3, and the whole law by Kolmogorov-Smirnov."""
    values = values.double().numpy().ravel()
    assert 0.9 * bound < np.abs(values).max() <= bound * (1 + 1e-6)
    assert abs(values.mean()) < Z * bound / math.sqrt(3 * values.size)
    assert abs(values.var() - bound**2 / 3) < Z * bound**2 * math.sqrt(4 / 45 / values.size)
    assert stats.kstest(values, stats.uniform(-bound, 2 * bound).cdf).pvalue > 1e-3


def test_trunk_starts_uniform_within_one_over_root_fan_in():
    """Shapes and law of every layer of a 100-64-80 trunk, 3 seeds: bound 1/10 in the first layer, 1/8 in the second."""
    parameters = mlp.init_trunk(sources(0, 1, 2), 100, [64, 80], CPU)
    assert [tuple(p.shape) for p in parameters] == [(3, 100, 64), (3, 1, 64), (3, 64, 80), (3, 1, 80)]
    assert {p.dtype for p in parameters} == {torch.float32}
    for parameter, bound in zip(parameters, [0.1, 0.1, 0.125, 0.125], strict=True):
        assert_uniform(parameter, bound)


def test_trunk_starts_as_torch_s_linear_layers_do():
    """Two-sample Kolmogorov-Smirnov against torch.nn.Linear(100, 64), weights and biases of 30 layers each."""
    parameters = mlp.init_trunk(sources(*range(30)), 100, [64], CPU)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = [torch.nn.Linear(100, 64) for _ in range(30)]
    for ours, theirs in zip(parameters, [[layer.weight for layer in layers], [layer.bias for layer in layers]], strict=True):
        theirs = torch.stack(theirs).detach().numpy().ravel()
        assert stats.ks_2samp(ours.numpy().ravel(), theirs).pvalue > 1e-3


@pytest.mark.parametrize("hidden", [[7], [16, 16], [5, 9, 3]])
def test_stacked_trunk_equals_torch_s_layers(hidden):
    """Every seed's slice of the stack, loaded into a Sequential of Linear and ReLU."""
    parameters = mlp.init_trunk(sources(0, 1, 2), 6, hidden, CPU)
    inputs = torch.tensor(np.random.default_rng(0).standard_normal((3, 11, 6)), dtype=torch.float32)
    outputs = mlp.trunk(parameters, inputs)
    assert outputs.shape == (3, 11, hidden[-1])
    assert (outputs == 0).any()
    for seed in range(3):
        modules = []
        for fan_in, width, weight, bias in zip([6, *hidden], hidden, parameters[::2], parameters[1::2], strict=False):
            layer = torch.nn.Linear(fan_in, width)
            layer.load_state_dict({"weight": weight[seed].T, "bias": bias[seed, 0]})
            modules += [layer, torch.nn.ReLU()]
        expected = torch.nn.Sequential(*modules)(inputs[seed])
        torch.testing.assert_close(outputs[seed], expected, rtol=1e-6, atol=1e-6)


def test_trunk_of_one_unit_by_hand():
    """x = (3, -1), w = (2, 4), c = 0.5: relu(6 - 4 + 0.5) = 2.5; with c = -5: 0."""
    weight = torch.tensor([[[2.0], [4.0]], [[2.0], [4.0]]])
    bias = torch.tensor([[[0.5]], [[-5.0]]])
    inputs = torch.tensor([[[3.0, -1.0]], [[3.0, -1.0]]])
    assert mlp.trunk([weight, bias], inputs).tolist() == [[[2.5]], [[0.0]]]


def test_trunk_without_layers_is_the_identity():
    assert mlp.init_trunk(sources(0), 4, [], CPU) == []
    inputs = torch.arange(-4.0, 4.0).reshape(1, 2, 4)
    assert torch.equal(mlp.trunk([], inputs), inputs)


def test_base_head_starts_uniform_without_bias():
    head = mlp.init_linear_head(sources(*range(50)), 64, CPU)
    assert head.shape == (50, 64, 1)
    assert_uniform(head, 1 / 8)


def test_linear_head_by_hand():
    """<(1, 2), (3, 4)> = 11 and <(0, -1), (3, 4)> = -4; the second seed has a head of its own."""
    weights = torch.tensor([[[3.0], [4.0]], [[1.0], [0.0]]])
    inputs = torch.tensor([[[1.0, 2.0], [0.0, -1.0]], [[5.0, 7.0], [6.0, 8.0]]])
    assert mlp.linear_head(weights, inputs).tolist() == [[11, -4], [5, 6]]


def test_linear_head_of_one_seed_is_its_slice_of_a_stack():
    """Value and gradients to the last bit, at the size of a minibatch; a batched product with one column fails this."""
    rng = np.random.default_rng(0)
    weights, inputs = (torch.tensor(rng.standard_normal(shape), dtype=torch.float32) for shape in ((5, 64, 1), (5, 128, 64)))

    def value_and_gradients(rows: slice) -> tuple[torch.Tensor, ...]:
        leaves = [weights[rows].clone().requires_grad_(), inputs[rows].clone().requires_grad_()]
        value = mlp.linear_head(*leaves)
        return value, *torch.autograd.grad(value.square().sum(), leaves)

    for alone, stacked in zip(value_and_gradients(slice(3, 4)), value_and_gradients(slice(0, 5)), strict=True):
        assert torch.equal(alone, stacked[3:4])


@pytest.mark.parametrize(("dimension", "size"), [(64, 8), (64, 1), (10, 30)])
def test_ensemble_heads_start_xavier_normal(dimension, size):
    """N(0, 2 / (D + M)): standard deviation 0.167 at D = 64, M = 8."""
    heads = mlp.init_ensemble_heads(sources(*range(60)), dimension, size, CPU)
    assert heads.shape == (60, dimension, size)
    values = heads.double().numpy().ravel() * math.sqrt((dimension + size) / 2)
    assert abs(values.mean()) < Z / math.sqrt(values.size)
    assert abs(values.var() - 1) < Z * math.sqrt(2 / values.size)
    assert stats.kstest(values, "norm").pvalue > 1e-3


@pytest.mark.parametrize("size", [1, 2, 8])
def test_prior_rows_are_uniform_on_the_unit_sphere(size):
    """Every row has norm 1 in R^M, mean 0 and covariance I/M (60 seeds x 64 rows)."""
    rows = mlp.init_prior_heads(sources(*range(60)), 64, size, CPU).double().numpy().reshape(-1, size)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-6)
    assert (np.abs(rows.mean(axis=0)) < Z / math.sqrt(size * len(rows))).all()
    products = rows[:, :, None] * rows[:, None, :]
    error = products.std(axis=0) / math.sqrt(len(rows))
    assert (np.abs(products.mean(axis=0) - np.eye(size) / size) < Z * error + 1e-6).all()


def test_members_are_nested_in_the_ensemble_size():
    """Column m is the same draw at every M: heads but for sqrt(2 / (D + M)), priors but for each row's norm."""
    few, many = (mlp.init_ensemble_heads(sources(3), 10, size, CPU).double() for size in (4, 20))
    torch.testing.assert_close(few * math.sqrt(14 / 2), many[..., :4] * math.sqrt(30 / 2), rtol=1e-6, atol=1e-7)
    few, many = (mlp.init_prior_heads(sources(3), 10, size, CPU).double() for size in (4, 20))
    cut = many[..., :4] / many[..., :4].norm(dim=-1, keepdim=True)
    torch.testing.assert_close(few, cut, rtol=1e-5, atol=1e-6)


def test_a_seed_s_numbers_do_not_depend_on_the_stack():
    """Seed 7 at the end of three equals seed 7 alone; seeds differ."""

    def everything(*seeds: int) -> list[torch.Tensor]:
        generators = sources(*seeds)
        return [
            *mlp.init_trunk(generators, 5, [6, 4], CPU),
            mlp.init_linear_head(generators, 4, CPU),
            mlp.init_ensemble_heads(generators, 4, 3, CPU),
            mlp.init_prior_heads(generators, 4, 3, CPU),
        ]

    for stacked, alone in zip(everything(0, 1, 7), everything(7), strict=True):
        assert torch.equal(stacked[2], alone[0])
        assert not torch.equal(stacked[0], stacked[1])
