"""Laws beyond the five: any number of entries of the sparse law, and functions of the user's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special

from ensemblepp.errors import ConfigError
from ensemblepp.randomness import distributions
from ensemblepp.randomness.distributions import LAWS, Law, law, perturbation, reference, update_directions
from ensemblepp.storage.states import Parts, pack, unpack

SIZE = 6


def normals(rows: int, size: int = SIZE) -> np.ndarray:
    return np.random.default_rng(7).standard_normal((rows, size))


def laplace(gaussian: np.ndarray) -> np.ndarray:
    """Independent Laplace entries of variance 1, by inverting the distribution function."""
    centred = special.ndtr(gaussian) - 0.5
    return -np.sign(centred) * np.log1p(-2 * np.abs(centred)) / math.sqrt(2)


PLACE = {"name": "laplace", "function": f"{__name__}:laplace", "normalise": True}


# --------------------------------------------------------------------------------------------------------------- sparse


@pytest.mark.parametrize("nonzero", [3, 4, 5])
def test_the_sparse_law_keeps_as_many_entries_as_its_name_says(nonzero):
    gaussian = normals(50)
    zeta = reference(f"sparse-{nonzero}", gaussian)
    for row, vector in zip(gaussian, zeta, strict=True):
        kept = np.argsort(-np.abs(row))[:nonzero]
        expected = np.zeros(SIZE)
        expected[kept] = np.sign(row[kept]) * math.sqrt(SIZE / nonzero)
        assert vector == pytest.approx(expected)
    assert np.linalg.norm(perturbation(f"sparse-{nonzero}", gaussian), axis=1) == pytest.approx(1.0)


def test_more_entries_than_members_are_all_members():
    gaussian = normals(20, 3)
    assert np.array_equal(reference("sparse-4", gaussian), reference("cube", gaussian))


@pytest.mark.parametrize(("nonzero", "size"), [(3, 4), (4, 4), (4, 3), (3, 6)])
def test_directions_of_the_sparse_law(nonzero, size):
    found = law(f"sparse-{nonzero}", size)
    directions = update_directions(found.name, size)
    kept = min(nonzero, size)
    assert len(directions) == found.count(size) == math.comb(size, kept) * 2**kept
    assert len(np.unique(directions, axis=0)) == len(directions)
    assert directions.T @ directions / len(directions) == pytest.approx(np.eye(size))


@pytest.mark.parametrize("name", ["sparse-1", "sparse-2", "sparse-03", "sparse-", "sparse-3.5"])
def test_one_name_for_each_law(name):
    assert not distributions.is_law(name)
    with pytest.raises(ValueError, match=f"unknown law '{name}'"):
        reference(name, normals(1))


@pytest.mark.parametrize("size", [1, 2, 5])
@pytest.mark.parametrize("name", [name for name in LAWS if LAWS[name].directions])
def test_the_table_counts_what_it_lists(name, size):
    assert LAWS[name].count(size) == len(update_directions(name, size))


def test_counts_of_large_ensembles_are_numbers():
    assert all(LAWS[name].count(1024) > 1e3 for name in ("cube", "coordinate", "sparse"))


# --------------------------------------------------------------------------------------------------- laws of the user's


def test_a_law_of_ones_own_as_a_specification_says_it():
    gaussian = normals(100)
    found = law(PLACE, SIZE)
    zeta = laplace(gaussian)
    assert np.array_equal(reference(found, gaussian), zeta)
    assert perturbation(found, gaussian) == pytest.approx(zeta / np.linalg.norm(zeta, axis=1, keepdims=True))
    free = law(PLACE | {"normalise": False}, SIZE)
    assert perturbation(free, gaussian) == pytest.approx(zeta / math.sqrt(SIZE))
    assert np.array_equal(update_directions(found, SIZE, gaussian), zeta)
    with pytest.raises(ValueError, match="'laplace' law has no finite list"):
        update_directions(found, SIZE)


def test_it_can_be_kept_in_a_checkpoint():
    for entry in (PLACE, *LAWS, "sparse-4"):
        fresh = law(entry, SIZE)
        parts = Parts(fresh)
        found = unpack(*pack(fresh, parts), parts)
        assert np.array_equal(reference(found, normals(3)), reference(law(entry, SIZE), normals(3)))


@pytest.mark.parametrize("size", [1, 2, 16, 17, 300, 1024])
@pytest.mark.parametrize("name", [*LAWS, "sparse-4", "laplace"])
def test_no_law_that_is_one_is_refused(name, size):
    """Every law of the table, tried as if it were the user's."""
    law(Law("mine", laplace if name == "laplace" else lambda gaussian: reference(name, gaussian)), size)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda gaussian: 1.1 * gaussian, "mean 0 and covariance I are asked for, .* mean square is 1.2. instead of 1 "),
        (lambda gaussian: gaussian + 0.1, "mean 0 and covariance I are asked for, .* mean is .* instead of 0 "),
        (
            lambda gaussian: np.repeat(gaussian[..., :1], SIZE, axis=-1),
            "mean 0 and covariance I are asked for, .* mean square is ",
        ),
        (np.abs, "mean 0 and covariance I are asked for"),
        (lambda gaussian: gaussian[..., :1], r"returns the shape \(65536, 1\), for vectors of shape \(65536, 6\)"),
        (lambda gaussian: gaussian[0], r"returns the shape \(6,\), for"),
        (lambda gaussian: np.where(gaussian > 3, np.nan, gaussian), "returns numbers that are not finite"),
        (lambda gaussian: gaussian - gaussian.mean(axis=0), "must take each vector by itself"),
        (lambda gaussian: np.random.default_rng().standard_normal(gaussian.shape), "must take each vector by itself"),
        (lambda gaussian: np.negative(gaussian, out=gaussian), "changes the vectors that it is given"),
    ],
)
def test_a_function_that_is_no_law_is_refused(function, words):
    with pytest.raises(ConfigError, match=f"^law 'mine' at ensemble size {SIZE}: .*{words}"):
        law(Law("mine", function), SIZE)


@pytest.mark.parametrize("name", ["sphere", "raw_gaussian", "sparse-4", "none", "member", "exact"])
def test_its_name_is_not_another_laws(name):
    with pytest.raises(ConfigError, match=f"^law '{name}': the name is that of another law$"):
        law(Law(name, laplace), SIZE)


def test_names_of_laws_in_the_order_of_the_table():
    names = ["laplace", "raw_gaussian", "sparse", "sparse-4", "gaussian", "laplace"]
    assert distributions.in_order(names) == ["gaussian", "sparse", "raw_gaussian", "laplace", "sparse-4"]
