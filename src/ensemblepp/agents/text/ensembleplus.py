"""Ensemble+ on a language model that it trains: member heads with biases, and prior heads on the same hidden state.

    f_m(x) = posterior_scale * (<h(x), theta_m> + c_m) + prior_scale * <sg(h(x)), theta_0m>

As in the released code, which cannot run this agent, the priors have no backbone of their own. The members train the backbone,
as they train the trunk of `agents.neural.ensembleplus`: there is no base head whose gradient could.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ensemblepp.agents.neural import mlp
from ensemblepp.agents.neural.member_heads import MemberHeads
from ensemblepp.agents.neural.products import product
from ensemblepp.agents.text.backbone import BackboneAgent
from ensemblepp.randomness.streams import generator


class TextEnsemblePlus(MemberHeads, BackboneAgent):
    """Ensemble+ whose trunk is a language model.

    Args:
        seeds: the seeds.
        dimension: see `BackboneAgent`.
        ensemble_size: M.
        prior_scale: factor of the prior heads.
        perturbation_scale: factor of the perturbations in the targets.
        equal_noise: see `EnsemblePlus`.
        training: the keyword arguments of `MemberHeads` and of `BackboneAgent`.
    """

    family = "neural"

    def __init__(
        self,
        seeds: Sequence[int],
        *,
        dimension: int,
        ensemble_size: int,
        prior_scale: float,
        perturbation_scale: float,
        equal_noise: bool,
        **training,
    ) -> None:
        super().__init__(seeds, dimension=dimension, ensemble_size=ensemble_size, extra_width=ensemble_size, **training)
        fixed = [generator(seed, "agent/prior") for seed in self.seeds]
        self._prior_heads = self.fixed(prior_scale * mlp.init_member_heads(fixed, self.width, ensemble_size))
        self.perturb(perturbation_scale, equal_noise)

    def outputs(self, features: torch.Tensor) -> torch.Tensor:
        hidden = self.trunk(features)
        trained = self._posterior_scale * product(hidden, self.parameters["heads"]).add_(self.parameters["bias"])
        return trained + product(hidden.detach(), self._prior_heads)

    def extra(self, chosen: torch.Tensor) -> torch.Tensor:
        return self.now("perturbation")

    def frozen_parameters(self) -> int:
        # the heads' biases are there and zero
        return self._prior_heads[0].numel() + self.ensemble_size
