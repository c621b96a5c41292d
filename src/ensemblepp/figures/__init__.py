"""Figures: one module each, whose `draw(dataset)` turns a study's dataset into a matplotlib figure."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ensemblepp import registry

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

#: The formats in which a figure is written.
SUFFIXES = ("pdf", "png")


def save(name: str, dataset: str | Path, outputs: Iterable[str | Path]) -> None:
    """Draw a figure from the dataset file and write it to every path of `outputs` (suffix = format).

    Args:
        name: a module of this package, or "module:function" of the user's, from a dataset to a matplotlib figure.
        dataset: the study's dataset.
        outputs: .pdf and .png files to write.

    Raises:
        ConfigError: a function of the user's returns no figure.
        ResultError: the dataset is damaged, or not what the figure is drawn from.
    """
    # loaded here, not above: Snakemake looks this package up when it parses the workflow
    from ensemblepp.analysis.selection import read_study

    place = registry.presentation("figures", name)
    write(place, read_study(dataset, f"figure '{name}'", registry.needs(place)), outputs)


def write(place: str, dataset: xr.Dataset, outputs: Iterable[str | Path]) -> None:
    """Draw the figure of "module:function" from a study's dataset and write it to every path of `outputs` (suffix = format).

    Equal datasets give equal bytes, whatever else the process has drawn and wherever it runs.

    Raises:
        ConfigError: a function of the user's returns no figure.
    """
    import matplotlib

    matplotlib.use("Agg")
    from ensemblepp.errors import ConfigError
    from ensemblepp.figures import style
    from ensemblepp.storage.datasets import atomic_path

    style.apply()
    figure = registry.load(place)(dataset)
    if not isinstance(figure, matplotlib.figure.Figure):
        raise ConfigError(f"{place}: returned {type(figure).__name__}: must return a matplotlib figure")
    style.sign(figure, dataset)
    style.settle(figure)
    for output in outputs:
        with atomic_path(output) as temporary:
            (small_png if temporary.suffix == ".png" else pdf)(figure, temporary)
    matplotlib.pyplot.close(figure)


def pdf(figure: Figure, path: Path) -> None:
    """A PDF without a date; `savefig` would draw the figure once more before, for a size that it has."""
    import matplotlib
    from matplotlib.backends.backend_pdf import FigureCanvasPdf

    figure.set_dpi(matplotlib.rcParams["savefig.dpi"])
    FigureCanvasPdf(figure).print_pdf(path, metadata={"CreationDate": None})


def small_png(figure: Figure, path: Path) -> None:
    """A PNG of the 256 colours that serve best, a third of matplotlib's in size; none is off by more than an eye can see."""
    import matplotlib
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image

    figure.set_dpi(matplotlib.rcParams["savefig.dpi"])
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    few = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    few = few.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(path, optimize=True, dpi=(figure.dpi, figure.dpi))
