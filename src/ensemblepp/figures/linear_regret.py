"""Regret curves in linear bandits: TS against Ensemble++ and ES, a row each, by ensemble size (paper, Figure 2a)."""

from __future__ import annotations

import matplotlib.pyplot as plt
import xarray as xr
from matplotlib.figure import Figure

from ensemblepp.analysis.selection import agent_runs, ensemble_sizes
from ensemblepp.figures import style

NEEDS = {"ensembles": True}


def draw(dataset: xr.Dataset) -> Figure:
    """Columns are environments, rows are the agents with an ensemble; the dark line is TS in every panel."""
    agents = [str(name) for name in dataset["agent"].values]
    runs = {name: agent_runs(dataset, name) for name in agents}
    ensembles = [name for name in agents if ensemble_sizes(runs[name]) != [0]]
    references = [name for name in agents if name not in ensembles]
    environments = dataset["environment"].values
    figure, panels = plt.subplots(
        len(ensembles),
        len(environments),
        # a single panel is wider than its legend
        figsize=(1.0 + max(2.6 * len(environments), 4.4), 0.4 + 2.2 * len(ensembles)),
        sharex=True,
        sharey="col",
        squeeze=False,
    )
    for column, environment in enumerate(environments):
        for row, name in enumerate(ensembles):
            axes = panels[row, column]
            label = str(runs[name]["label"].values)
            sizes = ensemble_sizes(runs[name])
            for size, text, shade in style.by_size(label, sizes):
                curve = runs[name]["regret"].sel(environment=environment, ensemble_size=size)
                style.band(axes, curve, colour=shade, label=text)
            for position, reference in enumerate(references):
                label = str(runs[reference]["label"].values)
                curve = runs[reference]["regret"].sel(environment=environment, ensemble_size=0)
                style.band(axes, curve, colour=style.colour(label, position), label=label, linestyle="--")
            if row == 0:
                axes.set_title(str(dataset["title"].sel(environment=environment).values))
            if column == 0:
                axes.set_ylabel("cumulative regret")
            style.round_axis(axes, dataset.attrs["horizon"])
            if row < len(ensembles) - 1:
                axes.set_xlabel("")
        # only now: a limit that is set stays, and the rows of a column share theirs
        panels[0, column].set_ylim(bottom=0)
    for row in range(len(ensembles)):
        panels[row, -1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    return figure
