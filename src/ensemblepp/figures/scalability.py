"""Does regret grow with the decision set, and fall with the ensemble? (paper, "Scalability of Ensemble++")."""

from __future__ import annotations

import json

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from ensemblepp.analysis.selection import agent_runs, ensemble_sizes
from ensemblepp.figures import style

NEEDS = {"environments": ["quadratic", "vector_quadratic", "neural"], "ensembles": True}


def draw(dataset: xr.Dataset) -> Figure:
    """A row for each kind of environment. Left: against the length of the list of actions, right: against M.

    Agents without an ensemble have dashed lines; those on the right are means alone.
    """
    specs = {spec["environment"]["name"]: spec["environment"] for spec in json.loads(dataset.attrs["specs"])}
    kinds: dict[str, list[str]] = {}
    for name in sorted(dataset["environment"].values, key=lambda name: specs[name]["options"]["candidates"]):
        kinds.setdefault(specs[name]["kind"], []).append(str(name))
    # in the order of the study
    rows = sorted(kinds.values(), key=lambda names: min(map(list(dataset["environment"].values).index, names)))
    final = dataset[["regret"]].isel(time=-1)
    runs = [agent_runs(final, name) for name in dataset["agent"].values]
    figure, panels = plt.subplots(
        len(rows), 2, figsize=(style.PAGE, 0.6 + 2.0 * len(rows)), sharex="col", sharey="row", squeeze=False
    )
    for (left, right), environments in zip(panels, rows, strict=True):
        lengths = np.array([specs[name]["options"]["candidates"] for name in environments])
        for of_agent in runs:
            _against_length(left, of_agent.sel(environment=environments), lengths)
            _against_size(right, of_agent.sel(environment=environments), lengths)
        left.set_xscale("log")
        left.set_xlim(lengths.min() / 1.6, lengths.max() * 1.6)
        left.set_xticks(lengths, labels=[f"{length:,}" for length in lengths])
        left.xaxis.set_minor_locator(NullLocator())
        style.size_axis(right, sorted({size for of_agent in runs for size in ensemble_sizes(of_agent) if size}))
        style.regret_axis(left)
        title = min((str(title) for title in dataset["title"].sel(environment=environments).values), key=len)
        left.set_ylabel(f"{title}\nfinal regret" if len(rows) > 1 else "final regret")
    panels[-1, 0].set_xlabel("actions in the list |X|")
    for axes in panels[:-1, 1]:
        axes.set_xlabel("")
    for axes in panels[0]:
        entries = len(axes.get_legend_handles_labels()[1])
        columns = -(-entries // 2)
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, handlelength=1.8, columnspacing=1.2)
    return figure


def _against_length(axes: Axes, runs: xr.Dataset, lengths: np.ndarray) -> None:
    sizes, label = ensemble_sizes(runs), str(runs["label"].values)
    for place, (size, _, shade) in enumerate(style.by_size(label, sizes)):
        look = {"colour": shade, "label": f"M = {size}" if size else label, "linestyle": "-" if size else "--"}
        beside = lengths * 1.06 ** _from_middle(place, len(sizes))
        style.interval_line(axes, beside, runs["regret"].sel(ensemble_size=size), **look, markersize=3.5)


def _against_size(axes: Axes, runs: xr.Dataset, lengths: np.ndarray) -> None:
    sizes, label = ensemble_sizes(runs), str(runs["label"].values)
    for place, (length, shade) in enumerate(zip(lengths, style.sequence(len(lengths)), strict=True)):
        regret = runs["regret"].isel(environment=place).sel(ensemble_size=sizes)
        if sizes == [0]:
            # one entry of the legend says what dashes are
            text = f"dashed: {label}" if place == len(lengths) - 1 else None
            axes.axhline(float(regret.mean()), color=shade, linewidth=1, linestyle="--", label=text)
        else:
            beside = np.array(sizes) * 1.06 ** _from_middle(place, len(lengths))
            style.interval_line(axes, beside, regret, colour=shade, label=f"|X| = {length:,}", markersize=3.5)


def _from_middle(place: int, count: int) -> float:
    """Steps by which a line is moved aside, so that its intervals can be seen beside those of the others."""
    return place - (count - 1) / 2
