"""What the options of the command line may hold; one that holds something else is said before anything is done."""

from __future__ import annotations

import argparse
import base64
import json
import math
import sys
import tempfile
import zlib
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Any, NoReturn

from ensemblepp import registry
from ensemblepp.errors import ConfigError, ResultError, one_of

#: Threads of a numerical library: more are a slip.
MAX_THREADS = 1024

#: What is written to see whether a folder takes files.
_TRIED = bytes(1 << 16)

#: Keys of a block's specification (`specification.Block`) and of a study's plan (`runs.aggregate.aggregate`).
SPECIFICATION = ("environment", "agent", "engine", "ensemble_size", "horizon", "seeds", "device")
PLAN = ("study", "title", "scale", "results", "horizon", "seed_blocks", "environments", "agents", "runs")


class Parser(argparse.ArgumentParser):
    """A parser whose faults are one line that begins as all others do."""

    def error(self, message: str) -> NoReturn:
        if message == "the following arguments are required: command":
            self.print_usage(sys.stderr)
        self.exit(2, f"error: {message}; see `{self.prog} --help`\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, f"found '{value}': {one_of(list(action.choices), value)}")


def whole(least: int, most: int) -> Callable[[str], int]:
    """A type of option: a whole number from `least` to `most`."""

    def parse(text: str) -> int:
        number = int(text) if text.isascii() and text.removeprefix("-").isdigit() else None
        if number is None or not least <= number <= most:
            raise argparse.ArgumentTypeError(f"found '{text}': must be a whole number from {least} to {most}")
        return number

    return parse


def finite(text: str) -> float:
    """A type of option: a finite number."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError(f"found {_cut(text)}: must be a finite number")
    return number


def mapping(text: str) -> dict[str, Any]:
    """A type of option: a mapping as JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"found {_cut(text)}: must be JSON: {error}") from None
    if not isinstance(value, dict):
        raise argparse.ArgumentTypeError(f"found {_cut(text)}: must be a mapping as JSON")
    return value


def specification(text: str) -> dict[str, Any]:
    """A type of option: a block's resolved specification as JSON."""
    spec = mapping(text)
    _has(spec, SPECIFICATION, "specification")
    for part, table in (("environment", registry.ENVIRONMENTS), ("agent", registry.AGENTS)):
        if not isinstance(spec[part], dict):
            raise argparse.ArgumentTypeError(f"{part}: must be a mapping of name, kind and options")
        _has(spec[part], ("name", "kind", "options", *(["class"] if spec[part].get("kind") == "custom" else [])), part)
        _one(f"{part}.kind", spec[part]["kind"], [*table, "custom"])
        if not isinstance(spec[part]["options"], dict):
            raise argparse.ArgumentTypeError(f"{part}.options: must be a mapping")
    _one("engine", spec["engine"], registry.ENGINES)
    _one("device", spec["device"], ("cpu", "cuda"))
    seeds = spec["seeds"]
    if not isinstance(seeds, list) or len(seeds) != 2 or not all(type(seed) is int for seed in seeds) or seeds[1] < seeds[0]:
        raise argparse.ArgumentTypeError(f"seeds: found {seeds}: must be the first and the last seed")
    for key, least in (("ensemble_size", 0), ("horizon", 1)):
        if type(spec[key]) is not int or spec[key] < least:
            raise argparse.ArgumentTypeError(f"{key}: found {spec[key]!r}: must be a whole number from {least}")
    return spec


def plan(text: str) -> dict[str, Any]:
    """A type of option: a study's plan as JSON, or compressed (`runs.plan.packed`)."""
    if text.startswith("zlib:"):
        try:
            text = zlib.decompress(base64.b64decode(text.removeprefix("zlib:"))).decode()
        except (ValueError, zlib.error) as error:
            raise argparse.ArgumentTypeError(f"found {_cut(text)}: damaged: {error}") from None
    value = mapping(text)
    _has(value, PLAN, "plan")
    return value


def output(path: Path | str, suffixes: Collection[str] = ()) -> Path:
    """A file that can be written: the end of its name says a format, and its folder, once made, takes files.

    Raises:
        ConfigError: the name ends in none of `suffixes`, or is a folder's.
        ResultError: its folder cannot be made, is read-only or full.
    """
    path = Path(path)
    if not path.name:
        raise ConfigError(f"output: found '{path}': must be the name of a file")
    if suffixes and path.suffix not in suffixes:
        raise ConfigError(f"output: found '{path}': must end in {' or '.join(suffixes)}")
    if path.is_dir():
        raise ConfigError(f"output: found '{path}': a folder; must be a file")
    folder(path.parent)
    return path


def folder(path: Path | str) -> Path:
    """A folder that takes files, once it is made.

    Raises:
        ResultError: it cannot be made, is read-only or full.
    """
    place = Path(path).absolute()
    try:
        while not place.exists():
            place = place.parent
        if not place.is_dir():
            raise ResultError(f"{path}: cannot be made: '{place}' is a file")
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(_TRIED)
            file.flush()
    except OSError as error:
        raise ResultError(f"{path}: cannot be written to: {error.strerror} ('{place}')") from None
    return Path(path)


def user_error(error: OSError) -> str:
    """A fault of the system in one line, with the file where it knows one."""
    name = f"{error.filename}: " if error.filename is not None else ""
    return f"{name}{error.strerror or error}"


def _has(value: dict[str, Any], keys: Iterable[str], what: str) -> None:
    for key in keys:
        if key not in value:
            raise argparse.ArgumentTypeError(f"{what}: has no '{key}'")


def _one(key: str, found: Any, allowed: Collection[str]) -> None:
    if found not in allowed:
        raise argparse.ArgumentTypeError(f"{key}: found '{found}': {one_of(list(allowed), found)}")


def _cut(text: str) -> str:
    return repr(text) if len(text) <= 60 else f"{text[:60]!r}..."
