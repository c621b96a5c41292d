"""What engines ask of the classes that they play, which may be a user's, so that none is played that says something else.

Names, shapes and types are checked before the first round and what came of a run after the last; what a round gives is
checked as it comes, as cheaply as it can be. A promise that is broken is an `InterfaceError` that names the class and the
method, what was expected and what came. `ensemblepp.testing` asks for more, and takes longer.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from ensemblepp.bandit import Agent, Choice, Decisions, Environment, LinearEnvironment, LinearInstance, Outcome, SphereDecisions
from ensemblepp.errors import InterfaceError
from ensemblepp.trajectory import Trajectory

#: Names that a run file has already, of variables, dimensions and coordinates, and one that engines keep sums by.
RESERVED = frozenset(
    {
        "action",
        "action_index",
        "agent",
        "constant",
        "constant_regret",
        "ensemble_size",
        "environment",
        "error",
        "optimal",
        "perturbation",
    }
    | {"reference", "regret", "reward", "seed", "step", "time"}
)


# ---------------------------------------------------------------------------------------------------------- at the start


def check(agent: Agent, environment: Environment) -> None:
    """Before a run: methods, seeds, chains, numbers of things, and what the agent reports.

    Raises:
        InterfaceError: a promise is broken.
    """
    for one, methods in ((environment, ("decisions", "mean_rewards", "step")), (agent, ("act", "update"))):
        for method in methods:
            if not callable(getattr(one, method, None)):
                fail(type(one).__name__, method, "there is no such method", "see bandit.py of the package")
    check_numbers(environment)
    seeds = check_seeds(environment, environment.seeds)
    check_seeds(agent, environment.seeds)
    reported(agent, (seeds, check_chains(agent)), None)
    if getattr(environment, "family", None) == "pool":
        _check_pool(environment)


def check_seeds(one: Agent | Environment, seeds: Sequence[int]) -> int:
    """How many seeds there are, all of which `one` has."""
    found = getattr(one, "seeds", None)
    try:
        same = found is not None and tuple(found) == tuple(seeds)
    except TypeError:
        same = False
    if not same:
        fail(type(one).__name__, "seeds", "not the seeds that it was built with", tuple(seeds), repr(found))
    return len(seeds)


def check_numbers(environment: Environment) -> None:
    """Whether an environment says how many entries and fixed actions there are."""
    name = type(environment).__name__
    if getattr(environment, "seeds", None) is None:
        fail(name, "seeds", "there is no such attribute", "the seeds that it was built with")
    for attribute, least in (("dimension", 1), ("fixed_actions", 0)):
        value = getattr(environment, attribute, None)
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or value < least:
            fail(name, attribute, "not a number of things", f"a whole number from {least}", repr(value))


def check_chains(agent: Agent) -> int:
    """How many chains there are: every reference law with every perturbation law, once."""
    name, chains = type(agent).__name__, getattr(agent, "chains", None)
    expected = 'one pair of law names a chain, such as (("none", "none"),)'
    pairs = isinstance(chains, Sequence) and not isinstance(chains, str) and len(chains) > 0
    if not pairs or not all(isinstance(pair, tuple | list) and [type(part) for part in pair] == [str, str] for pair in chains):
        fail(name, "chains", "not pairs of texts", expected, repr(chains))
    references, perturbations = (list(dict.fromkeys(part)) for part in zip(*chains, strict=True))
    grid = list(itertools.product(references, perturbations))
    if [tuple(pair) for pair in chains] != grid:
        fail(name, "chains", "not every reference with every perturbation, once, references first", grid, repr(chains))
    return len(chains)


def reported(agent: Agent, shape: tuple[int, int], names: Any) -> dict[str, np.ndarray]:
    """What the agent says of itself, (seeds, chains) each; `names` are those that it had before."""
    name, values_of = type(agent).__name__, getattr(agent, "diagnostics", dict)()
    if not isinstance(values_of, dict):
        fail(name, "diagnostics", "not a dictionary", "name -> (seeds, chains)", type(values_of).__name__)
    for key, values in values_of.items():
        if not isinstance(key, str) or not key.isidentifier():
            fail(name, "diagnostics", "not a name", "letters, digits and '_'", repr(key))
        if key in RESERVED:
            allowed = f"none of {', '.join(sorted(RESERVED))}"
            fail(name, "diagnostics", f"'{key}' is the name of something else in a run file", allowed)
        is_array(name, "diagnostics", f"'{key}'", values, shape, np.number)
    if names is not None and list(values_of) != list(names):
        fail(name, "diagnostics", "other names than before", list(names), list(values_of))
    return values_of


def _check_pool(pool: Any) -> None:
    """Whether an `environments.pool.Pool` has features and means of all items, for one list of them or one for each seed."""
    name = type(pool).__name__
    for what, values in (("table", pool.table), ("means", pool.means)):
        lists = len(values) if len(values) in (1, len(pool.seeds)) else f"1 or {len(pool.seeds)}"
        rest = (pool.table.shape[1:] if what == "table" else (pool.table.shape[1] * pool.blocks,))[: max(values.ndim - 1, 1)]
        is_array(name, what, "of the pool", values, (lists, *rest), np.floating)
    if pool.table.ndim != 3 or pool.table.dtype != np.float32:
        fail(name, "table", "wrong type", "float32 (seeds or 1, rows, width)", f"{pool.table.dtype} {pool.table.shape}")


# --------------------------------------------------------------------------------------------------------- in every round


def check_choice(agent: Agent, choice: Choice, decisions: Decisions, seeds: int, chains: int, step: int) -> None:
    """Whether a choice names an action of its decision set for every seed and chain; `step` counts from 1."""
    index = getattr(choice, "index", None)
    actions = 1 if isinstance(decisions, SphereDecisions) else decisions.features.shape[1]
    if type(index) is not np.ndarray or index.shape != (seeds, chains) or index.dtype.kind != "i":
        where = f"round {step}: "
        if not isinstance(choice, Choice):
            expected = "decisions.choose(index) or decisions.maximise(theta)"
            fail(type(agent).__name__, "act", f"{where}not a Choice", expected, type(choice).__name__)
        is_array(type(agent).__name__, "act", f"{where}index", index, (seeds, chains), np.integer)
    outside = outside_range(index, actions)
    if outside is not None:
        seed, chain = outside
        what = f"round {step}: index outside the decision set at place {seed}, chain {chain}"
        fail(type(agent).__name__, "act", what, f"0 to {actions - 1}", index[seed, chain])


def check_features(agent: Agent, choice: Choice, decisions: Decisions, shape: tuple[int, int, int], step: int) -> None:
    """Whether the features of a choice, of `shape` (seeds, chains, d), are those of the actions that it names."""
    name, at = type(agent).__name__, f"round {step}: "
    index, features = choice
    is_array(name, "act", f"{at}features", features, shape, np.floating)
    if isinstance(decisions, SphereDecisions):
        if not np.allclose(np.linalg.norm(features, axis=-1), 1, rtol=1e-6):
            fail(name, "act", f"{at}features outside the unit sphere", "norm 1", np.linalg.norm(features, axis=-1).max())
        return
    expected = decisions.features[np.arange(len(index))[:, None], index]
    different = (features != expected).any(axis=-1)
    if different.any():
        seed, chain = np.argwhere(different)[0]
        what = f"{at}features are not those of the action at index, at place {seed}, chain {chain}"
        fail(name, "act", what, expected[seed, chain], features[seed, chain])


def check_decisions(environment: Environment, decisions: Decisions, step: int) -> None:
    """Whether a round's decision sets are some, of the environment's dimension, for every seed."""
    if isinstance(decisions, SphereDecisions):
        return
    name, at = type(environment).__name__, f"round {step}: "
    features = getattr(decisions, "features", None)
    if not isinstance(features, np.ndarray) or features.ndim != 3 or not features.size:
        found = getattr(features, "shape", type(features).__name__)
        fail(name, "decisions", f"{at}no features", "an array of shape (seeds, actions, d)", found)
    shape = (len(environment.seeds), features.shape[1], environment.dimension)
    is_array(name, "decisions", f"{at}features", features, shape, np.floating)
    if environment.fixed_actions and features.shape[1] != environment.fixed_actions:
        fail(name, "decisions", f"{at}not fixed_actions actions", environment.fixed_actions, features.shape[1])


def check_outcome(environment: Environment, outcome: Outcome, shape: tuple[int, int], step: int) -> None:
    """Whether an outcome has a reward and a regret for every seed and chain, (seeds, chains)."""
    reward, regret = outcome if isinstance(outcome, Outcome) else (None, None)
    if getattr(reward, "shape", None) == shape == getattr(regret, "shape", None):
        return
    name, at = type(environment).__name__, f"round {step}: "
    if not isinstance(outcome, Outcome):
        fail(name, "step", f"{at}not an Outcome", "bandit.Outcome(reward, regret)", type(outcome).__name__)
    for what, values in zip(Outcome._fields, outcome, strict=True):
        is_array(name, "step", f"{at}{what}", values, shape, np.floating)


def check_means(environment: Environment, means: np.ndarray, actions: int, step: int) -> None:
    """Whether there is a mean reward for every fixed action of every seed."""
    shape = (len(environment.seeds), actions)
    if getattr(means, "shape", None) != shape:
        is_array(type(environment).__name__, "mean_rewards", f"round {step}: means", means, shape, np.floating)


def check_draw(pool: Any, drawn: Any, rounds: int) -> None:
    """Whether an `environments.pool.Pool` drew between one and `rounds` rounds, of items that it has."""
    name, seeds = type(pool).__name__, len(pool.seeds)
    count = drawn.noise.shape[1] if getattr(drawn.noise, "ndim", 0) == 2 else 0
    if not 1 <= count <= rounds:
        fail(name, "draw", f"{count} rounds where {rounds} were asked for", f"1 to {rounds}")
    is_array(name, "draw", "noise", drawn.noise, (seeds, count), np.floating)
    offers = drawn.offers
    shape = (seeds, count, offers.shape[-1] if getattr(offers, "ndim", 0) == 3 else "actions")
    is_array(name, "draw", "offers", offers, shape, np.integer)
    items = pool.table.shape[1] * pool.blocks
    if not offers.size or offers.min() < 0 or offers.max() >= items:
        found = f"{offers.min()} to {offers.max()}" if offers.size else "none"
        fail(name, "draw", "offers an item that there is not", f"0 to {items - 1}", found)


def check_index(agent: Agent, index: np.ndarray, chains: int, actions: int, step: int) -> None:
    """Whether `index`, (chains of all seeds,), names one of so many actions for every chain."""
    name = type(agent).__name__
    if index.shape != (chains,) or index.dtype.kind != "i":
        is_array(name, "choose", f"round {step}: position", index, (chains,), np.integer)
    outside = outside_range(index, actions)
    if outside is not None:
        what = f"round {step}: position outside the decision set at chain {outside[0]}"
        fail(name, "choose", what, f"0 to {actions - 1}", index[outside[0]])


def instances(environment: LinearEnvironment) -> Iterator[LinearInstance]:
    """The instances of a linear environment, one for every seed in order; their draws are checked as they are made."""
    name, seeds = type(environment).__name__, tuple(environment.seeds)
    found = 0
    for instance in environment.instances():
        if found == len(seeds) or instance.seed != seeds[found]:
            fail(name, "instances", "not one for every seed, in order", seeds, f"seed {instance.seed} at place {found}")
        found += 1
        yield _checked(name, instance, environment.dimension)
    if found < len(seeds):
        fail(name, "instances", "not one for every seed, in order", seeds, f"{found} of them")


def _checked(name: str, one: LinearInstance, dimension: int) -> LinearInstance:
    at = f"seed {one.seed}: "
    is_array(name, "instances", f"{at}theta", one.theta, (dimension,), np.floating)
    if one.features is not None:
        rows = len(one.features) if np.ndim(one.features) == 2 else "actions"
        is_array(name, "instances", f"{at}features", one.features, (rows, dimension), np.floating)

    def drawn(method: str, draw: Callable[[int], np.ndarray], shape: tuple[int, ...]) -> Callable[[int], np.ndarray]:
        def draw_checked(rounds: int) -> np.ndarray:
            values = draw(rounds)
            is_array(name, "instances", f"{at}{method}({rounds})", values, (rounds, *shape), np.floating)
            return values

        return draw_checked

    fresh = one.fresh and drawn("fresh", one.fresh, (one.actions, dimension))
    return replace(one, reward_noise=drawn("reward_noise", one.reward_noise, ()), fresh=fresh)


# -------------------------------------------------------------------------------------------------------------- at the end


def check_trajectory(trajectory: Trajectory, agent: Agent, environment: Environment) -> None:
    """After a run: its sums are numbers, since one that is none stays in all that follow.

    Raises:
        InterfaceError: a regret or reward is not finite; names the first seed and round.
    """
    for what in ("regret", "reward"):
        bad = ~np.isfinite(getattr(trajectory, what))
        if bad.any():
            seed, chain, column = np.argwhere(bad)[np.argwhere(bad)[:, 2].argmin()]
            where = f"{type(agent).__name__} in {type(environment).__name__}, seed {agent.seeds[seed]}, chain {chain}"
            found = getattr(trajectory, what)[seed, chain, column]
            fail(where, "", f"{what} is not finite in round {trajectory.time[column]} or before", "finite numbers", found)


# --------------------------------------------------------------------------------------------------------------- all of them


def outside_range(index: np.ndarray, actions: int) -> np.ndarray | None:
    """The place of the first entry of `index` that is not one of 0 to actions - 1, or None."""
    # as unsigned numbers negative ones are the greatest of all: one comparison for both ends
    if index.view(f"u{index.itemsize}").max() < actions:
        return None
    return np.argwhere((index < 0) | (index >= actions))[0]


def is_array(name: str, method: str, what: str, values: Any, shape: tuple[Any, ...], kind: type) -> None:
    """Whether `values` is an array of that shape and kind, of finite numbers if it is one of `np.floating`.

    Raises:
        InterfaceError: it is not.
    """
    if not isinstance(values, np.ndarray):
        fail(name, method, f"{what} is no array", f"a numpy array of shape {shape}", type(values).__name__)
    if values.shape != shape:
        fail(name, method, f"{what} has the wrong shape", shape, values.shape)
    if not np.issubdtype(values.dtype, kind):
        fail(name, method, f"{what} has the wrong type", f"a numpy {kind.__name__} type", values.dtype)
    if kind is np.floating and not np.isfinite(values).all():
        fail(name, method, f"{what} is not finite", "finite numbers", values[~np.isfinite(values)][0])


def fail(name: str, method: str, what: str, expected: Any, found: Any = "") -> NoReturn:
    """Raise the `InterfaceError` of a class."""
    where = f"{name}.{method}" if method else name
    # arrays too in one line
    expected, found = (" ".join(str(value).split()) for value in (expected, found))
    came = f", found {found}" if found else ""
    raise InterfaceError(f"{where}: {what} (expected {expected}{came})")
