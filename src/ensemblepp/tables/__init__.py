"""Tables: one module each, whose `build(dataset)` turns a study's dataset into a pandas data frame of formatted cells."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable
from pathlib import Path

#: The function of a module here that makes one from a dataset.
ENTRY_POINT = "build"

#: The formats in which a table is written.
SUFFIXES = ("csv", "md", "tex", "html")


def save(name: str, dataset: str | Path, outputs: Iterable[str | Path]) -> None:
    """Build the table `name` and write it to every path of `outputs`: .csv (plain numbers), .md, .tex (booktabs), .html."""
    # loaded here, not above: Snakemake looks this package up when it parses the workflow
    from ensemblepp.storage.datasets import atomic_path, read_dataset

    table = importlib.import_module(f"ensemblepp.tables.{name}").build(read_dataset(dataset))
    shown = table.map(_cell)
    writers = {
        ".csv": lambda: table.to_csv(index=False, lineterminator="\n"),
        ".md": lambda: _markdown(shown),
        ".tex": lambda: shown.to_latex(index=False, escape=True, column_format="l" * 2 + "r" * (len(shown.columns) - 2)),
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
