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
from matplotlib.transforms import Bbox

from ensemblepp.analysis import theory
from ensemblepp.analysis.selection import agent_runs, ensemble_sizes, environment_kinds
from ensemblepp.figures import style

NEEDS = {
    "environments": ["quadratic", "vector_quadratic", "neural"],
    "agent_kinds": ["neural_ensemblepp", "ensembleplus", "epinet", "greedy"],
}

#: The seeds of these kinds differ far more than agents do, so what is shown is the difference to `PAIRED`, seed by seed.
BY_SEED = ("neural",)
PAIRED = "greedy"

#: Where M may stand beside its point, in points, and how: the first place that is free is taken.
BESIDE = [
    (across, along, "center" if not across else "left" if across > 0 else "right")
    for along, across in ((4, 0), (-11, 0), (3, 3), (-10, 3), (3, -3), (-10, -3), (11, 0), (-18, 0), (11, 4), (-18, 4), (18, 0))
]

#: What is written on an axis of parameters, times powers of ten.
NAMED = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 7)

COLUMNS = ("all parameters", "trainable parameters")


def draw(dataset: xr.Dataset) -> Figure:
    """Rows are environments; left: frozen priors count, right: they do not. Numbers at the points are ensemble sizes M.

    Where seeds differ far more than agents do, the difference to Greedy is shown, by seed.
    """
    final = dataset[["regret"]].isel(time=-1)
    looks = style.looks([str(label) for label in dataset["label"].values])
    specs = json.loads(dataset.attrs["specs"])
    networks = {(spec["environment"]["name"], spec["agent"]["name"]): theory.network_of(spec) for spec in specs}
    counted = {place: network for place, network in networks.items() if network}
    environments = [name for name in dataset["environment"].values if name in {place[0] for place in counted}]
    figure, panels = plt.subplots(
        len(environments),
        len(COLUMNS),
        figsize=(style.PAGE, 0.7 + 2.1 * len(environments)),
        sharex="col",
        sharey="row",
        squeeze=False,
    )
    named: list[tuple[Axes, np.ndarray, np.ndarray, list[int], tuple[float, ...]]] = []
    kinds = environment_kinds(dataset)
    for row, environment in zip(panels, environments, strict=True):
        agents = [name for name in dataset["agent"].values if (environment, name) in counted]
        paired = kinds[str(environment)] in BY_SEED and PAIRED in agents
        for name in agents:
            runs = agent_runs(final, name)
            sizes = ensemble_sizes(runs)
            regret = runs["regret"].sel(environment=environment, ensemble_size=sizes)
            if paired:
                regret = regret - agent_runs(final, PAIRED)["regret"].sel(environment=environment, ensemble_size=0, drop=True)
            kind, shape = counted[environment, name]
            counts = np.array([theory.parameter_counts(kind, **shape, ensemble_size=size) for size in sizes])
            label = str(runs["label"].values)
            for axes, numbers in zip(row, counts.T, strict=True):
                possible = style.ANY if paired else style.REGRET
                style.interval_line(axes, numbers, regret, label=label, possible=possible, markersize=3.5, **looks[label])
                named.append((axes, numbers, regret.mean("seed").values, sizes, style.dark(looks[label]["colour"])))
        shown = "final regret\nminus Greedy's" if paired else "final regret"
        row[0].set_ylabel(f"{dataset['title'].sel(environment=environment).values}\n{shown}")
        if not paired:
            style.linear_axis(row[0], zero=False)
    for axes, title in zip(panels[-1], COLUMNS, strict=True):
        _count_axis(axes)
        axes.set_xlabel(title)
    style.legend(figure)
    # what is free is known when the panels have their places
    figure.draw_without_rendering()
    for axes in panels.flat:
        _name_points(axes, [points for of, *points in named if of is axes])
    return figure


def _name_points(axes: Axes, lines: list[list]) -> None:
    """Write M at every point of an agent with an ensemble, not over another M nor over another point."""
    renderer, zoom = axes.figure.canvas.get_renderer(), axes.figure.dpi / 72
    points = np.concatenate([axes.transData.transform(np.column_stack([places, values])) for places, values, *_ in lines])
    taken: list[Bbox] = [Bbox.from_bounds(x - 2 * zoom, y - 2 * zoom, 4 * zoom, 4 * zoom) for x, y in points]
    for places, values, sizes, colour in lines:
        for size, place, value in zip(sizes, places, values, strict=True):
            if not size:
                continue
            text = axes.annotate(
                str(size), (place, value), textcoords="offset points", xytext=(0, 0), color=colour, fontsize=style.SMALLEST
            )
            # readable on the lines
            text.set_path_effects([withStroke(linewidth=1.5, foreground="white")])
            found = []
            for across, along, side in BESIDE:
                text.set(position=(across, along), ha=side)
                box = text.get_window_extent(renderer)
                # the more of it is covered, the worse; of equals the first
                found.append((sum(_shared(box, other) for other in taken), len(found), (across, along, side), box))
                if found[-1][0] == 0:
                    break
            _, _, (across, along, side), box = min(found, key=lambda choice: choice[:2])
            text.set(position=(across, along), ha=side)
            text.set_in_layout(False)
            taken.append(box)


def _shared(box: Bbox, other: Bbox) -> float:
    """The area of what two boxes have in common."""
    common = Bbox.intersection(box, other)
    return common.width * common.height if common else 0.0


def _count_axis(axes: Axes) -> None:
    """A logarithmic axis of parameters, the more numbers the less it spans."""
    axes.set_xscale("log")
    lower, upper = axes.get_xlim()
    named = (
        np.arange(1, 10, 0.5 if upper < 1.6 * lower else 1)
        if upper < 2.2 * lower
        else NAMED
        if upper < 5 * lower
        else (1, 1.5, 2, 3, 5)
    )
    axes.xaxis.set_major_locator(LogLocator(base=10, subs=named, numticks=20))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.xaxis.set_minor_locator(NullLocator())
