"""Ensemble size at which Ensemble++ matches TS, by d and number of actions (paper, Figure 2b)."""

from __future__ import annotations

import json
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

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


def draw(dataset: xr.Dataset) -> Figure:
    """M by the paper's rule and by the one-sided rule against d, a line for each number of actions.

    Of several agents with an ensemble the first is shown.
    """
    label, sizes, excess = excesses(dataset)
    options = options_of(dataset)
    chosen = {rule: np.stack(minimum_size(excess.values, rule), axis=-1) for rule in RULES}
    places = range(excess.sizes["environment"])
    figure, panels = plt.subplots(1, 2, figsize=(style.PAGE, 2.9), sharey=True)
    for axes, (rule, (name, asked, _)) in zip(panels, RULES.items(), strict=True):
        _sizes_by_dimension(axes, [factors(options, excess, place) for place in places], chosen[rule], sizes)
        axes.set_title(f"{name}: {asked}")
    panels[0].set_ylabel(f"M at which {label}\nmatches TS")
    style.legend(figure)
    return figure


def excesses(dataset: xr.Dataset) -> tuple[str, list[int], xr.DataArray]:
    """Label and ensemble sizes of the first agent with an ensemble, and its excess per round (seed, environment, M)."""
    runs = {str(name): ensemble_sizes(agent_runs(dataset[["regret"]].isel(time=-1), name)) for name in dataset["agent"].values}
    agent, sizes = next((name, sizes) for name, sizes in runs.items() if sizes != [0])
    excess = (excess_over_yardstick(dataset, agent) / dataset.attrs["horizon"]).sel(ensemble_size=sizes)
    excess = excess.transpose("seed", "environment", "ensemble_size").dropna("seed")
    return str(dataset["label"].sel(agent=agent).values), sizes, excess


def options_of(dataset: xr.Dataset) -> dict[str, dict[str, Any]]:
    """The options of every environment."""
    return {spec["environment"]["name"]: spec["environment"]["options"] for spec in json.loads(dataset.attrs["specs"])}


def factors(options: dict[str, dict[str, Any]], excess: xr.DataArray, place: int) -> tuple[float, int]:
    """(number of actions, d) of an environment; a compact set has infinitely many."""
    of = options[str(excess["environment"].values[place])]
    return of.get("actions", np.inf), of["dimension"]


def _sizes_by_dimension(axes: Axes, factors: list[tuple[float, int]], chosen: np.ndarray, sizes: list[int]) -> None:
    """Lines of M (positions: chosen, lowest, highest) against d; a size beyond the grid stands above it, hollow."""
    never = 2 * sizes[-1]
    scale = np.array([*sizes, never])
    dimensions, counts = (sorted({factor[kind] for factor in factors}) for kind in (1, 0))
    colours = style.sequence(len(counts))
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
