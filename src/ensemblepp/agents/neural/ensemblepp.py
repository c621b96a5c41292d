"""Neural Ensemble++ (paper, Section "Ensemble++ for Nonlinear Bandits" and Appendix "Ensemble++ Algorithm Details").

    f(x, zeta) = <h, b> + <sg(h), posterior_scale * Theta zeta + prior_scale * Theta_0 zeta>,    h = trunk(x)

The loss is averaged over update directions zeta and -zeta. With the squared loss the cross terms cancel (Appendix, "Loss
Function Derivation"), and every finite isotropic law of directions, the paper's coordinate one among them, leaves

    (y - <h, b>)^2 + sum_m (perturbation_scale * z_m - posterior_scale <sg h, theta_m> - prior_scale <sg h, theta_0m>)^2

With cross-entropy ("Classification Loss Function") f is a pair of logits, and z is not used.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import torch

from ensemblepp.agents.neural import mlp
from ensemblepp.agents.neural.base import NeuralAgent, Scores
from ensemblepp.agents.neural.linear_heads import LinearHeads
from ensemblepp.agents.neural.products import product, softplus
from ensemblepp.errors import ConfigError
from ensemblepp.randomness import distributions
from ensemblepp.randomness.draws import Directions, LawRows
from ensemblepp.randomness.streams import generator

#: Pairs of directions that continuous update laws draw for a gradient step (the released code's 16).
SAMPLED_DIRECTIONS = 16

#: Longest list of directions that is averaged over.
MAX_DIRECTIONS = 4096


class NeuralEnsemblePlusPlus(NeuralAgent):
    """Ensemble++ with a ReLU trunk (or none) and linear heads; a chain per pair of a reference and a perturbation law.

    Args:
        seeds: the seeds.
        dimension: entries of an action's features.
        ensemble_size: M.
        references: laws of zeta when acting, names or laws of the user's (`distributions.law`).
        perturbations: laws of z, drawn once per sample and stored with it.
        update: law of the directions that the loss averages over.
        prior_scale: factor of the fixed prior heads.
        posterior_scale: factor of the trained ensemble heads.
        perturbation_scale: factor of z in the target (0.01 in the released code).
        training: the keyword arguments of `NeuralAgent`.

    Raises:
        ConfigError: cross-entropy with an update law whose list of directions is too long.
    """

    family = "linear_heads"

    def __init__(
        self,
        seeds: Sequence[int],
        *,
        dimension: int,
        ensemble_size: int,
        references: Sequence[distributions.Entry],
        perturbations: Sequence[distributions.Entry],
        update: distributions.Entry,
        prior_scale: float,
        posterior_scale: float,
        perturbation_scale: float,
        **training,
    ) -> None:
        pairs = [
            (distributions.law(reference, ensemble_size), distributions.law(perturbation, ensemble_size))
            for reference, perturbation in itertools.product(references, perturbations)
        ]
        chains = tuple((reference.name, perturbation.name) for reference, perturbation in pairs)
        super().__init__(seeds, dimension=dimension, chains=chains, extra_width=ensemble_size, **training)
        self.ensemble_size = ensemble_size
        self._posterior_scale = posterior_scale
        generators = [generator(seed, "agent") for seed in self.seeds]
        trunk = self.trunk_parameters(generators)
        base = mlp.init_head(generators, self.width, self.classes)
        heads = mlp.init_ensemble_heads(generators, self.width, ensemble_size, self.classes)
        # a stream of their own, so that they too are nested in the ensemble size
        fixed = [generator(seed, "agent/prior") for seed in self.seeds]
        self.prior = self.fixed(prior_scale * mlp.init_prior_heads(fixed, self.width, ensemble_size, self.classes))
        self.start(trunk | {"base": base, "heads": heads})
        laws = [[law for law, _ in pairs], [law for _, law in pairs]]
        self.sources["reference"] = LawRows(self.seeds, "reference", ensemble_size, laws[0], distributions.reference)
        self.sources["perturbation"] = LawRows(
            self.seeds, "perturbation", ensemble_size, laws[1], distributions.perturbation, perturbation_scale
        )
        self._directions: torch.Tensor | None = None
        updated = distributions.law(update, ensemble_size)
        self._sampled = updated.directions is None
        if self._sampled:
            shape = (self.gradient_steps, SAMPLED_DIRECTIONS, ensemble_size)
            self.sources["directions"] = Directions(self.seeds, updated, shape)
        elif self.classes == 2:
            self._directions = self.tensor(_half(updated, ensemble_size))

    def ensemble(self) -> torch.Tensor:
        """Heads and priors as one matrix, posterior_scale Theta + prior_scale Theta_0: (chains, width, M classes)."""
        return self.prior + self._posterior_scale * self.parameters["heads"]

    def score(self, features: torch.Tensor) -> Scores:
        hidden = self.trunk(features)
        base = self.parameters["base"][..., -1:]
        # of two logits, the second one acts
        members = self.ensemble()[..., self.classes - 1 :: self.classes]
        deviation = mlp.linear_head(self.now("reference")[..., None], members)[..., None]
        return Scores(mlp.linear_head(base + deviation, hidden), mlp.linear_head(base, hidden))

    def spread(self, features: torch.Tensor) -> torch.Tensor:
        members = self.ensemble()[..., self.classes - 1 :: self.classes]
        # zeta has covariance I
        return product(self.trunk(features), members).square().sum(dim=-1).sqrt()

    def expected(self, features: torch.Tensor) -> torch.Tensor:
        return mlp.linear_head(self.parameters["base"][..., -1:], self.trunk(features))

    def extra(self, chosen: torch.Tensor) -> torch.Tensor:
        return self.now("perturbation")

    def loss_of(self, features: torch.Tensor, reward: torch.Tensor, extra: torch.Tensor, step: int) -> torch.Tensor:
        hidden = self.trunk(features)
        outputs = mlp.head_outputs(self.parameters["base"], hidden)
        members = product(hidden.detach(), self.ensemble())
        directions = self.now("directions")[:, step] if self._sampled else self._directions
        if self.classes == 1:
            error = members - extra
            if directions is None:
                perturbed = error.square().sum(dim=-1)
            else:
                perturbed = product(error, directions, turn_right=True).square().mean(dim=-1)
            return (self.fitted(outputs, reward) + perturbed).mean(dim=1)
        gap = outputs[..., 1] - outputs[..., 0]
        swing = product(members[..., 1::2] - members[..., ::2], directions.expand(len(members), -1, -1), turn_right=True)
        pair = (softplus(gap[..., None] + swing) + softplus(gap[..., None] - swing)) / 2
        return (pair.mean(dim=-1) - reward * gap).mean(dim=1)

    def frozen_parameters(self) -> int:
        return self.prior[0].numel()

    def linear_heads(self) -> LinearHeads:
        return LinearHeads(
            based=True,
            members=self.ensemble_size,
            posterior_scale=self._posterior_scale,
            prior=self.prior,
            directions=self._directions,
            sampled_directions=self._sampled,
        )


def _half(law: distributions.Law, size: int) -> np.ndarray:
    """One of each pair zeta, -zeta of a finite law's directions, (K, M)."""
    count = law.count(size)
    if count > MAX_DIRECTIONS:
        raise ConfigError(
            f"update law '{law.name}' has {count:.3g} directions at ensemble size {size}, more than {MAX_DIRECTIONS}: with "
            "loss: cross_entropy choose update: coordinate, or a continuous law, in config/agents.yaml"
        )
    directions = distributions.update_directions(law, size)
    first = directions[np.arange(len(directions)), (directions != 0).argmax(axis=1)]
    return directions[first > 0]
