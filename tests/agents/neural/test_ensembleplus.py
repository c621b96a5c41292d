"""Ensemble+ and the bootstrapped ensemble: members on one trunk, their loss by a literal loop, priors, noise and weights."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from ensemblepp.agents.neural import mlp
from ensemblepp.agents.neural.bootstrap import BootstrappedEnsemble, Coins
from ensemblepp.agents.neural.ensembleplus import EnsemblePlus
from ensemblepp.agents.neural.member_heads import Members
from ensemblepp.bandit import Choice, Decisions
from ensemblepp.randomness.streams import GaussianRows, generator

torch.set_num_threads(1)

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

#: Standard errors that a Monte Carlo mean may be off; 5 are exceeded by chance once in 1.7 million comparisons.
Z = 5.0


def plus(seeds=(0, 1), dimension=6, ensemble_size=4, hidden=(16, 16), **changes) -> EnsemblePlus:
    scales = {"prior_scale": 0.7, "posterior_scale": 0.3, "perturbation_scale": 0.5, "equal_noise": True}
    return EnsemblePlus(seeds, dimension=dimension, ensemble_size=ensemble_size, hidden=hidden, **TRAINING | scales | changes)


def bootstrap(seeds=(0, 1), dimension=6, ensemble_size=4, hidden=(16, 16), **changes) -> BootstrappedEnsemble:
    return BootstrappedEnsemble(seeds, dimension=dimension, ensemble_size=ensemble_size, hidden=hidden, **TRAINING | changes)


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


# ---------------------------------------------------------------------------------------------------------- forward


def test_forward_by_hand():
    """2 inputs, 2 hidden units, 2 members of one class, posterior scale 2, prior scale 3, acting member by member.

    W = [[1, -1], [2, 0.5]], c = (0, -1): h(1, 1) = (3, 0), h(-2, 4) = (6, 3). Heads (1, 2) and (0, -1), biases 0.5 and 0:
    trained 2 * (3 + 0.5) = 7 and 0; 2 * (6 + 6 + 0.5) = 25 and -6.
    The prior's trunk is the identity without bias: h0 = (1, 1), (0, 4). Its heads (1, 0), (1, 1): 3 * 1, 3 * 2; 0, 12.
    """
    agent = plus((4,), 2, 2, (2,), posterior_scale=2.0)
    with torch.no_grad():
        agent.parameters["w0"][0] = torch.tensor([[1.0, -1.0], [2.0, 0.5]])
        agent.parameters["b0"][0, 0] = torch.tensor([0.0, -1.0])
        agent.parameters["heads"][0] = torch.tensor([[1.0, 0.0], [2.0, -1.0]])
        agent.parameters["bias"][0, 0] = torch.tensor([0.5, 0.0])
    agent._prior_layers = [(torch.eye(2)[None], torch.zeros(1, 1, 2))]
    agent._prior_heads = 3 * torch.tensor([[[1.0, 1.0], [0.0, 1.0]]])
    features = torch.tensor([[[1.0, 1.0], [-2.0, 4.0]]])
    expected = np.array([[10.0, 6.0], [25.0, 6.0]])
    met = set()
    agent.load(20)
    with torch.no_grad():
        assert agent.outputs(features).tolist() == [[[7, 0], [25, -6]]]
        assert agent.offsets(features).tolist() == [[[3, 6], [0, 12]]]
        # spread over members: half of their distance; the mean of both is what would be chosen without exploring
        assert agent.spread(features).tolist() == [[2, 9.5]]
        for _ in range(20):
            member = int(agent.now("reference").argmax())
            value, mean = agent.score(features)
            assert value.tolist() == [expected[:, member].tolist()]
            assert mean.tolist() == [[8, 15.5]]
            met.add(member)
            agent.end_round()
    assert met == {0, 1}


@pytest.mark.parametrize("hidden", [(16, 16), (5,), ()])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", AGENTS)
def test_outputs_are_those_of_members_one_by_one(kind, loss, hidden):
    """Values, means and spreads of 5 actions against the literal float64 members; of two logits the second one counts."""
    build, *scales = AGENTS[kind]
    agent = build(seeds=(0, 3), hidden=hidden, loss=loss)
    with torch.no_grad():
        agent.parameters["bias"].copy_(torch.randn(agent.parameters["bias"].shape, generator=torch.manual_seed(0)))
    features = minibatch(agent, 5)[0]
    agent.load(3)
    for _ in range(3):
        value, mean = agent.score(features)
        for row in range(2):
            network = Reference(agent, row, *scales)
            outputs = np.array([[network.predict(x, m)[-1].item() for m in range(4)] for x in features[row].double()])
            member = int(agent.now("reference")[row].argmax())
            np.testing.assert_allclose(value[row].detach(), outputs[:, member], rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(mean[row].detach(), outputs.mean(axis=1), rtol=1e-4, atol=1e-6)
            np.testing.assert_allclose(agent.spread(features)[row].detach(), outputs.std(axis=1), rtol=1e-4)
        agent.end_round()


@pytest.mark.parametrize("kind", AGENTS)
def test_any_class_takes_the_greatest_logit(kind):
    """As the released code does: the greatest of all actions and classes decides, against the literal members.

    It is another choice than by the second logit in a part of the rounds.
    """
    build, *scales = AGENTS[kind]
    agent = build(seeds=(2,), loss="cross_entropy", any_class=True)
    plain = build(seeds=(2,), loss="cross_entropy")
    network = Reference(agent, 0, *scales)
    rng = np.random.default_rng(0)
    others = 0
    for _ in range(40):
        decisions = Decisions(rng.standard_normal((1, 5, 6)).astype(np.float32))
        choices = [player.act(decisions).index[0, 0] for player in (agent, plain)]
        member = int(agent.now("reference")[0].argmax())
        logits = np.array([network.predict(torch.tensor(x).double(), member).tolist() for x in decisions.features[0]])
        assert choices == [logits.max(axis=1).argmax(), logits[:, 1].argmax()]
        others += choices[0] != choices[1]
        for player in (agent, plain):
            player.end_round()
    assert 5 < others < 35


@pytest.mark.parametrize("source", ["member", "agent"])
def test_the_acting_member_is_drawn_uniformly(source):
    """Of 5, in 2 seeds x 10,000 rounds: chi-square, and a round's member does not tell the next one's or the other seed's."""
    if source == "member":
        onehot = Members((0, 1), 5)(10_000)
    else:
        agent = bootstrap(ensemble_size=5)
        agent.load(10_000)
        onehot = agent._ahead["reference"].numpy()
    assert (np.sort(onehot, axis=2) == [0, 0, 0, 0, 1]).all()
    members = onehot.argmax(axis=2)
    assert stats.chisquare(np.bincount(members.ravel(), minlength=5)).pvalue > 1e-3
    for first, second in ((members[:, 1:], members[:, :-1]), (members[0], members[1])):
        table = np.zeros((5, 5))
        np.add.at(table, (first.ravel(), second.ravel()), 1)
        assert stats.chi2_contingency(table).pvalue > 1e-3


# -------------------------------------------------------------------------------------------------------------- loss


@pytest.mark.parametrize("hidden", [(16, 16), (5,), ()])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", AGENTS)
def test_loss_and_gradient_are_those_of_a_loop_over_members(kind, loss, hidden):
    """Mean over samples and members, float64: relative error of loss and every gradient below 1e-5.

    Ensemble+: (y + z_m - f_m)^2, or -log softmax of f_m at the class y; bootstrap: w_m times the same without z.
    """
    build, *scales = AGENTS[kind]
    agent = build(hidden=hidden, loss=loss)
    features, reward, own = minibatch(agent)
    losses = agent.loss_of(features, reward, kept(agent, features, own), 0)
    gradients = torch.autograd.grad(losses.sum(), list(agent.parameters.values()))
    for row in range(2):
        network = Reference(agent, row, *scales)
        total = torch.zeros((), dtype=torch.float64)
        for sample in range(9):
            for m in range(4):
                outputs = network.predict(features[row, sample].double(), m)
                y, number = reward[row, sample].double(), own[row, sample, m].double()
                weight, perturbation = (number, 0) if kind == "bootstrap" else (1, number)
                if loss == "squared":
                    total = total + weight * (y + perturbation - outputs[0]) ** 2
                else:
                    total = total + weight * (torch.logsumexp(outputs, dim=0) - outputs[int(y)])
        expected_loss = total / 9 / 4
        assert losses[row].item() == pytest.approx(expected_loss.item(), rel=1e-5)
        expected = torch.autograd.grad(expected_loss, list(network.parameters.values()))
        for name, found, wanted in zip(agent.parameters, gradients, expected, strict=True):
            assert (found[row] - wanted).norm() < 1e-5 * wanted.norm(), name


@pytest.mark.parametrize("kind", AGENTS)
def test_members_train_the_trunk(kind):
    """Unlike those of Ensemble++: every member's loss has a gradient in the trunk, and none in the other members' heads."""
    agent = AGENTS[kind][0]()
    features, reward, own = minibatch(agent)
    if kind == "bootstrap":
        own = torch.zeros_like(own)
        own[..., 2] = 2.0
    gradients = torch.autograd.grad(
        agent.loss_of(features, reward, kept(agent, features, own), 0).sum(), list(agent.parameters.values())
    )
    found = dict(zip(agent.parameters, gradients, strict=True))
    assert found["w0"].abs().max() > 0.001
    touched = found["heads"].abs().amax(dim=(0, 1)) > 0
    assert touched.tolist() == ([False, False, True, False] if kind == "bootstrap" else [True] * 4)


def test_seeds_do_not_share_a_gradient():
    """The gradient of one seed's loss is zero in every other seed's parameters."""
    for build in (plus, bootstrap):
        agent = build(seeds=(0, 1, 2))
        features, reward, own = minibatch(agent)
        loss = agent.loss_of(features, reward, kept(agent, features, own), 0)[1]
        for gradient in torch.autograd.grad(loss, list(agent.parameters.values())):
            assert gradient[1].abs().max() > 0
            assert gradient[[0, 2]].abs().max() == 0


# ------------------------------------------------------------------------------------------------ priors and targets


@pytest.mark.parametrize("loss", LOSSES)
def test_priors_are_frozen(loss):
    """40 rounds of training move trunk, heads and biases, and no output of the prior, however the trunk's features change."""
    agent = plus(loss=loss)
    features = minibatch(agent)[0]
    before, start = agent.offsets(features).clone(), agent.flat.clone()
    rng = np.random.default_rng(0)
    for _ in range(40):
        choice = agent.act(Decisions(rng.standard_normal((2, 5, 6)).astype(np.float32)))
        agent.update(choice, (choice.features.sum(axis=2) > 0).astype(float))
    assert torch.equal(agent.offsets(features), before)
    assert (agent.flat - start).abs().max() > 0.1
    assert not before.requires_grad
    assert before.std() > 0.05


def test_trained_part_starts_apart_from_the_prior():
    """Streams of their own: the frozen trunk is not the trained one; members differ; biases start at 0."""
    agent = plus()
    weight, _ = agent._prior_layers[0]
    assert not torch.isclose(weight, agent.parameters["w0"]).any()
    assert not torch.isclose(agent._prior_heads, agent.parameters["heads"]).any()
    assert not agent.parameters["bias"].any()
    heads = agent.parameters["heads"].detach()
    assert not torch.isclose(heads[..., :1], heads[..., 1:]).any()


def test_the_trunk_starts_as_ensemblepp_s():
    """The same draws of the stream "agent": trunks of all agents start alike at a seed."""
    for build in (plus, bootstrap):
        agent = build(seeds=(7,))
        layers = mlp.init_layers([generator(7, "agent")], [6, 16, 16])
        for layer, (weight, bias) in enumerate(layers):
            np.testing.assert_allclose(agent.parameters[f"w{layer}"].detach(), weight, rtol=1e-6)
            np.testing.assert_allclose(agent.parameters[f"b{layer}"].detach(), bias, rtol=1e-6)


@pytest.mark.parametrize("size", [2, 8])
@pytest.mark.parametrize("equal", [True, False])
def test_perturbations_have_the_standard_deviation_that_is_asked_for(equal, size):
    """Of one member: 0.5 with equal noise, the length of all of them being 0.5 sqrt(M); 0.5 / sqrt(M) and normal without.

    2 seeds x 20,000 rounds; with equal noise the vector is that of Ensemble++ times sqrt(M).
    """
    agent = plus(ensemble_size=size, equal_noise=equal)
    drawn = agent.sources["perturbation"](20_000).astype(float)
    assert drawn.shape == (2, 20_000, size)
    expected = 0.5 if equal else 0.5 / math.sqrt(size)
    error = np.sqrt(np.square(drawn).var(axis=1)) / math.sqrt(20_000)
    assert (np.abs(np.square(drawn).mean(axis=1) - expected**2) < Z * error).all()
    gaussian = np.stack([GaussianRows(seed, "perturbation", size).take(20_000) for seed in (0, 1)])
    if equal:
        np.testing.assert_allclose(np.linalg.norm(drawn, axis=2), 0.5 * math.sqrt(size), rtol=1e-6)
        unit = gaussian / np.linalg.norm(gaussian, axis=2, keepdims=True)
        np.testing.assert_allclose(drawn, 0.5 * math.sqrt(size) * unit, rtol=1e-5, atol=1e-7)
    else:
        np.testing.assert_allclose(drawn, 0.5 * gaussian / math.sqrt(size), rtol=1e-5, atol=1e-7)


def test_bootstrap_weights_are_zero_or_two():
    """With probability 1/2 each, for every member and round: 2 seeds x 10,000 rounds x 3 members; mean 1, no correlation."""
    weights = Coins((0, 1), 3)(10_000)
    assert weights.shape == (2, 10_000, 3)
    assert set(np.unique(weights)) == {0.0, 2.0}
    coins = weights.transpose(0, 2, 1).reshape(6, 10_000) - 1
    assert (np.abs(coins.mean(axis=1)) < Z / 100).all()
    assert np.abs(np.corrcoef(coins) - np.eye(6)).max() < Z / 100
    assert np.abs((coins[:, 1:] * coins[:, :-1]).mean(axis=1)).max() < Z / 100


@pytest.mark.parametrize("kind", AGENTS)
def test_a_sample_keeps_its_numbers(kind):
    """What the loss is given beside a sample is what its round drew, and the prior's outputs at its features."""
    build, *_ = AGENTS[kind]
    agent, seen = build(dimension=1, hidden=(4,), buffer_capacity=5, warm_up=0), []
    original = agent.loss_of
    agent.loss_of = lambda *given: (seen.append([part.clone() for part in given[:3]]), original(*given))[1]
    name = "weights" if kind == "bootstrap" else "perturbation"
    drawn = build(dimension=1, hidden=(4,)).sources[name](12)
    for round_ in range(12):
        features = np.full((2, 1, 1), round_, dtype=np.float32)
        agent.update(Choice(np.zeros((2, 1), dtype=int), features), np.zeros((2, 1)))
    assert len(seen) == 24
    for features, _, extra in seen:
        assert len(np.unique(features)) <= 5
        for seed in range(2):
            rounds = features[seed, :, 0].numpy().astype(int)
            np.testing.assert_allclose(extra[seed, :, :4], drawn[seed, rounds], rtol=1e-6)
        if kind == "ensemble+":
            torch.testing.assert_close(extra[..., 4:], agent.offsets(features), rtol=1e-5, atol=1e-6)


def test_a_member_that_never_sees_a_sample_stays():
    """Weights that are all 0 for member 1, lambda = 0: its head and bias are where they were, the others' are not."""
    agent = bootstrap(weight_decay=0.0, warm_up=0)
    agent.sources["weights"] = lambda rounds: np.tile(np.float32([2, 0, 2, 2]), (2, rounds, 1))
    start = {name: value.detach().clone() for name, value in agent.parameters.items()}
    rng = np.random.default_rng(0)
    for _ in range(10):
        choice = agent.act(Decisions(rng.standard_normal((2, 5, 6)).astype(np.float32)))
        agent.update(choice, np.ones((2, 1)))
    for name in ("heads", "bias"):
        moved = (agent.parameters[name] - start[name]).detach().abs().amax(dim=(0, 1)) > 0
        assert moved.tolist() == [True, False, True, True]


# -------------------------------------------------------------------------------------------------------- the counts

#: (d, classes, M): total and trained parameters of Ensemble+, 2 H + 2 M (D + 1) C in paper and released code.
COUNTS = {
    (100, 1, 2): (21_508, 10_754),
    (100, 1, 4): (21_768, 10_884),
    (100, 1, 8): (22_288, 11_144),
    (100, 1, 16): (23_328, 11_664),
    (100, 1, 32): (25_408, 12_704),
    (100, 1, 64): (29_568, 14_784),
    (100, 2, 8): (23_328, 11_664),
    (100, 2, 32): (29_568, 14_784),
    (63, 1, 8): (17_552, 8_776),
    (44, 1, 8): (15_120, 7_560),
}


@pytest.mark.parametrize(("dimension", "classes", "size"), COUNTS)
def test_parameter_counts_are_those_of_the_paper(dimension, classes, size):
    """Trunk 2 x 64: half of all parameters are the frozen prior, biases of its heads included; bootstrap has no such half."""
    loss = LOSSES[classes - 1]
    agent = plus((0,), dimension, size, (64, 64), loss=loss)
    assert agent.parameter_counts() == COUNTS[dimension, classes, size]
    trained = COUNTS[dimension, classes, size][1]
    assert trained == (dimension + 1) * 64 + 65 * 64 + size * 65 * classes
    assert sum(parameter[0].numel() for parameter in agent.parameters.values()) == trained
    assert bootstrap((0,), dimension, size, (64, 64), loss=loss).parameter_counts() == (trained, trained)
