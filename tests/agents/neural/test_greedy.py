"""Greedy is Ensemble++ without its ensemble: same start, minibatches, trunk and base head for ever."""

import numpy as np
import pytest
import torch

from ensemblepp.agents.neural.ensemblepp import NeuralEnsemblePlusPlus
from ensemblepp.agents.neural.greedy import Greedy
from ensemblepp.bandit import Choice, Decisions

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
LAWS = {"references": ["sphere"], "perturbations": ["sphere"], "update": "coordinate"}
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


def copies(agent) -> dict[str, torch.Tensor]:
    return {name: parameter.detach().clone() for name, parameter in agent.parameters.items()}


@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
@pytest.mark.parametrize("hidden", [(16, 16), ()])
def test_start_is_that_of_ensemblepp(hidden, loss):
    """Trunk and base head are drawn first and alike, so that the two agents differ by the ensemble only (A = 0)."""
    without, with_ensemble = greedy(hidden=hidden, loss=loss), ensemble(hidden=hidden, loss=loss)
    layers = [f"{kind}{layer}" for layer in range(len(hidden)) for kind in "wb"]
    assert list(without.parameters) == [*layers, "base"]
    assert list(with_ensemble.parameters) == [*layers, "base", "heads"]
    for name, parameter in without.parameters.items():
        assert torch.equal(parameter, with_ensemble.parameters[name])
    assert without.parameters["base"].shape[-1] == (1 if loss == "squared" else 2)


def test_training_is_that_of_ensemblepp_s_trunk_and_base():
    """60 rounds, 168 gradient steps, fed the same data: no ensemble term reaches trunk or base, and Adam acts entry by entry.

    The heads move meanwhile (by more than 0.1), so equality is not for want of training; the trunk moves as well.
    """
    without, with_ensemble = greedy(), ensemble()
    start = copies(with_ensemble)
    for choice, reward in experience(60):
        without.update(choice, reward)
        with_ensemble.update(choice, reward)
    for name, parameter in without.parameters.items():
        torch.testing.assert_close(parameter, with_ensemble.parameters[name], rtol=0, atol=1e-6)
    for name, before in start.items():
        assert (with_ensemble.parameters[name] - before).abs().max() > 0.1


def test_minibatches_are_those_of_ensemblepp(monkeypatch):
    """The rows that the two losses are given, step by step."""
    seen = {Greedy: [], NeuralEnsemblePlusPlus: []}
    for kind, batches in seen.items():
        original = kind.loss_of

        def recorded(self, features, reward, extra, step, original=original, batches=batches):
            batches.append((step, torch.cat([features, reward[..., None]], dim=-1)))
            return original(self, features, reward, extra, step)

        monkeypatch.setattr(kind, "loss_of", recorded)
    agents = greedy(), ensemble()
    for choice, reward in experience(40):
        for agent in agents:
            agent.update(choice, reward)
    assert [step for step, _ in seen[Greedy]] == [0, 1, 2] * (40 - 4)
    for (_, left), (_, right) in zip(*seen.values(), strict=True):
        assert left.shape == (3, 16, 6)
        assert torch.equal(left, right)


@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
def test_loss_and_gradient_are_those_of_torch_s_own(loss):
    """Against torch's own modules in float64, mean squared error or cross-entropy: relative error below 1e-5."""
    agent = greedy(seeds=(0, 7), loss=loss)
    rng = np.random.default_rng(0)
    features = torch.tensor(rng.standard_normal((2, 9, 5)), dtype=torch.float32)
    reward = torch.tensor(rng.standard_normal((2, 9)), dtype=torch.float32)
    if loss == "cross_entropy":
        reward = (reward > 0).float()
    losses = agent.loss_of(features, reward, torch.empty(2, 9, 0), 0)
    gradients = torch.autograd.grad(losses.sum(), list(agent.parameters.values()))
    for row in range(2):
        own = [parameter.detach()[row].double().requires_grad_() for parameter in agent.parameters.values()]
        w1, c1, w2, c2, base = own
        linear = torch.nn.functional.linear
        hidden = linear(linear(features[row].double(), w1.T, c1[0]).relu(), w2.T, c2[0]).relu()
        outputs = linear(hidden, base.T)
        if loss == "squared":
            expected_loss = torch.nn.functional.mse_loss(outputs[:, 0], reward[row].double())
        else:
            expected_loss = torch.nn.functional.cross_entropy(outputs, reward[row].long())
        assert losses[row].item() == pytest.approx(expected_loss.item(), rel=1e-5)
        expected = torch.autograd.grad(expected_loss, own)
        for found, wanted in zip(gradients, expected, strict=True):
            assert (found[row] - wanted).norm() < 1e-5 * wanted.norm()


@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
def test_the_greatest_prediction_is_chosen_every_time(loss):
    """No noise: 10 rounds with the same decisions give the same choice, that of the greatest prediction.

    With two logits it is the second one, that of reward 1, as it stands.
    """
    agent = greedy(hidden=(), loss=loss)
    decisions = Decisions(np.random.default_rng(1).standard_normal((3, 20, 5)).astype(np.float32))
    base = agent.parameters["base"].detach().numpy()
    values = np.einsum("sad,sd->sa", decisions.features, base[..., -1])
    for _ in range(10):
        assert agent.act(decisions).index.tolist() == values.argmax(axis=1)[:, None].tolist()
    assert agent.explored.tolist() == [0, 0, 0]


def test_a_linear_greedy_agent_finds_the_regression_line():
    """y = <x, (1, -2, 0.5, 0, 3)> without noise: the head converges to these numbers."""
    truth = np.array([1.0, -2.0, 0.5, 0.0, 3.0])
    agent = greedy(seeds=(0,), hidden=(), weight_decay=0.0, gradient_steps=50, learning_rate=0.02)
    rng = np.random.default_rng(0)
    for _ in range(60):
        features = rng.standard_normal((1, 1, 5)).astype(np.float32)
        agent.update(Choice(np.zeros((1, 1), dtype=int), features), features[:, 0] @ truth[:, None])
    np.testing.assert_allclose(agent.parameters["base"].detach().numpy().ravel(), truth, atol=1e-3)


def test_parameter_count():
    """d = 100, trunk 2 x 64: 10,624 and a base head of 64 without bias, all of them trained; 128 more for a second logit."""
    assert greedy((0,), (64, 64), dimension=100).parameter_counts() == (10_688, 10_688)
    assert greedy((0, 1), (64, 64), dimension=100, loss="cross_entropy").parameter_counts() == (10_752, 10_752)
    assert greedy((0,), (64, 64), dimension=100).chains == (("none", "none"),)
