"""An agent that lives outside the package, added by configuration alone, runs alone and is drawn."""

from __future__ import annotations

import matplotlib as mpl
import pytest
import xarray as xr
from project import Project

pytestmark = pytest.mark.workflow

AGENT = '''
"""Always the first action on offer."""

import numpy as np


class First:
    chains = (("none", "none"),)

    def __init__(self, seeds, **_):
        self.seeds = tuple(seeds)

    def act(self, decisions):
        return decisions.choose(np.zeros((len(self.seeds), 1), dtype=int))

    def update(self, choice, reward):
        pass
'''

ENTRY = """  first:
    kind: custom
    class: toy_agent:First
    label: "First on offer"
"""


def test_an_agent_outside_the_package_is_in_the_figure(smoke: Project):
    agents, studies = smoke.folder / "config/agents.yaml", smoke.folder / "config/studies.yaml"
    texts = {path: path.read_text() for path in (agents, studies)}
    figure, dataset = "results/smoke/figures/versus-lmcts-nonlinear_regret.png", "results/smoke/datasets/versus-lmcts.nc"
    try:
        (smoke.folder / "toy_agent.py").write_text(AGENT)
        agents.write_text(texts[agents] + ENTRY)
        studies.write_text(texts[studies].replace("[ensemble++, lmcts, greedy]", "[ensemble++, lmcts, greedy, first]", 1))
        jobs = smoke.planned(figure)
        assert [path.split("/")[4] for path in jobs["simulate"]] == ["first"]
        before = (smoke.folder / figure).read_bytes()
        done = smoke.snakemake(figure)
        assert done.returncode == 0, done.stdout
        assert (smoke.folder / figure).read_bytes() != before
        mpl.use("Agg")
        from ensemblepp.figures import nonlinear_regret

        data = xr.load_dataset(smoke.folder / dataset)
        drawn = nonlinear_regret.draw(data)
        names = [
            text.get_text()
            for legend in [*drawn.legends, *(a.get_legend() for a in drawn.axes)]
            if legend
            for text in legend.texts
        ]
        assert "First on offer" in names
        # the first on offer is a random one: on unit vectors Quadratic rewards average 1, the best of 50 about 1.35
        loss = float(data["regret"].sel(agent="first").isel(time=-1).mean()) / 200
        assert 0.2 < loss < 0.5
    finally:
        (smoke.folder / "toy_agent.py").unlink(missing_ok=True)
        for path, text in texts.items():
            path.write_text(text)
    done = smoke.snakemake()
    assert done.returncode == 0, done.stdout
