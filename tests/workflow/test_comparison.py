"""`compare` in Python makes the files that the workflow has made, to the last bit."""

from __future__ import annotations

from pathlib import Path

import pytest
import xarray as xr
from project import Project

from ensemblepp import compare

pytestmark = pytest.mark.workflow


@pytest.mark.parametrize(
    ("environment", "agents", "horizon", "seeds", "sizes"),
    [
        ("finite-d10-100", ["ts", "linear-ensemble++"], 200, 4, [2, 8]),
        ("quadratic", ["ensemble++", "ensemble+"], 200, 2, [8]),
    ],
)
def test_the_same_run_files(smoke: Project, tmp_path: Path, environment, agents, horizon, seeds, sizes):
    found = compare(agents, environment, horizon, seeds, ensemble_sizes=sizes, folder=tmp_path, seeds_per_block=10)
    made = sorted(tmp_path.glob("runs/**/[!.]*.nc"))
    assert len(made) == (3 if environment == "finite-d10-100" else 2)
    for path in made:
        assert path.read_bytes() == (smoke.folder / "results/smoke" / path.relative_to(tmp_path)).read_bytes(), path
    if environment == "finite-d10-100":
        study = xr.load_dataset(smoke.folder / "results/smoke/datasets/linear.nc").sel(environment=environment)
        for size in (0, *sizes):
            agent = "linear-ensemble++" if size else "ts"
            laws = (
                {"reference": "gaussian", "perturbation": "sphere"} if size else {"reference": "none", "perturbation": "none"}
            )
            own = found["regret"].sel(environment=environment, agent=agent, ensemble_size=size, **laws)
            pair = "ensemble++-gaussian-sphere" if size else "ts"
            same = study["regret"].sel(agent=pair, ensemble_size=size, reference="none", perturbation="none")
            assert (own.values == same.values).all()
