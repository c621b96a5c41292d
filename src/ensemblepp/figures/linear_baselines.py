"""Final regret of linear agents by ensemble size, with a line for each agent that has none (baselines, varying contexts)."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from ensemblepp.analysis.selection import agent_runs, ensemble_sizes
from ensemblepp.figures import style

NEEDS = {"ensembles": True}

MARKERS = "osD^v"

#: Of agents without an ensemble, which share a panel and often a value.
LINES = {"TS": "--", "TS (inflated)": (0, (8, 2)), "LinUCB": "-.", "Greedy": ":", "RRLS": (0, (5, 1, 1, 1, 1, 1))}


def draw(dataset: xr.Dataset) -> Figure:
    """One panel per environment: means over seeds with 95 % intervals."""
    final = dataset[["regret"]].isel(time=-1)
    runs = {str(name): agent_runs(final, name) for name in dataset["agent"].values}
    sizes = {name: ensemble_sizes(of) for name, of in runs.items()}
    ensembles = [name for name in runs if sizes[name] != [0]]
    single = [name for name in runs if name not in ensembles]
    shown = sorted({size for name in ensembles for size in sizes[name]})
    environments = dataset["environment"].values
    columns = min(len(environments), 2 if len(environments) % 2 == 0 else 3)
    rows = -(-len(environments) // columns)
    figure, panels = plt.subplots(
        rows, columns, figsize=(style.COLUMN if columns < 3 else style.PAGE, 0.7 + 2.0 * rows), squeeze=False
    )
    for place, (axes, environment) in enumerate(zip(panels.flat, environments, strict=False)):
        for position, name in enumerate(single):
            regret, look = runs[name]["regret"].sel(environment=environment, ensemble_size=0), _look(runs[name], position)
            style.level(axes, regret, **look, linestyle=LINES.get(look["label"], "-"))
        for position, name in enumerate(ensembles):
            style.interval_line(
                axes,
                # side by side, so that their intervals can be seen
                np.array(sizes[name]) * 2 ** (0.12 * (position - (len(ensembles) - 1) / 2)),
                runs[name]["regret"].sel(environment=environment, ensemble_size=sizes[name]),
                **_look(runs[name], position),
                marker=MARKERS[position % len(MARKERS)],
            )
        style.size_axis(axes, shown)
        style.regret_axis(axes)
        axes.set_title(_two_lines(str(dataset["title"].sel(environment=environment).values)))
        if place + columns < len(environments):
            axes.set_xlabel("")
        if place % columns == 0:
            axes.set_ylabel("final regret")
    free = list(panels.flat)[len(environments) :]
    for axes in free:
        axes.set_axis_off()
    style.legend(figure)
    return figure


def _look(runs: xr.Dataset, position: int) -> dict[str, object]:
    label = str(runs["label"].values)
    return {"label": label, "colour": style.colour(label, position)}


def _two_lines(title: str) -> str:
    """A title that is wider than a panel goes on after its last comma."""
    head, comma, tail = title.rpartition(", ")
    return f"{head},\n{tail}" if comma and len(title) > 26 else title
