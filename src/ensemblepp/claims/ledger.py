"""The ledger: every claim, its verdict under every protocol, and what it rests on."""

from __future__ import annotations

import gc
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import xarray as xr

from ensemblepp.analysis.published import restored
from ensemblepp.analysis.selection import LARGE
from ensemblepp.claims import comparisons, curves, formulas, frontier, sizes, tracking
from ensemblepp.claims.verdicts import VERDICTS, Finding, NotRun, Part, Verdict, beside, verdicts
from ensemblepp.errors import ResultError
from ensemblepp.storage.datasets import read_dataset

#: statistic -> what it estimates of a study's dataset.
ESTIMATED: dict[str, Callable[..., Iterator[Part]]] = {
    "ratio": comparisons.ratio,
    "difference": comparisons.difference,
    "across": comparisons.across,
    "slopes": curves.slopes,
    "exponent": curves.exponent,
    "minimum_size": sizes.minimum_size,
    "frontier": frontier.frontier,
    "sandwich": tracking.sandwich,
}

#: statistic -> what it computes, without any run.
COMPUTED = {"constant": formulas.constant, "parameters": formulas.parameters}

#: The protocol of what is computed: it is the same under all.
ANY = "any"


def decide(plan: Mapping[str, Any]) -> dict[str, Any]:
    """All claims of a plan, decided by the datasets that it names.

    Args:
        plan: plain values:

            scale, level, minimum_seeds   of the ledger
            datasets                      study -> its dataset's path
            absent                        study -> why it has none
            exhibits                      label -> name of the paper's figure or table, and files that show it
            claims                        name -> the claim as the configuration has it

    Returns:
        scale, level, counts (protocol -> verdict -> claims) and rows, one for each claim and protocol, as the files show them.

    Raises:
        ResultError: a dataset is damaged.
    """
    found: dict[tuple[str, str], Finding] = {}
    by_study: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for name, claim in plan["claims"].items():
        if claim["rule"]["statistic"] in COMPUTED:
            found[name, ANY] = Finding(exact=list(COMPUTED[claim["rule"]["statistic"]](claim["rule"])))
        for protocol, evidence in claim["evidence"].items():
            by_study[evidence["study"]].append((name, protocol))
    # a dataset of the paper's scale fills much of a small machine's memory: one at a time
    for study, wanted in by_study.items():
        path = plan["datasets"].get(study)
        dataset = _read(path) if path else None
        for name, protocol in wanted:
            claim = plan["claims"][name]
            found[name, protocol] = _finding(claim["rule"], claim["evidence"][protocol], dataset, plan)
        del dataset
        if path and Path(path).stat().st_size > LARGE:
            gc.collect()
    decided = {}
    for protocol in dict.fromkeys(protocol for _, protocol in found):
        family = [name for name, other in found if other == protocol]
        outcomes = verdicts([found[name, protocol] for name in family], plan["level"])
        decided |= {(name, protocol): outcome for name, outcome in zip(family, outcomes, strict=True)}
    rows = [
        _row(name, protocol, plan, found[name, protocol], *decided[name, protocol])
        for name, claim in plan["claims"].items()
        for protocol in (claim["evidence"] or {ANY: None})
    ]
    counts = {
        protocol: {
            verdict: sum((row["protocol"], row["verdict"]) == (protocol, verdict) for row in rows) for verdict in VERDICTS
        }
        for protocol in dict.fromkeys(row["protocol"] for row in rows)
    }
    return {"scale": plan["scale"], "level": plan["level"], "counts": counts, "rows": rows}


def _read(path: str) -> xr.Dataset:
    """A study's dataset, or what is published of it."""
    dataset = restored(read_dataset(path, holds=("specs", "horizon")))
    if "regret" not in dataset:
        raise ResultError(f"{path}: a file of another kind (there is no 'regret' in it); delete it and run snakemake again")
    return dataset


def _finding(
    rule: Mapping[str, Any], evidence: Mapping[str, Any], dataset: xr.Dataset | None, plan: Mapping[str, Any]
) -> Finding:
    """What a study says of a claim, or why it says nothing."""
    if dataset is None:
        return Finding(reason=plan["absent"][evidence["study"]])
    try:
        parts = list(ESTIMATED[rule["statistic"]](rule, evidence, dataset))
    except NotRun as reason:
        return Finding(reason=str(reason))
    return Finding(
        parts,
        bounds=tuple(math.nan if rule[end] is None else rule[end] for end in ("at_least", "at_most")),
        short=list(_short(parts, evidence, dataset.attrs["horizon"])),
        minimum_seeds=plan["minimum_seeds"],
        horizon=int(dataset.attrs["horizon"]),
    )


def _short(parts: Sequence[Part], evidence: Mapping[str, Any], horizon: int) -> Iterator[str]:
    """In what runs differ from those that the rule was fixed for."""
    if horizon != evidence["horizon"]:
        yield f"{horizon:,} rounds, not {evidence['horizon']:,}"
    seeds = min(part.estimate.seeds for part in parts)
    if seeds < evidence["seeds"]:
        yield f"{seeds} seeds, not {evidence['seeds']}"


def _row(
    name: str, protocol: str, plan: Mapping[str, Any], finding: Finding, verdict: Verdict, holds: float, fails: float
) -> dict[str, Any]:
    claim = plan["claims"][name]
    evidence = claim["evidence"].get(protocol, {})
    shown = [plan["exhibits"][label] for label in claim["exhibits"]]
    row = {
        "claim": name,
        "protocol": protocol,
        "sentence": claim["sentence"],
        "place": claim["place"],
        "exhibits": [exhibit["name"] for exhibit in shown],
        "files": [path for exhibit in shown for path in exhibit["files"]],
        "study": evidence.get("study"),
        "statistic": claim["rule"]["statistic"],
        "rule": in_words(claim["rule"]),
        "contradicted_by": claim["contradicted_by"],
        "verdict": verdict,
        "reason": finding.reason or (_doubt(finding) if verdict == "undecided" else ""),
        "as_declared": not finding.short and verdict != "not run",
        "short": list(finding.short),
        "seeds": finding.seeds or None,
        "horizon": finding.horizon,
        "p_holds": _number(finding.p_values()[0]) if finding.tested else None,
        "p_fails": _number(finding.p_values()[1]) if finding.tested else None,
        "p_holds_adjusted": _number(holds),
        "p_fails_adjusted": _number(fails),
    }
    if finding.exact:
        worst = next((one for one in finding.exact if not one.holds), finding.exact[-1])
        row |= {"part": worst.words, "effect": _number(worst.value), "low": None, "high": None}
        row["parts"] = [{"part": one.words, "effect": _number(one.value), "holds": one.holds} for one in finding.exact]
    elif finding.parts:
        row |= _shown(finding.decisive(verdict))
        row["parts"] = [_shown(part) | {key: _number(value) for key, value in beside(part).items()} for part in finding.parts]
    return {"part": None, "effect": None, "low": None, "high": None, "parts": []} | row


def _doubt(finding: Finding) -> str:
    return "" if finding.tested else f"{finding.seeds} seeds: nothing is decided by fewer than {finding.minimum_seeds}"


def _shown(part: Part) -> dict[str, Any]:
    low, high = part.estimate.interval()
    return {
        "part": part.words,
        "effect": _number(part.estimate.value),
        "low": _number(low),
        "high": _number(high),
        "seeds": part.estimate.seeds,
    }


def _number(value: float) -> float | int | None:
    """A number for JSON, with the digits that repeat on every machine; None for what is not finite."""
    if isinstance(value, int):
        return value
    return float(f"{value:.6g}") if math.isfinite(value) else None


def in_words(rule: Mapping[str, Any]) -> str:
    """What a rule asks of its statistic, as "ratio of regret at most 0.9"."""
    statistic = rule["statistic"]
    if statistic in COMPUTED:
        return {"constant": f"computed: {rule.get('quantity')}", "parameters": "computed: equal at every size"}[statistic]
    what = {
        "ratio": f"ratio of {rule.get('measure')}",
        "difference": f"difference of {rule.get('measure')}",
        "across": f"ratio of {rule.get('measure')} to the first environment's",
        "slopes": f"slope of {rule.get('measure')} in the last quarter over that in quarter {rule.get('quarter')}",
        "exponent": f"exponent of {rule.get('measure')}",
        "minimum_size": f"exponent of {rule.get('growing')} in the smallest M ({rule.get('size_rule')})",
        "frontier": f"ratio of {rule.get('measure')} at no more parameters",
        "sandwich": "share of seeds outside [1/2, 3/2]",
    }[statistic]
    ends = [f"at least {rule['at_least']:g}"] if rule["at_least"] is not None else []
    ends += [f"at most {rule['at_most']:g}"] if rule["at_most"] is not None else []
    return f"{what} {' and '.join(ends)}"
