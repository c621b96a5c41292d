"""Does a class of your own keep what `ensemblepp.bandit` promises? Two functions, for a test of three lines:

    from ensemblepp.testing import check_agent

    def test_mine():
        check_agent(Mine)

Each plays a few rounds several times over and compares. A promise that is broken is an `AssertionError` that names the class
and the method, what came and what was expected.
"""

from __future__ import annotations

import contextlib
import json
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ensemblepp.bandit import Agent, Choice, Environment, Outcome, SphereDecisions
from ensemblepp.engines import contract
from ensemblepp.engines.contract import fail as _fail
from ensemblepp.engines.contract import is_array as _is_array
from ensemblepp.environments.linear_finite import LinearFinite
from ensemblepp.environments.pool import Pool
from ensemblepp.errors import InterfaceError
from ensemblepp.storage.states import Parts, UnstorableError, pack, unpack

#: The seeds that are played together and alone: not in order, not from 0, one of them large.
SEEDS = (3, 0, 10_007)

#: What rounding may change, relative to the largest reward.
ROUNDING = 1e-9


def _small_bandit(seeds: Sequence[int]) -> Environment:
    """Seven fresh actions of five features every round."""
    options = {"feature_bound": 1.0, "prior_variance": 1.0, "noise": 0.1, "varying": True}
    return LinearFinite(seeds, dimension=5, actions=7, **options)


@contextlib.contextmanager
def _asserted() -> Iterator[None]:
    """What engines raise is a failed test here."""
    try:
        yield
    except InterfaceError as error:
        raise AssertionError(str(error)) from None


@_asserted()
def check_agent(
    make_agent: Callable[..., Agent],
    environment: Callable[[Sequence[int]], Environment] = _small_bandit,
    *,
    ensemble_size: int = 0,
    rounds: int = 40,
) -> None:
    """Check an agent against `bandit.Agent`, round by round in small bandits.

    Args:
        make_agent: the class, or what builds it with hyper-parameters, such as `functools.partial(Mine, width=2.0)`; called as
            `make_agent(seeds, dimension=d, ensemble_size=M, horizon=T, device="cpu")`.
        environment: builds the environment from the seeds.
        ensemble_size: M; 0 for an agent without an ensemble.
        rounds: T. More than the agent needs before it learns.

    Raises:
        AssertionError: a promise is broken.
    """

    def built(seeds: Sequence[int]) -> tuple[Agent, Environment]:
        bandit = environment(seeds)
        keywords = {"dimension": bandit.dimension, "ensemble_size": ensemble_size, "horizon": rounds, "device": "cpu"}
        return _built(make_agent, seeds, keywords), bandit

    with _global_numbers() as used:
        first = _played(*built(SEEDS), rounds)
    name = first.name
    _check_own_numbers(name, used)
    again = _played(*built(SEEDS), rounds)
    if not np.array_equal(first.index, again.index):
        _fail(name, "act", "other choices at the same seeds", "every run of a seed to be the same")
    for place, seed in enumerate(SEEDS):
        alone = _played(*built((seed,)), rounds)
        for round_, (together, single) in enumerate(zip(first.index, alone.index, strict=True), start=1):
            if not np.array_equal(together[place], single[0]):
                company = ", ".join(map(str, SEEDS))
                _fail(
                    name,
                    "act",
                    f"round {round_}: seed {seed} chooses otherwise in the company of {company}",
                    f"{single[0].tolist()}, as alone",
                    together[place].tolist(),
                )
    resumed = _played(*built(SEEDS), rounds, saved_before=rounds // 2)
    for round_, (whole, part) in enumerate(zip(first.index, resumed.index, strict=True), start=1):
        if not np.array_equal(whole, part):
            _fail(
                name,
                "act",
                f"round {round_}: another choice after the agent was saved and restored before round {rounds // 2 + 1}",
                whole.tolist(),
                part.tolist(),
            )


@_asserted()
def check_environment(make_environment: Callable[[Sequence[int]], Environment], *, rounds: int = 20) -> None:
    """Check an environment against `bandit.Environment`, and against what its family promises.

    Args:
        make_environment: the class, or what builds it with options, such as `functools.partial(Mine, dimension=5)`; called as
            `make_environment(seeds)`.
        rounds: how many are played; no more than the environment has.

    Raises:
        AssertionError: a promise is broken.
    """
    with _global_numbers() as used:
        first = _unrolled(make_environment, SEEDS, rounds)
    name = first[0].name
    _check_own_numbers(name, used)
    for other, what in (
        (_unrolled(make_environment, SEEDS, rounds), "in another environment of the same seeds"),
        (_unrolled(make_environment, SEEDS, rounds, everything=False), "after other choices"),
        (_unrolled(make_environment, SEEDS, rounds, saved_before=rounds // 2), "once it was saved and restored"),
    ):
        _same(name, first, other, slice(None), what)
    for place, seed in enumerate(SEEDS):
        alone = _unrolled(make_environment, (seed,), rounds)
        _same(name, first, alone, slice(place, place + 1), f"at seed {seed} in the company of {', '.join(map(str, SEEDS))}")
    family = getattr(make_environment(SEEDS), "family", None)
    if family == "linear":
        _check_linear(make_environment, first)
    elif family == "pool":
        _check_pool(make_environment, first)
    elif family is not None:
        _fail(name, "family", "unknown family", "'linear', 'pool', or none", repr(family))


# ------------------------------------------------------------------------------------------------------------ agents


class _Played(NamedTuple):
    name: str
    index: list[np.ndarray]  #: per round (seeds, chains)


def _built(make_agent: Callable[..., Agent], seeds: Sequence[int], keywords: dict[str, Any]) -> Agent:
    try:
        return make_agent(seeds, **keywords)
    except TypeError as error:
        name = getattr(make_agent, "__name__", None) or getattr(getattr(make_agent, "func", None), "__name__", "make_agent")
        called = ", ".join(f"{key}={value!r}" for key, value in keywords.items())
        raise AssertionError(f"{name}: cannot be built as {name}(seeds, {called}) ({error})") from error


def _played(agent: Agent, bandit: Environment, rounds: int, saved_before: int | None = None) -> _Played:
    """Rounds that are each checked by themselves."""
    name = type(agent).__name__
    seeds, chains = contract.check_seeds(agent, bandit.seeds), contract.check_chains(agent)
    reported = contract.reported(agent, (seeds, chains), None)
    parts = _parts(name, agent)
    kept: list[tuple[dict[str, np.ndarray], dict[str, np.ndarray]]] = []
    index = []
    for round_ in range(rounds):
        if round_ == saved_before:
            agent = _restored(name, agent, parts)
        decisions = bandit.decisions()
        finite = not isinstance(decisions, SphereDecisions)
        shown = decisions.features.copy() if finite else None
        choice = agent.act(decisions)
        contract.check_choice(agent, choice, decisions, seeds, chains, round_ + 1)
        contract.check_features(agent, choice, decisions, (seeds, chains, bandit.dimension), round_ + 1)
        if finite and not np.array_equal(decisions.features, shown):
            _fail(name, "act", f"round {round_ + 1}: decisions.features was changed", "an agent to leave its input alone")
        outcome = bandit.step(choice)
        given = Choice(choice.index.copy(), choice.features.copy()), outcome.reward.copy()
        agent.update(choice, outcome.reward)
        for what, before, after in (
            ("choice.index", given[0].index, choice.index),
            ("choice.features", given[0].features, choice.features),
            ("reward", given[1], outcome.reward),
        ):
            if not np.array_equal(before, after):
                _fail(name, "update", f"round {round_ + 1}: {what} was changed", "an agent to leave its input alone")
        present = contract.reported(agent, (seeds, chains), reported)
        kept.append((present, {key: values.copy() for key, values in present.items()}))
        index.append(choice.index.copy())
    for round_, (present, copies) in enumerate(kept, start=1):
        for key, values in present.items():
            if not np.array_equal(values, copies[key], equal_nan=True):
                _fail(name, "diagnostics", f"'{key}' of round {round_} changed in later rounds", "a copy")
    return _Played(name, index)


# ------------------------------------------------------------------------------------------------------ environments


class _Round(NamedTuple):
    name: str
    features: np.ndarray | None  #: (seeds, actions, d); None on the sphere
    means: np.ndarray  #: (seeds, actions)
    choice: Choice
    outcome: Outcome


def _unrolled(
    make_environment: Callable[[Sequence[int]], Environment],
    given: Sequence[int],
    rounds: int,
    *,
    everything: bool = True,
    saved_before: int | None = None,
) -> list[_Round]:
    """Rounds in which every action is chosen, by a chain of its own; or only one action, another one in every round."""
    bandit = make_environment(given)
    name = type(bandit).__name__
    seeds = contract.check_seeds(bandit, given)
    contract.check_numbers(bandit)
    played: list[_Round] = []
    parts = _parts(name, bandit)
    for round_ in range(rounds):
        if round_ == saved_before:
            bandit = _restored(name, bandit, parts)
        at = f"round {round_ + 1}: "
        decisions, means = bandit.decisions(), bandit.mean_rewards()
        features = None if isinstance(decisions, SphereDecisions) else decisions.features
        if features is None:
            _is_array(name, "mean_rewards", at.strip(": "), means, (seeds, 1), np.floating)
            choice = _directions(decisions, seeds, bandit.dimension)
        else:
            actions = features.shape[1] if getattr(features, "ndim", 0) == 3 else "actions"
            _is_array(name, "decisions", f"{at}features", features, (seeds, actions, bandit.dimension), np.floating)
            _is_array(name, "mean_rewards", at.strip(": "), means, (seeds, actions), np.floating)
            if bandit.fixed_actions and actions != bandit.fixed_actions:
                _fail(name, "decisions", f"{at}not fixed_actions actions", bandit.fixed_actions, actions)
            index = np.arange(actions) if everything else np.array([round_ % actions])
            choice = decisions.choose(np.tile(index, (seeds, 1)))
        again = bandit.decisions()
        if not np.array_equal(bandit.mean_rewards(), means) or (
            features is not None and not np.array_equal(again.features, features)
        ):
            _fail(name, "decisions", f"{at}not the same when asked again", "only `step` to go on to the next round")
        copies = Choice(choice.index.copy(), choice.features.copy())
        kept = None if features is None else features.copy(), means.copy()
        outcome = bandit.step(choice)
        if not all(map(np.array_equal, copies, choice)):
            _fail(name, "step", f"{at}the choice was changed", "an environment to leave its input alone")
        if features is not None and not np.array_equal(features, kept[0]):
            _fail(name, "step", f"{at}the features of the round that ended were changed", "a new array for the next round")
        if not isinstance(outcome, Outcome):
            _fail(name, "step", f"{at}not an Outcome", "bandit.Outcome(reward, regret)", type(outcome).__name__)
        for what, values in zip(Outcome._fields, outcome, strict=True):
            _is_array(name, "step", f"{at}{what}", values, choice.index.shape, np.floating)
        played.append(_Round(name, *kept, copies, outcome))
        if features is not None:
            _check_outcome(played[-1], at)
    return played


def _directions(decisions: SphereDecisions, seeds: int, dimension: int) -> Choice:
    """Both directions of every axis, a chain each."""
    theta = np.concatenate([np.eye(dimension), -np.eye(dimension)])
    return decisions.maximise(np.tile(theta, (seeds, 1, 1)))


def _check_outcome(played: _Round, at: str) -> None:
    """Regret and noise of one round in which chains chose different actions."""
    name, _, means, (index, _), (reward, regret) = played
    mean = np.take_along_axis(means, index, axis=1)
    best = means.max(axis=1, keepdims=True)
    rounding = ROUNDING * max(1.0, np.abs(means).max())
    for wrong, what, expected in (
        (regret < 0, "negative regret", 0.0 * mean),
        ((mean == best) & (regret != 0), "regret of the best action", 0.0 * mean),
        (np.abs(regret - (best - mean)) > rounding, "regret is not the best mean reward less the chosen one's", best - mean),
    ):
        if wrong.any():
            seed, chain = np.argwhere(wrong)[0]
            where = f"at place {seed}, action {index[seed, chain]}"
            _fail(name, "step", f"{at}{what}, {where}", expected[seed, chain], regret[seed, chain])
    noise = reward - mean
    rounding = ROUNDING * max(1.0, np.abs(reward).max(), np.abs(means).max())
    if np.ptp(noise, axis=1).max() <= rounding:
        return
    if np.isin(reward, (0, 1)).all():
        # a reward of 0 or 1 has the round's common uniform number below its mean, or not
        rising = np.take_along_axis(reward, mean.argsort(axis=1, kind="stable"), axis=1)
        if (np.diff(rising, axis=1) >= 0).all():
            return
        _fail(name, "step", f"{at}of two actions the likelier one has reward 0 and the other 1", "one uniform number a round")
    seed = int(np.ptp(noise, axis=1).argmax())
    _fail(
        name,
        "step",
        f"{at}the noise (reward less mean reward) depends on the action, at place {seed}",
        "one number a round",
        f"{noise[seed].min()} to {noise[seed].max()}",
    )


def _same(name: str, first: list[_Round], other: list[_Round], seeds: slice, what: str) -> None:
    """Whether two lists of rounds are the same for the seeds of the second one, as far as both chose the same."""
    for round_, (left, right) in enumerate(zip(first, other, strict=True), start=1):
        at = f"round {round_}: other"
        if left.features is not None and not np.array_equal(left.features[seeds], right.features):
            _fail(name, "decisions", f"{at} features {what}", "what a seed meets to depend on the seed alone")
        if not np.array_equal(left.means[seeds], right.means):
            _fail(name, "mean_rewards", f"{at} mean rewards {what}", "what a seed meets to depend on the seed alone")
        # on the sphere every index is 0, and all rounds chose the same directions
        places = right.choice.index[0] if left.features is not None else slice(None)
        for field, one, two in zip(Outcome._fields, left.outcome, right.outcome, strict=True):
            if not np.array_equal(one[seeds][:, places], two):
                _fail(name, "step", f"{at} {field} {what}", "noise that depends on the seed and the round alone")


def _check_linear(make_environment: Callable[[Sequence[int]], Environment], played: list[_Round]) -> None:
    """The rounds against what `instances` gives."""
    name, rounds = played[0].name, len(played)
    instances = getattr(make_environment(SEEDS), "instances", None)
    if instances is None:
        _fail(name, "instances", "there is no such method", "it, since family is 'linear'")
    found = list(instances())
    if [instance.seed for instance in found] != list(SEEDS):
        _fail(name, "instances", "not one for every seed", list(SEEDS), [instance.seed for instance in found])
    for place, one in enumerate(found):
        noise = one.reward_noise(rounds)
        _is_array(name, "instances", f"seed {one.seed}: reward_noise({rounds})", noise, (rounds,), np.floating)
        fresh = one.fresh(rounds) if one.fresh is not None else None
        for round_, (_, features, means, choice, outcome) in enumerate(played):
            at = f"seed {one.seed}, round {round_ + 1}: "
            own = one.features if fresh is None else fresh[round_]
            if (own is None) != (features is None) or (own is not None and not np.array_equal(own, features[place])):
                _fail(name, "instances", f"{at}other features than `decisions` gives", "the same either way")
            chosen = choice.features[place] @ one.theta
            best = np.linalg.norm(one.theta) if own is None else (own @ one.theta).max()
            rounding = ROUNDING * max(1.0, np.abs(means).max())
            if not np.allclose(outcome.regret[place], best - chosen, rtol=0, atol=rounding):
                _fail(name, "instances", f"{at}theta gives other regret than `step`", best - chosen, outcome.regret[place])
            if not np.allclose(outcome.reward[place], chosen + noise[round_], rtol=0, atol=rounding):
                _fail(
                    name, "instances", f"{at}reward_noise is not that of `step`", chosen + noise[round_], outcome.reward[place]
                )


def _check_pool(make_environment: Callable[[Sequence[int]], Environment], played: list[_Round]) -> None:
    """The rounds against what `draw` gives."""
    name, rounds = played[0].name, len(played)
    bandit, pieces = make_environment(SEEDS), make_environment(SEEDS)
    if not isinstance(bandit, Pool):
        _fail(name, "family", "'pool' is not a class derived from Pool", "environments.pool.Pool among its bases")
    if bandit.table.dtype != np.float32:
        _fail(name, "table", "wrong type", "float32", bandit.table.dtype)
    items = bandit.table.shape[1] * bandit.blocks
    if bandit.means.shape[1] != items:
        _fail(name, "means", "not a mean reward for every item", items, bandit.means.shape[1])
    whole = _drawn(bandit, rounds, rounds)
    parts = _drawn(pieces, rounds, 3)
    if not all(map(np.array_equal, whole, parts)):
        _fail(name, "draw", "other rounds when they are drawn three at a time", "rounds that depend on the seed alone")
    for round_, (_, features, _, choice, outcome) in enumerate(played):
        offers, noise = whole[0][:, round_], whole[1][:, [round_]]
        if not np.array_equal(bandit.features(offers), features):
            _fail(name, "draw", f"round {round_ + 1}: offers other items than `decisions`", "the same either way")
        mean = np.take_along_axis(np.take_along_axis(bandit.means, offers, axis=1), choice.index, axis=1)
        expected = (noise < mean).astype(float) if bandit.bernoulli else mean + noise
        if not np.array_equal(outcome.reward, expected):
            _fail(name, "draw", f"round {round_ + 1}: noise is not that of `step`", expected[0], outcome.reward[0])


def _drawn(bandit: Pool, rounds: int, at_once: int) -> tuple[np.ndarray, np.ndarray]:
    """Offers (seeds, rounds, actions) and noise (seeds, rounds), so many rounds at once."""
    offers, noise = [], []
    while (left := rounds - sum(part.shape[1] for part in noise)) > 0:
        asked = min(at_once, left)
        drawn = bandit.draw(asked)
        contract.check_draw(bandit, drawn, asked)
        offers.append(drawn.offers.copy())
        noise.append(drawn.noise.copy())
    return np.concatenate(offers, axis=1), np.concatenate(noise, axis=1)


# -------------------------------------------------------------------------------------------------------------- both


def _parts(name: str, fresh: Any) -> Parts:
    """What a fresh agent or environment is made of."""
    with _storable(name):
        return Parts(fresh)


def _restored(name: str, one: Any, parts: Parts) -> Any:
    """A copy as a checkpoint makes it."""
    with _storable(name):
        table, arrays = pack(one, parts)
        return unpack(json.loads(json.dumps(table)), [array.copy() for array in arrays], parts)


@contextlib.contextmanager
def _storable(name: str) -> Iterator[None]:
    try:
        yield
    except UnstorableError as error:
        raise AssertionError(
            f"{name}: cannot be saved ({error}); a run that is killed could not go on (no lambdas or open files in it, and no "
            "objects of a class that it does not hold from the start)"
        ) from error


@contextlib.contextmanager
def _global_numbers() -> Iterator[list[str]]:
    """A list that afterwards names the global generators of random numbers that were used or seeded."""
    used: list[str] = []
    torch = sys.modules.get("torch")
    states: dict[str, Callable[[], Any]] = {
        "Python's `random`": random.getstate,
        "NumPy's global generator": lambda: np.random.get_state(legacy=False),  # noqa: NPY002
    }
    if torch:
        states["PyTorch's global generator"] = lambda: torch.get_rng_state().tolist()
    before = {name: repr(state()) for name, state in states.items()}
    yield used
    used += [name for name, state in states.items() if repr(state()) != before[name]]


def _check_own_numbers(name: str, used: list[str]) -> None:
    if used:
        _fail(
            name,
            "",
            f"{used[0]} is used: its numbers are shared by all seeds",
            "a generator for every seed (randomness.streams)",
        )
