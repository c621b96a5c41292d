"""Two p values, Holm over a protocol, and verdicts that keep their promise on synthetic studies whose truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ensemblepp.analysis.estimates import Share, mean_of
from ensemblepp.claims.verdicts import Exact, Finding, Part, beside, p_against, p_for, verdicts

NAN = math.nan


def part(values: np.ndarray) -> Part:
    return Part("a / b", mean_of(values), values)


def finding(*values: np.ndarray, bounds: tuple[float, float] = (NAN, 0.0), **others: object) -> Finding:
    return Finding([part(one) for one in values], bounds=bounds, **others)


SEEDS = np.random.default_rng(1).normal(0, 1, (3, 20))


def test_one_bound_gives_the_two_tails():
    estimate = mean_of(SEEDS[0] - 1)
    assert p_for(estimate, (NAN, 0.0)) == estimate.p_below(0)
    assert p_against(estimate, (NAN, 0.0)) == estimate.p_above(0)
    assert p_for(estimate, (0.0, NAN)) == estimate.p_above(0)


def test_two_bounds_are_two_one_sided_tests():
    estimate = mean_of(SEEDS[0])
    assert p_for(estimate, (-1.0, 2.0)) == max(estimate.p_above(-1), estimate.p_below(2))
    assert p_against(estimate, (-0.1, 0.1)) == min(1, 2 * min(estimate.p_below(-0.1), estimate.p_above(0.1)))


def test_all_parts_must_hold_and_one_is_enough_to_fail():
    far, near, beyond = SEEDS[0] - 5, SEEDS[1] - 0.4, SEEDS[2] + 5
    holds, _ = finding(far, near).p_values()
    assert holds == mean_of(near).p_below(0)
    _, fails = finding(far, beyond).p_values()
    assert fails == 2 * mean_of(beyond).p_above(0)
    assert finding(far, near).decisive("undecided").differences is near
    assert finding(far, near, beyond).decisive("fails").differences is beyond


def test_verdicts_by_hand():
    family = [
        finding(SEEDS[0] - 5),
        finding(SEEDS[1] + 5),
        finding(SEEDS[2]),
        finding(reason="there is no study 'small' yet"),
        Finding(exact=[Exact("one", 1.0, True), Exact("two", 2.0, True)]),
        Finding(exact=[Exact("one", 1.0, True), Exact("two", 2.0, False)]),
        finding(SEEDS[0][:4] - 5, minimum_seeds=5),
    ]
    found = verdicts(family, 0.05)
    assert [verdict for verdict, *_ in found] == ["holds", "fails", "undecided", "not run", "holds", "fails", "undecided"]
    # five claims that runs can decide, though two did not, each counted twice
    assert found[0][1] == pytest.approx(10 * family[0].p_values()[0])
    assert np.isnan([p for _, *both in found[3:] for p in both]).all()


def test_no_run_takes_back_a_verdict_on_others():
    """Claims that were not run count, so what is decided stays when they are, whatever they say, in any order."""
    source = np.random.default_rng(3)
    claims = [finding(values) for values in source.normal(source.choice([-0.75, 0, 0.75], (14, 1)), 1, (14, 20))]
    decided: dict[int, str] = {}
    played = [finding(reason="not yet")] * len(claims)
    for place in source.permutation(len(claims)).tolist():
        played[place] = claims[place]
        outcomes = {
            claim: verdict for claim, (verdict, *_) in enumerate(verdicts(played, 0.05)) if verdict in ("holds", "fails")
        }
        assert decided.items() <= outcomes.items()
        decided = outcomes
    assert set(decided.values()) == {"holds", "fails"}
    assert len(decided) < len(claims)


def test_a_family_without_a_run_is_not_run():
    assert [verdict for verdict, *_ in verdicts([finding(reason="not yet")] * 3, 0.05)] == ["not run"] * 3
    assert verdicts([Finding(exact=[Exact("one", 1.0, True)])], 0.05)[0][0] == "holds"
    assert verdicts([], 0.05) == []


@pytest.mark.parametrize("values", [np.full(20, NAN), np.array([]), np.array([1.0])])
def test_missing_numbers_are_never_a_guess(values):
    for bounds in ((NAN, 0.0), (0.0, NAN), (-1.0, 1.0)):
        assert finding(values, bounds=bounds).p_values() == (1, 1)
        assert verdicts([finding(values, bounds=bounds)], 0.05)[0][0] == "undecided"


def test_beside_the_mean_stands_what_a_few_seeds_do_not_carry():
    values = np.array([-1.0, -2, -1, -2, -1, -2, -1, 1000])
    told = beside(part(values))
    assert told["interquartile_mean"] == pytest.approx(-1.25)
    assert (told["seeds_below"], told["seeds_above"]) == (7, 1)
    assert beside(Part("a", Share(1, 20))) == {}


# ------------------------------------------------------------------------------------- 1,000 synthetic studies, by truth

#: Claims of a synthetic study, and how its differences are drawn: normal, heavy on both sides, and skewed as regret is.
CLAIMS = 12
NOISES = {
    "normal": lambda source, shape: source.normal(size=shape),
    "t with 3 degrees": lambda source, shape: source.standard_t(3, shape),
    "difference of lognormals": lambda source, shape: source.lognormal(0, 1, shape) - source.lognormal(0, 1, shape),
}


@pytest.mark.parametrize("noise", NOISES)
def test_false_verdicts_of_1000_null_studies_are_within_the_level(noise):
    """No claim is true or false: any verdict but "undecided" is an error. At most 5 % of studies have one, Holm included.

    To be quick, the p values of 1,000 studies are those of 1,000 x 12 claims with 20 seeds each, of which no two are alike.
    """
    source = np.random.default_rng(7)
    errors, single = 0, 0
    for differences in NOISES[noise](source, (1000, CLAIMS, 20)):
        # a verdict needs p <= 0.05 / 24 or less, which Student's t alone must allow first
        student = np.abs(differences.mean(axis=1)) / (differences.std(axis=1, ddof=1) / math.sqrt(20))
        single += (student > 2.093).sum()
        # beyond 3.2 at 19 degrees of freedom lies 0.0023 on one side
        if student.max() < 3.2:
            continue
        family = [finding(values) for values in differences]
        errors += any(verdict != "undecided" for verdict, *_ in verdicts(family, 0.05))
    assert errors <= 1000 * 0.05 + 3 * math.sqrt(1000 * 0.05 * 0.95)
    # without the correction most studies would have one
    assert single / 1000 / CLAIMS > 0.01


@pytest.mark.parametrize("noise", NOISES)
def test_a_true_difference_is_found_among_nulls(noise):
    """One claim is true by 1.5 standard deviations: with 20 seeds it is found in most studies, and a false one too."""
    source = np.random.default_rng(8)
    found = []
    for differences in NOISES[noise](source, (30, CLAIMS, 20)):
        differences[0] -= 1.5 * differences.std(ddof=1)
        differences[1] += 1.5 * differences.std(ddof=1)
        found.append([verdict for verdict, *_ in verdicts([finding(values) for values in differences], 0.05)][:2])
    assert np.mean([one == "holds" for one, _ in found]) >= 0.8
    assert np.mean([two == "fails" for _, two in found]) >= 0.8


def test_equivalence_holds_only_inside_the_margin():
    """Within +-1: a difference of 0 is shown to be equivalent, one of exactly 1 in 5 % of studies at most, one of 3 fails."""
    source = np.random.default_rng(9)

    def share(shift: float, verdict: str, studies: int) -> float:
        families = ([finding(values, bounds=(-1.0, 1.0))] for values in source.normal(shift, 1, (studies, 20)))
        return float(np.mean([verdicts(family, 0.05)[0][0] == verdict for family in families]))

    assert share(0, "holds", 60) > 0.9
    assert share(3, "fails", 30) == 1
    assert share(1, "holds", 200) < 0.05
