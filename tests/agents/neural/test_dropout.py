"""MC dropout: its units against a network written out in float64, and the moments of what it samples."""

import numpy as np
import pytest
import torch
from neural_pools import TRAINING, pool

from ensemblepp.agents.neural import base as neural
from ensemblepp.agents.neural.dropout import PROBES, Dropout
from ensemblepp.agents.neural.greedy import Greedy
from ensemblepp.engines.choice import simulate
from ensemblepp.randomness.draws import Uniforms

torch.set_num_threads(1)

RATE = 0.3


def build(seeds=(0, 1), hidden=(16, 8), **changes) -> Dropout:
    return Dropout(seeds, hidden=hidden, rate=RATE, **TRAINING | {"dimension": 6, "horizon": 200} | changes)


def rows(count: int, seeds: int = 2) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(1).standard_normal((seeds, count, 6)).astype(np.float32))


class Literal:
    """The network of one seed, float64; what is not kept is set to zero unit by unit."""

    def __init__(self, agent: Dropout, row: int) -> None:
        self.own = {name: value.detach()[row].double().requires_grad_() for name, value in agent.parameters.items()}
        self.hidden = agent.hidden

    def outputs(self, x: torch.Tensor, uniforms: np.ndarray) -> torch.Tensor:
        """(d,) and (units,) to (classes,)."""
        kept = torch.tensor(
            [1 / (1 - RATE) if uniform >= np.float32(RATE) else 0.0 for uniform in uniforms], dtype=torch.float64
        )
        if not self.hidden:
            x = x * kept
        start = 0
        for layer, width in enumerate(self.hidden):
            x = torch.relu(x @ self.own[f"w{layer}"] + self.own[f"b{layer}"][0]) * kept[start : start + width]
            start += width
        return x @ self.own["base"]


@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
@pytest.mark.parametrize("hidden", [(16, 8), ()])
def test_loss_and_gradient_are_those_of_the_network_written_out(hidden, loss):
    """Every sample of the second of two gradient steps has units of its own: relative error below 1e-5."""
    agent = build(hidden=hidden, loss=loss, gradient_steps=2, batch_size=9)
    features = rows(9)
    reward = torch.tensor(np.random.default_rng(2).integers(0, 2, (2, 9)), dtype=torch.float32)
    agent.load(1)
    agent.flat.grad.zero_()
    losses = agent.loss_of(features, reward, torch.empty(2, 9, 0), 1)
    losses.sum().backward()
    units = sum(hidden) or 6
    uniforms = Uniforms((0, 1), "minibatch/units", (2, 9, units))(1)[:, 0, 1]
    assert len({tuple(row) for row in uniforms[0] >= RATE}) > 5
    for row in range(2):
        network = Literal(agent, row)
        outputs = torch.stack([network.outputs(x, u) for x, u in zip(features[row].double(), uniforms[row], strict=True)])
        if loss == "squared":
            expected = torch.nn.functional.mse_loss(outputs[:, 0], reward[row].double())
        else:
            expected = torch.nn.functional.cross_entropy(outputs, reward[row].long())
        assert losses[row].item() == pytest.approx(expected.item(), rel=1e-5)
        gradients = torch.autograd.grad(expected, list(network.own.values()))
        for name, wanted in zip(network.own, gradients, strict=True):
            assert (agent.parameters[name].grad[row] - wanted).norm() <= 1e-5 * wanted.norm(), name


@pytest.mark.parametrize("hidden", [(16, 8), ()])
def test_a_round_s_units_are_shared_by_all_actions(hidden):
    """Scores are those of one network a round, written out; the mean has all units, and is Greedy's."""
    agent = build(hidden=hidden, loss="cross_entropy")
    greedy = Greedy((0, 1), dimension=6, horizon=200, hidden=hidden, loss="cross_entropy", **TRAINING)
    features = rows(7)
    uniforms = Uniforms((0, 1), "reference/units", (1, sum(hidden) or 6))(3)
    agent.load(3)
    for round_ in range(3):
        value, mean = agent.score(features)
        for row in range(2):
            network = Literal(agent, row)
            expected = [network.outputs(x, uniforms[row, round_, 0])[1].item() for x in features[row].double()]
            np.testing.assert_allclose(value[row].detach(), expected, rtol=1e-4, atol=1e-6)
        assert torch.equal(mean, greedy.score(features).mean)
        agent.end_round()


def test_without_hidden_layers_the_mean_is_the_linear_prediction():
    """20,000 rounds: mean <x, w> and variance rate / (1 - rate) sum_i (x_i w_i)^2, within 5 standard errors."""
    agent = build((0,), hidden=())
    features = rows(4, seeds=1)
    uniforms = torch.from_numpy(np.random.default_rng(0).random((1, 20_000, 6), dtype=np.float32))
    weights = agent.parameters["base"].detach()
    thinned = agent.thinned(features.repeat_interleave(20_000, dim=1), uniforms.repeat(1, 4, 1))
    samples = (thinned @ weights).view(4, 20_000).double().numpy()
    terms = (features[0] * weights[0, :, 0]).double().numpy()
    variance = RATE / (1 - RATE) * (terms**2).sum(axis=1)
    assert (np.abs(samples.mean(axis=1) - terms.sum(axis=1)) < 5 * np.sqrt(variance / 20_000)).all()
    # kurtosis is at most that of one unit, below 6
    np.testing.assert_allclose(samples.var(axis=1), variance, rtol=5 * np.sqrt(5 / 20_000))


def test_units_are_dropped_at_the_rate_in_every_layer():
    """All units positive: 0 or 1 / (1 - rate) of themselves; 5 standard errors of 20,000 coins for each of 8 units."""
    agent = build((0,), hidden=(16, 8))
    with torch.no_grad():
        for name, value in agent.parameters.items():
            value.fill_(1.0 if name.startswith("b") else 0.0)
    uniforms = torch.from_numpy(np.random.default_rng(0).random((1, 20_000, 24), dtype=np.float32))
    kept = agent.thinned(torch.ones(1, 20_000, 6), uniforms)[0].detach()
    assert set(np.unique(kept)) == {0, np.float32(1) / np.float32(1 - RATE)}
    dropped = (kept == 0).double().mean(dim=0).numpy()
    assert (np.abs(dropped - RATE) < 5 * np.sqrt(RATE * (1 - RATE) / 20_000)).all()
    # the first layer's, by what is left of their sum
    with torch.no_grad():
        agent.parameters["w1"].fill_(1.0)
        agent.parameters["b1"].zero_()
    sums = agent.thinned(torch.ones(1, 20_000, 6), torch.cat([uniforms[..., :16], torch.ones(1, 20_000, 8)], dim=-1))
    np.testing.assert_allclose(sums[0, :, 0].detach().mean(), 16 / (1 - RATE), rtol=0.01)


def test_spread_is_over_fixed_units_and_changes_no_draws():
    agent = build()
    features = rows(3)
    probes = Uniforms((0, 1), "agent/probes", (PROBES, 24))(1)[:, 0]
    agent.load(1)
    before = agent.score(features).value
    spread = agent.spread(features).detach().numpy()
    for row in range(2):
        network = Literal(agent, row)
        values = [[network.outputs(x, probe).item() for probe in probes[row]] for x in features[row].double()]
        np.testing.assert_allclose(spread[row], np.std(values, axis=1, ddof=1), rtol=1e-4)
    assert torch.equal(agent.score(features).value, before)


def test_the_start_is_greedy_s():
    agent = build()
    greedy = Greedy((0, 1), dimension=6, horizon=200, hidden=(16, 8), **TRAINING)
    assert agent.parameters.keys() == greedy.parameters.keys()
    assert torch.equal(agent.flat, greedy.flat)
    assert agent.parameter_counts() == greedy.parameter_counts()


@pytest.mark.parametrize("kind", ["quadratic", "neural"])
def test_rounds_are_the_same_however_they_are_played(kind, monkeypatch):
    """Whole, by `act` and `update`, with one round's numbers drawn at once, each seed alone: 60 rounds, 100 gradient steps."""

    def play(seeds, engine=None):
        loss = "cross_entropy" if kind == "neural" else "squared"
        agent = build(seeds, loss=loss, gradient_steps=2)
        return agent, simulate(pool(kind, seeds), agent, 60, engine=engine).action

    agent, actions = play((0, 5))
    assert agent.explored.min() > 0
    others = [play((0, 5), engine="step_by_step"), play((5,))]
    monkeypatch.setattr(neural, "MAX_DRAWN", 1)
    others.append(play((0, 5)))
    for other, found in others:
        row = slice(1, 2) if len(found) == 1 else slice(None)
        assert np.array_equal(found, actions[row])
        for name, parameter in other.parameters.items():
            torch.testing.assert_close(parameter, agent.parameters[name][row], rtol=0, atol=1e-5)
