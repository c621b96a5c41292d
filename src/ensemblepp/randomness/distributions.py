"""The five laws of Ensemble++ in their three roles (paper, Appendix "Sampling, Isotropy, Concentration ...").

Every law is an exact function of one standard normal vector g in R^M, so all laws and ensemble sizes of a seed can share
one Gaussian stream:

    gaussian    g
    sphere      sqrt(M) g / |g|
    cube        sign(g)
    coordinate  sqrt(M) sign(g_i) e_i      with i = argmax |g_i|
    sparse      sqrt(M/s) sum_i sign(g_i) e_i   over the s largest |g_i|

(positions of the largest |g_i| are uniform and independent of the signs). Roles: a *reference* vector zeta acts (mean 0,
covariance I); a *perturbation* vector z = zeta / |zeta| disturbs the data (unit norm, covariance I/M); *update* directions
are the zeta that the neural loss averages over.
"""

from __future__ import annotations

import itertools
from typing import Literal, get_args

import numpy as np

Law = Literal["gaussian", "sphere", "cube", "coordinate", "sparse"]
LAWS: tuple[Law, ...] = get_args(Law)

#: Laws of the perturbation: the five, of unit length, and N(0, I/M) as it is, which the released lineage calls Gaussian.
Perturbation = Literal[Law, "raw_gaussian"]

#: Non-zero entries of the sparse law; the paper names no value, 2 is the released lineage's.
SPARSITY = 2


def reference(law: Law, gaussian: np.ndarray) -> np.ndarray:
    """Reference vectors zeta: mean 0, covariance I.

    Args:
        law: one of `LAWS`.
        gaussian: standard normal, shape (..., M).

    Returns:
        Array of the same shape. All laws but "gaussian" have norm sqrt(M) exactly.

    Raises:
        ValueError: unknown law.
    """
    size = gaussian.shape[-1]
    if law == "gaussian":
        return gaussian
    if law == "sphere":
        return np.sqrt(size) * gaussian / np.linalg.norm(gaussian, axis=-1, keepdims=True)
    if law == "cube":
        return _sign(gaussian)
    if law == "coordinate":
        return _largest(gaussian, 1)
    if law == "sparse":
        return _largest(gaussian, min(SPARSITY, size))
    raise _unknown(law)


def perturbation(law: Perturbation, gaussian: np.ndarray) -> np.ndarray:
    """Perturbation vectors z = zeta / |zeta|: unit norm, mean 0, covariance I/M; shape as `gaussian`, (..., M).

    After the normalisation "gaussian" and "sphere" are the same law; "raw_gaussian" is N(0, I/M), of unit norm on average.

    Raises:
        ValueError: unknown law.
    """
    size = gaussian.shape[-1]
    if law in ("gaussian", "sphere"):
        return gaussian / np.linalg.norm(gaussian, axis=-1, keepdims=True)
    if law == "raw_gaussian":
        return gaussian / np.sqrt(size)
    return reference(law, gaussian) / np.sqrt(size)


def member(gaussian: np.ndarray) -> np.ndarray:
    """sqrt(M) e_m with m uniform: classical ensemble sampling acts through one member as it is, without a sign.

    The position is that of the coordinate law of the same Gaussian vector, (..., M). No law of Ensemble++: its mean is not 0.
    """
    return np.abs(_largest(gaussian, 1))


def update_directions(law: Law, size: int, gaussian: np.ndarray | None = None) -> np.ndarray:
    """Directions zeta that the neural loss averages over, shape (directions, M).

    The finite laws are enumerated: 2M vectors for "coordinate", 2^M for "cube", 4 M(M-1)/2 for "sparse" (s = 2). For
    "gaussian" and "sphere" the directions are as many as `gaussian` has rows.

    Raises:
        ValueError: unknown law, or a continuous law without `gaussian`.
    """
    if law == "coordinate":
        return np.sqrt(size) * np.concatenate([np.eye(size), -np.eye(size)])
    if law == "cube":
        return np.array(list(itertools.product((1.0, -1.0), repeat=size)))
    if law == "sparse":
        nonzero = min(SPARSITY, size)
        rows = []
        for positions in itertools.combinations(range(size), nonzero):
            for signs in itertools.product((1.0, -1.0), repeat=nonzero):
                row = np.zeros(size)
                row[list(positions)] = np.sqrt(size / nonzero) * np.array(signs)
                rows.append(row)
        return np.array(rows)
    if law not in LAWS:
        raise _unknown(law)
    if gaussian is None:
        raise ValueError(f"the '{law}' law has no finite list of directions: pass standard normal rows")
    return reference(law, gaussian)


def _unknown(law: str) -> ValueError:
    return ValueError(f"unknown law '{law}': one of {', '.join(LAWS)}")


def _sign(gaussian: np.ndarray) -> np.ndarray:
    return np.where(gaussian < 0, -1.0, 1.0)


def _largest(gaussian: np.ndarray, count: int) -> np.ndarray:
    size = gaussian.shape[-1]
    positions = np.argpartition(np.abs(gaussian), size - count, axis=-1)[..., size - count :]
    result = np.zeros_like(gaussian)
    np.put_along_axis(
        result, positions, np.sqrt(size / count) * _sign(np.take_along_axis(gaussian, positions, axis=-1)), axis=-1
    )
    return result
