"""Environments, laws, figures and tables of the user's in the configuration: what they resolve to, and their faults."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from small_configuration import AGENTS, ENVIRONMENTS, STUDIES, faults, small

from ensemblepp.config.loading import load

OWN = """
raise RuntimeError("the configuration must be checked without importing anything")


class World:
    def __init__(self, seeds, *, noise, arms=2, inputs=None):
        pass


class Closed:
    def __init__(self, seeds, size):
        pass


class Fed:
    def __init__(self, seeds, inputs):
        pass


def one(argument):
    pass


def two(first, second):
    pass


def more(first, second=1, *, third=2):
    pass
"""

WORLD = {"kind": "custom", "title": "World", "class": "own_code_of_mine:World", "options": {"noise": 0.5}}
LAPLACE = {"function": "own_code_of_mine:one"}
LAWS = "config/agents.yaml: laws"


@pytest.fixture(autouse=True)
def _own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_code_of_mine.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)


def with_world(**fields: object) -> dict:
    changes = {"environments/world": WORLD | fields, "studies/curves/scales/quick/environments": ["world"]}
    return small(**changes)


def with_laws(laws: dict, **changes: object) -> dict:
    return small(**changes) | {"laws": laws}


# --------------------------------------------------------------------------------------------------------- environments


def test_an_environment_of_ones_own():
    block = load(with_world()).blocks("curves")[0]
    assert block.spec["environment"] == {
        "name": "world",
        "kind": "custom",
        "class": "own_code_of_mine:World",
        "options": {"noise": 0.5},
    }
    assert block.spec["engine"] == "step_by_step"
    assert block.inputs == []
    assert block.code[0] == "own_code_of_mine:World"
    assert "own_code_of_mine" not in sys.modules


def test_the_files_of_an_environment_are_inputs_of_its_runs():
    config = load(with_world(inputs={"arms": "arms.csv", "more": ["a.txt", "b.txt"]}))
    block = config.blocks("curves")[0]
    assert block.spec["environment"]["options"] == {"noise": 0.5, "inputs": {"arms": "arms.csv", "more": ["a.txt", "b.txt"]}}
    assert block.inputs == ["arms.csv", "a.txt", "b.txt"]


@pytest.mark.parametrize(("plays_as", "engines"), [("linear", {"linear_compiled"}), ("pool", {"step_by_step"})])
def test_an_environment_may_be_of_a_family(plays_as, engines):
    blocks = load(with_world(plays_as=plays_as)).blocks("curves")
    assert {block.spec["engine"] for block in blocks} == engines, "of linear agents"


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"class": "own_code_of_mine:Nothing"}, ".class: found 'own_code_of_mine:Nothing': "),
        ({"class": "no_module_here:World"}, ".class: found 'no_module_here:World': no module 'no_module_here' can be imported"),
        ({"class": "World"}, ".class: found 'World': string should match pattern"),
        ({"options": {"noise": 1, "size": 2}}, ".options.size: unknown key; World takes arms, noise"),
        ({"options": {"noise": 1, "seeds": 2}}, ".options.seeds: unknown key; World takes arms, noise"),
        ({"options": {}}, ".options.noise: field required: World has no default for it"),
        (
            {"class": "own_code_of_mine:Closed", "options": {"size": 3}, "inputs": {"a": "b"}},
            ".inputs: found {'a': 'b'}: own_code_of_mine:Closed takes no inputs",
        ),
        (
            {"class": "own_code_of_mine:Fed", "options": {}},
            ".inputs: field required: own_code_of_mine:Fed has no default for it",
        ),
        ({"plays_as": "neural"}, ".plays_as: found 'neural': input should be 'any', 'linear' or 'pool'"),
        ({"hyperparameters": {}}, ".hyperparameters: unknown key; config/README.md lists the keys"),
    ],
)
def test_faults_of_an_environment(fields, line):
    (found,) = faults(with_world(**fields))
    assert found.startswith(f"{ENVIRONMENTS}.world{line}")


def test_an_environment_that_can_be_played_for_so_many_rounds():
    load(with_world(longest=20))
    assert faults(with_world(longest=19)) == [
        f"{STUDIES}.curves.scales.quick.horizon: found 20: environment 'world' can be played for 19 rounds at most"
    ]


# ----------------------------------------------------------------------------------------------------------------- laws


def test_a_law_is_written_out_wherever_an_agent_names_it():
    changes = {
        "agents/linear/references": ["gaussian", "laplace"],
        "agents/linear/perturbations": ["laplace", "sparse-3"],
        "agents/neural/per_environment/mushroom": {"update": "laplace"},
        "agents/pair": {"kind": "pair", "label": "P", "of": "linear", "reference": "laplace", "perturbation": "sparse-3"},
        "studies/curves/agents": ["linear", "pair"],
    }
    config = load(with_laws({"laplace": LAPLACE, "other": LAPLACE | {"normalise": False}}, **changes))
    written = {"name": "laplace", "function": "own_code_of_mine:one", "normalise": True}
    block = config.blocks("curves")[0]
    assert block.spec["agent"]["options"]["references"] == ["gaussian", written]
    assert block.spec["agent"]["options"]["perturbations"] == [written, "sparse-3"]
    assert "own_code_of_mine:one" in block.code
    assert "own_code_of_mine" not in sys.modules
    deep = {
        block.spec["environment"]["name"]: block for block in config.blocks("deep") if block.spec["agent"]["name"] == "neural"
    }
    assert deep["mushroom"].spec["agent"]["options"]["update"] == written
    assert "own_code_of_mine:one" in deep["mushroom"].code
    assert deep["posts"].spec["agent"]["options"]["update"] == "coordinate"
    assert "own_code_of_mine:one" not in deep["posts"].code


def test_specifications_without_laws_of_the_users_stay_as_they_are():
    plain, declared = (load(values).blocks("curves")[-1].spec for values in (small(), with_laws({"laplace": LAPLACE})))
    assert plain == declared
    assert plain["agent"]["options"]["references"] == ["gaussian"]


@pytest.mark.parametrize(
    ("laws", "line"),
    [
        ({"sphere": LAPLACE}, ".sphere: there is a law of this name already"),
        ({"sparse-5": LAPLACE}, ".sparse-5: there is a law of this name already"),
        ({"none": LAPLACE}, ".none: there is a law of this name already"),
        ({"Laplace": LAPLACE}, ".Laplace: a name has lower-case letters, digits, '+', '-' and '.' only"),
        (
            {"laplace": {"function": "own_code_of_mine:two"}},
            ".laplace.function: found 'own_code_of_mine:two': must be a function",
        ),
        ({"laplace": {"function": "own_code_of_mine:World"}}, ".laplace.function: found 'own_code_of_mine:World': a class"),
        ({"laplace": {"function": "own_code_of_mine:three"}}, ".laplace.function: found 'own_code_of_mine:three': "),
    ],
)
def test_faults_of_a_law(laws, line):
    (found,) = faults(with_laws(laws))
    assert found.startswith(f"{LAWS}{line}")


def test_an_unknown_law_is_named_with_those_there_are():
    values = with_laws({"laplace": LAPLACE}, **{"agents/linear/references": ["laplce"]})
    known = "gaussian, sphere, cube, coordinate, sparse, sparse-3, sparse-4, ..., laplace"
    assert faults(values) == [f"{AGENTS}.linear.references.0: found 'laplce': must be one of {known}"]


# --------------------------------------------------------------------------------------------------- figures and tables


@pytest.mark.parametrize("kind", ["figures", "tables"])
def test_a_figure_or_table_of_ones_own(kind):
    own = {"mine": {"function": "own_code_of_mine:one"}, "spare": {"function": "own_code_of_mine:more", "caption": "Words."}}
    config = load(small(**{f"studies/curves/{kind}": ["mine"]}) | {kind: own})
    assert config.presentation(kind, "mine") == "own_code_of_mine:one"
    assert config.presentation("figures", "linear_regret") == "ensemblepp.figures.linear_regret:draw"
    assert config.presentation("tables", "final_regret") == "ensemblepp.tables.final_regret:build"
    assert f"results/quick/{kind}/curves-mine.{'pdf' if kind == 'figures' else 'csv'}" in config.artefacts("curves")


@pytest.mark.parametrize(
    ("own", "line"),
    [
        ({"linear_regret": LAPLACE}, ".linear_regret: there is a module ensemblepp.figures.linear_regret already"),
        ({"my-figure": LAPLACE}, ".my-figure: a name has lower-case letters, digits and '_' only"),
        ({"mine": {"function": "own_code_of_mine:none"}}, ".mine.function: found 'own_code_of_mine:none': "),
        ({"mine": LAPLACE | {"caption": "nowhere.rst"}}, ".mine.caption: found 'nowhere.rst': no such file"),
        ({"mine": LAPLACE | {"title": "x"}}, ".mine.title: unknown key"),
    ],
)
def test_faults_of_a_figure(own, line):
    (found,) = faults(small() | {"figures": own})
    assert found.startswith(f"config/studies.yaml: figures{line}")


def test_an_unknown_figure_is_named_with_those_there_are():
    (found,) = faults(small(**{"studies/curves/figures": ["mein"]}) | {"figures": {"mine": LAPLACE}})
    assert found.startswith(f"{STUDIES}.curves.figures: found 'mein': must be one of ")
    assert found.endswith(", mine; did you mean 'mine'?")
