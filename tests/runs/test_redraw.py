"""The figures that are published are those that this code draws from the datasets that are published with them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ensemblepp import figures
from ensemblepp.config.loading import read_files
from ensemblepp.runs import publish

#: The share of pixels that may differ by more than an eighth of full scale: other processors round sums in another way, and
#: other versions of libraries draw letters in another. That bytes are equal on one machine is in tests/figures.
SHARE = 0.002

#: Figures whose variables were not published yet: drawn from the runs, wider. The next run at this scale renews them.
WAITING = {"released-code-training"}


def differing(one: Path, other: Path) -> float:
    """The share of pixels that differ; 1 if the sizes do."""
    first, second = (np.asarray(Image.open(path).convert("RGB")).astype(int) for path in (one, other))
    return float((abs(first - second).max(axis=-1) > 32).mean()) if first.shape == second.shape else 1.0


@pytest.mark.thorough
def test_published_figures_are_drawn_from_what_is_published(tmp_path, request, monkeypatch):
    # PDFs, and what is claimed, have tests of their own
    monkeypatch.setattr(figures, "SUFFIXES", ("png",))
    monkeypatch.setattr(publish.writing, "save", lambda plan, outputs: None)
    root = request.config.rootpath
    published = root / "results/paper-scale"
    shutil.copytree(published / "datasets", tmp_path / "datasets")
    if (published / "runs").exists():  # of studies that are begun: the page counts them
        shutil.copytree(published / "runs", tmp_path / "runs")
    shutil.copyfile(published / "provenance.json", tmp_path / "provenance.json")
    drawn, left = publish.redraw(read_files(root, scale="paper"), tmp_path)
    assert {Path(line.partition(":")[0]).name for line in left} == WAITING
    assert {path.stem for path in published.glob("figures/*.png")} == WAITING | {path.name for path in drawn}
    assert (tmp_path / "README.md").read_text() == (published / "README.md").read_text()
    pairs = [(tmp_path / f"figures/{path.name}.png", published / f"figures/{path.name}.png") for path in drawn]
    assert {found.name: share for found, expected in pairs if (share := differing(found, expected)) > SHARE} == {}


def test_pictures_that_differ_are_told_apart():
    published = Path(__file__).parents[2] / "results/paper-scale/figures"
    first, second = published / "laws-d10-laws_heatmap.png", published / "laws-d50-laws_heatmap.png"
    assert differing(first, first) == 0
    assert differing(first, second) > SHARE
