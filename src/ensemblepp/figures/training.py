"""What training does: loss, spread of the sampled functions, and how often they change the choice, over time."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from ensemblepp.figures import style

NEEDS = {"variables": ["loss"]}

#: Intervals over which rounds that explored are counted: single rounds of a few seeds would say little.
INTERVALS = 30

ROWS = {
    "loss": "training loss",
    "spread": "spread of the\nsampled values",
    "explored": "share of rounds\nthat explored",
}


def draw(dataset: xr.Dataset) -> Figure:
    """Columns are environments; a row is left out if no agent has it, and an agent that is zero all the time if so."""
    environments = dataset["environment"].values
    curves = {
        name: [(values, look) for runs, look in style.curves(dataset) if (values := runs[name]).fillna(0).any()]
        for name in ROWS
        if name in dataset
    }
    rows = [name for name, found in curves.items() if found]
    figure, panels = plt.subplots(
        len(rows),
        len(environments),
        figsize=(style.COLUMN if len(environments) < 3 else style.PAGE, 0.6 + 1.35 * len(rows)),
        sharex=True,
        squeeze=False,
    )
    for name, row in zip(rows, panels, strict=True):
        for axes, environment in zip(row, environments, strict=True):
            for values, look in curves[name]:
                curve = values.sel(environment=environment)
                if curve.fillna(0).any():
                    style.band(
                        axes,
                        _shares(curve) if name == "explored" else curve,
                        **look,
                        possible=style.SHARE if name == "explored" else style.REGRET,
                        linewidth=1.2,
                    )
            if name == "explored":
                axes.set_ylim(0, min(1.05, axes.get_ylim()[1]))
                axes.yaxis.set_major_formatter(PercentFormatter(1))
            elif axes.get_lines():
                style.log_axis(axes)
        row[0].set_ylabel(ROWS[name])
    for axes, environment in zip(panels[0], environments, strict=True):
        axes.set_title(str(dataset["title"].sel(environment=environment).values))
    for axes in panels[-1]:
        style.round_axis(axes, dataset.attrs["horizon"])
    style.legend(figure)
    return figure


def _shares(explored: xr.DataArray) -> xr.DataArray:
    """Increase per round of a cumulative count (seed, time) from its start, at the middle of about `INTERVALS` intervals."""
    time = explored["time"].values
    ends = np.unique(np.searchsorted(time, np.linspace(0, time[-1], INTERVALS + 1)[1:]).clip(max=len(time) - 1))
    bounds = np.concatenate([[0], time[ends]])
    counts = np.diff(explored.transpose("seed", "time").values[:, ends], axis=1, prepend=0)
    middles = (bounds[1:] + bounds[:-1]) / 2
    return xr.DataArray(counts / np.diff(bounds), {"time": middles}, ("seed", "time"))
