"""A research object: every file with its checksum, what it was made of and when, and the same bytes again."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import pytest

from ensemblepp.config.loading import read_files
from ensemblepp.data.mushroom import RAW
from ensemblepp.errors import ResultError
from ensemblepp.runs import crate

FIRST = {
    "studies": {"linear": {"blocks": 3, "seeds": 4, "horizon": 200}},
    "commits": ["c0ffee"],
    "versions": {"numpy": "2.4.6", "torch": "2.13.0+cpu", "python": "3.11.7", "ensemblepp": "1.0.0"},
    "machine": {"processor": "a processor", "cores": 2},
    "rules": {"simulate": {"cpu_seconds": 7200.0}, "tables": {"cpu_seconds": 3600.0}},
    "invocations": [
        {"started": "2026-11-28T04:55:18+0100", "seconds": 61.5},
        {"started": "2026-11-28T03:00:00+0000", "seconds": 10.0},
    ],
}
SECOND = FIRST | {
    "studies": {"uci": {"blocks": 8, "seeds": 2, "horizon": 150}, "moderation": {"blocks": 1, "seeds": 2, "horizon": 150}},
    "inputs": {"hatespeech/posts": "5" * 64},
    "invocations": [],
    "finished": "2026-11-29T00:30:00-0100",
}
PROVENANCE = {"scale": "smoke", "publications": [FIRST, SECOND], "not_run": {}}
FILES = ("figures/linear-linear_regret.png", "tables/linear-final_regret.md", "datasets/uci.nc", "claims/ledger.json")


@pytest.fixture
def folder(tmp_path: Path, request, monkeypatch) -> Path:
    """Something that was published, from the folder that holds the Snakefile."""
    monkeypatch.chdir(request.config.rootpath)
    return published(tmp_path / "published")


def published(folder: Path) -> Path:
    for name in (*FILES, "provenance.json", "README.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"content of {name}")
    crate.write_crate(read_files(scale="smoke"), folder, PROVENANCE)
    return folder


def entities(folder: Path) -> dict[str, dict]:
    return {entity["@id"]: entity for entity in json.loads((folder / crate.METADATA).read_text())["@graph"]}


def references(entity: dict, name: str) -> list[str]:
    value = entity[name]
    return [entry["@id"] for entry in (value if isinstance(value, list) else [value])]


def test_every_file_and_the_workflow_are_in_it_with_checksums(folder):
    found = entities(folder)
    names = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} - {crate.METADATA}
    assert set(references(found["./"], "hasPart")) == names
    assert {*FILES, "workflow/Snakefile", "workflow/rules/simulate.smk", "config/studies.yaml", "requirements.lock"} <= names
    for name in names:
        content = (folder / name).read_bytes()
        assert found[name]["sha256"] == hashlib.sha256(content).hexdigest()
        assert found[name]["contentSize"] == str(len(content))
    assert references(found["./"], "mainEntity") == ["workflow/Snakefile"]
    assert references(found["./"], "license") == ["https://spdx.org/licenses/MIT"]
    assert found[references(found["./"], "author")[0]]["name"] == "The ensemblepp developers"
    software = {found[name]["name"]: found[name]["softwareVersion"] for name in _required(found)}
    assert software == {"numpy": "2.4.6", "torch": "2.13.0+cpu", "python": "3.11.7"}
    assert {"https://pypi.org/project/torch/2.13.0/#cpu", "https://pypi.org/project/numpy/2.4.6/"} <= set(_required(found))


def _required(found: dict[str, dict]) -> list[str]:
    return references(found["workflow/Snakefile"], "softwareRequirements")


def test_what_was_made_of_what_and_when(folder):
    found = entities(folder)
    first, second = (found[name] for name in references(found["./"], "mentions"))
    assert references(first, "result") == ["figures/linear-linear_regret.png", "tables/linear-final_regret.md"]
    assert references(second, "result") == ["datasets/uci.nc", "claims/ledger.json"]
    # 4:55:18 an hour east of Greenwich, and 61.5 s later
    assert (first["startTime"], first["endTime"]) == ("2026-11-28T03:00:00+00:00", "2026-11-28T03:56:19+00:00")
    assert "startTime" not in second
    assert second["endTime"] == found["./"]["datePublished"] == "2026-11-29T01:30:00+00:00"
    assert (
        "3 blocks of runs, 3.0 CPU hours on a processor; commits c0ffee; with ensemblepp 1.0.0, numpy 2.4.6"
        in first["description"]
    )
    raw = [found[name] for name in references(second, "object") if name.startswith("#uci/")]
    assert (RAW[0].sha256, f"#{RAW[0].name}") in [(entity["sha256"], entity["@id"]) for entity in raw]
    assert found["#hatespeech/posts"]["sha256"] == "5" * 64
    (model,) = (found[name] for name in references(second, "object") if "pooling" in found[name].get("description", ""))
    assert model["name"] == read_files(scale="smoke").language_models[model["@id"][1:]].location
    assert not [name for name in references(first, "object") if name.startswith("#uci/")]
    assert found["#scale-smoke"]["value"] == "smoke"
    assert {"#scale-smoke", "config/agents.yaml", "requirements.lock"} <= set(references(first, "object"))


def test_raw_files_without_a_stated_checksum_are_summed_where_they_are(tmp_path, monkeypatch, request):
    settings = read_files(request.config.rootpath, scale="smoke")
    monkeypatch.chdir(tmp_path)
    assert crate.checksums(settings, ["moderation", "uci"]) == {}
    raw = tmp_path / "data/raw/hatespeech/posts"
    raw.parent.mkdir(parents=True)
    raw.write_bytes(b"posts")
    assert crate.checksums(settings, ["moderation", "uci"]) == {"hatespeech/posts": hashlib.sha256(b"posts").hexdigest()}


def test_the_same_results_give_the_same_bytes(folder, tmp_path):
    before = (folder / crate.METADATA).read_bytes()
    (folder / "workflow/rules/left.smk").write_text("of an earlier publication")
    crate.write_crate(read_files(scale="smoke"), folder, PROVENANCE)
    assert (folder / crate.METADATA).read_bytes() == before
    assert (published(tmp_path / "elsewhere") / crate.METADATA).read_bytes() == before


def test_files_that_are_not_as_it_says(folder):
    metadata = folder / crate.METADATA
    assert list(crate.faults(metadata)) == []
    (folder / FILES[0]).write_text("another")
    (folder / FILES[1]).unlink()
    (folder / "tables/more.md").write_text("more")
    assert dict(crate.faults(metadata)) == {
        folder / FILES[0]: "its SHA-256 is not that in ro-crate-metadata.json",
        folder / FILES[1]: "missing",
        folder / "tables/more.md": "ro-crate-metadata.json does not tell of it",
    }
    for damaged in (b"{", b"[]", b'{"@graph": [{"@id": "./"}]}', b"\xff"):
        metadata.write_bytes(damaged)
        ((path, reason),) = crate.faults(metadata)
        assert path == metadata
        assert reason.startswith("damaged (no research object: ")


def test_what_is_missing_is_said_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(
        ResultError, match=r"^workflow/Snakefile: no such file; publish from the folder that holds the Snakefile$"
    ):
        crate.sources()
    monkeypatch.setitem(sys.modules, "rocrate.rocrate", None)
    with pytest.raises(ResultError, match=r"^publishing needs the package rocrate \(.*\); `make install` installs it$"):
        crate.sources()


def test_files_that_are_written_anew_come_and_go(folder):
    config = read_files(scale="smoke")
    before = entities(folder)
    (folder / "README.md").write_text("drawn anew")
    (folder / FILES[0]).unlink()
    new = "figures/uci-nonlinear_regret.png"
    (folder / new).write_text("drawn for the first time")
    assert [path.name for path, _ in crate.faults(folder / crate.METADATA)] != []
    crate.renew(config, folder)
    assert list(crate.faults(folder / crate.METADATA)) == []
    found = entities(folder)
    assert found.keys() == before.keys() - {FILES[0]} | {new}
    assert new in references(found["#publication-2"], "result")
    assert new not in references(found["#publication-1"], "result")
    unchanged = found.keys() - {new, "./", "README.md", "#publication-1", "#publication-2", crate.METADATA}
    assert {name: found[name] for name in unchanged} == {name: before[name] for name in unchanged}
    content = (folder / crate.METADATA).read_bytes()
    assert json.loads(content)["@context"][1].keys() == {"sha256"}
    crate.renew(config, folder)
    assert (folder / crate.METADATA).read_bytes() == content
