"""What happens before the first job: configuration faults, data that cannot be had, what the DAG costs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from project import copy_project

pytestmark = pytest.mark.workflow

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("file", "change", "replacement", "line"),
    [
        ("config.yaml", "scale: quick", "scale: quick\nspeed: 3", "config.yaml: speed: unknown key"),
        ("config.yaml", "device: auto", "device: tpu", "config.yaml: device: found 'tpu'"),
        (
            "studies.yaml",
            "agents: [ts, linear-ensemble++]",
            "agents: [ucb]",
            "studies.laws-d10.agents: found 'ucb'",
        ),
        (
            "studies.yaml",
            "sizes: [2, 8]",
            "sizes: [0, 8]",
            "studies.yaml: studies.linear.scales.smoke.ensemble_sizes.0: found 0",
        ),
        ("studies.yaml", "seeds: 4", "seeds: []", "studies.yaml: studies.linear.scales.smoke.seeds"),
        ("studies.yaml", "horizon: 150", "horizon: 20000", "studies.yaml: studies.uci.scales.smoke.horizon: found 20000"),
        ("agents.yaml", "reference: coordinate", "reference: cauchy", "agents.yaml: agents.es.reference: found 'cauchy'"),
    ],
)
def test_a_configuration_fault_is_one_line_and_nothing_starts(bare, file, change, replacement, line):
    path = bare.folder / "config" / file
    text = path.read_text()
    assert change in text
    path.write_text(text.replace(change, replacement, 1))
    done = bare.snakemake()
    assert done.returncode != 0
    faults = [shown for shown in done.stdout.splitlines() if shown.startswith("error: config/")]
    assert [fault for fault in faults if line in fault], done.stdout
    assert "Traceback" not in done.stdout
    assert [path.name for path in (bare.folder / "results").iterdir()] == ["paper-scale"], "what the project tracks"
    assert not (bare.folder / "logs").exists()


def test_without_sources_the_studies_that_need_them_are_left_out(bare):
    """Of three studies one can run."""
    declared = bare.folder / "config/studies.yaml"
    studies = yaml.safe_load(declared.read_text())["studies"]
    declared.write_text(yaml.safe_dump({"studies": {name: studies[name] for name in ("linear", "uci", "moderation")}}))
    done = bare.snakemake()
    assert done.returncode == 0, done.stdout
    said = [line for line in done.stdout.splitlines() if line.startswith("Left out: UCI classification bandits")]
    assert len(said) == 2, "once at the start, once at the end"
    assert "uci/agaricus-lepiota.data" in said[0]
    assert "ENSEMBLEPP_MIRROR" in said[0]
    results = bare.folder / "results/smoke"
    assert (results / "figures/linear-linear_regret.png").exists()
    assert not (results / "datasets/uci.nc").exists()
    report = (results / "report.html").read_text()
    assert "Left out, because their data could not be had" in report
    assert "Hate-speech moderation" in report
    assert re.search(r"<li>uci: left out: ", (results / "index.html").read_text())
    again = bare.snakemake()
    assert again.returncode == 0
    assert "Nothing to be done" in again.stdout
    assert "Left out: UCI classification bandits" in again.stdout


def test_without_sources_fail_stops_at_once(bare):
    done = bare.snakemake("--config", "scale=smoke", "on_unreachable=fail")
    assert done.returncode != 0
    assert "study 'uci' cannot run" in done.stdout
    assert [path.name for path in (bare.folder / "results").iterdir()] == ["paper-scale"], "what the project tracks"


def test_a_single_target_needs_only_its_own_data(tmp_path):
    """In a fresh clone, which compiles what it plays."""
    clone = copy_project(tmp_path, compiled=False)
    done = clone.snakemake("results/smoke/runs/finite-d10-100/ts/M0/T50/seeds3-4.nc")
    assert done.returncode == 0, done.stdout
    assert "Left out" not in done.stdout


def test_parsing_loads_no_heavy_library(bare):
    """Every job of a cluster parses the workflow again."""
    code = (
        "import sys; from snakemake.cli import main\n"
        "try: main(['-n', '--quiet', 'all', '--config', 'scale=paper', '--', 'results/paper/datasets/linear.nc'])\n"
        "except SystemExit as stop: assert not stop.code, stop.code\n"
        "print(sorted({'torch', 'xarray', 'transformers', 'datasets', 'seaborn', 'matplotlib', 'scipy'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=bare.folder, env=bare.environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_every_scale_has_a_plan(bare, scale, mirror):
    settings = ["--config", f"scale={scale}", "on_unreachable=skip"]
    done = bare.snakemake("-n", "--quiet", "all", *settings, ENSEMBLEPP_MIRROR=str(mirror))
    assert done.returncode == 0, done.stdout


def test_every_wildcard_is_constrained():
    """Loose wildcards let Snakemake search ever deeper paths: minutes instead of seconds."""
    text = "\n".join(path.read_text() for path in (ROOT / "workflow/rules").glob("*.smk"))
    paths = "\n".join(re.findall(r'"(?:results|data|logs)/[^"]*"', text))
    used = set(re.findall(r"\{+(\w+)\}+", paths))
    constrained = set(re.findall(r"^    (\w+)=", (ROOT / "workflow/rules/common.smk").read_text(), re.MULTILINE))
    assert used - {"name"} <= constrained, "the name of a figure or table is filled in when the rules are made"


def test_no_rule_hides_a_trap():
    """protected() blocks re-runs, checkpoints repeat them, rule-level retries multiply on a cluster, script: follows times."""
    for path in (ROOT / "workflow").rglob("*.smk"):
        text = path.read_text()
        for trap in ("protected(", "checkpoint ", "retries:", "script:", "    run:"):
            assert trap not in text, f"{path.name}: {trap}"


def test_results_in_the_report_have_one_label():
    """The report's page takes a second label with two values for a toggle, and breaks where a combination is missing."""
    text = (ROOT / "workflow/rules/present.smk").read_text()
    labels = [ast.parse(found, mode="eval").body for found in re.findall(r"labels=(\{.*\}),", text)]
    assert labels
    assert all(len(label.keys) == 1 for label in labels)
