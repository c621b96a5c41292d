"""Which engine plays what: the rule by families, the rule for objects, and that the configuration resolves to the same."""

from __future__ import annotations

import sys
import types
from functools import cache
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import tiny_models
import tiny_posts
import torch
import xarray as xr
from linear_bandits import Given, bandit, ensemble
from neural_pools import COMPILED, SEEDS, build, compiled, pool

from ensemblepp import registry
from ensemblepp.agents.linear.chains import LinearChains
from ensemblepp.agents.linear.greedy import LinearGreedy
from ensemblepp.agents.linear.ucb import LinearUCB
from ensemblepp.agents.neural.greedy import Greedy
from ensemblepp.agents.neural.lmcts import LMCTS
from ensemblepp.bandit import AgentFamily
from ensemblepp.config import agents as agent_models
from ensemblepp.config import environments as environment_models
from ensemblepp.config.loading import read_files
from ensemblepp.engines.choice import choose, engine_name, simulate
from ensemblepp.environments.candidates import Quadratic
from ensemblepp.environments.linear_finite import LinearFinite
from ensemblepp.runs import block
from ensemblepp.storage.datasets import write_dataset
from ensemblepp.trajectory import Trajectory, stored_rounds, time_grid

torch.set_num_threads(1)

ROOT = Path(__file__).parents[2]

# ------------------------------------------------------------------------------------------------------------ families

#: (agent, environment) -> engine on a CPU, engine on a GPU; all others are played step by step.
RULES = {
    ("linear", "linear"): ("linear_compiled", "linear_batched"),
    ("neural", "pool"): ("neural_stacked", "neural_stacked"),
    ("linear_heads", "pool"): ("neural_compiled", "neural_stacked"),
    ("epinet", "pool"): ("epinet_compiled", "neural_stacked"),
    ("single_head", "pool"): ("single_head_compiled", "neural_stacked"),
}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("environment", [None, "linear", "pool"])
@pytest.mark.parametrize("agent", [None, *get_args(AgentFamily)])
def test_every_pair_of_families(agent, environment, device):
    expected = RULES.get((agent, environment), ("step_by_step", "step_by_step"))[device == "cuda"]
    assert engine_name(agent, environment, device) == expected
    assert expected in registry.ENGINES


@pytest.mark.parametrize(("name", "family"), [("epinet", "epinet"), ("neural-ts", "single_head"), ("dropout", "single_head")])
def test_few_agents_kernels_are_compiled_where_they_play_long_enough(name, family):
    """Objects and families: 200 rounds in PyTorch, 201 compiled; what is made of linear heads is compiled at once."""
    environment, kernel = pool("quadratic", SEEDS), compiled(name)[0]
    for horizon, expected in ((1, "neural_stacked"), (200, "neural_stacked"), (201, kernel), (None, kernel)):
        assert engine_name(family, "pool", "cpu", horizon) == expected
        assert choose(build(name, environment, 10), environment, horizon) == expected
        assert engine_name(family, "pool", "cuda", horizon) == "neural_stacked"
    assert engine_name("linear_heads", "pool", "cpu", 1) == "neural_compiled"


@pytest.mark.parametrize("name", registry.ENGINES)
def test_every_engine_is_a_module_that_plays(name):
    __import__(registry.ENGINES[name])
    assert callable(sys.modules[registry.ENGINES[name]].play)


# ------------------------------------------------------------------------------------------------------------- objects


class Plain:
    """An environment without a family, and all that is asked of one before any round."""

    seeds, dimension, fixed_actions = SEEDS, 6, 0

    def decisions(self):
        raise AssertionError("never played")

    mean_rewards = step = decisions


def on_gpu(agent):
    """The agent as if it were on a GPU, which this test does not need."""
    agent.device = torch.device("cuda:0")
    return agent


@pytest.mark.parametrize("name", COMPILED)
def test_agents_with_compiled_rounds_are_compiled_on_a_cpu_and_stacked_on_a_gpu(name):
    """On every pool; elsewhere they play step by step."""
    for kind in ("quadratic", "neural", "contextual"):
        environment = pool(kind, SEEDS)
        assert choose(build(name, environment, 10), environment) == compiled(name)[0]
        assert choose(on_gpu(build(name, environment, 10)), environment) == "neural_stacked"
    agent = build(name, pool("quadratic", SEEDS), 10)
    assert choose(agent, bandit(SEEDS, 6, 20)) == choose(agent, Plain()) == "step_by_step"


def test_other_neural_agents_are_stacked():
    """They have their family from the class that they derive from."""
    settings = {"dimension": 6, "horizon": 10, "device": "cpu", "hidden": [], "learning_rate": 0.1, "batch_size": 2}
    settings |= {"weight_decay": 0.0, "buffer_capacity": 5, "gradient_steps": 1, "warm_up": 0}
    agent = LMCTS(SEEDS, temperature=0.01, decay_every=5, **settings)
    assert choose(agent, pool("quadratic", SEEDS)) == "neural_stacked"
    assert choose(agent, bandit(SEEDS, 6, 20)) == choose(agent, Plain()) == "step_by_step"
    assert choose(on_gpu(agent), pool("quadratic", SEEDS)) == "neural_stacked"


@pytest.mark.parametrize("environment", [{"actions": 20}, {"actions": 20, "varying": True}, {"actions": 0}])
def test_linear_agents_play_linear_bandits_whole(environment):
    """Compiled on a CPU, batched on a GPU; step by step where covariances are followed, and anywhere else."""
    bandits = bandit(SEEDS, 6, **environment)
    assert choose(ensemble(SEEDS, 6, 4), bandits) == "linear_compiled"
    assert choose(ensemble(SEEDS, 6, 4, device="cuda"), bandits) == "linear_batched"
    for device in ("cpu", "cuda"):
        assert choose(ensemble(SEEDS, 6, 4, device=device, track_covariance=True), bandits) == "step_by_step"
        for other in (pool("quadratic", SEEDS), Plain()):
            assert choose(ensemble(SEEDS, 6, 4, device=device), other) == "step_by_step"


def test_agents_without_a_family_play_step_by_step():
    """LinUCB scores actions one by one, and the base of the linear agents is nobody's agent; instances are no family."""
    ucb = LinearUCB(SEEDS, dimension=6, prior_variance=1.0, width=1.0, delta=0.05)
    chains = LinearChains(SEEDS, dimension=6, laws=[("none", "none")], prior_variance=1.0)
    for agent in (ucb, chains):
        assert choose(agent, bandit(SEEDS, 6, 20)) == choose(agent, pool("quadratic", SEEDS)) == "step_by_step"
    assert choose(LinearGreedy(SEEDS, dimension=6, prior_variance=1.0), Given()) == "step_by_step"


# ------------------------------------------------------------------------------------------------------ derived classes


class FirstLinear(LinearGreedy):
    """Changes what the compiled rounds do by themselves, and does not name a family: it takes the first action."""

    def act(self, decisions):
        return decisions.choose(np.zeros((len(self.seeds), 1), dtype=int))


class OwnLinear(LinearGreedy):
    """Says itself that the engines know it."""

    family = "linear"


class LastNeural(Greedy):
    """Changes its scores, and does not name a family: it takes the last action."""

    def score(self, features):
        value = torch.arange(features.shape[1], dtype=torch.float32).expand(features.shape[:2])
        return super().score(features)._replace(value=value)


class OwnNeural(Greedy):
    """Says itself that the compiled rounds know it."""

    family = "linear_heads"


def test_a_derived_linear_agent_plays_step_by_step_unless_it_names_its_family():
    """And so with the code that it changed: of 20 actions it takes the first in every round."""
    settings = {"dimension": 6, "prior_variance": 1.0}
    environment = bandit(SEEDS, 6, 20)
    assert choose(FirstLinear(SEEDS, **settings), environment) == "step_by_step"
    assert choose(OwnLinear(SEEDS, **settings), environment) == "linear_compiled"
    assert choose(OwnLinear(SEEDS, device="cuda", **settings), environment) == "linear_batched"
    assert not simulate(environment, FirstLinear(SEEDS, **settings), 10).action.any()
    # the engine that does not know it plays greedily
    assert simulate(bandit(SEEDS, 6, 20), FirstLinear(SEEDS, **settings), 10, engine="linear_compiled").action.any()


def derived(kind: type[Greedy], environment) -> Greedy:
    """An agent of that class with Greedy's settings."""
    agent = build("greedy", environment, 30)
    return kind(
        agent.seeds,
        **{name: getattr(agent, name) for name in ("dimension", "hidden", "learning_rate", "batch_size")},
        horizon=30,
        device="cpu",
        weight_decay=0.1,
        buffer_capacity=50,
        gradient_steps=1,
        warm_up=10,
    )


def test_a_derived_neural_agent_is_stacked_unless_it_names_its_family():
    """The stacked rounds call its own code: of 7 actions it takes the last in every round."""
    environment = pool("quadratic", SEEDS)
    assert choose(derived(LastNeural, environment), environment) == "neural_stacked"
    assert choose(derived(LastNeural, environment), Plain()) == "step_by_step"
    assert choose(derived(OwnNeural, environment), environment) == "neural_compiled"
    assert (simulate(environment, derived(LastNeural, environment), 30).action == 6).all()
    # the engine that does not know it plays greedily
    other = pool("quadratic", SEEDS)
    assert not (simulate(other, derived(LastNeural, other), 30, engine="neural_compiled").action == 6).all()


def test_a_class_derived_from_a_derived_one_is_no_more_known():
    class Again(OwnLinear):
        pass

    assert choose(Again(SEEDS, dimension=6, prior_variance=1.0), bandit(SEEDS, 6, 20)) == "step_by_step"


# ------------------------------------------------------------------------------------------------------------ simulate


class Played:
    """An agent with two chains that is never asked to act."""

    seeds, chains = SEEDS, (("gaussian", "sphere"), ("gaussian", "cube"))

    def __init__(self, **diagnostics) -> None:
        self._diagnostics = diagnostics

    def act(self, *_):
        raise AssertionError("never asked to act")

    update = act

    def diagnostics(self):
        return self._diagnostics


@pytest.fixture
def recording(monkeypatch):
    """An engine, under the name "recording", that plays nothing; what it was given last."""
    given: list[object] = []

    def play(*arguments):
        given[:] = arguments
        nothing = np.zeros((1, 1, 1))
        return Trajectory(np.array([1]), nothing, nothing, nothing, None, None)

    module = types.ModuleType("recording_engine")
    module.play = play
    monkeypatch.setitem(sys.modules, "recording_engine", module)
    monkeypatch.setitem(registry.ENGINES, "recording", "recording_engine")
    return given


def test_an_engine_is_given_everything(recording):
    agent, environment = Played(), Plain()
    simulate(environment, agent, 150, print, "checkpoint", engine="recording")
    *given, time, on_step, checkpoint = recording
    assert given == [agent, environment, 150]
    assert (on_step, checkpoint) == (print, "checkpoint")
    assert time.tolist() == stored_rounds(2, 150, False).tolist() == list(range(1, 151))
    # who asks for no progress and no checkpoint
    simulate(environment, agent, 150, engine="recording")
    *_, on_step, checkpoint = recording
    assert (on_step(3), checkpoint) == (None, None)


def test_diagnostics_are_taken_on_the_coarse_grid(recording):
    simulate(Plain(), Played(loss=np.zeros((3, 2))), 150, engine="recording")
    time = recording[3]
    assert time.tolist() == time_grid(150, coarse=True).tolist()
    assert len(time) < 150


@pytest.mark.parametrize("fits", ["linear_compiled", "neural_stacked", "neural_compiled", "step_by_step"])
def test_the_engine_that_serves_is_taken(monkeypatch, recording, fits):
    monkeypatch.setitem(registry.ENGINES, fits, registry.ENGINES["recording"])
    environment = pool("quadratic", SEEDS)
    agent = build("greedy", environment, 10)
    if fits == "linear_compiled":
        agent, environment = ensemble(SEEDS, 6, 4), bandit(SEEDS, 6, 20)
    if fits == "neural_stacked":
        agent = derived(LastNeural, environment)
    if fits == "step_by_step":
        agent = LinearUCB(SEEDS, dimension=6, prior_variance=1.0, width=1.0, delta=0.05)
    simulate(environment, agent, 10)
    assert recording[:3] == [agent, environment, 10]


# -------------------------------------------------------------------------------------------------------- configuration


def models(union) -> dict[str, type]:
    """kind -> model of a discriminated union, but for the user's own classes and names for others' chains."""
    members = {get_args(model.model_fields["kind"].annotation)[0]: model for model in get_args(get_args(union)[0])}
    return {kind: model for kind, model in members.items() if kind not in ("custom", "pair")}


@pytest.mark.parametrize(
    ("union", "table"),
    [(environment_models.Environment, registry.ENVIRONMENTS), (agent_models.Agent, registry.AGENTS)],
    ids=["environments", "agents"],
)
def test_models_name_the_family_of_their_class(union, table):
    """For every kind, and every kind has a model and a class."""
    found = models(union)
    assert found.keys() == table.keys()
    for kind, model in found.items():
        assert model.family == getattr(registry.load(table[kind]), "family", None), kind


@cache
def config(**devices: str):
    return read_files(ROOT, scale="quick", **devices)


def smallest() -> dict[str, str]:
    """kind of an environment -> the configured one that is made fastest."""
    found = {}
    for name, model in sorted(config(device="cpu").environments.items(), key=lambda item: getattr(item[1], "candidates", 0)):
        found.setdefault(model.kind, name)
    return found


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> dict[str, dict]:
    """kind of an environment -> its input files, small ones: 6 rows of two classes."""
    folder = tmp_path_factory.mktemp("inputs")
    label = ("row", np.array([0, 1, 0, 1, 1, 0], dtype=np.int8))
    values = np.random.default_rng(0).standard_normal((6, 4)).astype(np.float32)
    write_dataset(xr.Dataset({"value": (("row", "feature"), values), "label": label}), folder / "data.nc")
    posts = {"embedding": (("post", "feature"), values), "label": ("post", label[1])}
    write_dataset(xr.Dataset(posts), folder / "embeddings.nc")
    return {
        "classification": {"data": str(folder / "data.nc")},
        "moderation": {"embeddings": str(folder / "embeddings.nc")},
        "moderation_tokens": {"tokens": str(tiny_posts.posts(folder / "tokens.nc"))},
        "model": tiny_models.make("gpt2", folder / "gpt2"),
    }


def playing() -> list[str]:
    """Every configured agent that plays."""
    settings = config(device="cpu")
    return [name for name in settings.declared_agents if settings.agents[name].kind != "pair"]


def spec_of(agent: str, environment: str, inputs: dict[str, dict], **devices: str) -> dict:
    """A block's specification as the configuration resolves it, with small input files."""
    size = 3 if config(**devices).agents[agent].ensemble else 0
    spec = config(**devices).block(environment, agent, size, 10, 0, 0).spec
    own = inputs.get(spec["environment"]["kind"])
    if own:
        spec["environment"]["options"] |= {"inputs": own}
    if "folder" in spec["agent"]["options"]:
        spec["agent"]["options"]["folder"] = str(inputs["model"])
    return spec


def test_every_kind_is_configured():
    assert smallest().keys() == registry.ENVIRONMENTS.keys()
    assert {config(device="cpu").agents[name].kind for name in playing()} == registry.AGENTS.keys()


@pytest.mark.parametrize("kind", registry.ENVIRONMENTS)
def test_the_configuration_resolves_to_the_engine_of_the_objects(kind, inputs):
    """Every configured agent on a CPU, in an environment of every kind that it reads; linear agents on a GPU as well."""
    for agent in playing():
        if not config(device="cpu").plays(agent, smallest()[kind]):
            continue
        spec = spec_of(agent, smallest()[kind], inputs, device="cpu")
        environment, player = block.build(spec)
        assert spec["engine"] == choose(player, environment, 10), agent
        if isinstance(player, LinearChains):
            spec = spec_of(agent, smallest()[kind], inputs, device="cpu", linear_device="cuda")
            assert spec["device"] == "cuda"
            environment, player = block.build(spec)
            assert spec["engine"] == choose(player, environment, 10), agent
        elif hasattr(player, "captures"):
            spec = spec_of(agent, smallest()[kind], inputs, device="cuda")
            assert spec["engine"] == choose(on_gpu(player), environment, 10), agent


def test_both_rules_know_every_engine():
    """None of them is left out by the comparisons above."""
    names = {
        config(device=device, linear_device=device).block(environment, agent, size, horizon, 0, 0).spec["engine"]
        for device in ("cpu", "cuda")
        for horizon in (10, 1000)
        for environment in smallest().values()
        for agent in playing()
        if config(device="cpu").plays(agent, environment)
        for size in [3 if config(device="cpu").agents[agent].ensemble else 0]
    }
    assert names == registry.ENGINES.keys()


def test_own_classes_are_played_as_they_say():
    """A class of the user's plays step by step unless its entry says which engines know it."""
    entry = {"kind": "custom", "label": "own", "class": "own:Agent"}
    for says, family in (("any", None), ("linear", "linear"), ("neural", "neural"), ("linear_heads", "linear_heads")):
        assert agent_models.CustomAgent.model_validate(entry | {"plays_as": says}).played_as() == family
    assert agent_models.CustomAgent.model_validate(entry).played_as() is None


# ------------------------------------------------------------------------------------------ environments that are derived


class Renamed(LinearFinite):
    """The same bandit under another name."""


class Doubled(LinearFinite):
    """Rewards of its own."""

    def step(self, choice):
        outcome = super().step(choice)
        return outcome._replace(reward=2 * outcome.reward)


class DoubledPool(Quadratic):
    def step(self, choice):
        outcome = super().step(choice)
        return outcome._replace(reward=2 * outcome.reward)


def test_an_environment_with_rounds_of_its_own_is_played_round_by_round():
    linear = {"dimension": 3, "actions": 5, "feature_bound": 1.0, "prior_variance": 1.0, "noise": 0.1}
    agent = LinearGreedy([0], dimension=3, prior_variance=1.0)
    assert choose(agent, Renamed([0], **linear)) == "linear_compiled"
    assert choose(agent, Doubled([0], **linear)) == "step_by_step"
    own, plain = (
        simulate(kind([0], **linear), LinearGreedy([0], dimension=3, prior_variance=1.0), 1) for kind in (Doubled, LinearFinite)
    )
    np.testing.assert_allclose(own.reward, 2 * plain.reward, rtol=1e-6)
    pool = {"dimension": 6, "candidates": 20, "offered": 5, "features": "sphere", "scale": 1.0, "noise": 0.1}
    assert choose(agent, DoubledPool([0], **pool)) == "step_by_step"
    neural = type("Plain", (), {"family": "neural", "device": "cpu"})()
    assert choose(neural, Quadratic([0], **pool)) == "neural_stacked"
    assert choose(neural, DoubledPool([0], **pool)) == "step_by_step"


@pytest.mark.parametrize("begin", ["whole", "rounds"])
def test_a_linear_bandit_is_played_once(begin):
    """Its streams have moved on, so that it would be another bandit."""
    environment = LinearFinite([0], dimension=3, actions=5, feature_bound=1.0, prior_variance=1.0, noise=0.1)
    agent = LinearGreedy([0], dimension=3, prior_variance=1.0)
    simulate(environment, agent, 3, engine="step_by_step" if begin == "rounds" else None)
    with pytest.raises(RuntimeError, match="this bandit has been played"):
        simulate(environment, LinearGreedy([0], dimension=3, prior_variance=1.0), 3)
