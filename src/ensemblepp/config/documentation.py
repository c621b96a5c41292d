"""What is generated: from the typed models the default config.yaml, the JSON schema and the tables of config/README.md; from
config/tuning.yaml the settings of config/settings.yaml.

`python -m ensemblepp config --write` renews them; a test fails when they are stale.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from ensemblepp.config.agents import Agent
from ensemblepp.config.claims import Arm, Claim, Evidence, Exhibit, Ledger, Rule
from ensemblepp.config.datasets import HateSpeech, OwnPosts, Table
from ensemblepp.config.environments import Environment, LanguageModel
from ensemblepp.config.laws import OwnLaw
from ensemblepp.config.loading import read_yaml, typed
from ensemblepp.config.resolution import Config
from ensemblepp.config.settings import Settings
from ensemblepp.config.studies import Grid, OwnArtefact, Study
from ensemblepp.config.tuning import Chosen, Knob, Space, points

SCHEMA = Path("workflow/schemas/config.schema.json")
SETTINGS = Path("config/config.yaml")
README = Path("config/README.md")
TUNING, SETTINGS_OF_AGENTS = Path("config/tuning.yaml"), Path("config/settings.yaml")
BEGIN, END = "<!-- generated: python -m ensemblepp config --write -->", "<!-- end of generated part -->"


def schema() -> str:
    """The JSON schema of the merged configuration."""
    return json.dumps(Config.model_json_schema(), indent=2) + "\n"


def settings() -> str:
    """config/config.yaml with every default, each explained."""
    lines = [
        "# yaml-language-server: $schema=../workflow/schemas/config.schema.json",
        "# What to run, where, and where raw data may come from. On the command line: --config scale=smoke",
    ]
    for name, field in Settings.model_fields.items():
        allowed = _type(field.annotation)
        lines += ["", f"# {field.description} [{allowed}]", f"{name}: {json.dumps(field.default)}".replace('"', "")]
    return "\n".join(lines) + "\n"


def tables() -> str:
    """Markdown tables of every key, one per model."""
    sections = [("config.yaml", [Settings])]
    sections.append(("environments.yaml, `environments`", get_args(get_args(Environment)[0])))
    sections.append(("environments.yaml, `datasets`", [Table, OwnPosts, HateSpeech]))
    sections.append(("environments.yaml, `language_models`", [LanguageModel]))
    sections.append(("agents.yaml, `agents`", get_args(get_args(Agent)[0])))
    sections.append(("agents.yaml, `laws`", [OwnLaw]))
    sections.append(("tuning.yaml, `tuning`", [Space, Knob]))
    sections.append(("tuned.yaml, `tuned`", [Chosen]))
    sections.append(("studies.yaml, `studies`", [Study, Grid]))
    sections.append(("studies.yaml, `figures` and `tables`", [OwnArtefact]))
    sections.append(("claims.yaml, `claims`", [Claim, Evidence, Arm]))
    sections.append(("claims.yaml, `rule` of a claim", get_args(get_args(Rule)[0])))
    sections.append(("claims.yaml, `exhibits` and `ledger`", [Exhibit, Ledger]))
    return "\n".join(line for title, models in sections for line in _section(title, models))


def readme(current: str) -> str:
    """`current` with the part between the marks renewed."""
    pattern = re.compile(re.escape(BEGIN) + ".*" + re.escape(END), re.DOTALL)
    return pattern.sub(lambda _: f"{BEGIN}\n\n{tables()}\n{END}", current)


def settings_of_agents(spaces: Mapping[str, Space]) -> str:
    """config/settings.yaml: every agent's points of its space."""
    lines = [
        "# Written by `python -m ensemblepp config --write` from tuning.yaml: scrambled Sobol points of each agent's space.",
        "settings:",
    ]
    for name, settings in points(spaces).items():
        lines += [f"  {name}:", *(f"    - {_flow(values)}" for values in settings)]
    return "\n".join(lines) + "\n"


def _flow(values: Any) -> str:
    """A value as YAML on one line."""
    return yaml.safe_dump(values, default_flow_style=True, sort_keys=False, width=10_000).strip()


def write_all() -> list[Path]:
    """Renew the schema and the tables; write config.yaml only where there is none, since its values are the user's.

    Raises:
        ConfigError: config/tuning.yaml, from which config/settings.yaml is made, is not sound.
    """
    SCHEMA.write_text(schema(), encoding="utf-8")
    README.write_text(readme(README.read_text(encoding="utf-8")), encoding="utf-8")
    written = [SCHEMA, README]
    if not SETTINGS.exists():
        SETTINGS.write_text(settings(), encoding="utf-8")
        written.append(SETTINGS)
    if TUNING.exists():
        spaces = typed(read_yaml(TUNING)).tuning
        SETTINGS_OF_AGENTS.write_text(settings_of_agents(spaces), encoding="utf-8")
        written.append(SETTINGS_OF_AGENTS)
    return written


def _section(title: str, models: Any) -> Iterator[str]:
    yield f"### {title}\n"
    for model in models:
        kind = model.model_fields.get("kind")
        name = f"`kind: {get_args(kind.annotation)[0]}`. " if kind else ""
        yield f"{name}{(model.__doc__ or '').strip()}\n"
        yield from _table(model)


def _table(model: type[BaseModel]) -> Iterator[str]:
    yield "| key | allowed | default | meaning |"
    yield "| --- | --- | --- | --- |"
    for name, field in model.model_fields.items():
        if name == "kind":
            continue
        default = "required" if field.default is PydanticUndefined else f"`{json.dumps(field.default)}`"
        limits = ", ".join(filter(None, map(_limit, [*field.metadata, *getattr(field.annotation, "__metadata__", ())])))
        allowed = _type(field.annotation) + (f" ({limits})" if limits else "")
        yield f"| `{field.alias or name}` | {allowed} | {default} | {field.description} |"
    yield ""


def _limit(part: Any) -> str:
    """A constraint of annotated-types in signs."""
    signs = {"ge": "at least", "gt": "above", "le": "at most", "min_length": "length at least"}
    return next((f"{words} {getattr(part, name)}" for name, words in signs.items() if hasattr(part, name)), "")


def _type(annotation: Any) -> str:
    """An annotation in words a user reads."""
    arguments = get_args(annotation)
    origin = getattr(annotation, "__origin__", None)
    if hasattr(annotation, "__metadata__"):
        return _type(arguments[0])
    if origin is dict:
        return f"mapping of {_type(arguments[0])} to {_type(arguments[1])}"
    if origin is list:
        return f"list of {_type(arguments[0])}"
    if arguments and all(isinstance(value, str) for value in arguments):
        return ", ".join(arguments)
    if arguments:
        return " or ".join(_type(argument) for argument in arguments)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation.__name__
    names = {str: "text", int: "whole number", float: "number", bool: "true or false", type(None): "null"}
    return names.get(annotation, "any")
