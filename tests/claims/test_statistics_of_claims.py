"""Every statistic of a claim on synthetic studies: what is compared with what, by hand."""

from __future__ import annotations

import json
import math

import numpy as np
import posts_study
import pytest
import xarray as xr
from synthetic_studies import TIME, evidence, rule, study

from ensemblepp.analysis.statistics import SIZE_RULES, growth_exponents
from ensemblepp.claims import comparisons, curves, formulas, frontier, sizes, tracking
from ensemblepp.claims.verdicts import NotRun

NOISE = np.random.default_rng(0).normal(0, 1, (4, 12))


def two_agents() -> xr.Dataset:
    return study(
        {("bowl", "ours", 8): 50 + NOISE[0], ("bowl", "theirs", 8): 100 + NOISE[1], ("bowl", "alone", 0): 25 + NOISE[2]}
    )


def test_ratio_is_paired_and_names_what_it_compares():
    (part,) = comparisons.ratio(rule("ratio"), evidence(["ours"], ["theirs"]), two_agents())
    assert part.words == "Bowl, M = 8: OURS / THEIRS"
    assert part.estimate.value == pytest.approx((50 + NOISE[0]).mean() / (100 + NOISE[1]).mean())
    np.testing.assert_allclose(part.differences, -50 + NOISE[0] - NOISE[1])


def test_an_agent_without_an_ensemble_is_compared_at_every_size():
    (part,) = comparisons.ratio(rule("ratio"), evidence(["alone"], ["ours"]), two_agents())
    assert part.words == "Bowl, M = 8: ALONE / OURS"
    assert part.estimate.value == pytest.approx(0.5, abs=0.02)


def test_difference_of_accuracies_is_per_round():
    (part,) = comparisons.difference(rule("difference", measure="accuracy"), evidence(["theirs"], ["ours"]), two_agents())
    assert part.words == "Bowl, M = 8: THEIRS - OURS"
    assert part.estimate.value == pytest.approx(((50 - NOISE[0] + NOISE[1]) / 2 / 100).mean())


def test_seeds_that_only_one_of_them_has_do_not_count():
    values = 100 + NOISE[1]
    values[3] = math.nan
    dataset = study({("bowl", "ours", 8): 50 + NOISE[0], ("bowl", "theirs", 8): values})
    (part,) = comparisons.ratio(rule("ratio"), evidence(["ours"], ["theirs"]), dataset)
    assert part.estimate.seeds == 11
    kept = np.arange(12) != 3
    assert part.estimate.value == pytest.approx((50 + NOISE[0])[kept].mean() / values[kept].mean())


def test_laws_are_averaged_seed_by_seed_and_arms_have_their_own_sizes():
    dataset = study(
        {
            ("bowl", "pairs", 2, "gaussian", "sphere"): 10 + NOISE[0],
            ("bowl", "pairs", 2, "gaussian", "cube"): 30 + NOISE[1],
            ("bowl", "pairs", 4, "gaussian", "sphere"): 5 + NOISE[2],
        }
    )
    averaged = {"agent": "pairs", "references": ["gaussian"], "perturbations": ["sphere", "cube"], "size": 2}
    own = {"agent": "pairs", "size": 4}
    (part,) = comparisons.ratio(rule("ratio"), evidence([averaged], [own]), dataset)
    assert part.words == "Bowl, M = 2 and 4: PAIRS (gaussian, sphere/cube) / PAIRS"
    assert part.estimate.value == pytest.approx((20 + (NOISE[0] + NOISE[1]) / 2).mean() / (5 + NOISE[2]).mean())
    with pytest.raises(NotRun, match="was not run in environment 'bowl'"):
        list(comparisons.ratio(rule("ratio"), evidence([{**averaged, "size": 4}], [own]), dataset))


def test_across_compares_with_the_first_environment():
    dataset = study({("bowl", "ours", 8): 50 + NOISE[0], ("plate", "ours", 8): 75 + NOISE[1]})
    (part,) = comparisons.across(rule("across"), evidence(["ours"], environments=["bowl", "plate"]), dataset)
    assert part.words == "Plate, M = 8 / Bowl: OURS"
    assert part.estimate.value == pytest.approx(1.5, abs=0.05)


def test_slopes_of_quarters():
    """Two a round up to round 50, half a one after it."""
    curve = np.tile(np.interp(TIME, [0, 50, 100], [0, 100, 125.0]), (6, 1)) * np.linspace(0.5, 1.5, 6)[:, None]
    dataset = study({("bowl", "ours", 8): curve})
    (part,) = curves.slopes(rule("slopes"), evidence(["ours"]), dataset)
    assert part.words == "Bowl, M = 8: OURS"
    assert part.estimate.value == pytest.approx(0.25)
    (part,) = curves.slopes(rule("slopes", quarter=3), evidence(["ours"]), dataset)
    assert part.estimate.value == pytest.approx(1)


def test_exponent_of_a_power():
    dataset = study({("bowl", "ours", 8): np.linspace(1, 2, 6)[:, None] * TIME**0.5})
    (part,) = curves.exponent(rule("exponent"), evidence(["ours"]), dataset)
    assert part.estimate.value == pytest.approx(0.5, abs=0.02)


def test_seeds_of_one_block_share_a_clock():
    dataset = two_agents()
    dataset["seconds"] = dataset["regret"]
    specs = json.loads(dataset.attrs["specs"])
    dataset.attrs["specs"] = json.dumps([{**spec, "seeds": [first, first + 3]} for spec in specs for first in (0, 4, 8)])
    (part,) = comparisons.ratio(rule("ratio", measure="seconds"), evidence(["ours"], ["theirs"]), dataset)
    assert part.estimate.seeds == 3
    np.testing.assert_allclose(part.differences, (-50 + NOISE[0] - NOISE[1])[[0, 4, 8]])


def test_sandwich_counts_seeds_that_left_it_at_any_round():
    dataset = two_agents().sel(agent=["ours"])
    low = xr.full_like(dataset["regret"], 0.6)
    high = xr.full_like(dataset["regret"], 1.4)
    low.loc[{"seed": 2, "time": 25}] = 0.49
    high.loc[{"seed": 5, "time": 3}] = 1.51
    high.loc[{"seed": 2, "time": 3}] = 1.51
    dataset = dataset.assign(tracking_low=low, tracking_high=high)
    (part,) = tracking.sandwich(rule("sandwich"), evidence(["ours"]), dataset)
    assert (part.estimate.count, part.estimate.seeds) == (2, 12)


def test_minimum_size_grows_as_in_the_table():
    """Excess over TS per round falls below 0.02 at M = d / 5 exactly, whatever |X| is."""
    places = {f"d{d}-{actions}": (d, actions) for d in (10, 20, 40) for actions in (100, 1000)}
    runs = {}
    for name, (d, _) in places.items():
        runs |= {(name, "ts", 0): 100 + NOISE[0]}
        runs |= {(name, "ours", size): 100 + NOISE[0] + (1.0 if size >= d / 5 else 9.0) for size in (2, 4, 8)}
    dataset = study(runs)
    specs = json.loads(dataset.attrs["specs"])
    for spec in specs:
        spec["environment"]["options"] = dict(zip(("dimension", "actions"), places[spec["environment"]["name"]], strict=True))
    dataset.attrs["specs"] = json.dumps(specs)
    found = {}
    for growing in ("dimension", "actions"):
        asked = rule("minimum_size", growing=growing, size_rule="one-sided")
        (part,) = sizes.minimum_size(asked, evidence(["ours"]), dataset)
        found[growing] = part.estimate.value
    assert found["dimension"] == pytest.approx(1)
    assert found["actions"] == pytest.approx(0, abs=1e-9)
    assert growth_exponents(np.array([2.0, 2, 4, 4, 8, 8]), np.array(list(places.values())))[0] == pytest.approx(1)
    assert set(SIZE_RULES) == {"one-sided", "two-sided"}
    few = evidence(["ours"], environments=["d10-100", "d20-100"])
    with pytest.raises(NotRun, match="do not tell dimension and number of actions apart"):
        list(sizes.minimum_size(rule("minimum_size", growing="actions", size_rule="one-sided"), few, dataset))


def test_frontier_compares_at_no_more_parameters():
    """Ensemble++ has 10,688 + 128 M parameters, Ensemble+ 21,248 + 130 M: ours of M = 64 stands against theirs of M = 2."""
    runs = {("bowl", "ours", size): 50 + size + NOISE[0] for size in (2, 64)}
    runs |= {("bowl", "theirs", size): 100 + size + NOISE[1] for size in (2, 64)}
    dataset = study(runs)
    specs = json.loads(dataset.attrs["specs"])
    specs[1]["agent"]["kind"] = "ensembleplus"
    dataset.attrs["specs"] = json.dumps(specs)
    parts = list(frontier.frontier(rule("frontier"), evidence(["ours"], ["theirs"]), dataset))
    assert [part.words for part in parts] == ["Bowl, M = 64 and 2: OURS / THEIRS", "Bowl, M = 64: OURS / THEIRS"]
    assert parts[0].estimate.value == pytest.approx(114 / 102, abs=0.02)
    with pytest.raises(NotRun, match="THEIRS has no size with as few parameters as OURS, 10,944"):
        list(frontier.frontier(rule("frontier"), evidence(["theirs"], ["ours"]), dataset))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"of": [{"agent": "unknown"}]}, "study 'small' has no agent 'unknown' at this scale"),
        ({"environments": ["cup"]}, "study 'small' has no environment 'cup' at this scale"),
        ({"sizes": [16]}, "agent 'ours' was run with M = 8, not with 16"),
        (
            {"of": [{"agent": "ours", "references": ["cube"], "perturbations": ["cube"]}]},
            "agent 'ours' was not run with the law cube",
        ),
    ],
)
def test_what_is_missing_is_said(changes, reason):
    with pytest.raises(NotRun) as told:
        list(comparisons.ratio(rule("ratio"), evidence(["ours"], ["theirs"]) | changes, two_agents()))
    assert str(told.value) == reason


def test_a_variable_that_is_missing_is_said():
    with pytest.raises(NotRun, match="study 'small' has no variable 'seconds'"):
        list(comparisons.ratio(rule("ratio", measure="seconds"), evidence(["ours"], ["theirs"]), two_agents()))


def test_reviews_are_counted_where_there_are_some():
    """Against the decisions themselves."""
    played = posts_study.play("remove_or_review", seeds=4)
    arms = evidence(["ensemble++"], ["greedy"]) | {"environments": list(played.data["environment"].values)}
    (part,) = comparisons.difference(rule("difference", measure="reviews"), arms, played.data)
    ours, theirs = (played.taken[place].sum(axis=1) for place in (0, 2))
    assert part.estimate.value == pytest.approx((ours - theirs).mean())
    published = posts_study.play("publish_or_block", seeds=4).data
    with pytest.raises(NotRun, match="has no human reviews"):
        list(comparisons.difference(rule("difference", measure="reviews"), arms, published))


# -------------------------------------------------------------------------------------------------------- computed


def constant(**changes: object) -> list:
    stated = {"law": None, "sizes": [8], "squared_threshold": 1, "actions": None, "printed": None, "epsilon": None}
    return list(formulas.constant(stated | {"dimension": None} | changes))


def test_constants_by_hand():
    """The normal tails beyond 1 and sqrt 2, 7/64 of the cube, and 256 / epsilon^2."""
    (one,) = constant(quantity="optimism", law="gaussian")
    assert (round(one.value, 4), one.holds) == (0.1587, True)
    (one,) = constant(quantity="optimism", law="gaussian", squared_threshold=2)
    assert (round(one.value, 4), one.holds) == (0.0786, False)
    assert [(one.value, one.holds) for one in constant(quantity="optimism", law="cube", sizes=[2, 8])] == [
        (0.25, True),
        (7 / 64, False),
    ]
    assert [one.value for one in constant(quantity="prior_factor", printed=1024, epsilon=0.25)] == pytest.approx([4096])
    assert constant(quantity="prior_factor", printed=1024, epsilon=0.5)[0].holds
    assert constant(quantity="sequential_factor", printed=320, epsilon=0.25)[0].holds
    assert not constant(quantity="sequential_factor", printed=321, epsilon=0.25)[0].holds


def test_printed_constants_to_the_last_digit():
    assert constant(quantity="optimism_printed", law="sphere", printed=0.0664)[0].holds
    assert not constant(quantity="optimism_printed", law="sphere", printed=0.0668)[0].holds


def test_concentration_against_the_closed_form_of_the_norm():
    """For a compact set the norm decides: sqrt M is never exceeded, and the Gaussian's is a chi variable."""
    assert all(one.value == 0 and one.holds for one in constant(quantity="concentration", law="sphere", sizes=[2, 64]))
    (one,) = constant(quantity="concentration", law="sphere", sizes=[1024], actions=10_000)
    # 10,000 nearly normal projections beyond sqrt(log(2 x 10,000 / 0.05)) = 3.59
    assert one.value == pytest.approx(1 - (1 - math.erfc(3.5915 / math.sqrt(2))) ** 10_000, abs=0.02)
    assert not one.holds


def test_update_cost_by_hand():
    (one,) = constant(quantity="update_cost", dimension=10, sizes=[4])
    assert (one.value, one.holds) == (200 + 40, True)
    assert not constant(quantity="update_cost", dimension=10, sizes=[2])[0].holds


def test_parameters_of_the_formula_and_as_built():
    shapes = {"shapes": [(100, 1)], "sizes": [8]}
    (one,) = formulas.parameters({"network": "ensemble++", **shapes})
    assert (one.value, one.holds) == (-1, False)
    (one,) = formulas.parameters({"network": "ensemble+", **shapes})
    assert one.holds
    (one,) = formulas.parameters({"network": "epinet", **shapes})
    assert one.value == 17_980 - 17_931
