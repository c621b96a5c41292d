"""How much stacking seeds gains in training: python bench/nonlinear.py prints CPU time per gradient step, 1 and 10 seeds.

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
from ensemblepp.agents.neural_ensemblepp import NeuralEnsemblePlusPlus
from ensemblepp.environments.contextual import Contextual, unit_rows
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
    print("neural agents, us per seed and gradient step    1 seed   10 seeds   ratio")
    for name, width, classes in (("Mushroom", 117, 2), ("Shuttle", 9, 7)):
        for agent in (Greedy, NeuralEnsemblePlusPlus):
            one, ten = neural(agent, 1, width, classes), neural(agent, 10, width, classes)
            print(f"  {name:<10}{agent.__name__:<34}{one:9.0f} {ten:10.0f} {one / ten:7.1f}")


if __name__ == "__main__":
    main()
