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
LINEAR = "linear"

#: Protocol -> the nonlinear studies that the answer shows of it.
PROTOCOLS = {
    "paper": (
        "versus-ensembleplus",
        "versus-epinet",
        "versus-epinet-uci",
        "versus-lmcts",
        "versus-lmcts-uci",
        "long-run",
        "long-run-lmcts",
    ),
    "released code": ("released-code", "released-code-uci"),
    "tuned": ("tuned", "tuned-vector-quadratic", "tuned-uci"),
}

#: Who Ensemble++ is compared with.
OTHERS = ("Ensemble+", "EpiNet", "LMCTS", "Greedy")

MINUS = "\N{MINUS SIGN}"


def rows(name: str) -> list[dict[str, str]]:
    """A published table; `<study>-<table>`."""
    with (PUBLISHED / f"tables/{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def answer() -> str:
    """Ensemble++ beside Thompson sampling, and beside the paper's baselines under every protocol, as tables in Markdown.

    The other's final regret minus that of Ensemble++ at equal seeds: above zero, Ensemble++ is better. Bold where the 95 %
    interval is on one side of zero. What was published under values that the configuration has changed since is left out.
    """
    return "\n\n".join("\n".join(_table(found)) for found in (list(_linear()), list(_nonlinear())) if found)


def _table(found: list[dict[str, str]]) -> Iterator[str]:
    head = [key for key in found[0] if any(row[key] for row in found)]
    yield from (_line(cells) for cells in (head, ["---"] * len(head), *([row[key] for key in head] for row in found)))


def _linear() -> Iterator[dict[str, str]]:
    if not (played := _played(LINEAR)):
        return
    for row in rows(f"{LINEAR}-final_regret"):
        if row["agent"] == "Ensemble++" and row["M"] in SIZES:
            # the table has it the other way round
            excess = [-float(row[key]) for key in ("over TS", "over TS high", "over TS low")]
            yield {
                "linear bandit": row["environment"],
                "M": row["M"],
                "regret of Ensemble++": _whole(row["mean regret"]),
                f"TS {MINUS} Ensemble++": _interval(*excess),
                "rounds": f"{played['horizon']:,}",
                "seeds": row["seeds"],
            }


def _nonlinear() -> Iterator[dict[str, str]]:
    # bandits as they come first: in the same order under every protocol.
    order: dict[str, int] = {}
    for protocol, studies in PROTOCOLS.items():
        found: dict[tuple[int, str, str], dict[str, str]] = {}
        for study in studies:
            if not (played := _played(study)):
                continue
            paired = rows(f"{study}-paired_regret")
            for row in rows(f"{study}-final_regret"):
                if _agent(row) == "Ensemble++":
                    against = f"{row['agent']}, M = {row['M']}"
                    excess = {
                        _agent(other): _interval(*(float(other[key]) for key in ("difference", "95 % low", "95 % high")))
                        for other in paired
                        if (other["environment"], other["against"]) == (row["environment"], against)
                    }
                    one = {
                        "protocol": protocol,
                        "rounds": f"{played['horizon']:,}",
                        "bandit": row["environment"],
                        "regret of Ensemble++": _whole(row["mean regret"]),
                        **{f"{name} {MINUS} Ensemble++": excess.get(name, "") for name in OTHERS},
                        "seeds": row["seeds"],
                    }
                    # several studies have the same runs of Ensemble++, and other agents beside it
                    known = found.setdefault((played["horizon"], row["environment"], row["seeds"]), one)
                    known |= {key: value for key, value in one.items() if value}
                    order.setdefault(row["environment"], len(order))
        yield from (found[key] for key in sorted(found, key=lambda key: (key[0], order[key[1]])))


def _agent(row: dict[str, str]) -> str:
    """An agent's name without its protocol."""
    return row["agent"].removesuffix(" (released)").removesuffix(" (tuned)")


def _whole(regret: str) -> str:
    return f"{float(regret):,.0f}"


def _played(study: str) -> dict | None:
    """Horizon and seeds of a published study; none where it is not published, or out of date."""
    facts = provenance()
    if study in facts.get("outdated", {}):
        return None
    return next((part["studies"][study] for part in facts["publications"] if study in part["studies"]), None)


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
