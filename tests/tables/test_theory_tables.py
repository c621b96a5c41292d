"""Tables of the theory: cells against direct computation for chosen environments, and readable in every format."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import xarray as xr
from whole_study import whole

from ensemblepp import tables
from ensemblepp.randomness.distributions import LAWS
from ensemblepp.storage.datasets import write_dataset
from ensemblepp.tables import law_constants, regret_bounds, sequential_dependence

TABLES = {"law_constants": law_constants, "regret_bounds": regret_bounds, "sequential_dependence": sequential_dependence}

FINITE = ((10, 100), (50, 1000), (50, 10_000))


def study(*environments: tuple[int, int | None], horizon: int = 1000) -> xr.Dataset:
    """A study's attributes; environments as (d, number of actions), None for a compact set. One spec per run block."""
    specs = []
    for dimension, actions in environments:
        options = {"dimension": dimension, "prior_variance": 10.0} | ({"actions": actions} if actions else {})
        specs += [{"environment": {"name": f"d{dimension}-{actions}", "options": options}}] * 2
    return xr.Dataset({"regret": ("seed", [1.0])}, {"seed": [0]}, {"horizon": horizon, "specs": json.dumps(specs)})


# ----------------------------------------------------------------------------------------------------- law constants


def test_every_law_at_every_size():
    table = law_constants.build(study(*FINITE))
    assert list(zip(table["law"], table["M"], strict=True)) == [(law, size) for law in LAWS for size in ("2", "8", "64")]
    assert set(table["p by"]) == {"closed form", "enumeration"}


def test_optimism_and_its_verdicts():
    table = law_constants.build(study(*FINITE)).set_index(["law", "M"])
    expected = {  # claimed, at 1, at sqrt(2): published or by hand, to four digits
        ("gaussian", "8"): (0.08555, 0.1587, 0.07865, "p fails at sqrt 2"),
        ("sphere", "2"): (0.06639, 0.25, 0, "p fails at sqrt 2"),
        ("sphere", "8"): (0.06639, 0.1753, 0.08524, "p holds"),
        ("cube", "2"): (7 / 32, 1 / 4, 0, "p fails at sqrt 2"),
        ("cube", "8"): (7 / 32, 7 / 64, 0, "p fails"),
        ("coordinate", "64"): (1 / 128, 1 / 128, 0, "p fails at sqrt 2"),
        # five equal entries give 10 of 112 vectors, three give 3
        ("sparse", "8"): (math.nan, 10 / 112, 3 / 112, "no p claimed"),
    }
    for cell, (*numbers, verdict) in expected.items():
        found = table.loc[cell]
        np.testing.assert_allclose(found[["p claimed", "p at 1", "p at sqrt 2"]].astype(float), numbers, rtol=1e-3, atol=1e-12)
        assert found["verdict"].split(",")[0] == verdict, cell


def test_concentration_is_for_the_largest_decision_set():
    """K = 10,000: log(2K/delta) = log(400,000) = 12.899, so the norm decides at M = 8 and the logarithm at M = 64."""
    table = law_constants.build(study(*FINITE)).set_index(["law", "M"])
    claimed = {("gaussian", "8"): 3.5916, ("sphere", "8"): 8**0.5, ("sphere", "64"): 3.5916, ("coordinate", "64"): 8.0}
    for cell, number in claimed.items():
        assert table.loc[cell, "rho claimed"] == pytest.approx(number, rel=1e-4)
    assert table.loc[("sphere", "64"), "rho corrected"] == pytest.approx(3.5916 * 2**0.5, rel=1e-4)
    # 2,000 samples of 10,000 directions in R^64 gave 0.818 +- 0.009 and 0.673 +- 0.010
    assert table.loc[("sphere", "64"), "P(rho exceeded)"] == pytest.approx(0.828, abs=0.002)
    assert table.loc[("gaussian", "64"), "P(rho exceeded)"] == pytest.approx(0.680, abs=0.002)
    assert (table["rho needed"] <= table["rho corrected"]).all()
    failed = table["P(rho exceeded)"] > 0.05
    assert list(table.index[failed]) == [("gaussian", "8"), ("gaussian", "64"), ("sphere", "64"), ("cube", "64")]
    assert [verdict.endswith("rho fails") for verdict in table["verdict"]] == failed.tolist()
    assert [verdict.endswith("rho holds") for verdict in table["verdict"]] == (~failed).tolist()


def test_concentration_on_a_compact_set_is_the_norms():
    table = law_constants.build(study((10, None))).set_index(["law", "M"])
    assert table.loc[("gaussian", "2"), "rho claimed"] == pytest.approx((4 * math.log(80)) ** 0.5)
    # chi with 2 degrees of freedom: P(norm > x) = exp(-x^2 / 2)
    assert table.loc[("gaussian", "2"), "P(rho exceeded)"] == pytest.approx(80**-2)
    assert table.loc[("gaussian", "2"), "rho needed"] == pytest.approx((2 * math.log(20)) ** 0.5)
    for column in ("rho claimed", "rho needed", "rho corrected"):
        assert table.loc["cube", column].tolist() == [2**0.5, 8**0.5, 8]
    assert table["verdict"].str.endswith("rho holds").all()


# ----------------------------------------------------------------------------------------------------- regret bounds


def test_bounds_in_numbers():
    table = regret_bounds.build(study(*FINITE)).set_index(["method", "setting"])
    log_t, root_t = math.log(1000), 1000**0.5
    compact = table.loc[("Ensemble++", "any, compact")]
    assert compact["regret, d = 10"] == pytest.approx((10 * log_t) ** 1.5 * root_t)
    assert compact["M, d = 50"] == pytest.approx(50 * log_t)
    # the largest decision set of each d: 100 actions at d = 10, 10,000 at d = 50
    finite = table.loc[("Ensemble++", "any, finite")]
    assert finite["regret, d = 10"] == pytest.approx(10 * (1000 * math.log(100)) ** 0.5 * log_t)
    assert finite["regret, d = 50"] == pytest.approx(50 * (1000 * math.log(10_000)) ** 0.5 * log_t)
    assert table.loc[("Qin et al. 2022", "invariant, finite"), "M, d = 50"] == 10**7
    assert table.loc[("any policy", "any"), "regret, d = 50"] == 2000
    assert math.isnan(table.loc[("Linear TS", "any, finite"), "M, d = 10"]), "no ensemble"


def test_the_last_row_has_the_lemmas_constants():
    last = regret_bounds.build(study(*FINITE)).iloc[-1]
    assert (last["method"], last["ensemble size"]) == ("Ensemble++", "the lemma's, with constants")
    assert last["M, d = 10"] == pytest.approx(4.2e4, rel=0.005)
    assert last["M, d = 50"] == pytest.approx(1.98e5, rel=0.005)
    assert math.isnan(last["regret, d = 10"])


def test_a_compact_set_has_no_bound_in_the_number_of_actions():
    table = regret_bounds.build(study((100, None), (50, 1000))).set_index(["method", "setting"])
    assert list(table.columns) == [
        "regret bound",
        "regret, d = 50",
        "regret, d = 100",
        "ensemble size",
        "M, d = 50",
        "M, d = 100",
    ]
    assert math.isnan(table.loc[("Ensemble++", "any, finite"), "regret, d = 100"])
    assert math.isnan(table.loc[("Lee and Oh 2024", "invariant, finite"), "M, d = 100"])
    assert table.loc[("Ensemble++", "any, compact"), "regret, d = 100"] > 0


# ----------------------------------------------------------------------------------------------- sequential dependence


def test_counts_of_updates_and_memory():
    """d = 50, T = 1000: d^2 + d M is 52,500, 2,900 and 2,550 for M = T, 8 and 1."""
    table = sequential_dependence.build(study(*FINITE)).set_index("method")
    assert table["updates per round, T = 1000"].tolist()[:3] == [1000, 8, 1]
    assert table["numbers kept, d = 50"].tolist()[:3] == [52_500, 2_900, 2_550]
    assert table.loc["Ensemble++", "updates per round, T = 1000"] == 197_595
    assert table.loc["Ensemble++", "numbers kept, d = 50"] == 2500 + 50 * 197_595
    assert table["dependence"].tolist()[:3] == ["none", "reduced", "high"]
    assert table["memory"].tolist()[:3] == ["high", "moderate", "low"]


def test_counts_follow_the_study():
    table = sequential_dependence.build(study((3, 5), horizon=20)).set_index("method")
    assert table.loc["RLS", "updates per round, T = 20"] == 20
    assert table.loc["RLS", "numbers kept, d = 3"] == 9 + 60


# ----------------------------------------------------------------------------------------------------------- formats


@pytest.mark.parametrize("name", TABLES)
def test_every_format_is_readable_and_the_same_each_time(tmp_path, name):
    write_dataset(whole(study(*FINITE)), tmp_path / "study.nc")
    suffixes = ("csv", "md", "tex", "html")
    for folder in ("a", "b"):
        tables.save(name, tmp_path / "study.nc", [tmp_path / folder / f"table.{suffix}" for suffix in suffixes])
    for suffix in suffixes:
        text = (tmp_path / "a" / f"table.{suffix}").read_text(encoding="utf-8")
        assert text == (tmp_path / "b" / f"table.{suffix}").read_text(encoding="utf-8")
        # pdfTeX's text fonts have no Greek letters, roots or infinities, and turn |, < and > into something else
        assert text.isascii()
        assert "nan" not in text.lower()
    latex = (tmp_path / "a" / "table.tex").read_text(encoding="utf-8").splitlines()
    table = TABLES[name].build(study(*FINITE))
    rows = latex[4:-2]
    assert len(rows) == len(table)
    assert all(row.count(" & ") == len(table.columns) - 1 for row in [latex[2], *rows])
    assert not [row for row in [latex[2], *rows] if set("|<>$_") & set(row)]
    markdown = (tmp_path / "a" / "table.md").read_text(encoding="utf-8").splitlines()
    assert len(markdown) == len(table) + 2
    assert not [row for row in markdown if set("*_`\\<>") & set(row)]
    assert max(map(len, markdown)) <= 200


def test_powers_survive_the_escape(tmp_path):
    write_dataset(whole(study(*FINITE)), tmp_path / "study.nc")
    tables.save("regret_bounds", tmp_path / "study.nc", [tmp_path / "table.md", tmp_path / "table.tex"])
    assert "| (d log T)^(3/2) sqrt(T) |" in (tmp_path / "table.md").read_text(encoding="utf-8")
    assert r"(d log T)\textasciicircum (3/2) sqrt(T) &" in (tmp_path / "table.tex").read_text(encoding="utf-8")
