"""What README and the how-to pages tell a user to write, run as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import xarray as xr
from project import HOW_TO, Project

pytestmark = pytest.mark.workflow

README = (Path(__file__).resolve().parents[2] / "README.md").read_text()


def blocks(language: str) -> list[str]:
    """The how-to pages' fenced code blocks of one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", HOW_TO, re.MULTILINE | re.DOTALL)


def test_an_agent_runs_on_ones_own_data():
    (code,) = [block for block in blocks("python") if "Decisions(articles" in block]
    names: dict = {}
    exec(code, names)
    assert names["clicked"] == 1.0, "after 100 visitors it shows an article that is clicked"


def test_the_added_agent_keeps_its_promises(tmp_path, monkeypatch):
    (code,) = [block for block in blocks("python") if block.startswith('"""Uniform')]
    (check,) = [block for block in blocks("python") if "check_agent(" in block]
    (tmp_path / "uniform.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    names: dict = {}
    exec(check, names)
    names["test_uniform"]()


def test_an_added_agent_runs_alone_and_is_in_the_results(smoke_copy: Project):
    (code,) = [block for block in blocks("python") if block.startswith('"""Uniform')]
    (entry,) = [block for block in blocks("yaml") if "class: uniform:Uniform" in block]
    source = smoke_copy.folder / "uniform.py"
    declared, studies = smoke_copy.folder / "config/agents.yaml", smoke_copy.folder / "config/studies.yaml"
    dataset = smoke_copy.folder / "results/smoke/datasets/uci.nc"
    source.write_text(code)
    declared.write_text(declared.read_text() + entry)
    before, heading, after = studies.read_text().partition("\n  uci:\n")
    studies.write_text(before + heading + after.replace("[ensemble++, greedy]", "[ensemble++, greedy, uniform]", 1))
    jobs = smoke_copy.planned()
    assert {path.split("/")[4] for path in jobs["simulate"]} == {"uniform"}
    assert jobs["aggregate"] == ["results/smoke/datasets/uci.nc"]
    done = smoke_copy.snakemake()
    assert done.returncode == 0, done.stdout
    with xr.open_dataset(dataset) as data:
        final = data["regret"].sel(agent="uniform", environment="shuttle").isel(time=-1)
        # seven classes, so six of seven uniform choices are wrong
        assert float(final.mean()) == pytest.approx(150 * 6 / 7, rel=0.1)
    assert "Uniform" in (smoke_copy.folder / "results/smoke/tables/uci-final_regret.md").read_text()


def test_the_files_that_readme_names_exist():
    root = Path(__file__).resolve().parents[2]
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (root / target).exists(), target
