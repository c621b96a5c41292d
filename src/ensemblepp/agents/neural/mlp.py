"""Networks whose parameters are stacked: every tensor has the chain (a seed with one setting) as its leading dimension.

Draws come from one numpy generator per seed; chains of one seed start alike.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import torch

from ensemblepp.agents.neural.products import layer, product


def init_layers(
    generators: Sequence[np.random.Generator], widths: Sequence[int], law: str = "uniform"
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Weights and biases of a multilayer perceptron, per seed.

    Args:
        generators: one per seed.
        widths: entries of the input, of every hidden layer and of the output.
        law: "uniform" is torch's default for linear layers, U(-1, 1) / sqrt(fan_in) for both; "xavier" has normal weights of
            variance 2 / (fan_in + fan_out) and biases of zero.

    Returns:
        (weight, bias) per layer, float64, of shapes (seeds, fan_in, width) and (seeds, 1, width).
    """
    layers = []
    for fan_in, width in itertools.pairwise(widths):
        shapes = [(fan_in, width), (1, width)]
        if law == "uniform":
            weight, bias = (np.stack([source.uniform(-1, 1, shape) for source in generators]) for shape in shapes)
            layers.append((weight / np.sqrt(fan_in), bias / np.sqrt(fan_in)))
        else:
            weight = np.stack([source.standard_normal(shapes[0]) for source in generators])
            layers.append((np.sqrt(2 / (fan_in + width)) * weight, np.zeros((len(generators), 1, width))))
    return layers


def layers_forward(layers: Sequence[tuple[torch.Tensor, torch.Tensor]], inputs: torch.Tensor) -> torch.Tensor:
    """ReLU layers: (chains, rows, fan_in) to (chains, rows, width)."""
    for weight, bias in layers:
        inputs = layer(inputs, weight, bias)
    return inputs


def init_head(generators: Sequence[np.random.Generator], width: int, classes: int = 1) -> np.ndarray:
    """A linear head without bias, (seeds, width, classes), entries U(-1, 1) / sqrt(width): torch's default."""
    draws = np.stack([source.uniform(-1, 1, (width, classes)) for source in generators])
    return draws / np.sqrt(width)


def init_ensemble_heads(
    generators: Sequence[np.random.Generator], width: int, ensemble_size: int, classes: int = 1
) -> np.ndarray:
    """Ensemble directions as columns, (seeds, width, M * classes), Xavier normal: std sqrt(2 / (width classes + M)).

    Column m * classes + c is member m's head of class c.
    """
    # drawn member by member, so that a smaller ensemble's members are the first of a larger one's, but for the scale
    draws = np.stack([_members(source, width, ensemble_size, classes) for source in generators])
    return np.sqrt(2 / (width * classes + ensemble_size)) * draws


def init_member_heads(
    generators: Sequence[np.random.Generator], width: int, ensemble_size: int, classes: int = 1
) -> np.ndarray:
    """Heads of separate members as columns, (seeds, width, M * classes), each Xavier normal."""
    draws = np.stack([_members(source, width, ensemble_size, classes) for source in generators])
    return np.sqrt(2 / (width + classes)) * draws


def init_prior_heads(generators: Sequence[np.random.Generator], width: int, ensemble_size: int, classes: int = 1) -> np.ndarray:
    """Fixed prior directions as columns, (seeds, width, M * classes); for every (feature, class) of unit norm in R^M."""
    draws = np.stack([_members(source, width, ensemble_size, classes) for source in generators])
    rows = draws.reshape(len(generators), width, ensemble_size, classes)
    return (rows / np.linalg.norm(rows, axis=2, keepdims=True)).reshape(draws.shape)


def linear_head(weights: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
    """Inner products with one vector per chain: weights (chains, width, 1), inputs (chains, rows, width) to (chains, rows)."""
    if inputs.device.type == "cpu":
        return product(inputs, weights)[..., 0]
    # not a batched product: for a single column it rounds a stack of one chain differently from a taller one
    return (inputs * weights.mT).sum(dim=-1)


def head_outputs(weights: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
    """A head without bias of several classes: (chains, width, classes), (chains, rows, width) to (chains, rows, classes)."""
    if inputs.device.type == "cpu":
        return product(inputs, weights)
    return torch.stack([linear_head(weights[..., [c]], inputs) for c in range(weights.shape[-1])], dim=-1)


def _members(source: np.random.Generator, width: int, ensemble_size: int, classes: int) -> np.ndarray:
    return source.standard_normal((ensemble_size, width, classes)).transpose(1, 0, 2).reshape(width, ensemble_size * classes)
