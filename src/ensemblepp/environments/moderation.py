"""Hate-speech moderation (paper, Appendix "Content Moderation"): publish or block a post, known by its embedding.

    reward            free post   hateful post
    block  (action 0)    +0.5        +0.5
    publish (action 1)   +1.0        -0.5

Without noise. So "optimal" rounds are those that publish a free post or block a hateful one: their share is the accuracy.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ensemblepp.environments.contextual import Contextual, unit_rows
from ensemblepp.storage.datasets import read_dataset

BLOCK, PUBLISH = 0, 1


class Moderation(Contextual):
    """Moderation of a stream of distinct posts.

    Args:
        seeds: the seeds.
        inputs: {"embeddings": a netCDF file with `embedding` (post, feature) and `label` (post), 1 for hate}.
        scaling: "unit" divides every embedding by its norm, "none" leaves it as the model gave it.
        passes: how often every post may be shown.
    """

    def __init__(self, seeds: Sequence[int], *, inputs: dict[str, str | Path], scaling: str, passes: int) -> None:
        posts = read_dataset(inputs["embeddings"], finite=("embedding",), holds=("label",))
        embedding = posts["embedding"].values
        contexts = unit_rows(embedding) if scaling == "unit" else embedding
        hate = posts["label"].values == 1
        means = np.empty((len(hate), 2))
        means[:, BLOCK] = 0.5
        means[:, PUBLISH] = np.where(hate, -0.5, 1.0)
        super().__init__(seeds, contexts, means, noise=0.0, passes=passes)
