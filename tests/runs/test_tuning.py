"""From played settings to the file of what was chosen, and to the study that plays it."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import yaml

from ensemblepp.analysis import tuning as analysis
from ensemblepp.config.loading import load
from ensemblepp.config.tuning import Space, points
from ensemblepp.errors import ConfigError, ResultError
from ensemblepp.figures import tuning_budget as figure
from ensemblepp.runs import block as blocks
from ensemblepp.runs import tuning
from ensemblepp.runs.aggregate import aggregate
from ensemblepp.runs.fingerprint import fingerprint
from ensemblepp.runs.plan import plan
from ensemblepp.storage.datasets import read_dataset
from ensemblepp.tables import tuning_budget as table

SPACE = {"prior_variance": {"least": 0.001, "most": 1000}}
GRID = {"environments": ["near"], "horizon": 12}
STUDIES = {
    "settings": {
        "title": "Settings",
        "agents": ["bound", "ts"],
        "figures": ["tuning_budget"],
        "tables": ["tuning_budget"],
        "scales": {"quick": GRID | {"seeds": [70, 71, 72], "settings": 4}},
    },
    "best": {"title": "Best", "agents": ["bound-tuned"], "scales": {"quick": GRID | {"seeds": 2}}},
}


def values(**changes: object) -> dict:
    spaces = {name: {"space": SPACE, "settings": 4} for name in ("bound", "ts")}
    return {
        "environments": {"near": {"kind": "linear_finite", "title": "Near", "dimension": 3, "actions": 5}},
        "agents": {"bound": {"kind": "linear_ucb", "label": "LinUCB"}, "ts": {"kind": "linear_ts", "label": "TS"}},
        "tuning": spaces,
        "settings": points({name: Space.model_validate(space) for name, space in spaces.items()}),
        "tuned": {},
        "studies": STUDIES,
    } | changes


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A folder in which the study of settings was made."""
    monkeypatch.chdir(tmp_path)
    config = load(values())
    for block in config.blocks("settings"):
        blocks.run(block.spec, block.path, code=fingerprint(*block.code))
    aggregate(plan(config, "settings"), "results/quick/datasets/settings.nc")
    return config


def test_the_best_setting_is_written_and_then_played(made):
    dataset = read_dataset("results/quick/datasets/settings.nc")
    chosen = tuning.choose(made, "settings")
    assert chosen.keys() == {"near"}
    for agent, one in chosen["near"].items():
        means = [
            float(dataset["regret"].sel(agent=f"{agent}-setting-0{place}").isel(time=-1).mean("seed").max())
            for place in range(4)
        ]
        assert one["setting"] == min(range(4), key=lambda place: means[place])
        assert one["regret"] == pytest.approx(min(means), rel=1e-4)
        assert one["values"] == values()["settings"][agent][one["setting"]]
        assert (one["of"], one["seeds"], one["horizon"], one["scale"]) == (4, [70, 71, 72], 12, "quick")
    other = {"far": {"ts": chosen["near"]["ts"]}}
    tuning.write(
        made.model_copy(update={"tuned": load(values(tuned={"near": other["far"]})).tuned}), chosen, Path("tuned.yaml")
    )
    written = yaml.safe_load(Path("tuned.yaml").read_text())
    assert written == {"tuned": chosen}
    (block,) = load(values(**written)).blocks("best")
    assert block.spec["agent"]["options"]["prior_variance"] == chosen["near"]["bound"]["values"]["prior_variance"]


def test_what_other_studies_chose_stays(made):
    earlier = tuning.choose(made, "settings")["near"]
    before = made.model_copy(update={"tuned": load(values(tuned={"near": earlier})).tuned})
    tuning.write(before, {"far": earlier}, Path("tuned.yaml"))
    assert yaml.safe_load(Path("tuned.yaml").read_text())["tuned"] == {"near": earlier, "far": earlier}


def test_a_study_that_was_played_otherwise_chooses_nothing(made):
    changed = load(values(agents=values()["agents"] | {"ts": {"kind": "linear_ts", "label": "TS", "pruning": False}}))
    with pytest.raises(ResultError, match="not of the present configuration; run snakemake --config scale=quick first"):
        tuning.choose(changed, "settings")
    with pytest.raises(ConfigError, match="plays no settings at scale quick"):
        tuning.choose(load(values(tuned={"near": tuning.choose(made, "settings")["near"]})), "best")


def test_the_figure_and_the_table_show_the_curves(made):
    dataset = read_dataset("results/quick/datasets/settings.nc")
    drawn = figure.draw(dataset)
    rows = table.build(dataset)
    for label, agent in (("LinUCB", "bound"), ("TS", "ts")):
        curve = analysis.budget_curve(dataset, analysis.settings(dataset)[agent], "near").mean("seed")
        (line,) = [line for line in drawn.axes[0].get_lines() if line.get_label() == label]
        np.testing.assert_allclose(line.get_ydata(), curve.values)
        own = rows[rows["agent"] == label].set_index("settings tried")["regret"]
        assert list(own.index) == ["as is", "1", "2", "4"]
        np.testing.assert_allclose(own[["1", "2", "4"]], curve.sel(time=[1, 2, 4]).values)
        assert own["as is"] == pytest.approx(float(analysis.final_regret(dataset, agent, "near").mean()))
    best = rows[rows["settings tried"] == "4"]["best setting"]
    assert best.str.startswith("prior_variance ").all()
    plt.close(drawn)
