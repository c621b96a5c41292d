"""Agents made of linear heads on a shared trunk, in the terms that the compiled rounds (`engines.neural.kernel`) understand."""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class LinearHeads:
    """What heads there are, what they are fitted to, and how they choose.

    With a base head ("base", chains x width x classes) the M members ("heads", chains x width x M classes) are fitted to the
    perturbations alone, do not train the trunk, and a combination of them acts. Without one, each member ("heads" and
    "bias") is fitted to the rewards, trains the trunk, and one member acts.
    """

    based: bool
    members: int = 0
    posterior_scale: float = 1.0  #: factor of the heads
    prior: torch.Tensor | None = None  #: (chains, width, M classes), added to the scaled heads of agents with a base head
    directions: torch.Tensor | None = None  #: (K, M) half of the symmetric update directions; None: any isotropic list
    sampled_directions: bool = False  #: whether the source "directions" has others for every gradient step
    weighted: bool = False  #: whether the M extra numbers of a sample are weights, not perturbations
    offsets: bool = False  #: whether `NeuralAgent.offsets` of the features are added to the outputs and kept with a sample
    any_class: bool = False  #: whether the greatest logit of any class decides, not that of class 1
    epsilon: float | None = None  #: probability of a random action, by the source "wander"
