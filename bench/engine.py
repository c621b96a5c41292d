"""How much batching gains: python bench/engine.py prints CPU time per chain-step, batched against one run at a time.

Everything is measured in one process on one thread, medians of `REPEATS`; only the ratios travel between machines.
"""

import os

for library in ("OMP", "MKL", "OPENBLAS", "NUMBA"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch

from ensemblepp.agents.greedy import Greedy
from ensemblepp.agents.linear_ensemblepp import LinearEnsemblePlusPlus
from ensemblepp.agents.linear_ts import LinearThompsonSampling
from ensemblepp.agents.neural_ensemblepp import NeuralEnsemblePlusPlus
from ensemblepp.distributions import LAWS
from ensemblepp.environments.contextual import Contextual, unit_rows
from ensemblepp.environments.linear_finite import LinearFinite
from ensemblepp.simulate import simulate

REPEATS = 5


def cpu_seconds(task: Callable[[], object]) -> float:
    """Median CPU time of `task`."""
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        task()
        times.append(time.process_time() - start)
    return statistics.median(times)


def linear(dimension: int, actions: int, size: int, seeds: int, laws: tuple[str, ...], horizon: int) -> float:
    """Microseconds per chain-step of linear Ensemble++."""

    def task() -> None:
        environment = LinearFinite(
            range(seeds), dimension=dimension, actions=actions, feature_bound=5**-0.5, prior_variance=10.0, noise=1.0
        )
        agent = LinearEnsemblePlusPlus(
            range(seeds), dimension=dimension, ensemble_size=size, references=laws, perturbations=laws, prior_variance=10.0
        )
        simulate(environment, agent, horizon)

    return cpu_seconds(task) / (horizon * seeds * len(laws) ** 2) * 1e6


def literal(dimension: int, actions: int, size: int, horizon: int) -> float:
    """Microseconds per step of one run straight from the paper's formulas, with an explicit inverse."""

    def task() -> None:
        source = np.random.default_rng(0)
        features = source.uniform(-(5**-0.5), 5**-0.5, (actions, dimension))
        theta = np.sqrt(10) * source.standard_normal(dimension)
        precision = np.eye(dimension) / 10
        covariance, mean = np.eye(dimension) * 10, np.zeros(dimension)
        factor = np.sqrt(10 / size) * source.standard_normal((dimension, size))
        for _ in range(horizon):
            x = features[np.argmax(features @ (mean + factor @ source.standard_normal(size)))]
            reward = x @ theta + source.standard_normal()
            z = source.standard_normal(size)
            updated = precision + np.outer(x, x)
            covariance = np.linalg.inv(updated)
            mean = covariance @ (precision @ mean + x * reward)
            factor = covariance @ (precision @ factor + np.outer(x, z / np.linalg.norm(z)))
            precision = updated

    return cpu_seconds(task) / horizon * 1e6


def thompson(dimension: int, actions: int, seeds: int, horizon: int) -> float:
    """Microseconds per step and seed of exact Thompson sampling."""

    def task() -> None:
        environment = LinearFinite(
            range(seeds), dimension=dimension, actions=actions, feature_bound=5**-0.5, prior_variance=10.0, noise=1.0
        )
        simulate(environment, LinearThompsonSampling(range(seeds), dimension=dimension, prior_variance=10.0), horizon)

    return cpu_seconds(task) / (horizon * seeds) * 1e6


def neural(agent: type, seeds: int, width: int, classes: int, rounds: int = 20, gradient_steps: int = 20) -> float:
    """Microseconds per seed and gradient step on random contexts of a UCI set's shape."""
    source = np.random.default_rng(0)
    contexts = unit_rows(source.standard_normal((2000, width)))
    means = np.eye(classes)[source.integers(0, classes, 2000)]
    laws = {"reference": "sphere", "perturbation": "sphere", "perturbation_scale": 0.01}
    scales = {} if agent is Greedy else {"prior_scale": 1.0, "posterior_scale": 0.1, **laws}

    def task() -> None:
        environment = Contextual(range(seeds), contexts, means, noise=0.1, passes=1)
        player = agent(
            range(seeds),
            dimension=environment.dimension,
            ensemble_size=8,
            horizon=rounds,
            device="cpu",
            hidden=[64, 64],
            learning_rate=1e-4,
            batch_size=128,
            weight_decay=0.01,
            buffer_capacity=10_000,
            gradient_steps=gradient_steps,
            warm_up=0,
            **scales,
        )
        simulate(environment, player, rounds)

    return cpu_seconds(task) / (rounds * gradient_steps * seeds) * 1e6


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    print("linear Ensemble++, us per chain-step    literal   1 chain   25 x 10 chains   literal / batched")
    for dimension, actions, size in ((10, 100, 8), (50, 100, 8), (50, 1000, 8), (50, 1000, 64), (50, 10_000, 8)):
        slow = literal(dimension, actions, size, 100)
        single = linear(dimension, actions, size, 1, ("gaussian",), 100)
        batched = linear(dimension, actions, size, 10, LAWS, 30)
        case = f"d={dimension:<3} |X|={actions:<6} M={size}"
        print(f"  {case:<36}{slow:9.1f} {single:9.1f} {batched:16.2f} {slow / batched:19.1f}")
    print("\nexact Thompson sampling, us per step and seed   1 seed   10 seeds")
    for dimension, actions in ((10, 100), (50, 1000)):
        one, ten = thompson(dimension, actions, 1, 200), thompson(dimension, actions, 10, 200)
        print(f"  d={dimension:<3} |X|={actions:<35}{one:9.1f} {ten:10.1f}")
    print("\nneural agents, us per seed and gradient step    1 seed   10 seeds   ratio")
    for name, width, classes in (("Mushroom", 117, 2), ("Shuttle", 9, 7)):
        for agent in (Greedy, NeuralEnsemblePlusPlus):
            one, ten = neural(agent, 1, width, classes), neural(agent, 10, width, classes)
            print(f"  {name:<10}{agent.__name__:<34}{one:9.0f} {ten:10.0f} {one / ten:7.1f}")


if __name__ == "__main__":
    main()
