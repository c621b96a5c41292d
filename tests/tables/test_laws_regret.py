"""The table of all pairs of laws: cells against direct computation, for exactly the runs that exist."""

from __future__ import annotations

import csv
import itertools

import numpy as np
import pytest
import xarray as xr
from scipy import stats
from whole_study import whole

from ensemblepp import tables
from ensemblepp.storage.datasets import write_dataset
from ensemblepp.tables import final_regret, laws_regret

LAWS = {"reference": ["none", "gaussian", "coordinate"], "perturbation": ["none", "sphere", "raw_gaussian"]}
SIZES = (2, 8)
ENVIRONMENTS = {"near": "Near", "far": "Far"}


def study(seeds: int = 7) -> xr.Dataset:
    """TS, and Ensemble++ with two by two laws at two ensemble sizes, in two environments; heavy-tailed random regrets."""
    coordinates = {
        "environment": list(ENVIRONMENTS),
        "agent": ["ts", "linear"],
        **LAWS,
        "ensemble_size": [0, *SIZES],
        "seed": range(seeds),
        "time": [5, 10],
    }
    regret = np.exp(np.random.default_rng(3).normal(4, 1, tuple(len(values) for values in coordinates.values())))
    ran = xr.DataArray(np.zeros(regret.shape, bool), coordinates)
    ran.loc[{"agent": "ts", "reference": "none", "perturbation": "none", "ensemble_size": 0}] = True
    pairs = {name: laws[1:] for name, laws in LAWS.items()}
    ran.loc[{"agent": "linear", "ensemble_size": list(SIZES), **pairs}] = True
    return xr.Dataset(
        {"regret": xr.DataArray(regret, coordinates).where(ran).astype(np.float32)},
        {"title": ("environment", list(ENVIRONMENTS.values())), "label": ("agent", ["TS", "Ensemble++"])},
        {"horizon": 10},
    )


def final(dataset: xr.Dataset, environment: str, *key: str | int) -> np.ndarray:
    """Regret at the horizon by seed, in double precision."""
    names = ("agent", "reference", "perturbation", "ensemble_size")
    place = {"environment": environment, "time": 10, **dict(zip(names, key, strict=True))}
    return dataset["regret"].sel(place).values.astype(float)


def numbers(values: np.ndarray) -> list[float]:
    """Mean, t interval and median, from scipy and numpy."""
    return [values.mean(), *stats.t.interval(0.95, len(values) - 1, values.mean(), stats.sem(values)), np.median(values)]


def test_a_row_for_every_run_and_no_other():
    table = laws_regret.build(study())
    rows = list(table[["environment", "agent", "M", "reference", "perturbation"]].itertuples(index=False, name=None))
    expected = []
    for title in ENVIRONMENTS.values():
        expected.append((title, "TS", "-", "-", "-"))
        pairs = itertools.product(SIZES, LAWS["reference"][1:], LAWS["perturbation"][1:])
        expected += [(title, "Ensemble++", str(size), *laws) for size, *laws in pairs]
    assert rows == expected
    assert set(table["seeds"]) == {7}


def test_cells_are_means_intervals_and_medians_of_regret_and_of_the_paired_excess():
    dataset = study()
    table = laws_regret.build(dataset).set_index(["environment", "M", "reference", "perturbation"])
    over = ["over TS", "over TS low", "over TS high", "over TS median"]
    for environment, title in ENVIRONMENTS.items():
        yardstick = final(dataset, environment, "ts", "none", "none", 0)
        row = table.loc[(title, "-", "-", "-")]
        np.testing.assert_allclose(row[["mean regret", "95 % low", "95 % high", "median"]].astype(float), numbers(yardstick))
        assert row[over].isna().all(), "no excess over itself"
        for size, reference, perturbation in itertools.product(SIZES, LAWS["reference"][1:], LAWS["perturbation"][1:]):
            values = final(dataset, environment, "linear", reference, perturbation, size)
            row = table.loc[(title, str(size), reference, perturbation)]
            np.testing.assert_allclose(row[["mean regret", "95 % low", "95 % high", "median"]].astype(float), numbers(values))
            np.testing.assert_allclose(row[over].astype(float), numbers(values - yardstick), rtol=1e-9)


def test_a_seed_that_did_not_run_counts_nowhere():
    dataset = study()
    place = {"environment": "near", "agent": "linear", "reference": "gaussian", "perturbation": "sphere", "ensemble_size": 8}
    dataset["regret"].loc[{**place, "seed": 2}] = np.nan
    dataset["regret"].loc[{"environment": "near", "agent": "ts", "seed": 5}] = np.nan
    table = laws_regret.build(dataset).set_index(["environment", "M", "reference", "perturbation"])
    row = table.loc[("Near", "8", "gaussian", "sphere")]
    values = final(dataset, "near", "linear", "gaussian", "sphere", 8)
    excess = values - final(dataset, "near", "ts", "none", "none", 0)
    assert row["seeds"] == 6
    assert row["mean regret"] == pytest.approx(np.delete(values, 2).mean())
    assert row["over TS"] == pytest.approx(np.delete(excess, [2, 5]).mean())
    assert row["over TS median"] == pytest.approx(np.median(np.delete(excess, [2, 5])))


def test_without_thompson_sampling_there_is_no_excess():
    table = laws_regret.build(study().sel(agent=["linear"]))
    assert list(table.columns[-4:]) == ["mean regret", "95 % low", "95 % high", "median"]
    assert len(table) == 2 * 2 * 4


def test_one_seed_has_no_interval():
    table = laws_regret.build(study(seeds=1))
    assert table[["95 % low", "95 % high", "over TS low", "over TS high"]].isna().all(axis=None)
    assert table["mean regret"].tolist() == table["median"].tolist()


def test_the_papers_pair_has_the_numbers_of_the_table_of_final_regret():
    dataset = study()
    pairs = laws_regret.build(dataset)
    paper = pairs[(pairs["agent"] == "TS") | ((pairs["reference"] == "gaussian") & (pairs["perturbation"] == "sphere"))]
    other = final_regret.build(dataset)
    columns = ["environment", "agent", "M", "seeds", "mean regret", "95 % low", "95 % high", "median"]
    columns += ["over TS", "over TS low", "over TS high", "over TS median"]
    assert list(other.columns) == columns
    for name in columns[:4]:
        assert paper[name].tolist() == other[name].tolist()
    np.testing.assert_allclose(paper[columns[4:]].values, other[columns[4:]].values)


def test_formats(tmp_path):
    write_dataset(whole(study()), tmp_path / "study.nc")
    for folder in ("a", "b"):
        tables.save(
            "laws_regret", tmp_path / "study.nc", [tmp_path / folder / f"t.{name}" for name in ("csv", "md", "tex", "html")]
        )
    for name in ("csv", "md", "tex", "html"):
        assert (tmp_path / "a" / f"t.{name}").read_bytes() == (tmp_path / "b" / f"t.{name}").read_bytes()
    with (tmp_path / "a" / "t.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * (1 + 2 * 4)
    assert rows[0]["over TS"] == ""
    assert {row["perturbation"] for row in rows} == {"-", "sphere", "raw_gaussian"}
