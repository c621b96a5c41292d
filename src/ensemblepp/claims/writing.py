"""A ledger as files: numbers for machines (.json, .csv), and tables for readers (.md, .tex)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

#: The formats in which a ledger is written.
SUFFIXES = ("csv", "json", "md", "tex")

#: What a ledger depends on: this module loads the others when it writes.
CODE = ("ensemblepp.claims.writing",)

#: Columns of the plain table; the JSON file has the parts of every claim as well.
COLUMNS = (
    "claim",
    "protocol",
    "verdict",
    "as_declared",
    "effect",
    "low",
    "high",
    "seeds",
    "horizon",
    "p_holds",
    "p_fails",
    "p_holds_adjusted",
    "p_fails_adjusted",
    "rule",
    "study",
    "place",
    "part",
    "reason",
    "sentence",
)


def save(plan: Mapping[str, Any], outputs: Iterable[str | Path]) -> None:
    """Decide the claims of a plan (`claims.ledger.decide`) and write the ledger to every path of `outputs`, by suffix.

    Raises:
        ResultError: a dataset is damaged.
    """
    # loaded here, not above: Snakemake looks this module up when it parses the workflow
    import pandas as pd

    from ensemblepp.claims.ledger import decide
    from ensemblepp.storage.datasets import atomic_path, write_json

    ledger = decide(plan)
    for output in map(Path, outputs):
        if output.suffix == ".json":
            write_json(ledger, output)
            continue
        with atomic_path(output) as temporary:
            if output.suffix == ".csv":
                pd.DataFrame(ledger["rows"], columns=list(COLUMNS)).to_csv(temporary, index=False, lineterminator="\n")
            elif output.suffix == ".tex":
                temporary.write_text(tex(ledger), encoding="utf-8")
            else:
                temporary.write_text(markdown(ledger, output.parent), encoding="utf-8")


def markdown(ledger: Mapping[str, Any], folder: str | Path = "") -> str:
    """A page: how many claims hold, a table of all, and below it what each rests on.

    Args:
        ledger: what `claims.ledger.decide` gives.
        folder: where the page will lie, for links to figures and tables.
    """
    rows = ledger["rows"]
    lines = [
        f"# Claims of the paper at scale `{ledger['scale']}`",
        "",
        *(f"* {line}" for line in counted(ledger)),
        "",
        f"Level {ledger['level']:g} over all claims of a protocol together (Holm), 95 % intervals by seed. Rules stand in",
        "config/claims.yaml and are older than the runs. An asterisk: rounds or seeds are fewer than the rule was fixed for.",
        "",
    ]
    lines += _table(overview(ledger))
    for row in rows:
        lines += ["", f"## {row['claim']}, {row['protocol']}: {verdict(row)}", "", f"{row['sentence']} ({row['place']})", ""]
        lines.append(f"* Rule: {row['rule']}. Contradicted by: {row['contradicted_by']}")
        if row["reason"]:
            lines.append(f"* {row['verdict'].capitalize()}: {row['reason']}.")
        if row["short"]:
            lines.append(f"* Short of the rule: {'; '.join(row['short'])}.")
        if row["part"]:
            lines.append(f"* Decided by: {row['part']}: {_effect(row)}.")
        links = [f"[{Path(path).name}]({_relative(path, folder)})" for path in row["files"]]
        if links:
            lines.append(f"* {', '.join(row['exhibits'])}: {', '.join(links)}")
    return "\n".join(lines) + "\n"


def overview(ledger: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """All claims as a table, its head first."""
    return [("claim", "protocol", "verdict", "effect", "rule", "seeds", "adjusted p"), *map(_cells, ledger["rows"])]


def counted(ledger: Mapping[str, Any]) -> list[str]:
    """How many claims have which verdict, a line for each protocol."""
    return [
        f"protocol {protocol}: {', '.join(f'{count} {verdict}' for verdict, count in counts.items() if count)}"
        for protocol, counts in ledger["counts"].items()
    ]


def tex(ledger: Mapping[str, Any]) -> str:
    """One booktabs table of all claims."""
    import pandas as pd

    head, *rows = [(*row[:4], *row[5:]) for row in overview(ledger)]
    return pd.DataFrame(rows, columns=list(head)).to_latex(index=False, escape=True, column_format="lllrrr")


def verdict(row: Mapping[str, Any]) -> str:
    """A row's verdict, with an asterisk where the runs are smaller than the rule was fixed for."""
    return f"{row['verdict']}{'' if row['as_declared'] or row['verdict'] == 'not run' else ' *'}"


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    adjusted = [row[key] for key in ("p_holds_adjusted", "p_fails_adjusted") if row[key] is not None]
    smallest = f"{min(adjusted):.2g}" if adjusted else "-"
    return row["claim"], row["protocol"], verdict(row), _effect(row), row["rule"], str(row["seeds"] or "-"), smallest


def _effect(row: Mapping[str, Any]) -> str:
    if row["effect"] is None:
        return "-"
    low, high = (("-" if row[end] is None else f"{row[end]:.3g}") for end in ("low", "high"))
    return f"{row['effect']:.3g}" + ("" if low == high == "-" else f" [{low}, {high}]")


def _relative(path: str, folder: str | Path) -> str:
    return Path(os.path.relpath(path, folder)).as_posix() if str(folder) else path


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    """Rows in Markdown, the first as its head."""
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return [lines[0], "| " + " | ".join(["---"] * len(rows[0])) + " |", *lines[1:]]
