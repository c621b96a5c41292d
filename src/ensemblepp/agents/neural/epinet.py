"""EpiNet (Osband et al. 2023), as the paper compares with it (Appendix "Detailed Comparison with EpiNet and Ensemble+").

    f(x, zeta) = <h, b> + c + <zeta, posterior_scale * epinet(x, sg(h), zeta) + prior_scale * prior(x)>,    h = trunk(x)

The epinet is a small network with M outputs per class, the prior is M frozen smaller ones. zeta ~ N(0, I) when acting as in
the loss, which is averaged over fresh indices for every sample and trains trunk and base with the epinet:

    (y + perturbation_scale <zeta, z> - f(x, zeta))^2

With cross-entropy f is a pair of logits, and z is not used. Only their difference then counts, and it alone is computed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import torch

from ensemblepp.agents.neural import mlp
from ensemblepp.agents.neural.base import NeuralAgent, Scores
from ensemblepp.agents.neural.products import product, softplus
from ensemblepp.randomness import distributions
from ensemblepp.randomness.draws import LawRows, Normals
from ensemblepp.randomness.streams import generator

#: Widths of the hidden layers of the epinet and of every prior network.
EPINET_HIDDEN = (15, 15)
PRIOR_HIDDEN = (5, 5)

#: Indices that `EpiNet.spread` is taken over.
PROBES = 32


class EpiNet(NeuralAgent):
    """A base network, an epinet of features, hidden units and index, and frozen prior networks.

    At one seed its trunk and base head start as Greedy's; the base head's bias starts at zero. Weights of epinet and priors
    are Xavier normal, their biases zero (the released code).

    Args:
        seeds: the seeds.
        dimension: entries of an action's features.
        ensemble_size: M, entries of the index zeta and number of prior networks.
        prior_scale: factor of the prior.
        posterior_scale: factor of the epinet.
        perturbation_scale: factor of z in the target (0.01 in the released code).
        index_samples: indices per sample and gradient step.
        double_softmax: with two logits, a mistake of the released code: the network's outputs are probabilities, and the
            cross-entropy takes them for logits. The probability of class 1 acts, not its logit.
        training: the keyword arguments of `NeuralAgent`.
    """

    family = "epinet"

    def __init__(
        self,
        seeds: Sequence[int],
        *,
        dimension: int,
        ensemble_size: int,
        prior_scale: float,
        posterior_scale: float,
        perturbation_scale: float,
        index_samples: int,
        double_softmax: bool,
        **training,
    ) -> None:
        super().__init__(seeds, dimension=dimension, extra_width=ensemble_size, **training)
        self.ensemble_size = ensemble_size
        self.posterior_scale, self.double_softmax = posterior_scale, double_softmax
        generators = [generator(seed, "agent") for seed in self.seeds]
        base = self.trunk_parameters(generators) | {"base": mlp.init_head(generators, self.width, self.classes)}
        widths = [dimension + self.width + ensemble_size, *EPINET_HIDDEN, ensemble_size * self.classes]
        (first, in_bias), (middle, middle_bias), (out, out_bias) = mlp.init_layers(generators, widths, "xavier")
        from_features, from_hidden, from_index = np.split(first, [dimension, dimension + self.width], axis=1)
        self.start(
            base
            | {"bias": np.zeros((len(self.seeds), 1, self.classes))}
            | {"from_features": from_features, "from_hidden": from_hidden, "from_index": from_index, "in_bias": in_bias}
            | {"middle": middle, "middle_bias": middle_bias, "out": out, "out_bias": out_bias}
        )
        self._prior = self._prior_weights(prior_scale)
        probes = Normals(self.seeds, "agent/probes", (ensemble_size, PROBES, 1))(1)[:, 0]
        self._probes = self.fixed(probes)
        self.sources["reference"] = LawRows(self.seeds, "reference", ensemble_size, ["gaussian"], distributions.reference)
        if self.classes == 1:
            self.sources["perturbation"] = LawRows(
                self.seeds, "perturbation", ensemble_size, ["sphere"], distributions.perturbation, perturbation_scale
            )
        indices = (self.gradient_steps, ensemble_size, index_samples, self.batch_size)
        self.sources["indices"] = Normals(self.seeds, "minibatch/indices", indices)
        self.limit_chunk(math.prod(indices))

    def prior(self, features: torch.Tensor) -> torch.Tensor:
        """The scaled outputs of the prior networks, (chains, rows, dimension) to (chains, rows, M classes)."""
        rows = features.shape[1]
        first, middle, last = self._prior
        # a network is a block of rows of `first`, and a matrix of its own after that
        units = torch.relu_(product(first, features, turn_right=True)).view(len(middle), -1, rows)
        outputs = product(last, torch.relu_(product(middle, units)))
        return outputs.view(len(features), -1, rows).mT

    def score(self, features: torch.Tensor) -> Scores:
        hidden = self.trunk(features)
        base = self._base(hidden, self._acting)
        zeta = self.now("reference")[:, :, None, None]
        deviation = self._deviation(features, hidden, zeta, self._acting(self.prior(features)), self._acting)
        return Scores(base + deviation[:, 0], base)

    def spread(self, features: torch.Tensor) -> torch.Tensor:
        hidden, offset = self.trunk(features), self._acting(self.prior(features))
        return self._deviation(features, hidden, self._probes, offset, self._acting).std(dim=1)

    def extra(self, chosen: torch.Tensor) -> torch.Tensor:
        # the prior is frozen and z is fixed, and both meet zeta in an inner product
        offset = self._fitted(self.prior(chosen))[:, 0]
        return offset - self.now("perturbation") if self.classes == 1 else offset

    def loss_of(self, features: torch.Tensor, reward: torch.Tensor, extra: torch.Tensor, step: int) -> torch.Tensor:
        hidden = self.trunk(features)
        deviation = self._deviation(features, hidden, self.now("indices", step), extra, self._fitted)
        outputs, reward = self._base(hidden, self._fitted)[:, None] + deviation, reward[:, None]
        if self.classes == 1:
            return (outputs - reward).square().mean(dim=(1, 2))
        if self.double_softmax:
            # the difference of the two probabilities
            outputs = torch.tanh(outputs / 2)
        return (softplus(outputs) - reward * outputs).mean(dim=(1, 2))

    def frozen_parameters(self) -> int:
        widths = [self.dimension, *PRIOR_HIDDEN, self.classes]
        # the biases are there and zero
        return self.ensemble_size * sum((fan_in + 1) * width for fan_in, width in itertools.pairwise(widths))

    def _prior_weights(self, scale: float) -> tuple[torch.Tensor, ...]:
        """(chains, 5 M, dimension), (chains M, 5, 5) and (chains M, classes, 5); `scale` times the last."""
        fixed = [generator(seed, "agent/prior") for seed in self.seeds]
        widths = [self.dimension, *PRIOR_HIDDEN, self.classes]
        # drawn network by network, so that a smaller ensemble's are the first of a larger one's
        networks = [mlp.init_layers(fixed, widths, "xavier") for _ in range(self.ensemble_size)]
        first, middle, last = (
            self.fixed(np.stack([weight.swapaxes(1, 2) for weight, _ in layer], axis=1))
            for layer in zip(*networks, strict=True)
        )
        return first.flatten(1, 2), middle.flatten(0, 1), scale * last.flatten(0, 1)

    def _fitted(self, values: torch.Tensor) -> torch.Tensor:
        """What the loss needs of (..., M classes), (..., M): the only output, or logit 1 less logit 0."""
        return values if self.classes == 1 else values[..., 1::2] - values[..., ::2]

    def _acting(self, values: torch.Tensor) -> torch.Tensor:
        """What acts of (..., M classes), (..., M): logit 1, or the difference that a probability grows with."""
        return self._fitted(values) if self.double_softmax else values[..., self.classes - 1 :: self.classes]

    def _base(self, hidden: torch.Tensor, read: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
        """<h, b> + c of the output that `read` takes, (chains, rows)."""
        return mlp.linear_head(read(self.parameters["base"]), hidden) + read(self.parameters["bias"])[..., 0]

    def _deviation(
        self,
        features: torch.Tensor,
        hidden: torch.Tensor,
        zeta: torch.Tensor,
        offset: torch.Tensor,
        read: Callable[[torch.Tensor], torch.Tensor],
    ) -> torch.Tensor:
        """<zeta, posterior_scale * epinet + offset> of the output that `read` takes.

        Args:
            features: (chains, rows, dimension).
            hidden: (chains, rows, width).
            zeta: (chains, M, indices, rows), or 1 for rows that share them.
            offset: (chains, rows, M).
            read: (..., M classes) to (..., M).

        Returns:
            (chains, indices, rows)
        """
        own, scale = self.parameters, self.posterior_scale
        # units come before indices and rows, so that sums over units run along long contiguous rows
        by_row = product(features, own["from_features"]).add_(own["in_bias"])
        by_row = by_row.add_(product(hidden.detach(), own["from_hidden"])).mT.contiguous()
        indices = zeta.flatten(2)
        first = product(own["from_index"], indices, turn_left=True).unflatten(2, zeta.shape[2:])
        units = torch.relu(by_row[:, :, None] + first)
        middle = torch.relu_(product(own["middle"], units.flatten(2), turn_left=True).add_(own["middle_bias"].mT))
        # the last layer along zeta before the sum over units: one number per unit, not M per class
        last = product(scale * read(own["out"]), indices).unflatten(2, zeta.shape[2:])
        epinet = (middle.view(units.shape) * last).sum(dim=1)
        return epinet + (zeta * (offset + scale * read(own["out_bias"])).mT[:, :, None]).sum(dim=1)
