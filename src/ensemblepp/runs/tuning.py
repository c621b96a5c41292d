"""What tuning has chosen: from a study of settings to config/tuned.yaml."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from ensemblepp.analysis import tuning
from ensemblepp.analysis.setting_names import setting_of
from ensemblepp.config.resolution import Config
from ensemblepp.errors import ConfigError, ResultError
from ensemblepp.runs import commits
from ensemblepp.specification import Block
from ensemblepp.storage.datasets import atomic_path, read_dataset

FILE = Path("config/tuned.yaml")

_HEAD = "# Written by `python -m ensemblepp tune`: per environment and agent, the setting that is best on tuning seeds."


def choose(config: Config, study: str) -> dict[str, dict[str, dict[str, Any]]]:
    """The best setting of every agent in every environment of a study of settings: least mean regret at the horizon.

    Returns:
        environment -> agent -> what `config.tuning.Chosen` holds. An agent that was left out of an environment has none there.

    Raises:
        ConfigError: the study plays no settings at the configuration's scale.
        ResultError: its dataset is missing or damaged, or was made from other runs than the configuration asks for.
    """
    grid = config.studies[study].scales[config.scale]
    if not grid.settings:
        raise ConfigError(f"study '{study}' plays no settings at scale {config.scale}; name one whose grid has `settings`")
    path = f"{config.results}/datasets/{study}.nc"
    dataset = read_dataset(path, finite=(), holds=("regret", "specs"))
    held = {Block(config.results, spec).path: spec for spec in json.loads(dataset.attrs["specs"])}
    if held != {block.path: block.spec for block in config.blocks(study)}:
        raise ResultError(f"{path}: not of the present configuration; run snakemake --config scale={config.scale} first")
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for environment in grid.environments:
        for agent, names in tuning.settings(dataset).items():
            if best := tuning.best(dataset, names, environment):
                number = setting_of(names[best[0]])
                assert number
                found.setdefault(environment, {})[agent] = {
                    "setting": number[1],
                    "values": dict(config.settings[agent][number[1]]),
                    "regret": float(f"{best[1]:.5g}"),
                    "of": len(names),
                    "study": study,
                    "scale": config.scale,
                    "horizon": grid.horizon,
                    "seeds": grid.seed_list(),
                    "commit": commits.commit(),
                }
    return found


def write(config: Config, chosen: dict[str, dict[str, dict[str, Any]]], path: Path = FILE) -> None:
    """Write what was chosen beside what other studies chose before, environment by environment."""
    earlier = {place: {agent: one.model_dump() for agent, one in choices.items()} for place, choices in config.tuned.items()}
    with atomic_path(path) as temporary:
        text = yaml.safe_dump({"tuned": earlier | chosen}, default_flow_style=None, sort_keys=False, width=200)
        temporary.write_text(f"{_HEAD}\n{text}", encoding="utf-8")
