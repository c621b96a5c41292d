"""Code of the user's that the configuration names, read without importing it: does it exist, and what is it built with?"""

from __future__ import annotations

import ast
import functools
import importlib.util
from collections.abc import Collection
from pathlib import Path

#: What every agent's class is given beside its hyper-parameters, and what every environment's is given.
GIVEN = frozenset({"self", "seeds", "dimension", "ensemble_size", "horizon", "device", "inputs"})


@functools.cache
def definition(place: str) -> tuple[ast.ClassDef | ast.FunctionDef | None, str]:
    """What "module:name" defines, and if it defines nothing why."""
    module, name = place.split(":")
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        found = None
    if found is None or not found.origin or not found.origin.endswith(".py"):
        return None, f"no module '{module}' can be imported"
    try:
        tree = ast.parse(Path(found.origin).read_text(encoding="utf-8"))
    except SyntaxError as error:
        return None, f"{found.origin}, line {error.lineno}: {error.msg}"
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return node, ""
    return None, f"{found.origin} defines no class or function '{name}'"


def keywords(place: str) -> tuple[set[str], bool]:
    """The keyword arguments that a class is built with, less `GIVEN`, and whether it hands on others that it does not name."""
    node, _ = definition(place)
    for part in node.body if isinstance(node, ast.ClassDef) else ():
        if isinstance(part, ast.FunctionDef) and part.name == "__init__":
            named = {argument.arg for argument in [*part.args.args, *part.args.kwonlyargs]} - GIVEN
            return named, part.args.kwarg is not None
    # built as a class that it is derived from, which may lie anywhere
    return set(), True


def takes(place: str, name: str, handed_on: Collection[str]) -> bool:
    """Whether a class takes a keyword: it names it, or hands on what it does not name and `handed_on` has it."""
    named, hands_on = keywords(place)
    return name in named or (hands_on and name in handed_on)
