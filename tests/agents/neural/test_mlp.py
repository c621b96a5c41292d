"""The stacked trunk and heads: their start, and their forward pass against torch's own layers."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from ensemblepp.agents.neural import mlp
from ensemblepp.randomness.streams import generator

torch.set_num_threads(1)

#: Standard errors that a Monte Carlo mean may be off; 5 are exceeded by chance once in 1.7 million comparisons.
Z = 5.0


def sources(*seeds: int) -> list[np.random.Generator]:
    return [generator(seed, "agent") for seed in seeds]


def tensors(layers: list[tuple[np.ndarray, np.ndarray]]) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Layers as float32 tensors, as agents hold them."""
    return [tuple(torch.tensor(array, dtype=torch.float32) for array in layer) for layer in layers]


def assert_uniform(values: np.ndarray, bound: float) -> None:
    """U(-bound, bound): range, mean 0, variance bound^2 / 3, and the whole law by Kolmogorov-Smirnov."""
    values = values.ravel()
    assert 0.9 * bound < np.abs(values).max() <= bound * (1 + 1e-6)
    assert abs(values.mean()) < Z * bound / math.sqrt(3 * values.size)
    assert abs(values.var() - bound**2 / 3) < Z * bound**2 * math.sqrt(4 / 45 / values.size)
    assert stats.kstest(values, stats.uniform(-bound, 2 * bound).cdf).pvalue > 1e-3


def assert_normal(values: np.ndarray) -> None:
    """N(0, 1): mean, variance, and the whole law by Kolmogorov-Smirnov."""
    values = values.ravel()
    assert abs(values.mean()) < Z / math.sqrt(values.size)
    assert abs(values.var() - 1) < Z * math.sqrt(2 / values.size)
    assert stats.kstest(values, "norm").pvalue > 1e-3


def test_layers_start_uniform_within_one_over_root_fan_in():
    """Shapes and law of every layer of 100-64-80, 3 seeds: bound 1/10 in the first layer, 1/8 in the second."""
    layers = mlp.init_layers(sources(0, 1, 2), [100, 64, 80])
    parameters = [array for layer in layers for array in layer]
    assert [p.shape for p in parameters] == [(3, 100, 64), (3, 1, 64), (3, 64, 80), (3, 1, 80)]
    for parameter, bound in zip(parameters, [0.1, 0.1, 0.125, 0.125], strict=True):
        assert_uniform(parameter, bound)


def test_layers_start_as_torch_s_linear_layers_do():
    """Two-sample Kolmogorov-Smirnov against torch.nn.Linear(100, 64), weights and biases of 30 layers each."""
    ((weight, bias),) = mlp.init_layers(sources(*range(30)), [100, 64])
    with torch.random.fork_rng():
        torch.manual_seed(0)
        layers = [torch.nn.Linear(100, 64) for _ in range(30)]
    for ours, theirs in ((weight, [layer.weight for layer in layers]), (bias, [layer.bias for layer in layers])):
        theirs = torch.stack(theirs).detach().numpy().ravel()
        assert stats.ks_2samp(ours.ravel(), theirs).pvalue > 1e-3


def test_xavier_layers_are_normal_without_bias():
    """Weights N(0, 2 / (fan_in + width)), 60 seeds of 100-28-10: variances 1/64 and 2/38; biases are exactly 0."""
    layers = mlp.init_layers(sources(*range(60)), [100, 28, 10], "xavier")
    for (weight, bias), shape, variance in zip(layers, [(60, 100, 28), (60, 28, 10)], [1 / 64, 2 / 38], strict=True):
        assert weight.shape == shape
        assert_normal(weight / math.sqrt(variance))
        assert bias.shape == (60, 1, shape[2])
        assert not bias.any()


@pytest.mark.parametrize("hidden", [[7], [16, 16], [5, 9, 3]])
def test_stacked_layers_equal_torch_s_layers(hidden):
    """Every seed's slice of the stack, loaded into a Sequential of Linear and ReLU."""
    layers = tensors(mlp.init_layers(sources(0, 1, 2), [6, *hidden]))
    inputs = torch.tensor(np.random.default_rng(0).standard_normal((3, 11, 6)), dtype=torch.float32)
    outputs = mlp.layers_forward(layers, inputs)
    assert outputs.shape == (3, 11, hidden[-1])
    assert bool((outputs == 0).any())
    for seed in range(3):
        modules = []
        for weight, bias in layers:
            layer = torch.nn.Linear(*weight.shape[1:])
            layer.load_state_dict({"weight": weight[seed].T, "bias": bias[seed, 0]})
            modules += [layer, torch.nn.ReLU()]
        expected = torch.nn.Sequential(*modules)(inputs[seed])
        torch.testing.assert_close(outputs[seed], expected, rtol=1e-6, atol=1e-6)


def test_one_unit_by_hand():
    """x = (3, -1), w = (2, 4), c = 0.5: relu(6 - 4 + 0.5) = 2.5; with c = -5: 0."""
    weight = torch.tensor([[[2.0], [4.0]], [[2.0], [4.0]]])
    bias = torch.tensor([[[0.5]], [[-5.0]]])
    inputs = torch.tensor([[[3.0, -1.0]], [[3.0, -1.0]]])
    assert mlp.layers_forward([(weight, bias)], inputs).tolist() == [[[2.5]], [[0.0]]]


def test_no_layers_are_the_identity():
    """An agent without a trunk has its heads on the features themselves, negative ones among them."""
    assert mlp.init_layers(sources(0), [4]) == []
    inputs = torch.arange(-4.0, 4.0).reshape(1, 2, 4)
    assert torch.equal(mlp.layers_forward([], inputs), inputs)


@pytest.mark.parametrize("classes", [1, 2])
def test_base_head_starts_uniform_without_bias(classes):
    """U(-1/8, 1/8) at width 64, for one output as for two logits."""
    head = mlp.init_head(sources(*range(50)), 64, classes)
    assert head.shape == (50, 64, classes)
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


@pytest.mark.parametrize(("width", "size", "classes"), [(64, 8, 1), (64, 1, 1), (10, 30, 1), (64, 8, 2)])
def test_ensemble_heads_start_xavier_normal(width, size, classes):
    """One matrix of (D C) x M: N(0, 2 / (D C + M)), standard deviation 0.167 at D = 64, M = 8, C = 1."""
    heads = mlp.init_ensemble_heads(sources(*range(60)), width, size, classes)
    assert heads.shape == (60, width, size * classes)
    assert_normal(heads * math.sqrt((width * classes + size) / 2))


@pytest.mark.parametrize(("width", "size", "classes"), [(64, 8, 1), (10, 3, 2)])
def test_heads_of_separate_members_start_xavier_normal_each(width, size, classes):
    """M matrices of D x C: N(0, 2 / (D + C)), whatever M is."""
    heads = mlp.init_member_heads(sources(*range(60)), width, size, classes)
    assert heads.shape == (60, width, size * classes)
    assert_normal(heads * math.sqrt((width + classes) / 2))


@pytest.mark.parametrize(("size", "classes"), [(1, 1), (2, 1), (8, 1), (3, 2)])
def test_prior_rows_are_uniform_on_the_unit_sphere(size, classes):
    """The row of every (feature, class) has norm 1 in R^M, mean 0 and covariance I/M (60 seeds x 64 rows x classes).

    Column m C + c is class c of member m.
    """
    priors = mlp.init_prior_heads(sources(*range(60)), 64, size, classes)
    assert priors.shape == (60, 64, size * classes)
    rows = np.concatenate([priors[..., c::classes].reshape(-1, size) for c in range(classes)])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, rtol=1e-12)
    assert (np.abs(rows.mean(axis=0)) < Z / math.sqrt(size * len(rows))).all()
    products = rows[:, :, None] * rows[:, None, :]
    error = products.std(axis=0) / math.sqrt(len(rows))
    assert (np.abs(products.mean(axis=0) - np.eye(size) / size) < Z * error + 1e-12).all()


@pytest.mark.parametrize("classes", [1, 2])
def test_members_are_nested_in_the_ensemble_size(classes):
    """Member m is the same draw at every M: heads but for their scale, priors but for each row's norm."""
    few, many = (mlp.init_ensemble_heads(sources(3), 10, size, classes) for size in (4, 20))
    scales = [math.sqrt((10 * classes + size) / 2) for size in (4, 20)]
    np.testing.assert_allclose(few * scales[0], many[..., : 4 * classes] * scales[1], rtol=1e-12)
    few, many = (mlp.init_member_heads(sources(3), 10, size, classes) for size in (4, 20))
    np.testing.assert_array_equal(few, many[..., : 4 * classes])
    few, many = (mlp.init_prior_heads(sources(3), 10, size, classes) for size in (4, 20))
    cut = many.reshape(1, 10, 20, classes)[:, :, :4]
    cut = cut / np.linalg.norm(cut, axis=2, keepdims=True)
    np.testing.assert_allclose(few.reshape(cut.shape), cut, rtol=1e-12)


def test_a_seed_s_numbers_do_not_depend_on_the_stack():
    """Seed 7 at the end of three equals seed 7 alone; seeds differ."""

    def everything(*seeds: int) -> list[np.ndarray]:
        generators = sources(*seeds)
        return [
            *(array for layer in mlp.init_layers(generators, [5, 6, 4]) for array in layer),
            mlp.init_layers(generators, [5, 6], "xavier")[0][0],
            mlp.init_head(generators, 4, 2),
            mlp.init_ensemble_heads(generators, 4, 3, 2),
            mlp.init_member_heads(generators, 4, 3, 2),
            mlp.init_prior_heads(generators, 4, 3, 2),
        ]

    for stacked, alone in zip(everything(0, 1, 7), everything(7), strict=True):
        assert np.array_equal(stacked[2], alone[0])
        assert not np.array_equal(stacked[0], stacked[1])
