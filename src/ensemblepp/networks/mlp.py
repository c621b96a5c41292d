"""A ReLU trunk whose parameters are stacked over seeds: every tensor has the seed as its leading dimension."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch


def init_trunk(
    generators: Sequence[np.random.Generator], dimension: int, hidden: Sequence[int], device: torch.device
) -> list[torch.Tensor]:
    """Weights and biases [W1, b1, W2, b2, ...], torch's default for linear layers: U(-1, 1) / sqrt(fan_in).

    Args:
        generators: one per seed.
        dimension: entries of the input.
        hidden: widths of the layers; empty for the identity.
        device: where the tensors live.

    Returns:
        Leaf tensors of shapes (seeds, fan_in, width) and (seeds, 1, width).
    """
    parameters: list[torch.Tensor] = []
    fan_in = dimension
    for width in hidden:
        for rows in (fan_in, 1):
            draws = np.stack([source.uniform(-1, 1, (rows, width)) for source in generators]) / np.sqrt(fan_in)
            parameters.append(torch.tensor(draws, dtype=torch.float32, device=device))
        fan_in = width
    return parameters


def trunk(parameters: Sequence[torch.Tensor], inputs: torch.Tensor) -> torch.Tensor:
    """Features h(x; w): (seeds, rows, dimension) to (seeds, rows, width of the last layer)."""
    for weight, bias in zip(parameters[::2], parameters[1::2], strict=True):
        inputs = torch.relu(torch.baddbmm(bias, inputs, weight))
    return inputs


def init_linear_head(generators: Sequence[np.random.Generator], dimension: int, device: torch.device) -> torch.Tensor:
    """A scalar head without bias, b of shape (seeds, dimension, 1), entries U(-1, 1) / sqrt(dimension)."""
    draws = np.stack([source.uniform(-1, 1, (dimension, 1)) for source in generators]) / np.sqrt(dimension)
    return torch.tensor(draws, dtype=torch.float32, device=device)


def linear_head(weights: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
    """Inner products with one vector per seed: weights (seeds, width, 1), inputs (seeds, rows, width) to (seeds, rows)."""
    # not torch.bmm: for a single column it rounds a stack of one seed differently from a taller one
    return (inputs * weights.mT).sum(dim=-1)


def init_ensemble_heads(
    generators: Sequence[np.random.Generator], dimension: int, ensemble_size: int, device: torch.device
) -> torch.Tensor:
    """Trainable ensemble directions theta_m as columns, (seeds, dimension, M), Xavier normal: std sqrt(2 / (dimension + M))."""
    # drawn member by member, so that a smaller ensemble's members are the first of a larger one's, but for the scale
    draws = np.stack([source.standard_normal((ensemble_size, dimension)).T for source in generators])
    return torch.tensor(np.sqrt(2 / (dimension + ensemble_size)) * draws, dtype=torch.float32, device=device)


def init_prior_heads(
    generators: Sequence[np.random.Generator], dimension: int, ensemble_size: int, device: torch.device
) -> torch.Tensor:
    """Fixed prior directions theta_0m as columns, (seeds, dimension, M); every row has unit norm in R^M."""
    draws = np.stack([source.standard_normal((ensemble_size, dimension)).T for source in generators])
    draws /= np.linalg.norm(draws, axis=-1, keepdims=True)
    return torch.tensor(draws, dtype=torch.float32, device=device)
