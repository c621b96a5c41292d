"""The table of minimum ensemble sizes: sizes and exponents known by construction, intervals by enumeration of all resamples."""

from __future__ import annotations

import csv
import itertools
import json
import math

import numpy as np
import pytest
import xarray as xr
from whole_study import whole

from ensemblepp import tables
from ensemblepp.errors import ResultError
from ensemblepp.storage.datasets import write_dataset
from ensemblepp.tables import minimum_size

SIZES = (4, 8, 16, 32)
HORIZON = 1000


def study(excess: dict[tuple[int, int | None], np.ndarray], sizes: tuple[int, ...] = SIZES) -> xr.Dataset:
    """TS and Ensemble++ from the excess per round over it: by (d, number of actions), shape (seeds, sizes)."""
    seeds = len(next(iter(excess.values())))
    regret = np.full((len(excess), 2, 2, 2, 1 + len(sizes), seeds, 2), np.nan)
    for place, values in enumerate(excess.values()):
        # regrets of seeds differ by far more than the rules tolerate: only pairs compare
        regret[place, 0, 0, 0, 0, :, 1] = yardstick = 500.0 * np.arange(1, seeds + 1)
        regret[place, 1, 1, 1, 1:, :, 1] = yardstick + HORIZON * np.asarray(values).T
    dims = ("environment", "agent", "reference", "perturbation", "ensemble_size", "seed", "time")
    names = [f"d{dimension}-{actions}" for dimension, actions in excess]
    specs = [
        {"environment": {"name": name, "options": {"dimension": dimension} | ({"actions": actions} if actions else {})}}
        for name, (dimension, actions) in zip(names, excess, strict=True)
    ]
    return xr.Dataset(
        {"regret": (dims, regret)},
        {
            "environment": names,
            "title": ("environment", [f"Title of {name}" for name in names]),
            "agent": ["ts", "ours"],
            "label": ("agent", ["TS", "Ensemble++"]),
            "reference": ["none", "gaussian"],
            "perturbation": ["none", "sphere"],
            "ensemble_size": [0, *sizes],
            "seed": range(seeds),
            "time": [1, HORIZON],
        },
        {"horizon": HORIZON, "specs": json.dumps(specs)},
    )


def certain(*means: float, seeds: int = 3) -> np.ndarray:
    """The same excess for all seeds."""
    return np.tile(means, (seeds, 1))


def cells(dataset: xr.Dataset, rule: str, row: int = 0) -> list[object]:
    """M, low, high, excess and s.e. of a row."""
    return [minimum_size.build(dataset)[f"{rule}: {name}"][row] for name in ("M", "low", "high", "excess", "s.e.")]


@pytest.mark.parametrize(
    ("means", "two_sided", "one_sided"),
    [
        ((0.5, 0.1, 0.01, 0.0), ("16", 0.01), ("16", 0.01)),
        ((0.019, 0.5, 0.5, 0.01), ("4", 0.019), ("32", 0.01)),  # lucky at M = 4
        ((0.5, -0.021, -0.5, -0.3), ("> 32", math.nan), ("8", -0.021)),  # better by more than the tolerance
        ((0.5, 0.1, 0.01, 0.021), ("16", 0.01), ("> 32", math.nan)),
        ((-0.019, 0.01, 0.0, 0.0), ("4", -0.019), ("4", -0.019)),
    ],
)
def test_sizes_known_by_construction(means, two_sided, one_sided):
    dataset = study({(10, 100): certain(*means)})
    for rule, (size, excess) in (("two-sided", two_sided), ("one-sided", one_sided)):
        *found, mean, error = cells(dataset, rule)
        assert found == [size] * 3, "without noise all resamples agree"
        assert mean == pytest.approx(excess, abs=1e-12, nan_ok=True)
        assert error == pytest.approx(0 if size[0] != ">" else math.nan, abs=1e-12, nan_ok=True)


def test_the_excess_has_its_standard_error():
    """0.00, 0.01 and 0.02: mean 0.01, deviation 0.01."""
    values = np.column_stack([[0.5, 0.5, 0.5], [0.0, 0.01, 0.02], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    *_, mean, error = cells(study({(10, 100): values}), "two-sided")
    assert mean == pytest.approx(0.01)
    assert error == pytest.approx(0.01 / math.sqrt(3))


def test_intervals_are_quantiles_over_all_resamples():
    """Four seeds have 256 resamples, which can be counted; no cumulated share here is near a quantile of 2.5 or 97.5 %."""
    values = np.array([[0.5, 0.12, -0.02, 0.0], [0.1, -0.09, 0.06, 0.01], [0.0, 0.02, 0.0, 0.03], [-0.4, 0.0, 0.0, 0.0]])
    rules = {
        "two-sided": lambda means: [abs(mean) <= 0.02 for mean in means],
        "one-sided": lambda means: [all(mean <= 0.02 for mean in means[start:]) for start in range(4)],
    }
    dataset = study({(10, 100): values})
    scale = ["4", "8", "16", "32", "> 32"]
    for rule, passes in rules.items():
        counts = np.zeros(5)
        for rows in itertools.product(range(4), repeat=4):
            passing = passes(values[list(rows)].mean(axis=0))
            counts[passing.index(True) if True in passing else 4] += 1 / 256
        shares = np.cumsum(counts)
        for share in (0.025, 0.975):
            assert np.abs(shares - share).min() > 4 * math.sqrt(share * (1 - share) / 10_000), "decided by chance"
        lowest, highest = (scale[int(np.argmax(shares >= share))] for share in (0.025, 0.975))
        _, low, high, _, _ = cells(dataset, rule)
        assert (low, high) == (lowest, highest)
        assert low != high


def test_exponents_of_sizes_that_are_powers():
    """M = d, whatever |X|: exponents 1 and 0; and M = sqrt|X| / 4 whatever d: 0 and 1/2."""

    def passing(size: int) -> np.ndarray:
        return certain(*(0.5 if other < size else 0.0 for other in SIZES))

    linear = study({(d, actions): passing(d) for d in (4, 8, 16) for actions in (100, 10_000)})
    root = study({(d, actions): passing(math.isqrt(actions) // 4) for d in (10, 50) for actions in (256, 4096, 16_384)})
    for dataset, environments, expected in ((linear, 6, (1, 0)), (root, 6, (0, 0.5))):
        table = minimum_size.build(dataset)
        assert table["environment"].tolist()[environments:] == ["exponent of d", "exponent of |X|"]
        for rule in ("two-sided", "one-sided"):
            for name in ("M", "low", "high"):
                np.testing.assert_allclose(table[f"{rule}: {name}"][environments:].astype(float), expected, atol=1e-9)
            assert table[f"{rule}: excess"][environments:].isna().all()


def test_a_size_beyond_the_grid_enters_the_exponent_as_twice_the_largest():
    """M = 4 at d = 4 and none up to 32 at d = 64: log(64 / 4) / log(64 / 4)."""
    dataset = study({(4, 100): certain(0.0, 0.0, 0.0, 0.0), (64, 100): certain(1.0, 1.0, 1.0, 1.0)})
    table = minimum_size.build(dataset)
    assert table["environment"].tolist() == ["Title of d4-100", "Title of d64-100", "exponent of d"], "|X| does not vary"
    assert table["two-sided: M"].tolist()[:2] == ["4", "> 32"]
    assert table["two-sided: M"][2] == pytest.approx(1)


def test_seeds_are_resampled_together_in_all_environments():
    """Where all environments have the same excess by seed they pass together in every resample: the exponent is always 0."""
    values = np.random.default_rng(1).normal(0.05, 0.1, (6, 4))
    table = minimum_size.build(study({(d, 100): values for d in (4, 8, 16)}))
    assert table["one-sided: low"][0] != table["one-sided: high"][0], "sizes are uncertain"
    for name in ("M", "low", "high"):
        assert table[f"one-sided: {name}"][3] == pytest.approx(0, abs=1e-12)


def test_a_compact_set_has_no_number_of_actions():
    table = minimum_size.build(study({(10, None): certain(0, 0, 0, 0), (20, None): certain(0, 0, 0, 0)}))
    assert table["actions"].tolist() == ["-"] * 3
    assert table["environment"].tolist()[2:] == ["exponent of d"]


def test_a_seed_that_is_missing_somewhere_counts_nowhere():
    dataset = study({(10, 100): np.vstack([certain(0.5, 0.0, 0.0, 0.0), certain(-9, -9, -9, -9, seeds=1)])})
    dataset["regret"].loc[{"agent": "ours", "ensemble_size": 32, "seed": 3}] = np.nan
    table = minimum_size.build(dataset)
    assert (table["seeds"][0], table["two-sided: M"][0]) == (3, "8")


def test_one_seed_has_no_standard_error():
    *found, mean, error = cells(study({(10, 100): certain(0.5, 0.01, 0.0, 0.0, seeds=1)}), "two-sided")
    assert found == ["8"] * 3
    assert (mean, error) == (pytest.approx(0.01), pytest.approx(math.nan, nan_ok=True))


def test_without_thompson_sampling_the_message_says_what_to_add():
    with pytest.raises(ResultError, match=r"add agent 'ts' to the study in config/studies\.yaml"):
        minimum_size.build(study({(10, 100): certain(0, 0, 0, 0)}).sel(agent=["ours"]))


def test_formats(tmp_path):
    values = np.random.default_rng(2).normal(0.02, 0.05, (5, 4))
    write_dataset(whole(study({(4, 100): values, (8, 100): values - 0.01})), tmp_path / "study.nc")
    for folder in ("a", "b"):
        outputs = [tmp_path / folder / f"t.{name}" for name in ("csv", "md", "tex", "html")]
        tables.save("minimum_size", tmp_path / "study.nc", outputs)
    for name in ("csv", "md", "tex", "html"):
        assert (tmp_path / "a" / f"t.{name}").read_bytes() == (tmp_path / "b" / f"t.{name}").read_bytes()
    with (tmp_path / "a" / "t.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["environment"] for row in rows] == ["Title of d4-100", "Title of d8-100", "exponent of d"]
    assert list(rows[0])[:8] == [
        "environment",
        "agent",
        "d",
        "actions",
        "seeds",
        "two-sided: M",
        "two-sided: low",
        "two-sided: high",
    ]
    assert [(row["d"], row["actions"], row["seeds"]) for row in rows] == [("4", "100", "5"), ("8", "100", "5"), ("-", "-", "5")]
