"""What pages show and people do not write: README's answer, pictures of the method, the tutorial's figures, its notebook.

    python docs/make.py          # all of it
    python docs/make.py answer   # README's table alone, after results were published

The pages' code is run here as it stands; tests run it too.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import nbformat
import numpy as np
import published
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ensemblepp.figures import small_png, style
from ensemblepp.randomness.distributions import LAWS, perturbation, reference

DOCS = Path(__file__).resolve().parent
PICTURES = DOCS / "pictures"

#: Figures that the tutorial writes -> their pictures.
TUTORIAL = {"linear.png": "tutorial-linear.png", "neural.png": "tutorial-neural.png", "flowers.png": "tutorial-table.png"}

#: Between them README has the table that `published.answer` makes.
ANSWER = ("<!-- the answer: python docs/make.py answer -->\n", "<!-- end of the answer -->\n")

_FENCED = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


# ---------------------------------------------------------------------------------------------------------- the pages


def blocks(page: Path) -> list[str]:
    """The blocks of Python of a page."""
    return _FENCED.findall(page.read_text(encoding="utf-8"))


def played(page: Path, folder: Path) -> Iterator[str]:
    """What each block of a page prints, run in order in `folder`."""
    names: dict[str, object] = {}
    with contextlib.chdir(folder):
        for block in blocks(page):
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(block, page.name, "exec"), names)
            yield printed.getvalue()


def notebook(page: Path, outputs: list[str]) -> str:
    """A page as a notebook, with what its blocks have printed."""
    pieces = _FENCED.split(page.read_text(encoding="utf-8"))
    cells = []
    for place, piece in enumerate(pieces):
        if place % 2:
            cell = nbformat.v4.new_code_cell(piece.rstrip(), execution_count=place // 2 + 1)
            if outputs[place // 2]:
                cell["outputs"] = [nbformat.v4.new_output("stream", name="stdout", text=outputs[place // 2])]
            cells.append(cell)
        elif piece.strip():
            cells.append(nbformat.v4.new_markdown_cell(piece.strip()))
    for cell in cells:
        # of its content: equal pages give equal files
        cell["id"] = hashlib.sha256(cell["source"].encode()).hexdigest()[:8]
    made = nbformat.v4.new_notebook(cells=cells)
    made["metadata"]["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.validate(made)
    return nbformat.writes(made) + "\n"


def readme(current: str) -> str:
    """README with the answer as it is published now."""
    (before, _), (_, after) = (current.split(mark) for mark in ANSWER)
    return f"{before}{ANSWER[0]}\n{published.answer()}\n\n{ANSWER[1]}{after}"


def answer() -> None:
    """Renew README's table."""
    page = DOCS.parent / "README.md"
    page.write_text(readme(page.read_text(encoding="utf-8")), encoding="utf-8")


def tutorial() -> None:
    """Run the tutorial; keep its figures and write its notebook."""
    page = DOCS / "tutorial.md"
    with tempfile.TemporaryDirectory() as folder:
        outputs = list(played(page, Path(folder)))
        for name, picture in TUTORIAL.items():
            Path(folder, name).replace(PICTURES / picture)
    (DOCS / "tutorial.ipynb").write_text(notebook(page, outputs), encoding="utf-8")


# -------------------------------------------------------------------------------------------------------- the pictures


def ellipse(axes: Axes, covariance: np.ndarray, **line) -> None:
    """The ellipse of one standard deviation."""
    angle = np.linspace(0, 2 * np.pi, 200)
    axes.plot(*(np.linalg.cholesky(covariance) @ np.stack([np.cos(angle), np.sin(angle)])), **line)


_COVARIANCE = np.array([[1.0, 0.6], [0.6, 0.8]])


def _factor(columns: int) -> np.ndarray:
    """A factor of `_COVARIANCE` as Ensemble++ begins: independent columns, each N(0, covariance / M)."""
    gaussian = np.random.default_rng(3).normal(size=(2, columns))
    return np.linalg.cholesky(_COVARIANCE) @ gaussian / np.sqrt(columns)


def _plain(axes: Axes, title: str, reach: float, height: float) -> None:
    axes.set(xlim=(-reach, reach), ylim=(-height, height), aspect="equal", title=title)
    axes.set_axis_off()


def factor() -> Figure:
    """A Aᵀ beside the covariance, for three sizes."""
    figure, panels = plt.subplots(1, 3, figsize=(style.PAGE, 2.1))
    for axes, columns in zip(panels, (3, 8, 64), strict=True):
        found = _factor(columns)
        axes.scatter(*(found * np.sqrt(columns)), s=8, color=style.COLOURS["ES"], label="columns of A, times √M")
        ellipse(axes, _COVARIANCE, color=style.COLOURS["TS"], linestyle="--", label="Σ")
        ellipse(axes, found @ found.T, color=style.COLOURS["Ensemble++"], label="A Aᵀ")
        _plain(axes, f"M = {columns}", 3.4, 2.3)
    style.legend(figure)
    return figure


def laws() -> Figure:
    """Draws of A ζ for one factor under the five laws."""
    figure, panels = plt.subplots(1, len(LAWS), figsize=(style.PAGE, 1.5))
    found, gaussian = _factor(8), np.random.default_rng(4).normal(size=(2000, 8))
    for axes, law in zip(panels, LAWS, strict=True):
        axes.scatter(*(found @ reference(law, gaussian).T), s=2, linewidth=0, alpha=0.5, color=style.LAWS[law][0])
        ellipse(axes, found @ found.T, color=style.COLOURS["TS"], linewidth=1)
        _plain(axes, law, 3.8, 3.4)
    return figure


def edges(columns: int, dimension: int = 10, rounds: int = 1000) -> np.ndarray:
    """Least and greatest eigenvalue of Σ^(-1/2) A Aᵀ Σ^(-1/2) after every round, (rounds, 2)."""
    source = np.random.default_rng(5)
    information, covered = np.eye(dimension), source.normal(size=(dimension, columns)) / np.sqrt(columns)
    found = np.empty((rounds, 2))
    for round_ in range(rounds):
        action = source.uniform(-1, 1, dimension) / np.sqrt(5)
        information += np.outer(action, action)
        # Σ⁻¹A, to which the update adds x zᵀ
        covered += np.outer(action, perturbation("sphere", source.normal(size=columns)))
        root = np.linalg.inv(np.linalg.cholesky(information)) @ covered
        found[round_] = np.linalg.eigvalsh(root @ root.T)[[0, -1]]
    return found


def tracking() -> Figure:
    """How A Aᵀ tracks Σ over the rounds."""
    figure, axes = plt.subplots(figsize=(style.COLUMN, 2.6))
    sizes = (8, 32, 256)
    for size, shade in zip(sizes, style.sequence(len(sizes)), strict=True):
        least, greatest = edges(size).T
        axes.plot(least, color=shade, label=f"M = {size}")
        axes.plot(greatest, color=shade)
    axes.axhspan(0.5, 1.5, color="0.9", label="lemma's interval")
    axes.set(ylabel="extreme eigenvalues", ylim=(0, None))
    style.round_axis(axes, 1000)
    style.legend(figure)
    return figure


def pictures() -> None:
    """Draw the method."""
    for draw in (factor, laws, tracking):
        with mpl.rc_context():
            style.apply()
            figure = draw()
            style.settle(figure)
            small_png(figure, PICTURES / f"{draw.__name__}.png")
            plt.close(figure)


if __name__ == "__main__":
    answer()
    if sys.argv[1:] == ["answer"]:
        sys.exit()
    # as for the command line: figures are files, and one thread for each process
    os.environ["OMP_NUM_THREADS"] = "1"
    mpl.use("agg")
    PICTURES.mkdir(exist_ok=True)
    pictures()
    tutorial()
