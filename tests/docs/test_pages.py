"""Every block of code on the documentation's pages runs as it stands, and what is made of them is up to date."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import matplotlib.image
import numpy as np
import pytest
import yaml

from ensemblepp.runs.comparison import surroundings

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def make() -> ModuleType:
    """docs/make.py."""
    found = importlib.util.spec_from_file_location("make_of_docs", DOCS / "make.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def shorter(code: str) -> str:
    """A block with a hundredth of the rounds and two seeds: what is tested is that it runs."""
    return re.sub(r"seeds=\d+", "seeds=2", re.sub(r"horizon=(\d+)00\b", r"horizon=\1", code)).replace("size=600", "size=60")


@pytest.fixture(scope="module")
def _warm() -> Iterator[None]:
    """One process that has libraries loaded, for the jobs of all pages."""
    with surroundings(warm=True):
        yield


@pytest.mark.usefixtures("_warm")
@pytest.mark.parametrize("name", ["tutorial.md", "how-to/compare.md", "moderation.md"])
def test_code_runs_in_order(make, tmp_path, name):
    page = tmp_path / "page.md"
    page.write_text(shorter((DOCS / name).read_text()))
    folder = tmp_path / "empty"
    folder.mkdir()
    if name == "moderation.md":
        # what the page links to
        shutil.copy(DOCS / "messages.csv", folder)
    printed = list(make.played(page, folder))
    assert len(printed) == len(re.findall(r"^```python", (DOCS / name).read_text(), re.MULTILINE))
    assert any(printed)
    figures = set(re.findall(r'savefig\("([\w.]+)"\)', page.read_text()))
    assert figures <= {path.name for path in folder.iterdir()}


def test_the_notebook_is_the_page(make):
    page = DOCS / "tutorial.md"
    stored = json.loads((DOCS / "tutorial.ipynb").read_text())
    outputs = [
        "".join(output["text"])
        for cell in stored["cells"]
        if cell["cell_type"] == "code"
        for output in (cell["outputs"] or [{"text": ""}])
    ]
    assert (DOCS / "tutorial.ipynb").read_text() == make.notebook(page, outputs), "renew it: make docs"


def test_the_tutorial_shows_the_figures_that_it_makes(make):
    text = (DOCS / "tutorial.md").read_text()
    assert re.findall(r'savefig\("([\w.]+)"\)', text) == list(make.TUTORIAL)
    assert re.findall(r"\]\(pictures/([\w.-]+)\)", text) == list(make.TUTORIAL.values())


def test_pictures_of_the_method(make, tmp_path, monkeypatch):
    monkeypatch.setattr(make, "PICTURES", tmp_path)
    monkeypatch.setattr(make, "edges", lambda columns: np.tile([0.5, 1.5], (10, 1)))
    make.pictures()
    for path in tmp_path.iterdir():
        shape = matplotlib.image.imread(path).shape
        assert shape == matplotlib.image.imread(DOCS / "pictures" / path.name).shape, "renew it: make docs"


def test_the_update_in_the_picture_is_the_literal_one(make):
    """Σ⁻¹A + x zᵀ, round by round, against Σ' (Σ⁻¹ A + x zᵀ) with Σ by the formula of Sherman and Morrison."""
    dimension, columns, rounds = 3, 4, 5
    found = make.edges(columns, dimension, rounds)
    source = np.random.default_rng(5)
    covariance, factor = np.eye(dimension), source.normal(size=(dimension, columns)) / 2
    for expected in found:
        action = source.uniform(-1, 1, dimension) / np.sqrt(5)
        gaussian = source.normal(size=columns)
        noise = gaussian / np.linalg.norm(gaussian)
        inverse = np.linalg.inv(covariance)
        gain = covariance @ action
        covariance = covariance - np.outer(gain, gain) / (1 + action @ gain)
        factor = covariance @ (inverse @ factor + np.outer(action, noise))
        ratio = np.linalg.eigvals(np.linalg.solve(covariance, factor @ factor.T)).real
        np.testing.assert_allclose([ratio.min(), ratio.max()], expected)


def pages() -> list[Path]:
    return sorted(path for path in DOCS.rglob("*.md") if path.parent.name != "quick")


@pytest.mark.parametrize("page", pages(), ids=lambda path: str(path.relative_to(DOCS)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
        published = ROOT / "results/paper-scale/figures" / Path(target).name
        assert (page.parent / target).exists() or (Path(target).parent.name == "figures" and published.exists()), target


def test_every_page_is_in_the_menu():
    menu = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]

    def listed(entry: object) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        return [path for part in (entry if isinstance(entry, list) else entry.values()) for path in listed(part)]

    assert sorted(listed(menu)) == [str(page.relative_to(DOCS)) for page in pages()]


def test_readme_has_no_code_of_its_own():
    """What a user copies stands once, on a page whose code is tested; README may show it."""
    known = {code for page in pages() for code in re.findall(r"^```\w+\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)}
    for code in re.findall(r"^```(?:yaml|python)\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL):
        if 'xarray.open_dataset("results' not in code:
            assert code in known, code


def test_commands_of_the_reference_are_those_that_there_are():
    """What the site's hook asks, without mkdocs."""
    told = subprocess.run([sys.executable, "-m", "ensemblepp", "--help"], capture_output=True, text=True, check=True).stdout
    for name in ("quickstart", "moderate", "simulate", "check", "resume"):
        assert re.search(rf"^    {name}\b", told, re.MULTILINE), name
