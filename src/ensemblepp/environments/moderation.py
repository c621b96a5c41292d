"""Hate-speech moderation (paper, Appendix "Content Moderation"): what becomes of a post that is known by its embedding.

Of the paper's two wordings, `publish_or_block` is its experiment's, and `remove_or_review` its formulation's, in which the
label of a post is seen only where it is reviewed, at a cost c:

    reward                 free post   hateful post
    block    (action 0)      +0.5         +0.5
    publish  (action 1)      +1.0         -0.5

    remove   (action 0)      +0.5         +0.5
    review   (action 1)      1 - c       0.5 - c

Without noise. Action 1 is the better one where the chance that the post is free is above 2/3, or above 2c, which is the same at
c = 1/3. "Optimal" rounds are those that publish or review a free post, or block or remove a hateful one. In the first wording
their share is the accuracy; in the second a review is always right, and wrong is a free post that was removed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from ensemblepp.environments.contextual import Contextual
from ensemblepp.environments.scaling import Scaling, scaled
from ensemblepp.errors import ResultError
from ensemblepp.storage.datasets import read_dataset

Actions = Literal["publish_or_block", "remove_or_review"]

BLOCK, PUBLISH = 0, 1

#: The reward of action 0, whatever the post is; and that of publishing one that is free, and one that is hateful.
BLOCKED = 0.5
PUBLISHED = 1.0, -0.5

#: Fixed thresholds on a supervised probability, against which reviews are measured: one at every percentile of the posts.
THRESHOLDS = 101


class Moderation(Contextual):
    """Moderation of a stream of posts.

    Args:
        seeds: the seeds.
        inputs: {"embeddings": a netCDF file with `embedding` (post, feature) and `label` (post), 1 for hate}, and where there
            is one, "ceiling": the file of `ceiling.write` for them. Then the run tells too what policies by its probabilities
            would have gained: "ceiling", which takes action 1 above the threshold of the rewards, and in the wording with
            reviews "threshold", `THRESHOLDS` of them.
        scaling: "none" leaves every embedding as the model gave it, "unit" divides it by its norm, "standardise" gives every
            feature mean 0 and variance 1 over the posts; no label is looked at.
        actions: the wording.
        review_cost: c, of the wording with reviews.
        passes: how often every post may be shown.

    Raises:
        ResultError: a file is damaged, or the ceiling is of other posts.
    """

    def __init__(
        self,
        seeds: Sequence[int],
        *,
        inputs: Mapping[str, str | Path],
        scaling: Scaling,
        passes: int,
        actions: Actions = "publish_or_block",
        review_cost: float = 1 / 3,
    ) -> None:
        posts = read_dataset(inputs["embeddings"], finite=("embedding",), holds=("label",))
        hate = posts["label"].values == 1
        free_reward, hate_reward = PUBLISHED if actions == "publish_or_block" else (1 - review_cost, 0.5 - review_cost)
        means = rewards(hate, free_reward, hate_reward)
        policies: dict[str, np.ndarray] = {}
        if "ceiling" in inputs:
            free = read_dataset(inputs["ceiling"], finite=("free",), holds=("label",))
            if not np.array_equal(free["label"].values == 1, hate):
                raise ResultError(f"{inputs['ceiling']}: of other posts than {inputs['embeddings']}; delete it and run again")
            chance = free["free"].values
            policies["ceiling"] = (chance > (BLOCKED - hate_reward) / (free_reward - hate_reward))[:, None].astype(np.intp)
            if actions == "remove_or_review":
                policies["threshold"] = (chance[:, None] >= thresholds(chance)).astype(np.intp)
        super().__init__(seeds, scaled(posts["embedding"].values, scaling), means, noise=0.0, passes=passes, policies=policies)


def rewards(hate: np.ndarray, free_reward: float, hate_reward: float) -> np.ndarray:
    """The rewards of both actions, (post, 2), of posts that are hateful or not, bool (post,)."""
    return np.stack([np.full(len(hate), BLOCKED), np.where(hate, hate_reward, free_reward)], axis=1)


def thresholds(chance: np.ndarray) -> np.ndarray:
    """`THRESHOLDS` values, (THRESHOLDS,), from one that every one of the chances (post,) reaches to one that none does."""
    return np.append(np.quantile(chance, np.linspace(0, 1, THRESHOLDS)[:-1], method="higher"), np.inf)
