"""A run block: its path, what it reads, and the code behind it."""

from __future__ import annotations

import pytest

from ensemblepp import registry
from ensemblepp.specification import Block


def block(**changes: object) -> Block:
    spec = {
        "environment": {"name": "line", "kind": "linear_finite", "options": {"dimension": 3}},
        "agent": {"name": "ens++", "kind": "linear_ensemblepp", "options": {}},
        "engine": "linear_compiled",
        "device": "cpu",
        "ensemble_size": 8,
        "horizon": 100,
        "seeds": [10, 19],
    }
    return Block("results/quick", spec | changes)


def test_the_path_names_all_that_tells_blocks_of_a_study_apart():
    assert block().path == "results/quick/runs/line/ens++/M8/T100/seeds10-19.nc"
    others = [
        block(ensemble_size=4),
        block(horizon=99),
        block(seeds=[10, 18]),
        block(agent=block().spec["agent"] | {"name": "other"}),
        block(environment=block().spec["environment"] | {"name": "other"}),
        Block("results/paper", block().spec),
    ]
    assert len({other.path for other in [block(), *others]}) == len(others) + 1


@pytest.mark.parametrize(
    ("options", "inputs"),
    [
        ({}, []),
        ({"inputs": {"data": "a.nc"}}, ["a.nc"]),
        ({"inputs": {"embeddings": ["b.nc", "c.nc"], "data": "a.nc"}}, ["b.nc", "c.nc", "a.nc"]),
    ],
)
def test_input_files(options, inputs):
    assert block(environment={"name": "line", "kind": "classification", "options": options}).inputs == inputs


def test_the_code_is_environment_agent_engine_and_what_runs_them():
    environment, agent, engine, runs = block().code[:3] + block().code[-1:]
    assert environment == registry.ENVIRONMENTS["linear_finite"]
    assert agent == registry.AGENTS["linear_ensemblepp"]
    assert engine == registry.ENGINES["linear_compiled"]
    assert runs == "ensemblepp.runs.block"


@pytest.mark.parametrize("engine", registry.ENGINES)
def test_only_the_engine_that_plays_counts(engine):
    assert set(block(engine=engine).code) & set(registry.ENGINES.values()) == {registry.ENGINES[engine]}


def test_code_of_the_users_own():
    own = block(
        environment={"name": "mine", "kind": "custom", "class": "own.world:World", "options": {}},
        agent={"name": "mine", "kind": "custom", "class": "own.agent:Mine", "options": {}},
    )
    assert own.code[:2] == ("own.world:World", "own.agent:Mine")


def test_blocks_of_equal_specifications_are_equal():
    assert block() == block()
    assert block() != block(horizon=99)
