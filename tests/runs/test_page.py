"""What the page is made from: told from the configuration, or from a folder of results that are there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ensemblepp.config.fields import canonical_json
from ensemblepp.config.loading import read_files
from ensemblepp.config.resolution import Config
from ensemblepp.runs import page


@pytest.fixture(scope="module")
def config(request) -> Config:
    return read_files(request.config.rootpath, scale="smoke")


def test_all_that_the_workflow_makes(config):
    plan = page.plan(config, {})
    assert [study["name"] for study in plan["studies"]] == list(config.active_studies())
    assert [exhibit["name"] for exhibit in plan["exhibits"]] == [exhibit.name for exhibit in config.exhibits.values()]
    made = {path for study in config.active_studies() for path in config.artefacts(study)}
    needed = page.inputs(plan)
    assert needed[0] == "results/smoke/claims/ledger.json"
    assert {path for path in needed if "/figures/" in path or "/tables/" in path} == {
        path for path in made if path.endswith((".png", ".csv"))
    }
    assert plan["absent"]["laws-d10"] == "not run at scale smoke"
    assert json.loads(canonical_json(plan)) == json.loads(json.dumps(plan))


@pytest.mark.parametrize("scale", ["smoke", "quick", "paper"])
def test_a_plan_fits_on_a_command_line(request, scale):
    """Linux takes 128 kB in one argument."""
    assert len(canonical_json(page.plan(read_files(request.config.rootpath, scale=scale), {}))) < 64_000


def test_what_cannot_be_had_is_left_out_with_its_reason(config):
    plan = page.plan(config, {"uci": "no source answers"})
    assert "uci" not in [study["name"] for study in plan["studies"]]
    assert plan["absent"]["uci"] == "left out: no source answers"
    assert not any("uci" in path for path in page.inputs(plan))


def test_captions_are_files_of_the_workflow(config, request):
    files = page.caption_files(page.plan(config, {}))
    assert "workflow/report/linear_regret.rst" in files
    assert all(Path(request.config.rootpath, path).is_file() for path in files)


def test_captions_of_a_users_are_texts_or_files(config):
    own = {
        "bars": {"function": "final:draw", "caption": "In a few words."},
        "lines": {"function": "final:lines", "caption": "captions/lines.rst"},
        "dots": {"function": "final:dots"},
    }
    changed = config.model_dump(by_alias=True, exclude_unset=True) | {"figures": own}
    changed["studies"]["linear"] = changed["studies"]["linear"] | {"figures": list(own)}
    (linear, *_) = page.plan(Config.model_validate(changed), {})["studies"]
    assert linear["figures"] == [
        ("bars", "In a few words."),
        ("lines", "captions/lines.rst"),
        ("dots", "made by final:dots"),
    ]


def test_a_folder_shows_what_is_there(config, tmp_path):
    plan = page.plan(config, {}, results=str(tmp_path))
    assert (plan["studies"], plan["ledger"], plan["report"]) == ([], None, None)
    assert plan["absent"]["linear"] == "not made yet"
    names = ["datasets/linear.nc", "figures/linear-linear_regret.png", "figures/linear-es_regret.png"]
    for name in [*names, "tables/linear-final_regret.csv", "claims/ledger.json", "report.html"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    plan = page.plan(config, {}, results=str(tmp_path))
    assert [study["name"] for study in plan["studies"]] == ["linear"]
    assert (plan["ledger"], plan["report"]) == (f"{tmp_path}/claims/ledger.json", f"{tmp_path}/report.html")
