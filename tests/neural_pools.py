"""Small pools and every agent that has compiled rounds, for tests that let several engines play the same rounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensemblepp.agents.neural.base import NeuralAgent
from ensemblepp.agents.neural.bootstrap import BootstrappedEnsemble
from ensemblepp.agents.neural.dropout import Dropout
from ensemblepp.agents.neural.ensembleplus import EnsemblePlus
from ensemblepp.agents.neural.ensemblepp import NeuralEnsemblePlusPlus
from ensemblepp.agents.neural.epinet import EpiNet
from ensemblepp.agents.neural.epsilon_greedy import EpsilonGreedy
from ensemblepp.agents.neural.greedy import Greedy
from ensemblepp.agents.neural.neural_linear import NeuralLinear
from ensemblepp.agents.neural.neural_ts import NeuralTS
from ensemblepp.agents.neural.neural_ucb import NeuralUCB
from ensemblepp.engines.neural.compiled import CompiledRun
from ensemblepp.engines.neural.epinet import EpiNetRun
from ensemblepp.engines.neural.run import Run
from ensemblepp.engines.neural.single_head import SingleHeadRun
from ensemblepp.engines.neural.stacked import StackedRun
from ensemblepp.environments.candidates import Neural, Quadratic
from ensemblepp.environments.classification import onehot
from ensemblepp.environments.contextual import Contextual
from ensemblepp.environments.pool import Pool
from ensemblepp.environments.scaling import unit_rows

SEEDS = (0, 1, 4)

#: Name of an engine -> its kind of run.
ENGINES: dict[str, type[Run]] = {"neural_compiled": CompiledRun, "neural_stacked": StackedRun}

#: The engine of the compiled rounds of every class of agents that is not made of linear heads.
OWN_ENGINES: dict[type[NeuralAgent], tuple[str, type[Run]]] = {
    EpiNet: ("epinet_compiled", EpiNetRun),
    **dict.fromkeys((NeuralUCB, NeuralTS, NeuralLinear, Dropout), ("single_head_compiled", SingleHeadRun)),
}

#: The pool on which an agent with that loss plays.
LOSSES = {"squared": "quadratic", "cross_entropy": "neural"}

#: Agents that are fitted by squares alone.
SQUARED = ("neural-ucb", "neural-ts", "neural-linear", "lmcts")

#: A buffer that overflows soon, and a step size that lets 200 rounds matter.
TRAINING = {
    "device": "cpu",
    "learning_rate": 1e-3,
    "batch_size": 16,
    "weight_decay": 0.1,
    "buffer_capacity": 50,
    "gradient_steps": 1,
    "warm_up": 10,
}
SCALES = {"prior_scale": 1.0, "posterior_scale": 0.3, "perturbation_scale": 0.1}
LAWS = {"references": ["sphere"], "perturbations": ["sphere"], "update": "coordinate"}

#: Class and options of each agent made of linear heads.
AGENTS: dict[str, tuple[type[NeuralAgent], dict]] = {
    "greedy": (Greedy, {}),
    "epsilon-greedy": (EpsilonGreedy, {"epsilon": 0.3}),
    **{
        f"ensemble++ {law}": (NeuralEnsemblePlusPlus, SCALES | LAWS | {"ensemble_size": 4, "update": law})
        for law in ("coordinate", "cube", "sparse", "gaussian", "sphere")
    },
    "ensemble++ chains": (
        NeuralEnsemblePlusPlus,
        SCALES
        | {"ensemble_size": 3, "update": "sphere"}
        | {"references": ["gaussian", "coordinate"], "perturbations": ["sphere", "raw_gaussian"]},
    ),
    "ensemble+": (EnsemblePlus, SCALES | {"ensemble_size": 4, "equal_noise": True}),
    "ensemble+ released": (EnsemblePlus, SCALES | {"ensemble_size": 4, "equal_noise": False, "any_class": True}),
    "bootstrap": (BootstrappedEnsemble, {"ensemble_size": 4}),
    "bootstrap any": (BootstrappedEnsemble, {"ensemble_size": 4, "any_class": True}),
}

#: The same of the others.
OTHERS: dict[str, tuple[type[NeuralAgent], dict]] = {
    "epinet": (EpiNet, SCALES | {"ensemble_size": 3, "index_samples": 4, "double_softmax": False}),
    "epinet released": (EpiNet, SCALES | {"ensemble_size": 5, "index_samples": 2, "double_softmax": True}),
    "neural-ucb": (NeuralUCB, {"ridge": 0.5, "exploration": 0.1}),
    "neural-ts": (NeuralTS, {"ridge": 2.0, "exploration": 0.5}),
    # anew now and then, and in rounds without a gradient step
    "neural-linear": (NeuralLinear, {"prior_variance": 2.0, "noise": 0.3, "refresh": 7}),
    "dropout": (Dropout, {"rate": 0.3}),
}

COMPILED = AGENTS | OTHERS


def compiled(name: str) -> tuple[str, type[Run]]:
    """The engine of an agent's compiled rounds, and its kind of run."""
    return OWN_ENGINES.get(COMPILED[name][0], ("neural_compiled", CompiledRun))


def losses(name: str) -> list[str]:
    """What an agent can be fitted by."""
    return [loss for loss in LOSSES if loss == "squared" or name not in SQUARED]


def pool(kind: str, seeds: Sequence[int]) -> Pool:
    """A small pool.

    "quadratic" has Gaussian rewards, "neural" Bernoulli rewards; "contextual" and "one-hot" have 3 fixed actions and one table
    for all seeds, the latter with at most 3 of 36 features other than 0, so that compiled rounds take them by their columns.
    """
    shape = {"dimension": 6, "candidates": 30, "offered": 7, "features": "sphere"}
    if kind == "quadratic":
        return Quadratic(seeds, scale=0.2, noise=0.1, **shape)
    if kind == "neural":
        options = {"hidden": [20], "temperature": 0.2, "weights": "xavier"}
        return Neural(seeds, **options, **shape | {"features": "gaussian"})
    source = np.random.default_rng(0)
    if kind == "one-hot":
        codes = source.integers(4, size=(90, 3))
        contexts = onehot(codes, np.full(3, 4)) * (source.random((90, 1)) + 0.5)
        # some rows have fewer places than others; none has none, which would make its actions equal
        contexts[:, 3] = 0
        return Contextual(seeds, contexts, np.eye(3)[codes.sum(axis=1) % 3], noise=0.1, passes=3)
    contexts = unit_rows(source.standard_normal((90, 4)))
    means = np.eye(3)[contexts[:, :3].argmax(axis=1)]
    return Contextual(seeds, contexts, means, noise=0.1, passes=3)


def build(name: str, environment: Pool, horizon: int, **changes) -> NeuralAgent:
    """The agent of that name for an environment's seeds."""
    kind, options = COMPILED[name]
    settings = TRAINING | {"hidden": [16, 16]} | options | changes
    return kind(environment.seeds, dimension=environment.dimension, horizon=horizon, **settings)


def play(kind: type[Run], agent: NeuralAgent, environment: Pool, horizon: int, time: np.ndarray | None = None) -> Run:
    """A run of a kind, played to its end."""
    run = kind(agent, environment, horizon, np.array([horizon]) if time is None else time)
    while agent.round < horizon:
        run.advance()
    return run
