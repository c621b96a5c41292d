"""Regret curves on the UCI classification bandits, beside the best constant action (paper, main nonlinear figure)."""

from __future__ import annotations

import matplotlib.pyplot as plt
import xarray as xr
from matplotlib.figure import Figure

from ensemblepp.figures import style
from ensemblepp.selection import agent_runs, best_constant, ensemble_sizes


def draw(dataset: xr.Dataset) -> Figure:
    """One panel per data set; the dotted line is the constant action that is best in hindsight, seed by seed."""
    environments = dataset["environment"].values
    figure, panels = plt.subplots(1, len(environments), figsize=(0.6 + 3.1 * len(environments), 2.8), squeeze=False)
    for axes, environment in zip(panels[0], environments, strict=True):
        _regret_curves(axes, dataset, environment)
        axes.set_title(str(dataset["title"].sel(environment=environment).values))
    panels[0, 0].set_ylabel("cumulative regret")
    panels[0, -1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    return figure


def _regret_curves(axes: plt.Axes, dataset: xr.Dataset, environment: str) -> None:
    """Every agent's regret in one environment, and the best constant action's."""
    for position, name in enumerate(dataset["agent"].values):
        runs = agent_runs(dataset, name)
        label, sizes = str(runs["label"].values), ensemble_sizes(runs)
        for size, text, colour in style.by_size(label, sizes, position):
            curve = runs["regret"].sel(environment=environment, ensemble_size=size)
            style.band(axes, curve, colour=colour, label=text)
    constant = best_constant(dataset, environment)
    style.band(axes, constant, colour=(0.4, 0.4, 0.4), label="best constant action", linestyle=":")
    axes.set_ylim(bottom=0)
    style.round_axis(axes, dataset.attrs["horizon"])
