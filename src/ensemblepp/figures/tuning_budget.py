"""Regret by the number of settings that were tried: is an agent good as it comes, or when it is tuned? (not in the paper)"""

from __future__ import annotations

import matplotlib.pyplot as plt
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from ensemblepp.analysis import tuning
from ensemblepp.figures import style

#: Where the values that an agent comes with stand, on the axis of k.
UNTUNED = 0.6


def draw(dataset: xr.Dataset) -> Figure:
    """One panel per environment: expected regret of the best of k settings, and left of k = 1 that of the agent untuned."""
    environments = [str(name) for name in dataset["environment"].values]
    columns = min(2, len(environments))
    rows = -(-len(environments) // columns)
    figure, panels = plt.subplots(rows, columns, figsize=(style.COLUMN, 0.9 + 2.2 * rows), squeeze=False)
    settings = tuning.settings(dataset)
    labels = {name: str(dataset["label"].sel(agent=name).values) for name in settings}
    looks = style.looks(list(labels.values()))
    crowded = len(labels) > style.BANDS
    for axes, environment in zip(panels.flat, environments, strict=False):
        longest = 1
        axes.set_xscale("log")
        for agent, label in labels.items():
            curve = tuning.budget_curve(dataset, settings[agent], environment)
            if curve is None:
                continue
            longest = max(longest, curve.sizes["time"])
            style.curve(axes, curve, crowded=crowded, **looks[label], label=label)
            untuned = float(tuning.final_regret(dataset, agent, environment).mean("seed"))
            axes.plot([UNTUNED], [untuned], marker="D", markersize=4, color=looks[label]["colour"], linestyle="none")
        counts = [2**power for power in range(longest.bit_length())]
        axes.set_xlim(UNTUNED / 1.2, max(longest, 2) * style.beside(axes, len(axes.collections) + 1 if crowded else 2))
        axes.xaxis.set_major_locator(FixedLocator([UNTUNED, *counts]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda place, _: "as is" if place < 1 else f"{place:.0f}"))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.set_ylim(bottom=0)
        axes.set_xlabel("settings tried, k")
        axes.set_title(str(dataset["title"].sel(environment=environment).values))
    for row in panels:
        row[0].set_ylabel("regret of the best of k")
    free = list(panels.flat)[len(environments) :]
    for axes in free:
        axes.set_axis_off()
    style.legend(figure, free[-1] if free else None)
    return figure
