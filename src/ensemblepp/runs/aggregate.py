"""Run blocks to one dataset per study, with named dimensions, after checking that every block is the one asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ensemblepp.errors import ResultError
from ensemblepp.specification import Block
from ensemblepp.storage.datasets import read_dataset, write_dataset
from ensemblepp.trajectory import stored_rounds, thin

#: Dimensions of a run file's curves, and of its variables that are no curves.
CURVE = ("reference", "perturbation", "seed", "time")
DIMENSIONS = {"action": (*CURVE[:3], "step"), "constant_regret": ("seed", "action_index", "time")}

#: What else a run file says of fixed policies: by the end of a name that begins with the policy's.
POLICIES = ("_regret", "_optimal")

FACTORS = ("environment", "agent", "reference", "perturbation", "ensemble_size", "seed", "time")


def aggregate(plan: Mapping[str, Any], output: str | Path) -> None:
    """Merge all blocks of a study into one dataset.

    `regret`, `reward` and `optimal` have the dimensions (environment, agent, reference, perturbation, ensemble_size, seed,
    time), NaN where a combination was not run; agents without an ensemble stand at ensemble size 0, and agents without laws
    at the law "none". `constant_regret` (environment, action_index, seed, time) is the regret of constant policies, where
    the environment has them, and other fixed policies have the like: `ceiling_regret` and `ceiling_optimal` (environment, seed,
    time), or with a dimension of the policies' name. `time` is thinned to about 120 points.

    Args:
        plan: what `runs.plan.plan` makes:

            study, title, scale, results, horizon    of the study
            seed_blocks                              [first, last] of every block
            environments, agents                     name and how it is shown, in the order of the study
            runs                                     per environment and agent: the names it is shown by, its ensemble
                                                     sizes, the rest of its blocks' specification, and their code
        output: the netCDF file to write.

    Raises:
        ResultError: a block is damaged, incomplete, or was made from another specification or by other code; the message
            names the file.
    """
    titles = {environment["name"]: environment["title"] for environment in plan["environments"]}
    agents = {agent["name"]: agent for agent in plan["agents"]}
    codes: dict[str, str] = {}
    specs: list[dict[str, Any]] = []
    pieces: list[tuple[dict[str, object], xr.Dataset]] = []
    for run in plan["runs"]:
        for size in run["sizes"]:
            for seeds in plan["seed_blocks"]:
                block = Block(plan["results"], run["spec"] | {"ensemble_size": size, "seeds": list(seeds)})
                data = read_block(block, run["code"])
                specs.append(block.spec)
                codes[block.path] = run["code"]
                for agent in run["agents"]:
                    cell = {"environment": run["spec"]["environment"]["name"], "agent": agent, "ensemble_size": size}
                    pieces.append((cell, _laws_of(agents[agent], data)))
    coordinates = {
        "environment": list(titles),
        "agent": list(agents),
        **{
            name: list(dict.fromkeys(str(law) for _, data in pieces for law in data[name].values))
            for name in ("reference", "perturbation")
        },
        "ensemble_size": sorted({cell["ensemble_size"] for cell, _ in pieces}),
        "seed": [seed for first, last in plan["seed_blocks"] for seed in range(first, last + 1)],
        "time": pieces[0][1]["time"].values,
    }
    dimensions: dict[str, tuple[str, ...]] = {}
    for _, data in pieces:
        for name, values in data.data_vars.items():
            own = [dim for dim in values.dims if dim not in FACTORS]
            dimensions[str(name)] = FACTORS if "reference" in values.dims else ("environment", *own, "seed", "time")
            # more of them in some environments than in others
            coordinates |= {dim: range(max(len(coordinates.get(dim, ())), data.sizes[dim])) for dim in own}
    dataset = xr.Dataset({name: _empty(dims, coordinates) for name, dims in dimensions.items()}, coordinates)
    for cell, data in pieces:
        for name, values in data.data_vars.items():
            own = {key: data[key] for key in values.dims if key != "time"}
            place = cell if "reference" in own else {"environment": cell["environment"]}
            dataset[name].loc[{**place, **own}] = values
    labels = [agent["label"] for agent in agents.values()]
    dataset = dataset.assign_coords(title=("environment", list(titles.values())), label=("agent", labels))
    dataset = dataset.assign_attrs(
        study=plan["study"],
        study_title=plan["title"],
        scale=plan["scale"],
        horizon=plan["horizon"],
        seeds=dataset.sizes["seed"],
        specs=json.dumps(specs, sort_keys=True),
        codes=json.dumps(codes, sort_keys=True),
    )
    write_dataset(dataset, output)


def _empty(dims: tuple[str, ...], coordinates: dict[str, object]) -> tuple[tuple[str, ...], np.ndarray]:
    return dims, np.full(tuple(len(coordinates[name]) for name in dims), np.nan, dtype=np.float32)


def _laws_of(agent: Mapping[str, str], data: xr.Dataset) -> xr.Dataset:
    """A block's runs of one agent: all of them, or the chain that a pair names, whose laws then need no dimension."""
    data = data.drop_vars(["action", "step", "environment", "agent", "ensemble_size"], errors="ignore")
    data = data.sel(time=thin(data["time"].values))
    if "reference" not in agent:
        return data
    chain = data.sel(reference=[agent["reference"]], perturbation=[agent["perturbation"]])
    return chain.assign_coords(reference=["none"], perturbation=["none"])


def read_block(block: Block, code: str) -> xr.Dataset:
    """A block's run file, if it is the one that is asked for; else ResultError, as of `aggregate`."""
    path, spec = block.path, block.spec
    data = read_dataset(path, finite=("regret", "reward", "optimal"))
    fault = _fault(data, spec, code)
    if fault:
        raise ResultError(f"{path}: {fault}; delete it and run again")
    return data


def _fault(data: xr.Dataset, spec: Mapping[str, Any], code: str) -> str | None:
    """What keeps a run file from being the block that is asked for, if anything does."""
    try:
        stored = json.loads(data.attrs.get("spec", "{}"))
    except ValueError:
        stored = None
    if not isinstance(stored, dict):
        return "its specification is no JSON object"
    if stored != spec:
        keys = [key for key in spec if stored.get(key) != spec[key]]
        return f"made from another specification ({', '.join(keys)} differ)"
    # Snakemake knows the code of files that it made itself; one that was made by hand may be older than an edit
    if data.attrs.get("code") != code:
        return "made by other code than the present one"
    for name in data.data_vars:
        dims, expected = data.variables[name].dims, _dimensions(name, data)
        if dims != expected:
            return f"variable '{name}' has the dimensions ({', '.join(map(str, dims))}), not ({', '.join(expected)})"
    for name, values in _coordinates(data, spec).items():
        if name in data.variables:
            found = data.variables[name].values.ravel().tolist()
        elif name in data.dims:
            found = list(range(data.sizes[name]))
        else:
            return f"coordinate '{name}' is missing"
        if found != values:
            return f"{name} holds {_shown(found)}, not {_shown(values)}"
    return None


def _dimensions(name: str, data: xr.Dataset) -> tuple[str, ...]:
    """The dimensions that a variable of a run file must have."""
    if name.endswith(POLICIES) and name not in DIMENSIONS:
        policy = name.rpartition("_")[0]
        return ("seed", policy, "time") if policy in data.dims else ("seed", "time")
    return DIMENSIONS.get(name, CURVE)


def _coordinates(data: xr.Dataset, spec: Mapping[str, Any]) -> dict[str, list]:
    """What stands along every dimension of a run file, and beside it, by its specification."""
    chains = data.sizes["reference"] * data.sizes["perturbation"]
    diagnostics = has_diagnostics(data)
    first, last = spec["seeds"]
    known = {
        "environment": [spec["environment"]["name"]],
        "agent": [spec["agent"]["name"]],
        "ensemble_size": [spec["ensemble_size"]],
        "seed": list(range(first, last + 1)),
        "time": stored_rounds(chains, spec["horizon"], diagnostics).tolist(),
    }
    if "class" not in spec["agent"]:  # an agent of the user's has chains of its own
        for role in ("reference", "perturbation"):
            laws = spec["agent"]["options"].get(f"{role}s", ())
            names = [law if isinstance(law, str) else law["name"] for law in laws]
            known |= {role: list(dict.fromkeys(names))} if names else {}
    if "step" in data.dims:
        known["step"] = list(range(spec["horizon"]))
    return known | {name: list(range(data.sizes[name])) for name in data.dims if name not in (*CURVE, "step")}


def has_diagnostics(data: xr.Dataset) -> bool:
    """Whether a run file holds what its agent says of itself, by which its stored times are fewer."""
    return any(_dimensions(name, data) == CURVE for name in data.data_vars.keys() - {"regret", "reward", "optimal"})


def _shown(values: list) -> str:
    """The entries of a coordinate, in few words."""
    if len(values) > 6:
        return f"{len(values)} entries from {values[0]} to {values[-1]}"
    return ", ".join(map(str, values)) or "nothing"
