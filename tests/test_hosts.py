"""Files for hosts and catalogues, which cannot be run here: they are YAML, and call only what there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def github() -> dict[str, list[str]]:
    jobs = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())["jobs"]
    return {name: [step["run"] for step in job["steps"] if "run" in step] for name, job in jobs.items()}


def gitlab() -> dict[str, list[str]]:
    jobs = yaml.safe_load((ROOT / ".gitlab-ci.yml").read_text())
    return {name: job["script"] for name, job in jobs.items() if "script" in job}


def one_machine() -> list[str]:
    return re.findall(r"^make .*$", (ROOT / ".ci/run").read_text(), re.MULTILINE)


@pytest.mark.parametrize("jobs", [github, gitlab])
def test_every_job_is_a_target_of_make(jobs):
    for name, commands in jobs().items():
        assert commands, name
        for command in commands:
            program, target, *variables = command.split()
            assert program == "make", name
            assert target in TARGETS, name
            assert all(re.fullmatch(r"[A-Z]+=\w+", variable) for variable in variables), name


def test_hosts_do_the_same():
    assert github() == gitlab()


def test_hosts_do_what_one_machine_does():
    asked = {command for commands in github().values() for command in commands}
    # a report is the end of `reproduce` there
    assert set(one_machine()) - {"make report SCALE=smoke"} <= asked


def test_github_gives_jobs_no_more_than_they_need():
    whole = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    assert whole["permissions"] == {"contents": "read"}
    # YAML 1.1 reads `on` as true
    assert whole[True].keys() == {"push", "pull_request"}
    assert all(job["timeout-minutes"] <= 120 for job in whole["jobs"].values())


def test_the_catalogue_knows_how_to_run_it():
    usage = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text())["usage"]
    assert usage.keys() == {"mandatory-flags", "software-stack-deployment", "report"}
    assert usage["mandatory-flags"].keys() == {"desc", "flags"}
    assert all(isinstance(value, bool) for value in usage["software-stack-deployment"].values())
    # what the catalogue asks of a standardised workflow
    for name in ("README.md", "LICENSE", "workflow/Snakefile", "config/README.md", "config/config.yaml"):
        assert (ROOT / name).exists(), name
    assert "report:" in (ROOT / "workflow/Snakefile").read_text()


def test_targets_are_told_of():
    told = set(re.findall(r"^#   make ([a-z-]+)", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert TARGETS - told == {"install"}


@pytest.mark.parametrize("name", ["CONTRIBUTING.md", "docs/release.md"])
def test_links_lead_somewhere(name):
    for target in re.findall(r"\]\((?!http)([^)#]+)", (ROOT / name).read_text()):
        assert ((ROOT / name).parent / target).exists(), target
