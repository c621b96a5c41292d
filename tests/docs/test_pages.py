"""Every block of code on the documentation's pages runs as it stands, and what is made of them is up to date."""

from __future__ import annotations

import contextlib
import io
import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import matplotlib.image
import numpy as np
import pandas as pd
import pytest
import xarray as xr
import yaml

import ensemblepp
from ensemblepp.cli.parser import make_parser
from ensemblepp.config.loading import read_files
from ensemblepp.runs.comparison import surroundings

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
README = (ROOT / "README.md").read_text()

#: Pages whose blocks of Python run here, in order; files.md has a test of its own, for it needs results.
IN_ORDER = ["tutorial.md", "how-to/compare.md", "how-to/recovery.md", "moderation.md"]

#: Pages whose code needs the workflow, and runs in tests/workflow.
IN_WORKFLOW = ["how-to/agent.md", "how-to/data.md", "how-to/environment.md", "how-to/figure.md"]


def shorter(code: str) -> str:
    """A block with a hundredth of the rounds and two seeds: what is tested is that it runs."""
    return re.sub(r"seeds=\d+", "seeds=2", re.sub(r"horizon=(\d+)00\b", r"horizon=\1", code)).replace("size=600", "size=60")


@pytest.fixture(scope="module")
def _warm() -> Iterator[None]:
    """One process that has libraries loaded, for the jobs of all pages."""
    with surroundings(warm=True):
        yield


@pytest.mark.usefixtures("_warm")
@pytest.mark.parametrize("name", IN_ORDER)
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
    assert any(printed) or "print(" not in page.read_text()
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


def fenced(text: str, language: str) -> list[str]:
    return re.findall(rf"^```(?:{language})\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_every_page_with_code_is_run_by_a_test():
    found = [str(page.relative_to(DOCS)) for page in pages() if fenced(page.read_text(), "python|yaml")]
    assert sorted(found) == sorted([*IN_ORDER, *IN_WORKFLOW, "how-to/claim.md", "reference/files.md"])


def test_datasets_are_read_as_the_page_says(tmp_path):
    """Both blocks print what the published table has; the first one's dataset is made of the second one's."""
    (tmp_path / "results").mkdir()
    (tmp_path / "results/paper-scale").symlink_to(ROOT / "results/paper-scale")
    quick = tmp_path / "results/quick/datasets/uci.nc"
    quick.parent.mkdir(parents=True)
    with xr.open_dataset(ROOT / "results/paper-scale/datasets/uci.nc") as published:
        final = published["final_regret"].expand_dims(time=[1, 10_000], axis=-2) * xr.DataArray([0, 1], dims="time")
        final.rename("regret").to_netcdf(quick)
    table = pd.read_csv(ROOT / "results/paper-scale/tables/uci-final_regret.csv")
    (expected,) = table[(table["environment"] == "Mushroom") & (table["agent"] == "Greedy")]["mean regret"]
    names: dict[str, object] = {}
    printed = io.StringIO()
    with contextlib.chdir(tmp_path), contextlib.redirect_stdout(printed):
        for code in fenced((DOCS / "reference/files.md").read_text(), "python"):
            exec(code, names)
            names["uci"].close()
    assert [float(line) for line in printed.getvalue().split()] == pytest.approx([expected] * 2)


def test_an_added_claim_is_in_the_ledger(tmp_path):
    (claim,) = fenced((DOCS / "how-to/claim.md").read_text(), "yaml")
    shutil.copytree(ROOT / "config", tmp_path / "config")
    shutil.copyfile(ROOT / "Snakefile", tmp_path / "Snakefile")
    with (tmp_path / "config/claims.yaml").open("a") as file:
        file.write(claim)
    command = [sys.executable, "-m", "ensemblepp", "claims", "--scale", "quick"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    name = claim.split(":")[0].strip()
    (line,) = [line for line in done.stdout.splitlines() if line.startswith(name)]
    assert re.search(r"paper +not run .* ratio of regret at most 0\.95", line)


def shell() -> list[tuple[str, str]]:
    """Every line that a page tells to type, with its page."""
    texts = {str(page.relative_to(ROOT)): page.read_text() for page in (*pages(), ROOT / "README.md")}
    return [(name, line) for name, text in texts.items() for code in fenced(text, "bash") for line in code.splitlines() if line]


@pytest.mark.parametrize(("page", "line"), shell())
def test_a_line_to_type_is_one_that_there_is(page, line):
    """Commands and options by the parser itself; targets, studies, profiles and paths by what there is."""
    program, *words = shlex.split(line, comments=True)
    if program == "make":
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert {word for word in words if "=" not in word} <= set(targets)
    elif program == "ensemblepp" or words[:2] == ["-m", "ensemblepp"]:
        make_parser(lambda options: None).parse_args(words[2:] if program == "python" else words)
    elif program == "snakemake":
        assert all((ROOT / profile).is_dir() for profile in words if profile.startswith("profiles/"))
        config = read_files(ROOT)
        studies = {"study_" + name.replace("-", "_") for name in config.studies}
        assert {word for word in words if word.startswith("study_")} <= studies
    else:
        assert (program, *words[:1]) in {
            ("python", "-c"),
            ("python", "-m"),
            ("source", "environment/bin/activate"),
            ("pip", "install"),
        } or (ROOT / words[0]).exists()


def test_what_is_made_is_what_is_declared():
    """Every figure and table of the page, with its studies, is one that the configuration draws."""
    config = read_files(ROOT)
    rows = re.findall(r"^\| (?!paper|---)(.+?) \| (.+?) \| (.+?) \|$", (DOCS / "reference/made.md").read_text(), re.MULTILINE)
    assert len(rows) > 30
    declared = {
        f"{kind}/{study}-{name}"
        for study, made in config.studies.items()
        for kind in ("figures", "tables")
        for name in getattr(made, kind)
    }
    for what, files, _ in rows:
        for pattern in re.findall(r"`((?:figures|tables)/[^`.]+)\.", files):
            fits = re.escape(pattern).replace(r"\*", ".+").replace("<study>", ".+")
            assert any(re.fullmatch(fits, name) for name in declared), (what, pattern)


@pytest.mark.parametrize("page", [*pages(), ROOT / "README.md"], ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    """Anchors are the site's to check, which is built strictly."""
    # made when the site is
    text = page.read_text().replace("(paper-scale.md)", "")
    for target in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert (page.parent / target).exists(), target


def test_every_page_is_in_the_menu():
    menu = yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]

    def listed(entry: object) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        return [path for part in (entry if isinstance(entry, list) else entry.values()) for path in listed(part)]

    # the overview of published results is made when the site is
    assert sorted(listed(menu)) == sorted(["paper-scale.md", *(str(page.relative_to(DOCS)) for page in pages())])


def test_readme_has_no_code_of_its_own():
    """What a user copies stands once, on a page whose code is tested; README may show it."""
    known = {code for page in pages() for code in fenced(page.read_text(), r"\w+")}
    assert set(fenced(README, "yaml|python")) <= known


def test_readme_has_the_answer_as_it_is_published(make):
    assert make.readme(README) == README, "renew it: python docs/make.py answer"


@pytest.mark.parametrize("page", ["README.md", "docs/how-to/paper-scale.md"])
def test_times_at_the_papers_scale_are_the_published_ones(published, page):
    """CPU-minutes of the linear and of the nonlinear studies."""
    took = [
        round(sum(rule["cpu_seconds"] or 0 for rule in part["rules"].values()) / 60)
        for part in published.provenance()["publications"]
    ]
    text = (ROOT / page).read_text()
    said = [len(re.findall(rf"\b{minutes}(?: CPU-minutes| for ten nonlinear)", text)) for minutes in took]
    assert said == [1] * len(took), f"{page} should say, publication by publication: {took}"


def test_how_it_was_checked_names_what_there_is():
    text = (DOCS / "explanation/checked.md").read_text()
    named = re.findall(r"`((?:tests|bench)[\w/.]*)`", text)
    assert len(named) > 20
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_public_name_is_in_the_reference():
    text = (DOCS / "reference/api.md").read_text()
    assert [name for name in ensemblepp.__all__ if not re.search(rf"\b{name}\b", text)] == []


def test_commands_of_the_reference_are_those_that_there_are():
    """What the site's hook asks, without mkdocs."""
    told = subprocess.run([sys.executable, "-m", "ensemblepp", "--help"], capture_output=True, text=True, check=True).stdout
    for name in ("quickstart", "moderate", "simulate", "check", "resume"):
        assert re.search(rf"^    {name}\b", told, re.MULTILINE), name
