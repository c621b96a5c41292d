"""A classification data set as a contextual bandit: reward 1 for the right class, else 0, plus N(0, noise^2)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from ensemblepp.environments.contextual import Contextual, unit_rows
from ensemblepp.storage.datasets import read_dataset


class Classification(Contextual):
    """UCI classification bandit (paper, Appendix "Additional Experiments on Nonlinear Bandit").

    Args:
        seeds: the seeds.
        inputs: {"data": prepared netCDF file with `label` and either `code` (nominal) or `value` (numbers)}.
        coding: nominal attributes as "onehot" vectors or as their "ordinal" codes; no effect on numeric features.
        noise: standard deviation of the reward noise.
        passes: how often every row may be shown.
    """

    def __init__(
        self,
        seeds: Sequence[int],
        *,
        inputs: dict[str, str | Path],
        coding: Literal["onehot", "ordinal"],
        noise: float,
        passes: int,
    ) -> None:
        data = read_dataset(inputs["data"])
        if "code" in data:
            codes = data["code"].values
            table = onehot(codes, data["cardinality"].values) if coding == "onehot" else codes
        else:
            table = data["value"].values
        label = data["label"].values
        means = np.eye(label.max() + 1)[label]
        super().__init__(seeds, unit_rows(table), means, noise=noise, passes=passes)


def onehot(codes: np.ndarray, cardinality: np.ndarray) -> np.ndarray:
    """Nominal codes (rows, attributes) as 0/1 indicators (rows, sum of cardinalities), attribute by attribute."""
    return np.concatenate([np.eye(size)[codes[:, column]] for column, size in enumerate(cardinality)], axis=1)
