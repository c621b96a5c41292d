"""How rows of features are scaled before an agent is shown them; no label is looked at."""

from __future__ import annotations

from typing import Literal

import numpy as np

Scaling = Literal["none", "unit", "standardise"]


def scaled(embedding: np.ndarray, scaling: Scaling) -> np.ndarray:
    """Embeddings (post, feature) as they are, with rows of norm 1, or with columns of mean 0 and variance 1."""
    if scaling == "unit":
        return unit_rows(embedding)
    return standard_columns(embedding) if scaling == "standardise" else embedding


def unit_rows(table: np.ndarray) -> np.ndarray:
    """`table` (rows, d) with every row divided by its Euclidean norm (rows of zeros stay), float32."""
    norm = np.linalg.norm(table.astype(np.float64), axis=1, keepdims=True)
    return (table / np.where(norm == 0, 1, norm)).astype(np.float32)


def standard_columns(table: np.ndarray) -> np.ndarray:
    """`table` (rows, d) with every column less its mean, over its standard deviation (constant columns become 0), float64."""
    centred = table - table.mean(axis=0, dtype=np.float64)
    spread = centred.std(axis=0)
    return centred / np.where(spread == 0, 1, spread)
