"""The best of k settings: the closed form against all subsets, and choice and value on different seeds by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from synthetic_studies import study

from ensemblepp.analysis import tuning
from ensemblepp.errors import ResultError


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_the_chance_of_being_the_best_of_k_is_that_over_all_subsets(count):
    chances = tuning.chances(count)
    for k in range(1, count + 1):
        subsets = list(itertools.combinations(range(count), k))
        counted = [sum(min(subset) == place for subset in subsets) / len(subsets) for place in range(count)]
        np.testing.assert_allclose(chances[k - 1], counted, atol=1e-14)


def test_the_expected_minimum_is_that_over_all_subsets():
    values = np.random.default_rng(0).lognormal(size=7)
    expected = [np.mean([min(subset) for subset in itertools.combinations(values, k)]) for k in range(1, 8)]
    np.testing.assert_allclose(tuning.expected_best(values, values), expected, rtol=1e-13)
    # and so is the expected maximum, of negative ones
    most = [np.mean([max(subset) for subset in itertools.combinations(values, k)]) for k in range(1, 8)]
    np.testing.assert_allclose(-tuning.expected_best(-values, -values), most, rtol=1e-13)


def test_what_is_chosen_by_one_number_is_valued_by_another():
    source = np.random.default_rng(1)
    chosen_by, valued_by = source.normal(size=6), source.normal(size=6)
    for k in range(1, 7):
        valued = [valued_by[min(subset, key=lambda at: chosen_by[at])] for subset in itertools.combinations(range(6), k)]
        assert tuning.expected_best(chosen_by, valued_by)[k - 1] == pytest.approx(np.mean(valued), rel=1e-13)


def test_with_32_settings_nothing_is_lost_to_large_numbers():
    chances = tuning.chances(32)
    np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-13)
    np.testing.assert_allclose(chances[0], 1 / 32, rtol=1e-13)
    np.testing.assert_array_equal(chances[31], [1] + [0] * 31)


#: Final regret at three seeds: setting 0 is lucky at the last seed alone, setting 1 is always good.
REGRET = {0: [9.0, 9.0, 1.0], 1: [4.0, 4.0, 4.0], 2: [6.0, 5.0, 7.0]}


def played() -> object:
    curves = {("q", f"ours-setting-0{place}", 8): np.array(regret) for place, regret in REGRET.items()}
    return study({("q", "ours", 8): np.array([7.0, 8.0, 9.0])} | curves)


def test_a_setting_is_chosen_on_other_seeds_than_it_is_valued_on():
    dataset = played()
    assert tuning.settings(dataset) == {"ours": [f"ours-setting-0{place}" for place in REGRET]}
    curve = tuning.budget_curve(dataset, tuning.settings(dataset)["ours"], "q")
    # of one setting the mean of all; of three the one that is best on the other seeds, which is setting 1 each time
    np.testing.assert_allclose(curve.sel(time=1), [19 / 3, 6, 4])
    np.testing.assert_allclose(curve.sel(time=3), [4, 4, 4])
    # at seed 2, by the others' means 9, 4, 5.5: pairs choose 1, 2, 1
    assert float(curve.sel(time=2, seed=2)) == pytest.approx((4 + 7 + 4) / 3)
    assert tuning.best(dataset, tuning.settings(dataset)["ours"], "q") == (1, 4.0)


def test_a_setting_that_was_not_played_has_no_curve():
    dataset = played()
    dataset["regret"].loc[{"agent": "ours-setting-02"}] = np.nan
    names = tuning.settings(dataset)["ours"]
    assert tuning.budget_curve(dataset, names, "q") is None
    assert tuning.best(dataset, names, "q") is None


def test_a_study_without_settings_says_what_is_needed():
    with pytest.raises(ResultError, match="needs a study that plays settings"):
        tuning.settings(study({("q", "ours", 8): np.ones(3)}))
