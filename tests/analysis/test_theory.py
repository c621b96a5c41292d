"""The theory's constants against published numbers, hand calculation, enumeration of the laws, sampling and other formulas."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest
from scipy import special, stats

from ensemblepp import registry
from ensemblepp.analysis import theory
from ensemblepp.randomness.distributions import LAWS, reference, update_directions
from ensemblepp.randomness.streams import generator

SQRT2 = math.sqrt(2)
FINITE = ("cube", "coordinate", "sparse")
DRAWS = 100_000

#: Standard errors that a Monte Carlo mean may be off; 5 are exceeded by chance once in 1.7 million comparisons.
Z = 5.0

#: Values of <zeta, v> are compared with a threshold up to rounding.
ROUNDING = 1e-12


def reached(law: str, direction: np.ndarray, threshold: float) -> float:
    """P(<zeta, v> >= threshold) for a finite law, by enumeration of its support."""
    return float((update_directions(law, len(direction)) @ direction >= threshold - ROUNDING).mean())


def directions(size: int, rows: int) -> np.ndarray:
    """Random unit vectors: dense ones, ones with few large entries, and ones with equal entries up to a little noise."""
    source = generator(size, "reference")
    dense = source.standard_normal((rows, size))
    levels = source.integers(0, 4, (rows, size)) + 0.02 * source.standard_normal((rows, size))
    vectors = np.concatenate([dense, dense**3, dense**9, levels])
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def unit(*entries: float) -> np.ndarray:
    return np.array(entries) / np.linalg.norm(entries)


# ---------------------------------------------------------------------------------------------------------- optimism


def test_claimed_constants_are_the_papers():
    """1/(4 sqrt(e pi)) = 0.0855 and 1/2 - e^(1/12)/sqrt(2 pi) = 0.0664, which the paper prints as 0.0856 and 0.0668."""
    assert theory.optimism_claimed("gaussian", 8) == pytest.approx(0.0855, abs=5e-5)
    assert theory.optimism_claimed("sphere", 8) == pytest.approx(0.0664, abs=5e-5)
    assert theory.optimism_claimed("cube", 8) == 0.21875
    assert theory.optimism_claimed("coordinate", 8) == 0.0625
    assert math.isnan(theory.optimism_claimed("sparse", 8))


@pytest.mark.parametrize("size", [1, 2, 8, 64])
def test_gaussian_projections_are_normal(size):
    assert theory.optimism("gaussian", size, 1) == pytest.approx(0.158655, abs=5e-7)
    assert theory.optimism("gaussian", size, 2) == pytest.approx(math.erfc(1) / 2, rel=1e-12)
    assert (
        theory.optimism("gaussian", size, 2) < theory.optimism_claimed("gaussian", size) < theory.optimism("gaussian", size, 1)
    )


def test_sphere_by_hand():
    """M = 1: a sign. M = 2: sqrt(2) cos t, which reaches 1 on a quarter of the circle. M = 3: uniform."""
    assert [theory.optimism("sphere", size, 1) for size in (1, 2, 3)] == pytest.approx([0.5, 0.25, (1 - 3**-0.5) / 2])
    assert [theory.optimism("sphere", size, 2) for size in (1, 2, 3)] == pytest.approx([0, 0, (1 - (2 / 3) ** 0.5) / 2])
    # published values
    assert theory.optimism("sphere", 8, 1) == pytest.approx(0.175, abs=5e-4)
    assert theory.optimism("sphere", 8, 2) == pytest.approx(0.0852, abs=5e-5)
    assert theory.optimism("sphere", 1024, 1) == pytest.approx(0.1587, abs=2e-4)


@pytest.mark.parametrize("size", [2, 4, 8, 64, 1024])
def test_sphere_is_students_t(size):
    """u_1 sqrt(M-1) / sqrt(1 - u_1^2) has M - 1 degrees of freedom."""
    for cosine in (0.1, 0.5, 0.9):
        student = stats.t.sf(cosine * math.sqrt((size - 1) / (1 - cosine**2)), size - 1)
        assert theory.cosine_tail(size, cosine) == pytest.approx(student, rel=1e-9)


def test_sphere_claim_holds_at_sqrt_2_from_three_members_on():
    claimed = theory.optimism_claimed("sphere", 2)
    assert theory.optimism("sphere", 2, 2) == 0
    assert min(theory.optimism("sphere", size, 2) for size in range(3, 1025)) > claimed


@pytest.mark.parametrize("size", [2, 5, 8])
@pytest.mark.parametrize("squared", [1, 2])
@pytest.mark.parametrize("law", ["gaussian", "sphere"])
def test_rotation_invariant_laws_by_sampling(law, squared, size):
    zeta = reference(law, generator(0, "reference").standard_normal((DRAWS, size)))
    found = (zeta @ unit(*range(1, size + 1)) >= math.sqrt(squared)).mean()
    expected = theory.optimism(law, size, squared)
    assert abs(found - expected) <= Z * math.sqrt(expected * (1 - expected) / DRAWS)


def test_cube_is_one_half_of_a_two_sided_constant():
    """7/64 from six entries on, where the paper's table has 7/32; below, the smallest multiple of 2^-M that is not less."""
    for size in range(1, 13):
        assert theory.optimism("cube", size, 1) == math.ceil(7 / 64 * 2**size) / 2**size
    assert [theory.optimism("cube", size, 1) for size in (1, 2, 3, 5, 6, 64)] == [1 / 2, 1 / 4, 1 / 8, 1 / 8, 7 / 64, 7 / 64]
    assert reached("cube", unit(1, 1, 1, 1, 1, 1), 1) == 7 / 64
    two_sided = np.abs(update_directions("cube", 6) @ unit(1, 1, 1, 1, 1, 1)) >= 1
    assert two_sided.mean() == 7 / 32


#: Directions at which the least probability is attained, by law, M and squared threshold.
WORST = {
    ("cube", 2, 1): unit(1, 0.9),
    ("cube", 5, 1): unit(1, 1, 1, 0, 0),
    ("cube", 8, 1): unit(1, 1, 1, 1, 1, 1, 0, 0),
    ("cube", 12, 1): unit(*[1] * 6, *[0] * 6),
    ("cube", 8, 2): unit(1, 0, 0, 0, 0, 0, 0, 0),
    ("coordinate", 2, 1): unit(1, 0.9),
    ("coordinate", 8, 1): unit(1, *[0.99] * 7),
    ("coordinate", 64, 1): unit(1, *[0.99] * 63),
    ("coordinate", 8, 2): unit(*[1] * 8),
    ("sparse", 2, 1): unit(1, 0.9),
    ("sparse", 2, 2): unit(1, 0),
    ("sparse", 3, 1): unit(1, 1, 0),
    ("sparse", 3, 2): unit(1, 0, 0),
    ("sparse", 4, 1): unit(1, 1, 1, 0),
    ("sparse", 4, 2): unit(1, 1, 0, 0),
    ("sparse", 8, 1): unit(*[1] * 5, *[0] * 3),
    ("sparse", 8, 2): unit(*[1] * 3, *[0] * 5),
    ("sparse", 16, 1): unit(1, *[0] * 15),
    ("sparse", 64, 1): unit(1, *[0] * 63),
    ("sparse", 64, 2): unit(1, *[0.5] * 61, 0, 0),
}


@pytest.mark.parametrize(("law", "size", "squared"), WORST)
def test_the_least_probability_is_attained(law, size, squared):
    expected = theory.optimism(law, size, squared)
    assert reached(law, WORST[law, size, squared], math.sqrt(squared)) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 8, 10])
@pytest.mark.parametrize("squared", [1, 2])
@pytest.mark.parametrize("law", FINITE)
def test_no_direction_has_less(law, squared, size):
    tried = directions(size, 500)
    equal = np.tril(np.ones((size, size))) / np.sqrt(np.arange(1, size + 1))[:, None]
    projections = update_directions(law, size) @ np.concatenate([tried, equal]).T
    least = (projections >= math.sqrt(squared) - ROUNDING).mean(axis=0).min()
    assert least >= theory.optimism(law, size, squared) - 1e-15


def fewest_by_levels(size: int, squared: int) -> int:
    """The sparse law's worst count, over all directions whose entries are 0, 1, ..., 6 halves or one far above the rest."""
    fewest = 2 * (size - 1)
    for counts in itertools.product(range(size + 1), repeat=6):
        zeros = size - sum(counts)
        if zeros < 0 or squared * sum(number * level**2 for level, number in enumerate(counts, 1)) <= 2 * size:
            continue
        levels = np.repeat(np.arange(7), [zeros, *counts])
        first, second = np.triu_indices(size, 1)
        vectors = (levels[first] + levels[second] > 2).sum() + (np.abs(levels[first] - levels[second]) > 2).sum()
        fewest = min(fewest, int(vectors))
    return fewest


@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("squared", [1, 2])
def test_sparse_over_more_levels(squared, size):
    """The search over numbers of entries 1/2, 1 and 3/2 leaves out nothing that larger entries would give."""
    assert set(np.count_nonzero(update_directions("sparse", 5), axis=1)) == {2}
    assert theory.optimism("sparse", size, squared) == fewest_by_levels(size, squared) / (4 * math.comb(size, 2))


def test_sparse_of_one_and_two_members_is_the_cube():
    for size, squared in itertools.product((1, 2), (1, 2)):
        assert theory.optimism("sparse", size, squared) == theory.optimism("cube", size, squared)


# ----------------------------------------------------------------------------------------------------- concentration


def test_claimed_concentration_by_hand():
    """delta = 0.05: 2K/delta = 40 K."""
    assert theory.concentration_claimed("gaussian", 8, None) == pytest.approx(math.sqrt(16 * math.log(320)))
    assert theory.concentration_claimed("gaussian", 8, 100) == pytest.approx(math.sqrt(math.log(4000)))
    assert theory.concentration_claimed("sphere", 4, 100) == 2
    assert theory.concentration_claimed("cube", 64, 100, delta=0.02) == pytest.approx(math.sqrt(math.log(10_000)))
    for law in ("coordinate", "sparse"):
        assert theory.concentration_claimed(law, 64, 100) == 8
    assert theory.concentration_corrected("sphere", 64, 100) == pytest.approx(math.sqrt(2 * math.log(4000)))
    assert theory.concentration_corrected("sphere", 16, 10**6) == 4
    assert theory.concentration_corrected("coordinate", 64, 100) == theory.concentration_corrected("sparse", 64, None) == 8


@pytest.mark.parametrize(("actions", "published"), [(100, 0.18), (1000, 0.43), (10_000, 0.81)])
def test_the_claimed_gaussian_bound_is_violated_as_published(actions, published):
    claimed = math.sqrt(math.log(2 * actions / theory.DELTA))
    assert theory.gaussian_violation(actions, claimed, sides=1) == pytest.approx(published, abs=0.005)
    assert theory.gaussian_violation(actions, SQRT2 * claimed, sides=1) == pytest.approx(0.002, abs=5e-4)
    # with absolute values, as the proof needs
    missed = 1 - (2 * stats.norm.cdf(claimed) - 1) ** actions
    assert theory.gaussian_violation(actions, claimed) == pytest.approx(missed, rel=1e-9)
    assert theory.gaussian_violation(actions, claimed) > 0.3
    assert theory.gaussian_violation(actions, SQRT2 * claimed) < theory.DELTA


def test_random_directions_become_orthogonal_in_high_dimension():
    assert theory.violation("gaussian", 1024, 10, 2.5) == pytest.approx(theory.gaussian_violation(10, 2.5), rel=0.01)
    assert theory.violation("sphere", 1024, 10, 2.5) == pytest.approx(theory.gaussian_violation(10, 2.5), rel=0.02)


@pytest.mark.parametrize(("size", "actions", "bound"), [(2, 10, 1.2), (3, 100, 2.0), (8, 50, 2.4), (64, 20, 2.5)])
@pytest.mark.parametrize("law", LAWS)
def test_violation_by_sampling(law, size, actions, bound):
    rows = 4000
    source = generator(1, "reference")
    zeta = reference(law, source.standard_normal((rows, size)))
    directions = source.standard_normal((rows, actions, size))
    cosines = np.einsum("ras,rs->ra", directions, zeta) / np.linalg.norm(directions, axis=2)
    found = (np.abs(cosines) > bound).any(axis=1).mean()
    expected = theory.violation(law, size, actions, bound)
    assert abs(found - expected) <= Z * math.sqrt(expected * (1 - expected) / rows) + 1e-12


@pytest.mark.parametrize(
    ("size", "actions", "bound"), [(1, 5, 1.5), (2, 10_000, 3.0), (4, 20, 2.0), (8, 100, 2.88), (64, 10**4, 3.6)]
)
def test_gaussian_violation_by_plain_integration(size, actions, bound):
    """The mixture over |zeta| ~ chi on a fine grid, with Student's t for the angles."""
    norm = bound + np.linspace(0, 12, 2_000_001)[1:] ** 2 / 12
    cosine = bound / norm
    if size == 1:
        exceeded = np.ones_like(norm)
    else:
        each = 2 * stats.t.sf(cosine * np.sqrt((size - 1) / (1 - cosine**2)), size - 1)
        exceeded = 1 - (1 - each) ** actions
    expected = np.trapezoid(exceeded * stats.chi.pdf(norm, size), norm)
    assert theory.violation("gaussian", size, actions, bound) == pytest.approx(expected, rel=1e-4)


def test_violation_on_a_circle():
    """M = 2: |<zeta, v>| <= sqrt(2) cos(t) unless the angle between zeta and +-v is below t."""
    kept = (1 - 2 * (math.pi / 6) / math.pi) ** 7
    assert theory.violation("sphere", 2, 7, SQRT2 * math.cos(math.pi / 6)) == pytest.approx(1 - kept, rel=1e-12)


def test_violation_on_a_compact_set_is_that_of_the_norm():
    assert theory.violation("gaussian", 8, None, 3.0) == pytest.approx(stats.chi.sf(3, 8), rel=1e-12)
    assert theory.violation("sphere", 9, None, 3.0) == 0
    assert theory.violation("coordinate", 9, None, 2.9) == 1


@pytest.mark.parametrize("size", [1, 2, 8, 64, 1024])
@pytest.mark.parametrize("law", LAWS)
def test_needed_concentration_is_violated_with_probability_delta(law, size):
    for actions, delta in ((1, 0.05), (100, 0.05), (10_000, 0.2)):
        needed = theory.concentration_needed(law, size, actions, delta)
        if law == "gaussian" or size > 1:
            assert theory.violation(law, size, actions, 0.999999 * needed) >= delta
        assert theory.violation(law, size, actions, 1.000001 * needed) <= delta
    quantile = stats.chi.ppf(0.95, size) if law == "gaussian" else math.sqrt(size)
    assert theory.concentration_needed(law, size, None) == pytest.approx(quantile, rel=1e-9)


@pytest.mark.parametrize("law", ["gaussian", "sphere", "cube"])
@pytest.mark.parametrize("size", [2, 8, 12])
def test_corrected_concentration_rests_on_sub_gaussian_tails(law, size):
    """E exp(x <zeta, v>) <= exp(x^2 / 2), the condition under which a union bound gives sqrt(2 log(2K/delta))."""
    slopes = np.linspace(0.1, 6, 60)
    if law == "sphere":
        mgf = special.hyp0f1(size / 2, size * slopes**2 / 4)
    elif law == "gaussian":
        mgf = np.exp(slopes**2 / 2)
    else:
        mgf = np.array([np.exp(slopes * value) for value in update_directions(law, size) @ unit(*[1] * size)]).mean(axis=0)
    assert (mgf <= np.exp(slopes**2 / 2) * (1 + 1e-12)).all()
    for actions in (10, 1000):
        corrected = theory.concentration_corrected(law, size, actions)
        assert theory.concentration_needed(law, size, actions) <= corrected
        assert theory.violation(law, size, actions, corrected) <= theory.DELTA


def test_coordinate_law_has_no_logarithmic_bound():
    """M = 64, z = zeta / sqrt(M), v = e_1: log E exp(4 <z, v>) is 2.75 times what a 1/sqrt(M)-sub-Gaussian law may have."""
    projections = update_directions("coordinate", 64)[:, 0] / 8
    assert math.log(np.exp(4 * projections).mean()) / (4**2 / 2 / 64) == pytest.approx(2.75, abs=0.005)
    # and the M axes together reach sqrt(M) with certainty, far above sqrt(2 log(2M/delta))
    assert np.abs(update_directions("coordinate", 64)).max(axis=1).min() == 8
    assert theory.concentration_claimed("coordinate", 64, 64) == 8 > math.sqrt(2 * math.log(2 * 64 / theory.DELTA))


# ------------------------------------------------------------------------------------------------ covariance tracking


@pytest.mark.parametrize(("dimension", "published"), [(10, 4.2e4), (50, 1.98e5), (100, 3.9e5)])
def test_the_lemmas_ensemble_size_as_published(dimension, published):
    assert theory.tracking_size(dimension, 1000, 10.0) == pytest.approx(published, rel=0.006)


def test_the_lemmas_ensemble_size_by_hand():
    # s = 1 and T = 3: sqrt(s^2 + T) = 2, 2 + 96 * 2 = 194
    assert theory.tracking_size(7, 3, 1.0, delta=0.5) == pytest.approx(320 * (7 * math.log(388) + math.log(4)))
    # s = 1/2 and T = 2: sqrt(9/4) / (1/2) = 3
    assert theory.tracking_size(7, 2, 4.0, delta=1.0) == pytest.approx(320 * (7 * math.log(290) + math.log(9)))


def test_longer_features_are_a_wider_prior():
    assert theory.tracking_size(50, 1000, 10.0, feature_norm=3.0) == pytest.approx(theory.tracking_size(50, 1000, 90.0))
    assert theory.tracking_size(50, 1000, 10.0, feature_norm=math.sqrt(10)) == pytest.approx(2.17e5, rel=0.002)


def test_constants_of_the_lemmas_proof():
    """(epsilon', alpha) = (1/4, 1/6) give 1 + epsilon = 3/2 and 1 - epsilon = 1/2, and 16 (5/4) / (1/4)^2 = 320."""
    epsilon, alpha = 0.25, 1 / 6
    largest = (1 + epsilon) / (1 - alpha)
    assert (1 - epsilon - alpha * largest, largest) == pytest.approx(theory.TRACKING_INTERVAL)
    assert theory.sequential_factor(epsilon) == 320
    # iota = alpha s / (4 sqrt(s^2 + T)): 2 / iota = 48 sqrt(s^2 + T) / s, doubled with delta / 2
    assert 2 * 2 * 4 / alpha == pytest.approx(96)


def test_the_factor_of_the_start_belongs_to_one_half():
    inner = 50 * math.log(9) + math.log(80)
    assert theory.prior_size(50) == pytest.approx(1024 * inner)
    assert theory.prior_size(50, epsilon=0.25) == pytest.approx(4096 * inner)
    # with the factor that 1/4 has, the start would ask for more than eq. "M-bound" does
    assert theory.prior_size(50) < theory.tracking_size(50, 1000, 10.0) < theory.prior_size(50, epsilon=0.25)


@pytest.mark.parametrize(("dimension", "size"), [(50, 100), (50, 1000), (200, 800)])
def test_edges_of_independent_columns_by_sampling(dimension, size):
    columns = generator(2, "agent").standard_normal((dimension, size)) / math.sqrt(size)
    found = np.linalg.eigvalsh(columns @ columns.T)[[0, -1]]
    np.testing.assert_allclose(found, theory.independent_edges(dimension, size), rtol=0.1, atol=0.01)


def test_edges_enter_the_interval_at_twenty_times_the_dimension():
    lower, upper = theory.TRACKING_INTERVAL
    assert theory.independent_edges(50, 50) == (0, 4)
    assert theory.independent_edges(50, 8)[0] == 0
    assert theory.independent_edges(50, 980)[1] > upper
    smallest, largest = theory.independent_edges(50, 1000)
    assert lower < smallest < largest < upper


# ------------------------------------------------------------------------------------------------------------ regret


def value(text: str, **values: float) -> float:
    """A formula of the table in numbers: factors are written side by side, and `log T` without parentheses."""
    python = re.sub(r"log (\w)", r"log(\1)", text).replace(" / ", "/").replace(" ", "*").replace("^", "**")
    return eval(python, {"sqrt": math.sqrt, "log": math.log, **values})


@pytest.mark.parametrize("bound", theory.REGRET_BOUNDS, ids=lambda bound: f"{bound.method}, {bound.setting}")
def test_orders_are_what_their_text_says(bound):
    for d, horizon, actions in ((3, 100, 7), (50, 1000, 10_000)):
        assert bound.regret_order(d, horizon, actions) == pytest.approx(value(bound.regret, d=d, T=horizon, K=actions))
        if bound.size_order:
            kind, formula = re.fullmatch(r"(Theta|Omega)\((.*)\)", bound.ensemble_size).groups()
            assert bound.size_order(d, horizon, actions) == pytest.approx(value(formula, d=d, T=horizon, K=actions))
            assert kind == ("Theta" if "K" not in formula else "Omega")
        else:
            assert bound.ensemble_size == "-"


def test_numbers_of_the_paper_size():
    """d = 50, T = 1000, K = 10,000: log T = 6.9078, log K = 9.2103."""
    rows = {(bound.method, bound.setting): bound for bound in theory.REGRET_BOUNDS}
    assert rows["Ensemble++", "any, finite"].regret_order(50, 1000, 10_000) == pytest.approx(33_147, rel=1e-4)
    assert rows["Ensemble++", "any, compact"].regret_order(50, 1000, math.nan) == pytest.approx(202_983, rel=1e-4)
    assert rows["Ensemble++", "any, compact"].size_order(50, 1000, math.nan) == pytest.approx(345.39, rel=1e-4)
    assert rows["Qin et al. 2022", "invariant, finite"].size_order(50, 1000, 10_000) == 10**7
    assert math.isnan(rows["Linear TS", "any, finite"].regret_order(50, 1000, math.nan)), "no number of actions, no bound"


# ------------------------------------------------------------------------------------------------------ parameter counts

#: (d, C, M) with a trunk of two layers of 64: for each agent the paper's formula, all as built, and trainable.
PUBLISHED = {
    (100, 1, 2): {"ensemble++": (10945, 10944, 10816), "ensemble+": (21508, 21508, 10754), "epinet": (14499, 14548, 13466)},
    (100, 1, 4): {"ensemble++": (11201, 11200, 10944), "ensemble+": (21768, 21768, 10884), "epinet": (15643, 15692, 13528)},
    (100, 1, 8): {"ensemble++": (11713, 11712, 11200), "ensemble+": (22288, 22288, 11144), "epinet": (17931, 17980, 13652)},
    (100, 1, 16): {"ensemble++": (12737, 12736, 11712), "ensemble+": (23328, 23328, 11664), "epinet": (22507, 22556, 13900)},
    (100, 1, 32): {"ensemble++": (14785, 14784, 12736), "ensemble+": (25408, 25408, 12704), "epinet": (31659, 31708, 14396)},
    (100, 1, 64): {"ensemble++": (18881, 18880, 14784), "ensemble+": (29568, 29568, 14784), "epinet": (49963, 50012, 15388)},
    (100, 2, 8): {"ensemble++": (12802, 12800, 11776), "ensemble+": (23328, 23328, 11664), "epinet": (17995, 18221, 13845)},
    (100, 2, 32): {"ensemble++": (18946, 18944, 14848), "ensemble+": (29568, 29568, 14784), "epinet": (31867, 32477, 14973)},
    (63, 1, 8): {"ensemble++": (9345, 9344, 8832), "ensemble+": (17552, 17552, 8776), "epinet": (13528, 13577, 10729)},
    (44, 1, 8): {"ensemble++": (8129, 8128, 7616), "ensemble+": (15120, 15120, 7560), "epinet": (11267, 11316, 9228)},
}

#: The paper's formulas with H for the trunk and D = 64 features of it.
FORMULAS = {
    "ensemble++": "H + (2M + 1)DC + C",
    "ensemble+": "2H + 2MDC + 2MC",
    "epinet": "H + 15d + 15D + 31M + 255 + 16C + M(5d + 35 + 6C)",
}


@pytest.mark.parametrize("shape", PUBLISHED)
def test_published_numbers_of_parameters(shape):
    dimension, classes, size = shape
    options = {"dimension": dimension, "classes": classes, "ensemble_size": size, "hidden": (64, 64)}
    trunk = (dimension + 1) * 64 + 65 * 64
    for agent, (printed, *built) in PUBLISHED[shape].items():
        assert theory.paper_parameter_count(agent, **options) == printed
        assert list(theory.parameter_counts(agent, **options)) == built
        # factors stand side by side
        python = re.sub(r"(?<=[\w)])(?=[A-Zd(])", "*", FORMULAS[agent])
        assert eval(python, {"H": trunk, "D": 64, "d": dimension, "C": classes, "M": size}) == printed
    assert theory.parameter_counts("greedy", **options) == (trunk + 64 * classes,) * 2
    assert math.isnan(theory.paper_parameter_count("greedy", **options))


@pytest.mark.parametrize("hidden", [(64, 64), (7, 5), ()])
@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
@pytest.mark.parametrize("kind", theory.NETWORKS)
def test_parameters_of_the_agents_as_they_are_built(kind, loss, hidden):
    """Of three seeds, the parameters of one; with a trunk of other widths than the paper's, and without one."""
    scales = {"prior_scale": 1.0, "posterior_scale": 1.0, "perturbation_scale": 0.1}
    own = {
        "ensemble++": scales | {"references": ["sphere"], "perturbations": ["sphere"], "update": "coordinate"},
        "ensemble+": scales | {"equal_noise": True},
        "epinet": scales | {"index_samples": 2, "double_softmax": False},
        "greedy": {},
    }
    network = theory.NETWORKS[kind]
    for dimension, size in ((12, 3), (100, 8)):
        agent = registry.load(registry.AGENTS[kind])(
            (0, 1, 2),
            dimension=dimension,
            ensemble_size=size,
            horizon=10,
            device="cpu",
            hidden=hidden,
            learning_rate=1e-3,
            batch_size=4,
            weight_decay=0.1,
            buffer_capacity=10,
            gradient_steps=1,
            warm_up=2,
            loss=loss,
            **own[network],
        )
        options = {"agent": {"kind": kind, "options": {"loss": loss, "hidden": list(hidden)}}}
        found, shape = theory.network_of(options | {"environment": {"options": {"dimension": dimension}}})
        assert found == network
        assert theory.parameter_counts(network, **shape, ensemble_size=size) == agent.parameter_counts()


def test_networks_that_are_not_counted():
    greedy = {"kind": "greedy", "options": {"loss": "squared", "hidden": []}}
    data = {"options": {"inputs": {"data": "rows.nc"}}}
    assert theory.network_of({"agent": greedy, "environment": data}) is None, "the data decide the dimension"
    other = {"kind": "epsilon_greedy", "options": {}}
    assert theory.network_of({"agent": other, "environment": {"options": {"dimension": 3}}}) is None
