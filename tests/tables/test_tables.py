"""Tables: exact cells from chosen regrets, and every format as it is written."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from whole_study import whole

from ensemblepp import tables
from ensemblepp.config.checks import presentable
from ensemblepp.storage.datasets import write_dataset
from ensemblepp.tables import best_constant, final_regret

#: Student's t at 97.5 % in closed form, for 1 and 2 degrees of freedom: 12.706 and 4.3027.
T1, T2 = np.tan(0.475 * np.pi), 0.95 / np.sqrt(2 * 0.975 * 0.025)
#: Half-width of the interval of a mean of three numbers, per standard deviation.
HALF = T2 / np.sqrt(3)


def study(
    final: dict[tuple[str, int], list[float]], constant: list[list[float]] | None = None, horizon: int = 10
) -> xr.Dataset:
    """One environment and as many seeds as there are numbers.

    Args:
        final: regret at the horizon by (agent, ensemble size), one number per seed; NaN where a seed did not run.
        constant: the same of every constant action.
        horizon: T.
    """
    agents, sizes = (list(dict.fromkeys(keys)) for keys in zip(*final, strict=True))
    seeds = len(next(iter(final.values())))
    regret = np.full((1, len(agents), 1, 1, len(sizes), seeds, 2), np.nan)
    for (agent, size), values in final.items():
        regret[0, agents.index(agent), 0, 0, sizes.index(size)] = np.array(values)[:, None] * [0.5, 1.0]
    dims = ("environment", "agent", "reference", "perturbation", "ensemble_size", "seed", "time")
    dataset = xr.Dataset(
        {"regret": (dims, regret)},
        {
            "environment": ["shuttle"],
            "title": ("environment", ["Shuttle"]),
            "agent": agents,
            "label": ("agent", [agent.upper() for agent in agents]),
            "reference": ["none"],
            "perturbation": ["none"],
            "ensemble_size": sizes,
            "seed": range(seeds),
            "time": [horizon // 2, horizon],
        },
        {"horizon": horizon},
    )
    if constant:
        curves = np.array(constant)[None, :, :, None] * [0.5, 1.0]
        dataset = dataset.assign(constant_regret=(("environment", "action_index", "seed", "time"), curves))
    return dataset


# ------------------------------------------------------------------------------------------------------ final regret


def test_the_excess_over_thompson_sampling_is_paired_by_seed():
    """Differences 1, 2 and 3 have mean 2 and deviation 1, however far apart the seeds are; a missing seed does not count."""
    table = final_regret.build(
        study({("ts", 0): [10.0, 20.0, 90.0], ("ours", 8): [11.0, 22.0, 93.0], ("ours", 4): [12.0, 24.0, np.nan]})
    )
    excess = table.set_index(["agent", "M"])[["over TS", "over TS low", "over TS high"]]
    np.testing.assert_allclose(excess.loc["OURS", "8"], [2, 2 - HALF, 2 + HALF])
    # two differences, 2 and 4: mean 3, half-width t1 * sqrt(2) / sqrt(2)
    np.testing.assert_allclose(excess.loc["OURS", "4"], [3, 3 - T1, 3 + T1])
    assert excess.loc["TS", "-"].isna().all(), "no excess over itself"


def test_final_regret_is_mean_interval_and_median():
    table = final_regret.build(
        study({("greedy", 0): [1.0, 2.0, 6.0], ("ours", 8): [4.0, 4.0, 4.0], ("ours", 16): [3.0, 1.0, 2.0]})
    )
    deviation = np.sqrt((4 + 1 + 9) / 2)
    expected = pd.DataFrame(
        [
            ("Shuttle", "GREEDY", "-", 3, 3.0, 3 - HALF * deviation, 3 + HALF * deviation, 2.0),
            ("Shuttle", "OURS", "8", 3, 4.0, 4.0, 4.0, 4.0),
            ("Shuttle", "OURS", "16", 3, 2.0, 2 - HALF, 2 + HALF, 2.0),
        ],
        columns=["environment", "agent", "M", "seeds", "mean regret", "95 % low", "95 % high", "median"],
    )
    pd.testing.assert_frame_equal(table, expected, rtol=1e-12, atol=1e-12)


def test_seeds_that_did_not_run_do_not_count():
    (row,) = final_regret.build(study({("greedy", 0): [1.0, np.nan, 3.0]})).to_dict("records")
    assert (row["seeds"], row["mean regret"], row["median"]) == (2, 2.0, 2.0)
    # the standard error of 1 and 3 is 1
    assert row["95 % high"] == pytest.approx(2 + T1, rel=1e-12)


def test_one_seed_has_no_interval():
    (row,) = final_regret.build(study({("greedy", 0): [5.0]})).to_dict("records")
    assert (row["seeds"], row["mean regret"], row["median"]) == (1, 5.0, 5.0)
    assert np.isnan([row["95 % low"], row["95 % high"]]).all()


# ----------------------------------------------------------------------------------------------------- best constant


def test_the_margin_is_paired_by_seed_and_per_round():
    # the regrets differ so much between seeds that unpaired intervals would overlap; the differences 1, 2, 2 do not
    table = best_constant.build(study({("ours", 8): [9.0, 18.0, 28.0]}, [[10.0, 20.0, 30.0], [11.0, 25.0, 31.0]]))
    deviation = np.sqrt(((1 - 5 / 3) ** 2 + 2 * (2 - 5 / 3) ** 2) / 2) / 10
    expected = pd.DataFrame(
        [("Shuttle", "OURS", "8", 3, 55 / 3, 20.0, 1 / 6, 1 / 6 - HALF * deviation, 1 / 6 + HALF * deviation, "better")],
        columns=[
            "environment",
            "agent",
            "M",
            "seeds",
            "regret",
            "best constant",
            "margin per round",
            "95 % low",
            "95 % high",
            "verdict",
        ],
    )
    pd.testing.assert_frame_equal(table, expected, rtol=1e-12, atol=1e-12)
    assert 0.023 < expected["95 % low"][0] < 0.024


def test_the_constant_action_is_the_best_of_each_seed():
    (row,) = best_constant.build(study({("ours", 8): [1.0, 1.0]}, [[3.0, 8.0], [6.0, 5.0]])).to_dict("records")
    assert row["best constant"] == 4.0
    assert row["margin per round"] == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("margins", "verdict"),
    [
        ([1.0, 1.0, 1.0], "better"),
        ([-1.0, -1.0, -1.0], "worse"),
        ([0.0, 0.0, 0.0], "undecided"),
        # with these the interval's end is the mean -+ HALF
        ([HALF - 1 + 0.01, HALF + 0.01, HALF + 1 + 0.01], "better"),
        ([HALF - 1 - 0.01, HALF - 0.01, HALF + 1 - 0.01], "undecided"),
        ([-HALF - 1 + 0.01, -HALF + 0.01, -HALF + 1 + 0.01], "undecided"),
        ([-HALF - 1 - 0.01, -HALF - 0.01, -HALF + 1 - 0.01], "worse"),
        ([5.0], "undecided"),
    ],
)
def test_the_verdict_is_where_the_interval_leaves_out_zero(margins, verdict):
    dataset = study({("ours", 0): [20.0 - margin for margin in margins]}, [[20.0] * len(margins)])
    (row,) = best_constant.build(dataset).to_dict("records")
    assert row["margin per round"] == pytest.approx(np.mean(margins) / 10)
    assert row["verdict"] == verdict


# ----------------------------------------------------------------------------------------------------------- formats


@pytest.fixture
def written(tmp_path) -> dict[str, str]:
    """A table in every format; one agent's name holds characters that the formats must escape."""
    dataset = study({("a|b & <c>_%", 0): [1.0, 2.0, 3.0], ("ours", 8): [12345.678, 12345.678, 12345.678]})
    write_dataset(whole(dataset), tmp_path / "study.nc")
    suffixes = ("csv", "md", "tex", "html")
    tables.save("final_regret", tmp_path / "study.nc", [tmp_path / f"table.{suffix}" for suffix in suffixes])
    return {suffix: (tmp_path / f"table.{suffix}").read_text(encoding="utf-8") for suffix in suffixes}


def test_csv_holds_plain_numbers(written):
    header, first, second = csv.reader(io.StringIO(written["csv"]))
    assert header == ["environment", "agent", "M", "seeds", "mean regret", "95 % low", "95 % high", "median"]
    assert first[:4] == ["Shuttle", "A|B & <C>_%", "-", "3"]
    assert [float(cell) for cell in first[4:]] == pytest.approx([2.0, 2 - HALF, 2 + HALF, 2.0], rel=1e-12)
    assert float(second[4]) == 12345.678


def test_markdown(written):
    assert written["md"] == (
        "| environment | agent | M | seeds | mean regret | 95 % low | 95 % high | median |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- |\n"
        "| Shuttle | A\\|B & <C>_% | - | 3 | 2 | -0.4841 | 4.484 | 2 |\n"
        "| Shuttle | OURS | 8 | 3 | 12346 | 12346 | 12346 | 12346 |\n"
    )


def test_latex_is_a_booktabs_table(written):
    lines = written["tex"].splitlines()
    assert lines[:2] == [r"\begin{tabular}{llrrrrrr}", r"\toprule"]
    assert lines[2] == r"environment & agent & M & seeds & mean regret & 95 \% low & 95 \% high & median \\"
    assert lines[3] == r"\midrule"
    assert lines[4] == r"Shuttle & A|B \& <C>\_\% & - & 3 & 2 & -0.4841 & 4.484 & 2 \\"
    assert lines[-2:] == [r"\bottomrule", r"\end{tabular}"]
    assert len(lines) == 8


def test_html_is_a_page_of_its_own(written):
    page = written["html"]
    assert page.startswith('<!doctype html>\n<meta charset="utf-8">\n')
    assert page.count("<tr") == 3
    assert "<td>A|B &amp; &lt;C&gt;_%</td>" in page
    assert "<td>-0.4841</td>" in page
    assert "{" in page.split("</style>")[0], "a style sheet"
    assert "http" not in page, "nothing is loaded from elsewhere"


#: The others have test files of their own.
TABLES = ["best_constant", "final_regret"]


def test_every_table_is_tested():
    others = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py") if path != Path(__file__))
    assert not [name for name in presentable("tables") if name not in TABLES and name not in others]


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_written_in_every_format_the_same_each_time(tmp_path, name):
    dataset = study({("greedy", 0): [1.0, 2.0, 6.0], ("ours", 8): [4.0, 4.0, 4.0]}, [[3.0, 4.0, 5.0], [9.0, 9.0, 9.0]])
    write_dataset(whole(dataset), tmp_path / "study.nc")
    suffixes = ("csv", "md", "tex", "html")
    for folder in ("a", "b"):
        tables.save(name, tmp_path / "study.nc", [tmp_path / folder / f"table.{suffix}" for suffix in suffixes])
    for suffix in suffixes:
        text = (tmp_path / "a" / f"table.{suffix}").read_text(encoding="utf-8")
        assert "OURS" in text
        assert "GREEDY" in text
        assert text == (tmp_path / "b" / f"table.{suffix}").read_text(encoding="utf-8")


# ------------------------------------------------------------------------------------------------------------ moderation


def test_the_share_of_the_way_is_paired_by_seed():
    """The constant action loses 20 and the ceiling 10, 5 and 0: of 10, 15 and 20 to gain, 5, 3 and 10 were."""
    dataset = study({("greedy", 0): [15.0, 17.0, 10.0]}, constant=[[20.0, 20.0, 20.0]])
    ceiling = np.array([10.0, 5.0, 0.0])[None, :, None] * [0.5, 1.0]
    (row,) = best_constant.build(dataset.assign(ceiling_regret=(("environment", "seed", "time"), ceiling))).to_dict("records")
    shares = np.array([0.5, 0.2, 0.5])
    assert row["share of the way"] == pytest.approx(shares.mean())
    assert row["share 95 % low"] == pytest.approx(shares.mean() - HALF * shares.std(ddof=1))
    assert (row["ceiling"], row["best constant"]) == (5, 20)
    assert "ceiling" not in best_constant.build(dataset).columns
