"""The laws of Ensemble++ in their three roles (paper, Appendix "Sampling, Isotropy, Concentration ..."): one table, `LAWS`.

Every law is an exact function of one standard normal vector g in R^M, so all laws and ensemble sizes of a seed can share
one Gaussian stream:

    gaussian    g
    sphere      sqrt(M) g / |g|
    cube        sign(g)
    coordinate  sqrt(M) sign(g_i) e_i      with i = argmax |g_i|
    sparse      sqrt(M/s) sum_i sign(g_i) e_i   over the s largest |g_i|; s = 2, and "sparse-4" is the same with s = 4

(positions of the largest |g_i| are uniform and independent of the signs). Roles: a *reference* vector zeta acts (mean 0,
covariance I); a *perturbation* vector z = zeta / |zeta| disturbs the data (unit norm, covariance I/M); *update* directions
are the zeta that the neural loss averages over.

A law of the user's is a function of g as well, and can stand wherever one of these can (`law`).
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ensemblepp import registry
from ensemblepp.errors import ConfigError

#: Standard normal vectors (..., M) to vectors of a law, of the same shape.
Transform = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Law:
    """A law, in all its roles.

    Attributes:
        name: what it is called in configuration, run files and figures.
        zeta: reference vectors, mean 0 and covariance I.
        z: perturbation vectors; None: zeta / sqrt(M), which has unit norm wherever zeta has norm sqrt(M).
        directions: M -> (directions, M), all vectors of a finite law; None: there is no finite list of them.
        count: M -> how many these are.
    """

    name: str
    zeta: Transform
    z: Transform | None = None
    directions: Callable[[int], np.ndarray] | None = None
    count: Callable[[int], float] | None = None


def reference(law: str | Law, gaussian: np.ndarray) -> np.ndarray:
    """Reference vectors zeta: mean 0, covariance I.

    Args:
        law: one of `LAWS`, or a law of the user's.
        gaussian: standard normal, shape (..., M).

    Returns:
        Array of the same shape. All of `LAWS` but "gaussian" have norm sqrt(M) exactly.

    Raises:
        ValueError: unknown law.
    """
    return _named(law, LAWS).zeta(gaussian)


def perturbation(law: str | Law, gaussian: np.ndarray) -> np.ndarray:
    """Perturbation vectors z = zeta / |zeta|: unit norm, mean 0, covariance I/M; shape as `gaussian`, (..., M).

    After the normalisation "gaussian" and "sphere" are the same law; "raw_gaussian" is N(0, I/M), of unit norm on average.

    Raises:
        ValueError: unknown law.
    """
    found = _named(law, PERTURBATIONS)
    return found.z(gaussian) if found.z else found.zeta(gaussian) / np.sqrt(gaussian.shape[-1])


def member(gaussian: np.ndarray) -> np.ndarray:
    """sqrt(M) e_m with m uniform: classical ensemble sampling acts through one member as it is, without a sign.

    The position is that of the coordinate law of the same Gaussian vector, (..., M). No law of Ensemble++: its mean is not 0.
    """
    return np.abs(_largest(gaussian, 1))


def update_directions(law: str | Law, size: int, gaussian: np.ndarray | None = None) -> np.ndarray:
    """Directions zeta that the neural loss averages over, shape (directions, M).

    The finite laws are enumerated: 2M vectors for "coordinate", 2^M for "cube", 2^s M!/(s! (M-s)!) for "sparse". For the
    others the directions are as many as `gaussian` has rows.

    Raises:
        ValueError: unknown law, or a continuous law without `gaussian`.
    """
    found = _named(law, LAWS)
    if found.directions:
        return found.directions(size)
    if gaussian is None:
        raise ValueError(f"the '{found.name}' law has no finite list of directions: pass standard normal rows")
    return found.zeta(gaussian)


# ---------------------------------------------------------------------------------------------------------- the table


def _itself(gaussian: np.ndarray) -> np.ndarray:
    return gaussian


def _unit(gaussian: np.ndarray) -> np.ndarray:
    return gaussian / np.linalg.norm(gaussian, axis=-1, keepdims=True)


def _on_sphere(gaussian: np.ndarray) -> np.ndarray:
    return np.sqrt(gaussian.shape[-1]) * gaussian / np.linalg.norm(gaussian, axis=-1, keepdims=True)


def _sign(gaussian: np.ndarray) -> np.ndarray:
    return np.where(gaussian < 0, -1.0, 1.0)


def _largest(gaussian: np.ndarray, count: int) -> np.ndarray:
    size = gaussian.shape[-1]
    count = min(count, size)
    positions = np.argpartition(np.abs(gaussian), size - count, axis=-1)[..., size - count :]
    result = np.zeros_like(gaussian)
    np.put_along_axis(
        result, positions, np.sqrt(size / count) * _sign(np.take_along_axis(gaussian, positions, axis=-1)), axis=-1
    )
    return result


def _axes(size: int) -> np.ndarray:
    return np.sqrt(size) * np.concatenate([np.eye(size), -np.eye(size)])


def _axes_count(size: int) -> float:
    return 2.0 * size


def _corners(size: int) -> np.ndarray:
    return np.array(list(itertools.product((1.0, -1.0), repeat=size)))


def _corners_count(size: int) -> float:
    return _as_float(1 << size)


def _sparse_directions(size: int, nonzero: int) -> np.ndarray:
    nonzero = min(nonzero, size)
    rows = []
    for positions in itertools.combinations(range(size), nonzero):
        for signs in itertools.product((1.0, -1.0), repeat=nonzero):
            row = np.zeros(size)
            row[list(positions)] = np.sqrt(size / nonzero) * np.array(signs)
            rows.append(row)
    return np.array(rows)


def _sparse_count(size: int, nonzero: int) -> float:
    nonzero = min(nonzero, size)
    return _as_float(math.comb(size, nonzero) << nonzero)


def _as_float(count: int) -> float:
    return float(min(count, 10**300))


def _sparse(name: str, nonzero: int) -> Law:
    """The law with `nonzero` entries that are not zero, all of them in ensembles smaller than that."""
    return Law(
        name,
        functools.partial(_largest, count=nonzero),
        directions=functools.partial(_sparse_directions, nonzero=nonzero),
        count=functools.partial(_sparse_count, nonzero=nonzero),
    )


#: The laws by name, in the order of figures and tables. The paper names no s for its sparse law; 2 is the released lineage's.
LAWS = {
    law.name: law
    for law in (
        Law("gaussian", _itself, _unit),
        Law("sphere", _on_sphere, _unit),
        Law("cube", _sign, directions=_corners, count=_corners_count),
        Law("coordinate", functools.partial(_largest, count=1), directions=_axes, count=_axes_count),
        _sparse("sparse", 2),
    )
}

#: Laws of the perturbation: these, of unit length, and N(0, I/M) as it is, which the released lineage calls Gaussian.
PERTURBATIONS = LAWS | {"raw_gaussian": Law("raw_gaussian", _itself)}

#: The sparse law with another s; s = 1 and s = 2 have names of their own.
_SPARSE = re.compile(r"sparse-([3-9]|[1-9]\d+)")

#: How all names that `reference` knows are written out.
ALLOWED = ", ".join([*LAWS, "sparse-3, sparse-4, ..."])


def is_law(name: str, table: Mapping[str, Law] = LAWS) -> bool:
    """Whether `name` is in `table`, or the sparse law with a number of entries in its name."""
    return name in table or _SPARSE.fullmatch(name) is not None


def in_order(names: Iterable[str]) -> list[str]:
    """Names of laws in the order of `PERTURBATIONS`, all others as they come behind them."""
    names = list(dict.fromkeys(names))
    return sorted(names, key=lambda name: list(PERTURBATIONS).index(name) if name in PERTURBATIONS else len(PERTURBATIONS))


def _named(law: str | Law, table: Mapping[str, Law]) -> Law:
    if isinstance(law, Law):
        return law
    if law in table:
        return table[law]
    if is_law(law):
        return _sparse(law, int(law.removeprefix("sparse-")))
    raise ValueError(f"unknown law '{law}': one of {', '.join(LAWS)}")


# ------------------------------------------------------------------------------------------------- laws of the user's

#: Vectors that a law of the user's is tried on, at most, and their entries.
_TRIED, _ENTRIES = 1 << 16, 1 << 22

#: Standard errors that a moment may be off: not once in a million tries by chance.
_ERRORS = 6.0

#: How a specification says a law: its name, or for one of the user's {"name", "function", "normalise"}.
Entry = str | Mapping[str, Any] | Law


def law(entry: Entry, size: int) -> Law:
    """The law that an agent's `references`, `perturbations` or `update` names, for ensembles of `size`.

    A law of the user's is {"name": ..., "function": "module:function", "normalise": ...}, or a `Law` made in Python. Its
    function takes standard normal vectors (..., M) to zeta of the same shape, each by itself, with mean 0 and covariance I.
    Its perturbation is z = zeta / |zeta|, or with `normalise` false z = zeta / sqrt(M).

    Raises:
        ValueError: unknown law.
        ConfigError: its name is another's, or its function cannot be used; it is tried when the law is first asked for.
    """
    if isinstance(entry, str):
        return _named(entry, PERTURBATIONS)
    if not isinstance(entry, Law):
        entry = _own(entry["name"], entry["function"], entry.get("normalise", True))
    if PERTURBATIONS.get(entry.name) is entry:
        return entry
    if is_taken(entry.name):
        raise ConfigError(f"law '{entry.name}': the name is that of another law")
    return _tried(entry, size)


def name_of(entry: Entry) -> str:
    """The name of the law that `law` gives."""
    if isinstance(entry, Mapping):
        return entry["name"]
    return entry.name if isinstance(entry, Law) else entry


def is_taken(name: str) -> bool:
    """Whether a law of the user's cannot have this name."""
    return is_law(name, PERTURBATIONS) or name in ("none", "member", "exact")


@functools.cache
def _own(name: str, place: str, normalise: bool) -> Law:
    function = registry.load(place)
    return Law(name, function, functools.partial(_normalised, function) if normalise else None)


def _normalised(function: Transform, gaussian: np.ndarray) -> np.ndarray:
    return _unit(function(gaussian))


@functools.cache
def _tried(found: Law, size: int) -> Law:
    """`found`, if its function keeps to what is asked of it in ensembles of `size`.

    Moments are tried along random directions, and in small ensembles along the axes: a law whose vectors have few entries
    that are not zero has heavy tails along an axis and none along a direction that is not one.

    Raises:
        ConfigError: it does not.
    """
    source = np.random.default_rng(0)
    gaussian = source.standard_normal((min(_TRIED, max(_ENTRIES // size, 1)), size))
    given = gaussian.copy()
    zeta = np.asarray(found.zeta(given))
    where = f"law '{found.name}' at ensemble size {size}:"
    if not np.array_equal(given, gaussian):
        raise ConfigError(f"{where} its function changes the vectors that it is given; it must return others")
    if zeta.shape != gaussian.shape:
        raise ConfigError(f"{where} its function returns the shape {zeta.shape}, for vectors of shape {gaussian.shape}")
    if not np.isfinite(zeta).all():
        raise ConfigError(f"{where} its function returns numbers that are not finite")
    # a round's vector must not depend on which rounds are drawn with it
    alone = np.concatenate([np.asarray(found.zeta(gaussian[row : row + 1])) for row in range(3)])
    if not np.allclose(alone, zeta[:3], rtol=1e-12, atol=1e-12):
        raise ConfigError(f"{where} its function must take each vector by itself, always to the same one")
    directions = _unit(source.standard_normal((32, size)))
    if size <= 16:
        directions = np.concatenate([np.eye(size), directions])
    along = zeta @ directions.T
    for moment, expected in ((1, 0.0), (2, 1.0)):
        values = along**moment
        error = values.std(axis=0) / np.sqrt(len(values)) + 1e-9
        off = (values.mean(axis=0) - expected) / error
        worst = int(np.abs(off).argmax())
        if abs(off[worst]) > _ERRORS:
            name = "mean" if moment == 1 else "mean square"
            raise ConfigError(
                f"{where} mean 0 and covariance I are asked for, and along some direction its {name} is "
                f"{values[:, worst].mean():.3g} instead of {expected:g} ({len(values):,} vectors)"
            )
    return found
