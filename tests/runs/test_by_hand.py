"""What run files say in words, and a figure of them: the same numbers, and a refusal of files that do not go together."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from ensemblepp import figures
from ensemblepp.config.loading import load
from ensemblepp.errors import ResultError
from ensemblepp.runs import block as blocks
from ensemblepp.runs import by_hand
from ensemblepp.storage.datasets import read_dataset, write_dataset

CONFIG = {
    "environments": {
        "near": {"kind": "linear_finite", "title": "Near", "dimension": 3, "actions": 5},
        "far": {"kind": "linear_finite", "title": "Far", "dimension": 3, "actions": 5, "noise": 0.5},
    },
    "agents": {
        "ts": {"kind": "linear_ts", "label": "TS"},
        "linear": {
            "kind": "linear_ensemblepp",
            "label": "Ensemble++",
            "references": ["cube", "gaussian"],
            "perturbations": ["sphere", "cube"],
        },
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of two agents in two environments, one of them in two files."""
    folder = tmp_path_factory.mktemp("by_hand")
    for name, arguments in {
        "ts": ("near", "ts", 0, 12, 0, 2),
        "more": ("near", "ts", 0, 12, 3, 3),
        "far": ("far", "ts", 0, 12, 0, 2),
        "linear": ("near", "linear", 4, 12, 0, 2),
        "long": ("near", "ts", 0, 13, 0, 2),
    }.items():
        blocks.run(load(CONFIG).block(*arguments).spec, folder / f"{name}.nc")
    return folder


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[xr.Dataset]:
    """The datasets from which figures are drawn."""
    datasets, save = [], figures.save

    def kept(name, dataset, outputs):
        datasets.append(read_dataset(dataset))
        save(name, dataset, outputs)

    monkeypatch.setattr(figures, "save", kept)
    return datasets


def test_regret_in_words(folder):
    final = read_dataset(folder / "ts.nc")["regret"].values[0, 0, :, -1]
    head, line = by_hand.regret_in_words(folder / "ts.nc")
    assert head == "regret after 12 rounds, mean over 3 seeds:"
    # Student's t with two degrees of freedom: 4.303
    half = 4.302653 * final.std(ddof=1) / np.sqrt(3)
    assert line == f"  {final.mean():.4g} (95 % interval {final.mean() - half:.4g} to {final.mean() + half:.4g})"


def test_a_line_for_every_pair_of_laws(folder):
    lines = list(by_hand.regret_in_words(folder / "linear.nc"))
    assert [line.split(":")[0].strip() for line in lines[1:]] == [
        "cube, sphere",
        "cube, cube",
        "gaussian, sphere",
        "gaussian, cube",
    ]


def test_one_seed_has_no_interval(folder):
    head, line = by_hand.regret_in_words(folder / "more.nc")
    assert head == "regret after 12 rounds, mean over 1 seed:"
    assert line.endswith("(one seed has no interval)")


def test_every_run_stands_in_the_figure_under_its_names(folder, drawn, tmp_path):
    by_hand.plot([folder / f"{name}.nc" for name in ("ts", "more", "far", "linear")], tmp_path / "regret.png")
    assert (tmp_path / "regret.png").read_bytes().startswith(b"\x89PNG")
    (dataset,) = drawn
    regret = dataset["regret"].sel(reference="none", perturbation="none", agent="ts", ensemble_size=0)
    np.testing.assert_array_equal(regret.sel(environment="near", seed=slice(0, 2)), stored(folder, "ts"))
    np.testing.assert_array_equal(regret.sel(environment="near", seed=[3]), stored(folder, "more"))
    np.testing.assert_array_equal(regret.sel(environment="far", seed=slice(0, 2)), stored(folder, "far"))
    assert regret.sel(environment="far", seed=3).isnull().all(), "it was not run"
    assert dict(zip(dataset["agent"].values, dataset["label"].values, strict=True)) == {
        "ts": "ts",
        "linear": "linear (gaussian, sphere)",
    }
    assert (dataset.attrs["seeds"], dataset.attrs["horizon"]) == (4, 12)


def stored(folder: Path, name: str) -> np.ndarray:
    return read_dataset(folder / f"{name}.nc")["regret"].values[0, 0]


def test_constant_actions_are_drawn_once_for_all_agents(drawn, tmp_path):
    for size, agent in ((0, "ts"), (4, "linear")):
        blocks.run(load(CONFIG).block("near", agent, size, 6, 0, 1).spec, tmp_path / f"{agent}.nc")
    costs = xr.DataArray(np.arange(12.0).reshape(2, 1, 6), dims=("seed", "action_index", "time"))
    for agent in ("ts", "linear"):
        run = read_dataset(tmp_path / f"{agent}.nc")
        write_dataset(run.assign(constant_regret=costs).assign_coords(action_index=[0]), tmp_path / f"{agent}.nc")
    by_hand.plot([tmp_path / "ts.nc", tmp_path / "linear.nc"], tmp_path / "regret.pdf")
    found = drawn[0]["constant_regret"].transpose("environment", "seed", "action_index", "time").values
    np.testing.assert_array_equal(found, costs.values[None])


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("ts", "long"), "long.nc: 13 rounds, but {folder}/ts.nc has 12; plot runs of equal horizons"),
        (("ts", "ts-again"), "ts-again.nc: seed 0 is in {folder}/ts.nc already; name every run once"),
        (("ts", "other"), "other.nc: not the same as {folder}/ts.nc (agent differ), but under equal names; plot one of them"),
        (("study",), "study.nc: no run file, which is what `simulate` writes; `ensemblepp figure` draws datasets of studies"),
        (("absent",), "absent.nc: no such file; run snakemake to make it"),
    ],
)
def test_files_that_do_not_go_together(folder, tmp_path, names, message):
    run = read_dataset(folder / "ts.nc")
    write_dataset(run, folder / "ts-again.nc")
    write_dataset(run.assign_attrs(spec=run.attrs["spec"].replace('"linear_ts"', '"other"')), folder / "other.nc")
    write_dataset(run.drop_attrs(), folder / "study.nc")
    with pytest.raises(ResultError) as error:
        by_hand.plot([folder / f"{name}.nc" for name in names], tmp_path / "regret.png")
    assert str(error.value) == f"{folder}{os.sep}{message.format(folder=folder)}"
    assert not (tmp_path / "regret.png").exists()
