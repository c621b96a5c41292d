"""NeuralLinear: its regression against the closed form in numpy, the law of the sampled weights, and Greedy's training."""

import numpy as np
import pytest
import torch
from neural_pools import TRAINING, pool
from scipy import stats

from ensemblepp.agents.neural import neural_linear
from ensemblepp.agents.neural.greedy import Greedy
from ensemblepp.agents.neural.neural_linear import NeuralLinear
from ensemblepp.bandit import Choice
from ensemblepp.engines.choice import simulate

torch.set_num_threads(1)

PRIOR_VARIANCE, NOISE = 2.0, 0.3


def build(seeds=(0, 1), hidden=(16, 8), refresh=10, **changes) -> NeuralLinear:
    options = TRAINING | {"dimension": 6, "horizon": 200} | changes
    return NeuralLinear(seeds, hidden=hidden, prior_variance=PRIOR_VARIANCE, noise=NOISE, refresh=refresh, **options)


def feed(agent, rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """Rounds that no agent chose, the same for whoever is fed: features (seeds, rounds, d) and rewards (seeds, rounds)."""
    source = np.random.default_rng(0)
    features = source.standard_normal((len(agent.seeds), rounds, 6)).astype(np.float32)
    rewards = np.sin(features.sum(axis=2)).astype(np.float32)
    for round_ in range(rounds):
        index = np.zeros((len(agent.seeds), 1), dtype=int)
        agent.update(Choice(index, features[:, [round_]]), rewards[:, [round_]])
    return features, rewards


def hidden_units(agent: NeuralLinear, row: int, features: np.ndarray) -> np.ndarray:
    """h(x; w) with the present w in float64: (rows, d) to (rows, width)."""
    for layer in range(len(agent.hidden)):
        weight, bias = (agent.parameters[f"{kind}{layer}"].detach()[row].double().numpy() for kind in "wb")
        features = np.maximum(features @ weight + bias, 0)
    return features


def posterior(hidden: np.ndarray, rewards: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the weights in the textbook's other form, by the kernel matrix of the samples."""
    kernel = PRIOR_VARIANCE * hidden @ hidden.T + NOISE**2 * np.eye(len(hidden))
    gain = np.linalg.solve(kernel, PRIOR_VARIANCE * hidden).T
    width = hidden.shape[1]
    return gain @ rewards, PRIOR_VARIANCE * np.eye(width) - PRIOR_VARIANCE * gain @ hidden


def assert_regression(agent: NeuralLinear, row: int, mean: np.ndarray, covariance: np.ndarray) -> None:
    np.testing.assert_allclose(np.linalg.inv(agent.precision[row].numpy()), covariance, rtol=1e-4, atol=1e-5)
    found = np.linalg.solve(agent.precision[row].numpy(), agent.moment[row, :, 0].numpy())
    np.testing.assert_allclose(found, mean, rtol=1e-4, atol=1e-5)


def test_without_a_trunk_it_is_the_regression_on_all_features():
    """25 rounds, never done anew; the mean and the spread of actions follow."""
    agent = build(hidden=(), refresh=10**6)
    features, rewards = feed(agent, 25)
    actions = np.random.default_rng(1).standard_normal((2, 4, 6)).astype(np.float32)
    agent.load(1)
    means, spreads = agent.score(torch.from_numpy(actions)).mean, agent.spread(torch.from_numpy(actions))
    for row in range(2):
        mean, covariance = posterior(features[row].astype(float), rewards[row].astype(float))
        assert_regression(agent, row, mean, covariance)
        np.testing.assert_allclose(means[row], actions[row] @ mean, rtol=1e-4, atol=1e-5)
        variance = np.einsum("ai,ij,aj->a", actions[row], covariance, actions[row])
        np.testing.assert_allclose(spreads[row], np.sqrt(variance), rtol=1e-4)


@pytest.mark.parametrize("capacity", [100, 12])
def test_every_so_often_it_is_done_anew_with_the_present_features(capacity, monkeypatch):
    """30 rounds with 20 gradient steps, a refresh at the last: all samples, or the last 12 of a full buffer, in parts of 5."""
    monkeypatch.setattr(neural_linear, "ROWS", 5)
    agent = build(buffer_capacity=capacity, learning_rate=0.01)
    start = agent.flat.clone()
    features, rewards = feed(agent, 30)
    assert (agent.flat - start).abs().max() > 0.05
    for row in range(2):
        kept = features[row, -capacity:].astype(float)
        assert_regression(agent, row, *posterior(hidden_units(agent, row, kept), rewards[row, -capacity:].astype(float)))


def test_between_refreshes_a_sample_has_the_features_of_its_round():
    """4 more rounds after the refresh at 20: each added with the trunk of its time, while that is trained on."""
    agent = build(learning_rate=0.01)
    features, rewards = feed(agent, 20)
    held = [hidden_units(agent, row, features[row].astype(float)) for row in range(2)]
    more = np.random.default_rng(5).standard_normal((4, 2, 1, 6)).astype(np.float32)
    for sample in more:
        for row in range(2):
            held[row] = np.concatenate([held[row], hidden_units(agent, row, sample[row].astype(float))])
        agent.update(Choice(np.zeros((2, 1), dtype=int), sample), np.ones((2, 1)))
    for row in range(2):
        assert np.abs(hidden_units(agent, row, more[0, row]) - held[row][20]).max() > 1e-3
        assert_regression(agent, row, *posterior(held[row], np.append(rewards[row].astype(float), np.ones(4))))


def test_sampled_weights_have_the_posterior_s_law():
    """4,000 rounds with the unit vectors as actions show theta: whitened by numpy's factor it is N(0, I)."""
    agent = build(hidden=(), refresh=10**6)
    features, rewards = feed(agent, 25)
    units = torch.eye(6).repeat(2, 1, 1)
    agent.load(4000)
    samples = []
    for _ in range(4000):
        samples.append(agent.score(units).value)
        agent.end_round()
    for row in range(2):
        mean, covariance = posterior(features[row].astype(float), rewards[row].astype(float))
        theta = torch.stack(samples)[:, row].double().numpy()
        white = np.linalg.solve(np.linalg.cholesky(covariance), (theta - mean).T)
        assert stats.kstest(white.ravel(), "norm").pvalue > 1e-3
        # entries of a Wishart matrix have variance 1 / n, on the diagonal 2 / n
        assert np.abs(np.cov(white) - np.eye(6)).max() < 5 * np.sqrt(2 / 4000)


def test_the_network_is_greedy_s():
    """Same start, minibatches and gradient steps when fed with the same samples."""
    agent = build()
    greedy = Greedy((0, 1), dimension=6, horizon=200, hidden=(16, 8), **TRAINING)
    assert torch.equal(agent.flat, greedy.flat)
    for fed in (agent, greedy):
        feed(fed, 30)
    assert torch.equal(agent.flat, greedy.flat)
    assert agent.parameter_counts() == greedy.parameter_counts()


def test_rounds_are_the_same_however_they_are_played():
    """Whole, by `act` and `update`, and each seed alone: 60 rounds with 100 gradient steps and 6 refreshes."""

    def play(seeds, engine=None):
        agent = build(seeds, gradient_steps=2)
        return agent, simulate(pool("quadratic", seeds), agent, 60, engine=engine).action

    agent, actions = play((0, 5))
    assert agent.explored.min() > 0
    for other, found in (play((0, 5), engine="step_by_step"), play((5,))):
        row = slice(1, 2) if len(found) == 1 else slice(None)
        assert np.array_equal(found, actions[row])
        for name, parameter in other.parameters.items():
            torch.testing.assert_close(parameter, agent.parameters[name][row], rtol=0, atol=1e-5)
        torch.testing.assert_close(other.precision, agent.precision[row], rtol=1e-5, atol=1e-4)
