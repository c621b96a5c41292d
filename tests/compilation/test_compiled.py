"""The cache of compiled functions: what processes leave for each other is right, whatever their order, and never stale."""

from __future__ import annotations

import gc
import importlib
import itertools
import json
import os
import pickle
import pkgutil
import struct
import subprocess
import sys
import textwrap
from pathlib import Path

import numba
import numpy as np
import pytest

import ensemblepp
from ensemblepp.compilation import keys, sealing
from ensemblepp.compilation.compiled import compiled

TESTS = Path(__file__).parents[1]
LINEAR = ["mixed", "ts", "sphere"]
NEURAL = ["squared", "cross-entropy", "no members", "members only"]
#: What each process plays that finds nothing: two at a time, never of one kernel; one compiles two variants, the next two more.
APART = [["mixed"], ["squared", "cross-entropy"], ["sphere"], ["ts"], ["members only", "no members"], ["float64"]]


def start(command: list[str], cache: Path, path: Path = TESTS, **variables: str) -> subprocess.Popen:
    """A Python of its own with one thread and the cache folder given."""
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS", "NUMBA")}
    paths = os.pathsep.join([str(path), *filter(None, [os.environ.get("PYTHONPATH")])])
    own = (
        os.environ | threads | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"} | variables
    )
    return subprocess.Popen([sys.executable, *command], env=own, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen) -> str:
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    return output


def played(cache: Path, *processes: list[str]) -> list[dict[str, str]]:
    """Digests of the variants that each process plays."""
    return json.loads(finish(start([str(TESTS / "compiled_variants.py"), *map(",".join, processes)], cache)))


def cached(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# ------------------------------------------------------------------------------------- several processes, one cache


@pytest.fixture(scope="module")
def apart(tmp_path_factory) -> tuple[dict[str, str], Path]:
    """Every variant's digest, by processes that find nothing in their cache (`APART`), and the folder that they leave."""
    folder = tmp_path_factory.mktemp("apart")
    return {name: digest for found in played(folder, *APART) for name, digest in found.items()}, folder


@pytest.mark.thorough
def test_no_order_of_processes_changes_a_bit(apart):
    """Variants are played by processes of their own, as in a workflow's jobs; then one finds them all, and plays them.

    With numba's own cache a process that played "mixed" and then "float64" got other numbers, after "mixed" and "ts" or
    "sphere" had been compiled by two processes. All orders in which one process can load them are played.
    """
    digests, folder = apart
    before = cached(folder)
    orders = [[*order, "float64"] for order in itertools.permutations(LINEAR)]
    together = played(folder, *orders, NEURAL, NEURAL[::-1])
    assert [list(found) for found in together] == [*orders, NEURAL, NEURAL[::-1]]
    assert digests.keys() == {*LINEAR, "float64", *NEURAL}
    assert all(found.items() <= digests.items() for found in together)
    assert cached(folder) == before


# ---------------------------------------------------------------------------------------------- what an object shows


def symbols(content: bytes) -> list[str]:
    """Names of what an ELF64 object defines for others to see."""
    sections, size, count = struct.unpack_from("<Q", content, 40)[0], *struct.unpack_from("<HH", content, 58)
    headers = [struct.unpack_from("<IIQQQQIIQQ", content, sections + size * i) for i in range(count)]
    found = []
    for header in headers:
        if header[1] == 2:  # the table of symbols, whose names are in the section it links to
            names = headers[header[6]][4]
            for place in range(header[4], header[4] + header[5], 24):
                name, kind, _, section = struct.unpack_from("<IBBH", content, place)
                if section and kind >> 4:  # defined, and not local
                    found.append(content[names + name : content.index(b"\0", names + name)].decode())
    return found


def dispatchers():
    for module in pkgutil.walk_packages(ensemblepp.__path__, "ensemblepp."):
        source = Path(importlib.util.find_spec(module.name).origin).read_text()
        if any(word in source for word in ("njit", "@compiled", "compilation.arithmetic", "import arithmetic")):
            yield from (
                (name, value)
                for name, value in vars(importlib.import_module(module.name)).items()
                if isinstance(value, numba.core.dispatcher.Dispatcher)
            )


@pytest.mark.thorough
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="objects are read as ELF")
def test_a_cached_object_shows_its_own_entries_and_nothing_else(apart):
    """Native function, Python wrapper and environment, all with the digest that is the file's name; across files none twice."""
    names = []
    for file, content in cached(apart[1]).items():
        library, description, *_ = pickle.loads(content[32:])
        found, digest = symbols(library[2][0]), file.split(".")[-2]
        own = {description.llvm_func_name, description.llvm_cpython_wrapper_name, description.env_name}
        assert set(found) <= own | {description.llvm_cfunc_wrapper_name}
        assert own <= set(found)
        assert all(f"v{digest}" in name for name in found)
        names += found
    assert len(names) == len(set(names)) >= 3 * 8
    functions = {file.rsplit(".", 3)[0] for file in cached(apart[1])}
    linear, neural = "ensemblepp.engines.linear.kernel", "ensemblepp.engines.neural.kernel"
    assert functions >= {f"{linear}.{name}" for name in ("pack", "noise_tables", "play")}
    assert functions >= {
        f"{neural}.play",
        "ensemblepp.environments.candidates._shuffle",
        "ensemblepp.agents.neural.products._layer",
    }


def test_nothing_in_the_package_uses_numba_s_own_cache():
    kinds = {name: type(value._cache).__name__ for name, value in dispatchers()}
    assert kinds.keys() >= {"play", "_shuffle", "_score", "forward"}
    assert set(kinds.values()) == {"SealedCache", "NullCache"}
    assert kinds["_score"] == kinds["forward"] == "NullCache"


# ----------------------------------------------------------------------------------------------- stale, damaged, other


@pytest.fixture
def package(tmp_path):
    """A package with a compiled function, which calls one of another module, with a constant of a third; and how to run it."""
    folder = tmp_path / "source" / "tried"
    folder.mkdir(parents=True)
    files = {
        "__init__": "",
        "unrelated": "",
        "constants": "FACTOR = 2\nSHAPES = (FACTOR, 3)\n",
        "inner": """
            from numba import njit
            from . import constants
            SHAPES = constants.SHAPES
            @njit
            def scale(x):
                return SHAPES[0] * x
            """,
        "outer": """
            from ensemblepp.compilation.compiled import compiled
            from tried.inner import scale
            @compiled()
            def total(x):
                return scale(x) + 1
            def make():
                @compiled()
                def inside(x):
                    return x
            """,
    }
    for name, text in files.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(text))
    cache = tmp_path / "cache"
    report = "f = tried.outer.total; r = {}; print(json.dumps([r, sum(f.stats.cache_hits.values())]))"

    def begin(call="f(3)", prefix="", between="", **variables) -> subprocess.Popen:
        command = f"{prefix}\nimport json, tried.outer, tried.inner, tried.constants\n{between}\n{report.format(call)}"
        return start(["-c", command], variables.pop("cache", cache), folder.parent, **variables)

    def run(*arguments, **variables) -> list:
        return json.loads(finish(begin(*arguments, **variables)))

    run.begin, run.folder, run.cache = begin, folder, cache
    return run


def test_an_edit_of_what_is_imported_compiles_anew_and_a_touch_or_another_module_s_edit_does_not(package):
    assert package() == [7, 0]
    assert package() == [7, 1]
    for path in package.folder.glob("*.py"):
        os.utime(path, (1e9, 1e9))
    (package.folder / "unrelated.py").write_text("FACTOR = 5\n")
    assert package() == [7, 1]
    for file, old, new, expected in (
        ("inner", "* x", "* x * x", 19),
        ("constants", "= 2", "= 4", 37),
        ("outer", "+ 1", "- 1", 35),
    ):
        path = package.folder / f"{file}.py"
        stat = path.stat()
        path.write_text(path.read_text().replace(old, new, 1))
        os.utime(path, (stat.st_atime, stat.st_mtime))
        assert package() == [expected, 0]
        assert package() == [expected, 1]
        # what the old source left is gone
        assert len(cached(package.cache)) == 1


def test_an_edit_while_a_process_runs_does_not_give_its_code_the_new_source_s_name(package):
    edit = "import pathlib; p = pathlib.Path(tried.inner.__file__)"
    late = "[p.write_text(p.read_text().replace('* x', '- x')), f(3)][1]"
    assert package(late, between=edit) == [7, 0]
    assert package() == [0, 0]


def test_a_constant_that_is_no_function_of_the_source_has_versions_of_its_own(package):
    """As a register's width; here the constant is another before the module's functions are compiled."""
    other = "import tried.constants; tried.constants.FACTOR = 5; tried.constants.SHAPES = (5, 3)"
    assert package(prefix=other) == [16, 0]
    assert package() == [7, 0]
    assert package(prefix=other) == [16, 1]


@pytest.mark.parametrize(
    "damage", [lambda content: b"", lambda content: content[:-7], lambda content: content[:99] + b"!" + content[100:]]
)
def test_a_damaged_file_is_compiled_anew_and_replaced(package, damage):
    package()
    (path,) = (path for path in package.cache.rglob("*") if path.is_file())
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert package() == [7, 0]
    assert package() == [7, 1]


def test_what_a_killed_process_left_behind_is_in_nobody_s_way(package):
    package()
    (path,) = (path for path in package.cache.rglob("*") if path.is_file())
    leave = (
        "import sys; from pathlib import Path; from ensemblepp.storage.leftovers import prefix;"
        "Path(sys.argv[1]).rename(Path(sys.argv[1]).with_name(f'{prefix(sys.argv[2])}0123456789abcdef'))"
    )
    subprocess.run([sys.executable, "-c", leave, str(path), path.stem], check=True)
    assert package() == [7, 0]
    assert package() == [7, 1]
    assert [found.name for found in package.cache.rglob("*") if found.is_file()] == [path.name]


@pytest.mark.thorough
def test_processes_that_compile_the_same_and_other_signatures_at_once_all_find_them_later(package):
    calls = ["f(3)", "f(3.0)", "f(3)", "f(True)"]
    for process, expected in zip([package.begin(call) for call in calls], (7, 7, 7, 3), strict=True):
        assert json.loads(finish(process))[0] == expected
    assert [package(call) for call in calls] == [[7, 1], [7, 1], [7, 1], [3, 1]]
    assert len(cached(package.cache)) == 3


@pytest.mark.thorough
def test_processors_and_numba_s_switches_do_not_share(package):
    others = [{}, {"NUMBA_CPU_NAME": "generic"}, {"NUMBA_OPT": "1"}, {"NUMBA_BOUNDSCHECK": "1"}]
    if "avx2" in keys.processor_features():
        others.append({"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx,+avx2,+fma"})
    for expected in (0, 1):
        for own in others:
            assert package(**own) == [7, expected]
    assert len(cached(package.cache)) == len(others)


def test_a_source_folder_that_cannot_be_written_to_leaves_the_user_s_own(package, tmp_path):
    """As of an installed package: numba's folder for the user, and where that cannot be either, no cache."""
    (package.folder / "__pycache__").write_text("a file in the folder's place")
    home = tmp_path / "home"
    for expected in (0, 1):
        assert package(cache="", HOME=str(home), XDG_CACHE_HOME=str(home / "own")) == [7, expected]
    assert len(cached(home / "own")) == 1
    (tmp_path / "file").write_text("")
    for _ in range(2):
        assert package(cache="", XDG_CACHE_HOME=str(tmp_path / "file")) == [7, 0]


def test_functions_made_by_others_are_refused(package):
    process = package.begin("tried.outer.make()")
    assert "functions made by others share a name" in process.communicate()[1]


def test_other_versions_of_numba_compile_without_a_cache(monkeypatch):
    monkeypatch.setattr(numba, "__version__", "0.70.1")
    with pytest.warns(RuntimeWarning, match=r"numba 0\.70\.1 instead of 0\.68: every process compiles anew"):
        function = compiled()(plain)
    assert function(3) == 4
    assert type(function._cache).__name__ == "NullCache"


def plain(x):
    return x + 1


def test_functions_that_need_python_objects_of_what_they_call_are_refused():
    """Assigning a slice raises an error with the shapes in it."""
    with pytest.raises(NotImplementedError, match="calls functions that need Python objects"):
        compiled()(assign)(np.zeros(3), np.zeros(3))


def assign(left, right):
    left[:] = right


# --------------------------------------------------------------------------------------- what is compiled inside others


@numba.njit
def half(x):
    return x / 2


def quarter(x):
    return half(half(x))


def test_what_is_compiled_inside_another_function_has_no_code_that_python_could_run(monkeypatch):
    """Called all the same, it is an error; inside other functions it is what it was, sealed or not."""
    # nor is it compiled where an earlier run of this test has kept the other
    monkeypatch.setattr(sealing.SealedCache, "load_overload", lambda *_: None)
    assert compiled()(quarter)(3.0) == 0.75
    assert gc.isenabled(), "it is off for the compiler alone"
    assert isinstance(half.overloads[(numba.float64,)].library, sealing.InnerLibrary)
    with pytest.raises(TypeError, match=r"'_dynfunc\._Closure' object is not callable"):
        half(3.0)
    assert numba.njit(lambda x: half(x) + 1)(3.0) == 2.5
    assert half(3) == 1.5
    assert type(half.overloads[(numba.int64,)].library) is numba.core.codegen.JITCodeLibrary


@compiled()
def doubled(x):
    return half(x) * 4


def doubled_twice(x):
    return doubled(doubled(x))


def test_a_kept_function_may_call_another_and_python_may_call_both():
    assert compiled()(doubled_twice)(np.float32(3)) == 12
    assert doubled(np.float64(3)) == 6
