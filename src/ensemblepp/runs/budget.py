"""What the missing runs of all studies would take, carried on from runs that are recorded here, whatever their scale.

A record is used for a block that differs from it in horizon, seeds, ensemble size and options that cost nothing: the nearest
ensemble size, then the longest run. Without such a record, one of the same agent in another environment of the kind is, made
larger by as much as the decision set is. Time grows with rounds and seeds; of agents whose rounds get longer nothing is said
but for equal horizons.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from ensemblepp.config.fields import canonical_json
from ensemblepp.config.resolution import Config
from ensemblepp.errors import ResultError
from ensemblepp.runs.aggregate import has_diagnostics
from ensemblepp.specification import Block
from ensemblepp.storage.datasets import read_dataset, read_json
from ensemblepp.trajectory import stored_rounds, stores_actions

#: Agents whose rounds get longer, by kind (`cost_degree` of their classes, which cannot be read without loading them).
GROWING = frozenset({"lmcts"})

#: Options of agents that change what is computed with and not how long it takes.
FREE = frozenset(
    ("prior_scale", "posterior_scale", "perturbation_scale", "learning_rate", "weight_decay", "epsilon", "exploration", "ridge")
) | {"rate", "temperature", "prior_variance", "noise"}

#: Bytes of a run file beside its numbers: HDF5's own, names, specification.
STRUCTURE = 45_000


class Budget(NamedTuple):
    """What blocks would take."""

    jobs: int  #: run blocks that do not exist yet
    cpu_hours: float  #: of those that run on a CPU
    gpu_hours: float  #: of those that run on a GPU
    bytes: float  #: of their run files
    guessed: int  #: of the jobs, those whose record is of another environment
    unknown: int  #: of the jobs, those of which nothing is recorded, and that the numbers leave out

    #: Names of `cells`.
    HEADINGS: ClassVar = ("jobs", "CPU hours", "GPU hours", "disk, MB", "other environment", "not recorded")

    def cells(self) -> tuple[str, ...]:
        """The numbers as texts."""
        size = f"{self.bytes / 1e6:.0f}"
        return (str(self.jobs), f"{self.cpu_hours:.2f}", f"{self.gpu_hours:.2f}", size, str(self.guessed), str(self.unknown))


class Record(NamedTuple):
    """Runs of one environment, agent, ensemble size and horizon that were made here, as the mean of their blocks."""

    spec: dict[str, Any]
    cpu_seconds: float  #: of the process
    seconds: float  #: of the simulation, by the clock
    bytes: float
    chains: int
    diagnostics: bool


def budgets(config: Config, results: str | Path = "results") -> tuple[dict[str, Budget], Budget]:
    """What every study of the configured scale would take, and all of them; a run that several ask for is made once.

    Args:
        config: the configuration.
        results: the folder in which the results of all scales lie.
    """
    known = list(records(results))
    blocks = {study: config.blocks(study) for study in config.active_studies()}
    studies = {study: budget(asked, known) for study, asked in blocks.items()}
    once = {block.path: block for asked in blocks.values() for block in asked}
    return studies, budget(once.values(), known)


def in_words(total: Budget) -> Iterator[str]:
    """What to know of the numbers before they are relied on."""
    yield "Run blocks that are missing; one that several studies share is counted once in the total. CPU hours are of one core."
    if total.guessed:
        yield f"{total.guessed} of {total.jobs} blocks are carried over from another environment of the kind: a guess."
    if total.unknown:
        yield (
            f"{total.unknown} of {total.jobs} blocks are in no number, since nothing like them ran here: "
            "`python -m ensemblepp cost --study NAME` measures a study by short runs."
        )


def budget(blocks: Iterable[Block], known: Sequence[Record]) -> Budget:
    """What the blocks that do not exist would take, from what is recorded."""
    same, alike = defaultdict(list), defaultdict(list)
    for record in known:
        same[_run(record.spec)].append(record)
        alike[_agent(record.spec)].append(record)
    shortest = {}
    for record in known:
        engine = record.spec["engine"]
        shortest[engine] = min(shortest.get(engine, record.cpu_seconds), record.cpu_seconds)
    jobs, guessed, unknown, cpu, gpu, size = 0, 0, 0, 0.0, 0.0, 0.0
    for block in blocks:
        if Path(block.path).exists():
            continue
        jobs += 1
        spec = block.spec
        found = same[_run(spec)] or alike[_agent(spec)]
        grows = spec["agent"]["kind"] in GROWING
        found = [record for record in found if not grows or record.spec["horizon"] == spec["horizon"]]
        if not found:
            unknown += 1
            continue
        guessed += not same[_run(spec)]
        record = min(found, key=lambda record: _distance(record.spec, spec))
        growth = _work(spec) / _work(record.spec) * max(1, _decisions(spec) / _decisions(record.spec))
        if spec["device"] == "cuda":
            gpu += record.seconds * growth
        else:
            # what every process needs to start does not grow; the shortest run of an engine is hardly more than that
            start = min(shortest[spec["engine"]], record.cpu_seconds / 2)
            cpu += start + (record.cpu_seconds - start) * growth
        numbers = max(record.bytes - STRUCTURE, 0)
        size += min(record.bytes, STRUCTURE) + numbers * _numbers(spec, record) / _numbers(record.spec, record)
    return Budget(jobs, cpu / 3600, gpu / 3600, size, guessed, unknown)


def records(results: str | Path) -> Iterator[Record]:
    """What is recorded of the runs under a folder of results. What is damaged is no record.

    One run file of an agent in an environment is opened, since that takes most of the time: all of one scale are taken for runs
    of its hyper-parameters.
    """
    for place in sorted(Path(results).glob("*/runs/*/*")):
        folders = defaultdict(list)
        for path in sorted(place.glob("M*/T*/seeds*.json")):
            folders[path.parent].append(path)
        if not folders:
            continue
        try:
            first = read_dataset(next(iter(folders.values()))[0].with_suffix(".nc"))
            spec = json.loads(first.attrs["spec"])
        except (ValueError, KeyError, ResultError):
            continue
        chains = first.sizes["reference"] * first.sizes["perturbation"]
        diagnostics = has_diagnostics(first)
        for folder, paths in folders.items():
            try:
                facts = [read_json(path) for path in paths]
                size, horizon = (int(name[1:]) for name in (folder.parent.name, folder.name))
                own = {"ensemble_size": size, "horizon": horizon, "seeds": _seeds_of(paths[0])}
                share = _seeds(own) / sum(_seeds({"seeds": _seeds_of(path)}) for path in paths)
                yield Record(
                    spec | own,
                    sum(fact["cpu_seconds"] for fact in facts) * share,
                    sum(fact["seconds"] for fact in facts) * share,
                    sum(path.with_suffix(".nc").stat().st_size for path in paths) / len(paths),
                    chains,
                    diagnostics,
                )
            except (OSError, ValueError, KeyError, ResultError):
                continue


def costs_alike(spec: Mapping[str, Any]) -> dict[str, Any]:
    """A specification without what costs nothing: the agent's name, and the options of `FREE`."""
    agent = {key: value for key, value in spec["agent"].items() if key != "name"}
    options = {key: value for key, value in agent["options"].items() if key not in FREE}
    return {**spec, "agent": agent | {"options": options}}


def _run(spec: Mapping[str, Any]) -> str:
    """All of a specification but what a record may differ in."""
    kept = costs_alike(spec).items()
    return canonical_json({key: value for key, value in kept if key not in ("ensemble_size", "horizon", "seeds")})


def _agent(spec: Mapping[str, Any]) -> str:
    """All of that but what the environment is, beside its kind."""
    return _run(spec | {"environment": spec["environment"]["kind"]})


def _distance(recorded: Mapping[str, Any], spec: Mapping[str, Any]) -> tuple[float, float, int]:
    """How far a record is from a block; the least is the one to use."""
    decisions = abs(math.log(_decisions(recorded) / _decisions(spec)))
    return decisions, abs(recorded["ensemble_size"] - spec["ensemble_size"]), -recorded["horizon"]


def _work(spec: Mapping[str, Any]) -> int:
    """Rounds of all seeds."""
    return _seeds(spec) * spec["horizon"]


def _decisions(spec: Mapping[str, Any]) -> int:
    """The size of a decision set, as far as the environment's options tell it."""
    options = spec["environment"]["options"]
    told = (options.get(name) for name in ("actions", "candidates", "dimension"))
    # those of posts have names
    return math.prod(value for value in told if isinstance(value, int) and value)


def _numbers(spec: Mapping[str, Any], record: Record) -> int:
    """How many numbers a run file holds, with the record's chains and diagnostics."""
    seeds, horizon = _seeds(spec), spec["horizon"]
    curves = 3 * len(stored_rounds(record.chains, horizon, record.diagnostics))
    actions = horizon if stores_actions(seeds, record.chains, horizon) else 0
    return seeds * record.chains * (curves + actions)


def _seeds(spec: Mapping[str, Any]) -> int:
    first, last = spec["seeds"]
    return last - first + 1


def _seeds_of(path: Path) -> list[int]:
    """The first and the last seed that a record's name tells."""
    return [int(seed) for seed in path.stem.removeprefix("seeds").split("-")]
