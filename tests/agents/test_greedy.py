"""Greedy is Ensemble++ without its ensemble: same start, same minibatches, same trunk and base head for ever."""

import numpy as np
import pytest
import torch

from ensemblepp.agents.greedy import Greedy
from ensemblepp.agents.neural_ensemblepp import NeuralEnsemblePlusPlus
from ensemblepp.environments.base import Choice, Decisions

torch.set_num_threads(1)

TRAINING = {
    "dimension": 5,
    "horizon": 200,
    "device": "cpu",
    "learning_rate": 1e-2,
    "batch_size": 16,
    "weight_decay": 0.5,
    "buffer_capacity": 25,
    "gradient_steps": 3,
    "warm_up": 4,
}
LAWS = {"reference": "sphere", "perturbation": "sphere"}
SCALES = {"prior_scale": 1.0, "posterior_scale": 0.1, "perturbation_scale": 0.01}


def greedy(seeds=(0, 1, 2), hidden=(16, 16), **changes) -> Greedy:
    return Greedy(seeds, hidden=hidden, ensemble_size=0, **TRAINING | changes)


def ensemble(seeds=(0, 1, 2), hidden=(16, 16), **changes) -> NeuralEnsemblePlusPlus:
    return NeuralEnsemblePlusPlus(seeds, hidden=hidden, ensemble_size=8, **TRAINING | LAWS | SCALES | changes)


def experience(rounds: int, seeds: int = 3):
    """Choices and rewards that no agent made: the same for whoever is fed with them."""
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        features = rng.standard_normal((seeds, 1, 5)).astype(np.float32)
        yield Choice(np.zeros((seeds, 1), dtype=int), features), np.sin(features.sum(axis=2)) + rng.normal(0, 0.1, (seeds, 1))


@pytest.mark.parametrize("hidden", [(16, 16), ()])
def test_start_is_that_of_ensemblepp(hidden):
    """Trunk and base head are drawn first and alike, so that the two agents differ by the ensemble only (A = 0)."""
    without, with_ensemble = greedy(hidden=hidden), ensemble(hidden=hidden)
    assert len(without.parameters) == len(with_ensemble.parameters) - 1 == 2 * len(hidden) + 1
    for left, right in zip(without.parameters, with_ensemble.parameters, strict=False):
        assert torch.equal(left, right)


def test_training_is_that_of_ensemblepp_s_trunk_and_base():
    """60 rounds, 168 gradient steps, fed the same data: no ensemble term reaches trunk or base, and Adam acts entry by entry.

    The heads move meanwhile (by more than 0.1), so equality is not for want of training; the trunk moves as well.
    """
    without, with_ensemble = greedy(), ensemble()
    start = [parameter.detach().clone() for parameter in with_ensemble.parameters]
    for choice, reward in experience(60):
        without.update(choice, reward)
        with_ensemble.update(choice, reward)
    for left, right in zip(without.parameters, with_ensemble.parameters, strict=False):
        torch.testing.assert_close(left, right, rtol=0, atol=1e-6)
    for before, after in zip(start, with_ensemble.parameters, strict=True):
        assert (after - before).abs().max() > 0.1


def test_minibatches_are_those_of_ensemblepp(monkeypatch):
    """The rows that the two losses are given, step by step."""
    seen = {Greedy: [], NeuralEnsemblePlusPlus: []}
    for kind, batches in seen.items():
        original = kind.loss

        def recorded(self, features, reward, extra, original=original, batches=batches):
            batches.append(torch.cat([features, reward[..., None]], dim=-1))
            return original(self, features, reward, extra)

        monkeypatch.setattr(kind, "loss", recorded)
    agents = greedy(), ensemble()
    for choice, reward in experience(40):
        for agent in agents:
            agent.update(choice, reward)
    assert len(seen[Greedy]) == (40 - 4) * 3
    for left, right in zip(*seen.values(), strict=True):
        assert left.shape == (3, 16, 6)
        assert torch.equal(left, right)


def test_loss_and_gradient_are_those_of_the_mean_squared_error():
    """Against torch's own modules in float64: relative error below 1e-5."""
    agent = greedy(seeds=(0, 7))
    rng = np.random.default_rng(0)
    features = torch.tensor(rng.standard_normal((2, 9, 5)), dtype=torch.float32)
    reward = torch.tensor(rng.standard_normal((2, 9)), dtype=torch.float32)
    losses = agent.loss(features, reward, torch.empty(2, 9, 0))
    gradients = torch.autograd.grad(losses.sum(), agent.parameters)
    for row in range(2):
        w1, c1, w2, c2, base = (parameter.detach()[row].double().requires_grad_() for parameter in agent.parameters)
        linear = torch.nn.functional.linear
        hidden = linear(linear(features[row].double(), w1.T, c1[0]).relu(), w2.T, c2[0]).relu()
        loss = torch.nn.functional.mse_loss(linear(hidden, base.T)[:, 0], reward[row].double())
        assert losses[row].item() == pytest.approx(loss.item(), rel=1e-5)
        expected = torch.autograd.grad(loss, [w1, c1, w2, c2, base])
        for found, wanted in zip(gradients, expected, strict=True):
            assert (found[row] - wanted).norm() < 1e-5 * wanted.norm()


def test_the_greatest_prediction_is_chosen_every_time():
    """No noise: 10 rounds with the same decisions give the same choice, that of the greatest prediction."""
    agent = greedy(hidden=())
    decisions = Decisions(np.random.default_rng(1).standard_normal((3, 20, 5)).astype(np.float32))
    (base,) = agent.parameters
    values = np.einsum("sad,sd->sa", decisions.features, base.detach().numpy()[..., 0])
    for _ in range(10):
        assert agent.act(decisions).index.tolist() == values.argmax(axis=1)[:, None].tolist()


def test_a_linear_greedy_agent_finds_the_regression_line():
    """y = <x, (1, -2, 0.5, 0, 3)> without noise: the head converges to these numbers."""
    truth = np.array([1.0, -2.0, 0.5, 0.0, 3.0])
    agent = greedy(seeds=(0,), hidden=(), weight_decay=0.0, gradient_steps=50, learning_rate=0.02)
    rng = np.random.default_rng(0)
    for _ in range(60):
        features = rng.standard_normal((1, 1, 5)).astype(np.float32)
        agent.update(Choice(np.zeros((1, 1), dtype=int), features), features[:, 0] @ truth[:, None])
    np.testing.assert_allclose(agent.parameters[0].detach().numpy().ravel(), truth, atol=1e-3)


def test_parameter_count():
    """d = 100, trunk 2 x 64: 10,624 and a base head of 64 without bias."""
    agent = greedy((0,), (64, 64), dimension=100)
    assert sum(parameter.numel() for parameter in agent.parameters) == 10_624 + 64
    assert agent.chains == (("none", "none"),)
