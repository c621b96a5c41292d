"""Code fingerprints: an edit changes the fingerprints of what it touches and no others; comments and layout change none."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest
from moves import move, sort_imports

from ensemblepp import registry
from ensemblepp.errors import ConfigError
from ensemblepp.runs.fingerprint import PLACES, closure, fingerprint, source_digest

ROOT = Path(__file__).resolve().parents[2]

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


TYPED = """from typing import TYPE_CHECKING, Protocol

class Round(Protocol):
    if TYPE_CHECKING:
        @property
        def area(self) -> float: ...
    else:
        area: float
"""


@pytest.mark.parametrize(
    ("source", "same"),
    [
        pytest.param("from typing import Protocol\nclass Round(Protocol):\n    area: float\n", True, id="what runs"),
        pytest.param(TYPED.replace("@property", "@cached_property"), True, id="what a type checker reads"),
        pytest.param(TYPED.replace("area: float", "area: int"), False, id="what runs instead"),
        pytest.param(TYPED.replace("if TYPE", "if not TYPE"), False, id="another condition"),
        pytest.param(TYPED.replace("from typing", "from mine"), False, id="a name of one's own"),
        pytest.param(TYPED.replace("CHECKING, P", "CHECKING as T, P"), False, id="under another name"),
        pytest.param(TYPED.replace("Protocol\n", "Protocol, Any\n", 1), False, id="another import"),
    ],
)
def test_what_only_a_type_checker_reads_does_not_count(source, same):
    assert (source_digest(source) == source_digest(TYPED)) is same


#: Sources whose trees the versions of Python write differently, or whose text they show differently.
SAMPLES = {
    "functions": (
        "@decorated\ndef f(a, /, b: int = 1, *rest, c=2, **more) -> None:\n    return lambda x, *y: (x, *y)\n"
        "async def g():\n    async with a as b, c:\n        yield await b\n",
        "f54aa25eea87ceb5",
    ),
    "classes": (
        "class A(B, metaclass=C):\n    x: int = 1\n    y: str\n\n    def f(self): ...\n\n\nclass D:\n    pass\n",
        "e77e5f749692b23b",
    ),
    "texts": (
        "a = u'ä' 'b' f'c{d!r:>{width}.3f}{{e}}' 'f'\nb = f'{x=}', f'{x:%Y-%m}', f'', f'{x:}', f'{1}' f''\n"
        "c = b'\\x00', '\\ud800', '\\U0001fae9', '\U0001fae9', r'\\d'\n",
        "8122bc74428dce24",
    ),
    "numbers": (
        "a = 0, -0.0, 1e300, 1e-5, 1_000, 0x10, 2**100, 3j, 10**400, True, None, ..., 12345678901234567890123\n",
        "5942059da6a8f317",
    ),
    "statements": (
        "match a:\n    case {'b': [1, *_], **c} if c:\n        pass\n    case B(x=0) | None:\n        pass\n"
        "    case _:\n        pass\n"
        "try:\n    del a[1:2, ...]\nexcept* (E, F) as e:\n    raise G from e\nelse:\n    global h\nfinally:\n    a @= b\n"
        "while (n := 1) < 2 <= 3:\n    break\nelse:\n    assert n, 'm'\nwith (a as b, c):\n    pass\n",
        "928745c2ca06e20f",
    ),
    "imports": (
        "from __future__ import annotations\nimport os.path as p, sys\nfrom a.b import c as d, e\nfrom ..f import *\n",
        "d95f20fca059b4f4",
    ),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_every_python_gives_the_same_digest(name):
    """Results are moved between machines: the digests that stand here were made by Python 3.11, 3.12 and 3.13."""
    source, digest = SAMPLES[name]
    assert source_digest(source)[:16] == digest


#: Asks for the digest of every sample and the fingerprint of every module; no library is installed where it runs.
OTHER_PYTHON = """
import json, sys
from ensemblepp.runs.fingerprint import fingerprint, source_digest
samples, modules = json.load(sys.stdin)
print(json.dumps([[source_digest(sample) for sample in samples], {module: fingerprint(module) for module in modules}]))
"""


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_another_python_gives_the_same_fingerprints(version):
    """Of every module of the package, where that version is on this machine: by its name, or as pyenv keeps them."""
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions").glob(f"{version}.*/bin/python")
    modules = sorted(grimp.build_graph("ensemblepp", cache_dir=None).modules)
    given = json.dumps([[source for source, _ in SAMPLES.values()], modules])
    variables = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    for python in filter(None, [shutil.which(f"python{version}"), *map(str, kept)]):
        command = [python, "-c", OTHER_PYTHON]
        done = subprocess.run(command, input=given, env=variables, capture_output=True, text=True, check=False)
        # a name on the path may be a shim of pyenv's with nothing behind it
        if done.returncode == 0 or "Traceback" in done.stderr:
            assert done.returncode == 0, done.stderr
            digests, fingerprints = json.loads(done.stdout)
            assert [digest[:16] for digest in digests] == [digest for _, digest in SAMPLES.values()]
            assert fingerprints == {module: fingerprint(module) for module in modules}
            return
    pytest.skip(f"no Python {version} on this machine")


def test_fields_of_later_versions_that_are_empty_do_not_count(monkeypatch):
    """Python 3.12 gave functions and classes `type_params`; 3.13 gave those a default."""
    source = "def f():\n    pass\n\n\nclass A:\n    pass\n"
    before = source_digest(source)
    for kind in (ast.FunctionDef, ast.ClassDef, ast.Pass):
        monkeypatch.setattr(kind, "_fields", (*kind._fields, "invented", "listed"))
        monkeypatch.setattr(kind, "invented", None, raising=False)
        monkeypatch.setattr(kind, "listed", [], raising=False)
    assert source_digest(source) == before
    monkeypatch.setattr(ast.Pass, "invented", 0)
    assert source_digest(source) != before


# --------------------------------------------------------------------------------------------------------- closure


def test_what_a_module_is_made_of_is_what_grimp_finds():
    """Of every module, imports within functions too."""
    graph = grimp.build_graph("ensemblepp", cache_dir=None)
    assert len(graph.modules) > 100
    for module in graph.modules:
        assert closure(module) == {module, *graph.find_upstream_modules(module)}


def test_what_greedy_is_made_of():
    modules = closure("ensemblepp.agents.neural.greedy")
    assert {
        "ensemblepp.agents.neural.greedy",
        "ensemblepp.agents.neural.base",
        "ensemblepp.agents.neural.mlp",
        "ensemblepp.agents.neural.products",
        "ensemblepp.bandit",
        "ensemblepp.randomness.streams",
        "ensemblepp.errors",
    } <= modules
    others = {path.partition(":")[0] for path in registry.AGENTS.values()} - {"ensemblepp.agents.neural.greedy"}
    assert not modules & others
    assert not {name for name in modules if name.startswith(("ensemblepp.config", "ensemblepp.engines", "ensemblepp.runs"))}


def test_what_runs_a_block_knows_no_agent_no_engine_no_environment_and_no_configuration():
    modules = closure("ensemblepp.runs.block")
    assert {"ensemblepp.devices", "ensemblepp.storage.datasets", "ensemblepp.trajectory"} <= modules
    # what is asked of all of them
    others = modules - {"ensemblepp.engines", "ensemblepp.engines.contract"}
    assert not {name.split(".")[1] for name in others} & {"agents", "engines", "environments", "config"}


ENGINES = [path.removeprefix("ensemblepp.engines.") for path in registry.ENGINES.values()]


@pytest.mark.parametrize("engine", ENGINES)
def test_no_engine_knows_what_runs_it_or_another_engine(engine):
    """It may know what agents of its family are derived from, and no agent."""
    modules = closure(f"ensemblepp.engines.{engine}")
    assert not {name.split(".")[1] for name in modules} & {"config", "runs", "specification"}
    assert modules & set(registry.ENGINES.values()) == {f"ensemblepp.engines.{engine}"}
    assert not modules & {path.partition(":")[0] for path in registry.AGENTS.values()}


def test_nothing_is_imported_to_read_it(tmp_path):
    """The workflow is parsed by every job of a cluster."""
    script = (
        "import sys\nfrom ensemblepp.runs.fingerprint import fingerprint\nbefore = set(sys.modules)\n"
        "fingerprint('ensemblepp.agents.neural.greedy:Greedy', 'ensemblepp.figures.laws_heatmap', 'ensemblepp.runs.block')\n"
        "print(*sorted(set(sys.modules) - before))\n"
    )
    copy_package(tmp_path)
    assert printed(script, tmp_path).split() == []


def test_a_fingerprint_is_16_hex_digits_and_the_order_of_modules_is_no_matter():
    one = fingerprint("ensemblepp.agents.neural.greedy", "ensemblepp.runs.block")
    assert len(one) == 16
    assert int(one, 16) >= 0
    assert fingerprint("ensemblepp.runs.block", "ensemblepp.agents.neural.greedy") == one
    assert fingerprint("ensemblepp.runs.block") != one


def test_the_class_counts_beside_its_module():
    one, other = (fingerprint(f"ensemblepp.environments.candidates:{name}") for name in ("Quadratic", "Neural"))
    assert len({one, other, fingerprint("ensemblepp.environments.candidates")}) == 3


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
        "neural": {"kind": "neural_ensemblepp", "label": "Neural Ensemble++"},
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

#: What jobs record as their code: name of the job -> modules. It needs the configuration, which is slow to import.
CODES = """
import json, sys
from ensemblepp.config.loading import load
from ensemblepp.config.checks import presentable
codes = {}
for block in load(json.loads(sys.argv[1])).blocks("all"):
    codes[f"{block.spec['environment']['name']} {block.spec['agent']['name']}"] = block.code
for kind in ("figures", "tables"):
    for name in presentable(kind):
        codes[f"{kind} {name}"] = [f"ensemblepp.{kind}", f"ensemblepp.{kind}.{name}"]
for name in ("runs.aggregate", "text.embedding", "text.language_models", "data.mushroom"):
    codes[name] = [f"ensemblepp.{name}"]
print(json.dumps(codes))
"""
#: Answers every line, a list of jobs and their modules, with their fingerprints.
HASH = """
import json, sys
import ensemblepp
from ensemblepp.runs.fingerprint import current, fingerprint
for line in sys.stdin:
    current()
    found = {name: fingerprint(*code) for name, code in json.loads(line).items()}
    print(json.dumps(found | {"where": ensemblepp.__file__}), flush=True)
"""


def begun(script: str, folder: Path, *arguments: str) -> subprocess.Popen:
    """A script that imports from `folder` and runs in it."""
    places = os.pathsep.join([str(folder), str(ROOT / "src")])
    environment = os.environ | {"PYTHONPATH": places, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.Popen(command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def printed(script: str, folder: Path, *arguments: str, given: str = "") -> str:
    process = begun(script, folder, *arguments)
    output, _ = process.communicate(given)
    assert process.returncode == 0
    return output


def codes(folder: Path) -> dict[str, list[str]]:
    """The code of every job, as the package in `folder` says."""
    return json.loads(printed(CODES, folder, json.dumps(CONFIG)))


def fingerprints(folder: Path, code: dict[str, list[str]]) -> dict[str, str]:
    """The fingerprint of every job, by the package in `folder`."""
    return found_in(folder, printed(HASH, folder, given=json.dumps(code)))


def found_in(folder: Path, line: str) -> dict[str, str]:
    found = json.loads(line)
    assert Path(found.pop("where")).is_relative_to(folder)
    return found


@pytest.fixture(scope="module")
def code() -> dict[str, list[str]]:
    return codes(ROOT / "src")


class Copy:
    """A copy of the package, and one process that hashes it again and again."""

    def __init__(self, folder: Path, code: dict[str, list[str]]):
        self.folder, self.code, self.process = copy_package(folder), code, begun(HASH, folder)

    def fingerprints(self) -> dict[str, str]:
        print(json.dumps(self.code), file=self.process.stdin, flush=True)
        return found_in(self.folder, self.process.stdout.readline())

    def after(self, file: str, statement: str) -> dict[str, str]:
        """The fingerprints with a statement at the end of a file, which is then put back."""
        path = self.folder / "ensemblepp" / file
        text = path.read_text()
        path.write_text(f"{text}\n{statement}\n")
        try:
            return self.fingerprints()
        finally:
            path.write_text(text)


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory, code: dict[str, list[str]]) -> Iterator[Copy]:
    copy = Copy(tmp_path_factory.mktemp("copied"), code)
    with copy.process:
        yield copy


@pytest.fixture(scope="module")
def untouched(copied: Copy) -> dict[str, str]:
    return copied.fingerprints()


def copy_package(folder: Path) -> Path:
    shutil.copytree(ROOT / "src/ensemblepp", folder / "ensemblepp", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


ENVIRONMENTS = ("line", "mushroom", "posts")
AGENTS = ("ts", "linear", "neural", "greedy")


def blocks(environments: tuple[str, ...] = ENVIRONMENTS, agents: tuple[str, ...] = AGENTS) -> set[str]:
    return {f"{environment} {agent}" for environment in environments for agent in agents}


CONTEXTUAL = ("mushroom", "posts")
LINEAR, NEURAL = ("ts", "linear"), ("neural", "greedy")


@pytest.mark.parametrize(
    ("file", "statement", "changed"),
    [
        ("agents/neural/greedy.py", "EDITED = 1", blocks(agents=("greedy",))),
        ("agents/neural/greedy.py", "# only a comment", set()),
        # the compiled rounds are for its classes, and not for the linear bandit
        ("agents/neural/base.py", "EDITED = 1", blocks(agents=NEURAL)),
        ("agents/linear/ensemblepp.py", "EDITED = 1", blocks(agents=("linear",))),
        ("agents/linear/posterior.py", "EDITED = 1", blocks(agents=LINEAR)),
        ("environments/moderation.py", "EDITED = 1", blocks(environments=("posts",))),
        ("environments/contextual.py", "EDITED = 1", blocks(environments=CONTEXTUAL)),
        ("engines/step_by_step.py", "EDITED = 1", blocks(CONTEXTUAL, LINEAR) | blocks(("line",), NEURAL)),
        ("engines/linear/compiled.py", "EDITED = 1", blocks(("line",), LINEAR)),
        ("engines/linear/kernel.py", "EDITED = 1", blocks(("line",), LINEAR)),
        ("engines/linear/batched.py", "EDITED = 1", set()),
        ("engines/neural/compiled.py", "EDITED = 1", blocks(CONTEXTUAL, NEURAL)),
        ("engines/neural/kernel.py", "EDITED = 1", blocks(CONTEXTUAL, NEURAL)),
        ("engines/neural/run.py", "EDITED = 1", blocks(CONTEXTUAL, NEURAL)),
        ("engines/neural/epinet_kernel.py", "EDITED = 1", set()),
        ("engines/neural/stacked.py", "EDITED = 1", set()),
        ("engines/choice.py", "EDITED = 1", set()),
        ("runs/block.py", "EDITED = 1", blocks()),
        ("registry.py", 'AGENTS["another"] = "ensemblepp.agents.another:Another"', set()),
        ("specification.py", "EDITED = 1", {"runs.aggregate"}),
        ("runs/aggregate.py", "EDITED = 1", {"runs.aggregate"}),
        ("runs/plan.py", "EDITED = 1", set()),
        ("runs/fingerprint.py", "EDITED = 1", set()),
        ("config/resolution.py", "EDITED = 1", set()),
        ("config/neural_agents.py", "EDITED = 1", set()),
        ("tables/final_regret.py", "EDITED = 1", {"tables final_regret"}),
        ("figures/laws_heatmap.py", "EDITED = 1", {"figures laws_heatmap"}),
        ("text/embedding.py", "EDITED = 1", {"text.embedding"}),
        ("data/mushroom.py", "EDITED = 1", {"data.mushroom"}),
        ("cli/__init__.py", "EDITED = 1", set()),
        ("__init__.py", "EDITED = 1", set()),
    ],
)
def test_an_edit_changes_what_it_touches(untouched, copied, file, statement, changed):
    edited = copied.after(file, statement)
    assert {name for name in untouched if edited[name] != untouched[name]} == changed
    assert edited.keys() == untouched.keys()


def test_the_style_of_figures_is_part_of_every_figure_and_of_nothing_else(untouched, copied):
    edited = copied.after("figures/style.py", "EDITED = 1")
    changed = {name for name in untouched if edited[name] != untouched[name]}
    assert changed == {name for name in untouched if name.startswith("figures ")}
    assert changed


def test_no_file_is_left_in_the_working_directory(untouched, code, tmp_path):
    """Of a process that has hashed one copy again and again, and of one that begins."""
    copy_package(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert fingerprints(tmp_path, code) == untouched
    assert sorted(tmp_path.rglob("*")) == before


# ----------------------------------------------------------------------------------------------- moves and renames

#: Packages whose modules are found by the registry or by import alone.
MOVABLE = (
    "agents",
    "analysis",
    "bandit",
    "devices",
    "engines",
    "environments",
    "errors",
    "randomness",
    "storage",
    "trajectory",
)


@pytest.mark.parametrize("how", ["renamed", "moved"])
def test_where_modules_lie_is_no_matter(untouched, tmp_path, how):
    """Every module below agents, engines, environments, ...: renamed so that every order is another, or in other folders."""
    package = copy_package(tmp_path) / "ensemblepp"
    paths = [path for name in MOVABLE for path in [package / f"{name}.py", *(package / name).rglob("*.py")] if path.exists()]
    names = sorted(".".join(path.relative_to(package).with_suffix("").parts) for path in paths if path.name != "__init__.py")
    assert len(names) > 50
    for position, old in enumerate(names):
        folder, _, name = old.rpartition(".")
        other = f"z{len(names) - position:02}_{name}"
        move(package, old, f"{folder}.{other}".strip(".") if how == "renamed" else f"deep.down.p{position % 7}.{other}")
    sort_imports(package)
    assert fingerprints(tmp_path, codes(tmp_path)) == untouched


def test_the_order_and_the_grouping_of_imports_are_no_matter(untouched, tmp_path):
    """Every import of this package, a statement for each name, in reversed order."""
    package = copy_package(tmp_path) / "ensemblepp"
    for path in package.rglob("*.py"):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            for statements in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
                if isinstance(statements, list):
                    statements[:] = [part for statement in statements for part in apart(statement)]
        path.write_text(ast.unparse(tree))
    assert fingerprints(tmp_path, codes(tmp_path)) == untouched


def apart(statement: ast.stmt) -> list[ast.stmt]:
    if isinstance(statement, ast.ImportFrom) and statement.module.startswith("ensemblepp"):
        return [ast.ImportFrom(statement.module, [alias], 0) for alias in reversed(statement.names)]
    return [statement]


# -------------------------------------------------------------------------------------------- code of one's own

ONE = "from ensemblepp.runs.fingerprint import closure, fingerprint\nimport sys\nprint(fingerprint(sys.argv[1]))\n"
ALL = "from ensemblepp.runs.fingerprint import closure\nimport sys\nprint(*sorted(closure(sys.argv[1])))\n"


def write(folder: Path, **sources: str) -> None:
    """Modules by their dotted names, `__` standing for the dot, in packages with `__init__.py`."""
    for name, source in sources.items():
        path = folder.joinpath(*name.split("__")).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        for part in path.parents:
            if part == folder:
                break
            (part / "__init__.py").touch()
        path.write_text(source)


def of_own(folder: Path, module: str = "own.agent", **sources: str) -> str:
    """The fingerprint of a module of the user's, after `sources` are written anew."""
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    write(folder, **sources)
    return printed(ONE, folder, module)


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


def test_a_single_file_that_imports_a_module_by_its_name(tmp_path):
    write(tmp_path, own_agent="from ensemblepp.agents.neural import greedy\n")
    assert set(printed(ALL, tmp_path, "own_agent").split()) == {"own_agent", *closure("ensemblepp.agents.neural.greedy")}


def test_what_lies_beside_a_single_file_is_followed_and_what_is_installed_is_not(tmp_path):
    sources = {
        "own_agent": "import numpy as np\nimport own_sums\nfrom own.kernel import WIDTH\nimport yaml\n",
        "own_sums": "import numpy\n\n\ndef add(): ...\n",
        "own__kernel": "raise RuntimeError('nothing is imported')\n",
        "own__other": "",
    }
    write(tmp_path, **sources)
    assert set(printed(ALL, tmp_path, "own_agent").split()) == {"own_agent", "own_sums", "own.kernel"}
    first = of_own(tmp_path, "own_agent", **sources)
    assert of_own(tmp_path, "own_agent", **sources | {"own__other": "EDITED = 1\n"}) == first
    assert of_own(tmp_path, "own_agent", **sources | {"own_sums": "EDITED = 1\n"}) != first
    assert of_own(tmp_path, "own_agent", **sources | {"own__kernel": "EDITED = 1\n"}) != first


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


def test_a_package_without_init_is_followed(tmp_path):
    write(tmp_path, own__agent="from own import kernel\nfrom own.sums import add\n", own__kernel="A = 1\n", own__sums="A = 1\n")
    (tmp_path / "own/__init__.py").unlink()
    assert set(printed(ALL, tmp_path, "own.agent").split()) == {"own.agent", "own.kernel", "own.sums"}


#: What `own.play.agent` says to import `own.kernel`, and how it says so once that is `own.deep.core`.
IMPORTS = {
    "at the top": ("from own.kernel import width\n", "from own.deep.core import width\n"),
    "in a function": (
        "def act():\n    from own.kernel import width\n    return width\n",
        "def act():\n    from own.deep.core import width\n    return width\n",
    ),
    "in another branch": (
        "if True:\n    pass\nelse:\n    from own.kernel import width\n",
        "if True:\n    pass\nelse:\n    from own.deep.core import width\n",
    ),
    "in a handler": (
        "try:\n    pass\nexcept OSError:\n    from own.kernel import width\nfinally:\n    import own.kernel as k\n",
        "try:\n    pass\nexcept OSError:\n    from own.deep.core import width\nfinally:\n    import own.deep.core as k\n",
    ),
    "of the module": ("from own import kernel as k\n", "from own.deep import core as k\n"),
    "of the path": ("import own.kernel as k\n", "import own.deep.core as k\n"),
    "relative": ("from ..kernel import width\n", "from ..deep.core import width\n"),
    "relative, of the module": ("from .. import kernel as k\n", "from ..deep import core as k\n"),
}


@pytest.mark.parametrize("how", IMPORTS)
def test_every_kind_of_import_counts_as_what_is_imported_and_not_as_its_place(tmp_path, how):
    """An edit of the kernel is seen, its move to another place and name is not."""
    before, after = IMPORTS[how]
    kernel = "def width():\n    return 1\n"
    first = of_own(tmp_path, "own.play.agent", own__play__agent=before, own__kernel=kernel)
    edited = kernel.replace("1", "2")
    assert of_own(tmp_path, "own.play.agent", own__play__agent=before, own__kernel=edited) != first
    assert of_own(tmp_path, "own.play.agent", own__play__agent=after, own__deep__core=kernel) == first
    assert of_own(tmp_path, "own.play.agent", own__play__agent=after, own__deep__core=edited) != first


def test_relative_imports_of_a_package_itself(tmp_path):
    """In `own/__init__.py` one dot is `own`, which it is not in a module of it."""
    write(tmp_path, own__kernel="A = 1\n", own__agents__first="B = 1\n")
    (tmp_path / "own/__init__.py").write_text("from .kernel import A\nfrom .agents import first\n")
    (tmp_path / "own/agents/__init__.py").write_text("from . import first\nfrom ..kernel import A\n")
    assert set(printed(ALL, tmp_path, "own").split()) == {"own", "own.kernel", "own.agents.first"}
    assert set(printed(ALL, tmp_path, "own.agents").split()) == {"own.agents", "own.kernel", "own.agents.first"}


ONE_EACH = "from own.left import f\nfrom own.right import f as g\n"
SWAPPED = "from own.left import f as g\nfrom own.right import f\n"


@pytest.mark.parametrize("through", [0, 1, 2])
def test_names_of_equal_spelling_that_change_places_are_seen(tmp_path, through):
    """`f` and `g` swap the modules that they come from; also where those only hand on what others define."""
    sources = {}
    for side, value in (("left", 1), ("right", 2)):
        for step in range(through):
            inner = f"{side}{step + 1}"
            sources[f"own__{side}{step or ''}"] = f"from own.{inner} import f\n"
        sources[f"own__{side}{through or ''}"] = f"def f():\n    return {value}\n"
    first = of_own(tmp_path, own__agent=ONE_EACH, **sources)
    assert of_own(tmp_path, own__agent=SWAPPED, **sources) != first
    equal = {name: source.replace("return 2", "return 1") for name, source in sources.items()}
    assert of_own(tmp_path, own__agent=ONE_EACH, **equal) == of_own(tmp_path, own__agent=SWAPPED, **equal)


def test_modules_that_import_each_other(tmp_path):
    sources = {"own__agent": "from own.other import g\n", "own__other": "def g():\n    from own.agent import f\n"}
    first = of_own(tmp_path, **sources)
    assert of_own(tmp_path, **sources) == first
    assert of_own(tmp_path, **sources | {"own__other": "def g():\n    from own.agent import h as f\n"}) != first


def test_the_registry_only_says_where_others_are():
    assert {"ensemblepp.registry"} == PLACES
    assert "ensemblepp.registry" in closure("ensemblepp.runs.block")
