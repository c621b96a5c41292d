"""A classification data set as a contextual bandit: reward 1 for the right class, else 0, plus N(0, noise^2)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from ensemblepp.environments.contextual import Contextual
from ensemblepp.environments.scaling import standard_columns, unit_rows
from ensemblepp.storage.datasets import read_dataset


class Classification(Contextual):
    """UCI classification bandit (paper, Appendix "Additional Experiments on Nonlinear Bandit"), on any prepared table.

    Args:
        seeds: the seeds.
        inputs: {"data": prepared netCDF file with `label` and `value` (numbers), `code` and `cardinality` (nominal), or both}.
        coding: nominal attributes as "onehot" vectors or as their "ordinal" codes, after the numeric ones.
        scaling: "unit" divides every row by its norm; "standardise" makes every column but 0/1 indicators one of mean 0 and
            variance 1; "none" leaves the numbers as they are.
        noise: standard deviation of the reward noise.
        passes: how often every row may be shown.
    """

    def __init__(
        self,
        seeds: Sequence[int],
        *,
        inputs: dict[str, str | Path],
        coding: Literal["onehot", "ordinal"],
        scaling: Literal["unit", "standardise", "none"] = "unit",
        noise: float,
        passes: int,
    ) -> None:
        data = read_dataset(inputs["data"], holds=("label",))
        numbers = [data[name].values for name in ("value", "code") if name in data and (name, coding) != ("code", "onehot")]
        if scaling == "standardise":
            numbers = [standard_columns(table) for table in numbers]
        if "code" in data and coding == "onehot":
            numbers.append(onehot(data["code"].values, data["cardinality"].values))
        table = np.concatenate(numbers, axis=1)
        label = data["label"].values
        means = np.eye(label.max() + 1)[label]
        contexts = unit_rows(table) if scaling == "unit" else table.astype(np.float32)
        super().__init__(seeds, contexts, means, noise=noise, passes=passes)


def onehot(codes: np.ndarray, cardinality: np.ndarray) -> np.ndarray:
    """Nominal codes (rows, attributes) as 0/1 indicators (rows, sum of cardinalities), attribute by attribute."""
    return np.concatenate([np.eye(size)[codes[:, column]] for column, size in enumerate(cardinality)], axis=1)
