"""Ensemble+ (Osband, Aslanides and Cassirer 2018; paper, Appendix "Detailed Comparison with EpiNet and Ensemble+").

    f_m(x) = posterior_scale * (<h(x), theta_m> + c_m) + prior_scale * (<h_0(x), theta_0m> + c_0m)

with one trained trunk h and a frozen one h_0; every member is fitted to all rewards, and one member, drawn anew, acts.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ensemblepp.agents.neural import mlp
from ensemblepp.agents.neural.member_heads import MemberHeads
from ensemblepp.agents.neural.products import product
from ensemblepp.randomness.streams import generator


class EnsemblePlus(MemberHeads):
    """Ensemble+: a frozen prior network with a trunk of its own is added to the members.

    Args:
        seeds: the seeds.
        dimension: entries of an action's features.
        ensemble_size: M.
        prior_scale: factor of the prior network.
        perturbation_scale: factor of the perturbations in the targets.
        equal_noise: whether a member's perturbation has standard deviation `perturbation_scale`, like the function that
            Ensemble++ samples, or N(0, 1/M) times it, as in the released code.
        training: the keyword arguments of `MemberHeads`.
    """

    family = "linear_heads"

    def __init__(
        self,
        seeds: Sequence[int],
        *,
        dimension: int,
        ensemble_size: int,
        prior_scale: float,
        perturbation_scale: float,
        equal_noise: bool,
        loss: str = "squared",
        **training,
    ) -> None:
        classes = 2 if loss == "cross_entropy" else 1
        super().__init__(
            seeds,
            dimension=dimension,
            ensemble_size=ensemble_size,
            loss=loss,
            extra_width=ensemble_size * (1 + classes),
            **training,
        )
        fixed = [generator(seed, "agent/prior") for seed in self.seeds]
        layers = mlp.init_layers(fixed, [self.dimension, *self.hidden])
        self._prior_layers = [(self.fixed(weight), self.fixed(bias)) for weight, bias in layers]
        heads = mlp.init_member_heads(fixed, self.width, ensemble_size, self.classes)
        self._prior_heads = self.fixed(prior_scale * heads)
        self.perturb(perturbation_scale, equal_noise)

    def offsets(self, features: torch.Tensor) -> torch.Tensor:
        return product(mlp.layers_forward(self._prior_layers, features), self._prior_heads)

    def extra(self, chosen: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.now("perturbation"), self.offsets(chosen)[:, 0]], dim=-1)

    def frozen_parameters(self) -> int:
        trunk = sum(weight[0].numel() + bias[0].numel() for weight, bias in self._prior_layers)
        # the heads' biases are there and zero
        return trunk + self._prior_heads[0].numel() + self.ensemble_size * self.classes
