"""Moderation of hateful posts: accuracy over time and regret (paper, Figure "Detection accuracy over time")."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from ensemblepp.figures import style
from ensemblepp.figures.uci_regret import regret_curves
from ensemblepp.selection import agent_runs, ensemble_sizes

#: Regret of a wrong decision: blocking a free post, publishing a hateful one (actions 0 and 1).
COST = {"always block": (0, 0.5), "always publish": (1, 1.0)}


def draw(dataset: xr.Dataset) -> Figure:
    """Per environment: share of right decisions so far (free published, hateful blocked), and cumulative regret."""
    environments = dataset["environment"].values
    figure, panels = plt.subplots(len(environments), 2, figsize=(7.6, 0.3 + 2.6 * len(environments)), squeeze=False)
    for (left, right), environment in zip(panels, environments, strict=True):
        for position, name in enumerate(dataset["agent"].values):
            runs = agent_runs(dataset, name)
            label, sizes = str(runs["label"].values), ensemble_sizes(runs)
            for size in sizes:
                text = label if len(sizes) == 1 else f"{label}, M = {size}"
                accuracy = (runs["optimal"] / dataset["time"]).sel(environment=environment, ensemble_size=size)
                style.band(left, accuracy, colour=style.colour(label, position), label=text)
        for (text, (action, cost)), line in zip(COST.items(), ("--", ":"), strict=True):
            wrong = dataset["constant_regret"].sel(environment=environment, action_index=action) / cost
            mean = 1 - (wrong / dataset["time"]).mean("seed")
            left.plot(dataset["time"], mean, color=(0.4, 0.4, 0.4), linestyle=line, linewidth=1.2, label=text)
        settled = dataset["time"] > dataset.attrs["horizon"] * 0.02
        shown = np.concatenate([line.get_ydata()[settled.values] for line in left.get_lines()])
        left.set_ylim(max(0, shown.min() - 0.05), min(1, shown.max() + 0.05))
        left.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        left.set_ylabel("accuracy so far")
        style.round_axis(left, dataset.attrs["horizon"])
        left.set_title(str(dataset["title"].sel(environment=environment).values))
        regret_curves(right, dataset, environment)
        right.set_ylabel("cumulative regret")
        handles = {
            text: handle for axes in (left, right) for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        right.legend(handles.values(), handles.keys(), loc="center left", bbox_to_anchor=(1.02, 0.5))
    return figure
