"""Run blocks to one dataset per study, with named dimensions, after checking that every block is the one asked for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import xarray as xr

from ensemblepp.config import Block, Config, PairAgent
from ensemblepp.errors import ResultError
from ensemblepp.fingerprint import fingerprint
from ensemblepp.results import read_dataset, write_dataset
from ensemblepp.times import thin

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
    cells: dict[str, list[dict[str, object]]] = {block.path: [] for block in blocks}
    for (environment, agent, size, _), block in config.runs(study).items():
        cells[block.path].append({"environment": environment, "agent": agent, "ensemble_size": size})
    codes: dict[str, str] = {}
    pieces: list[tuple[dict[str, object], xr.Dataset]] = []
    for block in blocks:
        data = _read_block(block)
        codes[block.path] = data.attrs["code"]
        data = data.drop_vars(["action", "step"], errors="ignore").sel(time=thin(data["time"].values))
        pieces += [(cell, _laws_of(config, str(cell["agent"]), data)) for cell in cells[block.path]]
    coordinates = {
        "environment": grid.environments,
        "agent": config.studies[study].agents,
        **{
            name: list(dict.fromkeys(str(law) for _, data in pieces for law in data[name].values))
            for name in ("reference", "perturbation")
        },
        "ensemble_size": sorted({cell["ensemble_size"] for cell, _ in pieces}),
        "seed": grid.seed_list(),
        "time": pieces[0][1]["time"].values,
    }
    curves = list(dict.fromkeys(name for _, data in pieces for name in data.data_vars if name != "constant_regret"))
    dataset = xr.Dataset({name: _empty(FACTORS, coordinates) for name in curves}, coordinates)
    actions = max(data.sizes.get("action_index", 0) for _, data in pieces)
    if actions:
        coordinates["action_index"] = range(actions)
        empty = _empty(("environment", "action_index", "seed", "time"), coordinates)
        dataset = dataset.assign_coords(action_index=range(actions)).assign(constant_regret=empty)
    for cell, data in pieces:
        for name, values in data.data_vars.items():
            own = {key: data[key] for key in values.dims if key != "time"}
            place = cell if "reference" in own else {"environment": cell["environment"]}
            dataset[name].loc[{**place, **own}] = values
    titles = [config.environments[name].title for name in grid.environments]
    labels = [config.agents[name].label for name in config.studies[study].agents]
    dataset = dataset.assign_coords(title=("environment", titles), label=("agent", labels)).assign_attrs(
        study=study,
        study_title=config.studies[study].title,
        scale=config.scale,
        horizon=grid.horizon,
        seeds=len(grid.seed_list()),
        specs=json.dumps([block.spec for block in blocks], sort_keys=True),
        codes=json.dumps(codes, sort_keys=True),
    )
    write_dataset(dataset, output)


def _empty(dims: tuple[str, ...], coordinates: dict[str, object]) -> tuple[tuple[str, ...], np.ndarray]:
    return dims, np.full(tuple(len(coordinates[name]) for name in dims), np.nan, dtype=np.float32)


def _laws_of(config: Config, agent: str, data: xr.Dataset) -> xr.Dataset:
    """A block's runs of one agent: all of them, or the chain that a pair names, whose laws then need no dimension."""
    model = config.agents[agent]
    if not isinstance(model, PairAgent):
        return data
    chain = data.sel(reference=[model.reference], perturbation=[model.perturbation])
    return chain.assign_coords(reference=["none"], perturbation=["none"])


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
