"""Agents against each other in a few lines of Python: the jobs of the workflow, without the workflow."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import xarray as xr
from pydantic import ValidationError

from ensemblepp import registry
from ensemblepp.config.fields import canonical_json
from ensemblepp.config.loading import load
from ensemblepp.config.resolution import Config
from ensemblepp.config.shipped import shipped
from ensemblepp.data import load as load_dataset
from ensemblepp.data.sources import MIRROR_VARIABLE, retrieve
from ensemblepp.errors import ConfigError, DataError, ResultError
from ensemblepp.runs import accessor, given
from ensemblepp.runs.aggregate import aggregate, read_block
from ensemblepp.runs.job import StoppedError
from ensemblepp.runs.plan import plan
from ensemblepp.runs.progress import Progress
from ensemblepp.specification import Block
from ensemblepp.storage.datasets import read_dataset, read_json
from ensemblepp.warm_start import VARIABLE
from ensemblepp.warm_start import server as warm_server

#: The dataset in a comparison's folder.
DATASET = "comparison.nc"

#: The study that a comparison is, in the words of the configuration.
_STUDY, _SCALE = "comparison", "quick"

#: Where the configuration's faults are, which the caller has not written.
_PLACES = re.compile(rf"^(config/\w+\.yaml: )?(studies\.{_STUDY}\.)?(scales\.{_SCALE}\.)?", re.MULTILINE)

#: A line of a job's `Progress`.
_STEP = re.compile(r": step (\d+)/\d+ \(")

#: How a job begins to say that it compiles.
_COMPILING = "compiling ("


def compare(
    agents: Sequence[Any] | Mapping[str, Any],
    environment: Any,
    horizon: int,
    seeds: int | Sequence[int] = 10,
    *,
    ensemble_sizes: int | Sequence[int] = 8,
    folder: str | Path | None = None,
    workers: int | None = None,
    seeds_per_block: int = 5,
    device: str = "auto",
    progress: bool = True,
) -> xr.Dataset:
    """Play agents in an environment, all at the same seeds, and collect what came of it.

    Runs are those of the workflow to the last bit: engines, random streams and checks are the same, and so are the run files.
    Every block of seeds is a process of its own on one thread.

    Args:
        agents: a list. Each is a name of the shipped configuration (`ensemblepp list agents`), a kind with options, as
            ("neural_ensemblepp", {"prior_scale": 0.5}), a class of your own, or (class, options). A mapping gives each a label.
            A class has an ensemble if its attribute `uses_ensemble` is true.
        environment: a name, (kind, options), a class or (class, options); or a table whose rows are shown and whose classes
            are the actions: {"table": "wine.csv", "label": "kind"}, where the table may also be a data frame, or an array
            (rows, columns) with an array of labels (rows,). Other keys say how it is read and played: features, nominal,
            missing, coding, scaling, noise, passes.
        horizon: T, rounds.
        seeds: how many, from 0; or which.
        ensemble_sizes: M, one or several; agents without an ensemble run once.
        folder: keeps run files: a call that was interrupted goes on where it was, and one that asks for more makes only what
            is new. None: nothing is kept.
        workers: processes at the same time; None: one for every processor.
        seeds_per_block: seeds that one process plays; results do not depend on it.
        device: "cpu", "cuda", or "auto", which takes a GPU where there is one.
        progress: say on standard error how far it is.

    Returns:
        A dataset as the workflow's `aggregate` makes it: `regret`, `reward` and `optimal` with the dimensions (environment,
        agent, reference, perturbation, ensemble_size, seed, time). `dataset.bandit.plot()` draws regret,
        `dataset.bandit.differences()` is a table of paired differences.

    Raises:
        ConfigError: an argument is not allowed.
        DataError: there is a fault in the table, or a file that the environment reads is missing.
        StoppedError: a run ended before its end; says why. The others are finished first, and kept if there is a folder.
    """
    accessor.register()
    with contextlib.ExitStack() as stack:
        if folder is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ensemblepp-"))
        folder = Path(folder)
        grid = {"horizon": horizon, "seeds": _listed(seeds), "ensemble_sizes": _listed(ensemble_sizes, [ensemble_sizes])}
        config = configured(agents, environment, folder, grid | {"seeds_per_block": seeds_per_block}, device)
        planned = planned_in(config, folder)
        blocks = {block.path: (block, code) for block, code in blocks_of(planned)}
        for block, _ in blocks.values():
            _bring(block)
        missing = [(block, code) for block, code in blocks.values() if not _finished(block, code)]
        if missing:
            _play(missing, min(workers or os.cpu_count() or 1, len(missing)), progress)
        aggregate(planned, folder / DATASET)
        return read_dataset(folder / DATASET)


def _listed(value: Any, one: Any = None) -> Any:
    """A range, an array or a tuple as the list that the configuration takes; a number as it is, or as `one`."""
    if isinstance(value, int | str) or not hasattr(value, "__iter__"):
        return value if one is None else one
    return [entry.item() if hasattr(entry, "item") else entry for entry in value]


def configured(agents: Any, environment: Any, folder: Path, grid: dict[str, Any], device: str) -> Config:
    """The shipped configuration with what was given, and a study of it.

    Raises:
        ConfigError: in the caller's words.
        DataError: there is a fault in a table.
    """
    values = shipped()
    played = given.agents(agents, values["agents"])
    try:
        place = given.environment(environment, values["environments"], folder / "data")
        values["agents"] = values["agents"] | played.entries
        values["environments"] = values["environments"] | place.entries
        values = given.values_of(values, place)
        study = {"title": "Comparison", "agents": played.names, "scales": {_SCALE: {"environments": place.names, **grid}}}
        return load(values | {"scale": _SCALE, "device": device, "studies": {_STUDY: study}})
    except ValidationError as error:
        fault = error.errors()[0]
        raise ConfigError(f"environment: {fault['loc'][-1]}: found {fault['input']!r}: {fault['msg'].lower()}") from None
    except ConfigError as error:
        raise ConfigError(_PLACES.sub("", str(error))) from None


def planned_in(config: Config, folder: Path) -> dict[str, Any]:
    """The plan of a comparison whose files lie in `folder`."""
    return plan(config, _STUDY) | {"results": folder.as_posix(), "scale": "-"}


def blocks_of(planned: Mapping[str, Any]) -> Iterator[tuple[Block, str]]:
    """Every block of a plan with the fingerprint of its code."""
    for run in planned["runs"]:
        for size in run["sizes"]:
            for seeds in planned["seed_blocks"]:
                yield Block(planned["results"], run["spec"] | {"ensemble_size": size, "seeds": list(seeds)}), run["code"]


def _bring(block: Block) -> None:
    """What a block's environment reads, to where the workflow has it."""
    for path in map(Path, block.inputs):
        if path.exists():
            continue
        if path.parent != Path("data/prepared") or path.stem not in registry.DATASETS:
            raise DataError(f"{path}: no such file; in the repository, `snakemake --cores all {path}` makes it")
        dataset = load_dataset(path.stem)
        raw = [Path("data/raw", file.name) for file in dataset.RAW]
        for file, place in zip(dataset.RAW, raw, strict=True):
            if not place.exists():
                retrieve(file, place, os.environ.get(MIRROR_VARIABLE))
        dataset.prepare(raw, path)


def _finished(block: Block, code: str) -> bool:
    """Whether a block's run file is there, whole and of this specification and code, with what stands beside it."""
    try:
        read_block(block, code)
        read_json(Path(block.path).with_suffix(".json"))
    except ResultError:
        return False
    return True


def _play(blocks: Sequence[tuple[Block, str]], workers: int, progress: bool) -> None:
    """Make run files, so many at the same time.

    Raises:
        StoppedError: some could not be made; the others are.
    """
    rounds = sum(_rounds(block) for block, _ in blocks)
    lock = threading.Lock()
    running: set[subprocess.Popen[str]] = set()
    said: set[str] = set()
    with contextlib.ExitStack() as stack:
        told = stack.enter_context(Progress(rounds, _STUDY)) if progress else None
        stack.enter_context(surroundings(warm=len(blocks) > 1))

        def step(count: int) -> None:
            with lock:
                if told and count:
                    told.step(count)

        def say(words: str) -> None:
            with lock:
                if told and words not in said:
                    told.say(words)
                said.add(words)

        def job(planned: tuple[Block, str]) -> str:
            return _job(*planned, step, say, running)

        pool = ThreadPoolExecutor(workers)
        try:
            faults = list(filter(None, pool.map(job, blocks)))
        except BaseException:
            # an interrupt: what runs may save its state
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(running):
                process.terminate()
            raise
        finally:
            pool.shutdown()
    if faults:
        raise StoppedError("\n".join(dict.fromkeys(faults)))


def _rounds(block: Block) -> int:
    first, last = block.spec["seeds"]
    return block.spec["horizon"] * (last - first + 1)


def _job(
    block: Block, code: str, step: Callable[[int], None], say: Callable[[str], None], running: set[subprocess.Popen[str]]
) -> str:
    """One block in a process, as the workflow's rule has it; why it failed, or nothing."""
    arguments = ["simulate", "--spec", canonical_json(block.spec), "--code", code, "--output", block.path]
    command = [sys.executable, "-m", "ensemblepp", *arguments]
    done, said = 0, []
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        running.add(process)
        for line in process.stderr or ():
            if found := _STEP.search(line):
                step(int(found[1]) - done)
                done = int(found[1])
            elif _COMPILING in line:
                say(line.strip()[line.index(_COMPILING) :])
            else:
                said.append(line.strip())
    running.discard(process)
    if process.returncode == 0:
        step(_rounds(block) - done)
        return ""
    lines = [line.removeprefix("error: ") for line in said if line.startswith("error: ")] or said[-1:]
    return "\n".join(lines) or f"{block.path}: the process that made it ended with status {process.returncode}"


@contextlib.contextmanager
def surroundings(warm: bool) -> Iterator[None]:
    """Jobs import what this process can, and start from one that has their libraries loaded if `warm`."""
    before = {name: os.environ.get(name) for name in ("PYTHONPATH", VARIABLE)}
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, sys.path))
    server = warm_server.start() if warm and VARIABLE not in os.environ else None
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
        if server:
            # its end, as its standard input is closed
            server.communicate()
