"""Every kind that the configuration knows is found, and every entry is a kind."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest
import tiny_models

from ensemblepp import registry
from ensemblepp.bandit import AgentFamily
from ensemblepp.config.agents import Agent, CustomAgent, PairAgent
from ensemblepp.config.environments import Environment
from ensemblepp.engines import choice
from ensemblepp.runs.fingerprint import closure

PACKAGE = Path(registry.__file__).parent


def models(union: object) -> dict[str, type]:
    """The models of a section by their kinds."""
    return {get_args(model.model_fields["kind"].annotation)[0]: model for model in get_args(get_args(union)[0])}


def test_every_kind_of_the_configuration_is_in_the_registry_and_no_other():
    """A pair is another agent's, and the user's own kind says itself where it lies."""
    assert models(Environment).keys() - {"custom"} == registry.ENVIRONMENTS.keys()
    assert models(Agent).keys() - {"custom", "pair"} == registry.AGENTS.keys()
    assert {CustomAgent, PairAgent} <= set(models(Agent).values())


@pytest.mark.parametrize(("kind", "path"), [*registry.ENVIRONMENTS.items(), *registry.AGENTS.items()])
def test_every_entry_is_a_class_that_is_defined_where_it_says(kind, path):
    found = registry.load(path)
    assert inspect.isclass(found)
    assert f"{found.__module__}:{found.__qualname__}" == path


def test_no_class_has_two_kinds():
    paths = [*registry.ENVIRONMENTS.values(), *registry.AGENTS.values()]
    assert len(set(paths)) == len(paths)


#: Values of keys without a default.
REQUIRED = {
    "references": ["gaussian"],
    "perturbations": ["gaussian"],
    "dimension": 3,
    "actions": 5,
    "language_model": "any",
    "posts": 1,
}


def options_of(union: object, kind: str) -> dict[str, object]:
    """The keyword arguments that an entry of this kind gives its class when it says no more than it must."""
    model = models(union)[kind]
    dataset = {"classification": "mushroom", "moderation": "hate_speech", "moderation_tokens": "hate_speech"}.get(kind)
    stated = REQUIRED | {"label": "", "title": ""} | ({"dataset": dataset} if dataset else {})
    if kind == "moderation":
        del stated["actions"]  # words there, not a number
    return model.model_validate(
        {"kind": kind} | {name: value for name, value in stated.items() if name in model.model_fields}
    ).options()


@pytest.mark.parametrize("kind", registry.AGENTS)
def test_an_agent_is_built_with_the_keys_of_its_model(kind, tmp_path):
    """It takes them all, and needs no other, but for the language model of its environment."""
    size = 3 if models(Agent)[kind].ensemble else 0
    options = options_of(Agent, kind)
    if models(Agent)[kind].reads == "tokens":
        options |= {"folder": tiny_models.make("gpt2", tmp_path / "gpt2"), "pooling": "last", "actions": 2}
    agent = registry.load(registry.AGENTS[kind])((0, 4), dimension=4, ensemble_size=size, horizon=5, device="cpu", **options)
    assert list(agent.seeds) == [0, 4]
    assert getattr(type(agent), "family", None) == models(Agent)[kind].family, "what the engines are chosen by"


@pytest.mark.parametrize("kind", registry.ENVIRONMENTS)
def test_an_environment_is_built_with_the_keys_of_its_model(kind):
    """It takes them all, and needs no other; those with data are read by name only, since they need their files."""
    options = options_of(Environment, kind)
    found = registry.load(registry.ENVIRONMENTS[kind])
    assert getattr(found, "family", None) == models(Environment)[kind].family, "what the engines are chosen by"
    if "inputs" in options:
        parameters = inspect.signature(found).parameters
        assert set(options) == set(parameters) - {"seeds"}
    else:
        assert list(found((0, 4), **options).seeds) == [0, 4]


@pytest.mark.parametrize(("name", "module"), registry.ENGINES.items())
def test_every_engine_plays(name, module):
    play = importlib.import_module(module).play
    assert list(inspect.signature(play).parameters)[:6] == ["agent", "environment", "horizon", "time", "on_step", "checkpoint"]


def test_the_engines_that_are_chosen_are_in_the_registry_and_all_of_them_are_chosen():
    families = (None, *get_args(AgentFamily), "pool")
    chosen = {choice.engine_name(a, e, device) for a in families for e in families for device in ("cpu", "cuda")}
    assert chosen == registry.ENGINES.keys()


def test_every_module_of_agents_environments_and_engines_is_named_or_imported_by_one_that_is():
    """A file that nobody asks for is dead, or was forgotten."""
    paths = [*registry.ENVIRONMENTS.values(), *registry.AGENTS.values(), *registry.ENGINES.values()]
    # the ceiling is asked for by a rule of its own
    used = closure("ensemblepp.engines.choice", "ensemblepp.environments.ceiling", *(path.partition(":")[0] for path in paths))
    found = {
        ".".join(["ensemblepp", *path.relative_to(PACKAGE).with_suffix("").parts])
        for folder in ("agents", "environments", "engines")
        for path in (PACKAGE / folder).rglob("*.py")
        if path.stem != "__init__"
    }
    assert found
    assert found - used == set()


def test_a_class_is_loaded_by_module_and_name():
    from ensemblepp.environments.linear_finite import LinearFinite

    assert registry.load("ensemblepp.environments.linear_finite:LinearFinite") is LinearFinite


def test_classes_of_a_specification():
    """By kind, or the user's own."""
    spec = {"environment": {"kind": "quadratic"}, "agent": {"kind": "greedy"}}
    assert registry.environment_path(spec) == registry.ENVIRONMENTS["quadratic"]
    assert registry.agent_path(spec) == registry.AGENTS["greedy"]
    own = {"kind": "custom", "class": "own.things:Thing"}
    assert registry.environment_path(spec | {"environment": own}) == "own.things:Thing"
    assert registry.agent_path(spec | {"agent": own}) == "own.things:Thing"


def test_reading_the_registry_imports_nothing():
    script = "import sys\nimport ensemblepp.registry\nprint(*(name for name in sys.modules if name.startswith('ensemblepp')))\n"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=PACKAGE.parent, capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == {"ensemblepp", "ensemblepp.registry"}
