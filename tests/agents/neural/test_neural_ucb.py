"""NeuralUCB, and what NeuralTS shares with it: widths and matrix against gradients that are formed one by one."""

import numpy as np
import pytest
import torch

from ensemblepp.agents.neural.greedy import Greedy
from ensemblepp.agents.neural.neural_ts import NeuralTS
from ensemblepp.agents.neural.neural_ucb import NeuralUCB
from ensemblepp.engines.choice import simulate
from ensemblepp.environments.candidates import Quadratic

torch.set_num_threads(1)

TRAINING = {
    "dimension": 5,
    "horizon": 200,
    "device": "cpu",
    "learning_rate": 1e-2,
    "batch_size": 16,
    "weight_decay": 0.5,
    "buffer_capacity": 25,
    "gradient_steps": 2,
    "warm_up": 4,
}
GRADIENTS = {"ridge": 0.7, "exploration": 0.3}


def build(kind: type[NeuralUCB], seeds=(0, 1, 2), hidden=(16, 8), **changes) -> NeuralUCB:
    return kind(seeds, hidden=hidden, ensemble_size=0, **TRAINING | GRADIENTS | changes)


def pool(seeds=(0, 1, 2)) -> Quadratic:
    return Quadratic(seeds, dimension=5, candidates=30, offered=6, features="sphere", noise=0.1, scale=0.3)


def played(agent, environment: Quadratic, rounds: int) -> np.ndarray:
    """The actions, (seeds, 1, rounds), of an agent that plays by `act` and `update`."""
    actions = []
    for _ in range(rounds):
        choice = agent.act(environment.decisions())
        actions.append(choice.index)
        agent.update(choice, environment.step(choice).reward)
    return np.stack(actions, axis=-1)


def gradient(agent: NeuralUCB, chain: int, features: np.ndarray) -> tuple[float, dict[str, np.ndarray]]:
    """f(x) of one action's features (d,), and its derivatives by every parameter, in float64 by automatic differentiation."""
    own = {name: value.detach()[chain].double().requires_grad_() for name, value in agent.parameters.items()}
    hidden = torch.tensor(features[None]).double()
    for layer in range(len(agent.hidden)):
        hidden = torch.relu(hidden @ own[f"w{layer}"] + own[f"b{layer}"])
    prediction = (hidden @ own["base"])[0, 0]
    slopes = torch.autograd.grad(prediction, list(own.values()))
    return prediction.item(), {name: slope.numpy() for name, slope in zip(own, slopes, strict=True)}


@pytest.mark.parametrize("hidden", [(), (7,), (9, 6), (4, 8, 5)])
def test_widths_are_those_of_whole_gradients(hidden):
    """sigma^2 = 0.7 sum_p g_p^2 / (U_p m) with any positive U; the value is f + 0.3 sigma, f is the mean."""
    agent = build(NeuralUCB, (0, 4), hidden)
    rng = np.random.default_rng(0)
    for value in agent.matrix.values():
        value.copy_(torch.tensor(rng.uniform(0.5, 3, value.shape)))
    features = rng.standard_normal((2, 6, 5)).astype(np.float32)
    scores, spread = agent.score(torch.tensor(features)), agent.spread(torch.tensor(features))
    width = hidden[-1] if hidden else 5
    for chain in range(2):
        for action in range(6):
            mean, slopes = gradient(agent, chain, features[chain, action])
            variance = sum((slope**2 / agent.matrix[name][chain].numpy()).sum() for name, slope in slopes.items())
            wanted = 0.3 * np.sqrt(0.7 * variance / width)
            assert spread[chain, action].item() == pytest.approx(wanted, rel=1e-5)
            assert scores.mean[chain, action].item() == pytest.approx(mean, rel=1e-5, abs=1e-6)
            assert scores.value[chain, action].item() == pytest.approx(mean + wanted, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("kind", [NeuralUCB, NeuralTS])
def test_matrix_is_that_of_a_literal_loop(kind):
    """25 rounds: U = 0.7 I + sum g g^T / m on the diagonal, every gradient that of the network that chose."""
    agent, environment = build(kind), pool()
    wanted = {name: np.full(value.shape, 0.7) for name, value in agent.parameters.items()}
    for _ in range(25):
        choice = agent.act(environment.decisions())
        for chain in range(3):
            _, slopes = gradient(agent, chain, choice.features[chain, 0])
            for name, slope in slopes.items():
                wanted[name][chain] += slope**2 / 8
        agent.update(choice, environment.step(choice).reward)
    for name, value in wanted.items():
        np.testing.assert_allclose(agent.matrix[name], value, rtol=1e-5)
    # and not that of the network after training
    later = gradient(agent, 2, choice.features[2, 0])[1]
    assert max(np.abs(later[name] - slope).max() for name, slope in slopes.items()) > 1e-3


@pytest.mark.parametrize("kind", [NeuralUCB, NeuralTS])
def test_without_exploration_it_is_greedy(kind):
    """nu = 0: Greedy's start, minibatches, choices and parameters."""
    agent, greedy = build(kind, exploration=0.0), Greedy((0, 1, 2), hidden=(16, 8), **TRAINING)
    np.testing.assert_array_equal(played(agent, pool(), 40), played(greedy, pool(), 40))
    assert torch.equal(agent.flat, greedy.flat)
    assert agent.explored.tolist() == [0, 0, 0]


@pytest.mark.parametrize("kind", [NeuralUCB, NeuralTS])
def test_stacked_seeds_equal_single_ones(kind):
    seeds = (0, 5, 9)
    stack = build(kind, seeds)
    together = simulate(pool(seeds), stack, 80)
    for row, seed in enumerate(seeds):
        alone = build(kind, (seed,))
        np.testing.assert_array_equal(simulate(pool((seed,)), alone, 80).action[0], together.action[row])
        for name, value in alone.parameters.items():
            torch.testing.assert_close(stack.parameters[name][[row]], value, rtol=0, atol=1e-5)
            torch.testing.assert_close(stack.matrix[name][[row]], alone.matrix[name], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [NeuralUCB, NeuralTS])
def test_round_by_round_equals_played_whole(kind):
    """100 rounds, beyond the first 64, whose numbers are drawn at once; some of them explore."""
    whole, rounds = build(kind), build(kind)
    np.testing.assert_array_equal(simulate(pool(), whole, 100).action, played(rounds, pool(), 100))
    for name, value in rounds.parameters.items():
        torch.testing.assert_close(whole.parameters[name], value, rtol=0, atol=1e-5)
    assert torch.equal(whole.explored, rounds.explored)
    assert (whole.explored > 0).all()
    assert whole.diagnostics()["spread"].shape == (3, 1)
