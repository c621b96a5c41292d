"""Human reviews over time, beside those of a fixed threshold and of random review at the same accuracy."""

from __future__ import annotations

import matplotlib.pyplot as plt
import xarray as xr
from matplotlib.figure import Figure

from ensemblepp.analysis import moderation
from ensemblepp.figures import style

NEEDS = {"environments": ["moderation"], "variables": ["threshold_regret", "constant_regret"]}

#: How the baselines are drawn.
LINES = {"fixed threshold": ((0.1, 0.1, 0.1), "--"), "random review": ((0.45, 0.45, 0.45), ":")}


def draw(dataset: xr.Dataset) -> Figure:
    """A row per environment, a panel per agent: posts reviewed so far, mean over seeds with the 95 % interval."""
    environments = [str(name) for name in dataset["environment"].values]
    curves = list(style.curves(dataset))
    figure, panels = plt.subplots(
        len(environments),
        len(curves),
        figsize=(style.PAGE, 0.9 + 2.1 * len(environments)),
        sharex=True,
        sharey="row",
        squeeze=False,
    )
    for row, environment in zip(panels, environments, strict=True):
        for axes, (runs, look) in zip(row, curves, strict=True):
            run = runs.sel(environment=environment)
            found = moderation.decisions(dataset, environment, run["regret"], run["optimal"])
            missed = found.missed.isel(time=-1, drop=True).transpose("seed")
            style.band(axes, found.taken, **look | {"linestyle": "-"})
            for name, reviews in moderation.BASELINES.items():
                colour, line = LINES[name]
                style.band(
                    axes, reviews(dataset, environment, missed), colour=colour, label=name, linestyle=line, linewidth=1.3
                )
            accuracy = float(1 - missed.mean() / dataset.attrs["horizon"])
            axes.set_title(f"{look['label']}\naccuracy {accuracy:.1%}")
            style.round_axis(axes, dataset.attrs["horizon"])
        style.linear_axis(row[0])
        title = str(dataset["title"].sel(environment=environment).values)
        row[0].set_ylabel("posts reviewed so far" if len(environments) == 1 else f"{title}\nposts reviewed so far")
    for axes in panels[:-1].flat:
        axes.set_xlabel("")
    style.legend(figure, first=[*(str(look["label"]) for _, look in curves), "random review", "fixed threshold"])
    return figure
