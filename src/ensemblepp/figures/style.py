"""The one style of all figures: colour-blind-safe colours, bands for 95 % intervals, the same agent in the same colour."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
import seaborn as sns
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.ticker import EngFormatter

from ensemblepp.statistics import mean_interval

_PALETTE = sns.color_palette("colorblind")

#: Agents that the paper's figures share keep their colour everywhere; others take the remaining ones in order.
COLOURS = {"TS": (0.15, 0.15, 0.15), "Ensemble++": _PALETTE[0], "ES": _PALETTE[1], "Greedy": _PALETTE[4]}
_OTHERS = [colour for index, colour in enumerate(_PALETTE) if index not in (0, 1, 4)]


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


def round_axis(axes: Axes, horizon: int) -> None:
    """A time axis with short numbers (2k for 2,000)."""
    axes.set_xlim(0, horizon)
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlabel("round")
