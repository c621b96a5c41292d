"""What Ensemble+ and the bootstrapped ensemble share: members on one trunk, and their loss by a literal loop."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from member_agents import AGENTS, LOSSES, Reference, bootstrap, kept, minibatch, plus
from scipy import stats

from ensemblepp.agents.neural import mlp
from ensemblepp.agents.neural.member_heads import Members
from ensemblepp.bandit import Choice, Decisions
from ensemblepp.randomness.streams import generator

torch.set_num_threads(1)


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
def test_the_member_of_a_round_is_drawn_uniformly(source):
    """Of 5, in 2 seeds x 10,000 rounds: chi-square, and a round's member says nothing of the next one's or the other seed's."""
    if source == "member":
        onehot = Members((0, 1), 5)(10_000)
    else:
        agent = bootstrap(ensemble_size=5)
        agent.load(10_000)
        onehot = agent._draws["reference"].numpy()
    assert (np.sort(onehot, axis=2) == [0, 0, 0, 0, 1]).all()
    members = onehot.argmax(axis=2)
    assert stats.chisquare(np.bincount(members.ravel(), minlength=5)).pvalue > 1e-3
    for first, second in ((members[:, 1:], members[:, :-1]), (members[0], members[1])):
        table = np.zeros((5, 5))
        np.add.at(table, (first.ravel(), second.ravel()), 1)
        assert stats.chi2_contingency(table).pvalue > 1e-3


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


def test_the_trunk_starts_as_ensemblepp_s():
    """The same draws of the stream "agent": trunks of all agents start alike at a seed."""
    for build in (plus, bootstrap):
        agent = build(seeds=(7,))
        layers = mlp.init_layers([generator(7, "agent")], [6, 16, 16])
        for layer, (weight, bias) in enumerate(layers):
            np.testing.assert_allclose(agent.parameters[f"w{layer}"].detach(), weight, rtol=1e-6)
            np.testing.assert_allclose(agent.parameters[f"b{layer}"].detach(), bias, rtol=1e-6)


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
