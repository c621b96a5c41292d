"""What is published of a full run: summaries against numpy, and the whole of it on the real smoke run."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from ensemblepp import config
from ensemblepp.errors import ResultError
from ensemblepp.publish import publish, summary


def test_a_summary_is_numpys():
    """4 seeds, 6 times, of which the 2nd and the 6th are kept; one combination was not run."""
    regret = np.random.default_rng(0).gamma(2.0, size=(2, 4, 6)).astype(np.float32)
    regret[1] = np.nan
    dataset = xr.Dataset(
        {"regret": (("agent", "seed", "time"), regret)},
        {"agent": ["a", "b"], "seed": range(4), "time": [1, 2, 3, 5, 8, 13], "title": "t", "label": ("agent", ["A", "B"])},
        {"study": "s", "study_title": "S", "scale": "paper", "horizon": 13, "seeds": 4, "specs": "[]", "codes": "{}"},
    )
    made = summary(dataset)
    assert made["time"].values.tolist() == [2, 13]
    final, regret = regret[..., -1], regret[..., [1, 5]]
    np.testing.assert_allclose(made["mean"].sel(agent="a"), regret[0].mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(made["standard_error"].sel(agent="a"), regret[0].std(axis=0, ddof=1) / 2, rtol=1e-6)
    np.testing.assert_allclose(made["median"].sel(agent="a"), np.median(regret[0], axis=0), rtol=1e-6)
    np.testing.assert_array_equal(made["final_regret"].sel(agent="a"), final[0])
    assert made.sel(agent="b").to_dataarray().isnull().all()
    assert (made.sizes["seed"], made.attrs["seeds"]) == (4, 4)


def test_nothing_complete_is_an_error(tmp_path, monkeypatch, request):
    settings = config.read_files(request.config.rootpath, scale="smoke")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ResultError, match="no study is complete; run snakemake --config scale=smoke first"):
        publish(settings, tmp_path / "published")
    assert not (tmp_path / "published").exists()
