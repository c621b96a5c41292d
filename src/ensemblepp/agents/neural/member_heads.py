"""Members: linear heads on one trunk, each fitted to the rewards; what Ensemble+ and the bootstrapped ensemble share.

f_m(x) = posterior_scale * (<h(x), theta_m> + c_m)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ensemblepp.agents.neural import mlp
from ensemblepp.agents.neural.base import NeuralAgent, Scores
from ensemblepp.agents.neural.linear_heads import LinearHeads
from ensemblepp.agents.neural.products import product
from ensemblepp.randomness import distributions
from ensemblepp.randomness.draws import LawRows, Uniforms
from ensemblepp.randomness.streams import generator


class MemberHeads(NeuralAgent):
    """M linear heads with biases on one trunk, each fitted to the rewards; a uniformly drawn one acts.

    Args:
        seeds: the seeds.
        dimension: entries of an action's features.
        ensemble_size: M.
        posterior_scale: factor of the trained heads.
        any_class: of two logits, let the greatest of all actions and classes decide, as the released code of Ensemble+ does.
        training: the keyword arguments of `NeuralAgent`.
    """

    #: whether the M extra numbers of a sample are weights of the members, not perturbations of their targets
    weighted = False

    def __init__(
        self,
        seeds: Sequence[int],
        *,
        dimension: int,
        ensemble_size: int,
        posterior_scale: float,
        any_class: bool = False,
        extra_width: int,
        **training,
    ) -> None:
        super().__init__(seeds, dimension=dimension, extra_width=extra_width, **training)
        self.ensemble_size = ensemble_size
        self._posterior_scale, self._any_class = posterior_scale, any_class
        generators = [generator(seed, "agent") for seed in self.seeds]
        trunk = self.trunk_parameters(generators)
        heads = mlp.init_member_heads(generators, self.width, ensemble_size, self.classes)
        bias = np.zeros((len(self.seeds), 1, ensemble_size * self.classes))
        self.start(trunk | {"heads": heads, "bias": bias})
        self.sources["reference"] = Members(self.seeds, ensemble_size)

    def offsets(self, features: torch.Tensor) -> torch.Tensor | None:
        """What is added to the members' outputs, (chains, rows, M classes), a fixed function of the features."""
        return None

    def outputs(self, features: torch.Tensor) -> torch.Tensor:
        """Every member's trained outputs, (chains, rows, M classes)."""
        return self._posterior_scale * product(self.trunk(features), self.parameters["heads"]).add_(self.parameters["bias"])

    def perturb(self, scale: float, equal_noise: bool) -> None:
        """Draw a perturbation of every member's targets with each sample, as Ensemble+ does.

        Args:
            scale: its standard deviation.
            equal_noise: false multiplies N(0, 1/M) by `scale` instead, as the released code does.
        """
        law, factor = ("sphere", np.sqrt(self.ensemble_size)) if equal_noise else ("raw_gaussian", 1.0)
        self.sources["perturbation"] = LawRows(
            self.seeds, "perturbation", self.ensemble_size, [law], distributions.perturbation, factor * scale
        )

    def score(self, features: torch.Tensor) -> Scores:
        outputs = self.outputs(features)
        offsets = self.offsets(features)
        outputs = (outputs if offsets is None else outputs + offsets).unflatten(-1, (self.ensemble_size, self.classes))
        outputs = outputs.amax(dim=-1) if self._any_class else outputs[..., -1]
        return Scores((outputs * self.now("reference")[:, None]).sum(dim=-1), outputs.mean(dim=-1))

    def spread(self, features: torch.Tensor) -> torch.Tensor:
        return self._members(features).std(dim=-1, correction=0)

    def expected(self, features: torch.Tensor) -> torch.Tensor:
        return self._members(features).mean(dim=-1)

    def _members(self, features: torch.Tensor) -> torch.Tensor:
        """What every member says of every action, (chains, actions, M)."""
        outputs, offsets = self.outputs(features), self.offsets(features)
        outputs = outputs if offsets is None else outputs + offsets
        return outputs[..., self.classes - 1 :: self.classes]

    def loss_of(self, features: torch.Tensor, reward: torch.Tensor, extra: torch.Tensor, step: int) -> torch.Tensor:
        outputs = self.outputs(features)
        own, offsets = extra[..., : self.ensemble_size], extra[..., self.ensemble_size :]
        if offsets.shape[-1]:
            outputs = outputs + offsets
        outputs = outputs.unflatten(-1, (self.ensemble_size, self.classes))
        if self.weighted:
            losses = own * self.fitted(outputs, reward[..., None])
        elif self.classes == 1:
            losses = self.fitted(outputs, reward[..., None] + own)
        else:
            losses = self.fitted(outputs, reward[..., None])
        return losses.mean(dim=(1, 2))

    def linear_heads(self) -> LinearHeads:
        return LinearHeads(
            based=False,
            members=self.ensemble_size,
            posterior_scale=self._posterior_scale,
            weighted=self.weighted,
            offsets=self.extra_width > self.ensemble_size,
            any_class=self._any_class,
        )


class Members:
    """One-hot vectors of uniformly drawn members: rounds -> (seeds, rounds, M), float32."""

    def __init__(self, seeds: Sequence[int], ensemble_size: int) -> None:
        self._uniforms, self._size = Uniforms(seeds, "reference/member", ()), ensemble_size

    def __call__(self, rounds: int) -> np.ndarray:
        # below 1 as a float32, and so is the product below M: M is small
        return np.eye(self._size, dtype=np.float32)[(self._uniforms(rounds) * self._size).astype(np.intp)]
