"""NeuralUCB (Zhou, Li and Gu 2020) and NeuralTS (Zhang, Zhou, Li and Gu 2021), with the diagonal of their matrix alone, as in
both papers' experiments.

With g(x) the gradient of the prediction f(x) by all parameters and m the width of the network, NeuralTS has (Algorithm 1)

    sigma^2(x) = lambda g(x)^T U^-1 g(x) / m,    U = lambda I + sum over the chosen x of g(x) g(x)^T / m

each g taken when its action was chosen. NeuralUCB's width is that without the first lambda, which is a factor of nu here. The
papers' networks carry a factor sqrt(m) in their output. The released code has neither that nor the 1/m, and nu under the
root: it does the same at lambda m and nu^2 / m, in place of lambda and nu, on a network like the one here.

No gradient is ever formed: that of a layer's weights is the outer product of its inputs a and of the derivatives delta by its
outputs, so that its part of g^T U^-1 g is (a^2)^T U_layer^-1 (delta^2), a matrix product for all actions of a chain.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ensemblepp.agents.neural import mlp
from ensemblepp.agents.neural.base import NeuralAgent, Scores
from ensemblepp.agents.neural.products import layer as layer_of
from ensemblepp.agents.neural.products import product
from ensemblepp.agents.neural.single_head import Gradients, SingleHead
from ensemblepp.randomness.streams import generator


class NeuralUCB(NeuralAgent):
    """The greatest f(x) + nu sigma(x) acts.

    The network is Greedy's, and is trained like Greedy's.

    Args:
        seeds: the seeds.
        dimension: entries of an action's features.
        ridge: lambda.
        exploration: nu.
        training: the keyword arguments of `NeuralAgent`.
    """

    family = "single_head"
    sampled = False

    def __init__(
        self,
        seeds: Sequence[int],
        *,
        dimension: int,
        ridge: float,
        exploration: float,
        ensemble_size: int = 0,
        **training,
    ) -> None:
        super().__init__(seeds, dimension=dimension, **training)
        self._ridge, self._exploration = ridge, exploration
        generators = [generator(seed, "agent") for seed in self.seeds]
        self.start(self.trunk_parameters(generators) | {"base": mlp.init_head(generators, self.width)})
        #: the diagonal of U, shaped like the parameters
        self.matrix = {name: torch.full(shape, ridge, device=self.device) for name, (_, shape) in self.layout.items()}

    def score(self, features: torch.Tensor) -> Scores:
        mean, deviation = self.judge(features)
        return Scores(mean + deviation, mean)

    def loss_of(self, features: torch.Tensor, reward: torch.Tensor, extra: torch.Tensor, step: int) -> torch.Tensor:
        return self.fitted(mlp.linear_head(self.parameters["base"], self.trunk(features))[..., None], reward).mean(dim=1)

    def spread(self, features: torch.Tensor) -> torch.Tensor:
        return self.judge(features)[1]

    def judge(self, features: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """f(x) and nu sigma(x), (chains, actions) each, of features (chains, actions, dimension)."""
        mean, inputs, deltas = self._squares(features)
        variance = mlp.linear_head(self.matrix["base"].reciprocal(), inputs[-1])
        for layer, delta in enumerate(deltas):
            weight, bias = (self.matrix[f"{kind}{layer}"].reciprocal() for kind in "wb")
            variance = variance + (product(inputs[layer], weight).add_(bias) * delta).sum(dim=-1)
        return mean, self._exploration * (self._ridge / self.width * variance).sqrt()

    def observe(self, features: torch.Tensor, reward: torch.Tensor, item: torch.Tensor | None = None) -> None:
        with torch.no_grad():
            _, inputs, deltas = self._squares(features[:, None])
            self.matrix["base"].add_(inputs[-1].mT, alpha=1 / self.width)
            for layer, delta in enumerate(deltas):
                self.matrix[f"w{layer}"].add_(inputs[layer].mT * delta, alpha=1 / self.width)
                self.matrix[f"b{layer}"].add_(delta, alpha=1 / self.width)
        super().observe(features, reward, item)

    def single_head(self) -> SingleHead:
        return SingleHead(gradients=Gradients(self.matrix, self._ridge, self._exploration, self.sampled))

    def _squares(self, features: torch.Tensor) -> tuple[torch.Tensor, list[torch.Tensor], list[torch.Tensor]]:
        """What squared gradients are outer products of, for features (chains, rows, dimension).

        Returns:
            f(x), (chains, rows); the squared inputs of every layer and of the head, (chains, rows, fan_in) each; the squares
            of f's derivatives by the outputs of every layer before its ReLU, (chains, rows, width) each.
        """
        layers, base = len(self.hidden), self.parameters["base"]
        inputs = [features]
        for layer in range(layers):
            weight, bias = self.parameters[f"w{layer}"], self.parameters[f"b{layer}"]
            inputs.append(layer_of(inputs[-1], weight, bias))
        slope = base.mT
        deltas = []
        for layer in reversed(range(layers)):
            if layer < layers - 1:
                slope = product(deltas[0], self.parameters[f"w{layer + 1}"], turn_right=True)
            deltas.insert(0, slope * (inputs[layer + 1] > 0))
        squares = ([value.square() for value in values] for values in (inputs, deltas))
        return mlp.linear_head(base, inputs[-1]), *squares
