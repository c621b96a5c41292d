"""Neural agents on a GPU: the same numbers twice, and near those of the CPU. Skipped where torch sees no GPU."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from ensemblepp.agents.greedy import Greedy
from ensemblepp.agents.neural_ensemblepp import NeuralEnsemblePlusPlus
from ensemblepp.environments.contextual import Contextual, unit_rows
from ensemblepp.simulate import simulate

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU on this machine")

TRAINING = {
    "hidden": [64, 64],
    "learning_rate": 1e-3,
    "batch_size": 128,
    "weight_decay": 0.01,
    "buffer_capacity": 100,
    "gradient_steps": 4,
    "warm_up": 16,
}
ENSEMBLE = {
    "ensemble_size": 8,
    "reference": "sphere",
    "perturbation": "sphere",
    "prior_scale": 1.0,
    "posterior_scale": 0.1,
    "perturbation_scale": 0.01,
}


def regret(agent: type, device: str, horizon: int) -> np.ndarray:
    source = np.random.default_rng(0)
    contexts = unit_rows(source.standard_normal((400, 20)))
    means = np.eye(3)[(contexts[:, :3]).argmax(axis=1)]
    environment = Contextual(range(4), contexts, means, noise=0.1, passes=1)
    options = ENSEMBLE if agent is NeuralEnsemblePlusPlus else {}
    player = agent(range(4), dimension=environment.dimension, horizon=horizon, device=device, **TRAINING, **options)
    return simulate(environment, player, horizon).regret


@pytest.mark.parametrize("agent", [Greedy, NeuralEnsemblePlusPlus])
def test_the_same_numbers_twice(agent):
    np.testing.assert_array_equal(regret(agent, "cuda", 200), regret(agent, "cuda", 200))


@pytest.mark.parametrize("agent", [Greedy, NeuralEnsemblePlusPlus])
def test_near_the_cpu(agent):
    """The first rounds agree exactly; later a rounding difference may turn a near-tie."""
    cpu, cuda = regret(agent, "cpu", 200), regret(agent, "cuda", 200)
    np.testing.assert_array_equal(cpu[..., :30], cuda[..., :30])
    assert np.abs(cpu[..., -1] - cuda[..., -1]).max() <= 20
