"""Parts of a study's dataset by the rules that figures and tables share, on numbers a person can follow."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from ensemblepp.analysis.selection import agent_runs, best_constant, ensemble_sizes

FACTORS = ("environment", "agent", "reference", "perturbation", "ensemble_size")


def study(runs: dict[tuple[str, str, str, str, int], float]) -> xr.Dataset:
    """A dataset of two seeds and two steps whose regret is one number per run, NaN where nothing ran."""
    coordinates = {name: list(dict.fromkeys(key[place] for key in runs)) for place, name in enumerate(FACTORS)}
    shape = tuple(len(values) for values in coordinates.values())
    coordinates |= {"seed": [0, 1], "time": [1, 2]}
    regret = xr.DataArray(np.full((*shape, 2, 2), np.nan), coordinates, list(coordinates))
    for key, number in runs.items():
        regret.loc[dict(zip(FACTORS, key, strict=True))] = number
    return regret.to_dataset(name="regret")


def numbers(runs: xr.Dataset) -> dict[int, float]:
    """The regret of one agent by ensemble size; NaN where it did not run."""
    assert runs["regret"].dims == ("environment", "ensemble_size", "seed", "time")
    return {int(size): float(runs["regret"].sel(ensemble_size=size).max()) for size in runs["ensemble_size"]}


DATASET = study(
    {
        ("line", "ts", "none", "none", 0): 1.0,
        ("line", "es", "coordinate", "sphere", 4): 2.0,
        ("line", "es", "coordinate", "sphere", 2): 3.0,
        ("line", "linear", "cube", "cube", 2): 4.0,
        ("line", "linear", "cube", "sphere", 2): 5.0,
        ("line", "linear", "gaussian", "cube", 2): 6.0,
        ("line", "linear", "gaussian", "sphere", 2): 7.0,
    }
)


@pytest.mark.parametrize(
    ("agent", "expected"),
    [
        ("ts", {0: 1.0, 4: np.nan, 2: np.nan}),
        ("es", {0: np.nan, 4: 2.0, 2: 3.0}),
        ("linear", {0: np.nan, 4: np.nan, 2: 7.0}),
    ],
    ids=["no laws", "one pair of laws", "the paper's pair of several"],
)
def test_one_agents_runs(agent, expected):
    np.testing.assert_equal(numbers(agent_runs(DATASET, agent)), expected)


def test_without_the_papers_pair_the_first_one_stands_for_the_agent():
    dataset = study(
        {
            ("line", "linear", "sphere", "cube", 2): 4.0,
            ("line", "linear", "sphere", "sparse", 2): 5.0,
            ("line", "linear", "cube", "cube", 2): 6.0,
            ("line", "linear", "cube", "sparse", 2): 7.0,
            ("line", "other", "gaussian", "sphere", 2): 8.0,
        }
    )
    assert numbers(agent_runs(dataset, "linear")) == {2: 4.0}
    assert numbers(agent_runs(dataset, "other")) == {2: 8.0}


@pytest.mark.parametrize(("agent", "sizes"), [("ts", [0]), ("es", [4, 2]), ("linear", [2])])
def test_the_ensemble_sizes_that_an_agent_ran_with(agent, sizes):
    assert ensemble_sizes(agent_runs(DATASET, agent)) == sizes


def test_a_size_that_ran_in_one_environment_only_counts():
    dataset = study({("line", "es", "cube", "cube", 2): 1.0, ("plane", "es", "cube", "cube", 8): 1.0})
    assert ensemble_sizes(agent_runs(dataset, "es")) == [2, 8]


def constants(regret: list) -> xr.Dataset:
    """Regret of constant actions: (environment, action, seed, time)."""
    return xr.Dataset(
        {"constant_regret": (("environment", "action_index", "seed", "time"), np.array(regret, dtype=float))},
        {"environment": ["two", "three"][: len(regret)], "seed": [5, 9]},
    )


def test_the_best_constant_action_is_chosen_for_each_seed_at_the_horizon():
    absent = [[np.nan] * 3] * 2
    dataset = constants(
        [
            # action 0 is ahead at first; at the horizon it is best for seed 5 only
            [[[0, 1, 4], [0, 2, 9]], [[3, 5, 6], [3, 6, 8]], absent],
            [[[9, 9, 9], [1, 2, 3]], [[8, 8, 8], [4, 5, 6]], [[1, 1, 7], [7, 8, 9]]],
        ]
    )
    assert best_constant(dataset, "two").transpose("seed", "time").values.tolist() == [[0, 1, 4], [3, 6, 8]]
    assert best_constant(dataset, "three").transpose("seed", "time").values.tolist() == [[1, 1, 7], [1, 2, 3]]
    assert best_constant(dataset, "three")["seed"].values.tolist() == [5, 9]


def test_of_equally_good_constant_actions_the_first_is_taken():
    dataset = constants([[[[1, 2], [1, 2]], [[0, 2], [0, 2]]]])
    assert best_constant(dataset, "two").transpose("seed", "time").values.tolist() == [[1, 2], [1, 2]]
