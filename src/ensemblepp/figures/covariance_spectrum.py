"""Does A A^T track the posterior covariance? Its extreme eigenvalues over time and by ensemble size (paper, Lemma 4.2)."""

from __future__ import annotations

import json

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from ensemblepp.analysis import theory
from ensemblepp.analysis.selection import agent_runs, ensemble_sizes
from ensemblepp.figures import style

NEEDS = {"variables": ["tracking_low", "tracking_high"], "environments": ["linear_finite", "linear_sphere"]}

#: Of the seeds, the share that the bands hold.
SHARE = 0.95

ENDS = {"largest": "tracking_high", "smallest": "tracking_low"}
EXTREMES = dict(zip(ENDS, (style.COLOURS["ES"], style.COLOURS["Ensemble++"]), strict=True))
GREY = (0.35, 0.35, 0.35)


def draw(dataset: xr.Dataset) -> Figure:
    """Columns are environments. Above: smallest and largest eigenvalue of Sigma^(-1/2) A A^T Sigma^(-1/2) over time, by M.

    Below: how far the two ever went, against M, up to the M that the lemma asks for at the environment's d and horizon.
    Lines are medians over seeds, bands hold the middle 95 % of them.
    """
    tracked = dataset["tracking_high"].notnull()
    agent = str(dataset["agent"].values[int(tracked.sum([name for name in tracked.dims if name != "agent"]).argmax("agent"))])
    runs = agent_runs(dataset, agent)
    sizes = ensemble_sizes(runs)
    shades = dict(zip(sizes, style.sequence(len(sizes)), strict=True))
    environments = dataset["environment"].values
    specs = [spec["environment"] for spec in json.loads(dataset.attrs["specs"])]
    figure, panels = plt.subplots(2, len(environments), figsize=(style.PAGE, 4.6), sharey="row", squeeze=False)
    for (above, below), environment in zip(panels.T, environments, strict=True):
        ends = {end: runs[name].sel(environment=environment).clip(min=0) for end, name in ENDS.items()}
        for size in sizes:
            for end, values in ends.items():
                label = f"M = {size}" if end == "largest" else None
                _band(above, values["time"].values, values.sel(ensemble_size=size), shades[size], label)
        for end, values in ends.items():
            furthest = (values.max if end == "largest" else values.min)("time").sel(ensemble_size=sizes)
            _band(below, np.array(sizes), furthest, EXTREMES[end], f"{end} over time", marker="o", markersize=3)
        options = next(spec for spec in specs if spec["name"] == environment)["options"]
        dimension, variance = options["dimension"], options["prior_variance"]
        asked = theory.tracking_size(dimension, dataset.attrs["horizon"], variance)
        _edges(below, dimension, sizes[0], 2 * asked)
        below.axvline(asked, color=GREY, linewidth=1.2, linestyle="--", label="M of the lemma")
        below.annotate(
            f"lemma: M = {_short(asked)}",
            (asked, 0.97),
            xycoords=("data", "axes fraction"),
            xytext=(-4, 0),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=style.SMALLEST,
            color=GREY,
        )
        above.set_title(str(dataset["title"].sel(environment=environment).values))
        style.round_axis(above, dataset.attrs["horizon"])
        below.set_xscale("log")
        below.set_xlim(sizes[0] / 1.3, 2 * asked)
        below.set_xlabel("ensemble size M")
        below.xaxis.set_major_locator(FixedLocator([2, 16, 128, 1024, 10_000, 100_000]))
        below.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _short(value)))
        below.xaxis.set_minor_locator(NullLocator())
    for axes in panels.flat:
        _eigenvalue_axis(axes)
    for row in panels:
        row[0].set_ylabel("eigenvalue")
        row[-1].legend(loc="center left", bbox_to_anchor=(1.02, 0.5))
    return figure


def _band(axes: Axes, places: np.ndarray, values: xr.DataArray, colour: tuple[float, ...], label: str | None, **line) -> None:
    """Median over seeds and the middle `SHARE` of them, against the other dimension of `values`."""
    values = values.transpose("seed", ...).dropna("seed", how="all").values
    lower, median, upper = np.nanquantile(values, [0.5 - SHARE / 2, 0.5, 0.5 + SHARE / 2], axis=0)
    axes.plot(places, median, color=colour, label=label, **{"linewidth": 1.4, **line})
    if len(values) > 1:
        axes.fill_between(places, lower, upper, color=colour, alpha=0.18, linewidth=0)


def _edges(axes: Axes, dimension: int, first: float, last: float) -> None:
    """Where the two would be if the columns of A were independent."""
    sizes = np.geomspace(first, last, 200)
    smallest, largest = np.array([theory.independent_edges(dimension, size) for size in sizes]).T
    axes.plot(sizes, largest, color=GREY, linewidth=1, linestyle=":", label="independent columns")
    axes.plot(sizes, smallest, color=GREY, linewidth=1, linestyle=":")


def _eigenvalue_axis(axes: Axes) -> None:
    """Linear up to 1, where M directions may leave the smallest at 0, and logarithmic above; with the lemma's interval."""
    axes.axhspan(*theory.TRACKING_INTERVAL, color=GREY, alpha=0.15, linewidth=0, zorder=0, label="lemma's interval")
    # this scale has the same slope on both sides of 1
    axes.set_yscale("symlog", linthresh=1, linscale=0.9 / np.log(10))
    axes.set_ylim(-0.05, None)
    ticks = [0, 0.5, 1, 1.5, 2, 3, 5, 10, 20, 50, 100, 200, 500]
    axes.yaxis.set_major_locator(FixedLocator(ticks))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _short(size: float) -> str:
    """1024 as it is, 197595 as 198k."""
    return f"{size:.0f}" if size < 2000 else f"{size / 1000:.3g}k"
