"""Packed runs: put back byte for byte where the workflow goes on from them, and nothing that it would not take."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import yaml

from ensemblepp.cli import main
from ensemblepp.config.checks import CONFIG_FILES
from ensemblepp.config.loading import load
from ensemblepp.config.resolution import Config
from ensemblepp.errors import ResultError
from ensemblepp.runs import archives
from ensemblepp.runs import block as blocks
from ensemblepp.runs.fingerprint import fingerprint

CONFIG = {
    "environments": {"near": {"kind": "linear_finite", "title": "Near", "dimension": 3, "actions": 5}},
    "agents": {"ts": {"kind": "linear_ts", "label": "TS"}, "greedy": {"kind": "linear_greedy", "label": "Greedy"}},
    "studies": {
        "small": {
            "title": "A small study",
            "agents": ["ts", "greedy"],
            "scales": {"quick": {"environments": ["near"], "horizon": 12, "seeds": 3, "seeds_per_block": 2}},
        }
    },
}
ARCHIVE = Path("published/runs/small.tar.xz")


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """The small study, three of its four runs made."""
    monkeypatch.chdir(tmp_path)
    config = load(CONFIG)
    for block in config.blocks("small")[:3]:
        blocks.run(block.spec, block.path, code=fingerprint(*block.code))
    return config


def contents(folder: str) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path(folder).rglob("*") if path.is_file()}


def test_what_was_packed_comes_back_to_the_byte(config):
    made = contents("results")
    assert archives.pack(config, "small", "published") == archives.count(ARCHIVE) == 3
    shutil.rmtree("results")
    assert list(archives.unpack(config, "published")) == [("small", 3, 0, [])]
    assert contents("results") == made


def test_equal_runs_are_packed_to_equal_bytes(config):
    archives.pack(config, "small", "published")
    first = ARCHIVE.read_bytes()
    for path in contents("results"):
        os.utime(path, (1, 1))
    archives.pack(config, "small", "published")
    assert ARCHIVE.read_bytes() == first


def test_runs_that_are_there_stay_and_what_is_missing_of_one_comes_back(config):
    archives.pack(config, "small", "published")
    kept, halved = (Path(block.path) for block in config.blocks("small")[:2])
    before, record = kept.stat().st_mtime_ns, halved.with_suffix(".json")
    record.unlink()
    assert list(archives.unpack(config, "published", ["small"])) == [("small", 1, 2, [])]
    assert kept.stat().st_mtime_ns == before
    assert record.exists()


def test_a_run_of_other_values_or_other_code_is_left_out(config, monkeypatch):
    archives.pack(config, "small", "published")
    shutil.rmtree("results")
    other = CONFIG | {"environments": {"near": {**CONFIG["environments"]["near"], "actions": 6}}}
    ((_, restored, _, refused),) = archives.unpack(load(other), "published")
    assert (restored, len(refused)) == (0, 3)
    assert refused[0] == "results/quick/runs/near/ts/M0/T12/seeds0-1.nc: made from another specification (environment differ)"
    monkeypatch.setattr(archives, "fingerprint", lambda *_: "edited")
    ((_, restored, _, refused),) = archives.unpack(config, "published")
    assert (restored, len(refused)) == (0, 3)
    assert "code" in refused[0]
    assert contents("results") == {}


def test_a_run_waits_for_the_files_that_it_was_made_of(config, monkeypatch):
    archives.pack(config, "small", "published")
    shutil.rmtree("results")
    monkeypatch.setattr(archives.Block, "inputs", property(lambda self: ["data/posts.nc"]))
    ((_, restored, _, refused),) = archives.unpack(config, "published")
    assert (restored, len(refused)) == (0, 3)
    assert refused[0].endswith(
        "needs data/posts.nc; make it first (snakemake data/posts.nc --config scale=quick), then unpack again"
    )
    Path("data").mkdir()
    Path("data/posts.nc").touch()
    ((_, restored, _, refused),) = archives.unpack(config, "published")
    assert (restored, refused) == (3, [])
    # older than what it was made of, it would be made again
    made = Path("data/posts.nc").stat().st_mtime_ns
    assert all(Path(path).stat().st_mtime_ns >= made for path in contents("results"))


def test_nothing_is_packed_of_a_study_without_runs_or_with_a_damaged_one(config):
    run = Path(config.blocks("small")[1].path)
    damaged = bytearray(run.read_bytes())
    damaged[-500] ^= 1
    run.write_bytes(damaged)
    with pytest.raises(ResultError, match=run.name):
        archives.pack(config, "small", "published")
    shutil.rmtree("results")
    with pytest.raises(ResultError, match="no run of study 'small' is finished"):
        archives.pack(config, "small", "published")
    assert not ARCHIVE.exists()


@pytest.mark.parametrize("left", [0, 100, -1])
def test_an_archive_that_is_cut_off_is_named(config, left):
    archives.pack(config, "small", "published")
    ARCHIVE.write_bytes(ARCHIVE.read_bytes()[:left])
    with pytest.raises(ResultError, match=r"small\.tar\.xz: damaged .*take it from git again"):
        list(archives.unpack(config, "published"))


def test_a_flipped_bit_never_becomes_a_run(config):
    archives.pack(config, "small", "published")
    made = contents("results")
    shutil.rmtree("results")
    whole = ARCHIVE.read_bytes()
    for place in range(40, len(whole), len(whole) // 12):
        flipped = bytearray(whole)
        flipped[place] ^= 4
        ARCHIVE.write_bytes(flipped)
        try:
            list(archives.unpack(config, "published"))
        except ResultError:
            assert contents("results") == {}
        else:
            # beside what is compressed there is padding, which nothing depends on
            assert contents("results") == made
            shutil.rmtree("results")


def test_a_name_that_is_not_packed_and_a_study_that_is_gone(config):
    with pytest.raises(ResultError, match=r"other\.tar\.xz: no such file; packed are: none"):
        list(archives.unpack(config, "published", ["other"]))
    archives.pack(config, "small", "published")
    gone = load(CONFIG | {"studies": {"new": CONFIG["studies"]["small"]}})
    assert list(archives.unpack(gone, "published")) == [("small", 0, 0, [f"{ARCHIVE}: scale quick has no such study any more"])]


def test_both_commands(config, capsys):
    Path("config").mkdir()
    for name in CONFIG_FILES:
        Path(name).write_text("")
    Path(CONFIG_FILES[0]).write_text(yaml.safe_dump(CONFIG))
    where = ["--scale", "quick", "--folder", "published"]
    assert main(["pack", "small", *where]) == 0
    assert capsys.readouterr().out == f"{ARCHIVE}: 3 of 4 runs\n"
    shutil.rmtree("results")
    assert main(["unpack", *where]) == 0
    assert capsys.readouterr().out == "small: 3 runs put back, 0 there already, 0 left out\n"
    assert main(["pack", "smal", *where]) == 1
    assert "did you mean 'small'?" in capsys.readouterr().err
