"""The one style of all figures: colour-blind-safe colours, bands for 95 % intervals, the same agent in the same colour."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, NullFormatter, NullLocator

from ensemblepp.statistics import mean_interval

_PALETTE = sns.color_palette("colorblind")
#: Of Paul Tol's "muted" scheme, for when the palette above is used up.
_INDIGO, _WINE, _TEAL, _OLIVE, _ROSE, _PURPLE = sns.color_palette(
    ["#332288", "#882255", "#44AA99", "#999933", "#CC6677", "#AA4499"]
)

#: Agents that several figures share keep their colour everywhere; others take the free ones in order. Relatives stand beside
#: each other: inflated agents are lighter, the classical ensemble sampling is redder.
COLOURS = {
    "TS": (0.15, 0.15, 0.15),
    "TS (inflated)": _PALETTE[7],
    "Ensemble++": _PALETTE[0],
    "Ensemble++ (inflated)": _PALETTE[9],
    "Ensemble++ (exact subspace)": _INDIGO,
    "ES": _PALETTE[1],
    "ES (independent members)": _PALETTE[3],
    "RRLS": _PALETTE[5],
    "LinUCB": _PALETTE[2],
    "Greedy": _PALETTE[4],
}
_OTHERS = [_WINE, _TEAL, _OLIVE, _ROSE, _PURPLE, _PALETTE[6], _PALETTE[8]]

#: Laws of the reference, with the marker that tells them apart in print: (colour, marker). The pair of laws of Ensemble++ and
#: of ES have the colour of these agents.
LAWS = {
    "gaussian": (_PALETTE[0], "o"),
    "sphere": (_PALETTE[9], "s"),
    "cube": (_PALETTE[2], "^"),
    "coordinate": (_PALETTE[1], "D"),
    "sparse": (_PALETTE[4], "v"),
}

#: What a law is called where its name in the configuration says too little.
LAW_LABELS = {"raw_gaussian": "N(0, I/M)"}


def apply() -> None:
    """Set matplotlib's defaults."""
    sns.set_theme(context="paper", style="ticks", palette="colorblind")
    mpl.rcParams.update(
        {
            "figure.constrained_layout.use": True,
            "savefig.dpi": 160,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": 10,
            "axes.labelsize": 9,
            "legend.frameon": False,
            "legend.fontsize": 8,
            "svg.hashsalt": "ensemblepp",
            "pdf.fonttype": 42,
        }
    )


def colour(label: str, position: int = 0) -> tuple[float, ...]:
    """The colour of an agent by its label; `position` chooses among the free colours for agents without their own."""
    return COLOURS.get(label, _OTHERS[position % len(_OTHERS)])


def by_size(label: str, sizes: Sequence[int], position: int = 0) -> list[tuple[int, str, tuple[float, ...]]]:
    """(ensemble size, text for the legend, colour) for an agent's curves: lighter is smaller; one size needs no mention."""
    full = colour(label, position)
    if len(sizes) == 1:
        return [(sizes[0], label, full)]
    shades = sns.light_palette(full, n_colors=len(sizes) + 2)[2:]
    return [(size, f"{label}, M = {size}", shade) for size, shade in zip(sizes, shades, strict=True)]


def band(axes: Axes, curve: xr.DataArray, *, colour: tuple[float, ...], label: str, **line) -> None:
    """Mean over seeds and its 95 % interval against time; `curve` has the dimensions seed and time, in any order."""
    mean, lower, upper = mean_interval(curve.transpose("seed", "time").values, axis=0)
    time = curve["time"].values
    axes.plot(time, mean, color=colour, label=label, **{"linewidth": 1.6, **line})
    if np.isfinite(lower).any():
        axes.fill_between(time, lower, upper, color=colour, alpha=0.18, linewidth=0)


def interval_line(
    axes: Axes, places: Sequence[float], values: xr.DataArray, *, colour: tuple[float, ...], label: str, **line
) -> None:
    """Mean over seeds and its 95 % interval, as bars, at each of `places`; `values` has the dimension seed and one more."""
    mean, lower, upper = mean_interval(values.transpose("seed", ...).values, axis=0)
    axes.plot(places, mean, color=colour, label=label, **{"linewidth": 1.4, "marker": "o", "markersize": 4} | line)
    if np.isfinite(lower).any():
        axes.vlines(places, lower, upper, color=colour, linewidth=1)


def level(axes: Axes, values: xr.DataArray, *, colour: tuple[float, ...], label: str, **line) -> None:
    """Mean over seeds and its 95 % interval as a horizontal line and band, for an agent without an ensemble size."""
    mean, lower, upper = mean_interval(values.values)
    axes.axhline(mean, color=colour, label=label, **{"linewidth": 1.4} | line)
    if np.isfinite(lower):
        axes.axhspan(lower, upper, color=colour, alpha=0.18, linewidth=0)


def size_axis(axes: Axes, sizes: Sequence[int]) -> None:
    """A logarithmic axis of ensemble sizes with their numbers; of many sizes, every other power of two."""
    axes.set_xscale("log", base=2)
    axes.set_xlim(min(sizes) / 2**0.4, max(sizes) * 2**0.4)
    shown = list(sizes) if len(sizes) <= 6 else [size for size in sizes if size & (size - 1) == 0][::2]
    axes.set_xticks(shown, labels=[str(size) for size in shown])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("ensemble size M")


def regret_axis(axes: Axes) -> None:
    """A logarithmic axis of regret with plain numbers, the more of them the less it spans; to be called when all is drawn.

    It ends a factor 3 below the lowest line: an interval that reaches down to zero has no end on it.
    """
    axes.set_yscale("log")
    lower, upper = axes.get_ylim()
    lines = [line for beside in axes.get_shared_y_axes().get_siblings(axes) for line in beside.get_lines()]
    lower = max(lower, min(float(np.min(line.get_ydata())) for line in lines) / 3)
    axes.set_ylim(lower, upper)
    named = (1, 2, 5) if upper > 6 * lower else (1, 1.5, 2, 3, 4, 5, 7) if upper > 2.5 * lower else (1, 1.5, *range(2, 10))
    axes.yaxis.set_major_locator(LogLocator(base=10, subs=named, numticks=20))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}" if value >= 10 else f"{value:g}"))
    axes.yaxis.set_minor_locator(LogLocator(base=10, subs=range(1, 10), numticks=100))
    axes.yaxis.set_minor_formatter(NullFormatter())


def round_axis(axes: Axes, horizon: int) -> None:
    """A time axis with short numbers (2k for 2,000)."""
    axes.set_xlim(0, horizon)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlabel("round")


def sign(figure: Figure, dataset: xr.Dataset) -> None:
    """Say below a figure what it was made from, for whoever meets it without its caption."""
    facts = dataset.attrs
    text = f"study {facts['study']}, scale {facts['scale']}: {facts['seeds']} seeds, {facts['horizon']:,} rounds"
    strip = 0.18 / figure.get_figheight()
    figure.get_layout_engine().set(rect=(0, strip, 1, 1 - strip))
    figure.text(0.995, 0.25 * strip, text, ha="right", va="bottom", fontsize=7, color=(0.45, 0.45, 0.45))
