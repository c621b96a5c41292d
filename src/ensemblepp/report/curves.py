"""Regret over time as the page draws it: every agent's mean and interval, and single seeds, thinned to a size for a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.colors import to_hex
from scipy import special

from ensemblepp.analysis.statistics import CONFIDENCE, mean_interval
from ensemblepp.figures import style
from ensemblepp.storage.datasets import read_dataset

#: Points in time, half of them evenly spaced and half evenly on a logarithmic scale, and seeds that are kept, at most.
TIMES, SEEDS = 40, 20

#: Significant digits of a number.
DIGITS = 4

#: What matplotlib calls a line's style, as lengths of dashes and gaps.
_DASHES = {"-": [], "--": [6, 3], "-.": [6, 3, 2, 3], ":": [2, 3]}


def study(path: str | Path) -> dict[str, Any]:
    """What a study's dataset says of regret over time.

    Args:
        path: the dataset, or what is published of it (`runs.publish.summary`), which has no single seeds over time.

    Returns:
        seeds: how many were run; stored: points in time of the dataset; shown: the seeds that are shown; panels, one for each
        environment, with title, time (rounds) and curves: label, colour, dash, mean, low, high (95 % Student t interval, null
        where there is one seed) and seeds, one list each, all along time.

    Raises:
        ResultError: the dataset is missing or damaged.
    """
    dataset = read_dataset(path, holds=("specs", "horizon"))
    seeds, summary = [int(seed) for seed in dataset["seed"].values], "regret" not in dataset
    if summary:
        count = dataset["final_regret"].notnull().sum("seed")
        dataset = dataset.drop_dims("seed").assign(regret=dataset["mean"].expand_dims("seed"), count=count)
    stored = dataset["time"].values
    kept = kept_times(stored)
    panels: dict[str, dict[str, Any]] = {
        str(name): {"title": str(title), "time": stored[kept].tolist(), "curves": []}
        for name, title in zip(dataset["environment"].values, dataset["title"].values, strict=True)
    }
    for runs, look in style.curves(dataset):
        for name, panel in panels.items():
            run = runs.sel(environment=name).isel(time=kept)
            regret = run["regret"].transpose("seed", "time").values.astype(float)
            regret = regret[~np.isnan(regret).all(axis=1)]
            if not len(regret):
                continue
            mean, low, high = _published(run) if summary else mean_interval(regret, axis=0)
            panel["curves"].append(
                {
                    "label": str(look["label"]),
                    "colour": to_hex(look["colour"]),
                    "dash": _dash(look["linestyle"]),
                    "mean": _numbers(mean),
                    "low": _numbers(low),
                    "high": _numbers(high),
                    "seeds": [] if summary else [_numbers(one) for one in regret[:SEEDS]],
                }
            )
    return {
        "seeds": len(seeds),
        "stored": len(stored),
        "shown": [] if summary else seeds[:SEEDS],
        "panels": [panel for panel in panels.values() if panel["curves"]],
    }


def kept_times(stored: np.ndarray) -> np.ndarray:
    """Positions of the points in time that are shown, the first and the last always among them."""
    if len(stored) <= TIMES:
        return np.arange(len(stored))
    first, last = stored[0], stored[-1]
    wanted = np.concatenate([np.linspace(first, last, TIMES // 2), np.geomspace(max(first, 1), last, TIMES // 2)])
    return np.unique(np.abs(stored[:, None] - wanted).argmin(axis=0))


def _published(run: xr.Dataset) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean and interval of a summary, which holds the standard error."""
    mean = run["mean"].values.astype(float)
    half = special.stdtrit(max(int(run["count"]) - 1, 1), 0.5 + CONFIDENCE / 2) * run["standard_error"].values.astype(float)
    return mean, mean - half, mean + half


def _dash(linestyle: Any) -> list[float]:
    return _DASHES[linestyle] if isinstance(linestyle, str) else [3 * length for length in linestyle[1]]


def _numbers(values: np.ndarray) -> list[float | int | None]:
    """Numbers for JSON in as few characters as their digits need; None for what is not finite."""
    rounded = [float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None for value in values]
    return [int(value) if value is not None and value.is_integer() else value for value in rounded]
