"""Final regret of linear Ensemble++ for all reference x perturbation laws, relative to TS (paper, linear heat-maps)."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
import xarray as xr
from matplotlib.backend_bases import FigureCanvasBase
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure

from ensemblepp.analysis.selection import agent_runs, ensemble_sizes
from ensemblepp.figures import style
from ensemblepp.randomness.distributions import in_order

NEEDS = {"agents": ["ts"], "ensembles": True}

#: Colours go from a share of TS's regret to its inverse, the same in all figures; beyond are the last ones.
STRONGEST = 8

#: Blue is less regret than TS, red is more: told apart by all who see colours at all.
COLOURS = "RdBu_r"


def draw(dataset: xr.Dataset) -> Figure:
    """Rows are environments, columns ensemble sizes; a cell is mean final regret over seeds divided by TS's."""
    final = dataset[["regret"]].isel(time=-1)
    # the agent that ran every pair, and exact Thompson sampling, the yardstick
    pairs = final["regret"].notnull().any(["environment", "ensemble_size", "seed"]).sum(["reference", "perturbation"])
    agent = str(dataset["agent"].values[int(pairs.argmax("agent"))])
    yardstick = agent_runs(final, "ts")["regret"].sel(ensemble_size=0).mean("seed")
    ran = final["regret"].sel(agent=agent).dropna("reference", how="all").dropna("perturbation", how="all")
    references, perturbations = (in_order(map(str, ran[role].values)) for role in ("reference", "perturbation"))
    ratio = ran.sel(reference=references, perturbation=perturbations).mean("seed") / yardstick
    environments, sizes = dataset["environment"].values, style.few(ensemble_sizes(final.sel(agent=agent)))

    figure, panels = plt.subplots(
        len(environments),
        len(sizes),
        # a row of cells is a line of type high; below the panels stand the laws' names
        figsize=(style.PAGE, 1.35 + (0.15 + 0.15 * len(references)) * len(environments)),
        squeeze=False,
        sharex=True,
        sharey=True,
    )
    # a canvas that draws nothing: after every panel seaborn draws all, to see whether labels overlap, which are turned below
    canvas = figure.canvas
    figure.set_canvas(FigureCanvasBase(figure))
    norm = LogNorm(vmin=1 / STRONGEST, vmax=STRONGEST)
    for row, environment in enumerate(environments):
        for column, size in enumerate(sizes):
            axes = panels[row, column]
            cells = ratio.sel(environment=environment, ensemble_size=size).transpose("reference", "perturbation").values
            sns.heatmap(
                cells,
                ax=axes,
                norm=norm,
                cmap=COLOURS,
                annot=np.vectorize(_short)(cells),
                fmt="",
                annot_kws={"size": style.SMALLEST},
                cbar=False,
                linewidths=0.3,
                xticklabels=[style.LAW_LABELS.get(law, law) for law in perturbations],
                yticklabels=references,
            )
            axes.tick_params(length=0, pad=1)
            axes.tick_params(axis="x", labelrotation=90)
            axes.tick_params(axis="y", labelrotation=0)
            if row == 0:
                axes.set_title(f"M = {size}")
        title = str(dataset["title"].sel(environment=environment).values).replace(", ", ",\n")
        panels[row, 0].set_ylabel(title, fontsize=style.SMALLEST)
    figure.set_canvas(canvas)
    for axes in panels[-1]:
        axes.set_xlabel("perturbation")
    figure.supylabel("reference")
    mappable = plt.cm.ScalarMappable(norm=norm, cmap=COLOURS)
    bar = figure.colorbar(mappable, ax=panels, orientation="horizontal", location="top", extend="both", aspect=50, shrink=0.6)
    bar.set_label("mean final regret / TS")
    ticks = [STRONGEST ** (place / 3) for place in range(-3, 4)]
    bar.set_ticks(ticks, labels=[f"{tick:g}" for tick in np.round(ticks, 3)])
    bar.minorticks_off()
    return figure


def _short(ratio: float) -> str:
    """With two digits, three from 100 on; nothing where nothing ran."""
    return "" if np.isnan(ratio) else f"{ratio:.1f}" if ratio < 9.95 else f"{ratio:.0f}"
