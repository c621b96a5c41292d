"""What pages show of the published results and of the claims.

Python's own modules and PyYAML are enough: the site is built without the package.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
PUBLISHED = ROOT / "results/paper-scale"

#: Ensemble sizes of the linear study that the answer shows.
SIZES = ("8", "32")
LINEAR, NONLINEAR = "linear", "versus-ensembleplus"

MINUS = "\N{MINUS SIGN}"


def rows(name: str) -> list[dict[str, str]]:
    """A published table; `<study>-<table>`."""
    with (PUBLISHED / f"tables/{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def answer() -> str:
    """Ensemble++ beside Thompson sampling, Ensemble+ and Greedy, as a table in Markdown.

    The other's final regret minus that of Ensemble++ at equal seeds: above zero, Ensemble++ is better. Bold where the 95 %
    interval is on one side of zero.
    """
    found = [*_linear(), *_nonlinear()]
    others = list(dict.fromkeys(other for row in found for other in row if other not in (*_BEFORE, *_AFTER)))
    head = [*_BEFORE, *(f"{other} {MINUS} Ensemble++" for other in others), *_AFTER]
    body = ([row.get(key, "") for key in (*_BEFORE, *others, *_AFTER)] for row in found)
    return "\n".join(_line(cells) for cells in (head, ["---"] * len(head), *body))


_BEFORE, _AFTER = ("bandit", "M", "regret of Ensemble++"), ("rounds", "seeds")


def _linear() -> Iterator[dict[str, str]]:
    for row in rows(f"{LINEAR}-final_regret"):
        if row["agent"] == "Ensemble++" and row["M"] in SIZES:
            # the table has it the other way round
            excess = [-float(row[key]) for key in ("over TS", "over TS high", "over TS low")]
            yield _played(LINEAR, row) | {"TS": _interval(*excess)}


def _nonlinear() -> Iterator[dict[str, str]]:
    paired = rows(f"{NONLINEAR}-paired_regret")
    for row in rows(f"{NONLINEAR}-final_regret"):
        if row["agent"] == "Ensemble++":
            against = f"Ensemble++, M = {row['M']}"
            others = [other for other in paired if (other["environment"], other["against"]) == (row["environment"], against)]
            excess = {
                other["agent"]: [float(other[key]) for key in ("difference", "95 % low", "95 % high")] for other in others
            }
            yield _played(NONLINEAR, row) | {name: _interval(*values) for name, values in excess.items()}


def _played(study: str, row: dict[str, str]) -> dict[str, str]:
    played = next(part["studies"][study] for part in provenance()["publications"] if study in part["studies"])
    title = "Linear, " + row["environment"] if study == LINEAR else row["environment"]
    regret = f"{float(row['mean regret']):,.0f}"
    return dict(zip((*_BEFORE, *_AFTER), (title, row["M"], regret, f"{played['horizon']:,}", row["seeds"]), strict=True))


def provenance() -> dict:
    """What was published, and what it took."""
    return json.loads((PUBLISHED / "provenance.json").read_text(encoding="utf-8"))


def signed(value: float) -> str:
    """A number with its sign, whole from 10 on."""
    return f"{value:+,.{0 if abs(value) >= 10 else 1}f}".replace("-", MINUS)


def _interval(value: float, low: float, high: float) -> str:
    words = f"{signed(value)} [{signed(low)}, {signed(high)}]".replace(" ", "\N{NO-BREAK SPACE}")
    return f"**{words}**" if low * high > 0 else words


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def claims() -> str:
    """Every claim: what is said, where, what decides it, and what would contradict it."""
    configured = yaml.safe_load((ROOT / "config/claims.yaml").read_text(encoding="utf-8"))
    lines = [_line(["claim", "place in the paper", "rule", "contradicted by"]), _line(["---"] * 4)]
    for name, claim in configured["claims"].items():
        kind, *rest = (f"{key} {value}" if key != "statistic" else value for key, value in claim["rule"].items())
        rule = f"{kind}: {', '.join(rest)}".replace("_", " ")
        cells = (f"{claim['sentence']} `{name}`", claim["place"], rule, claim["contradicted_by"])
        lines.append(_line(cell.replace("|", "\\|").strip() for cell in cells))
    return "\n".join(lines)


def ledger() -> str:
    """The published ledger, or how to have one."""
    path = PUBLISHED / "claims/ledger.md"
    if path.exists():
        return path.read_text(encoding="utf-8")
    return (
        "No verdicts have been published yet. `python -m ensemblepp claims` decides what it can by the studies that ran here; "
        "`make publish` publishes the ledger of the paper's scale."
    )
