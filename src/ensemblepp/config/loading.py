"""Configuration files to a checked `Config`.

Snakemake merges config/config.yaml, environments.yaml, agents.yaml and studies.yaml into one mapping; all of it is checked
before any job exists. Nothing below `ensemblepp.config` imports torch or xarray: it is read every time the workflow is parsed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from ensemblepp.config.checks import CONFIG_FILES, faults_of, in_words
from ensemblepp.config.resolution import Config
from ensemblepp.errors import ConfigError


def load(values: Mapping[str, Any]) -> Config:
    """Check the merged configuration.

    Raises:
        ConfigError: one line per fault: file, key, value and what is allowed.
    """
    try:
        config = Config.model_validate(dict(values))
    except ValidationError as error:
        raise ConfigError("\n".join(in_words(fault) for fault in error.errors())) from None
    faults = list(faults_of(config))
    if faults:
        raise ConfigError("\n".join(faults))
    return config


def read_files(folder: str | Path = ".", **overrides: Any) -> Config:
    """Read and check the configuration files below `folder`, as Snakemake does; `overrides` replace top-level keys."""
    values: dict[str, Any] = {}
    for name in CONFIG_FILES:
        path = Path(folder) / name
        if not path.exists():
            raise ConfigError(f"{path}: no such file; run from the folder that holds the Snakefile")
        try:
            read = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        except yaml.MarkedYAMLError as error:
            raise ConfigError(f"{path}: line {error.problem_mark.line + 1}: not valid YAML: {error.problem}") from None
        if not isinstance(read, Mapping):
            raise ConfigError(f"{path}: must be a mapping of keys to values")
        values |= read
    return load(values | overrides)
