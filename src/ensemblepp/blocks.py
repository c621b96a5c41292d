"""One run block: build environment and agent from the resolved specification, simulate, write the run file."""

from __future__ import annotations

import importlib
import json
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ensemblepp.checkpoint import Checkpoint
from ensemblepp.errors import ConfigError
from ensemblepp.results import write_dataset, write_json
from ensemblepp.simulate import Trajectory, simulate


def run(
    spec: Mapping[str, Any], output: str | Path, *, code: str = "", on_step: Callable[[int], None] = lambda rounds: None
) -> None:
    """Simulate one block and write it to `output` (netCDF), with a JSON file of what varies from run to run beside it.

    Args:
        spec: the block's resolved specification, as `ensemblepp.config.Block.spec`.
        output: the run file.
        code: the code fingerprint to record.
        on_step: told how many rounds, summed over seeds, are done.

    Raises:
        ConfigError: the horizon is beyond the data.
        TrainingError: training left the real numbers.
    """
    device = resolve_device(spec["device"])
    first, last = spec["seeds"]
    seeds = range(first, last + 1)
    environment = load_class(spec["environment"]["class"])(seeds, **spec["environment"]["options"])
    agent = load_class(spec["agent"]["class"])(
        seeds,
        dimension=environment.dimension,
        ensemble_size=spec["ensemble_size"],
        horizon=spec["horizon"],
        device=device,
        **spec["agent"]["options"],
    )
    checkpoint = Checkpoint(Path(output).with_suffix(".checkpoint"), _key(spec, code, device))
    start = time.perf_counter()
    trajectory = simulate(environment, agent, spec["horizon"], on_step, checkpoint)
    seconds = time.perf_counter() - start
    attributes = {"spec": json.dumps(spec, sort_keys=True), "code": code, "device": device}
    write_json(_provenance(seconds, spec["horizon"]), Path(output).with_suffix(".json"))
    write_dataset(_dataset(trajectory, seeds, agent.chains, attributes), output)
    checkpoint.remove()


def load_class(path: str) -> type:
    """The class named "package.module:Class"."""
    module, name = path.split(":")
    return getattr(importlib.import_module(module), name)


def resolve_device(device: str) -> str:
    """The torch device for a configured one: "auto" takes a GPU where torch sees one.

    Raises:
        ConfigError: "cuda" is asked for, and torch sees no GPU.
    """
    if device == "cpu":
        return "cpu"
    import torch  # only here: linear agents do without

    if torch.cuda.is_available():
        return "cuda"
    if device == "cuda":
        where = "config/config.yaml: device (linear_device for linear agents)"
        raise ConfigError(f"{where}: found 'cuda': torch sees no GPU here; use cpu")
    return "cpu"


def _dataset(
    trajectory: Trajectory, seeds: range, chains: tuple[tuple[str, str], ...], attributes: dict[str, str]
) -> xr.Dataset:
    """The run file's contents: chains unfolded to (reference, perturbation)."""
    references = list(dict.fromkeys(reference for reference, _ in chains))
    perturbations = list(dict.fromkeys(perturbation for _, perturbation in chains))

    def unfold(values: np.ndarray) -> np.ndarray:
        shape = (len(seeds), len(references), len(perturbations), values.shape[-1])
        return np.moveaxis(values.reshape(shape), 0, 2)

    dims = ("reference", "perturbation", "seed")
    coordinates = {"reference": references, "perturbation": perturbations, "seed": list(seeds), "time": trajectory.time}
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
    return xr.Dataset(variables, coordinates, attributes)


def _key(spec: Mapping[str, Any], code: str, device: str) -> str:
    """What a checkpoint belongs to: a run goes on only with the same specification, code, device and libraries."""
    return json.dumps([spec, code, device, _versions(), sys.version], sort_keys=True)


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("ensemblepp", "numba", "numpy", "scipy", "torch", "xarray", "netCDF4")}


def _provenance(seconds: float, horizon: int) -> dict[str, Any]:
    return {
        "commit": _commit(),
        "finished": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "host": platform.node(),
        "python": sys.version.split()[0],
        "seconds": seconds,
        "seconds_per_step": seconds / horizon,
        "versions": _versions(),
    }


def _commit() -> str:
    """The git commit of the working directory, "+" if files differ from it; empty outside a repository."""
    try:
        command = ["git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=+"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
