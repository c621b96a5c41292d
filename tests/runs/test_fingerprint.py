"""Code fingerprints: an edit changes the fingerprints of what it touches and no others; comments and layout change none."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ensemblepp.errors import ConfigError
from ensemblepp.runs.fingerprint import closure, fingerprint, source_digest

ROOT = Path(__file__).resolve().parents[1]

# ------------------------------------------------------------------------------------------------------ one module

SOURCE = '''"""What it is."""

import math

LIMIT = 3


class Circle:
    """A circle."""

    def area(self, radius: float) -> float:
        """Its area."""
        return math.pi * radius**2
'''


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param('"""What it is."""', '"""Something else."""', id="docstring of the module"),
        pytest.param('"""What it is."""\n', "", id="no docstring of the module"),
        pytest.param('"""A circle."""', '"""A round thing.\n\n    Very round.\n    """', id="docstring of a class"),
        pytest.param('        """Its area."""\n', "", id="no docstring of a function"),
        pytest.param("LIMIT = 3", "LIMIT = 3  # at most", id="comment behind code"),
        pytest.param("import math", "# mathematics\nimport math", id="comment before code"),
        pytest.param("LIMIT = 3", "\n\nLIMIT   =   3\n", id="blank lines and spaces"),
        pytest.param("math.pi * radius**2", "(\n            math.pi\n            * radius**2\n        )", id="line breaks"),
    ],
)
def test_comments_docstrings_and_layout_do_not_count(old, new):
    edited = SOURCE.replace(old, new)
    assert edited != SOURCE
    assert source_digest(edited) == source_digest(SOURCE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("LIMIT = 3", "LIMIT = 4", id="constant"),
        pytest.param("LIMIT = 3", "LIMIT = 3.0", id="type of a constant"),
        pytest.param("radius**2", "radius**3", id="formula"),
        pytest.param("def area", "def surface", id="name"),
        pytest.param("radius: float)", "radius: float = 1.0)", id="default"),
        pytest.param("return math", "_ = 'a text that is no docstring'\n        return math", id="text in the code"),
        pytest.param("LIMIT = 3", "LIMIT = 3\nassert LIMIT", id="statement"),
        pytest.param("import math", "import cmath as math", id="import"),
    ],
)
def test_code_counts(old, new):
    edited = SOURCE.replace(old, new)
    assert edited != SOURCE
    assert source_digest(edited) != source_digest(SOURCE)


# --------------------------------------------------------------------------------------------------------- closure


def test_what_greedy_is_made_of():
    modules = closure("ensemblepp.agents.neural.greedy")
    assert {
        "ensemblepp.agents.neural.greedy",
        "ensemblepp.agents.neural.base",
        "ensemblepp.agents.neural.mlp",
        "ensemblepp.bandit",
        "ensemblepp.randomness.streams",
        "ensemblepp.errors",
    } <= modules
    others = {f"ensemblepp.agents.{name}" for name in ("neural_ensemblepp", "linear_ts", "linear_ensemblepp")}
    assert not modules & {*others, "ensemblepp.config", "ensemblepp.randomness.distributions", "ensemblepp.runs.block"}


def test_what_runs_a_block_knows_no_agent_no_environment_and_no_configuration():
    modules = closure("ensemblepp.runs.block")
    assert {"ensemblepp.engines.step_by_step", "ensemblepp.storage.datasets"} <= modules
    known = {name for name in modules if name.startswith(("ensemblepp.agents.", "ensemblepp.environments."))}
    assert known == {"ensemblepp.bandit"}
    assert "ensemblepp.config" not in modules


def test_a_fingerprint_is_16_hex_digits_and_the_order_of_modules_is_no_matter():
    one = fingerprint("ensemblepp.agents.neural.greedy", "ensemblepp.runs.block")
    assert len(one) == 16
    assert int(one, 16) >= 0
    assert fingerprint("ensemblepp.runs.block", "ensemblepp.agents.neural.greedy") == one
    assert fingerprint("ensemblepp.runs.block") != one


@pytest.mark.parametrize("module", ["ensemblepp.nothing", "nothing_at_all", "nothing.at_all", "sys"])
def test_an_unknown_module(module):
    with pytest.raises(ConfigError) as error:
        fingerprint(module)
    assert str(error.value) == f"no Python source for module '{module}'"


# -------------------------------------------------------------------------------------- edits of a copied project

CONFIG = {
    "environments": {
        "line": {"kind": "linear_finite", "title": "Line", "dimension": 3, "actions": 5},
        "mushroom": {"kind": "classification", "title": "Mushroom", "dataset": "mushroom"},
        "posts": {"kind": "moderation", "title": "Posts", "language_model": "tiny", "posts": 9},
    },
    "language_models": {"tiny": {"source": "folder", "location": "tiny", "pooling": "last"}},
    "agents": {
        "ts": {"kind": "linear_ts", "label": "TS"},
        "linear": {
            "kind": "linear_ensemblepp",
            "label": "Ensemble++",
            "references": ["gaussian"],
            "perturbations": ["sphere"],
        },
        "neural": {"kind": "neural_ensemblepp", "label": "Ensemble++"},
        "greedy": {"kind": "greedy", "label": "Greedy"},
    },
    "studies": {
        "all": {
            "title": "All",
            "agents": ["ts", "linear", "neural", "greedy"],
            "scales": {"quick": {"environments": ["line", "mushroom", "posts"], "horizon": 1, "seeds": 1}},
        }
    },
}

PRINT = """
import json, sys
import ensemblepp
from ensemblepp.config.loading import load
from ensemblepp.config.checks import presentable
from ensemblepp.runs.fingerprint import fingerprint
found = {"where": ensemblepp.__file__}
for block in load(json.loads(sys.argv[1])).blocks("all"):
    found[f"{block.spec['environment']['name']} {block.spec['agent']['name']}"] = fingerprint(*block.modules)
for kind in ("figures", "tables"):
    for name in presentable(kind):
        found[f"{kind} {name}"] = fingerprint(f"ensemblepp.{kind}", f"ensemblepp.{kind}.{name}")
for name in ("aggregate", "embed", "language_models"):
    found[name] = fingerprint(f"ensemblepp.{name}")
print(json.dumps(found))
"""


def printed(script: str, folder: Path, *arguments: str) -> str:
    """What a script prints that imports from `folder` and runs in it."""
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


def fingerprints(folder: Path) -> dict[str, str]:
    found = json.loads(printed(PRINT, folder, json.dumps(CONFIG)))
    assert Path(found.pop("where")).is_relative_to(folder)
    return found


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return fingerprints(copy_package(tmp_path_factory.mktemp("untouched")))


def copy_package(folder: Path) -> Path:
    shutil.copytree(ROOT / "src/ensemblepp", folder / "ensemblepp", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


ENVIRONMENTS = ("line", "mushroom", "posts")
AGENTS = ("ts", "linear", "neural", "greedy")


def blocks(environments: tuple[str, ...] = ENVIRONMENTS, agents: tuple[str, ...] = AGENTS) -> set[str]:
    return {f"{environment} {agent}" for environment in environments for agent in agents}


@pytest.mark.parametrize(
    ("file", "statement", "changed"),
    [
        ("agents/greedy.py", "EDITED = 1", blocks(agents=("greedy",))),
        ("agents/greedy.py", "# only a comment", set()),
        ("agents/neural.py", "EDITED = 1", blocks(agents=("neural", "greedy"))),
        ("agents/linear_ensemblepp.py", "EDITED = 1", blocks(agents=("linear",))),
        ("agents/linear_posterior.py", "EDITED = 1", blocks(agents=("ts", "linear"))),
        ("environments/moderation.py", "EDITED = 1", blocks(environments=("posts",))),
        ("environments/contextual.py", "EDITED = 1", blocks(environments=("mushroom", "posts"))),
        ("simulate.py", "EDITED = 1", blocks()),
        ("config.py", "EDITED = 1", {"aggregate"}),
        ("aggregate.py", "EDITED = 1", {"aggregate"}),
        ("tables/final_regret.py", "EDITED = 1", {"tables final_regret"}),
        ("figures/laws_heatmap.py", "EDITED = 1", {"figures laws_heatmap"}),
        ("__main__.py", "EDITED = 1", set()),
        ("fingerprint.py", "EDITED = 1", {"aggregate"}),
    ],
)
def test_an_edit_changes_what_it_touches(untouched, tmp_path, file, statement, changed):
    folder = copy_package(tmp_path)
    with (folder / "ensemblepp" / file).open("a") as source:
        source.write(f"\n{statement}\n")
    edited = fingerprints(folder)
    assert {name for name in untouched if edited[name] != untouched[name]} == changed
    assert edited.keys() == untouched.keys()


def test_the_style_of_figures_is_part_of_every_figure_and_of_nothing_else(untouched, tmp_path):
    folder = copy_package(tmp_path)
    with (folder / "ensemblepp/figures/style.py").open("a") as source:
        source.write("\nEDITED = 1\n")
    edited = fingerprints(folder)
    changed = {name for name in untouched if edited[name] != untouched[name]}
    assert changed == {name for name in untouched if name.startswith("figures ")}
    assert changed


def test_no_file_is_left_in_the_working_directory(untouched, tmp_path):
    copy_package(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert fingerprints(tmp_path) == untouched
    assert sorted(tmp_path.rglob("*")) == before


# -------------------------------------------------------------------------------------------- code of one's own

ONE = "from ensemblepp.runs.fingerprint import closure, fingerprint\nimport sys\nprint(fingerprint(sys.argv[1]))\n"
ALL = "from ensemblepp.runs.fingerprint import closure\nimport sys\nprint(*sorted(closure(sys.argv[1])))\n"


def test_a_single_file_outside_any_package(tmp_path):
    file = tmp_path / "own_agent.py"
    file.write_text("from ensemblepp.agents.neural.greedy import Greedy\n\n\nclass Mine(Greedy):\n    rate = 1\n")
    modules = set(printed(ALL, tmp_path, "own_agent").split())
    assert modules == {"own_agent", *closure("ensemblepp.agents.neural.greedy")}
    first = printed(ONE, tmp_path, "own_agent")
    file.write_text(file.read_text().replace("    rate", "    # a comment\n    rate"))
    assert printed(ONE, tmp_path, "own_agent") == first
    file.write_text(file.read_text().replace("rate = 1", "rate = 2"))
    assert printed(ONE, tmp_path, "own_agent") != first


def test_a_package_of_ones_own_is_followed(tmp_path):
    package = tmp_path / "own_agents"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "mine.py").write_text("from own_agents import kernel\nfrom ensemblepp.randomness.streams import generator\n")
    (package / "kernel.py").write_text("WIDTH = 1\n")
    (package / "other.py").write_text("WIDTH = 1\n")
    modules = set(printed(ALL, tmp_path, "own_agents.mine").split())
    assert modules == {"own_agents.mine", "own_agents.kernel", "ensemblepp.randomness.streams"}
    first = printed(ONE, tmp_path, "own_agents.mine")
    (package / "other.py").write_text("WIDTH = 2\n")
    assert printed(ONE, tmp_path, "own_agents.mine") == first
    (package / "kernel.py").write_text("WIDTH = 2\n")
    assert printed(ONE, tmp_path, "own_agents.mine") != first
