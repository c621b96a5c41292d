"""The page that opens with the answer: ledger, figures, tables and curves in one HTML file that needs no server and no network.

What it shows comes from files that the workflow made; `runs.page` says which. Everything written into it is escaped: titles,
labels and captions are a user's. What stands around it (HTML, style, script) are files of this package, under files/.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

#: What the page depends on.
CODE = ("ensemblepp.report.page",)

#: HTML, style and script, and the library that draws curves (uPlot, MIT; its licence lies beside it).
FILES = Path(__file__).with_name("files")


def digest(others: Iterable[str | Path] = ()) -> str:
    """16 hex digits that change when a file of this package that is no Python, or one of `others`, changes."""
    paths = [*sorted(FILES.iterdir()), *sorted(map(Path, others))]
    return hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest() for path in paths)).hexdigest()[:16]
