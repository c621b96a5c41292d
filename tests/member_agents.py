"""The two agents of members on one trunk, and a literal float64 form of their members."""

from __future__ import annotations

import numpy as np
import torch

from ensemblepp.agents.neural import mlp
from ensemblepp.agents.neural.bootstrap import BootstrappedEnsemble
from ensemblepp.agents.neural.ensembleplus import EnsemblePlus
from ensemblepp.randomness.streams import generator

TRAINING = {
    "horizon": 100,
    "device": "cpu",
    "learning_rate": 1e-2,
    "batch_size": 8,
    "weight_decay": 0.01,
    "buffer_capacity": 50,
    "gradient_steps": 2,
    "warm_up": 3,
}


LOSSES = ["squared", "cross_entropy"]


def plus(seeds=(0, 1), dimension=6, ensemble_size=4, hidden=(16, 16), **changes) -> EnsemblePlus:
    scales = {"prior_scale": 0.7, "posterior_scale": 0.3, "perturbation_scale": 0.5, "equal_noise": True}
    return EnsemblePlus(seeds, dimension=dimension, ensemble_size=ensemble_size, hidden=hidden, **TRAINING | scales | changes)


def bootstrap(seeds=(0, 1), dimension=6, ensemble_size=4, hidden=(16, 16), **changes) -> BootstrappedEnsemble:
    return BootstrappedEnsemble(seeds, dimension=dimension, ensemble_size=ensemble_size, hidden=hidden, **TRAINING | changes)


#: a function that builds one, posterior scale, prior scale
AGENTS = {"ensemble+": (plus, 0.3, 0.7), "bootstrap": (bootstrap, 1.0, 0.0)}


class Reference:
    """The members of one seed, one by one, in float64: priors are drawn here anew, from the seed's stream."""

    def __init__(self, agent, row: int, posterior_scale: float, prior_scale: float) -> None:
        self.parameters = {name: value.detach()[row].double() for name, value in agent.parameters.items()}
        for parameter in self.parameters.values():
            parameter.requires_grad_()
        self.layers, self.classes, self.members = len(agent.hidden), agent.classes, agent.ensemble_size
        self.posterior_scale, self.prior_scale = posterior_scale, prior_scale
        source = [generator(agent.seeds[row], "agent/prior")]
        self.prior = [(w[0], b[0, 0]) for w, b in mlp.init_layers(source, [agent.dimension, *agent.hidden])]
        self.prior_heads = mlp.init_member_heads(source, agent.width, agent.ensemble_size, agent.classes)[0]

    def predict(self, x: torch.Tensor, member: int) -> torch.Tensor:
        """f_m(x) of every class."""
        h, h0 = x, x.numpy()
        for layer in range(self.layers):
            h = torch.clamp(h @ self.parameters[f"w{layer}"] + self.parameters[f"b{layer}"][0], min=0)
        for weight, bias in self.prior:
            h0 = np.maximum(h0 @ weight + bias, 0)
        own = slice(member * self.classes, (member + 1) * self.classes)
        trained = h @ self.parameters["heads"][:, own] + self.parameters["bias"][0, own]
        return self.posterior_scale * trained + self.prior_scale * torch.tensor(h0 @ self.prior_heads[:, own])


def minibatch(agent, batch: int = 9) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Features, rewards and the M numbers kept with a sample; rewards 0 and 1 for two logits, weights 0 and 2 for coins."""
    rng = np.random.default_rng(0)
    shape = (agent.stack, batch)
    features = torch.tensor(rng.standard_normal((*shape, agent.dimension)), dtype=torch.float32)
    reward = torch.tensor(rng.standard_normal(shape), dtype=torch.float32)
    own = torch.tensor(rng.standard_normal((*shape, agent.ensemble_size)), dtype=torch.float32)
    return features, (reward > 0).float() if agent.classes == 2 else reward, 2.0 * (own > 0) if agent.weighted else own


def kept(agent, features: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
    """What the buffer holds beside features and reward: `own`, and the prior's outputs of agents that have one."""
    offsets = agent.offsets(features)
    return own if offsets is None else torch.cat([own, offsets], dim=-1)
