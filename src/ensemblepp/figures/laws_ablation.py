"""Regret of neural Ensemble++ by update, reference and perturbation law, one varied at a time (paper, "Ablation Study")."""

from __future__ import annotations

import json
from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from ensemblepp.analysis.selection import ensemble_sizes
from ensemblepp.figures import style
from ensemblepp.randomness.distributions import in_order, name_of

NEEDS = {"agent_kinds": ["neural_ensemblepp"]}

#: What is not varied is the paper's choice for neural networks; its update law is that of the agent that ran the pairs.
FIXED = {"reference": "sphere", "perturbation": "sphere"}

#: Curves closer than this share of the highest, about their width, count as one.
ALIKE = 0.01

#: Length, in line widths, of the dashes of curves that coincide.
DASH = 5


def draw(dataset: xr.Dataset) -> Figure:
    """Rows are environments, columns what is varied. Curves that coincide take turns: their dashes fill one line."""
    specs = {spec["agent"]["name"]: spec["agent"] for spec in json.loads(dataset.attrs["specs"])}
    pairs = dataset["regret"].notnull().any(["environment", "ensemble_size", "seed", "time"]).sum(list(FIXED))
    laws = dataset.isel(agent=int(pairs.argmax("agent")))
    size = ensemble_sizes(laws)[-1]
    environments = dataset["environment"].values
    figure, panels = plt.subplots(
        len(environments), 3, figsize=(9.4, 0.4 + 2.4 * len(environments)), sharex=True, sharey="row", squeeze=False
    )
    # one agent for each update law
    updates = {
        name_of(specs[name]["options"]["update"]): dataset["regret"].sel(agent=name, **FIXED)
        for name in (*dataset["agent"].values, str(laws["agent"].values))
        if "update" in specs[name]["options"]
    }
    varied = {
        "update law": updates,
        "reference law": _along(laws["regret"].sel(perturbation=FIXED["perturbation"]), "reference"),
        "perturbation law": _along(laws["regret"].sel(reference=FIXED["reference"]), "perturbation"),
    }
    looks = style.law_looks(in_order(law for curves in varied.values() for law in curves))
    # N(0, I/M) is no law of the reference and has the first free colour of agents
    colours = {law: style.colour(law) if law in style.LAW_LABELS else colour for law, (colour, _) in looks.items()}
    for row, environment in zip(panels, environments, strict=True):
        for axes, curves in zip(row, varied.values(), strict=True):
            _curves(
                axes, {law: curve.sel(environment=environment, ensemble_size=size) for law, curve in curves.items()}, colours
            )
            style.round_axis(axes, dataset.attrs["horizon"])
            if axes not in panels[-1]:
                axes.set_xlabel("")
        title = f"{dataset['title'].sel(environment=environment).values}\n\n" if len(environments) > 1 else ""
        row[0].set_ylabel(f"{title}cumulative regret")
        style.linear_axis(row[0])
    for axes, title in zip(panels[0], varied, strict=True):
        axes.set_title(title)
    lines = [Line2D([], [], color=colour, linewidth=1.6) for colour in colours.values()]
    figure.legend(lines, [style.LAW_LABELS.get(law, law) for law in colours], title="law", loc="outside right center")
    return figure


def _along(regret: xr.DataArray, factor: str) -> dict[str, xr.DataArray]:
    """The curves by a factor's laws, of those that ran."""
    ran = regret.dropna(factor, how="all")
    return {str(law): ran.sel({factor: law}) for law in ran[factor].values}


def _curves(axes: Axes, curves: Mapping[str, xr.DataArray], colours: Mapping[str, tuple[float, ...]]) -> None:
    means = {law: curve.mean("seed").values for law, curve in curves.items() if curve.notnull().any()}
    thin = ALIKE * max(mean.max() for mean in means.values())
    groups: list[list[str]] = []
    for law in in_order(means):
        group = next((group for group in groups if np.abs(means[group[0]] - means[law]).max() <= thin), None)
        groups.append([law]) if group is None else group.append(law)
    for group in groups:
        for turn, law in enumerate(group):
            dashes = (turn * DASH, (DASH, DASH * (len(group) - 1))) if len(group) > 1 else "-"
            # one interval for all: the curve of a single "seed" has none
            curve = curves[law] if turn == 0 else curves[law].mean("seed").expand_dims("seed")
            style.band(axes, curve, colour=colours[law], label=law, linestyle=dashes, dash_capstyle="butt", linewidth=1.4)
