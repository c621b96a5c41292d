"""What the page that opens with the answer is made from: ledger, the paper's figures and tables, studies, captions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ensemblepp.config.resolution import ARTEFACTS, Config

#: Formats of figures and tables that the page reads.
_READ = {"figures": "png", "tables": "csv"}


def plan(config: Config, left_out: Mapping[str, str], *, results: str | None = None) -> dict[str, Any]:
    """The plan of the page; `report.page.save` says what it holds.

    Args:
        config: the configuration.
        left_out: studies whose data cannot be had, and why.
        results: a folder with results, of which what has been made is shown; None: all that the workflow makes.
    """
    folder = results or config.results
    absent = {
        name: f"left out: {left_out[name]}" if name in left_out else f"not run at scale {config.scale}"
        for name in config.studies
        if name in left_out or name not in config.active_studies()
    }
    # lists, since keys are sorted on a command line
    studies = []
    for name, declared in config.active_studies().items():
        grid = declared.scales[config.scale]
        study = {
            "name": name,
            "title": declared.title,
            "seeds": len(grid.seed_list()),
            "horizon": grid.horizon,
            "dataset": f"{folder}/datasets/{name}.nc",
        } | {kind: [(artefact, _caption(config, kind, artefact)) for artefact in getattr(declared, kind)] for kind in ARTEFACTS}
        if results and not all(Path(path).exists() for path in _files(folder, study)):
            absent.setdefault(name, "not made yet")
        if name not in absent:
            studies.append(study)
    ledger, report = f"{folder}/claims/ledger.json", f"{folder}/report.html"
    return {
        "scale": config.scale,
        "results": folder,
        "ledger": ledger if (Path(ledger).exists() if results else config.claims) else None,
        "report": report if not results or Path(report).exists() else None,
        "exhibits": [exhibit.model_dump() for exhibit in config.exhibits.values()],
        "studies": studies,
        "absent": absent,
    }


def inputs(plan: Mapping[str, Any]) -> list[str]:
    """The files that the page of a plan is made from, but for captions."""
    files = [path for study in plan["studies"] for path in _files(plan["results"], study)]
    return [*([plan["ledger"]] if plan["ledger"] else []), *files]


def caption_files(plan: Mapping[str, Any]) -> list[str]:
    """The captions that are files, each once."""
    captions = {text for study in plan["studies"] for kind in ARTEFACTS for _, text in study[kind]}
    return sorted(text for text in captions if text.endswith(".rst"))


def _files(folder: str, study: Mapping[str, Any]) -> list[str]:
    shown = [
        f"{folder}/{kind}/{study['name']}-{artefact}.{suffix}" for kind, suffix in _READ.items() for artefact, _ in study[kind]
    ]
    return [study["dataset"], *shown]


def _caption(config: Config, kind: str, name: str) -> str:
    """A text, or the path of a file: the user's, or the workflow's of that name."""
    own = getattr(config, kind).get(name)
    return (own.caption or f"made by {own.function}") if own else f"workflow/report/{name}.rst"
