"""Agents of one trunk with one linear head, which they train as Greedy does, in the terms that the compiled rounds
(`engines.neural.single_head_kernel`) understand: they differ in how they explore.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Gradients:
    """By the size of an action's gradient (`neural_ucb`)."""

    matrix: dict[str, torch.Tensor]  #: the diagonal of U, named and shaped like the parameters
    ridge: float
    exploration: float
    sampled: bool  #: whether the width is the deviation of a sample, and not added itself


@dataclass(frozen=True)
class Regression:
    """By a sample of the weights of a linear regression on the trunk's features (`neural_linear`)."""

    precision: torch.Tensor  #: (chains, width, width) float64
    moment: torch.Tensor  #: (chains, width, 1) float64
    prior_variance: float
    noise: float
    refresh: int


@dataclass(frozen=True)
class SingleHead:
    """How an agent explores: by one of these."""

    gradients: Gradients | None = None
    regression: Regression | None = None
    dropped: float | None = None  #: probability that a hidden unit is dropped, when it acts and when it trains (`dropout`)
