"""Regret curves in linear bandits: TS against Ensemble++ and ES, a row each, by ensemble size (paper, Figure 2a)."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ensemblepp.analysis.selection import agent_runs, ensemble_sizes
from ensemblepp.figures import style

NEEDS = {"ensembles": True}

#: Share of the rounds that the axis of regret leaves out at the start.
START = 0.02


def draw(dataset: xr.Dataset) -> Figure:
    """Columns are environments, rows are the agents with an ensemble, at four of its sizes; the dark line is TS everywhere."""
    agents = [str(name) for name in dataset["agent"].values]
    runs = {name: agent_runs(dataset, name) for name in agents}
    ensembles = [name for name in agents if ensemble_sizes(runs[name]) != [0]]
    references = [name for name in agents if name not in ensembles]
    environments = dataset["environment"].values
    figure, panels = plt.subplots(
        len(ensembles),
        len(environments),
        figsize=(style.COLUMN if len(environments) < 3 else style.PAGE, 0.4 + 1.75 * len(ensembles)),
        sharex=True,
        sharey="col",
        squeeze=False,
    )
    named: dict[Axes, list[tuple[float, str, tuple[float, ...]]]] = {axes: [] for axes in panels.flat}
    for column, environment in enumerate(environments):
        for row, name in enumerate(ensembles):
            axes = panels[row, column]
            label = str(runs[name]["label"].values)
            for size, text, shade in style.by_size(label, style.few(ensemble_sizes(runs[name]))):
                curve = runs[name]["regret"].sel(environment=environment, ensemble_size=size)
                style.band(axes, curve, colour=shade, label=text, linewidth=1.3)
                named[axes].append((float(curve.isel(time=-1).mean()), f"M = {size}", style.dark(shade)))
            for position, reference in enumerate(references):
                label = str(runs[reference]["label"].values)
                curve = runs[reference]["regret"].sel(environment=environment, ensemble_size=0)
                colour = style.colour(label, position)
                style.band(axes, curve, colour=colour, label=label, linestyle="--", linewidth=1.3)
                named[axes].append((float(curve.isel(time=-1).mean()), label, colour))
            if row == 0:
                axes.set_title(str(dataset["title"].sel(environment=environment).values))
            if column == 0:
                axes.set_ylabel(f"{_lines(str(runs[name]['label'].values))}\ncumulative regret")
            style.round_axis(axes, dataset.attrs["horizon"])
            if row < len(ensembles) - 1:
                axes.set_xlabel("")
        style.regret_axis(panels[0, column])
        panels[0, column].set_ylim(bottom=_lowest(panels[:, column]))
    for axes, of_panel in named.items():
        style.ends(axes, of_panel)
    return figure


def _lines(label: str) -> str:
    """A panel is lower than the label of a variant is long."""
    return label.replace(" (", "\n(")


def _lowest(panels: Sequence[Axes]) -> float:
    """Where the axis of a column begins: the least regret after a fiftieth of the rounds, before which all agents are alike."""
    lines = [line.get_xydata() for axes in panels for line in axes.get_lines()]
    return min(float(line[line[:, 0] >= START * line[-1, 0], 1].min()) for line in lines) / 1.2
