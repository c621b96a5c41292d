"""The moderation pipeline as the configuration has it, from a post to the update (paper, Figure of the moderation pipeline)."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch

from ensemblepp.analysis import moderation
from ensemblepp.analysis.selection import agent_runs, ensemble_sizes
from ensemblepp.figures import style

NEEDS = {"environments": ["moderation"], "agent_kinds": ["neural_ensemblepp"]}

SCALED = {"none": "as the model gives it", "unit": "of norm 1", "standardise": "standardised by feature"}


class Box(NamedTuple):
    """A step: where it stands, in units of the axes, and what is written in it."""

    left: float
    bottom: float
    width: float
    height: float
    title: str
    lines: tuple[str, ...]


def draw(dataset: xr.Dataset) -> Figure:
    """The steps of a round for the study's first environment and its first Ensemble++."""
    environment = str(dataset["environment"].values[0])
    agent = next(name for name in map(str, dataset["agent"].values) if _is_ensemblepp(dataset, name))
    figure, axes = plt.subplots(figsize=(style.PAGE, 2.75))
    axes.set_axis_off()
    axes.set_xlim(-0.5, 100.5)
    axes.set_ylim(-0.5, 39.5)
    places = _boxes(dataset, environment, agent)
    own = style.colour(str(dataset["label"].sel(agent=agent).values))
    for name, box in places.items():
        _box(axes, box, own if name in ("heads", "buffer") else (0.35, 0.35, 0.35))
    for start, end in (("posts", "model"), ("model", "heads"), ("heads", "actions")):
        _arrow(axes, (places[start].left + places[start].width, 31.5), (places[end].left, 31.5))
    right = places["actions"].left + places["actions"].width / 2
    _arrow(axes, (right, places["actions"].bottom), (right, places["reward"].bottom + places["reward"].height))
    _arrow(axes, (places["reward"].left, 7.5), (places["buffer"].left + places["buffer"].width, 7.5))
    middle = places["heads"].left + places["heads"].width / 2
    _arrow(axes, (middle, places["buffer"].bottom + places["buffer"].height), (middle, places["heads"].bottom))
    return figure


def _is_ensemblepp(dataset: xr.Dataset, agent: str) -> bool:
    kinds = {spec["agent"]["name"]: spec["agent"]["kind"] for spec in json.loads(dataset.attrs["specs"])}
    return kinds.get(agent) == "neural_ensemblepp"


def _boxes(dataset: xr.Dataset, environment: str, agent: str) -> dict[str, Box]:
    place, own = (moderation.options(dataset, part, name) for part, name in (("environment", environment), ("agent", agent)))
    embeddings = PurePosixPath(place.get("inputs", {}).get("embeddings", "model/posts-0.nc"))
    name, _, count = embeddings.stem.rpartition("-")
    size = ensemble_sizes(agent_runs(dataset, agent))[0]
    words = moderation.wording(dataset, environment)
    hidden = own.get("hidden", [])
    steps, every = own.get("gradient_steps", 1), own.get("update_every", 1)
    often = "every round" if every == 1 else f"every {every} rounds"
    return {
        "posts": Box(0, 23, 17, 16, "post", (name.replace("_", " "), f"{int(count):,} posts")),
        "model": Box(
            22, 23, 22, 16, "language model", (embeddings.parent.name, "frozen", SCALED[place.get("scaling", "none")])
        ),
        "heads": Box(49, 23, 25, 16, str(dataset["label"].sel(agent=agent).values), _heads(own, hidden, size)),
        "actions": Box(79, 23, 21, 16, "action", (f"{words.actions[0]} or {words.actions[1]}", "greatest sampled value")),
        "reward": Box(79, 0, 21, 16, "reward", _rewards(words)),
        "buffer": Box(
            43,
            0,
            31,
            16,
            "replay buffer",
            (
                f"last {own.get('buffer_capacity', 10_000):,} rounds, each with its z",
                f"{steps} step{'s' if steps > 1 else ''} {often}, batch {own.get('batch_size', 128)}",
            ),
        ),
    }


def _heads(own: dict[str, Any], hidden: list[int], size: int) -> tuple[str, ...]:
    trunk = f"trunk {' x '.join(map(str, hidden))}" if hidden else "linear heads for each action"
    return (
        trunk,
        f"base and M = {size} directions",
        f"prior {own.get('prior_scale', 0):g}, step {own.get('learning_rate', 0):g}",
    )


def _rewards(words: moderation.Wording) -> tuple[str, ...]:
    free, hateful = (0.5 + words.free, 0.5 - words.hateful)
    return (f"{words.actions[0]}: +0.5", f"{words.actions[1]} free: {free:+.2g}", f"{words.actions[1]} hateful: {hateful:+.2g}")


def _box(axes: Axes, box: Box, colour: tuple[float, ...]) -> None:
    frame = FancyBboxPatch(
        (box.left, box.bottom),
        box.width,
        box.height,
        boxstyle="round,pad=0,rounding_size=1.2",
        facecolor=(*colour[:3], 0.08),
        edgecolor=colour,
        linewidth=1.1,
    )
    axes.add_patch(frame)
    middle = box.left + box.width / 2
    axes.text(middle, box.bottom + box.height - 2.6, box.title, ha="center", va="center", fontsize=8.5, fontweight="bold")
    for row, line in enumerate(box.lines):
        axes.text(middle, box.bottom + box.height - 6.3 - 3.3 * row, line, ha="center", va="center", fontsize=style.SMALLEST)


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.annotate(
        "", end, start, arrowprops={"arrowstyle": "-|>", "color": "0.25", "linewidth": 1.1, "shrinkA": 0, "shrinkB": 0}
    )
