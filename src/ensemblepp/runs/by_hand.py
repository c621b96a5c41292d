"""What a person who runs blocks by hand gets of them: their regret in words, and a figure of any run files."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import xarray as xr

from ensemblepp import figures
from ensemblepp.analysis.selection import PAPER_LAWS
from ensemblepp.analysis.statistics import mean_interval
from ensemblepp.errors import ResultError
from ensemblepp.runs.aggregate import CURVE
from ensemblepp.storage.datasets import read_dataset, write_dataset
from ensemblepp.trajectory import thin

#: What tells the runs of a figure apart.
_CELL = ("environment", "agent", "ensemble_size")


def regret_in_words(path: str | Path) -> Iterator[str]:
    """Regret at the end of a run file, mean over seeds with its 95 % interval: a line for every pair of laws.

    Raises:
        ResultError: the file is missing or damaged, or no run file.
    """
    data = _read(path)
    final, pairs = data["regret"].isel(time=-1), data.sizes["reference"] * data.sizes["perturbation"]
    yield f"regret after {int(data['time'][-1]):,} rounds, mean over {_counted(data.sizes['seed'])}:"
    for reference in data["reference"].values:
        for perturbation in data["perturbation"].values:
            mean, lower, upper = mean_interval(final.sel(reference=reference, perturbation=perturbation).values)
            interval = f"95 % interval {lower:.4g} to {upper:.4g}" if data.sizes["seed"] > 1 else "one seed has no interval"
            laws = f"{reference}, {perturbation}: " if pairs > 1 else ""
            yield f"  {laws}{mean:.4g} ({interval})"


def plot(paths: Iterable[str | Path], output: str | Path, figure: str = "nonlinear_regret") -> None:
    """Draw a figure of run files as if they were a study: environments, agents, ensemble sizes and seeds as they are in them.

    Of an agent's pairs of laws one is shown, as in every figure of that kind, and named in its label.

    Args:
        paths: run files of equal horizons.
        output: .pdf or .png file to write.
        figure: a module of `ensemblepp.figures`, or "module:function" of the user's.

    Raises:
        ResultError: a file is missing, damaged or no run file, or files do not go together.
    """
    with tempfile.TemporaryDirectory() as folder:
        merged = Path(folder, "runs.nc")
        write_dataset(_merged({Path(path): _read(path) for path in paths}), merged)
        figures.save(figure, merged, [output])


def _read(path: str | Path) -> xr.Dataset:
    data = read_dataset(path)
    if not {"spec", "code"} <= data.attrs.keys() or "regret" not in data:
        raise ResultError(
            f"{path}: no run file, which is what `simulate` writes; `ensemblepp figure` draws datasets of studies"
        )
    return data


def _merged(runs: dict[Path, xr.Dataset]) -> xr.Dataset:
    """Run files as one dataset with the dimensions of a study's."""
    first, horizon = next((path, int(data["time"][-1])) for path, data in runs.items())
    cells: dict[tuple[Any, ...], tuple[Path, dict[str, Any]]] = {}
    seeds: dict[tuple[Any, ...], Path] = {}
    pieces, labels = [], {}
    for path, data in runs.items():
        if int(data["time"][-1]) != horizon:
            raise ResultError(f"{path}: {int(data['time'][-1])} rounds, but {first} has {horizon}; plot runs of equal horizons")
        cell = tuple(data[name].item() for name in _CELL)
        spec = {key: value for key, value in json.loads(data.attrs["spec"]).items() if key != "seeds"}
        other, known = cells.setdefault(cell, (path, spec))
        if spec != known:
            differ = ", ".join(key for key in spec if spec[key] != known.get(key))
            raise ResultError(f"{path}: not the same as {other} ({differ} differ), but under equal names; plot one of them")
        for seed in data["seed"].values:
            if (*cell, int(seed)) in seeds:
                raise ResultError(f"{path}: seed {seed} is in {seeds[*cell, int(seed)]} already; name every run once")
            seeds[*cell, int(seed)] = path
        labels[cell[1]] = _label(data)
        pieces += _pieces(data)
    specs = [json.loads(data.attrs["spec"]) for data in runs.values()]
    # an encoding that was read holds the length of a file's own names, to which others would be cut
    dataset = xr.merge(pieces, join="outer", compat="no_conflicts", combine_attrs="drop").drop_encoding()
    return dataset.assign_coords(
        title=("environment", [str(name) for name in dataset["environment"].values]),
        label=("agent", [labels[name] for name in dataset["agent"].values]),
    ).assign_attrs(study="of run files", scale="-", horizon=horizon, seeds=dataset.sizes["seed"], specs=json.dumps(specs))


def _pieces(data: xr.Dataset) -> Iterator[xr.Dataset]:
    """The curves of a run file under their environment, agent and ensemble size; what fixed policies cost under the first."""
    data = data.drop_vars(["action", "step"], errors="ignore").sel(time=thin(data["time"].values))
    fixed = [name for name, values in data.data_vars.items() if "reference" not in values.dims]
    curves = data.drop_vars([*fixed, *(dim for name in fixed for dim in data[name].dims if dim not in CURVE)])
    yield curves.expand_dims([name for name in _CELL if name in curves.coords])
    if fixed:
        yield data[fixed].drop_vars(["agent", "ensemble_size"]).expand_dims("environment")


def _label(data: xr.Dataset) -> str:
    """The agent's name, with the laws that figures show where it has others."""
    name = str(data["agent"].values)
    if data.sizes["reference"] * data.sizes["perturbation"] == 1:
        return name
    shown = {role: law if law in data[role].values else data[role].values[0] for role, law in PAPER_LAWS.items()}
    if shown != PAPER_LAWS:
        shown = {role: data[role].values[0] for role in PAPER_LAWS}
    return f"{name} ({', '.join(map(str, shown.values()))})"


def _counted(seeds: int) -> str:
    return f"{seeds} seeds" if seeds > 1 else "1 seed"
