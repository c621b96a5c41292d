"""The conformance kit on every agent and environment of the package, and on broken ones, each of which it must catch."""

from __future__ import annotations

import random
from functools import partial

import numpy as np
import pytest
import tiny_posts
import torch
import xarray as xr

from ensemblepp import registry
from ensemblepp.bandit import Choice, Decisions, LinearInstance, Outcome
from ensemblepp.data import table
from ensemblepp.environments.candidates import Quadratic
from ensemblepp.environments.contextual import Contextual
from ensemblepp.environments.linear_finite import LinearFinite
from ensemblepp.environments.linear_sphere import LinearSphere
from ensemblepp.environments.pool import Rounds
from ensemblepp.environments.scaling import unit_rows
from ensemblepp.randomness.streams import generator
from ensemblepp.storage.datasets import write_dataset
from ensemblepp.testing import check_agent, check_environment

torch.set_num_threads(1)

# ------------------------------------------------------------------------------------------------------- own agents

PRIOR = {"prior_variance": 1.0}
TRAINING = {
    "hidden": [8, 8],
    "learning_rate": 1e-3,
    "batch_size": 8,
    "weight_decay": 0.1,
    "buffer_capacity": 20,
    "gradient_steps": 2,
    "warm_up": 10,
}
SCALES = {"prior_scale": 1.0, "posterior_scale": 0.3, "perturbation_scale": 0.1}
LAWS = {"references": ["sphere", "coordinate"], "perturbations": ["sphere", "raw_gaussian"]}

#: kind -> (ensemble size, hyper-parameters)
AGENTS: dict[str, tuple[int, dict]] = {
    "linear_ts": (0, PRIOR),
    "linear_ensemblepp": (4, PRIOR | LAWS),
    "ensemble_sampling": (4, PRIOR),
    "rrls": (0, PRIOR),
    "linear_greedy": (0, PRIOR),
    "linear_ucb": (0, PRIOR | {"width": None, "delta": 0.05}),
    "greedy": (0, TRAINING),
    "epsilon_greedy": (0, TRAINING | {"epsilon": 0.3}),
    "neural_ensemblepp": (4, TRAINING | SCALES | LAWS | {"update": "sphere"}),
    "ensembleplus": (4, TRAINING | SCALES | {"equal_noise": True}),
    "bootstrap": (4, TRAINING),
    "epinet": (4, TRAINING | SCALES | {"index_samples": 2, "double_softmax": False}),
    "lmcts": (0, TRAINING | {"temperature": 1e-3, "decay_every": 20}),
    "neural_ucb": (0, TRAINING | {"ridge": 1.0, "exploration": 1.0}),
    "neural_ts": (0, TRAINING | {"ridge": 1.0, "exploration": 0.1}),
    "neural_linear": (0, TRAINING | {"prior_variance": 1.0, "noise": 0.1, "refresh": 15}),
    "dropout": (0, TRAINING | {"rate": 0.2}),
}

#: Those that train a language model are checked where one is (agents/text/test_backbone.py).
ELSEWHERE = {"text_greedy", "text_ensemblepp", "text_ensembleplus"}


def agent(kind: str):
    return partial(registry.load(registry.AGENTS[kind]), **AGENTS[kind][1])


def contextual(seeds) -> Contextual:
    source = np.random.default_rng(0)
    contexts = unit_rows(source.standard_normal((60, 4)))
    return Contextual(seeds, contexts, np.eye(3)[contexts[:, :3].argmax(axis=1)], noise=0.1, passes=1)


def test_every_agent_is_checked():
    assert AGENTS.keys() | ELSEWHERE == registry.AGENTS.keys()


@pytest.mark.parametrize("kind", AGENTS)
def test_agents_keep_their_promises(kind):
    check_agent(agent(kind), ensemble_size=AGENTS[kind][0])


@pytest.mark.parametrize("kind", AGENTS)
def test_agents_keep_their_promises_with_fixed_actions(kind):
    check_agent(agent(kind), contextual, ensemble_size=AGENTS[kind][0], rounds=30)


@pytest.mark.parametrize("kind", ["linear_ts", "linear_ensemblepp", "ensemble_sampling", "rrls", "linear_greedy"])
def test_agents_keep_their_promises_on_the_sphere(kind):
    check_agent(agent(kind), partial(LinearSphere, dimension=4, noise=0.1, **PRIOR), ensemble_size=AGENTS[kind][0])


# ------------------------------------------------------------------------------------------------- own environments

CANDIDATES = {"dimension": 4, "candidates": 15, "offered": 5, "features": "sphere"}


def finite(**options):
    return partial(LinearFinite, **{"dimension": 4, "actions": 6, "feature_bound": 0.5, "noise": 0.5} | PRIOR | options)


def classification(folder):
    lines = [f"{row % 7},{'red' if row % 3 else 'blue'},{'ab'[row % 2]}" for row in range(40)]
    path = folder / "mine.csv"
    path.write_text("\n".join(["size,colour,kind", *lines]))
    table.prepare([path], folder / "mine.nc", label="kind")
    options = {"coding": "onehot", "scaling": "standardise", "noise": 0.1, "passes": 2}
    return partial(registry.load(registry.ENVIRONMENTS["classification"]), inputs={"data": folder / "mine.nc"}, **options)


def moderation(folder):
    posts = np.random.default_rng(0).standard_normal((30, 5)).astype(np.float32)
    data = {"embedding": (("post", "feature"), posts), "label": ("post", np.arange(30) % 2)}
    write_dataset(xr.Dataset(data), folder / "posts.nc")
    inputs = {"embeddings": folder / "posts.nc"}
    return partial(registry.load(registry.ENVIRONMENTS["moderation"]), inputs=inputs, scaling="unit", passes=1)


def moderation_tokens(folder):
    inputs = {"tokens": tiny_posts.posts(folder / "tokens.nc", count=30)}
    return partial(registry.load(registry.ENVIRONMENTS["moderation_tokens"]), inputs=inputs, passes=1)


def candidates(kind: str, **options):
    return partial(registry.load(registry.ENVIRONMENTS[kind]), **CANDIDATES | options)


ENVIRONMENTS = {
    "linear_finite": lambda _: finite(),
    "linear_finite, fresh": lambda _: finite(varying=True),
    "linear_finite, unit vectors": lambda _: finite(varying=True, features="sphere"),
    "linear_sphere": lambda _: partial(LinearSphere, dimension=4, noise=0.5, **PRIOR),
    "quadratic": lambda _: candidates("quadratic", scale=1.0, noise=0.1),
    "vector_quadratic": lambda _: candidates("vector_quadratic", scale=1.0, parameter="ball", noise=0.1),
    "neural": lambda _: candidates("neural", hidden=[5], temperature=1.0, weights="xavier"),
    "classification": classification,
    "moderation": moderation,
    "moderation_tokens": moderation_tokens,
}


def test_every_environment_is_checked():
    assert {name.split(",")[0] for name in ENVIRONMENTS} == registry.ENVIRONMENTS.keys()


@pytest.mark.parametrize("kind", ENVIRONMENTS)
def test_environments_keep_their_promises(kind, tmp_path):
    check_environment(ENVIRONMENTS[kind](tmp_path))


# ---------------------------------------------------------------------------------------------------- broken agents


class Uniform:
    """A sound agent."""

    chains = (("none", "none"),)

    def __init__(self, seeds, **_) -> None:
        self.seeds = tuple(seeds)
        self.sources = [generator(seed, "own/uniform") for seed in self.seeds]
        self.chosen = np.zeros((len(self.seeds), 1))

    def draw(self, actions: int) -> np.ndarray:
        return np.array([[source.integers(actions)] for source in self.sources])

    def act(self, decisions: Decisions) -> Choice:
        return decisions.choose(self.draw(decisions.features.shape[1]))

    def update(self, choice: Choice, reward: np.ndarray) -> None:
        self.chosen += choice.index

    def diagnostics(self) -> dict[str, np.ndarray]:
        return {"chosen": self.chosen.copy()}


BROKEN_AGENTS: list[tuple[type, str]] = []


def broken(cases: list, message: str):
    """Put a class on a list of broken ones, with the beginning of what is said of it."""
    return lambda kind: cases.append((kind, message)) or kind


@broken(BROKEN_AGENTS, r"Unseeded\.act: other choices at the same seeds \(expected every run of a seed to be the same\)")
class Unseeded(Uniform):
    def __init__(self, seeds, **_) -> None:
        super().__init__(seeds)
        self.sources = [np.random.default_rng() for _ in seeds]


@broken(BROKEN_AGENTS, r"FromPython: Python's `random` is used: its numbers are shared by all seeds \(expected a generator for")
class FromPython(Uniform):
    def draw(self, actions):
        return np.array([[random.randrange(actions)] for _ in self.seeds])


@broken(BROKEN_AGENTS, r"FromNumpy: NumPy's global generator is used")
class FromNumpy(Uniform):
    def draw(self, actions):
        return np.random.randint(actions, size=(len(self.seeds), 1))  # noqa: NPY002


@broken(BROKEN_AGENTS, r"FromTorch: PyTorch's global generator is used")
class FromTorch(Uniform):
    def draw(self, actions):
        return torch.randint(actions, (len(self.seeds), 1)).numpy()


@broken(
    BROKEN_AGENTS,
    r"OneSource\.act: round \d+: seed 3 chooses otherwise in the company of 3, 0, 10007 \(expected \[\d\], as alone",
)
class OneSource(Uniform):
    def __init__(self, seeds, **_) -> None:
        super().__init__(seeds)
        self.sources = [generator(seeds[0], "own/uniform")] * len(seeds)


@broken(BROKEN_AGENTS, r"Floats\.act: round 1: index has the wrong type \(expected a numpy integer type, found float64\)")
class Floats(Uniform):
    def act(self, decisions):
        choice = super().act(decisions)
        return Choice(choice.index.astype(float), choice.features)


@broken(BROKEN_AGENTS, r"Flat\.act: round 1: index has the wrong shape \(expected \(3, 1\), found \(3,\)\)")
class Flat(Uniform):
    def act(self, decisions):
        choice = super().act(decisions)
        return Choice(choice.index[:, 0], choice.features)


@broken(BROKEN_AGENTS, r"Listed\.act: round 1: index is no array \(expected a numpy array of shape \(3, 1\), found list\)")
class Listed(Uniform):
    def act(self, decisions):
        choice = super().act(decisions)
        return Choice(choice.index.tolist(), choice.features)


@broken(BROKEN_AGENTS, r"Bare\.act: round 1: not a Choice \(expected decisions\.choose\(index\) or .*, found ndarray\)")
class Bare(Uniform):
    def act(self, decisions):
        return super().act(decisions).index


@broken(
    BROKEN_AGENTS, r"Beyond\.act: round 1: index outside the decision set at place 0, chain 0 \(expected 0 to 6, found -1\)"
)
class Beyond(Uniform):
    def draw(self, actions):
        return super().draw(actions) * 0 - 1


@broken(
    BROKEN_AGENTS, r"Elsewhere\.act: round 1: features are not those of the action at index, at place 0, chain 0 \(expected \["
)
class Elsewhere(Uniform):
    def act(self, decisions):
        choice = super().act(decisions)
        return Choice(choice.index, choice.features + 1)


@broken(
    BROKEN_AGENTS, r"Centring\.act: round 1: decisions\.features was changed \(expected an agent to leave its input alone\)"
)
class Centring(Uniform):
    def act(self, decisions):
        features = decisions.features
        features -= features.mean(axis=1, keepdims=True)
        return super().act(decisions)


@broken(BROKEN_AGENTS, r"Clipping\.update: round \d+: reward was changed")
class Clipping(Uniform):
    def update(self, choice, reward):
        np.clip(reward, 0, 0.01, out=reward)


@broken(
    BROKEN_AGENTS, r"NoSeeds\.seeds: not the seeds that it was built with \(expected \(3, 0, 10007\), found \[0, 3, 10007\]\)"
)
class NoSeeds(Uniform):
    def __init__(self, seeds, **_) -> None:
        super().__init__(seeds)
        self.seeds = sorted(seeds)


@broken(BROKEN_AGENTS, r"NoChains\.chains: not pairs of texts \(expected .*, found \('none', 'none'\)\)")
class NoChains(Uniform):
    chains = ("none", "none")


@broken(BROKEN_AGENTS, r"HalfGrid\.chains: not every reference with every perturbation, once, references first \(expected \[")
class HalfGrid(Uniform):
    chains = (("a", "a"), ("a", "b"), ("b", "a"))


@broken(
    BROKEN_AGENTS,
    r"Takes: cannot be built as Takes\(seeds, dimension=5, ensemble_size=0, horizon=40, device='cpu'\) \(.*unexpected",
)
class Takes(Uniform):
    def __init__(self, seeds, dimension) -> None:
        super().__init__(seeds)


@broken(BROKEN_AGENTS, r"Growing\.diagnostics: other names than before \(expected \[\], found \['chosen'\]\)")
class Growing(Uniform):
    def diagnostics(self):
        return super().diagnostics() if self.chosen.any() else {}


@broken(BROKEN_AGENTS, r"Taken\.diagnostics: 'regret' is the name of something else in a run file \(expected none of action,")
class Taken(Uniform):
    def diagnostics(self):
        return {"regret": self.chosen.copy()}


@broken(BROKEN_AGENTS, r"Summed\.diagnostics: 'chosen' has the wrong shape \(expected \(3, 1\), found \(\)\)")
class Summed(Uniform):
    def diagnostics(self):
        return {"chosen": np.asarray(self.chosen.sum())}


@broken(BROKEN_AGENTS, r"Spaced\.diagnostics: not a name \(expected letters, digits and '_', found 'chosen actions'\)")
class Spaced(Uniform):
    def diagnostics(self):
        return {"chosen actions": self.chosen.copy()}


@broken(BROKEN_AGENTS, r"View\.diagnostics: 'chosen' of round 1 changed in later rounds \(expected a copy\)")
class View(Uniform):
    def diagnostics(self):
        return {"chosen": self.chosen}


@broken(BROKEN_AGENTS, r"Lambda: cannot be saved \(.*\); a run that is killed could not go on")
class Lambda(Uniform):
    def __init__(self, seeds, **_) -> None:
        super().__init__(seeds)
        self.rule = lambda actions: actions


@broken(
    BROKEN_AGENTS,
    r"Forgetful\.act: round \d+: another choice after the agent was saved and restored before round 21 \(expected \[\[",
)
class Forgetful(Uniform):
    def __getstate__(self):
        return {"seeds": self.seeds, "chosen": self.chosen}

    def __setstate__(self, state):
        self.__init__(state["seeds"])


def test_a_sound_agent_passes():
    check_agent(Uniform)


@pytest.mark.parametrize(("kind", "message"), BROKEN_AGENTS, ids=[kind.__name__ for kind, _ in BROKEN_AGENTS])
def test_a_broken_agent_is_caught(kind, message):
    with pytest.raises(AssertionError, match=f"^{message}") as caught:
        check_agent(kind)
    assert "\n" not in str(caught.value)


@broken(sphere_agents := [], r"Long\.act: round 1: features outside the unit sphere \(expected norm 1, found 2")
class Long(Uniform):
    def act(self, decisions):
        theta = np.ones((len(self.seeds), 1, 4))
        choice = decisions.maximise(theta)
        return Choice(choice.index, 2 * choice.features)


def test_a_choice_outside_the_sphere_is_caught():
    ((kind, message),) = sphere_agents
    with pytest.raises(AssertionError, match=f"^{message}"):
        check_agent(kind, partial(LinearSphere, dimension=4, noise=0.1, **PRIOR))


# ---------------------------------------------------------------------------------------------- broken environments


class Fixed:
    """A sound environment: three fixed actions of two features, rewards of each seed's own, common noise."""

    def __init__(self, seeds) -> None:
        self.seeds, self.dimension, self.fixed_actions = tuple(seeds), 2, 3
        self.sources = [generator(seed, "environment") for seed in self.seeds]
        self.features = np.stack([source.standard_normal((3, 2)) for source in self.sources])
        self.means = np.stack([source.random(3) for source in self.sources])
        self.noise = [generator(seed, "reward_noise") for seed in self.seeds]

    def decisions(self) -> Decisions:
        return Decisions(self.features)

    def mean_rewards(self) -> np.ndarray:
        return self.means

    def draw_noise(self, chains: int) -> np.ndarray:
        return np.array([[source.standard_normal()] for source in self.noise])

    def step(self, choice: Choice) -> Outcome:
        mean = np.take_along_axis(self.means, choice.index, axis=1)
        return Outcome(mean + self.draw_noise(mean.shape[1]), self.means.max(axis=1, keepdims=True) - mean)


BROKEN_ENVIRONMENTS: list[tuple[type, str]] = []


@broken(
    BROKEN_ENVIRONMENTS,
    r"OwnNoise\.step: round 1: the noise \(reward less mean reward\) depends on the action, at place \d \(exp",
)
class OwnNoise(Fixed):
    def draw_noise(self, chains):
        return np.stack([source.standard_normal(chains) for source in self.noise])


@broken(
    BROKEN_ENVIRONMENTS,
    r"ByChoice\.step: round \d+: other reward after other choices \(expected noise that depends on the seed",
)
class ByChoice(Fixed):
    def draw_noise(self, chains):
        return np.stack([source.standard_normal(chains)[:1] for source in self.noise])


@broken(BROKEN_ENVIRONMENTS, r"Shared\.step: round 2: other reward at seed 3 in the company of 3, 0, 10007")
class Shared(Fixed):
    def __init__(self, seeds) -> None:
        super().__init__(seeds)
        self.noise = [self.noise[0]] * len(seeds)


@broken(BROKEN_ENVIRONMENTS, r"Random: NumPy's global generator is used")
class Random(Fixed):
    def draw_noise(self, chains):
        return np.random.standard_normal((len(self.seeds), 1))  # noqa: NPY002


@broken(
    BROKEN_ENVIRONMENTS,
    r"Fresh\.decisions: round 1: other features in another environment of the same seeds \(expected what a seed",
)
class Fresh(Fixed):
    def __init__(self, seeds) -> None:
        super().__init__(seeds)
        self.features = np.random.default_rng().standard_normal(self.features.shape)


@broken(
    BROKEN_ENVIRONMENTS, r"Observed\.step: round 1: regret of the best action, at place \d, action \d \(expected 0\.0, found"
)
class Observed(Fixed):
    def step(self, choice):
        outcome = super().step(choice)
        return Outcome(outcome.reward, np.abs(outcome.regret - 0.25))


@broken(BROKEN_ENVIRONMENTS, r"Negative\.step: round 1: negative regret, at place 0, action \d \(expected 0\.0, found -")
class Negative(Fixed):
    def step(self, choice):
        outcome = super().step(choice)
        return Outcome(outcome.reward, -outcome.regret)


@broken(
    BROKEN_ENVIRONMENTS,
    r"Doubled\.step: round 1: regret is not the best mean reward less the chosen one's, at place 0, action \d",
)
class Doubled(Fixed):
    def step(self, choice):
        outcome = super().step(choice)
        return Outcome(outcome.reward, 2 * outcome.regret)


@broken(BROKEN_ENVIRONMENTS, r"Flipped\.step: round \d+: of two actions the likelier one has reward 0 and the other 1")
class Flipped(Fixed):
    def step(self, choice):
        mean = np.take_along_axis(self.means, choice.index, axis=1)
        uniform = np.array([[source.random()] for source in self.noise])
        return Outcome((uniform > mean).astype(float), self.means.max(axis=1, keepdims=True) - mean)


@broken(BROKEN_ENVIRONMENTS, r"Restless\.decisions: round 1: not the same when asked again \(expected only `step` to go on")
class Restless(Fixed):
    def decisions(self):
        return Decisions(np.stack([source.standard_normal((3, 2)) for source in self.sources]))


@broken(
    BROKEN_ENVIRONMENTS, r"InPlace\.step: round 1: the features of the round that ended were changed \(expected a new array"
)
class InPlace(Fixed):
    def step(self, choice):
        outcome = super().step(choice)
        self.features += 1
        return outcome


@broken(BROKEN_ENVIRONMENTS, r"Counting\.decisions: round 1: not fixed_actions actions \(expected 4, found 3\)")
class Counting(Fixed):
    def __init__(self, seeds) -> None:
        super().__init__(seeds)
        self.fixed_actions = 4


@broken(
    BROKEN_ENVIRONMENTS, r"Wide\.decisions: round 1: features has the wrong shape \(expected \(3, 3, 5\), found \(3, 3, 2\)\)"
)
class Wide(Fixed):
    def __init__(self, seeds) -> None:
        super().__init__(seeds)
        self.dimension = 5


@broken(BROKEN_ENVIRONMENTS, r"Unsized\.dimension: not a number of things \(expected a whole number from 1, found None\)")
class Unsized(Fixed):
    def __init__(self, seeds) -> None:
        super().__init__(seeds)
        self.dimension = None


@broken(
    BROKEN_ENVIRONMENTS,
    r"Renumbered\.seeds: not the seeds that it was built with \(expected \(3, 0, 10007\), found range\(0, 3\)\)",
)
class Renumbered(Fixed):
    def __init__(self, seeds) -> None:
        super().__init__(seeds)
        self.seeds = range(len(seeds))


@broken(BROKEN_ENVIRONMENTS, r"Holed\.mean_rewards: round 1 is not finite \(expected finite numbers, found nan\)")
class Holed(Fixed):
    def __init__(self, seeds) -> None:
        super().__init__(seeds)
        self.means[0, 1] = np.nan


@broken(
    BROKEN_ENVIRONMENTS, r"Tuple\.step: round 1: not an Outcome \(expected bandit\.Outcome\(reward, regret\), found tuple\)"
)
class Tuple(Fixed):
    def step(self, choice):
        return tuple(super().step(choice))


@broken(BROKEN_ENVIRONMENTS, r"OpenFile: cannot be saved")
class OpenFile(Fixed):
    def __init__(self, seeds) -> None:
        super().__init__(seeds)
        self.rule = lambda: None


@broken(BROKEN_ENVIRONMENTS, r"Unknown\.family: unknown family \(expected 'linear', 'pool', or none, found 'circus'\)")
class Unknown(Fixed):
    family = "circus"


@broken(BROKEN_ENVIRONMENTS, r"Posing\.family: 'pool' is not a class derived from Pool")
class Posing(Fixed):
    family = "pool"


@broken(BROKEN_ENVIRONMENTS, r"Silent\.instances: there is no such method")
class Silent(Fixed):
    family = "linear"


@broken(BROKEN_ENVIRONMENTS, r"OtherNoise\.instances: seed 3, round 1: reward_noise is not that of `step`")
class OtherNoise(LinearFinite):
    def __init__(self, seeds) -> None:
        super().__init__(seeds, dimension=2, actions=3, feature_bound=1.0, prior_variance=1.0, noise=1.0)

    def instances(self):
        for one in super().instances():
            yield LinearInstance(one.seed, one.theta, np.zeros, one.features, one.fresh, one.actions)


@broken(BROKEN_ENVIRONMENTS, r"OtherTheta\.instances: seed 3, round 1: theta gives other regret than `step`")
class OtherTheta(OtherNoise):
    def instances(self):
        for one in LinearFinite.instances(self):
            yield LinearInstance(one.seed, -one.theta, one.reward_noise, one.features, one.fresh, one.actions)


@broken(BROKEN_ENVIRONMENTS, r"OneInstance\.instances: not one for every seed \(expected \[3, 0, 10007\], found \[3\]\)")
class OneInstance(OtherNoise):
    def instances(self):
        yield next(LinearFinite.instances(self))


class Offers(Quadratic):
    """A sound pool."""

    def __init__(self, seeds) -> None:
        super().__init__(seeds, scale=1.0, noise=0.1, **CANDIDATES)


@broken(BROKEN_ENVIRONMENTS, r"Restarting\.draw: other rounds when they are drawn three at a time")
class Restarting(Offers):
    def draw(self, rounds):
        offers, noise = super().draw(rounds)
        return Rounds(offers, noise - noise[:, :1])


@broken(BROKEN_ENVIRONMENTS, r"Greedy\.draw: 20 rounds where 3 were asked for \(expected 1 to 3\)")
class Greedy(Offers):
    def draw(self, rounds):
        return super().draw(max(rounds, 20))


@broken(BROKEN_ENVIRONMENTS, r"Precise\.table: wrong type \(expected float32, found float64\)")
class Precise(Offers):
    def __init__(self, seeds) -> None:
        super().__init__(seeds)
        self.table = self.table.astype(float)


def test_sound_environments_pass():
    check_environment(Fixed)
    check_environment(Offers)


@pytest.mark.parametrize(("kind", "message"), BROKEN_ENVIRONMENTS, ids=[kind.__name__ for kind, _ in BROKEN_ENVIRONMENTS])
def test_a_broken_environment_is_caught(kind, message):
    with pytest.raises(AssertionError, match=f"^{message}"):
        check_environment(kind)
