"""Which engine plays what: one rule for the configuration, which knows families by name, and for objects in Python."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from ensemblepp import registry
from ensemblepp.bandit import Agent, AgentFamily, Environment, EnvironmentFamily
from ensemblepp.engines import contract
from ensemblepp.trajectory import Trajectory, stored_rounds

if TYPE_CHECKING:
    # not for the configuration, which asks for names only: this is slow to import
    from ensemblepp.storage.checkpoints import Checkpoint

#: Families of neural agents that have compiled rounds, and the engine that plays those.
_COMPILED: dict[AgentFamily | None, str] = {
    "linear_heads": "neural_compiled",
    "epinet": "epinet_compiled",
    "single_head": "single_head_compiled",
}

#: Families whose kernels few agents use, and rounds that are too few for those: they would be compiled, some ten seconds once
#: for a machine, for less than that saves.
_RARE, SHORT = ("epinet", "single_head"), 200


def engine_name(
    agent: AgentFamily | None, environment: EnvironmentFamily | None, device: str, horizon: int | None = None
) -> str:
    """The fastest engine for an agent's and an environment's family on "cpu" or "cuda", a key of `registry.ENGINES`.

    Args:
        agent: the agent's family.
        environment: the environment's.
        device: where the agent is.
        horizon: T; None: many rounds.
    """
    if agent in _RARE and horizon is not None and horizon <= SHORT:
        agent = "neural"
    if agent == "linear" and environment == "linear":
        return "linear_compiled" if device == "cpu" else "linear_batched"
    if agent in ("neural", *_COMPILED) and environment == "pool":
        return _COMPILED.get(agent, "neural_stacked") if device == "cpu" else "neural_stacked"
    return "step_by_step"


def choose(agent: Agent, environment: Environment, horizon: int | None = None) -> str:
    """The engine of two objects for so many rounds; None: many.

    Engines that replace an agent's own code (all but the stacked rounds, which call it) are for classes that name their family
    themselves: a class derived from one of them may have changed anything. So may an environment that has rounds of its own.
    """
    family = vars(type(agent)).get("family")
    if family is None and getattr(agent, "family", None) in ("neural", *_COMPILED):
        family = "neural"
    if getattr(agent, "track_covariance", False):
        family = None
    return engine_name(family, _family(environment), str(getattr(agent, "device", "cpu")).split(":")[0], horizon)


def _family(environment: Environment) -> EnvironmentFamily | None:
    """An environment's family, unless its class has rounds of its own, which an engine would not know of."""
    for kind in type(environment).__mro__:
        if "family" in vars(kind):
            return kind.family
        if vars(kind).keys() & {"decisions", "mean_rewards", "step"}:
            return None
    return None


def simulate(
    environment: Environment,
    agent: Agent,
    horizon: int,
    on_step: Callable[[int], None] = lambda rounds: None,
    checkpoint: Checkpoint | None = None,
    engine: str | None = None,
) -> Trajectory:
    """Let `agent` play `environment` for `horizon` rounds.

    Args:
        environment: the environment.
        agent: the agent, made for the environment's seeds.
        horizon: T.
        on_step: told how many rounds, summed over seeds, are done.
        checkpoint: with one, a run that was killed goes on from its last one.
        engine: a key of `registry.ENGINES`; None: the fastest that serves (`choose`).

    Raises:
        InterfaceError: the agent or the environment breaks what `ensemblepp.bandit` promises.
    """
    module = import_module(registry.ENGINES[engine or choose(agent, environment, horizon)])
    contract.check(agent, environment)
    time = stored_rounds(len(agent.chains), horizon, bool(getattr(agent, "diagnostics", dict)()))
    trajectory = module.play(agent, environment, horizon, time, on_step, checkpoint)
    contract.check_trajectory(trajectory, agent, environment)
    return trajectory
