"""What Snakemake would make anew and why, in words: the setting, the module or the file behind it.

The reasons are Snakemake's own, of a dry run in this process; what its records and the run files hold tells the rest. Code is
recorded as a hash: which module was edited is found by comparison with the commit that a run was made at, where git knows it.
Of a job that follows from another one, Snakemake compares no settings and no code, and neither can this.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import io
import json
import logging
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ensemblepp.config.resolution import Config
from ensemblepp.errors import EnsembleError, ResultError
from ensemblepp.runs.differences import differences
from ensemblepp.runs.fingerprint import closure, source_digest
from ensemblepp.specification import Block
from ensemblepp.storage.datasets import read_json

#: What Snakemake says, and what it means here. Where there is more to tell than that, the words stand in `_causes`.
_PLAIN = {
    "Forced execution": "it was asked for",
    "Code has changed since last execution": "the command of its rule was edited (workflow/rules)",
    "Software environment definition has changed since last execution": "environment.yml was edited",
    "Set of input files has changed since last execution": "it is made from other files than before",
}
_MISSING, _INCOMPLETE = "Missing output files", "Incomplete output files"
_UPDATED, _FOLLOWS = "Updated input files", "Input files updated by another job"
_PARAMS = "Params have changed since last execution"
_HEADS = (*_PLAIN, _MISSING, _INCOMPLETE, _UPDATED, _FOLLOWS, _PARAMS)

_HASH = re.compile(r"[0-9a-f]{16}")


class Job(NamedTuple):
    """A job that Snakemake would run."""

    rule: str
    outputs: tuple[str, ...]
    reason: str


def why(config: Config, targets: Sequence[str] = ()) -> Iterator[str]:
    """Lines that say what would be made anew and why, the same reason once for all jobs that have it.

    Args:
        config: the configuration, as the files in config/ have it but for the scale.
        targets: files or rules; none for everything.

    Raises:
        ResultError: Snakemake cannot plan these targets; the message is its last line.
    """
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)  # (kind, cause) -> an output of every job
    follow: dict[str, list[str]] = defaultdict(list)
    for job in planned(config.scale, targets):
        if not job.outputs:
            continue
        causes = list(_causes(config, job))
        if causes:
            for cause in causes:
                groups[_kind(job), cause].append(job.outputs[0])
        else:
            follow[_kind(job)].append(job.outputs[0])
    if not groups and not follow:
        yield "nothing would be made anew"
    for (kind, cause), outputs in groups.items():
        yield f"{_counted(outputs, kind)}: {cause}"
    for kind, outputs in follow.items():
        yield f"{_counted(outputs, kind)}: follows from the above"


def planned(scale: str, targets: Sequence[str]) -> list[Job]:
    """The jobs of a dry run.

    Raises:
        ResultError: as of `why`.
    """
    from snakemake.cli import main
    from snakemake.logging import logger
    from snakemake_interface_logger_plugins.common import LogEvent

    jobs: list[Job] = []

    def watch(record: logging.LogRecord) -> bool:
        if getattr(record, "event", None) == LogEvent.JOB_INFO:
            jobs.append(Job(record.rule_name, tuple(map(str, record.output)), str(record.reason)))
        return True

    said, status = io.StringIO(), 0
    logger.addFilter(watch)
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            main(["--dry-run", "--nolock", "--quiet", "host", "--config", f"scale={scale}", "--", *targets])
    except SystemExit as stop:
        status = stop.code or 0
    finally:
        logger.removeFilter(watch)
    if status:
        lines = [line.strip() for line in said.getvalue().splitlines() if line.strip()]
        raise ResultError(f"snakemake cannot plan this: {lines[-1] if lines else 'it says nothing'}")
    return jobs


def _causes(config: Config, job: Job) -> Iterator[str]:
    """What a job would be run for, but for jobs before it."""
    for part in re.split(rf"; (?={'|'.join(map(re.escape, _HEADS))})", job.reason):
        head, _, rest = part.partition(": ")
        if head == _FOLLOWS:
            continue
        if head in (_MISSING, _INCOMPLETE):
            files = rest.split(", ")
            if head == _INCOMPLETE:
                yield "a job that was killed left it unfinished"
            elif len(files) == len(job.outputs):
                yield "missing"
            else:
                yield f"missing: {_few(files)}"
        elif head == _UPDATED:
            yield f"{_few(rest.split(', '))} was edited"
        elif head == _PARAMS:
            yield from _settings(config, job, rest)
        else:
            # words of Snakemake's that are not known here are better than none
            yield _PLAIN.get(head, part)


def _settings(config: Config, job: Job, text: str) -> Iterator[str]:
    """What changed of a job's parameters: values of its specification, or its code."""
    found = re.fullmatch(r".*?before: (.*) now: (.*)", text, re.DOTALL)
    before, now = ([_value(token) for token in _tokens(part)] for part in found.groups()) if found else ([], [])
    told = False
    for old, new in zip(*([one for one in side if isinstance(one, dict)] for side in (before, now)), strict=False):
        yield from differences(old, new)
        told = True
    if any(isinstance(one, str) and _HASH.fullmatch(one) for one in now):
        yield _edited(config, job)
        told = True
    if not told:
        yield f"its settings changed ({' '.join(text.split())[-200:]})"


def _tokens(text: str) -> list[str]:
    """Texts in quotes, as Snakemake shows parameters."""
    return [token.replace("\\'", "'") for token in re.findall(r"'((?:[^'\\]|\\.)*)'", text)]


def _value(token: str) -> object:
    try:
        return json.loads(token)
    except ValueError:
        return token


def _edited(config: Config, job: Job) -> str:
    """Which modules of a run's code were edited since it was made, as far as that is known."""
    if job.rule != "simulate":
        return "its code was edited (which module is not recorded for this kind of file)"
    path = Path(next(output for output in job.outputs if output.endswith(".nc")))
    try:
        commit = read_json(path.with_suffix(".json"))["commit"]
        block = _block(config, path)
    except (OSError, ValueError, KeyError, EnsembleError):
        return "its code was edited (which module cannot be told: its record is missing or damaged)"
    clean = commit.rstrip("+")
    if not re.fullmatch("[0-9a-f]{7,40}", clean):
        return "its code was edited (which module cannot be told: its commit is unknown)"
    places = (place.partition(":")[0] for place in block.code)
    modules = {module: _differs(module, clean) for module in sorted(closure(*places))}
    edited = [module for module, differs in modules.items() if differs]
    unknown = [module for module, differs in modules.items() if differs is None]
    beside = "it was made with edits beside that commit, which are not recorded" if commit.endswith("+") else ""
    untold = f"git does not know that commit for {_few(unknown)}" if unknown else ""
    doubts = "; ".join(filter(None, [beside, untold]))
    if not edited:
        doubts = doubts or "all are as they were, but for how fingerprints are made"
        return f"its code was edited since commit {clean[:10]} (which module cannot be told: {doubts})"
    return f"edited since commit {clean[:10]}: {', '.join(edited)}{f' ({doubts})' if doubts else ''}"


def _block(config: Config, path: Path) -> Block:
    """The block at a run file's place, by the names in its path."""
    environment, agent, size, horizon, seeds = path.parts[-5:]
    first, last = seeds.removeprefix("seeds").removesuffix(".nc").split("-")
    return config.block(environment, agent, int(size[1:]), int(horizon[1:]), int(first), int(last))


@functools.cache
def _differs(module: str, commit: str) -> bool | None:
    """Whether a module's source was another at a commit, but for comments, docstrings and layout; None if that is not known."""
    found = importlib.util.find_spec(module)
    path = Path(found.origin)
    git = ["git", "-C", str(path.parent)]
    if subprocess.run([*git, "cat-file", "-e", f"{commit}^{{commit}}"], capture_output=True, check=False).returncode:
        return None
    done = subprocess.run([*git, "show", f"{commit}:./{path.name}"], capture_output=True, text=True, check=False)
    return done.returncode != 0 or source_digest(done.stdout) != source_digest(path.read_text("utf-8"))


#: What rules make: one of it, and several.
_MADE = {
    "retrieve": ("raw file", "raw files"),
    "check": ("check of raw files", "checks of raw files"),
    "prepare": ("prepared data set", "prepared data sets"),
    "language_model": ("language model", "language models"),
    "tokenise": ("file of tokens", "files of tokens"),
    "embed": ("file of embeddings", "files of embeddings"),
    "ceiling": ("supervised ceiling", "supervised ceilings"),
    "simulate": ("run block", "run blocks"),
    "aggregate": ("dataset", "datasets"),
    "present": ("study's figures and tables", "studies' figures and tables"),
}


def _kind(job: Job) -> str:
    return "present" if job.rule.startswith("present_") else job.rule


def _counted(outputs: list[str], kind: str) -> str:
    one, several = _MADE.get(kind, (f"job of rule {kind}", f"jobs of rule {kind}"))
    return f"{one}, {outputs[0]}" if len(outputs) == 1 else f"{len(outputs)} {several}, such as {outputs[0]}"


def _few(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
