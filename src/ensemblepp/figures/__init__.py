"""Figures: one module each, whose `draw(dataset)` turns a study's dataset into a matplotlib figure."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ensemblepp import registry

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
    import matplotlib

    matplotlib.use("Agg")
    from ensemblepp.analysis.selection import read_study
    from ensemblepp.errors import ConfigError
    from ensemblepp.figures import style
    from ensemblepp.storage.datasets import atomic_path

    style.apply()
    place = registry.presentation("figures", name)
    data = read_study(dataset, f"figure '{name}'", registry.needs(place))
    figure = registry.load(place)(data)
    if not isinstance(figure, matplotlib.figure.Figure):
        raise ConfigError(f"{place}: returned {type(figure).__name__}: must return a matplotlib figure")
    style.sign(figure, data)
    style.settle(figure)
    for output in outputs:
        with atomic_path(output) as temporary:
            # no date in the file: equal data give equal bytes
            figure.savefig(temporary, metadata={"CreationDate": None} if temporary.suffix == ".pdf" else None)
    matplotlib.pyplot.close(figure)
