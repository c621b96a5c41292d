"""Regret of neural Ensemble++ by update, reference and perturbation law, one varied at a time (paper, "Ablation Study")."""

from __future__ import annotations

import json
from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ensemblepp.analysis.selection import ensemble_sizes
from ensemblepp.analysis.statistics import mean_interval
from ensemblepp.figures import style
from ensemblepp.randomness.distributions import in_order, name_of

NEEDS = {"agent_kinds": ["neural_ensemblepp"]}

#: What is not varied is the paper's choice for neural networks; its update law is that of the agent that ran the pairs.
FIXED = {"reference": "sphere", "perturbation": "sphere"}


def draw(dataset: xr.Dataset) -> Figure:
    """Rows are environments, columns what is varied; dots are mean differences of final regret to the paper's law, by seed."""
    specs = {spec["agent"]["name"]: spec["agent"] for spec in json.loads(dataset.attrs["specs"])}
    final = dataset[["regret"]].isel(time=-1)
    pairs = final["regret"].notnull().any(["environment", "ensemble_size", "seed"]).sum(list(FIXED))
    laws = final.isel(agent=int(pairs.argmax("agent")))
    size = ensemble_sizes(laws)[-1]
    update = name_of(specs[str(laws["agent"].values)]["options"]["update"])
    # one agent for each update law
    updates = {
        name_of(specs[name]["options"]["update"]): final["regret"].sel(agent=name, **FIXED)
        for name in (*dataset["agent"].values, str(laws["agent"].values))
        if "update" in specs[name]["options"]
    }
    varied = {
        "update law": updates,
        "reference law": _along(laws["regret"].sel(perturbation=FIXED["perturbation"]), "reference"),
        "perturbation law": _along(laws["regret"].sel(reference=FIXED["reference"]), "perturbation"),
    }
    environments = dataset["environment"].values
    rows = max(map(len, varied.values()))
    figure, panels = plt.subplots(
        len(environments),
        len(varied),
        figsize=(style.PAGE, 0.5 + (0.45 + 0.19 * rows) * len(environments)),
        sharex="row",
        squeeze=False,
    )
    for row, environment in zip(panels, environments, strict=True):
        paper = laws["regret"].sel(environment=environment, ensemble_size=size, **FIXED)
        for axes, (factor, regrets) in zip(row, varied.items(), strict=True):
            found = {law: regrets[law].sel(environment=environment, ensemble_size=size) - paper for law in in_order(regrets)}
            _dots(axes, found)
            axes.set_title(factor)
        title = f"{dataset['title'].sel(environment=environment).values}: " if len(environments) > 1 else ""
        row[1].set_xlabel(f"{title}final regret minus that of update {update}, reference and perturbation sphere")
    return figure


def _along(regret: xr.DataArray, factor: str) -> dict[str, xr.DataArray]:
    """The runs by a factor's laws, of those that ran."""
    ran = regret.dropna(factor, how="all")
    return {str(law): ran.sel({factor: law}) for law in ran[factor].values}


def _dots(axes: Axes, differences: Mapping[str, xr.DataArray]) -> None:
    axes.axvline(0, color="0.4", linewidth=0.8, linestyle=":")
    for row, (law, (colour, marker)) in enumerate(style.law_looks(list(differences)).items()):
        mean, lower, upper = mean_interval(differences[law].values)
        axes.plot(mean, row, marker=marker, color=colour, markersize=4.5, label=law)
        if np.isfinite(lower):
            axes.hlines(row, lower, upper, color=colour, linewidth=1.3)
    axes.set_yticks(range(len(differences)), labels=[style.LAW_LABELS.get(law, law) for law in differences])
    axes.set_ylim(len(differences) - 0.5, -0.5)
