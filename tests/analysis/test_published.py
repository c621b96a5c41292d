"""Published datasets: small ones as they are, large ones with stand-ins that have the published means and errors."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from ensemblepp.analysis import published
from ensemblepp.analysis.selection import read_study
from ensemblepp.analysis.statistics import mean_interval
from ensemblepp.storage.datasets import write_dataset

TIMES = [1, 2, 3, 5, 8, 13, 21, 34]


def study(seeds: int = 5) -> xr.Dataset:
    """Two agents, of which the second was not run in the second environment."""
    regret = np.random.default_rng(0).gamma(2.0, size=(2, 2, 1, 1, 1, seeds, len(TIMES))).cumsum(axis=-1).astype(np.float32)
    regret[1, 1] = np.nan
    dims = ("environment", "agent", "reference", "perturbation", "ensemble_size", "seed", "time")
    specs = [
        f'{{"environment": {{"name": "{name}", "kind": "quadratic"}}, "agent": {{"name": "{agent}", "kind": "greedy"}}}}'
        for name in "ab"
        for agent in ("greedy", "mine")
    ]
    return xr.Dataset(
        {"regret": (dims, regret), "reward": (dims, -regret), "loss": (dims, 1 / regret)},
        {
            "environment": ["a", "b"],
            "agent": ["greedy", "mine"],
            "reference": ["none"],
            "perturbation": ["none"],
            "ensemble_size": [0],
            "seed": range(seeds),
            "time": TIMES,
            "title": ("environment", ["A", "B"]),
            "label": ("agent", ["Greedy", "Mine"]),
        },
        dict.fromkeys(published.KEPT, "") | {"study": "s", "seeds": seeds, "horizon": 34, "specs": f"[{', '.join(specs)}]"},
    )


def test_a_summary_is_numpys(monkeypatch):
    """4 seeds, 6 times, of which the 2nd and the 6th are kept; one combination was not run."""
    regret = np.random.default_rng(0).gamma(2.0, size=(2, 4, 6)).astype(np.float32)
    regret[1] = np.nan
    dataset = xr.Dataset(
        {"regret": (("agent", "seed", "time"), regret)},
        {"agent": ["a", "b"], "seed": range(4), "time": [1, 2, 3, 5, 8, 13], "title": "t", "label": ("agent", ["A", "B"])},
        {"study": "s", "study_title": "S", "scale": "paper", "horizon": 13, "seeds": 4, "specs": "[]", "codes": "{}"},
    )
    monkeypatch.setattr(published, "SMALL", 0)
    made = published.summary(dataset)
    assert made["time"].values.tolist() == [2, 13]
    final, regret = regret[..., -1], regret[..., [1, 5]]
    np.testing.assert_allclose(made["mean"].sel(agent="a"), regret[0].mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(made["standard_error"].sel(agent="a"), regret[0].std(axis=0, ddof=1) / 2, rtol=1e-6)
    np.testing.assert_allclose(made["median"].sel(agent="a"), np.median(regret[0], axis=0), rtol=1e-6)
    np.testing.assert_array_equal(made["final_regret"].sel(agent="a"), final[0])
    assert made.sel(agent="b").to_dataarray().isnull().all()
    assert (made.sizes["seed"], made.attrs["seeds"]) == (4, 4)


def test_of_a_small_study_all_that_is_drawn_is_kept():
    made = published.restored(published.summary(study()))
    for name in ("regret", "loss"):
        xr.testing.assert_equal(made[name], study()[name])
    assert "reward" not in made


def test_what_was_not_run_does_not_make_a_study_large(monkeypatch):
    """As many numbers as were run, whatever the size of the table that they stand in."""
    full = study()
    run = int(full["regret"].notnull().sum())
    assert run < full["regret"].size
    for limit, kept in ((run, True), (run - 1, False)):
        monkeypatch.setattr(published, "SMALL", limit)
        assert ("loss" in published.summary(full)) == kept


@pytest.mark.parametrize("seeds", [2, 5])
def test_stand_ins_have_the_published_means_and_intervals(monkeypatch, seeds):
    monkeypatch.setattr(published, "SMALL", 0)
    full = study(seeds)
    short = published.summary(full)
    assert "loss" not in short
    assert short["time"].values.tolist() == [5, 34]
    made = published.restored(short)["regret"]
    assert made.dims == full["regret"].dims
    kept = full["regret"].sel(time=made["time"])
    for found, expected in zip(mean_interval(made.values, axis=5), mean_interval(kept.values, axis=5), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-4)
    np.testing.assert_array_equal(made.isel(time=-1), full["regret"].isel(time=-1))
    early, late = made[0, 0, 0, 0, 0].values.T
    np.testing.assert_array_equal(early.argsort(), late.argsort())


def test_seeds_that_end_alike_have_stand_ins_too(monkeypatch):
    monkeypatch.setattr(published, "SMALL", 0)
    full = study()
    full["regret"].loc[{"time": 34}] = 50.0
    made = published.restored(published.summary(full))["regret"].isel(environment=0, time=0)
    expected = full["regret"].isel(environment=0).sel(time=5)
    for found, wanted in zip(mean_interval(made.values), mean_interval(expected.values), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4)


def test_a_published_dataset_is_read_as_a_study_is(monkeypatch, tmp_path):
    monkeypatch.setattr(published, "SMALL", 0)
    write_dataset(published.summary(study()), tmp_path / "s.nc")
    read = read_study(tmp_path / "s.nc", "figure 'nonlinear_regret'", {"compared": True})
    np.testing.assert_array_equal(read["regret"].isel(time=-1), study()["regret"].isel(time=-1))
