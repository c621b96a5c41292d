"""What is generated from the typed models is current, and an editor's schema agrees with the check."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from ensemblepp.config import documentation as generated
from ensemblepp.config.checks import CONFIG_FILES
from ensemblepp.config.loading import load
from ensemblepp.config.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
RENEW = "stale: run `python -m ensemblepp config --write` in the project's folder and commit what it writes"


@pytest.fixture
def shipped() -> dict:
    """The shipped files, merged as Snakemake merges them."""
    values: dict = {}
    for name in CONFIG_FILES:
        values |= yaml.safe_load((ROOT / name).read_text())
    return values


@pytest.fixture(scope="module")
def schema() -> dict:
    return json.loads((ROOT / generated.SCHEMA).read_text())


def test_the_schema_is_current():
    assert (ROOT / generated.SCHEMA).read_text() == generated.schema(), f"{generated.SCHEMA} is {RENEW}"


def test_the_tables_are_current():
    text = (ROOT / generated.README).read_text()
    assert text.count(generated.BEGIN) == text.count(generated.END) == 1
    assert text == generated.readme(text), f"{generated.README} is {RENEW}"


def test_renewing_keeps_what_is_written_by_hand():
    text = f"before\n{generated.BEGIN}\noutdated words\n{generated.END}\nafter\n"
    renewed = generated.readme(text)
    assert renewed.startswith(f"before\n{generated.BEGIN}\n")
    assert renewed.endswith(f"{generated.END}\nafter\n")
    assert "outdated words" not in renewed
    assert generated.readme(renewed) == renewed


@pytest.mark.parametrize(
    "row",
    [
        '| `scale` | smoke, quick, paper | `"quick"` | smoke (a minute or two, CI), quick (minutes) or paper (as published) |',
        "| `mirror` | text or null | `null` |",
        "| `dimension` | whole number (at least 1, at most 1024) | required | d, entries of a feature vector |",
        "| `noise` | number (at least 0) | `0.1` | standard deviation of the reward noise |",
        "| `hidden` | list of whole number | `[64, 64]` |",
        "| `references` | list of text (length at least 1) | required | laws of zeta (acting): gaussian, sphere, cube, "
        "coordinate, sparse, or one of `laws` |",
        "| `class` | text | required | `package.module:Class` |",
        "| `seeds` | whole number or list of whole number | required | a number n (seeds 0..n-1) or a list |",
    ],
)
def test_a_row_tells_what_is_allowed_and_the_default(row):
    assert [line for line in generated.tables().splitlines() if line.startswith(row)]


def test_config_yaml_has_every_setting_and_nothing_else(shipped):
    settings = yaml.safe_load((ROOT / generated.SETTINGS).read_text())
    assert list(settings) == list(Settings.model_fields)
    load(shipped)


def test_the_generated_config_yaml_holds_the_defaults():
    assert yaml.safe_load(generated.settings()) == Settings().model_dump()


def test_writing_renews_and_never_overwrites_the_users_settings(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in ("config", "workflow/schemas"):
        Path(folder).mkdir(parents=True)
    generated.README.write_text(f"{generated.BEGIN}\n{generated.END}\n")
    assert generated.write_all() == [generated.SCHEMA, generated.README, generated.SETTINGS]
    assert generated.SETTINGS.read_text() == generated.settings()
    generated.SETTINGS.write_text("scale: paper\n")
    assert generated.write_all() == [generated.SCHEMA, generated.README]
    assert generated.SETTINGS.read_text() == "scale: paper\n"


def test_the_schema_is_a_schema_and_accepts_the_shipped_configuration(schema, shipped):
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(shipped, schema, cls=jsonschema.Draft202012Validator)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("horizont", 3),
        ("scale", "huge"),
        ("environments/mushroom/colour", "red"),
        ("environments/mushroom/kind", "round"),
        ("agents/ts/depth", 2),
        ("agents/linear-ensemble++/references", "gaussian"),
        ("agents/linear-ensemble++/precision", "half"),
        ("agents/linear-ensemble++/references", []),
        ("studies/linear/colour", "red"),
        ("studies/linear/scales/quick/rounds", 3),
        ("studies/linear/scales/quick/ensemble_sizes", [1025]),
        ("studies/linear/scales/quick/seeds", 0),
        ("studies/linear/scales/huge", {"environments": ["mushroom"], "horizon": 5, "seeds": 1}),
    ],
)
def test_the_schema_refuses_what_the_check_refuses(schema, shipped, path, value):
    *parents, last = path.split("/")
    place = shipped
    for parent in parents:
        place = place[parent]
    place[last] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(shipped, schema, cls=jsonschema.Draft202012Validator)
