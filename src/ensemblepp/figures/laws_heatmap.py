"""Final regret of linear Ensemble++ for all reference x perturbation laws, relative to TS (paper, linear heat-maps)."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
import xarray as xr
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from ensemblepp.distributions import LAWS
from ensemblepp.errors import ResultError
from ensemblepp.selection import agent_runs, ensemble_sizes


def draw(dataset: xr.Dataset) -> Figure:
    """Rows are environments, columns ensemble sizes; a cell is mean final regret over seeds divided by TS's."""
    final = dataset["regret"].isel(time=-1)
    # the agent that ran every pair, and exact Thompson sampling, the yardstick
    pairs = final.notnull().any(["environment", "ensemble_size", "seed"]).sum(["reference", "perturbation"])
    agent = str(dataset["agent"].values[int(pairs.argmax("agent"))])
    if "ts" not in dataset["agent"].values:
        raise ResultError("the heat-map divides by exact Thompson sampling: add agent 'ts' to the study in config/studies.yaml")
    yardstick = agent_runs(dataset, "ts")["regret"].isel(time=-1).sel(ensemble_size=0).mean("seed")
    ran = final.sel(agent=agent).dropna("reference", how="all").dropna("perturbation", how="all")
    references, perturbations = ([law for law in LAWS if law in ran[name].values] for name in ("reference", "perturbation"))
    ratio = ran.sel(reference=references, perturbation=perturbations).mean("seed") / yardstick
    environments, sizes = dataset["environment"].values, ensemble_sizes(dataset.sel(agent=agent))

    figure, panels = plt.subplots(
        len(environments),
        len(sizes),
        figsize=(1.6 + 1.95 * len(sizes), 0.9 + 1.95 * len(environments)),
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
                annot=True,
                fmt=".1f",
                annot_kws={"size": 7},
                cbar=False,
                square=True,
                linewidths=0.4,
                xticklabels=perturbations,
                yticklabels=references,
            )
            axes.tick_params(length=0, labelsize=7)
            axes.tick_params(axis="x", labelrotation=90)
            axes.tick_params(axis="y", labelrotation=0)
            if row == 0:
                axes.set_title(f"M = {size}")
        panels[row, 0].set_ylabel(f"{dataset['title'].sel(environment=environment).values}\n\nreference", fontsize=8)
    for axes in panels[-1]:
        axes.set_xlabel("perturbation", fontsize=8)
    mappable = plt.cm.ScalarMappable(norm=norm, cmap="cividis")
    bar = figure.colorbar(mappable, ax=panels, shrink=0.7, pad=0.015, label="mean final regret / TS")
    ticks = [tick for tick in (0.5, 0.7, 1, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100) if norm.vmin <= tick <= norm.vmax]
    bar.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    bar.minorticks_off()
    return figure
