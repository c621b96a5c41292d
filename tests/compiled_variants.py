"""Every compiled variant that a run can need, as a program: each argument is a process that plays the variants it lists.

Prints a digest of every process's runs. The processes are forked, which saves them the imports, before anything is compiled.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import sys

import torch
from linear_bandits import bandit, ensemble
from neural_pools import build, compiled, pool

from ensemblepp.agents.linear.thompson_sampling import LinearThompsonSampling
from ensemblepp.engines.choice import simulate
from ensemblepp.engines.linear import compiled as _linear  # noqa: F401
from ensemblepp.engines.neural import compiled as _neural  # noqa: F401
from ensemblepp.engines.neural import epinet as _epinet  # noqa: F401

torch.set_num_threads(1)


def linear(actions: int, precision: str):
    laws = {"references": ["sphere", "coordinate"], "perturbations": ["sphere", "sparse"]}
    return simulate(bandit([1, 2], 10, actions), ensemble([1, 2], 10, 8, precision, **laws), 200)


def thompson(actions: int):
    return simulate(bandit([1, 2], 10, actions), LinearThompsonSampling([1, 2], dimension=10, prior_variance=10.0), 200)


def neural(name: str, kind: str, hidden: list[int], loss: str):
    environment = pool(kind, (0, 1))
    return simulate(environment, build(name, environment, 60, hidden=hidden, loss=loss), 60, engine=compiled(name)[0])


VARIANTS = {
    "mixed": lambda: linear(100, "mixed"),
    "float64": lambda: linear(100, "float64"),
    "ts": lambda: thompson(100),
    "sphere": lambda: linear(0, "float64"),
    "squared": lambda: neural("ensemble++ coordinate", "quadratic", [16, 16], "squared"),
    "cross-entropy": lambda: neural("ensemble++ gaussian", "neural", [7], "cross_entropy"),
    "no members": lambda: neural("epsilon-greedy", "quadratic", [], "squared"),
    "members only": lambda: neural("ensemble+", "contextual", [9, 8], "squared"),
    "epinet": lambda: neural("epinet", "quadratic", [16, 16], "squared"),
    "epinet released": lambda: neural("epinet released", "neural", [7], "cross_entropy"),
}


def played(names: str) -> dict[str, str]:
    found = {}
    for name in names.split(","):
        run = VARIANTS[name]()
        found[name] = hashlib.sha256(run.regret.tobytes() + run.reward.tobytes()).hexdigest()
    return found


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as processes:
        json.dump(processes.map(played, sys.argv[1:], chunksize=1), sys.stdout)
