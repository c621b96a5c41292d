"""The decorator for functions that Python calls and that are compiled."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numba
from numba.core.registry import cpu_target

from ensemblepp.compilation import sealing
from ensemblepp.compilation.keys import Key

#: The versions whose internals `sealing` was written for and tested with.
TESTED_NUMBA = "0.68"


def compiled(**options) -> Callable:
    """Decorator of a module's function that Python calls: `numba.njit` with a cache on disk that cannot mix up code.

    Other versions of numba than `TESTED_NUMBA` compile anew in every process: slow, but never wrong.

    Args:
        options: those of `numba.njit`, but for `cache`.
    """

    def decorate(function):
        if "<locals>" in function.__qualname__:
            raise ValueError(f"{function.__qualname__}: functions made by others share a name; make it by numba.njit")
        if not numba.__version__.startswith(f"{TESTED_NUMBA}."):
            warnings.warn(
                f"numba {numba.__version__} instead of {TESTED_NUMBA}: every process compiles anew",
                RuntimeWarning,
                stacklevel=2,
            )
            return numba.njit(**options)(function)
        return sealing.compiled(function, options, Key(function))

    return decorate


def get_ready() -> None:
    """Let numba load what a process loads at its first call of compiled code, for a process that others are forked from."""
    for context in (cpu_target.typing_context, cpu_target.target_context):
        context.refresh()
