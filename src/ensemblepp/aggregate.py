"""Run blocks to one dataset per study, with named dimensions, after checking that every block is the one asked for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import xarray as xr

from ensemblepp.config import Block, Config
from ensemblepp.errors import ResultError
from ensemblepp.fingerprint import fingerprint
from ensemblepp.results import read_dataset, write_dataset
from ensemblepp.simulate import thin

FACTORS = ("environment", "agent", "reference", "perturbation", "ensemble_size", "seed", "time")


def aggregate(config: Config, study: str, output: str | Path) -> None:
    """Merge all blocks of `study` at the configuration's scale into one dataset.

    `regret`, `reward` and `optimal` have the dimensions (environment, agent, reference, perturbation, ensemble_size, seed,
    time), NaN where a combination was not run; agents without an ensemble stand at ensemble size 0, and agents without laws
    at the law "none". `constant_regret` (environment, action_index, seed, time) is the regret of constant policies, where
    the environment has them. `time` is thinned to about 120 points.

    Raises:
        ResultError: a block is damaged, incomplete, or was made from another specification or by other code; the message
            names the file.
    """
    grid = config.studies[study].scales[config.scale]
    blocks = config.blocks(study)
    loaded = [(block.spec, _read_block(block)) for block in blocks]
    laws = {
        name: list(dict.fromkeys(str(law) for _, data in loaded for law in data[name].values))
        for name in ("reference", "perturbation")
    }
    time = thin(loaded[0][1]["time"].values)
    actions = max(data.sizes.get("action_index", 0) for _, data in loaded)
    coordinates = {
        "environment": grid.environments,
        "agent": config.studies[study].agents,
        **laws,
        "ensemble_size": sorted({spec["ensemble_size"] for spec, _ in loaded}),
        "seed": grid.seed_list(),
        "time": time,
    }
    shape = tuple(len(coordinates[name]) for name in FACTORS)
    variables = {name: (FACTORS, np.full(shape, np.nan, dtype=np.float32)) for name in ("regret", "reward", "optimal")}
    dataset = xr.Dataset(variables, coordinates)
    if actions:
        coordinates["action_index"] = range(actions)
        dims = ("environment", "action_index", "seed", "time")
        empty = np.full(tuple(len(coordinates[name]) for name in dims), np.nan, dtype=np.float32)
        dataset = dataset.assign_coords(action_index=range(actions)).assign(constant_regret=(dims, empty))
    for spec, data in loaded:
        data = data.sel(time=time)
        cell = {
            "environment": spec["environment"]["name"],
            "agent": spec["agent"]["name"],
            "ensemble_size": spec["ensemble_size"],
            "seed": data["seed"],
        }
        for name in variables:
            dataset[name].loc[{**cell, "reference": data["reference"], "perturbation": data["perturbation"]}] = data[name]
        if "constant_regret" in data:
            place = {"environment": cell["environment"], "seed": cell["seed"], "action_index": data["action_index"]}
            dataset["constant_regret"].loc[place] = data["constant_regret"]
    titles = [config.environments[name].title for name in grid.environments]
    labels = [config.agents[name].label for name in config.studies[study].agents]
    codes = {block.path: data.attrs["code"] for block, (_, data) in zip(blocks, loaded, strict=True)}
    dataset = dataset.assign_coords(title=("environment", titles), label=("agent", labels)).assign_attrs(
        study=study,
        study_title=config.studies[study].title,
        scale=config.scale,
        horizon=grid.horizon,
        seeds=len(grid.seed_list()),
        specs=json.dumps([spec for spec, _ in loaded], sort_keys=True),
        codes=json.dumps(codes, sort_keys=True),
    )
    write_dataset(dataset, output)


def _read_block(block: Block) -> xr.Dataset:
    path, spec = block.path, block.spec
    data = read_dataset(path, finite=("regret", "reward"))
    stored = json.loads(data.attrs["spec"])
    if stored != spec:
        keys = [key for key in spec if stored.get(key) != spec[key]]
        raise ResultError(f"{path}: made from another specification ({', '.join(keys)} differ); delete it and run again")
    # Snakemake knows the code of files that it made itself; one that was made by hand may be older than an edit
    if data.attrs["code"] != fingerprint(*block.modules):
        raise ResultError(f"{path}: made by other code than the present one; delete it and run again")
    if int(data["time"][-1]) != spec["horizon"]:
        raise ResultError(f"{path}: ends at step {int(data['time'][-1])} of {spec['horizon']}; delete it and run again")
    return data
