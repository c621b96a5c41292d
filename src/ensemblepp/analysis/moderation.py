"""What decisions about posts come to: mistakes, accuracy, reviews, and the fixed policies that they are measured against.

A run keeps sums of regret and of rounds without regret. The two mistakes cost different amounts, so both are known from these.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

#: Action 0 and action 1 in the words of each wording (`environments.moderation`).
WORDS = {"publish_or_block": ("block", "publish"), "remove_or_review": ("remove", "review")}

#: c where a specification says nothing of it.
REVIEW_COST = 1 / 3


class Wording(NamedTuple):
    """What an environment's actions are, and what its mistakes cost in regret.

    Attributes:
        actions: the two actions' words.
        reviews: whether action 1 is a human review.
        free: of action 0 on a free post.
        hateful: of action 1 on a hateful post.
    """

    actions: tuple[str, str]
    reviews: bool
    free: float
    hateful: float


class Decisions(NamedTuple):
    """Counts so far, each of the dimensions of the sums that they are made of.

    Attributes:
        time: rounds.
        free: free posts that were shown.
        missed: free posts on which action 0 was taken.
        let_through: hateful posts on which action 1 was taken.
    """

    time: xr.DataArray
    free: xr.DataArray
    missed: xr.DataArray
    let_through: xr.DataArray

    @property
    def taken(self) -> xr.DataArray:
        """How often action 1 was taken: posts that were published, or reviewed."""
        return self.free - self.missed + self.let_through


def options(dataset: xr.Dataset, part: str, name: str) -> dict[str, Any]:
    """What the environment or agent (`part`) of a study's dataset was built with."""
    specs = json.loads(dataset.attrs["specs"])
    return next(spec[part].get("options", {}) for spec in specs if spec[part]["name"] == name)


def wording(dataset: xr.Dataset, environment: str) -> Wording:
    """The wording of a moderation environment of a study's dataset."""
    found = options(dataset, "environment", environment)
    actions = found.get("actions", "publish_or_block")
    cost = found.get("review_cost", REVIEW_COST)
    reviews = actions == "remove_or_review"
    return Wording(WORDS[actions], reviews, 0.5 - cost if reviews else 0.5, cost if reviews else 1.0)


def decisions(dataset: xr.Dataset, environment: str, regret: xr.DataArray, optimal: xr.DataArray) -> Decisions:
    """What was decided so far.

    Args:
        dataset: a study's.
        environment: one of its moderation environments.
        regret: (seed, time) or more dimensions, of an agent's runs or a fixed policy's in that environment.
        optimal: the same of the rounds without regret.
    """
    words, time = wording(dataset, environment), dataset["time"]
    # always taking action 0 is wrong about every free post, and about no other
    free = (dataset["constant_regret"].sel(environment=environment, action_index=0, drop=True) / words.free).round()
    wrong = time - optimal
    let_through = ((regret - words.free * wrong) / (words.hateful - words.free)).round()
    return Decisions(time, free, wrong - let_through, let_through)


def accuracy(dataset: xr.Dataset, environment: str, regret: xr.DataArray, optimal: xr.DataArray) -> xr.DataArray:
    """Share of right decisions so far; a review is always right, whatever the post is. Arguments as of `decisions`."""
    if not wording(dataset, environment).reviews:
        return optimal / dataset["time"]
    return 1 - decisions(dataset, environment, regret, optimal).missed / dataset["time"]


def constant_accuracy(dataset: xr.Dataset, environment: str, action: int) -> xr.DataArray:
    """The same (seed, time) of always taking one action."""
    words = wording(dataset, environment)
    regret = dataset["constant_regret"].sel(environment=environment, action_index=action, drop=True)
    wrong = regret / (words.free, words.hateful)[action]
    return 1 - (0 * wrong if action and words.reviews else wrong) / dataset["time"]


def ceiling_accuracy(dataset: xr.Dataset, environment: str) -> xr.DataArray:
    """The same (seed, time) of the supervised ceiling."""
    regret, optimal = (dataset[f"ceiling_{what}"].sel(environment=environment) for what in ("regret", "optimal"))
    return accuracy(dataset, environment, regret, optimal)


def share_of_the_way(dataset: xr.Dataset, environment: str, regret: xr.DataArray, constant: xr.DataArray) -> xr.DataArray:
    """How far a regret (seed, ...) is from the floor, 0, to the ceiling, 1; NaN where the ceiling is not above the floor.

    Args:
        dataset: a study's, with `ceiling_regret`.
        environment: one of its environments.
        regret: an agent's at the horizon.
        constant: the best constant action's.
    """
    ceiling = dataset["ceiling_regret"].sel(environment=environment, drop=True).isel(time=-1, drop=True)
    room = constant - ceiling
    return ((constant - regret) / room).where(room > 0)


# -------------------------------------------------------------------------------- reviews of others at equal accuracy


def fixed_threshold_reviews(dataset: xr.Dataset, environment: str, missed: xr.DataArray) -> xr.DataArray:
    """Reviews so far (seed, time) of a fixed threshold on the supervised probabilities that is as accurate at the horizon.

    Of the thresholds that a run knows, the two between whose numbers of missed posts the given number lies are mixed, for each
    seed in the proportion in which their numbers mix to it.

    Args:
        dataset: a study's, with `threshold_regret` and `threshold_optimal`.
        environment: one of its environments, with reviews.
        missed: (seed,) free posts that were removed by the horizon.
    """
    regret, optimal = (
        dataset[f"threshold_{what}"].sel(environment=environment).transpose("seed", "threshold", "time")
        for what in ("regret", "optimal")
    )
    known = decisions(dataset, environment, regret, optimal)
    counts, reviews = known.missed.isel(time=-1).transpose("seed", "threshold").values, known.taken.transpose(*regret.dims)
    mixed = np.empty((regret.sizes["seed"], regret.sizes["time"]))
    for seed, wanted in enumerate(missed.values):
        # the last that misses no more has the fewest reviews
        low = int(np.searchsorted(counts[seed], wanted, side="right")) - 1
        high = min(low + 1, counts.shape[1] - 1)
        gap = counts[seed, high] - counts[seed, low]
        share = (wanted - counts[seed, low]) / gap if gap else 0.0
        mixed[seed] = (1 - share) * reviews.values[seed, low] + share * reviews.values[seed, high]
    return xr.DataArray(mixed, {"seed": dataset["seed"], "time": dataset["time"]}, ("seed", "time"))


def random_reviews(dataset: xr.Dataset, environment: str, missed: xr.DataArray) -> xr.DataArray:
    """The same (seed, time), expected, of reviewing every post with one probability: 1 - missed / free posts shown."""
    words = wording(dataset, environment)
    free = dataset["constant_regret"].sel(environment=environment, action_index=0, drop=True).isel(time=-1) / words.free
    return ((1 - missed / free) * dataset["time"]).transpose("seed", "time")


#: What an agent's reviews are compared with, at its accuracy.
BASELINES = {"fixed threshold": fixed_threshold_reviews, "random review": random_reviews}
