"""Stacked products, ReLU layers and softplus: values and derivatives of torch's own, and a chain's bits are its own."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from ensemblepp.agents.neural.products import layer, layer_gradient, product, softplus

torch.set_num_threads(1)

#: (rows, terms, columns); without AVX-512 torch.bmm sums several of them by number or place.
SHAPES = [(1, 1, 1), (1, 9, 50), (2, 9, 33), (7, 70, 1), (8, 9, 7), (17, 33, 31), (13, 50, 3), (64, 64, 8), (3, 15, 200)]


def normal(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(sum(shape)).standard_normal(shape)).to(dtype)


def slopes(function, *values: torch.Tensor) -> list[torch.Tensor]:
    """The value of a function and what its sum, weighted by cosines of whole numbers, has for derivatives."""
    leaves = [value.detach().clone().requires_grad_() for value in values]
    found = function(*leaves)
    # the same weights for every chain
    weights = torch.arange(found[0].numel()).cos().view(found.shape[1:]).to(found.dtype)
    return [found.detach(), *torch.autograd.grad((found * weights).sum(), leaves)]


@pytest.mark.parametrize("turns", list(itertools.product([False, True], repeat=2)), ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_products_and_their_derivatives_are_torch_s(dtype, turns):
    for rows, terms, columns in SHAPES:
        left, right = normal(3, rows, terms, dtype=dtype), normal(3, terms, columns, dtype=dtype)
        left, right = (value.mT.contiguous() if turn else value for value, turn in zip((left, right), turns, strict=True))
        own = slopes(lambda a, b: product(a, b, turn_left=turns[0], turn_right=turns[1]), left, right)
        expected = slopes(lambda a, b: (a.mT if turns[0] else a) @ (b.mT if turns[1] else b), left, right)
        room = 1e-4 if dtype == torch.float32 else 1e-12
        for found, value in zip(own, expected, strict=True):
            torch.testing.assert_close(found, value, rtol=room, atol=room)


def test_layers_and_their_derivatives_are_torch_s():
    for rows, terms, columns in SHAPES:
        values = normal(3, rows, terms), normal(3, terms, columns), normal(3, 1, columns)
        expected = slopes(lambda inputs, weight, bias: torch.relu(inputs @ weight + bias), *values)
        for found, value in zip(slopes(layer, *values), expected, strict=True):
            torch.testing.assert_close(found, value, rtol=1e-4, atol=1e-4)
        by_weight, by_bias = torch.empty_like(values[1]), torch.empty_like(values[2])
        weights = torch.arange(rows * columns).cos().view(1, rows, columns).expand(3, -1, -1)
        by_inputs = layer_gradient(values[0], values[1], expected[0], weights, by_weight, by_bias)
        for found, value in zip((by_inputs, by_weight, by_bias), expected[1:], strict=True):
            torch.testing.assert_close(found, value, rtol=1e-4, atol=1e-4)


def test_a_layer_passes_on_what_is_no_number():
    """So that a loss says so."""
    outputs = layer(torch.tensor([[[torch.nan, 1.0]]]), torch.ones(1, 2, 3), torch.zeros(1, 1, 3))
    assert outputs.isnan().all()


@pytest.mark.parametrize("chains", [2, 5, 20])
def test_a_chain_in_a_stack_is_the_chain_alone_to_the_last_bit(chains):
    """Wherever in a stack, and however odd its place in memory; values and derivatives."""
    for rows, terms, columns in SHAPES:
        inputs, weight, bias = normal(chains, rows, terms), normal(chains, terms, columns), normal(chains, 1, columns)
        turned = weight.mT.contiguous()
        for function, values in (
            (product, (inputs, weight)),
            (lambda a, b: product(a, b, turn_right=True), (inputs, turned)),
            (lambda a, b: product(a, b, turn_left=True), (inputs.mT.contiguous(), weight)),
            (lambda a, b: product(a, b, turn_left=True, turn_right=True), (inputs.mT.contiguous(), turned)),
            (layer, (inputs, weight, bias)),
            (softplus, (inputs,)),
        ):
            together = slopes(function, *values)
            for chain in range(chains):
                alone = slopes(function, *(value[[chain]] for value in values))
                for whole, own in zip(together, alone, strict=True):
                    assert torch.equal(whole[[chain]], own)


def test_softplus_is_the_logarithm_of_one_plus_exp():
    """With the sigmoid for its derivative, 1/2 at zero; nothing overflows."""
    values = torch.tensor([[-200.0, -30.0, -1.0, 0.0, 0.5, 30.0, 200.0]]).requires_grad_()
    found = softplus(values)
    torch.testing.assert_close(found.double(), torch.nn.functional.softplus(values.double()), rtol=1e-6, atol=1e-38)
    (slope,) = torch.autograd.grad(found.sum(), values)
    torch.testing.assert_close(slope.double(), torch.sigmoid(values.detach().double()), rtol=1e-6, atol=1e-38)
