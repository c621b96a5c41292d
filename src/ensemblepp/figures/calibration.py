"""Whether an agent knows what it does not know: the spread of what it samples against the error of its predictions."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from ensemblepp.analysis.statistics import mean_interval
from ensemblepp.figures import style

NEEDS = {"variables": ["spread", "error"]}

#: Groups of stored rounds with similar spread, the same number of rounds in each.
BINS = 8


def draw(dataset: xr.Dataset) -> Figure:
    """A panel per environment: root of the mean squared error of the predictions by the spread, in groups of rounds."""
    environments = [str(name) for name in dataset["environment"].values]
    columns = min(3, len(environments))
    rows = -(-len(environments) // columns)
    figure, panels = plt.subplots(
        rows, columns, figsize=(style.COLUMN if columns < 3 else style.PAGE, 0.5 + 2.4 * rows), squeeze=False
    )
    for axes, environment in zip(panels.flat, environments, strict=False):
        for runs, look in style.curves(dataset):
            run = runs.sel(environment=environment)
            if (run["spread"] > 0).any() and run["error"].notnull().any():
                _points(axes, run, look)
        ends = [_ends([getattr(line, f"get_{axis}data")() for line in axes.lines]) for axis in "xy"]
        axes.plot(ends[0], ends[0], color="0.4", linewidth=1, linestyle=":", label="error = spread")
        for axis, name, (lowest, highest) in zip((axes.xaxis, axes.yaxis), "xy", ends, strict=True):
            axes.set(**{f"{name}scale": "log", f"{name}lim": (lowest / 1.6, highest * 1.6)})
            axis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5) if highest < 20 * lowest else (1, 3)))
            axis.set_major_formatter("{x:g}")
            axis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("predicted spread")
        axes.set_ylabel("error of the mean prediction")
        axes.set_title(str(dataset["title"].sel(environment=environment).values))
    for axes in list(panels.flat)[len(environments) :]:
        axes.set_axis_off()
    style.legend(figure)
    return figure


def groups(run: xr.Dataset) -> tuple[np.ndarray, np.ndarray]:
    """(spread, error) of `BINS` groups of an agent's stored rounds, each (BINS, seeds): roots of means of squares.

    The bounds are quantiles of the spread over all rounds and seeds after its first training. NaN where a seed has no round.
    """
    trained = run["loss"].notnull() if "loss" in run else run["spread"].notnull()
    spread, error = (run[name].where(trained).transpose("seed", "time").values.astype(float) for name in ("spread", "error"))
    bounds = np.nanquantile(spread, np.linspace(0, 1, BINS + 1))
    place = np.clip(np.searchsorted(bounds, spread, side="right") - 1, 0, BINS - 1)
    found = np.full((2, BINS, len(spread)), np.nan)
    for group in range(BINS):
        for seed in range(len(spread)):
            mine = (place[seed] == group) & np.isfinite(spread[seed]) & np.isfinite(error[seed])
            if mine.any():
                found[:, group, seed] = [np.sqrt(np.square(values[seed, mine]).mean()) for values in (spread, error)]
    return found[0], found[1]


def _ends(drawn: list[np.ndarray]) -> tuple[float, float]:
    """The least and the greatest of what is drawn along an axis."""
    values = np.concatenate(drawn) if drawn else np.array([0.1, 1.0])
    return float(np.nanmin(values)), float(np.nanmax(values))


def _points(axes: Axes, run: xr.Dataset, look: dict) -> None:
    spread, error = groups(run)
    place, (mean, lower, upper) = np.nanmean(spread, axis=1), mean_interval(error, axis=1)
    line = {"linestyle": look["linestyle"], "marker": "o", "markersize": 4, "linewidth": 1.2}
    axes.plot(place, mean, color=look["colour"], label=look["label"], **line)
    known = np.isfinite(lower) & (lower > 0)
    axes.vlines(place[known], lower[known], upper[known], color=look["colour"], linewidth=1)
