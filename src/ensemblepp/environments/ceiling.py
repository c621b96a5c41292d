"""What could be learnt of posts: logistic regression on their embeddings, each post judged by a fit that has not seen it.

The posts are cut into folds, and those of a fold are judged by a fit to the others. Posts with one embedding lie in one fold,
so that no text is judged by a fit that has seen it. The strength of the penalty is chosen within the training folds alone, by
the log loss on folds of them. Features are centred and divided by their spread over the training folds, after the
environment's scaling.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ensemblepp.environments.scaling import Scaling, scaled
from ensemblepp.errors import DataError
from ensemblepp.storage.datasets import read_dataset, write_dataset

#: Folds of all posts, and of the training folds where the strength is chosen.
FOLDS, INNER_FOLDS = 5, 3

#: Inverse strengths of the penalty, C, from strong to weak.
STRENGTHS = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)

#: Steps of a fit: many more than it takes at any of these strengths.
MAX_STEPS = 5_000


class Ceiling(NamedTuple):
    """What a supervised fit makes of posts.

    Attributes:
        free: (post,) probability that the post is free, by the fit that has not seen it.
        fold: int8 (post,), which fold it lay in.
        strengths: C of every fold's fit.
    """

    free: np.ndarray
    fold: np.ndarray
    strengths: tuple[float, ...]


def out_of_fold(features: np.ndarray, hate: np.ndarray, source: np.random.Generator) -> Ceiling:
    """Judge every post.

    Args:
        features: (post, feature).
        hate: bool (post,).
        source: random numbers for the folds.

    Raises:
        DataError: fewer different posts of one class than there are folds.
    """
    group = np.unique(features, axis=0, return_inverse=True)[1].ravel()
    fewest = min(len(np.unique(group[hate])), len(np.unique(group[~hate])))
    if fewest < FOLDS:
        raise DataError(
            f"{fewest} different posts of the rarer class: too few for a supervised ceiling (expected {FOLDS} or "
            "more); raise environments.*.posts"
        )
    fold = folds(group, hate, FOLDS, source)
    free, strengths = np.empty(len(hate)), []
    for held in range(FOLDS):
        known = fold != held
        mean, spread = features[known].mean(axis=0), features[known].std(axis=0)
        ready = (features - mean) / np.where(spread == 0, 1, spread)
        inner = folds(group[known], hate[known], INNER_FOLDS, source)
        losses = np.zeros(len(STRENGTHS))
        for part in range(INNER_FOLDS):
            fits = _fits(ready[known][inner != part], hate[known][inner != part], STRENGTHS)
            for place, fit in enumerate(fits):
                losses[place] += _log_loss(fit.predict_proba(ready[known][inner == part])[:, 0], hate[known][inner == part])
        strengths.append(STRENGTHS[int(losses.argmin())])
        (fit,) = _fits(ready[known], hate[known], strengths[-1:])
        free[~known] = fit.predict_proba(ready[~known])[:, 0]
    return Ceiling(free, fold.astype(np.int8), tuple(strengths))


def folds(group: np.ndarray, hate: np.ndarray, count: int, source: np.random.Generator) -> np.ndarray:
    """The fold of every post, int (post,): each class's groups in random order, dealt in turn.

    Args:
        group: int (post,); posts of one group lie in one fold.
        hate: bool (post,); a group is of the class of its first post.
        count: how many folds.
        source: random numbers.
    """
    names, first, place = np.unique(group, return_index=True, return_inverse=True)
    of_group = np.empty(len(names), int)
    for one in (False, True):
        mine = source.permutation(np.flatnonzero(hate[first] == one))
        of_group[mine] = np.arange(len(mine)) % count
    return of_group[place]


def write(embeddings: str | Path, output: str | Path, scaling: Scaling) -> None:
    """Write `free`, `fold` and `label`, each (post,), for a file of embeddings as netCDF; attributes say how good the fit is.

    Raises:
        ResultError: the file of embeddings is damaged.
        DataError: see `out_of_fold`.
    """
    from importlib.metadata import version

    import xarray as xr

    posts = read_dataset(embeddings, finite=("embedding",), holds=("label",))
    hate = posts["label"].values == 1
    features = scaled(posts["embedding"].values, scaling).astype(np.float64)
    found = out_of_fold(features, hate, np.random.default_rng(0))
    about = {
        "scaling": scaling,
        "strengths": json.dumps(found.strengths),
        "accuracy": float(((found.free < 0.5) == hate).mean()),
        "log_loss": _log_loss(found.free, hate),
        "scikit_learn": version("scikit-learn"),
    }
    about |= {name: posts.attrs[name] for name in ("language_model", "source") if name in posts.attrs}
    variables = {"free": found.free, "fold": found.fold, "label": posts["label"].values}
    write_dataset(xr.Dataset({name: ("post", values) for name, values in variables.items()}, attrs=about), output)


def _fits(features: np.ndarray, hate: np.ndarray, strengths: tuple[float, ...] | list[float]) -> Iterator:
    """A fit for each strength, each from where the one before ended."""
    from sklearn.linear_model import LogisticRegression

    fit = LogisticRegression(warm_start=True, max_iter=MAX_STEPS)
    for strength in strengths:
        yield fit.set_params(C=strength).fit(features, hate)


def _log_loss(free: np.ndarray, hate: np.ndarray) -> float:
    """Mean loss in nats; no probability counts as less than 1e-12."""
    return float(-np.log(np.clip(np.where(hate, 1 - free, free), 1e-12, 1)).mean())
