"""Excess regret of Ensemble++ over TS by ensemble size: what is behind the smallest M that matches it (paper, Figure 2b)."""

from __future__ import annotations

import matplotlib.pyplot as plt
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from ensemblepp.analysis.statistics import TOLERANCE, minimum_size
from ensemblepp.figures import style
from ensemblepp.figures.minimum_size import GREY, NEEDS, RULES, excesses, factors, options_of

__all__ = ["NEEDS", "draw"]

#: The axis of the excess is linear up to here and logarithmic beyond.
LINEAR = 0.1


def draw(dataset: xr.Dataset) -> Figure:
    """A panel for every environment: mean excess over TS per round against M, the tolerance, and the M that the rules give.

    Of several agents with an ensemble the first is shown.
    """
    label, sizes, excess = excesses(dataset)
    options = options_of(dataset)
    chosen = {rule: minimum_size(excess.values, rule)[0] for rule in RULES}
    # rows of panels: numbers of actions; columns: dimensions
    order = sorted(range(excess.sizes["environment"]), key=lambda place: factors(options, excess, place))
    columns = len({factors(options, excess, place)[1] for place in order})
    rows = -(-len(order) // columns)
    figure, panels = plt.subplots(
        rows, columns, figsize=(style.PAGE, 0.8 + 1.3 * rows), sharex=True, sharey=True, squeeze=False
    )
    for axes, place in zip(panels.flat, order, strict=False):
        _excess_by_size(axes, excess.isel(environment=place), sizes, label)
        for rule, (name, _, ring) in RULES.items():
            if (position := chosen[rule][place]) < len(sizes):
                mean = excess.isel(environment=place, ensemble_size=position).mean()
                axes.plot(sizes[position], mean, ring, color="black", fillstyle="none", markersize=7, label=f"M, {name}")
        axes.set_title(str(dataset["title"].sel(environment=excess["environment"].values[place]).values).replace(", ", ",\n"))
        if axes not in panels[-1]:
            axes.set_xlabel("")
    for axes in panels.flat[len(order) :]:
        axes.remove()
    figure.supylabel("excess over TS per round")
    style.legend(figure)
    return figure


def _excess_by_size(axes: Axes, excess: xr.DataArray, sizes: list[int], label: str) -> None:
    """Mean excess per round and its interval, and the tolerance."""
    axes.axhspan(-TOLERANCE, TOLERANCE, color=GREY, alpha=0.25, linewidth=0, label=f"± {TOLERANCE:g}")
    axes.axhline(0, color=style.colour("TS"), linewidth=0.8)
    style.interval_line(
        axes, sizes, excess, colour=style.colour(label), label=label, possible=style.ANY, linewidth=1, markersize=2.5
    )
    style.size_axis(axes, sizes)
    axes.set_yscale("symlog", linthresh=LINEAR)
    ticks = [10.0**power for power in range(-1, 3)]
    axes.yaxis.set_major_locator(FixedLocator([*(-tick for tick in ticks), 0, *ticks]))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_locator(NullLocator())
