"""Figures: one module each, whose `draw(dataset)` turns a study's dataset into a matplotlib figure."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path

#: The function of a module here that makes one from a dataset.
ENTRY_POINT = "draw"

#: The formats in which a figure is written.
SUFFIXES = ("pdf", "png")


def save(name: str, dataset: str | Path, outputs: Iterable[str | Path]) -> None:
    """Draw the figure `name` from the dataset file and write it to every path of `outputs` (suffix = format)."""
    # loaded here, not above: Snakemake looks this package up when it parses the workflow
    import matplotlib

    matplotlib.use("Agg")
    from ensemblepp.figures import style
    from ensemblepp.storage.datasets import atomic_path, read_dataset

    style.apply()
    data = read_dataset(dataset)
    figure = importlib.import_module(f"ensemblepp.figures.{name}").draw(data)
    style.sign(figure, data)
    for output in outputs:
        with atomic_path(output) as temporary:
            # no date in the file: equal data give equal bytes
            figure.savefig(temporary, metadata={"CreationDate": None} if temporary.suffix == ".pdf" else None)
    matplotlib.pyplot.close(figure)
