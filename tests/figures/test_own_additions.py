"""Figures and tables of the user's are written like ours, and ours show laws of the user's."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import matplotlib.image
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from whole_study import whole

from ensemblepp import figures, tables
from ensemblepp.errors import ConfigError
from ensemblepp.figures import laws_ablation, laws_heatmap, regret_by_size, style
from ensemblepp.storage.datasets import write_dataset

REFERENCES, PERTURBATIONS = ("laplace", "sphere", "gaussian"), ("raw_gaussian", "sphere", "laplace")
OWN = {"name": "laplace", "function": "mine:laplace", "normalise": True}


@pytest.fixture
def dataset() -> xr.Dataset:
    """TS, and Ensemble++ with a law of the user's among others; regret tells every pair apart."""
    coordinates = {
        "environment": ["line"],
        "agent": ["ts", "laws"],
        "reference": ["none", *REFERENCES],
        "perturbation": ["none", *PERTURBATIONS],
        "ensemble_size": [0, 4, 8],
        "seed": [0, 1, 2],
        "time": [1, 10],
    }
    regret = xr.DataArray(np.full([len(values) for values in coordinates.values()], np.nan), coordinates)
    noise = np.random.default_rng(0).uniform(0, 0.1, (3, 2))
    regret.loc[{"agent": "ts", "reference": "none", "perturbation": "none", "ensemble_size": 0}] = 1 + noise
    for number, (reference, perturbation) in enumerate(itertools.product(REFERENCES, PERTURBATIONS)):
        for size in (4, 8):
            place = {"agent": "laws", "reference": reference, "perturbation": perturbation, "ensemble_size": size}
            regret.loc[place] = 2 + number + noise
    specs = [{"agent": {"name": "laws", "options": {"update": OWN}}}, {"agent": {"name": "ts", "options": {}}}]
    facts = {"study": "s", "study_title": "S", "scale": "smoke", "horizon": 10, "seeds": 3, "specs": json.dumps(specs)}
    return xr.Dataset({"regret": regret}, attrs=facts).assign_coords(
        title=("environment", ["Line"]), label=("agent", ["TS", "Ensemble++"])
    )


def draw(dataset: xr.Dataset) -> plt.Figure:
    figure, axes = plt.subplots(figsize=(3, 2))
    axes.plot(dataset["time"], dataset["regret"].mean([name for name in dataset["regret"].dims if name != "time"]))
    return figure


def draw_without_layout(dataset: xr.Dataset) -> plt.Figure:
    return plt.figure(figsize=(3, 2), layout="none")


def build(dataset: xr.Dataset) -> pd.DataFrame:
    return pd.DataFrame({"agent": dataset["agent"].values})


def nothing(dataset: xr.Dataset) -> None:
    return None


@pytest.fixture
def file(tmp_path: Path, dataset: xr.Dataset) -> Path:
    write_dataset(whole(dataset), tmp_path / "study.nc")
    return tmp_path / "study.nc"


@pytest.mark.parametrize("function", [draw, draw_without_layout])
def test_a_figure_of_ones_own(file, function):
    figures.save(f"{__name__}:{function.__name__}", file, [file.with_suffix(".png"), file.with_suffix(".pdf")])
    height, width, _ = matplotlib.image.imread(file.with_suffix(".png")).shape
    assert (width, height) == (480, 320)
    assert file.with_suffix(".pdf").read_bytes().startswith(b"%PDF")


def test_a_table_of_ones_own_may_have_one_column(file):
    tables.save(f"{__name__}:build", file, [file.with_suffix(f".{suffix}") for suffix in tables.SUFFIXES])
    assert file.with_suffix(".csv").read_text() == "agent\nts\nlaws\n"
    assert r"\begin{tabular}{l}" in file.with_suffix(".tex").read_text()


@pytest.mark.parametrize(("package", "words"), [(figures, "a matplotlib figure"), (tables, "a pandas data frame")])
def test_a_function_that_returns_something_else(file, package, words):
    with pytest.raises(ConfigError, match=f":nothing: returned NoneType: must return {words}$"):
        package.save(f"{__name__}:nothing", file, [])


def test_laws_of_the_users_stand_behind_the_tables_own(dataset):
    axes = laws_heatmap.draw(dataset).axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["gaussian", "sphere", "laplace"]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["sphere", "N(0, I/M)", "laplace"]
    drawn = regret_by_size.draw(dataset)
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == [
        "gaussian",
        "sphere",
        "laplace",
        "TS",
    ]
    assert [axes.get_title() for axes in drawn.axes] == ["sphere", "N(0, I/M)", "laplace"]


def test_a_law_of_the_users_has_a_look_of_its_own(dataset):
    looks = style.law_looks([*style.LAWS, "laplace", "sparse-4"])
    assert len({colour for colour, _ in looks.values()}) == len({marker for _, marker in looks.values()}) == len(style.LAWS) + 2
    drawn = laws_ablation.draw(dataset)
    named = {axes.get_title(): [text.get_text() for text in axes.get_yticklabels()] for axes in drawn.axes}
    assert named == {
        "update law": ["laplace"],
        "reference law": ["gaussian", "sphere", "laplace"],
        "perturbation law": ["sphere", "N(0, I/M)", "laplace"],
    }
