"""What is published of a full run: summaries against numpy, and the whole of it on the real smoke run."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from ensemblepp import config
from ensemblepp.errors import ResultError
from ensemblepp.publish import QUANTILES, publish, summary


def test_a_summary_is_numpys():
    """4 seeds, 2 times; one combination was not run."""
    regret = np.random.default_rng(0).gamma(2.0, size=(2, 4, 2)).astype(np.float32)
    regret[1] = np.nan
    dataset = xr.Dataset(
        {"regret": (("agent", "seed", "time"), regret)},
        {"agent": ["a", "b"], "seed": range(4), "time": [1, 5], "title": "t", "label": ("agent", ["A", "B"])},
        {"study": "s", "study_title": "S", "scale": "paper", "horizon": 5, "seeds": 4, "specs": "[]", "codes": "{}"},
    )
    made = summary(dataset)
    np.testing.assert_allclose(made["mean"].sel(agent="a"), regret[0].mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(made["standard_error"].sel(agent="a"), regret[0].std(axis=0, ddof=1) / 2, rtol=1e-6)
    np.testing.assert_allclose(made["quantile"].sel(agent="a"), np.quantile(regret[0], QUANTILES, axis=0), rtol=1e-6)
    np.testing.assert_array_equal(made["final_regret"].sel(agent="a"), regret[0, :, 1])
    assert made.sel(agent="b").to_dataarray().isnull().all()
    assert (made.sizes["seed"], made.attrs["seeds"]) == (4, 4)


def test_nothing_complete_is_an_error(tmp_path, monkeypatch, request):
    settings = config.read_files(request.config.rootpath, scale="smoke")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ResultError, match="no study is complete; run snakemake --config scale=smoke first"):
        publish(settings, tmp_path / "published")
    assert not (tmp_path / "published").exists()
