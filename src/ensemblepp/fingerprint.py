"""Code fingerprints: a hash of the source that a job's modules import, blind to comments, docstrings and layout.

Snakemake stores the fingerprint in a rule's `params`, so an edit re-runs exactly the jobs whose code it touches. The
import closure is read from the source by grimp without importing anything; modules that are loaded by name at run time
(agents and environments) are not followed, which keeps one agent's edit from touching another's runs.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
from pathlib import Path

import grimp

from ensemblepp.errors import ConfigError

PACKAGE = "ensemblepp"


@functools.cache
def fingerprint(*modules: str) -> str:
    """16 hex digits that change when the code of `modules`, or of anything they import within their packages, changes.

    Raises:
        ConfigError: a module cannot be found.
    """
    digest = hashlib.sha256()
    for module in sorted(closure(*modules)):
        digest.update(f"{module}={_module_digest(module)}\n".encode())
    return digest.hexdigest()[:16]


def closure(*modules: str) -> set[str]:
    """`modules` and every module of their top-level packages that they import, directly or not."""
    graph = _graph(tuple(sorted({PACKAGE, *(module.split(".")[0] for module in modules if _in_package(module))})))
    found: set[str] = set()
    for module in modules:
        found.add(module)
        if module in graph.modules:
            found |= graph.find_upstream_modules(module)
        else:
            # a single file outside any package: follow what it imports from this one
            imported = _imports(module) & graph.modules
            found |= imported.union(*(graph.find_upstream_modules(name) for name in imported))
    return found


def source_digest(text: str) -> str:
    """Hash of a module's syntax tree without docstrings: equal for sources that differ in comments or layout only."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
                node.body = node.body[1:]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


@functools.cache
def _graph(packages: tuple[str, ...]) -> grimp.ImportGraph:
    # no cache folder: it would land in the user's working directory, and building takes well under 0.1 s
    return grimp.build_graph(*packages, cache_dir=None)


@functools.cache
def _module_digest(module: str) -> str:
    return source_digest(_source(module))


def _source(module: str) -> str:
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        found = None
    if found is None or found.origin is None or not found.origin.endswith(".py"):
        raise ConfigError(f"no Python source for module '{module}'")
    return Path(found.origin).read_text(encoding="utf-8")


def _in_package(module: str) -> bool:
    found = importlib.util.find_spec(module.split(".")[0])
    return found is not None and found.submodule_search_locations is not None


def _imports(module: str) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(_source(module))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names
