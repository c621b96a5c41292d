"""Neural Ensemble++: its loss and gradient against the paper's full symmetrised loss, and its score by hand."""

import itertools
import math

import numpy as np
import pytest
import torch

from ensemblepp.agents.neural_ensemblepp import NeuralEnsemblePlusPlus
from ensemblepp.distributions import LAWS, update_directions
from ensemblepp.environments.base import Decisions
from ensemblepp.streams import StepNoise

torch.set_num_threads(1)

TRAINING = {
    "horizon": 100,
    "device": "cpu",
    "learning_rate": 1e-3,
    "batch_size": 8,
    "weight_decay": 0.01,
    "buffer_capacity": 50,
    "gradient_steps": 2,
    "warm_up": 3,
}


def build(seeds=(0, 1), dimension=6, ensemble_size=4, hidden=(16, 16), **changes) -> NeuralEnsemblePlusPlus:
    scales = {"prior_scale": 0.7, "posterior_scale": 0.3, "perturbation_scale": 0.5}
    laws = {"reference": "sphere", "perturbation": "sphere"}
    options = TRAINING | scales | laws | changes
    return NeuralEnsemblePlusPlus(seeds, dimension=dimension, ensemble_size=ensemble_size, hidden=hidden, **options)


def minibatch(agent: NeuralEnsemblePlusPlus, dimension: int, size: int, batch: int = 9) -> tuple[torch.Tensor, ...]:
    """Features, rewards and scaled perturbations with rows of their own for every seed."""
    rng = np.random.default_rng(0)
    shapes = [(len(agent.seeds), batch, dimension), (len(agent.seeds), batch), (len(agent.seeds), batch, size)]
    return tuple(torch.tensor(rng.standard_normal(shape), dtype=torch.float32) for shape in shapes)


class Reference:
    """The paper's network of one seed, unit by unit, in float64: eq. "ensemble++_with_prior"."""

    def __init__(self, agent: NeuralEnsemblePlusPlus, row: int, posterior_scale: float) -> None:
        own = [parameter.detach()[row].double() for parameter in agent.parameters]
        self.prior = (agent.ensemble().detach()[row] - posterior_scale * agent.parameters[-1].detach()[row]).double()
        self.parameters = [parameter.requires_grad_() for parameter in own]
        self.posterior_scale = posterior_scale

    def features(self, x: torch.Tensor) -> torch.Tensor:
        layers = self.parameters[:-2]
        for weight, bias in zip(layers[::2], layers[1::2], strict=True):
            x = torch.clamp(x @ weight + bias[0], min=0)
        return x

    def predict(self, x: torch.Tensor, zeta: torch.Tensor) -> torch.Tensor:
        """f(x, zeta), with the stop-gradient on the features of the ensemble and prior terms."""
        base, heads = self.parameters[-2:]
        h = self.features(x)
        return h @ base[:, 0] + h.detach() @ (self.posterior_scale * heads @ zeta) + (h @ (self.prior @ zeta)).detach()


def relative_error(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found.double() - expected).norm() / expected.norm())


def assert_equals_symmetrised_loss(agent, posterior_scale, directions, batch) -> None:
    """Loss and every gradient of every seed, relative error below 1e-5 (the agent computes in float32)."""
    features, reward, extra = batch
    losses = agent.loss(features, reward, extra)
    gradients = torch.autograd.grad(losses.sum(), agent.parameters)
    for row in range(len(agent.seeds)):
        network = Reference(agent, row, posterior_scale)
        total = torch.zeros((), dtype=torch.float64)
        for zeta, sample in itertools.product(directions, range(features.shape[1])):
            direction = torch.tensor(zeta)
            target = reward[row, sample].double() + direction @ extra[row, sample].double()
            total = total + (target - network.predict(features[row, sample].double(), direction)) ** 2
        loss = total / len(directions) / features.shape[1]
        assert losses[row].item() == pytest.approx(loss.item(), rel=1e-5)
        for found, expected in zip(gradients, torch.autograd.grad(loss, network.parameters), strict=True):
            assert relative_error(found[row], expected) < 1e-5


@pytest.mark.parametrize("hidden", [(16, 16), (12,), ()])
@pytest.mark.parametrize("size", [1, 4])
def test_loss_is_the_papers_symmetrised_loss(hidden, size):
    """Eq. "ensemble++_loss_app", sum over m and beta = +-1 with zeta = sqrt(M) beta e_m and target y + sqrt(M) beta z_m.

    Averaged over the 2M directions, every term is kept: nothing of the derivation that the agent relies on is used.
    """
    agent = build(hidden=hidden, ensemble_size=size)
    directions = [
        np.array([beta * math.sqrt(size) if index == member else 0.0 for index in range(size)])
        for member in range(size)
        for beta in (1, -1)
    ]
    assert_equals_symmetrised_loss(agent, 0.3, directions, minibatch(agent, 6, size))


@pytest.mark.parametrize("law", ["coordinate", "cube", "sparse"])
def test_loss_is_the_same_for_every_finite_update_law(law):
    """2M = 8, 2^M = 16 and 4 M(M-1)/2 = 24 enumerated directions give one and the same loss and gradient."""
    agent = build()
    assert_equals_symmetrised_loss(agent, 0.3, update_directions(law, 4), minibatch(agent, 6, 4))


def test_the_loss_averages_over_the_minibatch_and_adds_the_members():
    """<h, b> = 2, y = 5; members 0.3 Theta + prior against the targets, one sample, no trunk: 9 + sum of squares."""
    agent = build(seeds=(0,), dimension=1, ensemble_size=2, hidden=())
    base, heads = agent.parameters
    with torch.no_grad():
        heads[:] = 0
        prior = agent.ensemble().clone()
        base[:] = 2.0
        heads[:] = (torch.tensor([[[1.0, -3.0]]]) - prior) / 0.3
    one, targets = torch.ones(1, 1, 1), torch.tensor([[[0.5, 1.0]]])
    # (5 - 2)^2 + (1 - 0.5)^2 + (-3 - 1)^2
    assert agent.loss(one, torch.tensor([[5.0]]), targets).item() == pytest.approx(9 + 0.25 + 16, rel=1e-5)
    # a second sample that is fitted exactly halves the mean
    samples = (torch.ones(1, 2, 1), torch.tensor([[5.0, 2.0]]), torch.tensor([[[0.5, 1.0], [1.0, -3.0]]]))
    assert agent.loss(*samples).item() == pytest.approx(25.25 / 2, rel=1e-5)


def test_ensemble_terms_do_not_train_the_trunk_or_the_base():
    """Paper, "Gradient Computations": a base head of 0 predicts rewards of 0 exactly, so only the heads have a gradient."""
    agent = build()
    features, reward, extra = minibatch(agent, 6, 4)
    with torch.no_grad():
        agent.parameters[-2][:] = 0
    gradients = torch.autograd.grad(agent.loss(features, 0 * reward, extra).sum(), agent.parameters)
    assert [float(gradient.abs().max()) for gradient in gradients[:-1]] == [0.0] * 5
    assert (gradients[-1].abs().amax(dim=(1, 2)) > 0.01).all()


def test_rewards_do_not_train_the_heads():
    """The heads' gradient is that of the perturbations alone."""
    agent = build()
    features, reward, extra = minibatch(agent, 6, 4)
    losses = [agent.loss(features, rewards, extra).sum() for rewards in (reward, -9 * reward)]
    assert losses[0].item() != losses[1].item()
    assert torch.equal(*(torch.autograd.grad(loss, agent.parameters[-1])[0] for loss in losses))


def test_seeds_do_not_share_a_gradient():
    """The gradient of one seed's loss is zero in every other seed's parameters."""
    agent = build(seeds=(0, 1, 2))
    gradients = torch.autograd.grad(agent.loss(*minibatch(agent, 6, 4))[1], agent.parameters)
    for gradient in gradients:
        assert gradient[1].abs().max() > 0
        assert gradient[[0, 2]].abs().max() == 0


def test_score_by_hand():
    """A network of 2 inputs, 2 hidden units and M = 2, coordinate reference, so that zeta is sqrt(2) times +-e_1 or +-e_2.

    W = [[1, -1], [2, 0.5]], c = (0, -1), b = (0.5, -1):
    x = (1, 1): h = relu(3, -1.5) = (3, 0), <h, b> = 1.5;  x = (-2, 4): h = relu(6, 3) = (6, 3), <h, b> = 0.
    members E = 2 Theta = [[1, 0], [-2, 4]] with prior scale 0: <h, E> = (3, 0) and (0, 12).
    """
    agent = build((4,), 2, 2, (2,), reference="coordinate", prior_scale=0.0, posterior_scale=2.0)
    weight, bias, base, heads = agent.parameters
    with torch.no_grad():
        weight[0] = torch.tensor([[1.0, -1.0], [2.0, 0.5]])
        bias[0, 0] = torch.tensor([0.0, -1.0])
        base[0, :, 0] = torch.tensor([0.5, -1.0])
        heads[0] = torch.tensor([[0.5, 0.0], [-1.0, 2.0]])
    features = torch.tensor([[[1.0, 1.0], [-2.0, 4.0]]])
    noise = StepNoise([4], "reference", 2)
    met = set()
    for _ in range(20):
        gaussian = noise.next()[0]
        member = 0 if abs(gaussian[0]) > abs(gaussian[1]) else 1
        sign = 1 if gaussian[member] > 0 else -1
        members = [[3, 0], [0, 12]]
        expected = [mean + sign * math.sqrt(2) * row[member] for mean, row in zip([1.5, 0.0], members, strict=True)]
        scores = agent.score(features).detach().numpy()
        np.testing.assert_allclose(scores, [expected], rtol=1e-6)
        met.add((member, sign))
    assert len(met) == 4


@pytest.mark.parametrize("law", LAWS)
def test_score_is_base_plus_ensemble_times_zeta(law):
    """f(x, zeta) of the reference network in float64, with the zeta of the seed's reference stream."""
    agent = build(seeds=(0, 3), reference=law)
    features, _, _ = minibatch(agent, 6, 4, batch=5)
    noise = StepNoise((0, 3), "reference", 4)
    for _ in range(3):
        gaussian = noise.next()
        scores = agent.score(features)
        for row in range(2):
            g = gaussian[row]
            largest = np.argsort(-np.abs(g))
            zeta = {
                "gaussian": g,
                "sphere": 2 * g / np.linalg.norm(g),
                "cube": np.sign(g),
                "coordinate": np.where(np.arange(4) == largest[0], 2 * np.sign(g), 0),
                "sparse": np.where(np.isin(np.arange(4), largest[:2]), math.sqrt(2) * np.sign(g), 0),
            }[law]
            network = Reference(agent, row, 0.3)
            expected = [network.predict(x, torch.tensor(zeta)).item() for x in features[row].double()]
            np.testing.assert_allclose(scores[row].detach(), expected, rtol=1e-4, atol=1e-6)


def test_act_takes_the_greatest_score_of_one_common_zeta():
    """One zeta per round serves all actions (Algorithm 1): a twin agent's scores name the action."""
    agent, twin = build(seeds=(0, 3)), build(seeds=(0, 3))
    decisions = Decisions(np.random.default_rng(1).standard_normal((2, 12, 6)).astype(np.float32))
    for _ in range(5):
        choice = agent.act(decisions)
        scores = twin.score(torch.from_numpy(decisions.features)).detach().numpy()
        assert choice.index.tolist() == [[int(row.argmax())] for row in scores]
        assert np.array_equal(choice.features[:, 0], decisions.features[[0, 1], choice.index[:, 0]])


@pytest.mark.parametrize("law", LAWS)
def test_perturbations_are_unit_vectors_times_their_scale(law):
    """z = zeta / |zeta| from the seed's perturbation stream, times 0.5 here."""
    agent = build(seeds=(0, 3), perturbation=law)
    noise = StepNoise((0, 3), "perturbation", 4)
    for _ in range(3):
        extra, gaussian = agent.extra(), noise.next()
        np.testing.assert_allclose(np.linalg.norm(extra, axis=1), 0.5, rtol=1e-14)
        if law in ("gaussian", "sphere"):
            np.testing.assert_allclose(extra, 0.5 * gaussian / np.linalg.norm(gaussian, axis=1, keepdims=True), rtol=1e-14)


def test_parameter_counts_are_those_of_the_released_code():
    """d = 100, trunk 2 x 64, M = 8: H + (2M + 1) D = 10,624 + 17 * 64 = 11,712, of which 11,200 are trained."""
    agent = build((0,), 100, 8, (64, 64))
    trained = sum(parameter.numel() for parameter in agent.parameters)
    assert trained == (100 + 1) * 64 + (64 + 1) * 64 + 64 + 64 * 8 == 11_200
    assert agent.ensemble().shape == (1, 64, 8)
    assert trained + agent.ensemble().numel() == 11_712


def test_prior_heads_are_fixed_and_have_unit_rows():
    """ensemble() = posterior_scale Theta + prior_scale Theta_0; rows of Theta_0 have norm 1 and outlive training."""
    agent = build(warm_up=0, learning_rate=0.01)

    def prior() -> torch.Tensor:
        return agent.ensemble().detach() - 0.3 * agent.parameters[-1].detach()

    before, heads = prior(), agent.parameters[-1].detach().clone()
    np.testing.assert_allclose(before.norm(dim=-1), 0.7, rtol=1e-5)
    decisions = Decisions(np.random.default_rng(1).standard_normal((2, 12, 6)).astype(np.float32))
    for _ in range(20):
        agent.update(agent.act(decisions), np.ones((2, 1)))
    assert (agent.parameters[-1] - heads).abs().max() > 0.05
    torch.testing.assert_close(prior(), before, rtol=0, atol=1e-6)


def test_chains_name_the_laws():
    agent = build(reference="cube", perturbation="sparse")
    assert agent.chains == (("cube", "sparse"),)
    assert agent.seeds == (0, 1)
