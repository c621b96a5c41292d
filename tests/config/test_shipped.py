"""The shipped configuration is the repository's, and sound by itself."""

from __future__ import annotations

from pathlib import Path

import yaml

from ensemblepp.config import shipped as module
from ensemblepp.config.loading import load
from ensemblepp.config.shipped import FILES, shipped

ROOT = Path(__file__).resolve().parents[2]


def test_it_is_what_the_repository_says():
    expected = {}
    for name in FILES:
        expected |= yaml.safe_load((ROOT / "config" / name).read_text())
    assert shipped() == expected
    assert {"ts", "ensemble++"} <= load(shipped()).agents.keys()


def test_a_wheel_has_a_copy_that_is_read_first(tmp_path, monkeypatch):
    for name in FILES:
        (tmp_path / name).write_text("")
    monkeypatch.setattr(module, "_INSTALLED", tmp_path)
    assert shipped() == {}


def test_there_is_one_source():
    """A copy in the sources would go stale."""
    assert not list((ROOT / "src").rglob("*.yaml"))
