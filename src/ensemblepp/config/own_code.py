"""Code of the user's that the configuration names, read without importing it: does it exist, and what is it built with?"""

from __future__ import annotations

import ast
import functools
import importlib.util
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

#: What every agent's class is given beside its hyper-parameters.
AGENT = frozenset({"self", "seeds", "dimension", "ensemble_size", "horizon", "device"})

#: What every environment's class is given beside its options, the files only if it has some.
ENVIRONMENT = frozenset({"self", "seeds", "inputs"})


class Keywords(NamedTuple):
    """What a class is built with."""

    named: frozenset[str]  #: keyword arguments that it names
    required: frozenset[str]  #: those of them that have no default
    hands_on: bool  #: whether it hands on others that it does not name


@functools.cache
def definition(place: str) -> tuple[ast.ClassDef | ast.FunctionDef | None, str]:
    """What "module:name" defines, and if it defines nothing why."""
    module, name = place.split(":")
    tree, origin = _parsed(module)
    if tree is None:
        return None, origin
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return node, ""
    return None, f"{origin} defines no class or function '{name}'"


@functools.cache
def constant(place: str, name: str) -> Any:
    """The mapping that the module of "module:function" calls `name`; empty if it has none, None if it is no literal."""
    tree, _ = _parsed(place.partition(":")[0])
    for node in tree.body if tree else ():
        if isinstance(node, ast.Assign) and any(isinstance(target, ast.Name) and target.id == name for target in node.targets):
            try:
                return ast.literal_eval(node.value)
            except ValueError:
                return None
    return {}


def _parsed(module: str) -> tuple[ast.Module | None, str]:
    """A module's syntax tree and where it is, without importing it; or None and why there is none."""
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        found = None
    if found is None or not found.origin or not found.origin.endswith(".py"):
        return None, f"no module '{module}' can be imported"
    try:
        return ast.parse(Path(found.origin).read_bytes()), found.origin
    except SyntaxError as error:
        return None, f"{found.origin}, line {error.lineno}: {error.msg}"
    except ValueError as error:
        return None, f"{found.origin}: not Python: {error}"


def keywords(place: str) -> Keywords:
    """The keyword arguments that a class is built with."""
    node, _ = definition(place)
    for part in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(part, ast.FunctionDef) and part.name == "__init__":
            return _keywords(part)
    # built as a class that it is derived from, which may lie anywhere
    return Keywords(frozenset(), frozenset(), True)


def _keywords(function: ast.FunctionDef) -> Keywords:
    by_place = [argument.arg for argument in [*function.args.posonlyargs, *function.args.args]]
    by_name = [argument.arg for argument in function.args.kwonlyargs]
    required = by_place[: len(by_place) - len(function.args.defaults)]
    required += [name for name, default in zip(by_name, function.args.kw_defaults, strict=True) if default is None]
    return Keywords(frozenset(by_place + by_name), frozenset(required), _hands_on(function))


def _hands_on(function: ast.FunctionDef) -> bool:
    """Whether what a function takes as `**name` goes anywhere: one that never reads the name swallows it."""
    kwarg = function.args.kwarg
    return kwarg is not None and any(isinstance(node, ast.Name) and node.id == kwarg.arg for node in ast.walk(function))


def function_fault(place: str) -> str:
    """Why "module:function" cannot be called with one argument; empty if it can."""
    node, fault = definition(place)
    if node is None:
        return fault
    if isinstance(node, ast.ClassDef):
        return "a class; must be a function"
    named = _keywords(node)
    takes_one = node.args.vararg or node.args.posonlyargs or node.args.args
    return "" if takes_one and len(named.required) <= 1 else "must be a function that can be called with one argument"


def takes(place: str, name: str, handed_on: Collection[str]) -> bool:
    """Whether a class takes a keyword: it names it, or hands on what it does not name and `handed_on` has it."""
    found = keywords(place)
    return name in found.named - AGENT or (found.hands_on and name in handed_on)
