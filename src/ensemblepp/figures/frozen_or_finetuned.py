"""Accuracy over time with a frozen and with a fine-tuned language model (paper, Figure "llm_res")."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from ensemblepp.analysis import backbones, moderation
from ensemblepp.figures import style
from ensemblepp.figures.moderation_accuracy import BEST_CONSTANT, CEILING, DARK, GREY, has_ceiling, later

NEEDS = {
    "environments": ["moderation", "moderation_tokens"],
    "agent_kinds": ["text_greedy", "text_ensemblepp", "text_ensembleplus"],
    "variables": ["constant_regret"],
}


def draw(dataset: xr.Dataset) -> Figure:
    """One panel per language model: dashed lines are frozen, solid ones fine-tuned; floor and ceiling are dotted.

    The floor is the constant action that is right more often, the ceiling a supervised fit to the frozen embeddings.
    """
    models = backbones.backbones(dataset)
    agents = list(backbones.pairs(dataset))
    columns = min(2, len(models))
    rows = -(-len(models) // columns)
    figure, panels = plt.subplots(rows, columns, figsize=(style.PAGE, 0.9 + 2.4 * rows), squeeze=False, sharey=True)
    for place, (axes, model) in enumerate(zip(panels.flat, models, strict=False)):
        for position, pair in enumerate(agents):
            size = f", M = {pair.ensemble_size}" if _several(agents, pair) else ""
            for environment, agent, words, line in (
                (model.frozen, pair.frozen, "frozen", "--"),
                (model.tuned, pair.tuned, "fine-tuned", "-"),
            ):
                run = backbones.runs_of(dataset, environment, agent, pair.ensemble_size)
                look = {"colour": style.colour(pair.label, position), "linestyle": line}
                share = later(run["optimal"] / run["time"])
                axes.plot(
                    share["time"],
                    share.mean("seed"),
                    color=look["colour"],
                    label=f"{pair.label}{size}, {words}",
                    linestyle=line,
                    linewidth=1.3,
                )
                # of three seeds an interval covers most of the panel, so it stands at the end only, beside those of the others
                style.interval_at_end(axes, share, possible=style.SHARE, **look, linewidth=1)
        shares = [later(moderation.constant_accuracy(dataset, model.tuned, action)).mean("seed") for action in (0, 1)]
        best = max(shares, key=lambda share: float(share[-1]))
        axes.plot(best["time"], best, color=GREY, linestyle=":", linewidth=1.3, label=BEST_CONSTANT)
        if has_ceiling(dataset, model.frozen):
            reached = later(moderation.ceiling_accuracy(dataset, model.frozen))
            axes.plot(reached["time"], reached.mean("seed"), color=DARK, label=CEILING, linewidth=1.2, linestyle=(0, (1, 1)))
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.set_ylabel("" if place % columns else "accuracy so far")
        style.round_axis(axes, dataset.attrs["horizon"], behind=len(axes.collections))
        axes.set_title(model.title)
    for axes in list(panels.flat)[len(models) :]:
        axes.set_axis_off()
    # intervals of few seeds would leave nothing else
    shown = np.concatenate([line.get_ydata() for axes in panels.flat for line in axes.get_lines()])
    panels[0, 0].set_ylim(max(0, shown.min() - 0.05), min(1.01, shown.max() + 0.05))
    style.legend(figure)
    return figure


def _several(agents: list[backbones.Pair], pair: backbones.Pair) -> bool:
    """Whether an agent is there at several ensemble sizes."""
    return len({other.ensemble_size for other in agents if other.tuned == pair.tuned}) > 1
