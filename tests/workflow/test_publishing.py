"""The published side of the real smoke run."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
import xarray as xr

from ensemblepp.config.loading import read_files
from ensemblepp.runs import crate, publish


@pytest.mark.workflow
def test_publishing_the_smoke_run(smoke, tmp_path, monkeypatch):
    command = [sys.executable, "-m", "ensemblepp", "publish", "--scale", "smoke", "--folder", str(tmp_path)]
    environment = smoke.environment | {"PYTHONPATH": str(smoke.folder / "src")}
    done = subprocess.run(command, cwd=smoke.folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    provenance = json.loads((tmp_path / "provenance.json").read_text())
    assert provenance["not_run"] == {}
    (publication,) = provenance["publications"]
    studies = publication["studies"]
    assert studies["linear"] | {"horizon": 200, "seeds": 4} == studies["linear"]

    # every figure and table of the run, every study's summary, and every rule's cost
    made = {path.name for path in (smoke.folder / "results/smoke/figures").iterdir()}
    assert {path.name for path in (tmp_path / "figures").iterdir()} == made
    assert {path.stem for path in (tmp_path / "datasets").iterdir()} == set(studies)
    rules = publication["rules"]
    assert rules["simulate"]["jobs"] == len(smoke.run_files())
    assert rules["aggregate"]["jobs"] == len(studies)
    assert all(rule["wall_seconds"] > 0 for rule in rules.values())
    assert publication["invocations"][0]["outcome"] == "success"
    assert publication["machine"]["cores"] > 0

    page = (tmp_path / "README.md").read_text()
    assert "Not run" not in page
    for name in made:
        assert f"(figures/{name})" in page or name.endswith(".pdf")
    full, small = (xr.load_dataset(folder / "datasets/linear.nc") for folder in (smoke.folder / "results/smoke", tmp_path))
    xr.testing.assert_allclose(small["mean"], full["regret"].mean("seed", skipna=False).sel(time=small["time"]), rtol=1e-5)
    assert small["time"][-1] == full["time"][-1]

    # a research object of the real run, and the same bytes again; that figures have theirs is in figures/test_surroundings.py
    assert list(crate.faults(tmp_path / crate.METADATA)) == []
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    monkeypatch.chdir(smoke.folder)
    settings = read_files(smoke.folder, scale="smoke")
    publish.renew(settings, tmp_path)
    crate.write_crate(settings, tmp_path, provenance)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
