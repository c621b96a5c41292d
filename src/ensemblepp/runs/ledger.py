"""What the ledger of claims is made from: the claims as they stand, the datasets that there are, and why others are not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ensemblepp.config.resolution import ARTEFACTS, Config

#: What readers are linked to: the first format that a browser shows.
SHOWN = {"figures": "png", "tables": "html"}


def datasets(config: Config, left_out: Mapping[str, str]) -> dict[str, str]:
    """The dataset of every study that claims name and the present scale runs, but for those left out.

    Args:
        config: the configuration.
        left_out: studies whose data cannot be had, and why.
    """
    named = {evidence.study for claim in config.claims.values() for evidence in claim.evidence.values()}
    return {
        study: f"{config.results}/datasets/{study}.nc"
        for study in config.active_studies()
        if study in named and study not in left_out
    }


def plan(config: Config, left_out: Mapping[str, str], *, existing: bool = False) -> dict[str, Any]:
    """The plan of the ledger; `claims.ledger.decide` says what it holds.

    Args:
        config: the configuration.
        left_out: studies whose data cannot be had, and why.
        existing: of datasets, only those that have been made.
    """
    there = datasets(config, left_out)
    absent = {
        study: f"study '{study}' is not made yet" for study, path in there.items() if existing and not Path(path).exists()
    }
    return _plan(config, there, absent | _absent(config, left_out, there), exhibit_files(config, left_out))


def published(config: Config, folder: str | Path, outdated: Mapping[str, str]) -> dict[str, Any]:
    """The plan of the ledger of what is published in a folder: it is made from the datasets there, and no run is needed.

    Args:
        config: the configuration.
        folder: holds datasets/<study>.nc, figures/ and tables/.
        outdated: published studies that the configuration would make with other values, which decide nothing, and why.
    """
    there = {study: f"{folder}/datasets/{study}.nc" for study in datasets(config, {})}
    absent = {study: f"study '{study}' is not published yet" for study, path in there.items() if not Path(path).exists()}
    absent |= {study: f"study '{study}' is published under other values ({reason})" for study, reason in outdated.items()}
    files = {
        label: [
            path
            for kind, suffix in {"figures": "png", "tables": "md"}.items()
            for path in (f"{folder}/{kind}/{stem}.{suffix}" for stem in getattr(exhibit, kind))
            if Path(path).exists()
        ]
        for label, exhibit in config.exhibits.items()
    }
    return _plan(config, there, absent | _absent(config, {}, there), files)


def _absent(config: Config, left_out: Mapping[str, str], there: Mapping[str, str]) -> dict[str, str]:
    """Studies that claims name and of which there cannot be a dataset, and why."""
    absent = {}
    named = [evidence.study for claim in config.claims.values() for evidence in claim.evidence.values()]
    awaiting = config.awaiting()
    for study in dict.fromkeys(named):
        if study not in config.studies:
            absent[study] = f"there is no study '{study}' in config/studies.yaml yet"
        elif study in awaiting:
            absent[study] = awaiting[study]
        elif study in left_out:
            absent[study] = f"study '{study}' is left out: {left_out[study]}"
        elif study not in there:
            absent[study] = f"study '{study}' is not run at scale {config.scale}"
    return absent


def _plan(
    config: Config, there: Mapping[str, str], absent: Mapping[str, str], files: Mapping[str, list[str]]
) -> dict[str, Any]:
    return {
        "scale": config.scale,
        "level": config.ledger.level,
        "minimum_seeds": config.ledger.minimum_seeds,
        "datasets": {study: path for study, path in there.items() if study not in absent},
        "absent": dict(absent),
        "exhibits": {label: {"name": config.exhibits[label].name, "files": paths} for label, paths in files.items()},
        "claims": {name: claim.model_dump() for name, claim in config.claims.items()},
    }


def exhibit_files(config: Config, left_out: Mapping[str, str]) -> dict[str, list[str]]:
    """What is made at the present scale in the place of every figure and table of the paper, by its label."""
    made = {
        kind: {
            f"{study}-{name}"
            for study, declared in config.active_studies().items()
            for name in getattr(declared, kind)
            if study not in left_out
        }
        for kind in ARTEFACTS
    }
    return {
        label: [
            f"{config.results}/{kind}/{stem}.{suffix}"
            for kind, suffix in SHOWN.items()
            for stem in getattr(exhibit, kind)
            if stem in made[kind]
        ]
        for label, exhibit in config.exhibits.items()
    }
