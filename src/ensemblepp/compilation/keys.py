"""What determines the machine code of a function, as a digest."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import platform
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import llvmlite
import numba
import numpy as np
from numba.core.codegen import get_host_cpu_features

#: numba's switches that change the code of a function without changing its source; processor switches are in the target.
_SWITCHES = ("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "USING_SVML", "LLVM_REFPRUNE_PASS")


def processor_features() -> frozenset[str]:
    """Features of the processor that numba compiles for, as LLVM names them; part of every key by way of its target."""
    features = numba.config.CPU_FEATURES
    found = (get_host_cpu_features() if features is None else features).split(",")
    return frozenset(name[1:] for name in found if name.startswith("+"))


class Key:
    """What determines the machine code of a function.

    Sources are read when the function is defined, just after Python has read them: an edit later on, while the process
    still runs the old code, must not give that code the new source's name.
    """

    def __init__(self, function: Callable) -> None:
        self._sources = sources(function.__module__, Path(function.__code__.co_filename))
        #: digest of the function's name and of the sources alone: of two, one is out of date
        self.source = _digest(function.__module__, function.__qualname__, self._sources)

    @functools.cached_property
    def _settings(self) -> str:
        """Digest of versions, switches, and the plain constants that the modules hold as code is first needed.

        Constants are there for values that are no function of the source, such as a register's width.
        """
        versions = (platform.python_version(), sys.implementation.cache_tag, numba.__version__, llvmlite.__version__)
        switches = [(name, getattr(numba.config, name)) for name in _SWITCHES]
        constants = [(module, _constants(module)) for module, _ in self._sources]
        return _digest(versions, np.__version__, switches, constants)

    def entry(self, arguments: tuple, target: tuple) -> str:
        """Digest of all that, of argument types, and of the target (triple, processor, features)."""
        return _digest(self.source, self._settings, [(str(kind), repr(kind.key)) for kind in arguments], target)


def sources(module: str, path: Path) -> tuple[tuple[str, str], ...]:
    """Digests of a module's source, of all that it imports from its top-level package, and of this package.

    Args:
        module: its name.
        path: its file.
    """
    found = {module: path} | {f"{__package__}.{file.stem}": file for file in Path(__file__).parent.glob("*.py")}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        for imported in _imports(found[name], name):
            if imported not in found and imported.partition(".")[0] == module.partition(".")[0]:
                origin = _origin(imported)
                if origin is not None:
                    found[imported] = origin
                    waiting.append(imported)
    return tuple(sorted((name, _file_digest(file)) for name, file in found.items()))


def _imports(path: Path, module: str) -> Iterator[str]:
    """What a module's statements may import as it is loaded, whether modules or names in them; not those of its functions."""
    waiting: list[ast.AST] = [ast.parse(path.read_bytes())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            package = module if path.name == "__init__.py" else module.rpartition(".")[0]
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            waiting.extend(ast.iter_child_nodes(node))


def _origin(name: str) -> Path | None:
    """The file of a module, or None where the name is a member of one."""
    try:
        found = importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return None
    return Path(found.origin) if found is not None and found.has_location else None


def _constants(module: str) -> list[tuple[str, str]]:
    plain = (bool, int, float, complex, str, np.generic)
    held = vars(sys.modules[module]).items() if module in sys.modules else ()
    return sorted((name, repr(value)) for name, value in held if isinstance(value, plain) and not name.startswith("__"))


def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest(*parts) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:32]
