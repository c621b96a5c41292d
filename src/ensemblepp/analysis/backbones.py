"""A study's frozen and fine-tuned language models side by side: which environments and which agents are each other's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

import xarray as xr

from ensemblepp.errors import ResultError

#: Kind of an agent that trains the language model -> of the same agent on its embeddings.
FROZEN = {"text_greedy": "greedy", "text_ensemblepp": "neural_ensemblepp", "text_ensembleplus": "ensembleplus"}

#: Regret of a mistake: to block a free post, and to publish a hateful one.
MISTAKES = (0.5, 1.0)


class Backbone(NamedTuple):
    """A language model and the environments that give its embeddings and its tokens."""

    title: str
    frozen: str
    tuned: str


class Pair(NamedTuple):
    """An agent on embeddings, and the one that trains the language model; with the ensemble size of both."""

    label: str
    frozen: str
    tuned: str
    ensemble_size: int


def backbones(dataset: xr.Dataset) -> list[Backbone]:
    """The language models that a study has both frozen and fine-tuned.

    Raises:
        ResultError: there is none.
    """
    titles = {str(name): str(dataset["title"].sel(environment=name).values) for name in dataset["environment"].values}
    found: dict[tuple[str, str], dict[str, str]] = {}
    for spec in json.loads(dataset.attrs["specs"]):
        environment = spec["environment"]
        inputs = environment["options"]["inputs"]
        # data/embeddings or data/tokens, the model, the data set and the number of posts
        place = PurePosixPath(inputs["tokens" if environment["kind"] == "moderation_tokens" else "embeddings"])
        found.setdefault((place.parent.name, place.stem), {})[environment["kind"]] = environment["name"]
    both = [kinds for kinds in found.values() if len(kinds) == 2]
    if not both:
        raise ResultError("no language model of the study is there both frozen and fine-tuned, on as many posts")
    return [
        Backbone(titles[kinds["moderation"]].rpartition(", ")[0], kinds["moderation"], kinds["moderation_tokens"])
        for kinds in both
    ]


def pairs(dataset: xr.Dataset) -> Iterator[Pair]:
    """Agents that play both, in the study's order, at every ensemble size that both have."""
    specs = json.loads(dataset.attrs["specs"])
    kinds = {spec["agent"]["name"]: spec["agent"]["kind"] for spec in specs}
    sizes = {(spec["agent"]["name"], spec["ensemble_size"]) for spec in specs}
    names = [str(name) for name in dataset["agent"].values]
    for tuned in names:
        for frozen in names:
            if FROZEN.get(kinds.get(tuned, "")) != kinds.get(frozen):
                continue
            label = str(dataset["label"].sel(agent=tuned).values).partition(" (")[0]
            for size in sorted(size for name, size in sizes if name == tuned and (frozen, size) in sizes):
                yield Pair(label, frozen, tuned, size)


def runs_of(dataset: xr.Dataset, environment: str, agent: str, size: int) -> xr.Dataset:
    """The runs (seed, time) of an agent that has one pair of laws."""
    runs = dataset.sel(environment=environment, agent=agent, ensemble_size=size)
    ran = runs["regret"].notnull().any(["seed", "time"])
    reference, perturbation = (int(place) for place in ran.argmax(["reference", "perturbation"]).values())
    return runs.isel(reference=reference, perturbation=perturbation)


def constant_accuracy(dataset: xr.Dataset, environment: str) -> xr.DataArray:
    """Share of right decisions so far (seed, time) of blocking or of publishing all posts: what is right more often."""
    regret = dataset["constant_regret"].sel(environment=environment)
    shares = [1 - regret.sel(action_index=action, drop=True) / cost / dataset["time"] for action, cost in enumerate(MISTAKES)]
    return max(shares, key=lambda share: float(share.isel(time=-1).mean()))
