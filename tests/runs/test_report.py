"""When the report is made: where it is missing, older than what it shows, or not as it was written."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ensemblepp.config.loading import read_files
from ensemblepp.runs import report as module
from ensemblepp.storage.seals import add_seal

PAGE = b"<html>what is reported</html><!-- the checksum of this page:"


@pytest.fixture
def made(tmp_path, monkeypatch, request) -> list[Path]:
    """A folder with all figures and tables of the smoke run and a report of them, and the reports that are made from now on."""
    config = read_files(request.config.rootpath, scale="smoke")
    monkeypatch.chdir(tmp_path)
    for study in config.active_studies():
        for path in map(Path, config.artefacts(study)):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("drawn")
            os.utime(path, (1e9, 1e9))
    reports: list[Path] = []

    def render(_, report: Path) -> None:
        report.write_bytes(PAGE)
        add_seal(report)
        reports.append(report)

    monkeypatch.setattr(module, "_render", render)
    monkeypatch.setattr(module, "left_out", lambda _: {})
    monkeypatch.setattr(module, "make", lambda make=module.make: make(config))
    assert module.make() == tmp_path / "results/smoke/report.html"
    return reports


def test_a_report_that_is_whole_is_not_made_again(made):
    assert len(made) == 1
    module.make()
    assert len(made) == 1
    assert made[0].read_bytes().startswith(PAGE + b"\nsha256 ")


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "missing", "old"])
def test_any_other_is(made, damage):
    (report,) = made
    content = report.read_bytes()
    if damage == "missing":
        report.unlink()
    elif damage == "old":
        os.utime(report, (9e8, 9e8))
    else:
        report.write_bytes({"empty": b"", "cut": content[:-1], "flipped": b"<HTML>" + content[6:]}[damage])
    module.make()
    assert len(made) == 2
    assert report.read_bytes() == content
