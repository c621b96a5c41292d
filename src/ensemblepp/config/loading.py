"""Configuration files to a checked `Config`.

The workflow merges the files of config/ into one mapping; all is checked before any job exists. Nothing below
`ensemblepp.config` imports torch or xarray: it is read every time the workflow is parsed.

Snakemake reads YAML leniently: of a key that a mapping has twice, the last wins in silence. So the workflow reads its files by
`read_yaml`, before Snakemake reads any.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from ensemblepp.config import presentation
from ensemblepp.config.checks import CONFIG_FILES, FILES, faults_of, in_words
from ensemblepp.config.resolution import Config
from ensemblepp.errors import ConfigError

_MERGE = "tag:yaml.org,2002:merge"


def load(values: Mapping[str, Any]) -> Config:
    """Check the merged configuration.

    Raises:
        ConfigError: one line per fault: file, key, value and what is allowed.
    """
    config = typed(values)
    # what a study needs can be told of sound ones only
    faults = list(faults_of(config)) or list(presentation.faults(config, FILES["studies"]))
    if faults:
        raise ConfigError("\n".join(faults))
    return config


def typed(values: Mapping[str, Any]) -> Config:
    """The configuration, its types alone checked: names may be unknown, and values may not fit each other.

    Raises:
        ConfigError: as of `load`.
    """
    try:
        return Config.model_validate(dict(values))
    except ValidationError as error:
        raise ConfigError("\n".join(in_words(fault) for fault in error.errors())) from None


def read_files(folder: str | Path = ".", merged: Iterable[str | Path] = (), **overrides: Any) -> Config:
    """Read and check the configuration files below `folder`, as Snakemake does.

    Args:
        folder: what holds config/.
        merged: files that are merged over those, key by key at every depth, as `snakemake --configfile` does.
        **overrides: replace top-level keys.

    Raises:
        ConfigError: a file cannot be read, or what they say together is not sound.
    """
    values: dict[str, Any] = {}
    for name in CONFIG_FILES:
        values |= read_yaml(Path(folder) / name)
    for path in merged:
        values = _merge(values, read_yaml(path))
    return load(values | overrides)


def _merge(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    both = {key: (below.get(key), value) for key, value in above.items()}
    return {**below} | {
        key: _merge(old, new) if isinstance(old, Mapping) and isinstance(new, Mapping) else new
        for key, (old, new) in both.items()
    }


def read_yaml(path: str | Path) -> Mapping[Any, Any]:
    """The mapping in a YAML file; an empty file is an empty one.

    Raises:
        ConfigError: the file cannot be read, is not YAML, or a mapping in it has a key twice; names file and line.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8")
        read = _read(text)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; run from the folder that holds the Snakefile") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}: line {line}: not text in UTF-8: found byte 0x{error.object[error.start]:02x}") from None
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        raise ConfigError(f"{path}: line {line}: not valid YAML: found the character {error.character!a}") from None
    except yaml.MarkedYAMLError as error:
        raise ConfigError(f"{path}: line {error.problem_mark.line + 1}: not valid YAML: {error.problem}") from None
    except RecursionError:
        raise ConfigError(f"{path}: not valid YAML: nested too deeply") from None
    if read is None:
        return {}
    if not isinstance(read, Mapping):
        raise ConfigError(f"{path}: must be a mapping of keys to values")
    return read


def _read(text: str) -> Any:
    """What YAML says, by libyaml where it is there: far faster, but of a fault it does not say what Snakemake says."""
    if hasattr(yaml, "CSafeLoader"):
        with contextlib.suppress(yaml.YAMLError):
            loader = yaml.CSafeLoader(text)
            try:
                node = loader.get_single_node()
                if node is None or _keys_are_unique(node):
                    return None if node is None else loader.construct_document(node)
            finally:
                loader.dispose()
    return yaml.load(text, _UniqueKeys)


def _keys_are_unique(root: yaml.Node) -> bool:
    """Whether no mapping has a key twice, before anything is merged."""
    ahead, seen = [root], set()
    while ahead:
        node = ahead.pop()
        # what an alias stands for is there once
        if id(node) in seen or isinstance(node, yaml.ScalarNode):
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE]
            if len(set(keys)) < len(keys):
                return False
            ahead += [part for pair in node.value for part in pair]
        else:
            ahead += node.value
    return True


class _UniqueKeys(yaml.SafeLoader):
    """YAML in which a mapping has each key once; what `<<` merges into it may be overruled, as ever."""

    def compose_mapping_node(self, anchor: str | None) -> yaml.MappingNode:
        # here, before anything is merged
        node = super().compose_mapping_node(anchor)
        lines: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag == _MERGE:
                continue
            if key.value in lines:
                problem = f"the key '{key.value}' is there already, in line {lines[key.value]}"
                raise yaml.composer.ComposerError(problem=problem, problem_mark=key.start_mark)
            lines[key.value] = key.start_mark.line + 1
        return node
