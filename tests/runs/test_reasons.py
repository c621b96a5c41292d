"""Why something would be made anew: Snakemake's real reasons, of a small workflow with the real rules' names, in words."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ensemblepp.config.loading import load
from ensemblepp.errors import ResultError
from ensemblepp.runs import fingerprint, reasons
from ensemblepp.runs.fingerprint import closure
from ensemblepp.runs.reasons import why
from ensemblepp.storage.datasets import write_json

CONFIG = {
    "environments": {"near": {"kind": "linear_finite", "title": "Near", "dimension": 3, "actions": 5}},
    "agents": {"mine": {"kind": "custom", "label": "Mine", "class": "agent_of_reasons:Mine"}},
    "studies": {
        "small": {
            "title": "A small study",
            "agents": ["mine"],
            "scales": {"quick": {"environments": ["near"], "horizon": 12, "seeds": 3, "seeds_per_block": 2}},
        }
    },
}
RUNS = [f"results/quick/runs/near/mine/M0/T12/seeds{seeds}.nc" for seeds in ("0-1", "2-2")]

SNAKEFILE = """
rule all:
    input: RUNS, "results/quick/tables/small-final.md"

rule simulate:
    input: "means.txt"
    output: "results/quick/runs/near/mine/M0/T12/seeds{block}.nc"
    params: spec='{"environment": {"options": {"noise": NOISE}}, "seeds": [0, 1]}', code="CODE"
    shell: "touch {output}"

rule aggregate:
    input: RUNS
    output: "results/quick/datasets/small.nc"
    params: plan='{"runs": [{"code": "one", "sizes": [1]}]}', code="AGGREGATE"
    shell: "touch {output}"

rule present_small:
    input: "results/quick/datasets/small.nc"
    output: "results/quick/tables/small-final.md", "results/quick/tables/small-final.csv"
    shell: "COMMAND {output}"
"""

AGENT = '''
"""An agent."""

class Mine:
    chains = (("none", "none"),)

    def __init__(self, seeds, *, dimension, ensemble_size, horizon, device):
        pass

    def act(self, decisions):
        return VALUE
'''


def workflow(**changes: str) -> None:
    """Write the workflow, with other words in some places."""
    words = {"NOISE": "1.0", "CODE": "0123456789abcdef", "AGGREGATE": "0123456789abcdef", "COMMAND": "touch"} | changes
    text = SNAKEFILE.replace("input: RUNS", f"input: *{RUNS}")
    for place, word in words.items():
        text = text.replace(place, word)
    Path("Snakefile").write_text(text)


def git(*arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the workflow has run, with an agent of the user's under git."""
    folder = tmp_path_factory.mktemp("reasons")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("means.txt").write_text("1")
        Path("agent_of_reasons.py").write_text(AGENT.replace("VALUE", "1"))
        git("init", "-q")
        git("add", "agent_of_reasons.py")
        git("commit", "-q", "-m", "An agent")
        workflow()
        command = [sys.executable, "-m", "snakemake", "--cores", "1", "--quiet", "all", "--config", "scale=quick"]
        subprocess.run(command, check=True, capture_output=True)
        record(git("rev-parse", "HEAD"))
    return folder


@pytest.fixture
def folder(ran: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it to edit, as working directory."""
    shutil.copytree(ran, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    monkeypatch.syspath_prepend(tmp_path / "copy")
    for remembered in [*vars(fingerprint).values(), *vars(reasons).values()]:
        if hasattr(remembered, "cache_clear"):
            remembered.cache_clear()
    return tmp_path / "copy"


def record(commit: str) -> None:
    for run in RUNS:
        write_json({"commit": commit}, Path(run).with_suffix(".json"))


def lines(*targets: str) -> list[str]:
    return list(why(load(CONFIG), targets))


FOLLOWS = [
    "dataset, results/quick/datasets/small.nc: follows from the above",
    "study's figures and tables, results/quick/tables/small-final.md: follows from the above",
]


def test_nothing(folder):
    assert lines() == ["nothing would be made anew"]


def test_a_setting_is_told_once_for_all_blocks(folder):
    workflow(NOISE="0.5")
    first, *others = lines()
    assert first.startswith("2 run blocks, such as results/quick/runs/near/mine/M0/T12/seeds")
    assert first.endswith(".nc: environment.options.noise: was 1.0, is 0.5")
    assert others == FOLLOWS
    assert lines(RUNS[0]) == [f"run block, {RUNS[0]}: environment.options.noise: was 1.0, is 0.5"]


def test_files_that_are_missing(folder):
    Path("results/quick/tables/small-final.md").unlink()
    missing = "missing: results/quick/tables/small-final.md"
    assert lines() == [f"study's figures and tables, results/quick/tables/small-final.md: {missing}"]
    Path(RUNS[1]).unlink()
    assert set(lines()) == {
        f"run block, {RUNS[1]}: missing",
        f"study's figures and tables, results/quick/tables/small-final.md: {missing}",
        FOLLOWS[0],
    }


def test_an_edited_input(folder):
    Path("means.txt").write_text("2")
    assert lines(RUNS[0]) == [f"run block, {RUNS[0]}: means.txt was edited"]


def test_an_edited_command(folder):
    workflow(COMMAND="touch -c")
    words = "the command of its rule was edited (workflow/rules)"
    assert lines() == [f"study's figures and tables, results/quick/tables/small-final.md: {words}"]


def test_code_of_a_file_for_which_no_commit_is_recorded(folder):
    workflow(AGGREGATE="fedcba9876543210")
    words = "its code was edited (which module is not recorded for this kind of file)"
    assert lines() == [f"dataset, results/quick/datasets/small.nc: {words}", FOLLOWS[1]]


def test_the_module_that_was_edited(folder):
    """The package is in another repository, which does not know the commit: that is said."""
    Path("agent_of_reasons.py").write_text(AGENT.replace("VALUE", "2  # another"))
    workflow(CODE="fedcba9876543210")
    (line,) = lines(RUNS[0])
    commit = git("rev-parse", "HEAD")[:10]
    unknown = sorted(
        closure(*(place.partition(":")[0] for place in load(CONFIG).blocks("small")[0].code)) - {"agent_of_reasons"}
    )
    assert line == (
        f"run block, {RUNS[0]}: edited since commit {commit}: agent_of_reasons "
        f"(git does not know that commit for {unknown[0]} and {len(unknown) - 1} more)"
    )


@pytest.mark.parametrize(
    ("commit", "words"),
    [
        ("", "its code was edited (which module cannot be told: its commit is unknown)"),
        ("unknown", "its code was edited (which module cannot be told: its commit is unknown)"),
        (None, "its code was edited (which module cannot be told: its record is missing or damaged)"),
    ],
)
def test_where_the_module_cannot_be_told_it_is_said(folder, commit, words):
    workflow(CODE="fedcba9876543210")
    record(commit) if commit is not None else Path(RUNS[0]).with_suffix(".json").unlink()
    assert lines(RUNS[0]) == [f"run block, {RUNS[0]}: {words}"]


def test_edits_beside_a_commit_are_not_passed_over(folder):
    workflow(CODE="fedcba9876543210")
    record(git("rev-parse", "HEAD") + "+")
    (line,) = lines(RUNS[0])
    # of the agent, which is in the repository, it is known that it is as it was
    assert "which module cannot be told: it was made with edits beside that commit, which are not recorded; git" in line


def test_an_unknown_target(folder):
    with pytest.raises(ResultError, match=r"^snakemake cannot plan this: No rule to produce study_nothing"):
        lines("study_nothing")
