"""The five laws in their three roles against the paper's Appendix "Sampling, Isotropy, Concentration, Anti-concentration".

The law of a standard normal vector does not change when its entries are permuted or their signs flipped. So the image of
all 2^M M! signed permutations of one vector under a finite law is that law itself, and its moments can be had exactly.
"""

import functools
import itertools
import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from ensemblepp.randomness.distributions import LAWS, member, perturbation, reference, update_directions
from ensemblepp.randomness.streams import generator

FINITE = ("cube", "coordinate", "sparse")
DRAWS = 200_000

#: Standard errors that a Monte Carlo mean may be off; 5 are exceeded by chance once in 1.7 million comparisons.
Z = 5.0


@functools.cache
def normals(size: int, rows: int = DRAWS) -> np.ndarray:
    draws = generator(0, "reference").standard_normal((rows, size))
    draws.setflags(write=False)  # shared by the tests; a law must not write into its input
    return draws


def signed_permutations(size: int) -> np.ndarray:
    """Every signed permutation of (1, ..., M), shape (2^M M!, M)."""
    rows = [
        np.array(signs) * np.array(order)
        for order in itertools.permutations(range(1, size + 1))
        for signs in itertools.product((1.0, -1.0), repeat=size)
    ]
    return np.array(rows)


def support(law: str, size: int) -> list[tuple[float, ...]]:
    """The support of a finite law as the paper's sampling algorithms give it."""
    rows = []
    if law == "cube":
        rows = [list(signs) for signs in itertools.product((1.0, -1.0), repeat=size)]
    if law == "coordinate":
        for position in range(size):
            for sign in (1.0, -1.0):
                rows.append([sign * math.sqrt(size) if index == position else 0.0 for index in range(size)])
    if law == "sparse":
        for first, second in itertools.combinations(range(size), 2):
            for signs in itertools.product((1.0, -1.0), repeat=2):
                row = [0.0] * size
                row[first], row[second] = (sign * math.sqrt(size / 2) for sign in signs)
                rows.append(row)
    return [tuple(np.round(row, 12)) for row in rows]


def counts(vectors: np.ndarray) -> Counter:
    """How often each vector occurs (-0.0 and 0.0 are one)."""
    return Counter(tuple(row) for row in np.round(vectors, 12) + 0.0)


def assert_moments(vectors: np.ndarray, covariance: np.ndarray) -> None:
    """Mean 0 and the given covariance, within `Z` standard errors that are estimated from the same draws."""
    size = vectors.shape[1]
    for values, target in [(vectors, np.zeros(size))] + [
        (vectors * vectors[:, [entry]], covariance[entry]) for entry in range(size)
    ]:
        error = values.std(axis=0) / math.sqrt(len(values))
        assert (np.abs(values.mean(axis=0) - target) <= Z * error + 1e-12).all()


@pytest.mark.parametrize("size", [1, 2, 3, 8])
@pytest.mark.parametrize("law", LAWS)
def test_reference_is_isotropic(law, size):
    """Definition "Isotropic": mean 0, covariance I, over 200,000 draws."""
    assert_moments(reference(law, normals(size)), np.eye(size))


@pytest.mark.parametrize("size", [1, 2, 3, 8])
@pytest.mark.parametrize("law", [*LAWS, "raw_gaussian"])
def test_perturbation_has_covariance_one_over_m(law, size):
    """z = zeta / |zeta| and N(0, I/M) as it is have mean 0 and covariance I/M, over 200,000 draws."""
    assert_moments(perturbation(law, normals(size)), np.eye(size) / size)


@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("law", FINITE)
def test_finite_laws_are_uniform_on_their_support(law, size):
    """Exact, by enumeration: every vector of the paper's support is hit equally often, and none else."""
    vectors = reference(law, signed_permutations(size))
    found = counts(vectors)
    assert set(found) == set(support(law, size))
    assert set(found.values()) == {len(vectors) // len(found)}
    np.testing.assert_allclose(vectors.sum(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(vectors.T @ vectors / len(vectors), np.eye(size), atol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 3, 8, 64, 1024])
@pytest.mark.parametrize("law", [law for law in LAWS if law != "gaussian"])
def test_norm_of_the_reference_is_sqrt_m(law, size):
    """By definition |zeta| = sqrt(M), for every law but the Gaussian."""
    norms = np.linalg.norm(reference(law, normals(size, 500)), axis=-1)
    np.testing.assert_allclose(norms, math.sqrt(size), rtol=1e-14)


@pytest.mark.parametrize("size", [1, 3, 8])
def test_norm_of_the_gaussian_reference_is_chi(size):
    """E|g| = sqrt(2) Gamma((M+1)/2) / Gamma(M/2), E|g|^2 = M, and the whole law by Kolmogorov-Smirnov."""
    norms = np.linalg.norm(reference("gaussian", normals(size)), axis=-1)
    mean = math.sqrt(2) * math.exp(math.lgamma((size + 1) / 2) - math.lgamma(size / 2))
    assert abs(norms.mean() - mean) <= Z * math.sqrt((size - mean**2) / DRAWS)
    assert abs((norms**2).mean() - size) <= Z * math.sqrt(2 * size / DRAWS)
    assert stats.kstest(norms, stats.chi(size).cdf).pvalue > 1e-3


@pytest.mark.parametrize("size", [1, 2, 3, 8, 1024])
@pytest.mark.parametrize("law", LAWS)
def test_perturbation_is_the_normalised_reference(law, size):
    """z = zeta / |zeta|, so |z| = 1."""
    gaussian = normals(size, 200)
    zeta, z = reference(law, gaussian), perturbation(law, gaussian)
    np.testing.assert_allclose(z, zeta / np.linalg.norm(zeta, axis=-1, keepdims=True), rtol=1e-13)
    np.testing.assert_allclose(np.linalg.norm(z, axis=-1), 1, rtol=1e-14)


def test_gaussian_and_sphere_perturbations_are_the_same():
    """After the normalisation the two laws are one; the sphere's reference is that times sqrt(M)."""
    gaussian = normals(7, 1000)
    assert np.array_equal(perturbation("gaussian", gaussian), perturbation("sphere", gaussian))
    assert reference("sphere", gaussian) == pytest.approx(math.sqrt(7) * perturbation("sphere", gaussian), rel=1e-14)


@pytest.mark.parametrize("size", [1, 3, 64])
def test_the_raw_gaussian_perturbation_is_the_vector_over_sqrt_m(size):
    """Not of unit length: |z|^2 is chi-square over M."""
    z = perturbation("raw_gaussian", normals(size, 2000))
    np.testing.assert_allclose(z, normals(size, 2000) / math.sqrt(size), rtol=1e-15)
    assert stats.kstest(size * (z**2).sum(axis=-1), stats.chi2(size).cdf).pvalue > 1e-3
    with pytest.raises(ValueError, match="unknown law 'raw_gaussian'"):
        reference("raw_gaussian", normals(size, 1))


@pytest.mark.parametrize("size", [1, 2, 3, 8])
def test_a_member_is_drawn_uniformly_and_acts_without_a_sign(size):
    """sqrt(M) e_m at the position of the coordinate law of the same vector; exact by enumeration up to M = 3."""
    zeta = member(normals(size))
    assert np.array_equal(zeta, np.abs(reference("coordinate", normals(size))))
    found = counts(zeta)
    unit = [tuple(np.round(math.sqrt(size) * row, 12)) for row in np.eye(size)]
    assert set(found) == set(unit)
    assert stats.chisquare([found[row] for row in unit]).pvalue > 1e-3 if size > 1 else found[unit[0]] == DRAWS
    if size <= 3:
        assert len(set(counts(member(signed_permutations(size))).values())) == 1


def test_a_member_by_hand():
    """g = (0.5, -3, 1, -2): sqrt(4) at the largest entry, whatever its sign."""
    assert member(np.array([0.5, -3.0, 1.0, -2.0])).tolist() == [0, 2, 0, 0]


@pytest.mark.parametrize("size", [2, 3, 8])
def test_projection_of_the_sphere_is_a_beta(size):
    """<z, v> ~ 2 Beta((M-1)/2, (M-1)/2) - 1 for a unit vector v (Appendix, Sphere, "Concentration")."""
    direction = np.arange(1, size + 1) / np.linalg.norm(np.arange(1, size + 1))
    projections = perturbation("sphere", normals(size)) @ direction
    shape = (size - 1) / 2
    assert stats.kstest((projections + 1) / 2, stats.beta(shape, shape).cdf).pvalue > 1e-3


@pytest.mark.parametrize("size", [2, 3, 8])
@pytest.mark.parametrize("law", FINITE)
def test_finite_laws_of_normal_draws_are_uniform(law, size):
    """Chi-square over the support: 2M, 2^M and 4 M(M-1)/2 vectors are equally likely."""
    found = counts(reference(law, normals(size)))
    cells = support(law, size)
    assert set(found) <= set(cells)
    assert stats.chisquare([found[cell] for cell in cells]).pvalue > 1e-3


def test_laws_of_one_vector_by_hand():
    """g = (0.5, -3, 1, -2), M = 4: sqrt(4) = 2 at the largest entry; sqrt(4/2) at the two largest."""
    gaussian = np.array([0.5, -3.0, 1.0, -2.0])
    root, norm = math.sqrt(2), math.sqrt(0.25 + 9 + 1 + 4)
    assert reference("gaussian", gaussian).tolist() == [0.5, -3.0, 1.0, -2.0]
    assert reference("cube", gaussian).tolist() == [1, -1, 1, -1]
    assert reference("coordinate", gaussian).tolist() == [0, -2, 0, 0]
    assert reference("sparse", gaussian) == pytest.approx([0, -root, 0, -root])
    assert reference("sphere", gaussian) == pytest.approx(2 * gaussian / norm)
    assert perturbation("cube", gaussian).tolist() == [0.5, -0.5, 0.5, -0.5]
    assert perturbation("coordinate", gaussian).tolist() == [0, -1, 0, 0]
    assert perturbation("sparse", gaussian) == pytest.approx([0, -1 / root, 0, -1 / root])


@pytest.mark.parametrize("law", [law for law in LAWS if law != "gaussian"])
def test_one_member_leaves_a_sign(law):
    """M = 1, also where M is below the sparsity: zeta = z = sign(g)."""
    gaussian = np.array([[0.3], [-2.0]])
    assert reference(law, gaussian).tolist() == [[1.0], [-1.0]]
    assert perturbation(law, gaussian).tolist() == [[1.0], [-1.0]]


def test_sparse_of_two_members_is_the_cube():
    """M = s = 2: both entries are non-zero and sqrt(M/s) = 1."""
    gaussian = normals(2, 100)
    assert np.array_equal(reference("sparse", gaussian), reference("cube", gaussian))


@pytest.mark.parametrize("law", LAWS)
def test_laws_are_functions_of_the_gaussian(law):
    """Equal input, equal output, row by row in any shape; odd; and, but for "gaussian", blind to the input's length."""
    gaussian = normals(6, 24)
    zeta = reference(law, gaussian)
    assert np.array_equal(reference(law, gaussian), zeta)
    assert np.array_equal(reference(law, gaussian.reshape(2, 3, 4, 6)), zeta.reshape(2, 3, 4, 6))
    assert np.array_equal(np.array([reference(law, row) for row in gaussian]), zeta)
    assert np.array_equal(reference(law, -gaussian), -zeta)
    factor = 2.0 if law == "gaussian" else 1.0
    assert np.array_equal(reference(law, 2 * gaussian), factor * zeta)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("law", FINITE)
def test_update_directions_are_exactly_isotropic(law, size):
    """sum zeta zeta^T / K = I and sum zeta = 0 over the enumerated directions, each of which occurs once."""
    directions = update_directions(law, size)
    number = {"coordinate": 2 * size, "cube": 2**size, "sparse": 4 * math.comb(size, 2) if size > 1 else 2}[law]
    assert directions.shape == (number, size)
    assert set(counts(directions).values()) == {1}
    np.testing.assert_allclose(directions.sum(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(directions.T @ directions / number, np.eye(size), atol=1e-12)
    if size > 1:
        assert set(counts(directions)) == set(support(law, size))


@pytest.mark.parametrize("size", [1, 2, 3, 8])
@pytest.mark.parametrize("law", FINITE)
def test_average_square_over_directions_has_no_cross_term(law, size):
    """The paper's "Loss Function Derivation" for any law: the average of (r + <a, zeta>)^2 is r^2 + |a|^2."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        residual, vector = rng.standard_normal(), rng.standard_normal(size)
        average = np.mean([(residual + vector @ zeta) ** 2 for zeta in update_directions(law, size)])
        assert average == pytest.approx(residual**2 + vector @ vector, rel=1e-12)


@pytest.mark.parametrize("law", ["gaussian", "sphere"])
def test_continuous_update_directions_come_from_given_normals(law):
    gaussian = normals(4, 16)
    assert np.array_equal(update_directions(law, 4, gaussian), reference(law, gaussian))
    with pytest.raises(ValueError, match=f"the '{law}' law has no finite list of directions"):
        update_directions(law, 4)


@pytest.mark.parametrize(
    "call",
    [
        lambda law: reference(law, np.ones(3)),
        lambda law: perturbation(law, np.ones(3)),
        lambda law: update_directions(law, 3),
        lambda law: update_directions(law, 3, np.ones((1, 3))),
    ],
)
def test_unknown_law_is_named_with_what_is_allowed(call):
    with pytest.raises(ValueError, match=r"unknown law 'simplex': one of gaussian, sphere, cube, coordinate, sparse"):
        call("simplex")
