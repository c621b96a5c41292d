"""A study's plan: all that its aggregation depends on, and nothing else."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest
from small_configuration import small, with_pairs

from ensemblepp import arguments
from ensemblepp.config.fields import canonical_json
from ensemblepp.config.loading import load, read_files
from ensemblepp.config.studies import SCALES
from ensemblepp.runs.fingerprint import fingerprint
from ensemblepp.runs.plan import LONGEST, packed, plan
from ensemblepp.specification import Block

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _no_mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ENSEMBLEPP_MIRROR", raising=False)


def blocks(found: dict) -> list[Block]:
    """The blocks that a plan speaks of."""
    return [
        Block(found["results"], run["spec"] | {"ensemble_size": size, "seeds": list(seeds)})
        for run in found["runs"]
        for size in run["sizes"]
        for seeds in found["seed_blocks"]
    ]


def test_a_plan_is_what_was_declared():
    found = json.loads(canonical_json(plan(load(small()), "curves")))
    runs = found.pop("runs")
    assert found == {
        "study": "curves",
        "title": "Curves",
        "scale": "quick",
        "results": "results/quick",
        "horizon": 20,
        "seed_blocks": [[0, 1], [2, 2]],
        "environments": [{"name": "line", "title": "Line"}],
        "agents": [{"name": "ts", "label": "TS"}, {"name": "linear", "label": "Ensemble++"}],
    }
    assert [(run["agents"], run["sizes"]) for run in runs] == [(["ts"], [0]), (["linear"], [2, 4])]
    assert all(not {"ensemble_size", "seeds"} & set(run["spec"]) for run in runs)


@pytest.mark.parametrize("scale", SCALES)
def test_a_plan_speaks_of_the_blocks_of_its_study_and_of_their_code(request, scale):
    """As plain JSON that fits on a command line, of which Linux takes 128 KiB in one piece."""
    config = read_files(request.config.rootpath, scale=scale)
    for study in config.active_studies():
        made = plan(config, study)
        assert len(packed(made).encode()) <= LONGEST
        found = json.loads(canonical_json(made))
        asked = config.blocks(study)
        assert sorted(blocks(found), key=lambda block: block.path) == sorted(asked, key=lambda block: block.path)
        code = {run["spec"]["environment"]["name"] + run["spec"]["agent"]["name"]: run["code"] for run in found["runs"]}
        for block in asked:
            place = block.spec["environment"]["name"] + block.spec["agent"]["name"]
            assert code[place] == fingerprint(*block.code)


def test_the_order_of_a_study_survives_a_command_line():
    """Where keys are sorted: figures show agents and environments as the study lists them."""
    order = {"studies/deep/agents": ["neural", "greedy"], "studies/deep/scales/quick/environments": ["posts", "mushroom"]}
    found = json.loads(canonical_json(plan(load(small(**order)), "deep")))
    assert [agent["name"] for agent in found["agents"]] == ["neural", "greedy"]
    assert [environment["name"] for environment in found["environments"]] == ["posts", "mushroom"]


def test_a_plan_changes_only_with_what_its_study_resolves_to():
    found = plan(load(small()), "curves")
    elsewhere = {
        "agents/greedy/label": "Other",
        "environments/mushroom/passes": 3,
        "studies/curves/scales/smoke/seeds": 9,
        "studies/curves/figures": ["laws_heatmap"],
        "studies/deep/title": "Other",
        "on_unreachable": "fail",
        "device": "cuda",
    }
    assert plan(load(small(**elsewhere)), "curves") == found
    for path, value in {
        "agents/ts/label": "Exact TS",
        "agents/ts/prior_variance": 2.0,
        "environments/line/noise": 2.0,
        "environments/line/title": "Other",
        "studies/curves/title": "Other",
        "studies/curves/agents": ["linear", "ts"],
        "studies/curves/scales/quick/seeds": 4,
        "studies/curves/scales/quick/seeds_per_block": 3,
        "studies/curves/scales/quick/horizon": 21,
        "studies/curves/scales/quick/ensemble_sizes": [2],
        "linear_device": "cuda",
    }.items():
        assert plan(load(small(**{path: value})), "curves") != found, path


def test_values_per_environment_count_where_the_study_plays():
    found = plan(load(small()), "curves")
    for name, value in {"mushroom": {"prior_variance": 2.0}, "classification": {"prior_variance": 2.0}}.items():
        assert plan(load(small(**{"agents/ts/per_environment": {name: value}})), "curves") == found
    assert plan(load(small(**{"agents/ts/per_environment": {"line": {"prior_variance": 2.0}}})), "curves") != found


def test_protocols_count_by_the_values_that_reach_an_agent():
    protocol = {"classification": {"batch_size": 64, "prior_scale": 0.5}}
    values = small(**{"agents/greedy/protocol": "mine", "studies/deep/agents": ["greedy"]}) | {"protocols": {"mine": protocol}}
    found = plan(load(values), "deep")
    for same in (
        {"mine": protocol | {"linear_finite": {"batch_size": 3}}, "other": {}},
        # Greedy has no prior
        {"mine": {"classification": {"batch_size": 64}}},
        # the same value, by the environment's name
        {"mine": {"mushroom": {"batch_size": 64}}},
    ):
        assert plan(load(values | {"protocols": same}), "deep") == found
    assert plan(load(values | {"protocols": {"mine": {"classification": {"batch_size": 65}}}}), "deep") != found


def test_pairs_are_shown_from_the_runs_of_their_agent():
    """Another chain is aggregated of the same runs."""
    found = plan(load(with_pairs()), "curves")
    assert found["agents"] == [
        {"name": "ts", "label": "TS"},
        {"name": "cubed", "label": "Cubed", "reference": "gaussian", "perturbation": "cube"},
        {"name": "round", "label": "Pair", "reference": "gaussian", "perturbation": "sphere"},
    ]
    assert [(run["agents"], run["spec"]["agent"]["name"]) for run in found["runs"]] == [
        (["ts"], "ts"),
        (["cubed", "round"], "linear"),
    ]
    other = plan(load(with_pairs(**{"agents/cubed/perturbation": "sphere"})), "curves")
    assert other != found
    assert blocks(other) == blocks(found)


def test_an_agent_beside_its_pair_shares_its_runs():
    found = plan(load(with_pairs(**{"studies/curves/agents": ["round", "linear", "ts"]})), "curves")
    assert [run["agents"] for run in found["runs"]] == [["round", "linear"], ["ts"]]


@pytest.mark.parametrize("study", ["tuning", "laws-d50"])
def test_a_plan_fits_on_a_command_line_and_is_read_back(study):
    """Linux takes 128 KiB for one argument, and a shell's command is one."""
    made = plan(read_files(ROOT, scale="paper"), study)
    text = packed(made)
    assert len(text) < 110_000
    assert text.startswith("zlib:") == (len(canonical_json(made)) > LONGEST) == (study == "tuning")
    assert arguments.plan(text) == json.loads(canonical_json(made))


def test_a_damaged_packed_plan_is_one_line():
    for text in ("zlib:!", "zlib:AAAA"):
        with pytest.raises(argparse.ArgumentTypeError, match="damaged: "):
            arguments.plan(text)
