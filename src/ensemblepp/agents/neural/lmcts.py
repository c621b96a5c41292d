"""Langevin Monte Carlo Thompson sampling (Xu, Zheng, Mazumdar, Azizzadenesheli and Anandkumar 2022), with the schedule of its
official code.

In round t, min(t, K) times over, with L the sum of squared errors over the whole history, xi ~ N(0, I), and d and T the
dimension and the horizon:

    w <- w - eta (grad L(w) + weight_decay w) + eta sqrt(2 / (beta eta_0)) xi,    1 / beta = temperature d ln T

The step size eta is eta_0 (`learning_rate`) until round `decay_every`, and at every multiple t of it becomes eta_0 / t. The
noise's coefficient is fixed at the start, so the noise shrinks like eta, and not like its root as Langevin's would: once the
step size has decayed, w is as after Langevin steps at the lower temperature (eta / eta_0) / beta.

Rewards of one action are folded: sum_j (f(x) - y_j)^2 = n f(x)^2 - 2 s f(x) + const with n their number and s their sum, so
that a gradient over the whole history takes one row per distinct action.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
import torch

from ensemblepp.agents.neural import columns, mlp
from ensemblepp.agents.neural.base import NeuralAgent, Scores
from ensemblepp.agents.neural.lmcts_steps import langevin
from ensemblepp.agents.neural.products import layer, layer_gradient, multiply
from ensemblepp.randomness.streams import generator


class LMCTS(NeuralAgent):
    """Noisy gradient steps on all rewards so far; the action with the greatest prediction of the network they lead to.

    The network is Greedy's, its head without bias, and at one seed it starts alike.

    Args:
        seeds: the seeds.
        dimension: d, entries of an action's features.
        horizon: T.
        temperature: factor of d ln T in the temperature 1 / beta.
        decay_every: every how many rounds the step size is lowered.
        training: the keyword arguments of `NeuralAgent`. Of these, `learning_rate` is eta_0, `gradient_steps` is K and
            `weight_decay` is not divided by the samples; `batch_size` and `buffer_capacity` have no effect.
    """

    # the number of steps and of rows changes, and so the host has to know them
    captures = False
    #: the time of its rounds grows with the history (see `costs`)
    cost_degree = 2

    def __init__(
        self,
        seeds: Sequence[int],
        *,
        dimension: int,
        horizon: int,
        temperature: float,
        decay_every: int,
        ensemble_size: int = 0,
        **training,
    ) -> None:
        super().__init__(seeds, dimension=dimension, horizon=horizon, **training)
        self._decay_every = decay_every
        self._noise_scale = math.sqrt(2 * temperature * dimension * math.log(horizon) / self.learning_rate)
        # by columns on a CPU alone, and only where a layer is there that can take them
        few = dimension // columns.SPARSE if self.hidden and self.device.type == "cpu" else 0
        self.history = History(self.stack, dimension, self.device, few)
        # there are no minibatches
        self.sources.clear()
        # drawn when it is due, as 64 rounds of it would be 140 MB a seed; by torch, in a third of numpy's time
        self._noise = [
            torch.Generator().manual_seed(int(generator(seed, "agent/langevin").integers(2**32))) for seed in self.seeds
        ]
        generators = [generator(seed, "agent") for seed in self.seeds]
        network = self.trunk_parameters(generators) | {"base": mlp.init_head(generators, self.width)}
        self._shapes = {name: value.shape[1:] for name, value in network.items()}
        self._widths = np.array([dimension, *self.hidden], dtype=np.int64)
        # one parameter, so that a chain's entries are neighbours, whatever the number of chains
        self.start({"network": np.concatenate([value.reshape(len(self.seeds), -1) for value in network.values()], axis=1)})

    def schedule(self, round_: int) -> tuple[int, float]:
        """(inner steps, step size) of a round, counted from 1."""
        lowered = round_ - round_ % self._decay_every
        return min(round_, self.gradient_steps), self.learning_rate / max(lowered, 1)

    def score(self, features: torch.Tensor) -> Scores:
        value = mlp.linear_head(self.parameters["base"], self.trunk(features))
        return Scores(value, value)

    def observe(self, features: torch.Tensor, reward: torch.Tensor, item: torch.Tensor | None = None) -> None:
        # a reward whose item is not known has a row of its own
        keys = [-1 - self.round] * self.stack if item is None else item.tolist()
        self.history.add(keys, features, reward)
        self.clock += 1

    @torch.no_grad()
    def train(self) -> None:
        steps, rate = self.schedule(self.round + 1)
        network, gradient = self.parameters["network"], self.parameters["network"].grad
        # on a CPU one chain at a time: what it touches stays in the cache, and no chain's numbers depend on another's
        together = 1 if self.device.type == "cpu" else self.stack
        for first in range(0, self.stack, together):
            part = slice(first, first + together)
            features, count, total, square = self.history.rows(part)
            row, slope = network[part], gradient[part]
            counts, totals = count.to(torch.float32), total.to(torch.float32)
            noise, keep = self._draw(part, steps), 1 - rate * self.weight_decay
            if self.device.type == "cpu":
                predictions = torch.empty_like(counts)
                items = columns.Items(features[0].numpy(), self.history.columns[first, : features.shape[1]], 1)
                own = (tensor[0].numpy() for tensor in (counts[..., 0], totals[..., 0], noise))
                factors = (np.float32(factor) for factor in (rate, keep, rate * self._noise_scale))
                langevin(self._widths, row[0].detach().numpy(), items, *own, *factors, predictions[0].numpy())
            else:
                tensors, slopes = self._split(row), self._split(slope)
                for step in range(steps):
                    predictions = squared_error_gradient(tensors, slopes, features, counts, totals)
                    row.mul_(keep).add_(slope, alpha=-rate)
                    row.add_(noise[:, step], alpha=rate * self._noise_scale)
            error = ((count * predictions - 2 * total) * predictions).sum(dim=1) + square
            self.last_loss[part] = (error / self.clock).to(torch.float32)

    def _draw(self, part: slice, steps: int) -> torch.Tensor:
        """Standard normal numbers of this round, (chains of `part`, steps, parameters of a chain)."""
        sources = self._noise[part]
        noise = torch.empty(len(sources), steps, self.parameters["network"].shape[1])
        for own, source in zip(noise, sources, strict=True):
            own.normal_(generator=source)
        return noise.to(self.device)

    def _split(self, rows: torch.Tensor) -> dict[str, torch.Tensor]:
        """Rows of a network's parameters, (chains, parameters of a chain), as tensors by name that are views."""
        sizes = [math.prod(shape) for shape in self._shapes.values()]
        parts = zip(self._shapes.items(), rows.split(sizes, dim=1), strict=True)
        return {name: part.unflatten(1, shape) for (name, shape), part in parts}

    def _bind(self) -> None:
        super()._bind()
        # the names that `trunk` looks for
        self.parameters |= self._split(self.parameters["network"].detach())


class History:
    """All rewards so far of several chains, one row per distinct action, in the order of its first reward.

    Args:
        chains: how many chains.
        dimension: entries of an action's features.
        device: where the tables are.
        few: with at most so many features of every action not 0, `columns` says which.
    """

    def __init__(self, chains: int, dimension: int, device: torch.device, few: int = 0) -> None:
        self._row_of: list[dict[Hashable, int]] = [{} for _ in range(chains)]
        self._chain = torch.arange(chains, device=device)
        self._features = torch.zeros(chains, 64, dimension, device=device)
        # number and sum of an action's rewards; in float32 a sum of thousands would lose digits
        self._count, self._total = (torch.zeros(chains, 64, 1, dtype=torch.float64, device=device) for _ in range(2))
        self._square = torch.zeros(chains, 1, dtype=torch.float64, device=device)
        self._few = few
        #: Where an action's features are not 0: (chains, at least as many rows as there are, K) as `columns.filled` has it.
        self.columns = np.full((chains, 64, 0), -1, dtype=np.int32)

    def add(self, keys: Iterable[Hashable], features: torch.Tensor, reward: torch.Tensor) -> None:
        """Add a reward to every chain, (chains,), of actions with features (chains, d); equal keys say equal actions."""
        rows = [known.setdefault(key, len(known)) for known, key in zip(self._row_of, keys, strict=True)]
        if max(rows) == self._count.shape[1]:
            for name in ("_features", "_count", "_total"):
                table = getattr(self, name)
                setattr(self, name, torch.cat([table, torch.zeros_like(table)], dim=1))
            self.columns = np.concatenate([self.columns, np.full_like(self.columns, -1)], axis=1)
        at = self._chain, torch.tensor(rows, device=self._chain.device)
        reward = reward[:, None].to(torch.float64)
        self._features[at] = features
        self._count[at] += 1
        self._total[at] += reward
        self._square += reward.square()
        if self._few > 0:
            self._add_columns(rows, columns.filled(features.numpy()[:, None], self._few))

    def _add_columns(self, rows: list[int], found: np.ndarray) -> None:
        """Add those of an action for every chain, (chains, 1, K), or (chains, 0, 0) if there are too many of them."""
        if found.shape[1] == 0:
            self._few, self.columns = 0, self.columns[..., :0]
            return
        missing = found.shape[2] - self.columns.shape[2]
        if missing > 0:
            self.columns = np.pad(self.columns, ((0, 0), (0, 0), (0, missing)), constant_values=-1)
        self.columns[np.arange(len(rows)), rows, : found.shape[2]] = found[:, 0]

    def rows(self, part: slice) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        """Some chains' features (chains, rows, d), counts and sums of rewards (chains, rows, 1), sum of squares (chains, 1).

        Beyond a chain's own rows there are rows of zeros.
        """
        rows = max(map(len, self._row_of[part]))
        tables = (table[part, :rows] for table in (self._features, self._count, self._total))
        return *tables, self._square[part]


def squared_error_gradient(
    network: dict[str, torch.Tensor],
    gradient: dict[str, torch.Tensor],
    features: torch.Tensor,
    count: torch.Tensor,
    total: torch.Tensor,
) -> torch.Tensor:
    """Write the gradient of sum_i n_i f(x_i)^2 - 2 s_i f(x_i) into `gradient`, in two thirds of autograd's time.

    Args:
        network: "w0", "b0", "w1", ... of the trunk, (chains, fan_in, width) and (chains, 1, width), and "base" of the head,
            (chains, width, 1).
        gradient: tensors of the same names and shapes.
        features: x, (chains, rows, d).
        count: n, (chains, rows, 1).
        total: s, (chains, rows, 1).

    Returns:
        f(x), (chains, rows, 1).
    """
    layers = len(network) // 2
    hidden = [features]
    for place in range(layers):
        hidden.append(layer(hidden[-1], network[f"w{place}"], network[f"b{place}"]))
    predictions = multiply(hidden[-1], network["base"])
    delta = (count * predictions).sub_(total).mul_(2)
    multiply(hidden[-1], delta, turn_left=True, out=gradient["base"])
    slope = multiply(delta, network["base"], turn_right=True) if layers else None
    for place in reversed(range(layers)):
        own = (group[f"{kind}{place}"] for group, kind in ((network, "w"), (gradient, "w"), (gradient, "b")))
        weight, by_weight, by_bias = own
        slope = layer_gradient(hidden[place], weight, hidden[place + 1], slope, by_weight, by_bias, lower=place > 0)
    return predictions
