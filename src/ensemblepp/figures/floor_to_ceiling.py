"""How much of what could be learnt was: from the best constant action, 0, to a supervised fit, 1, agent by agent."""

from __future__ import annotations

import textwrap

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from ensemblepp.analysis.moderation import share_of_the_way
from ensemblepp.analysis.selection import best_constant
from ensemblepp.analysis.statistics import mean_interval
from ensemblepp.figures import style

NEEDS = {"variables": ["constant_regret", "ceiling_regret"]}

#: What lies further below the floor is drawn at the edge, with an arrow and its number.
LOWEST = -1.5


def draw(dataset: xr.Dataset) -> Figure:
    """A panel per environment, a row per agent: mean and 95 % interval over seeds of its share of the way at the horizon."""
    environments = [str(name) for name in dataset["environment"].values]
    curves = list(style.curves(dataset))
    # what the names of agents leave of the page, at 15 letters an inch
    inches = style.PAGE - 0.4 - max(len(str(look["label"])) for _, look in curves) / 15
    letters = max(12, int(15 * (inches / len(environments) - 0.1)))
    label = textwrap.fill("share of the way from best constant action to supervised ceiling", letters)
    height = 1.0 + 0.1 * len(label.splitlines()) + 0.19 * len(curves)
    figure, panels = plt.subplots(1, len(environments), figsize=(style.PAGE, height), sharex=True, sharey=True, squeeze=False)
    lowest, highest = -0.1, 1.1
    for axes, environment in zip(panels[0], environments, strict=True):
        constant = best_constant(dataset, environment).isel(time=-1, drop=True)
        axes.axvline(0, color="0.4", linewidth=1.2, linestyle="-.")
        axes.axvline(1, color="0.1", linewidth=1.2, linestyle=":")
        for row, (runs, look) in enumerate(curves):
            final = runs["regret"].sel(environment=environment).isel(time=-1, drop=True)
            if not final.notnull().any():
                continue
            share = share_of_the_way(dataset, environment, final, constant)
            mean, lower, upper = mean_interval(share.transpose("seed").values)
            lowest = max(LOWEST, min(lowest, np.nanmin([mean, lower]) - 0.05))
            highest = max(highest, np.nanmax([mean, upper]) + 0.05)
            if mean < LOWEST:
                axes.plot(LOWEST, row, marker="<", color=look["colour"], markersize=5, clip_on=False)
                axes.annotate(
                    f"{mean:.0%}", (LOWEST, row), (7, 0), textcoords="offset points", va="center", fontsize=style.SMALLEST
                )
                continue
            axes.plot(mean, row, marker="o", color=look["colour"], markersize=4.5)
            if np.isfinite(lower):
                axes.hlines(row, max(lower, LOWEST), upper, color=look["colour"], linewidth=1.4)
        title = str(dataset["title"].sel(environment=environment).values)
        axes.set_title(textwrap.fill(title, 60 // len(environments)))
        axes.xaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.set_xlabel(label, fontsize=8)
        axes.tick_params(axis="x", labelsize=style.SMALLEST)
        axes.grid(axis="y", linewidth=0.4, color="0.9")
        axes.set_axisbelow(True)
    first = panels[0, 0]
    first.set_xlim(lowest, highest)
    first.set_yticks(range(len(curves)), labels=[str(look["label"]) for _, look in curves], fontsize=8)
    first.set_ylim(len(curves) - 0.4, -0.6)
    return figure
