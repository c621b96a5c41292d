"""Moderation of hateful posts: accuracy over time, and what it is worth (paper, Figure "Detection accuracy over time")."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from ensemblepp.analysis import moderation
from ensemblepp.analysis.selection import best_constant
from ensemblepp.figures import style

NEEDS = {"environments": ["moderation"]}

BEST_CONSTANT = "best constant action"
CEILING = "supervised ceiling"
GREY, DARK = (0.4, 0.4, 0.4), (0.1, 0.1, 0.1)

#: Share of the rounds that the left panel leaves out at the start, where a share of few rounds says nothing.
START = 0.02


def draw(dataset: xr.Dataset) -> Figure:
    """Per environment: share of right decisions so far, and reward gained over the best constant action, by seed."""
    environments = dataset["environment"].values
    figure, panels = plt.subplots(len(environments), 2, figsize=(style.PAGE, 0.9 + 2.2 * len(environments)), squeeze=False)
    curves = list(style.curves(dataset))
    crowded = len(curves) > style.BANDS
    for (left, right), environment in zip(panels, environments, strict=True):
        constant = best_constant(dataset, environment)
        for runs, look in curves:
            run = runs.sel(environment=environment)
            if not run["regret"].notnull().any():
                continue
            style.curve(
                left,
                later(moderation.accuracy(dataset, environment, run["regret"], run["optimal"])),
                crowded=crowded,
                possible=style.SHARE,
                **look,
            )
            style.curve(right, constant - run["regret"], crowded=crowded, possible=style.ANY, **look)
        for action, line in enumerate(("--", ":")):
            word = moderation.wording(dataset, environment).actions[action]
            share = later(moderation.constant_accuracy(dataset, environment, action)).mean("seed")
            left.plot(share["time"], share, color=GREY, linestyle=line, linewidth=1.2, label=f"always {word}")
        right.axhline(0, color=GREY, linewidth=1.2, linestyle="-.", label=BEST_CONSTANT)
        if has_ceiling(dataset, environment):
            reached = {"crowded": crowded, "colour": DARK, "label": CEILING, "linewidth": 1.2, "linestyle": (0, (1, 1))}
            style.curve(left, later(moderation.ceiling_accuracy(dataset, environment)), possible=style.SHARE, **reached)
            style.curve(right, constant - dataset["ceiling_regret"].sel(environment=environment), possible=style.ANY, **reached)
        shown = np.concatenate([line.get_ydata() for line in left.get_lines()])
        left.set_ylim(max(0, shown.min() - 0.05), min(1.01, shown.max() + 0.05))
        left.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        left.set_ylabel("accuracy so far")
        right.set_ylabel("reward over best constant")
        for axes in (left, right):
            style.round_axis(axes, dataset.attrs["horizon"], behind=len(axes.collections) if crowded else 0)
            axes.set_title(str(dataset["title"].sel(environment=environment).values))
    style.legend(figure)
    return figure


def has_ceiling(dataset: xr.Dataset, environment: str) -> bool:
    """Whether the runs in an environment were measured against a supervised ceiling."""
    return "ceiling_regret" in dataset and bool(dataset["ceiling_regret"].sel(environment=environment).notnull().any())


def later(curve: xr.DataArray) -> xr.DataArray:
    """Without the start, where a share of few rounds says nothing."""
    return curve.isel(time=(curve["time"] >= curve["time"][-1] * START).values)
