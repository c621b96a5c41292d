"""NeuralLinear (Riquelme, Tucker and Snoek 2018): Thompson sampling by Bayesian linear regression on learned features.

    theta ~ N(Sigma m, Sigma),    Sigma^-1 = I / prior_variance + sum_i h_i h_i^T / noise^2,    m = sum_i h_i y_i / noise^2

with the features h = trunk(x) that Greedy's network learns.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn.functional import pad

from ensemblepp.agents.neural import mlp
from ensemblepp.agents.neural.base import NeuralAgent, Scores
from ensemblepp.agents.neural.products import multiply
from ensemblepp.agents.neural.single_head import Regression, SingleHead
from ensemblepp.randomness.draws import Normals
from ensemblepp.randomness.streams import generator

#: Rows of a chain's system of equations are filled up to a multiple of this, so that every chain's begins at a multiple of 64
#: bytes: a CPU's library may round solutions by where they begin, and that should not depend on other chains.
FILLED = 8

#: Samples whose features are computed at once when the regression is done anew.
ROWS = 1024


class NeuralLinear(NeuralAgent):
    """Network and training of Greedy; the regression's sampled weights act, not the network's head.

    A round adds its sample with the features of its time. Every `refresh` rounds the regression is done anew: on the samples
    in the buffer, all with the present features. At one seed the network starts as Greedy's.

    Args:
        seeds: the seeds.
        dimension: entries of an action's features.
        prior_variance: variance of the regression's weights.
        noise: standard deviation of the rewards in the regression.
        refresh: every how many rounds the regression is done anew.
        training: the keyword arguments of `NeuralAgent`.
    """

    family = "single_head"
    # not every linear algebra library lets its factorisations be captured
    captures = False

    def __init__(
        self,
        seeds: Sequence[int],
        *,
        dimension: int,
        prior_variance: float,
        noise: float,
        refresh: int,
        ensemble_size: int = 0,
        **training,
    ) -> None:
        super().__init__(seeds, dimension=dimension, **training)
        self._prior_variance, self._noise, self._refresh = prior_variance, noise, refresh
        generators = [generator(seed, "agent") for seed in self.seeds]
        self.start(self.trunk_parameters(generators) | {"base": mlp.init_head(generators, self.width, self.classes)})
        #: Sigma^-1, (chains, width, width), and m, (chains, width, 1), float64
        self.precision = torch.empty(self.stack, self.width, self.width, dtype=torch.float64, device=self.device)
        self.moment = torch.empty(self.stack, self.width, 1, dtype=torch.float64, device=self.device)
        self._room = -self.width % FILLED
        self._forget()
        self.sources["reference"] = Normals(self.seeds, "reference", (self.width,))

    def score(self, features: torch.Tensor) -> Scores:
        hidden = self.trunk(features)
        factor = self._factor()
        # with Sigma^-1 = L L^T the mean is L^-T L^-1 m, and L^-T z has covariance Sigma
        white = torch.linalg.solve_triangular(factor, pad(self.moment, (0, 0, 0, self._room)), upper=False)
        sampled = white + pad(self.now("reference"), (0, self._room))[..., None]
        solved = torch.linalg.solve_triangular(factor.mT, torch.cat([sampled, white], dim=-1), upper=True)
        theta, mean = solved[:, : self.width].to(hidden.dtype).split(1, dim=-1)
        return Scores(mlp.linear_head(theta, hidden), mlp.linear_head(mean, hidden))

    def spread(self, features: torch.Tensor) -> torch.Tensor:
        hidden = pad(self.trunk(features).to(torch.float64), (0, self._room))
        return torch.linalg.solve_triangular(self._factor(), hidden.mT, upper=False).norm(dim=1)

    def loss_of(self, features: torch.Tensor, reward: torch.Tensor, extra: torch.Tensor, step: int) -> torch.Tensor:
        return self.fitted(mlp.head_outputs(self.parameters["base"], self.trunk(features)), reward).mean(dim=1)

    def observe(self, features: torch.Tensor, reward: torch.Tensor, item: torch.Tensor | None = None) -> None:
        super().observe(features, reward, item)
        self._add(features[:, None], reward[:, None])

    def end_round(self) -> None:
        super().end_round()
        if self.round % self._refresh == 0:
            self._forget()
            for samples in self._buffer[:, : self.round].split(ROWS, dim=1):
                self._add(samples[..., : self.dimension], samples[..., self.dimension])

    def single_head(self) -> SingleHead:
        settings = self._prior_variance, self._noise, self._refresh
        return SingleHead(regression=Regression(self.precision, self.moment, *settings))

    def _factor(self) -> torch.Tensor:
        """L, (chains, width, width), with rows of the identity until it is filled."""
        precision = pad(self.precision, (0, self._room, 0, self._room))
        precision.diagonal(dim1=1, dim2=2)[:, self.width :] = 1
        # the prior keeps the precision positive definite; the plain function would wait for the device to say so
        return torch.linalg.cholesky_ex(precision).L

    def _forget(self) -> None:
        """Go back to the prior."""
        self.precision.copy_(torch.eye(self.width) / self._prior_variance)
        self.moment.zero_()

    @torch.no_grad()
    def _add(self, features: torch.Tensor, reward: torch.Tensor) -> None:
        """Add samples, (chains, rows, dimension) and (chains, rows), to the regression."""
        hidden = self.trunk(features).to(torch.float64)
        weight = self._noise**-2
        self.precision.add_(multiply(hidden, hidden, turn_left=True), alpha=weight)
        self.moment.add_(multiply(hidden, reward[..., None].to(torch.float64), turn_left=True), alpha=weight)
