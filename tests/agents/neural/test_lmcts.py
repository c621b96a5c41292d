"""LMCTS: its gradient, its schedule, the exact law of its iterates on a linear model, and the folding of equal actions."""

from pathlib import Path

import numpy as np
import pytest
import torch
from neural_pools import pool as small_pool
from scipy import linalg

from ensemblepp import registry
from ensemblepp.agents.neural import columns
from ensemblepp.agents.neural.greedy import Greedy
from ensemblepp.agents.neural.lmcts import LMCTS, History, squared_error_gradient
from ensemblepp.bandit import Choice
from ensemblepp.config.loading import read_files
from ensemblepp.engines.choice import simulate
from ensemblepp.environments.candidates import Neural, Quadratic, VectorQuadratic
from ensemblepp.errors import TrainingError
from ensemblepp.randomness.streams import generator

torch.set_num_threads(1)

TRAINING = {
    "dimension": 5,
    "horizon": 100,
    "device": "cpu",
    "learning_rate": 2e-3,
    "batch_size": 7,
    "weight_decay": 2.0,
    "buffer_capacity": 3,
    "gradient_steps": 6,
    "warm_up": 0,
    "temperature": 0.01,
    "decay_every": 20,
}

#: Standard errors that a Monte Carlo mean of 40 chains may be off.
Z = 5.0


def build(seeds=(0, 1, 2), hidden=(16, 8), **changes) -> LMCTS:
    return LMCTS(seeds, hidden=hidden, ensemble_size=0, **TRAINING | changes)


def pool(seeds=(0, 1, 2)) -> Quadratic:
    return Quadratic(seeds, dimension=5, candidates=12, offered=4, features="sphere", noise=0.1, scale=0.3)


class Unfolded(LMCTS):
    """LMCTS that does not hear which item an action is."""

    def observe(self, features, reward, item=None):
        super().observe(features, reward)


def assert_near(left: LMCTS, right: LMCTS, rows=slice(None)) -> None:
    for name, value in right.parameters.items():
        torch.testing.assert_close(left.parameters[name][rows], value, rtol=0, atol=1e-5)


def test_starts_as_greedy_does():
    """Trunk, head without bias, and the number of parameters: 5 x 16 + 16 + 16 x 8 + 8 + 8."""
    agent = build()
    greedy = Greedy((0, 1, 2), hidden=(16, 8), **{name: TRAINING[name] for name in list(TRAINING)[:-2]})
    for name, value in greedy.parameters.items():
        assert torch.equal(agent.parameters[name], value)
    assert agent.parameter_counts() == (240, 240)


def test_schedule_by_hand():
    """K = 3 steps but for the first two rounds; 0.8 until round 3, then 0.8 / 4 until round 7, then 0.8 / 8."""
    agent = build(gradient_steps=3, learning_rate=0.8, decay_every=4)
    steps, rates = zip(*(agent.schedule(round_) for round_ in range(1, 10)), strict=True)
    assert steps == (1, 2, 3, 3, 3, 3, 3, 3, 3)
    assert rates == pytest.approx([0.8, 0.8, 0.8, 0.2, 0.2, 0.2, 0.2, 0.1, 0.1])


def test_rounds_equal_a_literal_loop():
    """A linear model, 12 rounds in float64 straight from the definition, with the noise of the seed's own stream."""
    agent = build((3,), (), gradient_steps=4, decay_every=5, learning_rate=0.01)
    source = torch.Generator().manual_seed(int(generator(3, "agent/langevin").integers(2**32)))
    weights = agent.parameters["base"].detach().numpy().ravel().astype(float)
    rng = np.random.default_rng(0)
    inputs, rewards = np.empty((0, 5)), np.empty(0)
    for round_ in range(1, 13):
        features, reward = rng.standard_normal((1, 1, 5)).astype(np.float32), rng.standard_normal((1, 1))
        agent.update(Choice(np.zeros((1, 1), dtype=int), features), reward)
        inputs, rewards = np.concatenate([inputs, features[0]]), np.append(rewards, reward)
        rate = 0.01 / max(round_ // 5 * 5, 1)
        noise = torch.empty(min(round_, 4), 5).normal_(generator=source).numpy()
        for step in noise:
            loss = np.square(inputs @ weights - rewards).mean()
            slope = 2 * inputs.T @ (inputs @ weights - rewards) + 2.0 * weights
            weights = weights - rate * slope + rate * np.sqrt(2 * 0.01 * 5 * np.log(100) / 0.01) * step
        assert agent.last_loss.item() == pytest.approx(loss, rel=1e-5)
    np.testing.assert_allclose(agent.parameters["base"].detach().numpy().ravel(), weights, rtol=0, atol=1e-5)


@pytest.mark.parametrize("hidden", [(), (7,), (9, 6)])
def test_gradient_is_that_of_the_literal_loss(hidden):
    """40 rewards of 8 actions, folded, against automatic differentiation of sum_j (f(x_j) - y_j)^2 in float64."""
    agent = build((0, 1), hidden)
    rng = np.random.default_rng(1)
    actions = torch.tensor(rng.standard_normal((2, 8, 5)), dtype=torch.float32)
    items = torch.tensor(rng.integers(0, 8, (40, 2)))
    rewards = torch.tensor(rng.standard_normal((40, 2)), dtype=torch.float32)
    for item, reward in zip(items, rewards, strict=True):
        agent.observe(actions[[0, 1], item], reward, item)
    features, count, total, square = agent.history.rows(slice(None))
    assert count.shape == (2, 8, 1)
    network = {name: value.detach() for name, value in agent.parameters.items() if name != "network"}
    found = {name: torch.empty_like(value) for name, value in network.items()}
    predictions = squared_error_gradient(network, found, features, count.float(), total.float())
    for chain in range(2):
        own = {name: value[chain].double().requires_grad_() for name, value in network.items()}
        hidden_layer = actions[chain, items[:, chain]].double()
        for layer in range(len(hidden)):
            hidden_layer = torch.relu(hidden_layer @ own[f"w{layer}"] + own[f"b{layer}"])
        loss = ((hidden_layer @ own["base"])[:, 0] - rewards[:, chain]).square().sum()
        for name, wanted in zip(own, torch.autograd.grad(loss, list(own.values())), strict=True):
            assert (found[name][chain] - wanted).norm() < 1e-5 * wanted.norm()
        folded = ((count * predictions - 2 * total) * predictions).sum(dim=1) + square
        assert folded[chain].item() == pytest.approx(loss.item(), rel=1e-5)


def test_history_by_hand():
    """Rewards 1, 2, 4 of actions a, b, a for chain 0, of c, c, c for chain 1; 70 more actions make the tables grow."""
    history = History(2, 1, torch.device("cpu"))
    for keys, features, reward in ((("a", "c"), (5, 7), 1), (("b", "c"), (6, 7), 2), (("a", "c"), (5, 7), 4)):
        history.add(keys, torch.tensor(features)[:, None].float(), torch.tensor([reward, 10.0 * reward]))
    features, count, total, square = history.rows(slice(None))
    assert features[..., 0].tolist() == [[5, 6], [7, 0]]
    assert count[..., 0].tolist() == [[2, 1], [3, 0]]
    assert total[..., 0].tolist() == [[5, 2], [70, 0]]
    assert square[:, 0].tolist() == [21, 2100]
    assert history.rows(slice(1, 2))[0].shape == (1, 1, 1)
    for key in range(70):
        history.add((key, "c"), torch.tensor([[float(key)], [7.0]]), torch.tensor([float(key), 1.0]))
    features, count, total, _ = history.rows(slice(0, 1))
    assert features[0, :, 0].tolist() == [5, 6, *range(70)]
    assert count[0, :, 0].tolist() == [2] + 71 * [1]
    assert total[0, :, 0].tolist() == [5, 2, *range(70)]


def test_columns_of_a_history_by_hand():
    """Two chains with at most two places each: as many as the longest row has, of tables that grow, until one has three."""

    def add(first: list[float], second: list[float]) -> None:
        keys = [tuple(first), tuple(second)]
        history.add(keys, torch.tensor([first, second], dtype=torch.float32), torch.zeros(2))

    history = History(2, 4, torch.device("cpu"), few=2)
    assert history.columns.shape == (2, 64, 0)
    add([0, 0, 5, 0], [0, 0, 0, 0])
    assert history.columns[:, :2].tolist() == [[[2], [-1]], [[-1], [-1]]]
    add([0, 0, 5, 0], [7, 0, 0, 6])
    add([1, 0, 0, 0], [0, 2, 0, 0])
    assert history.columns[:, :3].tolist() == [[[2, -1], [0, -1], [-1, -1]], [[-1, -1], [0, 3], [1, -1]]]
    for place in range(70):
        add([0, 0, 0, 1.0 + place], [0, 2, 0, 0])
    assert history.columns.shape == (2, 128, 2)
    assert history.columns[0, :72].tolist() == [[2, -1], [0, -1], *70 * [[3, -1]]]
    add([1, 2, 3, 0], [7, 0, 0, 6])
    assert history.columns.shape == (2, 128, 0)
    # they are not known of the rows before, so that one short row does not bring them back
    add([0, 8, 0, 0], [7, 0, 0, 6])
    assert history.columns.shape == (2, 128, 0)


@pytest.mark.parametrize("hidden", [(16, 8), (16,)])
def test_by_columns_is_as_by_whole_rows(hidden, monkeypatch):
    """On a table of which 3 of 36 features are not 0: the same choices, and parameters within 1e-5."""

    def play(sparse: bool) -> tuple[LMCTS, np.ndarray]:
        monkeypatch.setattr(columns, "SPARSE", 4 if sparse else 100)
        environment = small_pool("one-hot", (0, 1, 2))
        agent = build(hidden=hidden, dimension=36, learning_rate=1e-3)
        assert agent.dimension == environment.dimension
        return agent, simulate(environment, agent, 60).action

    (by_columns, found), (whole, expected) = play(True), play(False)
    assert by_columns.history.columns.shape[2] == 3
    assert whole.history.columns.shape[2] == 0
    np.testing.assert_array_equal(found, expected)
    assert_near(by_columns, whole)
    assert build((0,), ()).history.columns.shape[2] == 0


def test_folded_equals_unfolded():
    """60 rounds on 12 items with the same noise: the same choices, parameters within 1e-5, and the same mean squared error."""
    folded, unfolded = (kind((0, 1, 2), hidden=(16, 8), **TRAINING) for kind in (LMCTS, Unfolded))
    left, right = (simulate(pool(), agent, 60) for agent in (folded, unfolded))
    assert folded.history.rows(slice(None))[0].shape[1] <= 12
    assert unfolded.history.rows(slice(None))[0].shape[1] == 60
    np.testing.assert_array_equal(left.action, right.action)
    assert_near(folded, unfolded)
    torch.testing.assert_close(folded.last_loss, unfolded.last_loss, rtol=1e-4, atol=0)
    assert (left.diagnostics["explored"] == 0).all()


def lyapunov(hessian: np.ndarray, rate: float, first_rate: float, temperature: float) -> np.ndarray:
    """Covariance C of the stationary law of w <- w - rate (H w - c) + rate sqrt(2 temperature / first_rate) xi.

    It solves C = (I - rate H) C (I - rate H) + rate^2 (2 temperature / first_rate) I.
    """
    noise = rate**2 * 2 * temperature / first_rate * np.eye(len(hessian))
    return linalg.solve_discrete_lyapunov(np.eye(len(hessian)) - rate * hessian, noise)


def fixed_data() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Features (8, 3) and rewards (8,), and by the loss with weight decay 1.5 the Hessian and the minimiser."""
    rng = np.random.default_rng(2)
    inputs, rewards = rng.standard_normal((8, 3)).astype(np.float32), rng.standard_normal(8).astype(np.float32)
    hessian = 2 * inputs.T.astype(float) @ inputs + 1.5 * np.eye(3)
    return inputs, rewards, hessian, np.linalg.solve(hessian, 2 * inputs.T.astype(float) @ rewards)


@pytest.mark.parametrize("lowered", [1, 20])
def test_stationary_law_on_a_linear_model(lowered):
    """40 chains on fixed data against N(H^-1 c, C), C of the Lyapunov equation, at a step size lowered from `lowered` times it.

    A round has 20 inner steps, and the clock stands still at round 20. The chains start at the minimiser; after 3 rounds what
    is left of that is at most (1 - eta h)^120 < 1e-6.
    """
    inputs, rewards, hessian, minimiser = fixed_data()
    eigenvalues, vectors = np.linalg.eigh(hessian)
    rate = 1.2 / eigenvalues[-1]
    assert (1 - rate * eigenvalues[0]) ** 120 < 1e-6
    changes = {"learning_rate": lowered * rate, "decay_every": 20 if lowered == 20 else 21, "gradient_steps": 20}
    agent = build(range(40), (), dimension=3, weight_decay=1.5, **changes)
    for item, (features, reward) in enumerate(zip(inputs, rewards, strict=True)):
        agent.observe(torch.tensor(features).expand(40, 3), torch.tensor(reward).expand(40), torch.full((40,), item))
    agent.round = 19
    assert agent.schedule(20) == (20, pytest.approx(rate))
    agent.parameters["base"].copy_(torch.tensor(minimiser)[:, None])
    samples = []
    for _ in range(33):
        agent.train()
        samples.append(agent.parameters["base"].numpy()[..., 0].astype(float))
    off = (np.stack(samples[3:], axis=1) - minimiser) @ vectors
    # a chain's own mean and second moments are one observation each
    mean, products = off.mean(axis=1), (off[..., :, None] * off[..., None, :]).mean(axis=1)
    mean_error, error = (values.std(axis=0, ddof=1) / np.sqrt(40) for values in (mean, products))
    assert (np.abs(mean.mean(axis=0)) < Z * mean_error).all()
    temperature = 0.01 * 3 * np.log(100)
    distance = products.mean(axis=0) - lyapunov(np.diag(eigenvalues), rate, lowered * rate, temperature)
    assert (np.abs(distance) < Z * error).all()
    # sharp enough to part it from the law of infinitely small steps
    distance = products.mean(axis=0) - np.diag(temperature / lowered / eigenvalues)
    assert (np.abs(distance) > Z * error).any()


def test_the_stationary_law_tends_to_the_posterior():
    """As eta = eta_0 -> 0, C -> H^-1 / beta, the covariance of exp(-beta (L(w) + weight_decay |w|^2 / 2)).

    In H's eigenvectors C = (eta / eta_0) / (beta h (1 - eta h / 2)): exact for every eta, the relative distance is
    (eta h / 2) / (1 - eta h / 2), and a lowered eta is a lowered temperature.
    """
    _, _, hessian, _ = fixed_data()
    posterior = 0.3 * np.linalg.inv(hessian)
    for rate in (1e-2, 1e-3, 1e-4):
        found = lyapunov(hessian, rate, rate, 0.3)
        np.testing.assert_allclose(found @ (np.eye(3) - rate * hessian / 2), posterior, rtol=1e-6, atol=1e-9)
        assert np.linalg.norm(found - posterior) < rate * np.linalg.eigvalsh(hessian)[-1] * np.linalg.norm(posterior)
        np.testing.assert_allclose(lyapunov(hessian, rate, 4 * rate, 0.3), found / 4, rtol=1e-6)


def test_bernoulli_rewards_are_fitted_by_squared_errors():
    """The Neural bandit: the reported loss is the mean squared error on rewards 0 and 1."""
    bandit = Neural(
        (0, 1), dimension=5, candidates=12, offered=4, features="gaussian", hidden=[8], temperature=0.1, weights="xavier"
    )
    agent = build((0, 1), learning_rate=1e-3)
    simulate(bandit, agent, 40)
    _, count, total, square = agent.history.rows(slice(None))
    # of zeros and ones, the sum of squares is the sum
    torch.testing.assert_close(total.sum(dim=1), square)
    assert count.sum(dim=1).tolist() == [[40], [40]]
    assert (agent.last_loss < 0.5).all()


def test_stacked_seeds_equal_single_ones():
    seeds = (0, 5, 9)
    stack = build(seeds)
    together = simulate(pool(seeds), stack, 60)
    for row, seed in enumerate(seeds):
        alone = build((seed,))
        np.testing.assert_array_equal(simulate(pool((seed,)), alone, 60).action[0], together.action[row])
        assert_near(stack, alone, slice(row, row + 1))


def test_round_by_round_equals_played_whole():
    """A pool that agents do not know as one: rewards are not folded there."""
    whole, rounds = build(), build()
    environment = pool()
    played = simulate(pool(), whole, 40)
    for step in range(40):
        choice = rounds.act(environment.decisions())
        np.testing.assert_array_equal(choice.index, played.action[..., step])
        rounds.update(choice, environment.step(choice).reward)
    assert_near(rounds, whole)


@pytest.mark.parametrize("environment", [Quadratic, VectorQuadratic, Neural])
def test_the_configured_temperature_does_not_diverge_and_the_official_one_does(environment):
    """The noise grows with d log T, and what diverges does so in the first 20 rounds, before the step size is lowered."""
    blocks = read_files(Path(__file__).parents[3], scale="paper", device="cpu").blocks("versus-lmcts")
    specs = [block.spec for block in blocks if registry.environment_path(block.spec).endswith(f":{environment.__name__}")]
    spec = next(spec for spec in specs if spec["agent"]["name"] == "lmcts")

    def play(**changes):
        options = spec["agent"]["options"] | changes
        agent = LMCTS(range(10), dimension=100, horizon=spec["horizon"], device="cpu", **options)
        simulate(environment(range(10), **spec["environment"]["options"]), agent, 40)

    play()
    with pytest.raises(TrainingError, match="is not finite at step 1"):
        play(temperature=0.01)


def test_a_step_size_too_great_stops_the_run():
    agent = build((4,), (), learning_rate=100.0, horizon=1000, decay_every=1000)
    with pytest.raises(TrainingError, match=r"^LMCTS: the loss of seed 4 is not finite"):
        simulate(pool((4,)), agent, 200)
