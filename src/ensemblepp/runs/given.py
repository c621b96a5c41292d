"""What `compare` is given in Python, as entries of the configuration: names, kinds with options, classes, tables."""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

from ensemblepp import registry
from ensemblepp.bandit import AgentFamily
from ensemblepp.config.environments import ClassificationEnvironment
from ensemblepp.data import columns, table
from ensemblepp.errors import ConfigError, one_of

#: What a table is played by, and how where nothing else is said; noise as on UCI data.
_PLAYED = "ensemblepp.environments.classification:Classification"
_HOW: dict[str, Any] = {"coding": "onehot", "scaling": "standardise", "noise": 0.1, "passes": 1}

#: Keys of a table beside those of how it is played.
_TABLE = ("table", "label", "title", "features", "nominal", "missing")


class Entries(NamedTuple):
    """Entries under one key of the configuration, "agents" or "environments".

    Attributes:
        names: of what was given, in order.
        entries: name -> entry, of what is not in the shipped configuration.
        like: of environments, the kind whose values in protocols and agents hold here too; "" for none.
        values: of environments, what differs in them alone: an agent's name -> key -> value.
    """

    names: list[str]
    entries: dict[str, dict[str, Any]]
    like: str = ""
    values: Mapping[str, Mapping[str, Any]] = {}


def agents(given: Sequence[Any] | Mapping[str, Any], shipped: Mapping[str, Any]) -> Entries:
    """Agents as `compare` takes them.

    Args:
        given: each a name, a class, or a kind or class with options; of a mapping, the keys are their labels.
        shipped: the agents of the shipped configuration.

    Raises:
        ConfigError: one of them is none of these, or two have one name.
    """
    if isinstance(given, str) or not isinstance(given, Sequence | Mapping):
        raise ConfigError(f"agents: found {given!r}: must be a list of agents, or a mapping of labels to agents")
    labelled = given.items() if isinstance(given, Mapping) else ((None, agent) for agent in given)
    found = Entries([], {})
    for label, agent in labelled:
        if isinstance(agent, str) and label is None:
            found.names.append(agent)
            continue
        if isinstance(agent, str):
            if agent not in shipped:
                raise ConfigError(f"agents: found '{agent}': {one_of(shipped, agent)}")
            entry = dict(shipped[agent])
        else:
            entry = _agent(agent)
        label = str(label or entry.get("label") or _words(agent))
        name = _name(label, shipped)
        if name in found.entries:
            raise ConfigError(f"agents: two are called '{name}': give a mapping of labels to agents")
        found.names.append(name)
        found.entries[name] = entry | {"label": label}
    return found


def _agent(given: Any) -> dict[str, Any]:
    what, options = _parted(given, "agents", registry.AGENTS)
    if isinstance(what, str):
        return {"kind": what, **options}
    family = vars(what).get("family")
    if family is None and getattr(what, "family", None) in set(get_args(AgentFamily)) - {"linear"}:
        # derived from one that an engine knows: it may have changed anything but the interface
        family = "neural"
    return {
        "kind": "custom",
        "class": _place(what),
        "hyperparameters": options,
        "plays_as": family or "any",
        "uses_ensemble": bool(getattr(what, "uses_ensemble", False)),
    }


def environment(given: Any, shipped: Mapping[str, Any], folder: Path) -> Entries:
    """An environment as `compare` takes it.

    Args:
        given: a name, a class, a kind or class with options, or a table with its label; or what this would make of it.
        shipped: the environments of the shipped configuration.
        folder: where a table is kept for the runs.

    Raises:
        ConfigError: it is none of these.
        DataError: there is a fault in the table.
    """
    if isinstance(given, Entries):
        return given
    if isinstance(given, str):
        return Entries([given], {})
    if isinstance(given, Mapping):
        title, entry = _table(given, folder)
    else:
        what, options = _parted(given, "environment", registry.ENVIRONMENTS)
        if isinstance(what, str):
            entry = {"kind": what, **options}
        else:
            entry = {"kind": "custom", "class": _place(what), "plays_as": vars(what).get("family") or "any", "options": options}
        title = str(entry.get("title") or _words(given))
    name = _name(title, shipped)
    return Entries([name], {name: entry | {"title": title}})


def values_of(values: dict[str, Any], place: Entries) -> dict[str, Any]:
    """The configuration with what holds in the environments of `place`: what it says of the kind `like`, and `place.values`."""

    def said(of: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
        here = {**of.get(place.like, {}), **own}
        return {**of, **dict.fromkeys(place.names, here)} if here else dict(of)

    protocols = {name: said(of, {}) for name, of in values["protocols"].items()}
    agents = dict(values["agents"])
    for name, agent in agents.items():
        if here := said(agent.get("per_environment", {}), place.values.get(name, {})):
            agents[name] = {**agent, "per_environment": here}
    return values | {"protocols": protocols, "agents": agents}


def _parted(given: Any, key: str, kinds: Mapping[str, str]) -> tuple[str | type, dict[str, Any]]:
    """A kind or a class, and its options."""
    what, options = given if isinstance(given, tuple) and len(given) == 2 else (given, {})
    if not isinstance(options, Mapping) or not isinstance(what, str | type) or (what is given and isinstance(what, str)):
        raise ConfigError(f"{key}: found {given!r}: must be a name, a class, or (kind, options) or (class, options)")
    if isinstance(what, str) and what not in kinds:
        raise ConfigError(f"{key}: found kind '{what}': {one_of(kinds, what)}")
    if isinstance(what, type):
        known = {place: kind for kind, place in kinds.items()}
        what = known.get(f"{what.__module__}:{what.__qualname__}", what)
    return what, dict(options)


def _place(given: type) -> str:
    """ "module:Class" of a class that other processes can import."""
    if given.__module__ == "__main__" or "." in given.__qualname__:
        raise ConfigError(
            f"{given.__qualname__}: defined in a notebook, a shell or a function, where runs, which are processes of their "
            f"own, do not find it; put it into a file, as {given.__name__.lower()}.py, and import it from there"
        )
    return f"{given.__module__}:{given.__qualname__}"


def _words(given: Any) -> str:
    what = given[0] if isinstance(given, tuple) else given
    return what if isinstance(what, str) else what.__name__


def _name(words: str, shipped: Mapping[str, Any]) -> str:
    """A name of the configuration's that is not taken there."""
    name = re.sub(r"[^a-z0-9+.]+", "-", words.lower()).strip("-.+") or "unnamed"
    return f"own-{name}" if name in shipped else name


def _table(given: Mapping[str, Any], folder: Path) -> tuple[str, dict[str, Any]]:
    """Title and entry of a table's environment; the table is written to `folder` under a name that its content decides."""
    for key in given:
        if key not in (*_TABLE, *_HOW):
            raise ConfigError(f"environment: {key}: {one_of([*_TABLE, *_HOW], key)}")
    for key in ("table", "label"):
        if key not in given:
            raise ConfigError(f"environment: {key}: must be given, as in {{'table': 'wine.csv', 'label': 'kind'}}")
    how = _HOW | {key: given[key] for key in _HOW if key in given}
    declared = {key: given[key] for key in ("features", "nominal", "missing") if key in given}
    source = given["table"]
    title = str(given.get("title") or (Path(source).name.split(".")[0] if isinstance(source, str | Path) else "table"))
    # checked as an entry of the configuration's would be
    ClassificationEnvironment.model_validate({"kind": "classification", "title": title, "dataset": "table", **how})
    with tempfile.TemporaryDirectory() as scratch:
        path, label = Path(scratch, "table.csv"), given["label"]
        if not isinstance(source, str | Path):
            label = _written(source, label, path)
        elif str(source).endswith(columns.SUFFIXES):
            path = Path(source)
        else:
            raise ConfigError(f"environment: table: found '{source}': must end in {', '.join(columns.SUFFIXES)}")
        columns.header(path, [label])
        content = path.read_bytes() + json.dumps([label, declared], sort_keys=True).encode()
        kept = folder / f"table-{hashlib.sha256(content).hexdigest()[:12]}.nc"
        if not kept.exists():
            table.prepare([path], kept, label=label, **declared)
        rows = columns.rows_available(path)
    return title, {
        "kind": "custom",
        "class": _PLAYED,
        "plays_as": "pool",
        "options": how,
        "inputs": {"data": kept.as_posix()},
        "longest": rows * how["passes"],
    }


def _written(source: Any, label: Any, path: Path) -> str:
    """A data frame with its label's name, or an array (rows, columns) with labels (rows,), as CSV; the label's name."""
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        frame, name = source, str(label)
    else:
        values, labels = np.asarray(source), np.asarray(label)
        if values.ndim != 2 or labels.shape != (len(values),):
            raise ConfigError(
                "environment: table: must be a file, a data frame, or an array (rows, columns) with a label (rows,); "
                f"found {values.shape} and {labels.shape}"
            )
        frame, name = pd.DataFrame(values, columns=[f"column {place}" for place in range(values.shape[1])]), "label"
        frame[name] = labels
    frame.to_csv(path, index=False)
    return name
