"""Moderation of hateful posts: accuracy over time, and what it is worth (paper, Figure "Detection accuracy over time")."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from ensemblepp.analysis.selection import agent_runs, best_constant, ensemble_sizes
from ensemblepp.figures import style

NEEDS = {"environments": ["moderation"]}

#: Policies that ignore the post: the regret of their wrong decisions, by action (0 blocks, 1 publishes).
CONSTANT = {"always block": (0, 0.5), "always publish": (1, 1.0)}

BEST_CONSTANT = "best constant action"
GREY = (0.4, 0.4, 0.4)

#: Share of the rounds that the left panel leaves out at the start, where a share of few rounds says nothing.
START = 0.02


def draw(dataset: xr.Dataset) -> Figure:
    """Per environment: share of right decisions so far, and reward gained over the best constant action, by seed."""
    environments = dataset["environment"].values
    figure, panels = plt.subplots(len(environments), 2, figsize=(7.8, 0.3 + 2.6 * len(environments)), squeeze=False)
    later = dataset["time"] >= dataset.attrs["horizon"] * START
    for (left, right), environment in zip(panels, environments, strict=True):
        constant = best_constant(dataset, environment)
        for position, name in enumerate(dataset["agent"].values):
            runs = agent_runs(dataset, name)
            label, sizes = str(runs["label"].values), ensemble_sizes(runs)
            for size, text, colour in style.by_size(label, sizes, position):
                run = runs.sel(environment=environment, ensemble_size=size)
                accuracy = (run["optimal"] / dataset["time"]).isel(time=later.values)
                style.band(left, accuracy, colour=colour, label=text)
                style.band(right, constant - run["regret"], colour=colour, label=text)
        for (text, (action, cost)), line in zip(CONSTANT.items(), ("--", ":"), strict=True):
            wrong = dataset["constant_regret"].sel(environment=environment, action_index=action) / cost
            share = (1 - wrong / dataset["time"]).isel(time=later.values).mean("seed")
            left.plot(share["time"], share, color=GREY, linestyle=line, linewidth=1.2, label=text)
        right.axhline(0, color=GREY, linewidth=1.2, linestyle="-.", label=BEST_CONSTANT)
        shown = np.concatenate([line.get_ydata() for line in left.get_lines()])
        left.set_ylim(max(0, shown.min() - 0.05), min(1, shown.max() + 0.05))
        left.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        left.set_ylabel("accuracy so far")
        right.set_ylabel("reward over best constant")
        for axes in (left, right):
            style.round_axis(axes, dataset.attrs["horizon"])
            axes.set_title(str(dataset["title"].sel(environment=environment).values))
        handles = {
            text: handle for axes in (left, right) for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        right.legend(handles.values(), handles.keys(), loc="center left", bbox_to_anchor=(1.02, 0.5))
    return figure
