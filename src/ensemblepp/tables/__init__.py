"""Tables: one module each, whose `build(dataset)` turns a study's dataset into a pandas data frame of formatted cells."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from ensemblepp import registry

#: The formats in which a table is written.
SUFFIXES = ("csv", "md", "tex", "html")


def save(name: str, dataset: str | Path, outputs: Iterable[str | Path]) -> None:
    """Build a table from the dataset file and write it to every path of `outputs`.

    Args:
        name: a module of this package, or "module:function" of the user's, from a dataset to a pandas data frame.
        dataset: the study's dataset.
        outputs: .csv (plain numbers), .md, .tex (booktabs) and .html files to write.

    Raises:
        ConfigError: a function of the user's returns no data frame.
        ResultError: the dataset is damaged, or not what the table is made from.
    """
    # loaded here, not above: Snakemake looks this package up when it parses the workflow
    import pandas as pd

    from ensemblepp.analysis.selection import read_study
    from ensemblepp.errors import ConfigError
    from ensemblepp.storage.datasets import atomic_path

    place = registry.presentation("tables", name)
    table = registry.load(place)(read_study(dataset, f"table '{name}'", registry.needs(place)))
    if not isinstance(table, pd.DataFrame):
        raise ConfigError(f"{place}: returned {type(table).__name__}: must return a pandas data frame")
    shown, columns = table.map(_cell), len(table.columns)
    writers = {
        ".csv": lambda: table.to_csv(index=False, lineterminator="\n"),
        ".md": lambda: _markdown(shown),
        ".tex": lambda: shown.to_latex(index=False, escape=True, column_format="ll".ljust(columns, "r")[:columns]),
        ".html": lambda: _HTML.format(table=shown.to_html(index=False, border=0)),
    }
    for output in map(Path, outputs):
        with atomic_path(output) as temporary:
            temporary.write_text(writers[output.suffix](), encoding="utf-8")


def _cell(value: object) -> str:
    """A cell for reading: four digits, no exponent for large numbers, a dash for what does not exist."""
    if not isinstance(value, float):
        return str(value)
    if math.isnan(value):
        return "-"
    return f"{value:.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def _markdown(shown) -> str:
    rows = [list(shown.columns), ["---"] * len(shown.columns), *shown.values.tolist()]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows) + "\n"


_HTML = """<!doctype html>
<meta charset="utf-8">
<style>
body {{ font: 14px/1.4 system-ui, sans-serif; margin: 1.5em; color: #222; }}
table {{ border-collapse: collapse; border-top: 2px solid #222; border-bottom: 2px solid #222; }}
th {{ border-bottom: 1px solid #222; text-align: right; }}
th, td {{ padding: 0.25em 0.8em; }}
td {{ text-align: right; font-variant-numeric: tabular-nums; }}
th:nth-child(-n+2), td:nth-child(-n+2) {{ text-align: left; }}
tbody tr:nth-child(even) {{ background: #f5f5f5; }}
</style>
{table}
"""
