"""Whether seeds played together leave, to the last bit, what each seed leaves alone: every agent, engine and shape.

`python stacks.py SET...` prints the cases of those sets in which they do not. It is a program of its own, because libraries
look once at what a processor can do (`engines/test_stacks.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence

import neural_pools as pools
import numpy as np
import torch
from linear_bandits import bandit, ensemble

from ensemblepp.agents.linear.ucb import LinearUCB
from ensemblepp.agents.neural.lmcts import LMCTS
from ensemblepp.engines.choice import simulate
from ensemblepp.engines.neural.stacked import StackedRun

SEEDS = (0, 1, 4)
ROUNDS = 16

#: Trunks; an odd width leaves every chain but the first at an odd place in memory.
SHAPES = [(), (9, 8, 7), (50,), (64, 64)]

#: What is trained soon and often, so that a bit that differs is soon in everything.
TRAINING = {"hidden": (9, 8, 7), "gradient_steps": 2, "warm_up": 3, "buffer_capacity": 15}

#: Agents that PyTorch alone plays.
OTHERS = {"lmcts": (LMCTS, {"temperature": 0.01, "decay_every": 5, "learning_rate": 1e-4})}

#: What one run leaves by name, every entry with the seeds (or their chains, in order) first.
Outcome = dict[str, np.ndarray]


def neural(name: str, way: str, kind: str = "quadratic", **changes) -> Callable[[Sequence[int]], Outcome]:
    """A player of a neural agent: whole by an engine ("torch", "compiled"), or "step by step"."""
    loss = {"loss": "cross_entropy" if kind == "neural" else "squared"}

    def play(seeds: Sequence[int]) -> Outcome:
        environment = pools.pool(kind, seeds)
        build, options = (pools.COMPILED | OTHERS)[name]
        settings = pools.TRAINING | TRAINING | loss | options | changes
        agent = build(seeds, dimension=environment.dimension, horizon=ROUNDS, **settings)
        if way == "step by step":
            trajectory = simulate(environment, agent, ROUNDS, engine="step_by_step")
        else:
            engine = pools.compiled(name)[1] if way == "compiled" else StackedRun
            trajectory = pools.play(engine, agent, environment, ROUNDS, np.arange(1, ROUNDS + 1)).trajectory()
        left = {key: getattr(trajectory, key) for key in ("action", "regret", "reward", "optimal")}
        if name == "neural-linear":
            left |= {"precision": agent.precision.numpy(), "factor": agent._factor().numpy(), "moment": agent.moment.numpy()}
        return left | trajectory.diagnostics | {key: value.detach().numpy() for key, value in agent.parameters.items()}

    return play


def linear(name: str, actions: int, step_by_step: bool, precision: str) -> Callable[[Sequence[int]], Outcome]:
    """A player of a linear agent, whole or round by round."""

    def play(seeds: Sequence[int]) -> Outcome:
        environment = bandit(seeds, 7, actions)
        if name == "linear-ucb":
            agent = LinearUCB(seeds, dimension=7, prior_variance=1.0, width=1.0, delta=0.05)
        else:
            agent = ensemble(seeds, 7, 5, precision)
        trajectory = simulate(environment, agent, ROUNDS, engine="step_by_step" if step_by_step else None)
        return {key: getattr(trajectory, key) for key in ("action", "regret", "reward", "optimal")}

    return play


def cases(which: str) -> Iterator[tuple[str, Callable[[Sequence[int]], Outcome]]]:
    """(what it is, its player) of a set: "torch", "compiled" or "linear"."""
    if which == "linear":
        for actions in (0, 37):
            for precision in ("float64", "mixed"):
                for step_by_step in (False, True):
                    case = "linear-ensemble++", actions, step_by_step, precision
                    yield str(case), linear(*case)
        yield "linear-ucb", linear("linear-ucb", 37, True, "float64")
        return
    for name in (*pools.COMPILED, *(OTHERS if which == "torch" else ())):
        for kind in ("quadratic", "neural"):
            if kind == "quadratic" or name not in pools.SQUARED:
                yield f"{name} {kind} {which}", neural(name, which, kind)
    for name in ("ensemble++ coordinate", "ensemble+", "bootstrap", *pools.OTHERS, *(OTHERS if which == "torch" else ())):
        for hidden in SHAPES:
            yield f"{name} {hidden} {which}", neural(name, which, hidden=hidden, batch_size=13)
    for name in ("ensemble++ coordinate", "ensemble++ gaussian", "ensemble+", "bootstrap", "epinet"):
        for hidden in ((), (50,), (64, 64)):
            yield f"{name} M=1 {hidden} {which}", neural(name, which, hidden=hidden, ensemble_size=1)
    if which == "compiled":
        for name in pools.COMPILED:
            yield f"{name} one-hot", neural(name, which, "one-hot")
    if which == "torch":
        for name in (*pools.COMPILED, *OTHERS):
            yield f"{name} step by step", neural(name, "step by step")


def differs(play: Callable[[Sequence[int]], Outcome], seeds: Sequence[int] = SEEDS) -> list[str]:
    """What differs between seeds together and each alone, but for the first, which lies where it lies alone."""
    together, found = play(seeds), []
    for row, seed in list(enumerate(seeds))[1:]:
        for name, alone in play((seed,)).items():
            part = together[name][row * len(alone) : (row + 1) * len(alone)]
            if not np.array_equal(part, alone, equal_nan=True):
                found.append(f"{name} of seed {seed}")
    return found


if __name__ == "__main__":
    torch.set_num_threads(1)
    for which in sys.argv[1:]:
        for case, player in cases(which):
            if names := differs(player):
                print(f"{case}: {', '.join(names)}")
