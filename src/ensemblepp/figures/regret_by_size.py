"""Final regret of linear Ensemble++ against M for every pair of laws, beside TS (paper, linear curves by ensemble size)."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from ensemblepp.analysis.selection import agent_runs, ensemble_sizes
from ensemblepp.analysis.statistics import YARDSTICK
from ensemblepp.figures import style
from ensemblepp.randomness.distributions import in_order

NEEDS = {"ensembles": True}


def draw(dataset: xr.Dataset) -> Figure:
    """Rows are environments, columns perturbation laws, lines reference laws; the dashed line is exact Thompson sampling.

    Perturbation laws whose runs are equal, number by number, share a column.
    """
    final = dataset[["regret"]].isel(time=-1)
    pairs = final["regret"].notnull().any(["environment", "ensemble_size", "seed"]).sum(["reference", "perturbation"])
    runs = final.sel(agent=dataset["agent"].values[int(pairs.argmax("agent"))])
    regret = (
        runs["regret"].sel(ensemble_size=ensemble_sizes(runs)).dropna("reference", how="all").dropna("perturbation", how="all")
    )
    environments, sizes = dataset["environment"].values, regret["ensemble_size"].values
    columns = _columns(regret)
    figure, panels = plt.subplots(
        len(environments),
        len(columns),
        figsize=(style.PAGE, 0.9 + 1.5 * len(environments)),
        sharex=True,
        sharey="row",
        squeeze=False,
    )
    references = style.law_looks(in_order(map(str, regret["reference"].values)))
    for row, environment in zip(panels, environments, strict=True):
        for axes, laws in zip(row, columns, strict=True):
            for place, (reference, (colour, marker)) in enumerate(references.items()):
                curve = regret.sel(environment=environment, reference=reference, perturbation=laws[0])
                # side by side, so that their intervals can be seen
                beside = sizes * 2 ** (0.06 * (place - (len(references) - 1) / 2))
                style.interval_line(
                    axes, beside, curve, colour=colour, label=reference, marker=marker, linewidth=1.1, markersize=3.5
                )
            if YARDSTICK in dataset["agent"].values:
                yardstick = agent_runs(final, YARDSTICK)["regret"].sel(environment=environment, ensemble_size=0)
                style.level(axes, yardstick, colour=style.colour("TS"), label="TS", linestyle="--")
            style.size_axis(axes, sizes)
            if axes in panels[0]:
                axes.set_title(", ".join(style.LAW_LABELS.get(law, law) for law in laws))
            if axes not in panels[-1]:
                axes.set_xlabel("")
        style.regret_axis(row[0])
        row[0].set_ylabel(f"{_two_lines(dataset['title'].sel(environment=environment).values)}\nfinal regret")
    style.legend(figure, title="lines: reference law, panels: perturbation law")
    return figure


def _two_lines(title: str) -> str:
    """A panel is lower than most titles are long."""
    return str(title).replace(", ", ",\n", 1)


def _columns(regret: xr.DataArray) -> list[list[str]]:
    """Perturbation laws in the order of the configuration's, those with equal runs together."""
    columns: list[list[str]] = []
    for law in in_order(map(str, regret["perturbation"].values)):
        runs = regret.sel(perturbation=law).values
        for laws in columns:
            if np.array_equal(regret.sel(perturbation=laws[0]).values, runs, equal_nan=True):
                laws.append(law)
                break
        else:
            columns.append([law])
    return columns
