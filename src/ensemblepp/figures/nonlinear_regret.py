"""Regret over time in nonlinear bandits, and accuracy of moderation (paper, main nonlinear figure and its appendix's)."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from ensemblepp.analysis import moderation
from ensemblepp.analysis.selection import best_constant, environment_kinds
from ensemblepp.figures import style
from ensemblepp.figures.moderation_accuracy import BEST_CONSTANT, CEILING, DARK, GREY, has_ceiling, later

#: Height of a panel in terms of the highest agent's mean, so that the best constant action does not press all agents flat.
ROOM = 3


def draw(dataset: xr.Dataset) -> Figure:
    """One panel per environment, three in a row at most; dotted is the best constant action, dashed the supervised ceiling."""
    environments = [str(name) for name in dataset["environment"].values]
    columns = 2 if len(environments) == 4 else min(3, len(environments))
    rows = -(-len(environments) // columns)
    figure, panels = plt.subplots(
        rows, columns, figsize=(style.COLUMN if columns < 3 else style.PAGE, 0.6 + 1.75 * rows), squeeze=False
    )
    curves = list(style.curves(dataset))
    crowded = len(curves) > style.BANDS
    kinds = environment_kinds(dataset)
    accuracy = [kinds[name] == "moderation" for name in environments]
    for place, (axes, environment) in enumerate(zip(panels.flat, environments, strict=False)):
        shared = {"crowded": crowded, "possible": style.SHARE if accuracy[place] else style.REGRET}
        for runs, look in curves:
            run = runs.sel(environment=environment)
            if run["regret"].notnull().any():
                shown = run["regret"]
                if accuracy[place]:
                    shown = later(moderation.accuracy(dataset, environment, run["regret"], run["optimal"]))
                style.curve(axes, shown, **shared, **look)
        if "constant_regret" in dataset and dataset["constant_regret"].sel(environment=environment).notnull().any():
            constant = (_constant_accuracy if accuracy[place] else best_constant)(dataset, environment)
            style.curve(axes, constant, colour=GREY, label=BEST_CONSTANT, linestyle=":", linewidth=1.3, **shared)
        if has_ceiling(dataset, environment):
            ceiling = dataset["ceiling_regret"].sel(environment=environment)
            if accuracy[place]:
                ceiling = later(moderation.ceiling_accuracy(dataset, environment))
            style.curve(axes, ceiling, colour=DARK, label=CEILING, linestyle=(0, (1, 1)), linewidth=1.3, **shared)
        _accuracy_axis(axes) if accuracy[place] else _regret_axis(axes)
        # said again only where it is another
        if place % columns and accuracy[place] == accuracy[place - 1]:
            axes.set_ylabel("")
        style.round_axis(axes, dataset.attrs["horizon"], behind=len(axes.collections) if crowded else 0)
        if place + columns < len(environments):
            axes.set_xlabel("")
        axes.set_title(str(dataset["title"].sel(environment=environment).values))
    free = list(panels.flat)[len(environments) :]
    for axes in free:
        axes.set_axis_off()
    above = style.legend(figure, free[-1] if free else None)
    # so many curves need room, and so do their names
    figure.set_figheight(figure.get_figheight() + 0.3 * max(0, above - 2))
    return figure


def _constant_accuracy(dataset: xr.Dataset, environment: str) -> xr.DataArray:
    """Share of right decisions so far (seed, time) of the policy without a look at the posts that is right more often."""
    shares = [moderation.constant_accuracy(dataset, environment, action) for action in (0, 1)]
    return later(max(shares, key=lambda share: float(share.isel(time=-1).mean())))


def _regret_axis(axes: Axes) -> None:
    style.linear_axis(axes)
    agents = [line.get_ydata() for line in axes.get_lines() if line.get_label() not in (BEST_CONSTANT, CEILING)]
    highest = max((float(np.nanmax(regret)) for regret in agents), default=np.inf)
    axes.set_ylim(top=min(axes.get_ylim()[1], ROOM * highest))
    axes.set_ylabel("cumulative regret")


def _accuracy_axis(axes: Axes) -> None:
    shown = np.concatenate([line.get_ydata() for line in axes.get_lines()])
    axes.set_ylim(max(0, shown.min() - 0.05), min(1, shown.max() + 0.05))
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.set_ylabel("accuracy so far")
