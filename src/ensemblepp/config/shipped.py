"""The shipped configuration: what config/ of the repository says, wherever the package is used from.

There is one source, config/ beside the Snakefile. A wheel holds copies of its files, made as the wheel is built (setup.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ensemblepp.config.loading import read_yaml

#: What is shipped; which runs a study has, and where they run, is a workflow's to say.
FILES = ("environments.yaml", "agents.yaml")

#: Where a wheel has them, and where they lie in the repository.
_INSTALLED = Path(__file__).with_name("files")
_REPOSITORY = Path(__file__).parents[3] / "config"


def shipped() -> dict[str, Any]:
    """Environments, language models, protocols and agents, as `config.loading.load` takes them.

    Raises:
        ConfigError: a file cannot be read.
    """
    folder = _INSTALLED if _INSTALLED.is_dir() else _REPOSITORY
    values: dict[str, Any] = {}
    for name in FILES:
        values |= read_yaml(folder / name)
    return values
