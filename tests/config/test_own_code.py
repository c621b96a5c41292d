"""Classes of the user's: found and read without importing them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from small_configuration import AGENTS, faults, small

from ensemblepp.config import own_code
from ensemblepp.config.loading import load

MINE = """
raise RuntimeError("the configuration must be checked without importing anything")


class Fixed:
    def __init__(self, seeds, *, dimension, ensemble_size, horizon, device, step: float, depth=2):
        pass


class Open:
    def __init__(self, seeds, *, dimension, **options):
        self.options = options


class Swallows:
    def __init__(self, seeds, *, width=1, **_):
        pass


class Inherited(Fixed):
    pass
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module of the user's own, beside a package with another one."""
    (tmp_path / "own_agents").mkdir()
    (tmp_path / "own_agents/__init__.py").touch()
    (tmp_path / "own_agents/first.py").write_text(MINE)
    (tmp_path / "own_agent.py").write_text(MINE)
    (tmp_path / "own_broken.py").write_text("x = 1\nclass Broken(:\n")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def with_custom(class_path: str, **fields: object) -> dict:
    agent = {"kind": "custom", "label": "Mine", "class": class_path} | fields
    return small(**{"agents/mine": agent, "studies/curves/agents": ["mine"], "studies/curves/figures": []})


@pytest.mark.parametrize("module", ["own_agent", "own_agents.first"])
@pytest.mark.parametrize(
    ("name", "hyperparameters"),
    [("Fixed", {"step": 0.5}), ("Fixed", {"step": 0.5, "depth": 1}), ("Open", {"any": [1]}), ("Inherited", {"step": 0.5})],
)
def test_a_class_of_ones_own_is_found_without_importing_it(mine, module, name, hyperparameters):
    values = with_custom(f"{module}:{name}", hyperparameters=hyperparameters)
    config = load(values)
    assert module not in sys.modules
    block = config.blocks("curves")[0]
    assert block.path == "results/quick/runs/line/mine/M0/T20/seeds0-1.nc"
    described = {"name": "mine", "kind": "custom", "class": f"{module}:{name}", "options": hyperparameters}
    assert block.spec["agent"] == described
    assert (block.spec["device"], block.spec["engine"]) == ("cpu", "step_by_step")
    assert f"{module}:{name}" in block.code


def test_a_class_of_ones_own_may_have_an_ensemble_and_use_a_gpu(mine):
    config = load(with_custom("own_agent:Open", uses_ensemble=True, uses_gpu=True) | {"device": "cuda"})
    blocks = config.blocks("curves")
    assert [block.spec["ensemble_size"] for block in blocks] == [2, 2, 4, 4]
    assert {block.spec["device"] for block in blocks} == {"cuda"}


@pytest.mark.parametrize(
    ("class_path", "hyperparameters", "line"),
    [
        (
            "own_agents.second:Fixed",
            {},
            ".class: found 'own_agents.second:Fixed': no module 'own_agents.second' can be imported",
        ),
        ("nowhere.at_all:Fixed", {}, ".class: found 'nowhere.at_all:Fixed': no module 'nowhere.at_all' can be imported"),
        ("own_agent:Other", {}, ".class: found 'own_agent:Other': {folder}/own_agent.py defines no class or function 'Other'"),
        ("own_broken:Broken", {}, ".class: found 'own_broken:Broken': {folder}/own_broken.py, line 2: invalid syntax"),
        ("own_agent", {}, r".class: found 'own_agent': string should match pattern '^[\w.]+:\w+$'"),
        ("own_agent:Fixed", {}, ".hyperparameters.step: field required: Fixed has no default for it"),
        ("own_agent:Fixed", {"step": 0.5, "stp": 0.5}, ".hyperparameters.stp: unknown key; Fixed takes depth, step"),
        # what takes any keyword and reads none would play with the default
        ("own_agent:Swallows", {"widht": 2}, ".hyperparameters.widht: unknown key; Swallows takes width"),
        ("own_agent:Fixed", {"step": 0.5, "horizon": 5}, ".hyperparameters.horizon: unknown key; Fixed takes depth, step"),
    ],
)
def test_a_fault_in_an_agent_of_ones_own(mine, class_path, hyperparameters, line):
    found = faults(with_custom(class_path, hyperparameters=hyperparameters))
    assert found == [f"{AGENTS}.mine{line.replace('{folder}', str(mine))}"]


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"protocol": "paper"}, ".protocol: found 'paper': must be one of protocols: none is declared"),
        (
            {"per_environment": {"mars": {"step": 1}}},
            ".per_environment: found 'mars': must be the name or kind of an environment",
        ),
        ({"per_environment": {"line": {"stp": 1}}}, ".per_environment.line.stp: unknown key; Fixed takes depth, step"),
        (
            {"plays_as": "tabular"},
            ".plays_as: found 'tabular': input should be 'any', 'linear', 'neural', 'linear_heads', 'single_head' or 'epinet'",
        ),
    ],
)
def test_a_fault_in_where_the_values_of_an_agent_of_ones_own_come_from(mine, fields, line):
    assert faults(with_custom("own_agent:Fixed", hyperparameters={"step": 0.5}, **fields)) == [f"{AGENTS}.mine{line}"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Fixed", ({"step", "depth"}, {"step"}, False)),
        ("Open", (set(), set(), True)),
        ("Swallows", ({"width"}, set(), False)),
        ("Inherited", (set(), set(), True)),
    ],
)
def test_keywords_that_a_class_is_built_with(mine, name, expected):
    """Less what every agent's class is given: those that it names, those without a default, and whether it hands on others."""
    found = own_code.keywords(f"own_agent:{name}")
    assert (found.named - own_code.AGENT, found.required - own_code.AGENT, found.hands_on) == expected


def test_what_a_class_takes(mine):
    """By name, or of what it hands on; a class that another one builds may take anything."""
    handed_on = {"depth", "width"}
    takes = {
        (name, key): own_code.takes(f"own_agent:{name}", key, handed_on)
        for name in ("Fixed", "Open", "Inherited")
        for key in ("step", "depth", "width")
    }
    assert {place for place, taken in takes.items() if taken} == {
        ("Fixed", "step"),
        ("Fixed", "depth"),
        ("Open", "depth"),
        ("Open", "width"),
        ("Inherited", "depth"),
        ("Inherited", "width"),
    }
