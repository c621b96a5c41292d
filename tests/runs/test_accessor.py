"""`dataset.bandit`: the figure and the table of a dataset in memory."""

from __future__ import annotations

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr

from ensemblepp import compare
from ensemblepp.errors import ConfigError


@pytest.fixture(scope="module")
def dataset() -> xr.Dataset:
    return compare(["ts", "linear-greedy", "ensemble-sampling"], "finite-d10-100", 60, 3, ensemble_sizes=[2, 4], progress=False)


def test_differences_by_hand(dataset):
    final = dataset["regret"].isel(time=-1, environment=0, reference=0, perturbation=0).astype(float)
    own = final.sel(agent="linear-greedy", ensemble_size=0).values - final.sel(agent="ts", ensemble_size=0).values
    table = dataset.bandit.differences()
    assert table["agent"].tolist() == ["Greedy", "ES (independent members)", "ES (independent members)"]
    assert table["difference"][0] == pytest.approx(own.mean())
    # Student's t with two degrees of freedom: 4.303
    assert table["95 % high"][0] - table["difference"][0] == pytest.approx(4.302653 * own.std(ddof=1) / np.sqrt(3))


def test_differences_against_another(dataset):
    table = dataset.bandit.differences(against="linear-greedy")
    assert table["against"].unique().tolist() == ["Greedy"]
    assert table["difference"][0] == pytest.approx(-dataset.bandit.differences()["difference"][0])
    with pytest.raises(ConfigError, match=r"^against: found 'linear': must be one of ts, linear-greedy"):
        dataset.bandit.differences(against="linear")
    with pytest.raises(ConfigError, match=r"^differences: 'ts' is the only agent; compare two or more$"):
        dataset.sel(agent=["ts"]).bandit.differences()


def test_a_figure_that_leaves_the_callers_style_alone(dataset, tmp_path):
    before = mpl.rcParams["axes.titlesize"]
    figure = dataset.bandit.plot()
    labels = {text.get_text() for text in figure.legends[0].texts}
    assert labels == {"TS", "Greedy", "ES (independent members), M = 2", "ES (independent members), M = 4"}
    assert mpl.rcParams["axes.titlesize"] == before
    assert plt.get_fignums() == []
    figure.savefig(tmp_path / "regret.png")
    assert (tmp_path / "regret.png").read_bytes().startswith(b"\x89PNG")
    assert len(dataset.bandit.plot("linear_regret").axes) == 1
