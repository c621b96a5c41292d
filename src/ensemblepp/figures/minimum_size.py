"""Ensemble size at which Ensemble++ matches TS, by d and number of actions (paper, Figure 2b), and the excess behind it."""

from __future__ import annotations

import json
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from ensemblepp.analysis.selection import agent_runs, ensemble_sizes
from ensemblepp.analysis.statistics import TOLERANCE, excess_over_yardstick, minimum_size
from ensemblepp.figures import style

NEEDS = {"agents": ["ts"], "ensembles": True, "environments": ["linear_finite", "linear_sphere"]}

GREY = (0.4, 0.4, 0.4)

#: By rule: what it is called, what it asks for, and the ring around the ensemble size that it gives.
RULES = {
    "two-sided": ("paper's rule", f"first M with |excess| ≤ {TOLERANCE:g}", "o"),
    "one-sided": ("one-sided rule", f"excess ≤ {TOLERANCE:g} from M on", "s"),
}

MARKERS = "osD^v"

#: The axis of the excess is linear up to here and logarithmic beyond.
LINEAR = 0.1


def draw(dataset: xr.Dataset) -> Figure:
    """Above: M by the paper's rule and by the one-sided rule against d, a line for each number of actions.

    Below: for every environment, mean excess over TS per round against M, with the tolerance and the M that the rules give.
    Of several agents with an ensemble the first is shown.
    """
    runs = {str(name): ensemble_sizes(agent_runs(dataset[["regret"]].isel(time=-1), name)) for name in dataset["agent"].values}
    agent, sizes = next((name, sizes) for name, sizes in runs.items() if sizes != [0])
    label = str(dataset["label"].sel(agent=agent).values)
    excess = (excess_over_yardstick(dataset, agent) / dataset.attrs["horizon"]).sel(ensemble_size=sizes)
    excess = excess.transpose("seed", "environment", "ensemble_size").dropna("seed")
    options = {spec["environment"]["name"]: spec["environment"]["options"] for spec in json.loads(dataset.attrs["specs"])}
    chosen = {rule: np.stack(minimum_size(excess.values, rule), axis=-1) for rule in RULES}
    # rows of panels: numbers of actions; columns: dimensions
    order = sorted(range(excess.sizes["environment"]), key=lambda place: _factors(options, excess, place))
    columns = len({_factors(options, excess, place)[1] for place in order})
    rows = -(-len(order) // columns)

    figure = plt.figure(figsize=(max(7.4, 0.9 + 1.75 * columns), 3.7 + 1.65 * rows))
    above, below = figure.subfigures(2, 1, height_ratios=(3.0, 0.7 + 1.65 * rows))
    for axes, (rule, (name, asked, _)) in zip(above.subplots(1, 2, sharey=True), RULES.items(), strict=True):
        _sizes_by_dimension(axes, [_factors(options, excess, place) for place in order], chosen[rule][order], sizes)
        axes.set_title(f"{name}: {asked}", fontsize=9)
    above.axes[0].set_ylabel(f"M at which {label} matches TS")
    above.axes[1].legend(loc="upper left", bbox_to_anchor=(1.02, 1))
    panels = below.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    for axes, place in zip(panels.flat, order, strict=False):
        _excess_by_size(axes, excess.isel(environment=place), sizes, label)
        for rule, (name, _, ring) in RULES.items():
            if (position := chosen[rule][place, 0]) < len(sizes):
                mean = excess.isel(environment=place, ensemble_size=position).mean()
                axes.plot(sizes[position], mean, ring, color="black", fillstyle="none", markersize=8, label=f"M, {name}")
        axes.set_title(str(dataset["title"].sel(environment=excess["environment"].values[place]).values), fontsize=8)
        if axes not in panels[-1]:
            axes.set_xlabel("")
    for axes in panels.flat[len(order) :]:
        axes.remove()
    below.supylabel("excess over TS per round", fontsize=9)
    # a rule may have no M in some panel
    handles = {text: handle for axes in panels.flat for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    below.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles))
    return figure


def _factors(options: dict[str, dict[str, Any]], excess: xr.DataArray, place: int) -> tuple[float, int]:
    """(number of actions, d) of an environment; a compact set has infinitely many."""
    of = options[str(excess["environment"].values[place])]
    return of.get("actions", np.inf), of["dimension"]


def _sizes_by_dimension(axes: Axes, factors: list[tuple[float, int]], chosen: np.ndarray, sizes: list[int]) -> None:
    """Lines of M (positions: chosen, lowest, highest) against d; a size beyond the grid stands above it, hollow."""
    never = 2 * sizes[-1]
    scale = np.array([*sizes, never])
    dimensions, counts = (sorted({factor[kind] for factor in factors}) for kind in (1, 0))
    colours = sns.color_palette("flare", len(counts))
    for line, (count, colour) in enumerate(zip(counts, colours, strict=True)):
        places = [place for place, factor in enumerate(factors) if factor[0] == count]
        beside = np.array([factors[place][1] for place in places]) * 2 ** (0.08 * (line - (len(counts) - 1) / 2))
        size, lowest, highest = scale[chosen[places].T]
        text = f"{count:,.0f} actions" if np.isfinite(count) else "compact set"
        axes.plot(beside, size, color=colour, linewidth=1.4, marker=MARKERS[line % len(MARKERS)], markersize=5, label=text)
        axes.vlines(beside, lowest, highest, color=colour, linewidth=1.2)
        beyond = size == never
        axes.plot(
            beside[beyond], size[beyond], linestyle="", color="white", marker=MARKERS[line % len(MARKERS)], markersize=2.5
        )
    axes.axhspan(np.sqrt(sizes[-1] * never), never * 1.4, color=GREY, alpha=0.12, linewidth=0)
    shown = np.array([dimensions[0] / 1.15, dimensions[-1] * 1.15])
    axes.plot(shown, shown, color=GREY, linewidth=1, linestyle=":", label="M = d")
    axes.set_xscale("log")
    axes.set_xlim(*shown)
    axes.set_xticks(dimensions, labels=[str(dimension) for dimension in dimensions])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("dimension d")
    axes.set_yscale("log", base=2)
    ticks = [size for size in sizes if size & (size - 1) == 0]
    axes.set_yticks([*ticks, never], labels=[*map(str, ticks), f"> {sizes[-1]}"])
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylim(sizes[0] / 1.2, never * 1.4)


def _excess_by_size(axes: Axes, excess: xr.DataArray, sizes: list[int], label: str) -> None:
    """Mean excess per round and its interval, and the tolerance."""
    axes.axhspan(-TOLERANCE, TOLERANCE, color=GREY, alpha=0.25, linewidth=0, label=f"± {TOLERANCE:g}")
    axes.axhline(0, color=style.colour("TS"), linewidth=0.8)
    style.interval_line(axes, sizes, excess, colour=style.colour(label), label=label, linewidth=1, markersize=2.5)
    style.size_axis(axes, sizes)
    axes.set_yscale("symlog", linthresh=LINEAR)
    ticks = [10.0**power for power in range(-1, 3)]
    axes.yaxis.set_major_locator(FixedLocator([*(-tick for tick in ticks), 0, *ticks]))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.yaxis.set_minor_locator(NullLocator())
