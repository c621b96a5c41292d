"""Time that a round takes, as the history grows (paper, appendix, comparison with LMCTS: "bounded computational steps")."""

from __future__ import annotations

import json

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

from ensemblepp.figures import style

NEEDS = {"variables": ["seconds"]}

#: Single rounds are too short to be timed well.
INTERVALS = 20


def draw(dataset: xr.Dataset) -> Figure:
    """One panel per environment: seconds per round between stored times, both axes logarithmic.

    Seeds of one block are simulated together and share a clock, so the unit is the block: lines are means over blocks, bands
    go from the fastest to the slowest.
    """
    first = sorted({spec["seeds"][0] for spec in json.loads(dataset.attrs["specs"])})
    blocks = dataset.sel(seed=first)
    together = dataset.sizes["seed"] // len(first)
    environments = dataset["environment"].values
    figure, panels = plt.subplots(
        1, len(environments), figsize=(style.COLUMN if len(environments) < 3 else style.PAGE, 2.6), squeeze=False
    )
    for axes, environment in zip(panels[0], environments, strict=True):
        for runs, look in style.curves(blocks):
            seconds = runs["seconds"].sel(environment=environment)
            if seconds.notnull().any():
                spent = _per_round(seconds)
                colour = look.pop("colour")
                axes.plot(spent["time"], spent.mean("seed"), color=colour, linewidth=1.6, **look)
                axes.fill_between(spent["time"], spent.min("seed"), spent.max("seed"), color=colour, alpha=0.18, linewidth=0)
        axes.set_title(str(dataset["title"].sel(environment=environment).values))
        style.log_axis(axes)
        axes.yaxis.set_major_formatter(EngFormatter(unit="s"))
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.set_xlabel("round")
    panels[0, 0].set_ylabel("time per round" if together == 1 else f"time per round of {together} seeds")
    style.legend(figure)
    return figure


def _per_round(seconds: xr.DataArray) -> xr.DataArray:
    """Increase per round of seconds so far (seed, time), in about `INTERVALS` intervals that get longer with time."""
    time = seconds["time"].values
    ends = np.unique(np.searchsorted(time, np.geomspace(time[0], time[-1], INTERVALS + 1)).clip(max=len(time) - 1))
    chosen = seconds.isel(time=ends)
    quotients = chosen.diff("time") / chosen["time"].diff("time")
    # in the middle of each, as the axis has it
    return quotients.assign_coords(time=np.sqrt(time[ends][1:] * time[ends][:-1]))
