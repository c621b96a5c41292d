"""Ensemble sampling against TS at moderate M: regret over time, and final regret by ensemble size (paper, appendix on ES)."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ensemblepp.analysis.selection import agent_runs, ensemble_sizes
from ensemblepp.figures import style

NEEDS = {"agents": ["es"]}

#: Ensemble sizes that the left panel shows; the paper says "moderate" and names none.
MODERATE = (8, 128)


def draw(dataset: xr.Dataset) -> Figure:
    """Rows are environments. Left: ES at moderate M over time, the dashed line is TS. Right: final regret of every ensemble.

    On the right, dotted lines are medians over seeds: rare runs that never recover carry the means at small M.
    """
    environments = dataset["environment"].values
    figure, panels = plt.subplots(len(environments), 2, figsize=(style.PAGE, 0.6 + 1.9 * len(environments)), squeeze=False)
    for (left, right), environment in zip(panels, environments, strict=True):
        _over_time(left, dataset, environment)
        _by_size(right, dataset.isel(time=-1), environment)
        for axes in (left, right):
            axes.set_title(str(dataset["title"].sel(environment=environment).values))
        left.set_ylim(bottom=0)
        left.set_ylabel("cumulative regret")
        right.set_ylabel("final regret")
        style.round_axis(left, dataset.attrs["horizon"])
    style.legend(figure)
    return figure


def _over_time(axes: Axes, dataset: xr.Dataset, environment: str) -> None:
    for position, name in enumerate(dataset["agent"].values):
        runs = agent_runs(dataset, name)
        label, sizes = str(runs["label"].values), ensemble_sizes(runs)
        if sizes == [0]:
            curve = runs["regret"].sel(environment=environment, ensemble_size=0)
            style.band(axes, curve, colour=style.colour(label, position), label=label, linestyle="--")
        elif name == "es":
            moderate = [size for size in sizes if MODERATE[0] <= size <= MODERATE[1]]
            for size, _, colour in style.by_size(label, moderate or sizes, position):
                curve = runs["regret"].sel(environment=environment, ensemble_size=size)
                style.band(axes, curve, colour=colour, label=f"{label}, M = {size}")


def _by_size(axes: Axes, final: xr.Dataset, environment: str) -> None:
    for position, name in enumerate(final["agent"].values):
        runs = agent_runs(final, name)
        label, sizes = str(runs["label"].values), ensemble_sizes(runs)
        regret = runs["regret"].sel(environment=environment, ensemble_size=sizes)
        colour = style.colour(label, position)
        if sizes == [0]:
            style.level(axes, regret.squeeze("ensemble_size"), colour=colour, label=label, linestyle="--")
            continue
        places = np.array(sizes) * 2 ** (0.08 * (position - 1))  # side by side, so that their intervals can be seen
        style.interval_line(axes, places, regret, colour=colour, label=label)
        axes.plot(places, regret.median("seed"), color=colour, linewidth=1, linestyle=":", label=f"{label}, median")
        style.size_axis(axes, sizes)
    style.regret_axis(axes)
