"""One run block: build environment and agent from the resolved specification, simulate, write the run file."""

from __future__ import annotations

import functools
import importlib
import json
import platform
import re
import resource
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ensemblepp import devices, registry
from ensemblepp.bandit import Agent, Environment
from ensemblepp.engines import contract
from ensemblepp.errors import ConfigError
from ensemblepp.runs import commits
from ensemblepp.storage.checkpoints import Checkpoint
from ensemblepp.storage.datasets import write_dataset, write_json
from ensemblepp.trajectory import Trajectory, stored_rounds


def run(
    spec: Mapping[str, Any],
    output: str | Path,
    *,
    code: str = "",
    on_step: Callable[[int], None] = lambda rounds: None,
    checkpoint: type[Checkpoint] | None = None,
) -> None:
    """Simulate one block and write it to `output` (netCDF), with a JSON file of what varies from run to run beside it.

    Args:
        spec: the block's resolved specification (`ensemblepp.specification.Block`).
        output: the run file.
        code: the code fingerprint to record.
        on_step: told how many rounds, summed over seeds, are done.
        checkpoint: the class that saves the state on the way, if not Checkpoint.

    Raises:
        ConfigError: the horizon is beyond the data, or there is no GPU where one is asked for.
        InterfaceError: the agent or the environment breaks what `ensemblepp.bandit` promises.
        TrainingError: training left the real numbers.
    """
    devices.require(spec["device"])
    environment, agent = build(spec)
    contract.check(agent, environment)
    engine = importlib.import_module(registry.ENGINES[spec["engine"]])
    time_ = stored_rounds(len(agent.chains), spec["horizon"], bool(getattr(agent, "diagnostics", dict)()))
    saved = (checkpoint or Checkpoint)(Path(output).with_suffix(".checkpoint"), _key(spec, code))
    start = time.perf_counter()
    trajectory = engine.play(agent, environment, spec["horizon"], time_, on_step, saved)
    seconds = time.perf_counter() - start
    contract.check_trajectory(trajectory, agent, environment)
    provenance = _provenance(seconds, spec["horizon"])
    write_dataset(_dataset(trajectory, agent, spec, code), output)
    # last, so that it never stands alone
    write_json(provenance, Path(output).with_suffix(".json"))
    saved.remove()


def build(spec: Mapping[str, Any]) -> tuple[Environment, Agent]:
    """The environment and the agent of a block.

    Raises:
        ConfigError: a class of the user's, or one that it hands its options on to, does not take one of them.
    """
    seeds = seeds_of(spec)
    environment = _built(registry.environment_path(spec), spec["environment"], seeds)
    agent = _built(
        registry.agent_path(spec),
        spec["agent"],
        seeds,
        dimension=environment.dimension,
        ensemble_size=spec["ensemble_size"],
        horizon=spec["horizon"],
        device=spec["device"],
    )
    return environment, agent


def _built(place: str, part: Mapping[str, Any], seeds: range, **others: Any) -> Any:
    """An object of the class at `place`, with the options of a part of a specification."""
    try:
        return registry.load(place)(seeds, **others, **part["options"])
    except TypeError as error:
        found = re.search(r"unexpected keyword argument '(\w+)'", str(error))
        if found and found[1] in part["options"]:
            raise ConfigError(f"{part['name']}: {found[1]}: {place} takes no such option ({error})") from error
        raise


def seeds_of(spec: Mapping[str, Any]) -> range:
    """The seeds of a block."""
    first, last = spec["seeds"]
    return range(first, last + 1)


def _dataset(trajectory: Trajectory, agent: Agent, spec: Mapping[str, Any], code: str) -> xr.Dataset:
    """The run file's contents: chains unfolded to (reference, perturbation)."""
    seeds, chains = seeds_of(spec), agent.chains
    references = list(dict.fromkeys(reference for reference, _ in chains))
    perturbations = list(dict.fromkeys(perturbation for _, perturbation in chains))

    def unfold(values: np.ndarray) -> np.ndarray:
        shape = (len(seeds), len(references), len(perturbations), values.shape[-1])
        return np.moveaxis(values.reshape(shape), 0, 2)

    dims = ("reference", "perturbation", "seed")
    coordinates: dict[str, Any] = {
        "environment": spec["environment"]["name"],
        "agent": spec["agent"]["name"],
        "ensemble_size": spec["ensemble_size"],
        "reference": references,
        "perturbation": perturbations,
        "seed": list(seeds),
        "time": trajectory.time,
    }
    variables = {
        name: ((*dims, "time"), unfold(getattr(trajectory, name)), {"long_name": text})
        for name, text in (
            ("regret", "cumulative expected regret"),
            ("reward", "cumulative observed reward"),
            ("optimal", "rounds without regret so far"),
        )
    }
    for name, values in trajectory.diagnostics.items():
        variables[name] = ((*dims, "time"), unfold(values), {"long_name": name.replace("_", " ")})
    if trajectory.action is not None:
        variables["action"] = ((*dims, "step"), unfold(trajectory.action), {"long_name": "index of the chosen action"})
    if trajectory.constant_regret is not None:
        text = "cumulative expected regret of always choosing one action"
        variables["constant_regret"] = (
            ("seed", "action_index", "time"),
            trajectory.constant_regret,
            {"long_name": text},
        )
        coordinates["action_index"] = np.arange(trajectory.constant_regret.shape[1])
    for name, values in trajectory.policies.items():
        policy, _, what = name.rpartition("_")
        words = "cumulative expected regret" if what == "regret" else "rounds without regret so far"
        dims = ("seed", "time") if values.ndim == 2 else ("seed", policy, "time")
        variables[name] = (dims, values, {"long_name": f"{words} of the fixed policy '{policy}'"})
        if values.ndim == 3:
            coordinates[policy] = np.arange(values.shape[1])
    return xr.Dataset(
        variables, coordinates, {"spec": json.dumps(spec, sort_keys=True), "code": code, "device": spec["device"]}
    )


def _key(spec: Mapping[str, Any], code: str) -> str:
    """What a checkpoint belongs to: a run goes on only with the same specification, code and libraries."""
    return json.dumps([spec, code, versions(), sys.version], sort_keys=True)


def _peak_memory() -> float:
    """Megabytes that this process held at most. What `resource` tells counts the process that started it as well."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(re.search(r"VmHWM:\s*(\d+)", status.read_text("utf-8"))[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@functools.cache
def versions() -> dict[str, str]:
    """Of the libraries that this process has, by name."""
    from importlib.metadata import version

    return {name: version(name) for name in ("ensemblepp", "numba", "numpy", "scipy", "torch", "xarray", "netCDF4")}


def _provenance(seconds: float, horizon: int) -> dict[str, Any]:
    # not by the workflow, which sees no more of a job with a warm start than the process that waits for it
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "commit": commits.commit(),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "host": platform.node(),
        "python": sys.version.split()[0],
        "cpu_seconds": used.ru_utime + used.ru_stime,
        "peak_memory_mb": _peak_memory(),
        "seconds": seconds,
        "seconds_per_step": seconds / horizon,
        "versions": versions(),
    }
