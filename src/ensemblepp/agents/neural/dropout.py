"""MC dropout (Gal and Ghahramani 2016) as an agent (Riquelme, Tucker and Snoek 2018): the network without some of its units
stands for a sample of the posterior.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from ensemblepp.agents.neural import mlp
from ensemblepp.agents.neural.base import NeuralAgent, Scores
from ensemblepp.agents.neural.products import layer as layer_of
from ensemblepp.agents.neural.single_head import SingleHead
from ensemblepp.randomness.draws import Uniforms
from ensemblepp.randomness.streams import generator

#: Sets of dropped units that `Dropout.spread` is taken over.
PROBES = 32


class Dropout(NeuralAgent):
    """Greedy's network, whose hidden units are dropped at random: for a round when it acts, for a sample when it trains.

    At one seed it starts as Greedy, and its minibatches are Greedy's. Without hidden layers, features are dropped.

    Args:
        seeds: the seeds.
        dimension: entries of an action's features.
        rate: probability that a unit is dropped; the others are multiplied by 1 / (1 - rate).
        training: the keyword arguments of `NeuralAgent`.
    """

    family = "single_head"

    def __init__(self, seeds: Sequence[int], *, dimension: int, rate: float, ensemble_size: int = 0, **training) -> None:
        super().__init__(seeds, dimension=dimension, **training)
        self._rate = rate
        generators = [generator(seed, "agent") for seed in self.seeds]
        self.start(self.trunk_parameters(generators) | {"base": mlp.init_head(generators, self.width, self.classes)})
        units = sum(self.hidden) or dimension
        self._probes = self.fixed(Uniforms(self.seeds, "agent/probes", (PROBES, units))(1)[:, 0])
        self.sources["reference"] = Uniforms(self.seeds, "reference/units", (1, units))
        dropped = (self.gradient_steps, self.batch_size, units)
        self.sources["dropped"] = Uniforms(self.seeds, "minibatch/units", dropped)
        self.limit_chunk(math.prod(dropped))

    def thinned(self, features: torch.Tensor, uniforms: torch.Tensor) -> torch.Tensor:
        """h(x; w) without the units whose number in [0, 1) is below `rate`, (chains, rows, width).

        Args:
            features: (chains, rows, dimension).
            uniforms: (chains, rows, units), or 1 for rows that share them; units of all layers side by side.
        """
        factors = (uniforms >= self._rate).to(features.dtype) / (1 - self._rate)
        if not self.hidden:
            return features * factors
        for layer, factor in enumerate(factors.split(self.hidden, dim=-1)):
            weight, bias = self.parameters[f"w{layer}"], self.parameters[f"b{layer}"]
            features = layer_of(features, weight, bias) * factor
        return features

    def score(self, features: torch.Tensor) -> Scores:
        base = self.parameters["base"][..., -1:]
        value = mlp.linear_head(base, self.thinned(features, self.now("reference")))
        return Scores(value, mlp.linear_head(base, self.trunk(features)))

    def spread(self, features: torch.Tensor) -> torch.Tensor:
        actions = features.shape[1]
        hidden = self.thinned(features.repeat(1, PROBES, 1), self._probes.repeat_interleave(actions, dim=1))
        values = mlp.linear_head(self.parameters["base"][..., -1:], hidden)
        return values.unflatten(1, (PROBES, actions)).std(dim=1)

    def loss_of(self, features: torch.Tensor, reward: torch.Tensor, extra: torch.Tensor, step: int) -> torch.Tensor:
        hidden = self.thinned(features, self.now("dropped", step))
        return self.fitted(mlp.head_outputs(self.parameters["base"], hidden), reward).mean(dim=1)

    def single_head(self) -> SingleHead:
        return SingleHead(dropped=self._rate)
