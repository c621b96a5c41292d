"""Neural Ensemble++ (paper, Section "Ensemble++ for Nonlinear Bandits" and Appendix "Ensemble++ Algorithm Details").

    f(x, zeta) = <h, b> + <sg(h), posterior_scale * Theta zeta + prior_scale * Theta_0 zeta>,    h = trunk(x)

Every isotropic, symmetric, finite law of update directions, the paper's coordinate one among them, reduces the
symmetrised squared loss to the same sum (the cross terms cancel, Appendix, "Loss Function Derivation"):

    (y - <h, b>)^2 + sum_m (perturbation_scale * z_m - posterior_scale <sg h, theta_m> - prior_scale <sg h, theta_0m>)^2
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ensemblepp import distributions
from ensemblepp.agents.neural import NeuralAgent
from ensemblepp.networks import mlp
from ensemblepp.streams import StepNoise, generator


class NeuralEnsemblePlusPlus(NeuralAgent):
    """Ensemble++ with a ReLU trunk (or none) and linear heads.

    Args:
        seeds: the seeds.
        dimension: entries of an action's features.
        ensemble_size: M.
        hidden: widths of the trunk's layers; empty for linear heads on the features themselves.
        reference: law of zeta when acting.
        perturbation: law of z, drawn once per sample and stored with it.
        prior_scale: factor of the fixed prior heads.
        posterior_scale: factor of the trained ensemble heads.
        perturbation_scale: factor of z in the target (0.01 in the released code).
        training: the keyword arguments of `NeuralAgent`.
    """

    def __init__(
        self,
        seeds: Sequence[int],
        *,
        dimension: int,
        ensemble_size: int,
        hidden: Sequence[int],
        reference: distributions.Law,
        perturbation: distributions.Law,
        prior_scale: float,
        posterior_scale: float,
        perturbation_scale: float,
        **training,
    ) -> None:
        super().__init__(seeds, dimension=dimension, extra_width=ensemble_size, **training)
        self.chains = ((reference, perturbation),)
        self._reference_law, self._perturbation_law = reference, perturbation
        self._posterior_scale, self._perturbation_scale = posterior_scale, perturbation_scale
        width = hidden[-1] if hidden else dimension
        generators = [generator(seed, "agent") for seed in self.seeds]
        self._trunk = mlp.init_trunk(generators, dimension, hidden, self.device)
        self._base = mlp.init_linear_head(generators, width, self.device)
        self._heads = mlp.init_ensemble_heads(generators, width, ensemble_size, self.device)
        # a stream of their own, so that they too are nested in the ensemble size
        fixed = [generator(seed, "agent/prior") for seed in self.seeds]
        self._prior = prior_scale * mlp.init_prior_heads(fixed, width, ensemble_size, self.device)
        self.parameters = [*self._trunk, self._base, self._heads]
        self._reference = StepNoise(self.seeds, "reference", ensemble_size)
        self._perturbation = StepNoise(self.seeds, "perturbation", ensemble_size)
        self.start()

    def ensemble(self) -> torch.Tensor:
        """Heads and priors as one matrix, posterior_scale Theta + prior_scale Theta_0: (seeds, width, M)."""
        return torch.add(self._prior, self._heads, alpha=self._posterior_scale)

    def score(self, features: torch.Tensor) -> torch.Tensor:
        zeta = self._tensor(distributions.reference(self._reference_law, self._reference.next()))
        direction = self._base + mlp.linear_head(zeta[..., None], self.ensemble())[..., None]
        return mlp.linear_head(direction, mlp.trunk(self._trunk, features))

    def extra(self) -> np.ndarray:
        return self._perturbation_scale * distributions.perturbation(self._perturbation_law, self._perturbation.next())

    def loss(self, features: torch.Tensor, reward: torch.Tensor, extra: torch.Tensor) -> torch.Tensor:
        hidden = mlp.trunk(self._trunk, features)
        base = (mlp.linear_head(self._base, hidden) - reward).square()
        members = (torch.bmm(hidden.detach(), self.ensemble()) - extra).square().sum(dim=-1)
        return (base + members).mean(dim=1)
