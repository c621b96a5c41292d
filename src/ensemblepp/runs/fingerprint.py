"""Code fingerprints: a hash of the source that a job's modules import, blind to comments, docstrings, layout and file names.

Snakemake stores the fingerprint in a rule's `params`, so an edit re-runs exactly the jobs whose code it touches. The
import closure is read from the source by grimp without importing anything; modules that are loaded by name at run time
(agents, environments and engines) are not followed, which keeps one agent's edit from touching another's runs.

A module that is moved or renamed keeps its hash, and so do all that import it: an import counts as the content of what is
imported. The hash is the same on every Python version that parses the source.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path

import grimp

from ensemblepp.errors import ConfigError

PACKAGE = "ensemblepp"

#: Modules that only say where others are.
PLACES = frozenset({"ensemblepp.registry"})


@functools.cache
def fingerprint(*code: str) -> str:
    """16 hex digits that change when the code, or anything that it imports within its package, changes.

    Args:
        code: modules, or "module:name" where the name decides as well.

    Raises:
        ConfigError: a module cannot be found.
    """
    places = [entry.partition(":") for entry in code]
    names = sorted(name for _, _, name in places if name)
    modules = closure(*(module for module, _, _ in places)) - PLACES
    return _hash("\n".join([*names, *sorted(map(_module_digest, modules))]))[:16]


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
            imported = {target for node in ast.walk(_tree(module)) for target, *_ in _targets(node, module)} & graph.modules
            found |= imported.union(*(graph.find_upstream_modules(name) for name in imported))
    return found


def source_digest(text: str, describe: Callable[[ast.AST], list[str] | None] = lambda node: None) -> str:
    """Hash of a module's syntax tree without docstrings: equal for sources that differ in comments or layout only.

    Args:
        text: the source.
        describe: what an import statement counts as, in any order; None: it counts as it stands.
    """
    tree = ast.parse(text)
    imports: list[str] = []
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = body[0] if body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
                del body[0]
        for statement in list(body):
            described = describe(statement)
            if described is not None:
                imports += described
                body.remove(statement)
    return _hash("\n".join([*sorted(imports), *_dump(tree)]))


def _dump(node: object) -> Iterator[str]:
    """A syntax tree as tokens. Not `ast.dump`, which writes fields that are empty on some versions and not on others."""
    if isinstance(node, ast.AST):
        yield f"({type(node).__name__}"
        for name, value in ast.iter_fields(node):
            if value not in (None, []) and name != "kind":
                yield f"{name}="
                yield from _dump(value)
        yield ")"
    elif isinstance(node, list):
        yield "["
        for entry in node:
            yield from _dump(entry)
        yield "]"
    else:
        yield f"{type(node).__name__} {node!r}"


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def _graph(packages: tuple[str, ...]) -> grimp.ImportGraph:
    # no cache folder: it would land in the user's working directory, and building takes well under 0.1 s
    return grimp.build_graph(*packages, cache_dir=None)


@functools.cache
def _module_digest(module: str) -> str:
    """Hash of a module, with the content of every module that it imports from a package of its own or from this one."""
    return source_digest(_source(module), lambda node: _described(node, module, _shallow_digest))


@functools.cache
def _shallow_digest(module: str) -> str:
    """Hash of a module in which imports count by the names that they bind."""
    return source_digest(_source(module), lambda node: _described(node, module, lambda _: ""))


def _described(node: ast.AST, module: str, content: Callable[[str], str]) -> list[str] | None:
    """What an import statement within packages of ours counts as; None for any other statement."""
    found = []
    for target, name, bound in _targets(node, module):
        if target.split(".")[0] not in (PACKAGE, module.split(".")[0]) or target in PLACES:
            return None
        whole = f"{target}.{name}" if name else target
        found.append(f"{content(whole)} as {bound}" if _exists(whole) else f"{content(target)}.{name} as {bound}")
    return found or None


def _targets(node: ast.AST, module: str) -> Iterator[tuple[str, str, str]]:
    """(module, name in it, name it is bound to) of `from ... import ...`; `import ...` has no name and binds its whole path."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, "", alias.asname or alias.name) for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = module.split(".")[: -node.level] if node.level else []
        target = ".".join([*base, *filter(None, [node.module])])
        for alias in node.names:
            yield target, alias.name, alias.asname or alias.name


@functools.cache
def _exists(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError, AttributeError):
        return False


@functools.cache
def _tree(module: str) -> ast.Module:
    return ast.parse(_source(module))


@functools.cache
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
