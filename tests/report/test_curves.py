"""Curves of a study, thinned: what is kept, and that means and intervals are of all seeds."""

from __future__ import annotations

import json

import numpy as np
import pytest
from synthetic_studies import TIME, study

from ensemblepp.analysis import published as published_datasets
from ensemblepp.analysis.statistics import mean_interval
from ensemblepp.errors import ResultError
from ensemblepp.report import curves
from ensemblepp.runs.publish import summary
from ensemblepp.storage.datasets import write_dataset

RUNS = np.random.default_rng(0).gamma(9, 10, (2, 25))


@pytest.fixture
def dataset():
    runs = {("bowl", "ours", 8): RUNS[0], ("bowl", "theirs", 0): RUNS[1], ("hill", "ours", 8): RUNS[0]}
    return study(runs, seeds="0-24", study_title="Small", scale="smoke", codes="{}")


def test_what_a_dataset_says(tmp_path, dataset):
    write_dataset(dataset, tmp_path / "small.nc")
    shown = curves.study(tmp_path / "small.nc")
    assert (shown["seeds"], shown["stored"], shown["shown"]) == (25, len(TIME), list(range(20)))
    assert [(panel["title"], [curve["label"] for curve in panel["curves"]]) for panel in shown["panels"]] == [
        ("Bowl", ["OURS", "THEIRS"]),
        ("Hill", ["OURS"]),
    ]
    assert shown["panels"][0]["time"] == TIME.tolist()
    (ours, theirs) = shown["panels"][0]["curves"]
    for curve, runs in ((ours, RUNS[0]), (theirs, RUNS[1])):
        for key, value in zip(("mean", "low", "high"), mean_interval(runs), strict=True):
            assert curve[key][-1] == pytest.approx(value, rel=1e-3)
        assert [seed[-1] for seed in curve["seeds"]] == pytest.approx(list(runs[:20]), rel=1e-3)
    assert ours["colour"] != theirs["colour"]
    assert json.dumps(shown, allow_nan=False)


def test_a_curve_is_small(tmp_path):
    """A page of scale quick has about 350 of them, and is to stay below 5 MB with its figures."""
    time = np.unique(np.geomspace(1, 1e5, 120).astype(int))
    curve = np.cumsum(np.random.default_rng(0).gamma(1, 1, (200, len(time))), axis=1)
    dataset = study({("bowl", "ours", 8): curve[:, : len(TIME)]}).reindex(time=time)
    dataset["regret"][:] = curve
    write_dataset(dataset, tmp_path / "small.nc")
    assert len(json.dumps(curves.study(tmp_path / "small.nc"), separators=(",", ":"))) < 6_000


def test_what_is_published_of_a_large_study_has_the_same_means_and_intervals_without_single_seeds(
    tmp_path, dataset, monkeypatch
):
    monkeypatch.setattr(published_datasets, "SMALL", 0)
    write_dataset(dataset, tmp_path / "small.nc")
    write_dataset(summary(dataset), tmp_path / "published.nc")
    whole, published = curves.study(tmp_path / "small.nc"), curves.study(tmp_path / "published.nc")
    assert (published["seeds"], published["shown"]) == (25, [])
    for panel, other in zip(whole["panels"], published["panels"], strict=True):
        for curve, same in zip(panel["curves"], other["curves"], strict=True):
            assert same["seeds"] == []
            assert (same["label"], same["colour"]) == (curve["label"], curve["colour"])
            for key in ("mean", "low", "high"):
                assert same[key][-1] == pytest.approx(curve[key][-1], rel=2e-3)


def test_one_seed_has_no_interval(tmp_path):
    write_dataset(study({("bowl", "ours", 8): RUNS[0, :1]}), tmp_path / "small.nc")
    (curve,) = curves.study(tmp_path / "small.nc")["panels"][0]["curves"]
    assert curve["low"] == curve["high"] == [None] * len(TIME)


@pytest.mark.parametrize("stored", [np.arange(1, 1001), np.arange(1, 41), np.array([1, 2, 1000]), np.arange(100, 10_001, 100)])
def test_points_in_time(stored):
    kept = stored[curves.kept_times(stored)]
    assert (kept[0], kept[-1]) == (stored[0], stored[-1])
    assert len(kept) == len(stored) if len(stored) <= curves.TIMES else len(kept) <= curves.TIMES
    assert (np.diff(kept) > 0).all()
    # no gap is much wider than an even grid's
    assert np.diff(kept).max() <= max(2 * (stored[-1] - stored[0]) / (curves.TIMES / 2 - 1), np.diff(stored).max())


def test_a_damaged_dataset_is_named(tmp_path):
    (tmp_path / "small.nc").write_bytes(b"x")
    with pytest.raises(ResultError, match=r"small\.nc"):
        curves.study(tmp_path / "small.nc")
