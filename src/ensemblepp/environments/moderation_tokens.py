"""Moderation for agents that train the language model themselves: a post is its tokens, not its embedding.

Rewards, posts and their order are those of `moderation`: at one seed, agents on tokens and agents on embeddings of as many
posts meet the same stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ensemblepp.environments.contextual import Contextual
from ensemblepp.environments.moderation import PUBLISHED, rewards
from ensemblepp.storage.datasets import read_dataset


class TokenModeration(Contextual):
    """Moderation of a stream of distinct posts whose contexts are (number of tokens, tokens, zeros).

    They are float32 like all contexts, which holds every token number below 16,777,216 exactly.

    Args:
        seeds: the seeds.
        inputs: {"tokens": a netCDF file with `token` (post, position), `length` and `label` (post), 1 for hate; "model": the
            configuration of the language model that they are for, which is not read here}.
        passes: how often every post may be shown.
    """

    def __init__(self, seeds: Sequence[int], *, inputs: dict[str, str | Path], passes: int) -> None:
        posts = read_dataset(inputs["tokens"], finite=("token", "length"), holds=("label",))
        contexts = np.concatenate([posts["length"].values[:, None], posts["token"].values], axis=1)
        means = rewards(posts["label"].values == 1, *PUBLISHED)
        super().__init__(seeds, contexts, means, noise=0.0, passes=passes)
