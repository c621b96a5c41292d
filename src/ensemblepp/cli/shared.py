"""What several commands ask or say: is the code the one that was planned, is a name known, rows in columns."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Sequence
from pathlib import Path

from ensemblepp.errors import ConfigError, one_of


def unedited(code: str, places: Sequence[str], *outputs: Path) -> contextlib.AbstractContextManager[None]:
    """A job of the workflow, as a context: its code is what was planned, before and after (`runs.sources.unedited`)."""
    # only here: what asks for help, or for a version, needs none of it
    from ensemblepp.runs.sources import unedited

    return unedited(code, places, outputs)


def presentation(kind: str, name: str) -> str:
    """The function behind the figure or table that --name names."""
    from ensemblepp import registry
    from ensemblepp.config import own_code

    fault = own_code.function_fault(registry.presentation(kind, name))
    if not fault:
        return name
    if ":" in name:
        raise ConfigError(f"--name: found '{name}': {fault}")
    # only here: one of ours needs no configuration
    from ensemblepp.config.checks import presentable
    from ensemblepp.config.loading import read_files

    config = read_files()
    require("--name", name, [*presentable(kind), *getattr(config, kind)])
    return config.presentation(kind, name)


def require(option: str, found: str | None, allowed: Collection[str]) -> None:
    """ConfigError unless an option was given, and is one of these names."""
    if found is None:
        raise ConfigError(f"{option}: must be given; it is one of {', '.join(allowed)}")
    if found not in allowed:
        raise ConfigError(f"{option}: found '{found}': {one_of(allowed, found)}")


def print_rows(rows: Sequence[tuple[str, ...]]) -> None:
    """Rows of a table, in columns."""
    if not rows:
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
