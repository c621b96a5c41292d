"""Final regret of linear Ensemble++ for all reference x perturbation laws, relative to TS (paper, linear heat-maps)."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
import xarray as xr
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from ensemblepp.analysis.selection import agent_runs, ensemble_sizes
from ensemblepp.errors import ResultError
from ensemblepp.figures import style
from ensemblepp.randomness.distributions import in_order

#: Up to so many ensemble sizes there is room for a number in every cell.
NUMBERED = 5


def draw(dataset: xr.Dataset) -> Figure:
    """Rows are environments, columns ensemble sizes; a cell is mean final regret over seeds divided by TS's."""
    final = dataset[["regret"]].isel(time=-1)
    # the agent that ran every pair, and exact Thompson sampling, the yardstick
    pairs = final["regret"].notnull().any(["environment", "ensemble_size", "seed"]).sum(["reference", "perturbation"])
    agent = str(dataset["agent"].values[int(pairs.argmax("agent"))])
    if "ts" not in dataset["agent"].values:
        raise ResultError("the heat-map divides by exact Thompson sampling: add agent 'ts' to the study in config/studies.yaml")
    yardstick = agent_runs(final, "ts")["regret"].sel(ensemble_size=0).mean("seed")
    ran = final["regret"].sel(agent=agent).dropna("reference", how="all").dropna("perturbation", how="all")
    references, perturbations = (in_order(map(str, ran[role].values)) for role in ("reference", "perturbation"))
    ratio = ran.sel(reference=references, perturbation=perturbations).mean("seed") / yardstick
    environments, sizes = dataset["environment"].values, ensemble_sizes(final.sel(agent=agent))

    numbered = len(sizes) <= NUMBERED
    side = 1.95 if numbered else 0.92
    figure, panels = plt.subplots(
        len(environments),
        len(sizes),
        # cells are square; below the panels the laws' names need an inch
        figsize=(1.8 + side * len(sizes), 1.15 + side * len(references) / len(perturbations) * len(environments)),
        # the layout for cells of a fixed shape; the plain one may cut off what stands above them
        layout="compressed",
        squeeze=False,
        sharex=True,
        sharey=True,
    )
    shown = ratio.sel(ensemble_size=sizes).values
    norm = LogNorm(vmin=min(1.0, float(np.nanmin(shown))), vmax=max(2.0, float(np.nanmax(shown))))
    for row, environment in enumerate(environments):
        for column, size in enumerate(sizes):
            axes = panels[row, column]
            cells = ratio.sel(environment=environment, ensemble_size=size).transpose("reference", "perturbation")
            sns.heatmap(
                cells.values,
                ax=axes,
                norm=norm,
                cmap="cividis",
                annot=numbered,
                fmt=".1f",
                annot_kws={"size": 7},
                cbar=False,
                square=True,
                linewidths=0.4 if numbered else 0.2,
                xticklabels=[style.LAW_LABELS.get(law, law) for law in perturbations],
                yticklabels=references,
            )
            axes.tick_params(length=0, labelsize=7 if numbered else 6.5, pad=1)
            axes.tick_params(axis="x", labelrotation=90)
            axes.tick_params(axis="y", labelrotation=0)
            if row == 0:
                axes.set_title(f"M = {size}", fontsize=10 if numbered else 9)
        title = str(dataset["title"].sel(environment=environment).values)
        if not numbered:
            title = title.replace(", ", ",\n")
        panels[row, 0].set_ylabel(f"{title}\n\nreference", fontsize=8 if numbered else 7)
    for axes in panels[-1]:
        axes.set_xlabel("perturbation", fontsize=8 if numbered else 7)
    mappable = plt.cm.ScalarMappable(norm=norm, cmap="cividis")
    bar = figure.colorbar(mappable, ax=panels, shrink=0.7 if numbered else 0.9, pad=0.015)
    low = side * len(environments) < 2
    bar.set_label("mean final\nregret / TS" if low else "mean final regret / TS", fontsize=8 if low else 9)
    # a low bar, one row of small panels, has room for every other number
    ticks = (0.5, 1, 2, 5, 10, 20, 50, 100) if low else (0.5, 0.7, 1, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100)
    ticks = [tick for tick in ticks if norm.vmin <= tick <= norm.vmax]
    bar.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    bar.ax.tick_params(labelsize=7 if low else 8)
    bar.minorticks_off()
    return figure
