"""EpiNet: its scores, loss and gradient against the released code's network, written out index by index in float64."""

import itertools

import numpy as np
import pytest
import torch
from neural_pools import TRAINING, pool

from ensemblepp.agents.neural import base as neural
from ensemblepp.agents.neural import mlp
from ensemblepp.agents.neural.base import CHUNK, MAX_DRAWN
from ensemblepp.agents.neural.epinet import EpiNet
from ensemblepp.agents.neural.greedy import Greedy
from ensemblepp.engines.choice import simulate
from ensemblepp.randomness.draws import Normals
from ensemblepp.randomness.streams import GaussianRows, generator

torch.set_num_threads(1)

SCALES = {"prior_scale": 0.7, "posterior_scale": 0.3, "perturbation_scale": 0.1}

#: loss, double_softmax
CASES = [("squared", False), ("cross_entropy", False), ("cross_entropy", True)]


def build(seeds=(0, 1), dimension=6, size=4, hidden=(16, 8), **changes) -> EpiNet:
    options = TRAINING | SCALES | {"horizon": 200, "index_samples": 3, "double_softmax": False} | changes
    return EpiNet(seeds, dimension=dimension, ensemble_size=size, hidden=hidden, **options)


def shaken(agent: EpiNet) -> EpiNet:
    """The agent with every trained parameter drawn anew, biases too."""
    source = np.random.default_rng(0)
    with torch.no_grad():
        for parameter in agent.parameters.values():
            parameter.copy_(torch.from_numpy(0.5 * source.standard_normal(parameter.shape)))
    return agent


def rows(agent: EpiNet, count: int) -> torch.Tensor:
    """Features (seeds, count, d)."""
    shape = (len(agent.seeds), count, agent.dimension)
    return torch.from_numpy(np.random.default_rng(1).standard_normal(shape).astype(np.float32))


class Literal:
    """The network of one seed: concatenated inputs, one prior network after another, all classes, one row at a time."""

    def __init__(self, agent: EpiNet, row: int) -> None:
        own = {name: value.detach()[row].double().requires_grad_() for name, value in agent.parameters.items()}
        self.own, self.size, self.classes = own, agent.ensemble_size, agent.classes
        self.depth = len(agent.hidden)
        self.first = torch.cat([own[name] for name in ("from_features", "from_hidden", "from_index")])
        source = [generator(agent.seeds[row], "agent/prior")]
        widths = [agent.dimension, 5, 5, agent.classes]
        self.priors = [mlp.init_layers(source, widths, "xavier") for _ in range(agent.ensemble_size)]

    def base(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(hidden units, outputs of the base)."""
        for layer in range(self.depth):
            x = torch.relu(x @ self.own[f"w{layer}"] + self.own[f"b{layer}"][0])
        return x, x @ self.own["base"] + self.own["bias"][0]

    def outputs(self, x: torch.Tensor, zeta: torch.Tensor) -> torch.Tensor:
        """f(x, zeta), (classes,)."""
        own, (hidden, base) = self.own, self.base(x)
        units = torch.relu(torch.cat([x, hidden.detach(), zeta]) @ self.first + own["in_bias"][0])
        units = torch.relu(units @ own["middle"] + own["middle_bias"][0])
        epinet = (units @ own["out"] + own["out_bias"][0]).view(self.size, self.classes)
        prior = []
        for network in self.priors:
            value = x
            for place, (weight, bias) in enumerate(network):
                value = value @ torch.from_numpy(weight[0]) + torch.from_numpy(bias[0, 0])
                value = value if place == 2 else torch.relu(value)
            prior.append(value)
        return base + SCALES["posterior_scale"] * zeta @ epinet + SCALES["prior_scale"] * zeta @ torch.stack(prior)


@pytest.mark.parametrize("hidden", [(16, 8), ()])
@pytest.mark.parametrize(("loss", "double"), CASES)
def test_loss_and_gradient_are_those_of_the_network_written_out(hidden, loss, double):
    """Mean over 5 samples and 3 indices each, autograd in float64: relative error below 1e-5 in every parameter.

    The samples go through the buffer's extra numbers, so z and the prior do too; the second of two gradient steps.
    """
    options = {"loss": loss, "double_softmax": double, "batch_size": 5, "gradient_steps": 2}
    agent = shaken(build(hidden=hidden, **options))
    features, kept, z = rows(agent, 5), [], []
    reward = torch.tensor(np.random.default_rng(2).integers(0, 2, (2, 5)), dtype=torch.float32)
    agent.load(6)
    for sample in range(5):
        kept.append(agent.extra(features[:, [sample]]))
        z.append(agent.now("perturbation") if loss == "squared" else torch.zeros(2, 4))
        agent.end_round()
    losses = agent.loss_of(features, reward, torch.stack(kept, dim=1), 1)
    agent.flat.grad.zero_()
    losses.sum().backward()
    indices = Normals((0, 1), "minibatch/indices", (2, 4, 3, 5))(6)[:, 5, 1]
    for row in range(2):
        network, total = Literal(agent, row), 0.0
        for sample, index in itertools.product(range(5), range(3)):
            zeta = torch.from_numpy(indices[row, :, index, sample]).double()
            found = network.outputs(features[row, sample].double(), zeta)
            if loss == "squared":
                total = total + (reward[row, sample] + zeta @ z[sample][row].double() - found[0]) ** 2
            else:
                found = torch.softmax(found, dim=0) if double else found
                total = total + torch.nn.functional.cross_entropy(found, reward[row, sample].long())
        assert losses[row].item() == pytest.approx(total.item() / 15, rel=1e-5)
        gradients = torch.autograd.grad(total / 15, list(network.own.values()))
        for name, expected in zip(network.own, gradients, strict=True):
            found = agent.parameters[name].grad[row].double()
            assert (found - expected).norm() <= 1e-5 * expected.norm(), name
            assert expected.norm() > 0


@pytest.mark.parametrize("hidden", [(16, 8), ()])
@pytest.mark.parametrize(("loss", "double"), CASES)
def test_score_is_the_network_at_the_round_s_one_index(hidden, loss, double):
    """The only output, class 1's logit, or a number that grows with class 1's probability; the mean leaves zeta's part out."""
    agent = shaken(build(hidden=hidden, loss=loss, double_softmax=double))
    features = rows(agent, 7)
    zeta = np.stack([GaussianRows(seed, "reference", 4).take(3) for seed in agent.seeds])
    agent.load(3)
    for round_ in range(3):
        value, mean = (part.detach().numpy() for part in agent.score(features))
        for row in range(2):
            network = Literal(agent, row)
            expected = [network.outputs(x, torch.from_numpy(zeta[row, round_])) for x in features[row].double()]
            bases = [network.base(x)[1] for x in features[row].double()]
            for found, wanted in ((value[row], expected), (mean[row], bases)):
                wanted = torch.stack(wanted).detach()
                # the inverse of the logistic function grows with the probability
                wanted = torch.logit(torch.softmax(wanted, dim=1)[:, 1]) if double else wanted[:, -1]
                np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
        agent.end_round()


def test_spread_is_over_fixed_indices_and_changes_no_draws():
    """Standard deviation of the written-out network over the 32 indices of the stream "agent/probes"; the same twice."""
    agent = shaken(build(loss="cross_entropy"))
    features = rows(agent, 3)
    probes = Normals((0, 1), "agent/probes", (4, 32, 1))(1)[:, 0, :, :, 0]
    agent.load(1)
    before = agent.score(features).value
    spread = agent.spread(features).detach().numpy()
    for row in range(2):
        network = Literal(agent, row)
        values = [
            [network.outputs(x, torch.from_numpy(zeta).double())[1].item() for zeta in probes[row].T]
            for x in features[row].double()
        ]
        np.testing.assert_allclose(spread[row], np.std(values, axis=1, ddof=1), rtol=1e-4)
    assert np.array_equal(agent.spread(features).detach(), spread)
    assert torch.equal(agent.score(features).value, before)


def test_the_epinet_does_not_train_the_trunk_through_its_inputs():
    """At perfect base weights of zero, so that h reaches the loss as an input of the epinet alone."""
    agent = shaken(build(batch_size=5))
    with torch.no_grad():
        agent.parameters["base"].zero_()
    agent.load(1)
    agent.flat.grad.zero_()
    agent.loss_of(rows(agent, 5), torch.ones(2, 5), torch.ones(2, 5, 4), 0).sum().backward()
    largest = {name: float(value.grad.abs().max()) for name, value in agent.parameters.items()}
    assert {name for name, value in largest.items() if value == 0} == {"w0", "b0", "w1", "b1"}


@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
def test_the_start_is_greedy_s_with_a_bias_of_zero(loss):
    agent = build(loss=loss)
    greedy = Greedy((0, 1), dimension=6, horizon=200, hidden=(16, 8), loss=loss, **TRAINING)
    for name, parameter in greedy.parameters.items():
        assert torch.equal(agent.parameters[name], parameter)
    for name in ("bias", "in_bias", "middle_bias", "out_bias"):
        assert not agent.parameters[name].any()


def test_epinet_weights_are_xavier_normal_of_the_whole_input():
    """100 seeds: variance 2 / (fan_in + fan_out) with fan_in 6 + 8 + 4 in all parts of the first layer."""
    parameters = build(seeds=range(100)).parameters
    for name, fans in {"from_features": 33, "from_hidden": 33, "from_index": 33, "middle": 30, "out": 19}.items():
        values = parameters[name].detach().numpy()
        assert abs(values.var() * fans / 2 - 1) < 5 * np.sqrt(2 / values.size)


def test_smaller_ensembles_have_the_first_priors():
    small, large = build(size=2), build(size=5)
    features = rows(small, 7)
    torch.testing.assert_close(small.prior(features), large.prior(features)[..., :2])


@pytest.mark.parametrize(
    ("dimension", "loss", "size", "counts"),
    [
        (100, "squared", 2, (14_548, 13_466)),
        (100, "squared", 8, (17_980, 13_652)),
        (100, "squared", 64, (50_012, 15_388)),
        (100, "cross_entropy", 8, (18_221, 13_845)),
        (100, "cross_entropy", 32, (32_477, 14_973)),
        (63, "squared", 8, (13_577, 10_729)),
        (44, "squared", 8, (11_316, 9_228)),
    ],
)
def test_parameter_counts_are_those_of_the_released_code(dimension, loss, size, counts):
    """With a 64-64 trunk, counted on instances of that code: (all, trainable)."""
    assert build((0,), dimension, size, (64, 64), loss=loss).parameter_counts() == counts


@pytest.mark.parametrize("kind", ["quadratic", "neural"])
def test_rounds_are_the_same_however_they_are_played(kind, monkeypatch):
    """Whole, by `act` and `update`, with one round's numbers drawn at once, each seed alone: 60 rounds, 100 gradient steps."""

    def play(seeds, engine=None):
        loss = "cross_entropy" if kind == "neural" else "squared"
        agent = build(seeds, hidden=(16,), horizon=60, loss=loss, gradient_steps=2)
        return agent, simulate(pool(kind, seeds), agent, 60, engine=engine).action

    agent, actions = play((0, 5))
    assert len(np.unique(actions)) > 1
    others = {"round by round": play((0, 5), engine="step_by_step"), "alone": play((5,))}
    monkeypatch.setattr(neural, "MAX_DRAWN", 1)
    others["drawn singly"] = play((0, 5))
    assert [other.chunk for other, _ in others.values()] == [CHUNK, CHUNK, 1]
    for other, found in others.values():
        row = slice(1, 2) if len(found) == 1 else slice(None)
        assert np.array_equal(found, actions[row])
        for name, parameter in other.parameters.items():
            torch.testing.assert_close(parameter, agent.parameters[name][row], rtol=0, atol=1e-5)


def test_rounds_drawn_at_once_are_bounded():
    """10 seeds, batches of 128, 16 indices, M = 8: 64 rounds with one gradient step each, one with 100."""
    for steps, chunk in ((1, 64), (4, 25), (100, 1)):
        options = {"batch_size": 128, "index_samples": 16, "gradient_steps": steps}
        assert build(seeds=range(10), size=8, **options).chunk == chunk
        assert chunk == 1 or chunk * 10 * steps * 128 * 16 * 8 <= MAX_DRAWN
