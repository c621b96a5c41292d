"""Accuracy over time with a frozen and with a fine-tuned language model (paper, Figure "llm_res")."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from ensemblepp.analysis import backbones
from ensemblepp.figures import style
from ensemblepp.figures.moderation_accuracy import BEST_CONSTANT, GREY, START

NEEDS = {
    "environments": ["moderation", "moderation_tokens"],
    "agent_kinds": ["text_greedy", "text_ensemblepp", "text_ensembleplus"],
    "variables": ["constant_regret"],
}


def draw(dataset: xr.Dataset) -> Figure:
    """One panel per language model: dashed lines are frozen, solid ones fine-tuned, grey is the best constant action."""
    models = backbones.backbones(dataset)
    agents = list(backbones.pairs(dataset))
    rows = -(-len(models) // 2)
    figure, panels = plt.subplots(rows, 2, figsize=(6.75, 0.3 + 2.4 * rows), squeeze=False, sharey=True)
    later = (dataset["time"] >= dataset.attrs["horizon"] * START).values
    for place, (axes, model) in enumerate(zip(panels.flat, models, strict=False)):
        for position, pair in enumerate(agents):
            size = f", M = {pair.ensemble_size}" if _several(agents, pair) else ""
            for environment, agent, words, line in (
                (model.frozen, pair.frozen, "frozen", "--"),
                (model.tuned, pair.tuned, "fine-tuned", "-"),
            ):
                run = backbones.runs_of(dataset, environment, agent, pair.ensemble_size)
                accuracy = (run["optimal"] / run["time"]).isel(time=later)
                look = {"colour": style.colour(pair.label, position), "linestyle": line}
                style.band(axes, accuracy, label=f"{pair.label}{size}, {words}", **look)
        best = backbones.constant_accuracy(dataset, model.tuned).mean("seed").isel(time=later)
        axes.plot(best["time"], best, color=GREY, linestyle=":", linewidth=1.3, label=BEST_CONSTANT)
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.set_ylabel("" if place % 2 else "accuracy so far")
        style.round_axis(axes, dataset.attrs["horizon"])
        axes.set_title(model.title)
    # intervals of few seeds would leave nothing else
    shown = np.concatenate([line.get_ydata() for axes in panels.flat for line in axes.get_lines()])
    panels[0, 0].set_ylim(max(0, shown.min() - 0.05), min(1, shown.max() + 0.05))
    free = list(panels.flat)[len(models) :]
    style.legend(figure, free[0] if free else None)
    return figure


def _several(agents: list[backbones.Pair], pair: backbones.Pair) -> bool:
    """Whether an agent is there at several ensemble sizes."""
    return len({other.ensemble_size for other in agents if other.tuned == pair.tuned}) > 1
