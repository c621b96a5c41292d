"""Code fingerprints: a hash of the source that a job's modules import, blind to comments, docstrings, layout and file names.

Snakemake stores the fingerprint in a rule's `params`, so an edit re-runs exactly the jobs whose code it touches. Imports are
read from the source and nothing is imported; modules that are loaded by name at run time (agents, environments and engines)
are not followed, which keeps one agent's edit from touching another's runs.

A module that is moved or renamed keeps its hash, and so do all that import it: an import counts as the content of what is
imported. The hash is the same on every Python version that parses the source.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ensemblepp.errors import ConfigError
from ensemblepp.registry import PUBLIC
from ensemblepp.runs import remembered

PACKAGE = "ensemblepp"

TYPE_CHECKING = "TYPE_CHECKING"

#: What may begin with a docstring.
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

#: Modules that only say where others are.
PLACES = frozenset({"ensemblepp.registry"})

#: An import counts as the content of a module, which counts as what it imports itself, over so many imports in a row.
DEPTH = 4


class Import(NamedTuple):
    """One name that an import statement binds."""

    module: str  #: the module that is imported, or imported from
    name: str  #: the name in it; "" where the module itself is bound
    bound: str  #: the name that stands for it from there on


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
    return _hash("\n".join([*names, *sorted(_module_digest(module, DEPTH) for module in modules)]))[:16]


def current(*code: str) -> str:
    """The fingerprint of the files as they are now: `fingerprint` keeps those that it has read once."""
    if any(_state(path) != state for path, state in _READ.items()):
        for cached in (fingerprint, _module_digest, _own_digest, _imports, _is_followed, _file, _source):
            cached.cache_clear()
        _READ.clear()
    return fingerprint(*code)


def closure(*modules: str) -> set[str]:
    """`modules` and all that they import, directly or not, of this package and of what lies beside a module of the user's."""
    found: set[str] = set()
    ahead = list(modules)
    while ahead:
        module = ahead.pop()
        if module not in found:
            found.add(module)
            ahead += (entry.module for entry in _imports(module) if _file(entry.module))
    return found


def source_digest(text: str, ignored: Callable[[ast.stmt], bool] = lambda statement: False) -> str:
    """Hash of a module's syntax tree as it runs: equal for sources that differ in comments, docstrings or layout only.

    What stands under `if TYPE_CHECKING` never runs, where that name is `typing`'s.

    Args:
        text: the source.
        ignored: whether a statement does not count.
    """
    return _tree_digest(ast.parse(text), ignored)


def _tree_digest(tree: ast.Module, ignored: Callable[[ast.stmt], bool]) -> str:
    tokens: list[str] = []
    _dump(tree, tokens, any(_is_type_checking(node) for node in tree.body), ignored)
    return _hash("\n".join(tokens))


def _is_type_checking(node: ast.AST) -> bool:
    """Whether a statement imports `TYPE_CHECKING` from typing."""
    return (
        isinstance(node, ast.ImportFrom)
        and node.module == "typing"
        and any(n.name == TYPE_CHECKING and not n.asname for n in node.names)
    )


def _running(statement: ast.stmt) -> list[ast.stmt]:
    """What is left of a statement when `TYPE_CHECKING` is false, as it is in every process."""
    if isinstance(statement, ast.If) and isinstance(statement.test, ast.Name) and statement.test.id == TYPE_CHECKING:
        return [part for inner in statement.orelse for part in _running(inner)]
    if isinstance(statement, ast.ImportFrom) and _is_type_checking(statement):
        names = [name for name in statement.names if name.name != TYPE_CHECKING or name.asname]
        return [ast.ImportFrom(statement.module, names, statement.level)] if names else []
    return [statement]


def _is_text(statement: ast.stmt) -> bool:
    """Whether a statement is a text and nothing else, which as the first of a body is its docstring."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _dump(node: object, tokens: list[str], typed: bool, ignored: Callable[[ast.stmt], bool]) -> None:
    """Append a syntax tree as tokens. Not `ast.dump`, which writes fields that are empty on some versions and not on others."""
    if isinstance(node, ast.AST):
        tokens.append(f"({type(node).__name__}")
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                documented = name == "body" and isinstance(node, _DOCUMENTED) and _is_text(value[0])
                running = value[1:] if documented else value
                if typed:
                    running = [part for statement in running for part in _running(statement)]
                value = [statement for statement in running if not ignored(statement)]
            if value not in (None, []) and name != "kind":
                tokens.append(f"{name}=")
                _dump(value, tokens, typed, ignored)
        tokens.append(")")
    elif isinstance(node, list):
        tokens.append("[")
        for entry in node:
            _dump(entry, tokens, typed, ignored)
        tokens.append("]")
    else:
        # in ASCII: which other characters are shown as they are depends on the version
        tokens.append(f"{type(node).__name__} {node!a}")


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@functools.cache
def _module_digest(module: str, depth: int) -> str:
    """Hash of a module, with what it imports as `_described`."""
    return _hash("\n".join([*sorted(_described(entry, depth) for entry in _imports(module)), _own_digest(module)]))


def _described(entry: Import, depth: int) -> str:
    """An import as the content of the imported module; only as the names that it binds where depth is 0 or there is none."""
    counts = depth > 0 and entry.module not in PLACES and _file(entry.module)
    return f"{_module_digest(entry.module, depth - 1) if counts else ''}.{entry.name} as {entry.bound}"


@functools.cache
def _own_digest(module: str) -> str:
    """Hash of a module without its imports of followed modules."""
    text = _source(module)
    left_out = [place for place, *names in _import_statements(text) if _followed(names, module)]
    return remembered.keep(text, f"without {left_out}", lambda: _digest_without(text, left_out))


def _digest_without(text: str, places: Sequence[Sequence[int]]) -> str:
    """Hash of a source without the statements that begin at `places`."""
    left_out = {tuple(place) for place in places}
    return _tree_digest(_parsed(text), lambda statement: _place(statement) in left_out)


def _place(statement: ast.stmt) -> tuple[int, int]:
    """Line and column; (0, 0) of a statement that was made, and not read."""
    return getattr(statement, "lineno", 0), getattr(statement, "col_offset", 0)


@functools.cache
def _imports(module: str) -> tuple[Import, ...]:
    """All that a module imports of followed modules, anywhere in its code."""
    statements = _import_statements(_source(module))
    return tuple(entry for _, *names in statements for entry in _followed(names, module))


def _import_statements(text: str) -> list[list]:
    """(place, level or None for `import a`, module, (name, as) of every name) of all import statements of a source."""
    return remembered.keep(text, "imports", lambda: [_written(node) for node in _statements(_parsed(text)) if _is_import(node)])


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)


def _written(node: ast.Import | ast.ImportFrom) -> list:
    names = [[alias.name, alias.asname] for alias in node.names]
    return [list(_place(node)), getattr(node, "level", None), getattr(node, "module", None), names]


def _statements(node: ast.AST) -> Iterator[ast.stmt]:
    """All statements below a node, at any depth; no expression holds one."""
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        parts = getattr(node, name, None)
        # the body of a lambda, or of `a if b else c`, is an expression
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, ast.stmt):
                yield part
            yield from _statements(part)


def _followed(names: Sequence, module: str) -> list[Import]:
    """What a statement, (level, module, names), imports, if it is an import of followed modules alone."""
    found = list(_bindings(*names, module))
    return found if all(_is_followed(entry.module.split(".")[0], module.split(".")[0]) for entry in found) else []


def _bindings(level: int | None, imported: str | None, names: Sequence[Sequence], module: str) -> Iterator[Import]:
    """What an import statement binds; `import a.b` binds its whole path."""
    if level is None:
        yield from (Import(name, "", bound or name) for name, bound in names)
        return
    base = module.split(".") if level else []
    up = level - _is_package(module) if level else 0
    target = ".".join([*base[: len(base) - up], *filter(None, [imported])])
    for name, bound in names:
        if target == PACKAGE and name in PUBLIC:
            yield Import(PUBLIC[name], name, bound or name)
            continue
        whole = f"{target}.{name}"
        yield Import(*((whole, "") if _file(whole) else (target, name)), bound or name)


@functools.cache
def _is_followed(imported: str, own: str) -> bool:
    """Whether a top-level module is this package, or the user's: the one that imports it, or one beside that."""
    if imported in (PACKAGE, own):
        return True
    # beside an installed package lies all that is installed
    folder = _folder(own) if own != PACKAGE else None
    beside = folder is not None and not {"site-packages", "dist-packages"} & set(folder.parts)
    return beside and _folder(imported) == folder


def _folder(top: str) -> Path | None:
    """The folder in which a top-level module or package lies."""
    path = _file(top)
    return path and (path.parents[1] if path.name == "__init__.py" else path.parent)


def _is_package(module: str) -> bool:
    path = _file(module)
    return path is not None and path.name == "__init__.py"


@functools.cache
def _file(module: str) -> Path | None:
    """The source of a module, if there is one; not even the packages that it lies in are imported."""
    top, *rest = module.split(".")
    try:
        found = importlib.util.find_spec(top) if top else None
    except (ImportError, ValueError):
        found = None
    if found is None:
        return None
    if rest:
        stems = [Path(folder, *rest) for folder in found.submodule_search_locations or ()]
        candidates = [path for stem in stems for path in (stem / "__init__.py", stem.with_name(f"{stem.name}.py"))]
    else:
        candidates = [Path(found.origin)] if found.origin and found.origin.endswith(".py") else []
    return next((path.resolve() for path in candidates if path.is_file()), None)


@functools.cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


@functools.cache
def _source(module: str) -> str:
    path = _file(module)
    if path is None:
        raise ConfigError(f"no Python source for module '{module}'")
    _READ[path] = _state(path)
    return path.read_text(encoding="utf-8")


#: Files as they were when they were read.
_READ: dict[Path, tuple[int, ...] | None] = {}


def _state(path: Path) -> tuple[int, ...] | None:
    """What changes with every edit of a file, even one that takes an earlier one back."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
