"""Neural Ensemble++ as one would write it first: one seed, nn.Module, autograd, the symmetrised loss direction by direction.

It starts from the parameters of a stacked agent and takes its random numbers from the same streams, so that both must play
the same rounds. Tests compare the two; the benchmark takes its time as the baseline.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from ensemblepp.agents.neural.ensemblepp import NeuralEnsemblePlusPlus
from ensemblepp.environments.pool import Pool


class Network(nn.Module):
    """f(x, zeta) of one chain (paper, eq. "ensemble++_with_prior"), scalar output."""

    def __init__(self, agent: NeuralEnsemblePlusPlus, posterior_scale: float, chain: int = 0) -> None:
        super().__init__()
        own = {name: value.detach()[chain] for name, value in agent.parameters.items()}
        layers: list[nn.Module] = []
        for place in range(len(agent.hidden)):
            weight, bias = own[f"w{place}"], own[f"b{place}"]
            layer = nn.Linear(*weight.shape)
            layer.weight.data, layer.bias.data = weight.T.clone(), bias[0].clone()
            layers += [layer, nn.ReLU()]
        self.trunk = nn.Sequential(*layers)
        self.base = nn.Linear(agent.width, 1, bias=False)
        self.base.weight.data = own["base"].T.clone()
        self.heads = nn.Linear(agent.width, agent.ensemble_size, bias=False)
        self.heads.weight.data = own["heads"].T.clone()
        self.register_buffer("prior", agent.prior[chain].T.clone())
        self.posterior_scale = posterior_scale

    def forward(self, features: torch.Tensor, zeta: torch.Tensor) -> torch.Tensor:
        """(rows, d) and directions (..., M) to predictions (..., rows)."""
        hidden = self.trunk(features)
        fixed = hidden.detach()
        members = self.posterior_scale * self.heads(fixed) + fixed @ self.prior.T
        return self.base(hidden)[:, 0] + zeta @ members.T


class PlainEnsemblePlusPlus:
    """The agent: its buffer, its minibatches and `torch.optim.Adam`.

    Args:
        agent: the stacked agent that it copies, before any round.
        posterior_scale: as that agent has it.
        reduced: whether the loss is the sum that is left when the cross terms have cancelled, which is cheaper.
    """

    def __init__(self, agent: NeuralEnsemblePlusPlus, posterior_scale: float, *, reduced: bool = False) -> None:
        self.network = Network(agent, posterior_scale)
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=agent.learning_rate, fused=True)
        self.agent, self.reduced = agent, reduced
        self.features = torch.zeros(agent.capacity, agent.dimension)
        self.rewards, self.z = torch.zeros(agent.capacity), torch.zeros(agent.capacity, agent.ensemble_size)
        size = agent.ensemble_size
        eye = np.sqrt(size) * torch.eye(size)
        self.directions = torch.cat([eye, -eye])

    def loss(self, features: torch.Tensor, rewards: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
        """Mean over samples and over the 2 M directions +-sqrt(M) e_m."""
        if not self.reduced:
            targets = rewards + self.directions @ z.T
            return (targets - self.network(features, self.directions)).square().mean()
        hidden = self.network.trunk(features)
        fixed = hidden.detach()
        members = self.network.posterior_scale * self.network.heads(fixed) + fixed @ self.network.prior.T
        return (rewards - self.network.base(hidden)[:, 0]).square().mean() + (z - members).square().sum(dim=1).mean()

    def play(self, environment: Pool, rounds: int, done: int = 0) -> list[int]:
        """Play the next rounds, after `done` earlier ones; the chosen actions."""
        agent, chosen = self.agent, []
        draws = {name: torch.from_numpy(np.asarray(source(rounds)[0], np.float32)) for name, source in agent.sources.items()}
        offers, noise = environment.draw(rounds)
        for step in range(rounds):
            clock = done + step
            features = torch.from_numpy(environment.table[0, offers[0, step]])
            with torch.no_grad():
                action = int(self.network(features, draws["reference"][step]).argmax())
            chosen.append(action)
            slot = clock % agent.capacity
            self.features[slot] = features[action]
            self.rewards[slot] = float(environment.means[0, offers[0, step, action]] + noise[0, step])
            self.z[slot] = draws["perturbation"][step]
            if not agent.trains(clock + 1):
                continue
            stored = min(clock + 1, agent.capacity)
            for group in self.optimiser.param_groups:
                group["weight_decay"] = agent.weight_decay / stored
            for uniform in draws["minibatch"][step]:
                rows = (uniform * stored).to(torch.int64)
                self.optimiser.zero_grad()
                self.loss(self.features[rows], self.rewards[rows], self.z[rows]).backward()
                self.optimiser.step()
        return chosen
