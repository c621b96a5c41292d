"""Regret against the number of parameters, by ensemble size (paper, Figure 1 and appendix, "regret-computation trade-off")."""

from __future__ import annotations

import json

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import EngFormatter, LogLocator, NullLocator

from ensemblepp.analysis import theory
from ensemblepp.analysis.selection import agent_runs, ensemble_sizes
from ensemblepp.figures import style

NEEDS = {
    "environments": ["quadratic", "vector_quadratic", "neural"],
    "agent_kinds": ["neural_ensemblepp", "ensembleplus", "epinet", "greedy"],
}

#: Share of the axis between points of an agent that have room for their M.
ROOM = 0.045

#: What is written on an axis of parameters, times powers of ten.
NAMED = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 7)

COLUMNS = ("all parameters", "trainable parameters")


def draw(dataset: xr.Dataset) -> Figure:
    """Rows are environments; left: frozen priors count, right: they do not. Numbers at the points are ensemble sizes M."""
    final = dataset[["regret"]].isel(time=-1)
    looks = style.looks([str(label) for label in dataset["label"].values])
    specs = json.loads(dataset.attrs["specs"])
    networks = {(spec["environment"]["name"], spec["agent"]["name"]): theory.network_of(spec) for spec in specs}
    counted = {place: network for place, network in networks.items() if network}
    environments = [name for name in dataset["environment"].values if name in {place[0] for place in counted}]
    figure, panels = plt.subplots(
        len(environments),
        len(COLUMNS),
        figsize=(8.2, 0.5 + 2.6 * len(environments)),
        sharex="col",
        sharey="row",
        squeeze=False,
    )
    named: list[tuple[Axes, np.ndarray, np.ndarray, list[int], dict[str, object]]] = []
    for row, environment in zip(panels, environments, strict=True):
        for place, name in enumerate(name for name in dataset["agent"].values if (environment, name) in counted):
            runs = agent_runs(final, name)
            sizes = ensemble_sizes(runs)
            regret = runs["regret"].sel(environment=environment, ensemble_size=sizes)
            kind, shape = counted[environment, name]
            counts = np.array([theory.parameter_counts(kind, **shape, ensemble_size=size) for size in sizes])
            label = str(runs["label"].values)
            for axes, numbers in zip(row, counts.T, strict=True):
                style.interval_line(axes, numbers, regret, label=label, markersize=3.5, **looks[label])
                # by turns above and below
                look = {"color": looks[label]["colour"], "xytext": (3, -7 if place % 2 else 2)}
                named.append((axes, numbers, regret.mean("seed").values, sizes, look))
        row[0].set_ylabel(f"{dataset['title'].sel(environment=environment).values}\n\nfinal regret")
        style.linear_axis(row[0], zero=False)
    for axes, title in zip(panels[-1], COLUMNS, strict=True):
        _count_axis(axes)
        axes.set_xlabel(title)
    for axes, *points, look in named:
        _name_points(axes, *points, **look)
    style.legend(figure)
    return figure


def _name_points(axes: Axes, places: np.ndarray, values: np.ndarray, sizes: list[int], **look: object) -> None:
    """Write M at the points that have room for it beside the one before."""
    lower, upper = np.log(axes.get_xlim())
    taken = -np.inf
    for size, place, value in zip(sizes, places, values, strict=True):
        across = (np.log(place) - lower) / (upper - lower)
        if size and across > taken + ROOM:
            taken = across
            text = axes.annotate(str(size), (place, value), textcoords="offset points", fontsize=6.5, **look)
            # readable on the lines
            text.set_path_effects([withStroke(linewidth=1.5, foreground="white")])


def _count_axis(axes: Axes) -> None:
    """A logarithmic axis of parameters, the more numbers the less it spans."""
    axes.set_xscale("log")
    lower, upper = axes.get_xlim()
    named = np.arange(1, 10, 0.5 if upper < 1.6 * lower else 1) if upper < 2.2 * lower else NAMED
    axes.xaxis.set_major_locator(LogLocator(base=10, subs=named, numticks=20))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.xaxis.set_minor_locator(NullLocator())
