"""What all neural agents share, tried on the smallest one: buffer, minibatches, schedule, Adam, and the stack of seeds."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from scipy import stats

from ensemblepp.agents.neural import mlp
from ensemblepp.agents.neural.base import CHUNK
from ensemblepp.agents.neural.ensemblepp import NeuralEnsemblePlusPlus
from ensemblepp.agents.neural.greedy import Greedy
from ensemblepp.bandit import Choice, Decisions
from ensemblepp.errors import TrainingError
from ensemblepp.randomness.draws import Uniforms
from ensemblepp.randomness.streams import generator

torch.set_num_threads(1)

TRAINING = {
    "dimension": 3,
    "horizon": 100,
    "device": "cpu",
    "learning_rate": 0.1,
    "batch_size": 16,
    "weight_decay": 0.0,
    "buffer_capacity": 50,
    "gradient_steps": 1,
    "warm_up": 0,
}


def build(seeds=(0,), hidden=(), **changes) -> Greedy:
    return Greedy(seeds, hidden=hidden, **TRAINING | changes)


def base(agent: Greedy) -> np.ndarray:
    """The head's weights as they are now, (seeds, width)."""
    return agent.parameters["base"].detach().numpy()[..., 0].copy()


class Watched(Greedy):
    """Greedy that keeps the minibatches it is trained on: first feature, reward."""

    def loss_of(self, features, reward, extra, step):
        self.__dict__.setdefault("seen", []).append((features[..., 0].clone(), reward.clone()))
        return super().loss_of(features, reward, extra, step)


def feed(agent, value: float, reward: float | None = None) -> None:
    """One round: every seed chose (value, 0, 0) and saw `reward` (10 times the value unless given)."""
    seeds = len(agent.seeds)
    features = np.zeros((seeds, 1, 3), dtype=np.float32)
    features[:, 0, 0] = value
    rewards = np.full((seeds, 1), 10 * value if reward is None else reward)
    agent.update(Choice(np.zeros((seeds, 1), dtype=int), features), rewards)


def test_the_oldest_sample_leaves_a_full_buffer():
    """Capacity 5, samples 1..8: minibatches of 400 after round t hold the samples max(1, t - 4)..t, each with its reward."""
    agent = Watched((0, 1), hidden=(), **TRAINING | {"buffer_capacity": 5, "batch_size": 400})
    for sample in range(1, 9):
        feed(agent, sample)
    assert len(agent.seen) == 8
    for step, (features, rewards) in enumerate(agent.seen, start=1):
        for seed in range(2):
            assert set(features[seed].tolist()) == set(range(max(1, step - 4), step + 1))
        assert torch.equal(rewards, 10 * features)


def test_a_horizon_below_the_capacity_bounds_the_buffer_without_a_loss():
    """Horizon 6, capacity 50: after 6 rounds all 6 samples are there."""
    agent = Watched((0,), hidden=(), **TRAINING | {"horizon": 6, "batch_size": 400})
    for sample in range(1, 7):
        feed(agent, sample)
    assert set(agent.seen[-1][0].ravel().tolist()) == {1, 2, 3, 4, 5, 6}


def test_minibatches_are_uniform_with_replacement():
    """8,000 draws from 10 samples, chi-square; a batch of 400 from 10 samples repeats some. Seeds draw independently."""
    agent = Watched((0, 1), hidden=(), **TRAINING | {"warm_up": 9, "gradient_steps": 20, "batch_size": 400})
    for sample in range(10):
        feed(agent, sample)
    draws = torch.stack([features for features, _ in agent.seen]).numpy().astype(int)
    assert draws.shape == (20, 2, 400)
    for seed in range(2):
        assert stats.chisquare(np.bincount(draws[:, seed].ravel(), minlength=10)).pvalue > 1e-3
    table = np.zeros((10, 10))
    np.add.at(table, (draws[:, 0].ravel(), draws[:, 1].ravel()), 1)
    assert stats.chi2_contingency(table).pvalue > 1e-3


@pytest.mark.parametrize("warm_up", [0, 1, 4])
def test_the_first_gradient_step_is_in_the_round_after_the_warm_up(warm_up):
    """Rounds 1..warm_up only fill the buffer: the head is where it started."""
    agent = build(warm_up=warm_up)
    start = base(agent)
    for round_ in range(1, 7):
        feed(agent, 1.0)
        assert np.array_equal(base(agent), start) == (round_ <= warm_up)


def test_gradient_steps_per_round():
    """5 rounds, 2 of them before the first step, 7 steps each."""
    agent = Watched((0,), hidden=(), **TRAINING | {"gradient_steps": 7, "warm_up": 2})
    for _ in range(5):
        feed(agent, 1.0)
    assert len(agent.seen) == 3 * 7


def test_rounds_that_train():
    """Every third round, counted from 1, and after the warm-up of 4: rounds 6, 9 and 12 of 12."""
    agent = Watched((0,), hidden=(), **TRAINING | {"update_every": 3, "warm_up": 4, "gradient_steps": 2})
    trained = []
    for round_ in range(1, 13):
        feed(agent, 1.0)
        if len(agent.__dict__.get("seen", [])) > 2 * len(trained):
            trained.append(round_)
    assert trained == [6, 9, 12]
    assert len(agent.seen) == 6


def test_minibatches_of_a_round_do_not_depend_on_the_warm_up():
    """So that two settings of the schedule differ by the schedule alone."""
    agents = [Watched((0,), hidden=(), **TRAINING | {"warm_up": warm_up}) for warm_up in (0, 5)]
    for sample in range(10):
        for agent in agents:
            feed(agent, sample)
    early, late = (agent.seen for agent in agents)
    assert len(early) - len(late) == 5
    for left, right in zip(early[5:], late, strict=True):
        assert torch.equal(left[0], right[0])


class HandAdam:
    """Adam with coupled L2 (Kingma and Ba 2015, Algorithm 1): beta 0.9 and 0.999, epsilon 1e-8, float64."""

    def __init__(self, parameter: np.ndarray, learning_rate: float) -> None:
        self.parameter, self.learning_rate, self.steps = parameter.astype(float), learning_rate, 0
        self.first, self.second = np.zeros_like(self.parameter), np.zeros_like(self.parameter)

    def step(self, gradient: np.ndarray, decay: float) -> None:
        gradient = gradient + decay * self.parameter
        self.steps += 1
        self.first = 0.9 * self.first + 0.1 * gradient
        self.second = 0.999 * self.second + 0.001 * gradient**2
        first, second = self.first / (1 - 0.9**self.steps), self.second / (1 - 0.999**self.steps)
        self.parameter = self.parameter - self.learning_rate * first / (np.sqrt(second) + 1e-8)


def one_step(weight_decay: float, samples: int, capacity: int) -> tuple[np.ndarray, np.ndarray]:
    """The head before and after the only gradient step, in the round of the last of `samples` equal samples (1, 0, 0)."""
    changes = {"weight_decay": weight_decay, "buffer_capacity": capacity, "warm_up": samples - 1}
    agent = build(**changes)
    start = base(agent)[0]
    for _ in range(samples):
        feed(agent, 1.0, 0.5)
    return start, base(agent)[0]


@pytest.mark.parametrize(("samples", "capacity", "stored"), [(1, 50, 1), (10, 50, 10), (10, 4, 4)])
def test_weight_decay_is_lambda_over_the_samples_in_the_buffer(samples, capacity, stored):
    """One step with lambda = 1e-7 on the loss (y - w_1)^2, whose gradient in w_2 and w_3 is 0.

    There Adam's step is learning_rate * d w / (|d w| + 1e-8) with d = lambda / stored, which shows d: the epsilon is of
    the size of d w. A decay of lambda itself would be seen.
    """
    start, found = one_step(1e-7, samples, capacity)
    gradient = np.array([-2 * (0.5 - start[0]), 0, 0])
    for divisor, equal in ((stored, True), (3 * stored, False), (stored / 3, False)):
        adam = HandAdam(start, 0.1)
        adam.step(gradient, 1e-7 / divisor)
        np.testing.assert_allclose(found[0], adam.parameter[0], rtol=1e-5)
        assert np.allclose(found[1:], adam.parameter[1:], rtol=0, atol=1e-6) == equal


def test_several_steps_of_adam_by_hand():
    """Rounds 3..12, 2 steps each, with a decay that falls with the buffer: all entries follow the hand-written Adam."""
    agent = Watched(
        (0,), hidden=(), **TRAINING | {"weight_decay": 2.0, "gradient_steps": 2, "warm_up": 2, "buffer_capacity": 8}
    )
    adam = HandAdam(base(agent)[0], 0.1)
    done = 0
    for round_ in range(1, 13):
        feed(agent, np.cos(round_), round_ % 3)
        for features, rewards in agent.__dict__.get("seen", [])[done:]:
            x, y = features[0].double().numpy(), rewards[0].double().numpy()
            gradient = np.array([np.mean(2 * (x * adam.parameter[0] - y) * x), 0, 0])
            adam.step(gradient, 2.0 / min(round_, 8))
            done += 1
        np.testing.assert_allclose(base(agent)[0], adam.parameter, rtol=1e-4, atol=1e-6)
    assert done == 20


def experience(rounds: int, seeds: int):
    rng = np.random.default_rng(0)
    for _ in range(rounds):
        yield rng.standard_normal((seeds, 10, 3)).astype(np.float32), rng.standard_normal((seeds, 1))


@pytest.mark.parametrize("kind", ["greedy", "ensemble++"])
def test_stacked_seeds_equal_single_ones(kind):
    """4 seeds in one stack against each alone, 60 rounds and 114 gradient steps: to the last bit."""
    changes = TRAINING | {"learning_rate": 0.01, "weight_decay": 0.1, "gradient_steps": 2, "warm_up": 3}

    def agent(seeds):
        if kind == "greedy":
            return Greedy(seeds, hidden=(16, 16), **changes)
        scales = {"prior_scale": 1.0, "posterior_scale": 0.1, "perturbation_scale": 0.01}
        laws = {"references": ["sphere"], "perturbations": ["sphere"], "update": "coordinate"}
        return NeuralEnsemblePlusPlus(seeds, hidden=(16, 16), ensemble_size=4, **changes | scales | laws)

    seeds = (0, 1, 5, 9)
    stack, alone = agent(seeds), [agent((seed,)) for seed in seeds]
    for features, reward in experience(60, 4):
        choice = stack.act(Decisions(features))
        stack.update(choice, reward)
        for row, single in enumerate(alone):
            own = single.act(Decisions(features[[row]]))
            assert own.index[0] == choice.index[row]
            single.update(own, reward[[row]])
    for row, single in enumerate(alone):
        assert stack.parameters.keys() == single.parameters.keys()
        for name, own in single.parameters.items():
            assert torch.equal(stack.parameters[name][row], own[0])


def test_equal_seeds_give_equal_agents_to_the_last_bit():
    """The same agent twice: no state outside of it, no order that changes."""
    agents = [build((0, 1), (16, 16), warm_up=3) for _ in range(2)]
    for features, reward in experience(30, 2):
        for agent in agents:
            agent.update(agent.act(Decisions(features)), reward)
    assert torch.equal(agents[0].flat, agents[1].flat)
    assert agents[0].last_loss.isfinite().all()


def test_an_infinite_reward_stops_training_and_names_agent_seed_and_step():
    """Of seeds 4, 7 and 9 only the second sees infinity, in round 6; steps count from 1."""
    agent = build((4, 7, 9), (8,), warm_up=2)
    for round_ in range(1, 6):
        feed(agent, float(round_))
    choice = Choice(np.zeros((3, 1), dtype=int), np.ones((3, 1, 3), dtype=np.float32))
    with pytest.raises(TrainingError, match=r"^Greedy: the loss of seed 7 is not finite at step 6; .*config/agents.yaml"):
        agent.update(choice, np.array([[1.0], [np.inf], [1.0]]))


def test_an_absurd_learning_rate_stops_training_and_names_every_seed():
    """A first step of 1e30 makes every later prediction overflow float32 when it is squared."""
    agent = build((2, 3), learning_rate=1e30)
    feed(agent, 1.0)
    with pytest.raises(TrainingError, match=r"the loss of seed 2, 3 is not finite at step 2;"):
        feed(agent, 2.0)


def test_denormal_numbers_are_flushed():
    """Moments of dead units decay into them, which is slow: 1e-30 * 1e-10 is 0 once an agent exists."""
    build()
    assert (torch.tensor([1e-30]) * torch.tensor([1e-10])).item() == 0.0


@pytest.mark.parametrize("hidden", [(), (7,), (9, 8, 7)])
def test_the_trunk_is_the_layers_of_each_seed(hidden):
    """`trunk` on the stacked parameters against `mlp.layers_forward` on layers drawn from each seed's own stream."""
    agent = build((0, 4), hidden)
    features = torch.tensor(np.random.default_rng(0).standard_normal((2, 11, 3)), dtype=torch.float32)
    outputs = agent.trunk(features)
    assert outputs.shape == (2, 11, hidden[-1] if hidden else 3)
    for row, seed in enumerate((0, 4)):
        layers = mlp.init_layers([generator(seed, "agent")], [3, *hidden])
        alone = [tuple(torch.tensor(array, dtype=torch.float32) for array in layer) for layer in layers]
        torch.testing.assert_close(outputs[[row]], mlp.layers_forward(alone, features[[row]]), rtol=1e-6, atol=1e-6)


def test_loss_of_a_prediction_by_hand():
    """Squared: (3 - 1)^2 = 4. Two logits (1, 3): -log softmax is ln(1 + e^-2) at reward 1 and 2 + ln(1 + e^-2) at 0."""
    assert build().fitted(torch.tensor([[[3.0]]]), torch.tensor([[1.0]])).item() == 4.0
    logits = torch.tensor([[[1.0, 3.0], [1.0, 3.0]]])
    found = build(loss="cross_entropy").fitted(logits, torch.tensor([[1.0, 0.0]]))
    np.testing.assert_allclose(found, [[np.log1p(np.exp(-2)), 2 + np.log1p(np.exp(-2))]], rtol=1e-6)
    expected = torch.nn.functional.cross_entropy(logits[0], torch.tensor([1, 0]), reduction="none")
    torch.testing.assert_close(found[0], expected, rtol=1e-6, atol=0)


def test_diagnostics_by_hand():
    """Mean squared error of the last minibatch; NaN before any; Greedy has no spread, and never explores."""
    agent = Watched((0, 1), hidden=(), **TRAINING | {"warm_up": 2})
    assert set(agent.diagnostics()) == {"loss", "spread", "explored"}
    assert np.isnan(agent.diagnostics()["loss"]).all()
    assert np.isnan(agent.diagnostics()["spread"]).all()
    for sample in range(1, 4):
        agent.act(Decisions(np.eye(3, dtype=np.float32)[None].repeat(2, axis=0)))
        before = base(agent)
        feed(agent, sample)
    reported = agent.diagnostics()
    features, rewards = (part.numpy() for part in agent.seen[-1])
    assert len(agent.seen) == 1
    np.testing.assert_allclose(reported["loss"][:, 0], ((features * before[:, :1] - rewards) ** 2).mean(axis=1), rtol=1e-5)
    assert reported["spread"].tolist() == reported["explored"].tolist() == [[0], [0]]


@pytest.mark.parametrize("rounds", [1, 5, CHUNK])
def test_random_numbers_are_the_rounds_own(rounds):
    """`now` gives round after round of a source, however many `load` draws at once, in the place it had before."""
    agent = build((3, 8))
    expected = Uniforms((3, 8), "minibatch", (1, 16))(2 * CHUNK)
    for round_ in range(2 * CHUNK):
        if round_ % rounds == 0:
            agent.load(min(rounds, 2 * CHUNK - round_))
        assert np.array_equal(agent.now("minibatch"), expected[:, round_])
        agent.end_round()


def test_parameters_are_parts_of_one_flat_tensor():
    """No two of them overlap, each begins at a multiple of 64 bytes, and their gradients are parts of one as well."""
    agent = build((0, 1, 2), (5, 7))
    starts = [offset for offset, _ in agent.layout.values()]
    ends = [offset + int(np.prod(shape)) for offset, shape in agent.layout.values()]
    assert all(start % 16 == 0 for start in starts)
    assert all(end <= start for end, start in zip(ends, [*starts[1:], len(agent.flat)], strict=True))
    with torch.no_grad():
        agent.flat.copy_(torch.arange(len(agent.flat), dtype=torch.float32))
    agent.flat.grad.copy_(-agent.flat)
    for name, (offset, shape) in agent.layout.items():
        expected = torch.arange(offset, offset + np.prod(shape), dtype=torch.float32).reshape(shape)
        assert torch.equal(agent.parameters[name], expected)
        assert torch.equal(agent.parameters[name].grad, -expected)


def test_a_run_does_not_import_the_compiler_of_torch():
    """torch.optim.Adam and torch.use_deterministic_algorithms import it, which takes longer than a short run."""
    script = """
import sys
from ensemblepp.agents.neural.greedy import Greedy
agent = Greedy([0], dimension=2, horizon=9, device="cpu", hidden=[4], learning_rate=1e-3, batch_size=2, weight_decay=0.0,
               buffer_capacity=9, gradient_steps=1, warm_up=0)
from ensemblepp.bandit import Decisions
import numpy as np
choice = agent.act(Decisions(np.ones((1, 3, 2), dtype=np.float32)))
agent.update(choice, np.ones((1, 1)))
assert np.isfinite(agent.last_loss.item())
print("torch._dynamo" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False", "a neural run starts two seconds later"
