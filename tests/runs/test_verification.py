"""Verifying results: every fault that a file can have is named, and a folder in order has none."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

from ensemblepp.cli import main
from ensemblepp.config.checks import CONFIG_FILES
from ensemblepp.config.loading import load, read_files
from ensemblepp.config.resolution import Config
from ensemblepp.figures import save as draw
from ensemblepp.runs import block as blocks
from ensemblepp.runs import verification
from ensemblepp.runs.aggregate import aggregate
from ensemblepp.runs.fingerprint import fingerprint
from ensemblepp.runs.plan import plan
from ensemblepp.storage.datasets import read_dataset, write_dataset
from ensemblepp.tables import save as tabulate

CONFIG = {
    "environments": {"near": {"kind": "linear_finite", "title": "Near", "dimension": 3, "actions": 5}},
    "agents": {"ts": {"kind": "linear_ts", "label": "TS"}, "greedy": {"kind": "linear_greedy", "label": "Greedy"}},
    "studies": {
        "small": {
            "title": "A small study",
            "agents": ["ts", "greedy"],
            "figures": ["nonlinear_regret"],
            "tables": ["final_regret"],
            "scales": {"quick": {"environments": ["near"], "horizon": 12, "seeds": 3, "seeds_per_block": 2}},
        }
    },
}
RUN = "results/quick/runs/near/ts/M0/T12/seeds0-1.nc"
DATASET = "results/quick/datasets/small.nc"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which everything of the small study was made."""
    folder = tmp_path_factory.mktemp("verification")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        config = load(CONFIG)
        for block in config.blocks("small"):
            blocks.run(block.spec, block.path, code=fingerprint(*block.code))
        aggregate(plan(config, "small"), DATASET)
        artefacts = config.artefacts("small")
        draw("nonlinear_regret", DATASET, [path for path in artefacts if "/figures/" in path])
        tabulate("final_regret", DATASET, [path for path in artefacts if "/tables/" in path])
    (folder / "config").mkdir()
    for name in CONFIG_FILES:
        (folder / name).write_text("")
    (folder / CONFIG_FILES[0]).write_text(yaml.safe_dump(CONFIG))
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it to damage, as working directory."""
    shutil.copytree(made, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return tmp_path / "copy"


def found(config: Config | None = None) -> list[tuple[str, str, str]]:
    """(fault, path, reason) of every finding, after a look at all files."""
    config = config or load(CONFIG)
    looked = []
    paths = verification.files(config.results)
    findings = list(verification.verify(config, paths, lambda: looked.append(1)))
    assert len(looked) == len(paths)
    return [(finding.fault, finding.path.as_posix(), finding.reason) for finding in findings]


def test_a_folder_in_order(folder):
    assert found() == []
    assert verification.missing(load(CONFIG)) == {}
    assert len(verification.files("results/quick")) == 4 * 2 + 1 + 2 + 4


def flip(path: str, at: int) -> None:
    content = bytearray(Path(path).read_bytes())
    content[at] ^= 4
    Path(path).write_bytes(content)


@pytest.mark.parametrize("path", [RUN, DATASET])
def test_a_flipped_bit(folder, path):
    flip(path, 3000)
    assert found() == [("broken", path, "damaged (its content differs from its checksum); delete it and run snakemake again")]


@pytest.mark.parametrize("path", [RUN, DATASET, *load(CONFIG).artefacts("small")])
def test_a_file_that_was_cut(folder, path):
    Path(path).write_bytes(Path(path).read_bytes()[:40] if path.endswith((".nc", ".png", ".pdf")) else b"")
    ((fault, where, _),) = found()
    assert (fault, where) == ("broken", path)


def test_values_that_are_not_finite(folder):
    for path in (RUN, DATASET):
        data = read_dataset(path)
        data["regret"].values.flat[3] = np.nan
        write_dataset(data, path)
    (_, *first), (_, *second) = found()
    assert [first[0], second[0]] == [DATASET, RUN]
    assert first[1] == "variable 'regret' is missing, or not finite where something was run"
    assert second[1].startswith("variable 'regret' holds values that are not finite")


def test_a_run_file_that_ends_early(folder):
    write_dataset(read_dataset(RUN).isel(time=slice(0, 5)), RUN)
    ((fault, path, _),) = found()
    assert (fault, path) == ("broken", RUN)


def test_a_run_without_its_record_and_a_record_without_its_run(folder):
    other = RUN.replace("seeds0-1", "seeds2-2")
    Path(RUN).with_suffix(".json").unlink()
    Path(other).unlink()
    assert found() == [
        ("broken", RUN, "seeds0-1.json, its record, is missing"),
        ("orphaned", other.replace(".nc", ".json"), "the record of a run file that is not there"),
    ]
    assert verification.missing(load(CONFIG)) == {"small": [other]}


def test_another_specification_is_told_value_by_value(folder):
    changed = json.loads(json.dumps(CONFIG))
    changed["environments"]["near"]["noise"] = 0.5
    findings = found(load(changed))
    assert {path: (fault, reason) for fault, path, reason in findings}[RUN] == (
        "stale",
        "made from another specification (environment.options.noise: was 1.0, is 0.5)",
    )
    assert [fault for fault, path, _ in findings if path == DATASET] == ["stale"]
    assert len(findings) == 5


def test_other_code(folder):
    write_dataset(read_dataset(RUN).assign_attrs(code="0" * 16), RUN)
    assert found() == [("stale", RUN, "made by other code than the present one")]


def test_other_code_of_a_dataset(folder):
    data = read_dataset(DATASET)
    codes = json.loads(data.attrs["codes"]) | {RUN: "0" * 16}
    write_dataset(data.assign_attrs(codes=json.dumps(codes)), DATASET)
    assert found() == [("stale", DATASET, f"made from runs by other code than the present one ({RUN})")]


def test_a_run_under_the_name_of_another(folder):
    shutil.copyfile(RUN.replace("/ts/", "/greedy/"), RUN)
    assert found() == [("foreign", RUN, f"holds what belongs at {RUN.replace('/ts/', '/greedy/')}")]


def test_a_file_that_holds_no_run(folder):
    write_dataset(read_dataset(RUN).drop_attrs(), RUN)
    assert found() == [("foreign", RUN, "no run file: it holds no specification")]


def test_what_no_study_asks_for(folder):
    fewer = json.loads(json.dumps(CONFIG))
    fewer["studies"]["small"]["agents"] = ["ts"]
    reasons = [(fault, reason) for fault, path, reason in found(load(fewer)) if path.endswith("/greedy/M0/T12/seeds0-1.nc")]
    assert reasons == [("orphaned", "no study of this scale asks for it")]
    del fewer["agents"]["greedy"]
    reasons = [(fault, reason) for fault, path, reason in found(load(fewer)) if path.endswith("/greedy/M0/T12/seeds0-1.nc")]
    assert reasons == [("orphaned", "its environment or agent is not in the configuration any more")]


def test_leftovers(folder):
    for name in (".seeds0-1.x1y2.nc", "seeds0-1.checkpoint", "seeds4-5.checkpoint", "seeds0-1.lease", "seeds4-5.lease"):
        Path(RUN).with_name(name).write_bytes(b"half")
    Path("results/quick/notes.txt").write_text("mine")
    assert [(fault, Path(path).name, reason) for fault, path, reason in found()] == [
        ("orphaned", "notes.txt", "no study of this scale asks for it"),
        ("orphaned", ".seeds0-1.x1y2.nc", "a temporary file whose writer was killed"),
        ("orphaned", "seeds0-1.checkpoint", "a checkpoint of a run that is finished"),
        ("orphaned", "seeds0-1.lease", "a lease of a run that is finished"),
    ]


def test_the_command(folder, capsys):
    assert main(["check"]) == 0
    said = capsys.readouterr()
    assert said.out == "results/quick: 15 files, all in order\n"
    flip(RUN, 3000)
    Path(DATASET).unlink()
    assert main(["check", "results/quick"]) == 1
    first, second, third = capsys.readouterr().out.splitlines()
    assert first.startswith(f"broken: {RUN}: damaged (its content differs from its checksum)")
    assert second == "results/quick: 14 files, 1 broken"
    assert third == f"not made yet: 1 files of study small, {DATASET} for one"
    assert main(["check", RUN.replace("/ts/", "/greedy/")]) == 0
    assert capsys.readouterr().out.endswith("seeds0-1.nc: 1 files, all in order\n")


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("results/none", "results/none: no such file or folder; results lie under results/<scale>"),
        ("config", "config: must lie under results/<scale>"),
        ("results", "results: must lie under results/<scale>"),
    ],
)
def test_what_cannot_be_checked(folder, capsys, path, message):
    assert main(["check", path]) == 1
    assert capsys.readouterr().err == f"error: {message}\n"


def test_published_files_are_whole_or_not(folder):
    (folder / "results/paper-scale").mkdir()
    shutil.copyfile(DATASET, "results/paper-scale/small.nc")
    flip("results/paper-scale/small.nc", 3000)
    ((path, fault, reason),) = verification.verify_published(load(CONFIG), verification.files("results/paper-scale"))
    assert (path.name, fault) == ("small.nc", "broken")
    assert "differs from its checksum" in reason


def test_what_the_project_publishes_is_in_order():
    """Whole, all of it; and studies that were made under other values than the present ones are those that its page names."""
    root = Path(__file__).resolve().parents[2]
    files = verification.files(root / "results/paper-scale")
    assert len(files) > 100
    findings = list(verification.verify_published(read_files(root, scale="paper"), files))
    assert {finding.fault for finding in findings} <= {"stale"}
    page = (root / "results/paper-scale/README.md").read_text()
    named, _, begun = page.partition("\nBegun; ")
    stale = set(re.findall(r"^\* .* \(`([^`]+)`\): ", named, re.MULTILINE))
    assert {finding.path.stem for finding in findings} == stale
    # those of which only some runs are finished have nothing published that could be stale
    packed = {path.name.removesuffix(".tar.xz") for path in (root / "results/paper-scale/runs").glob("*.tar.xz")}
    assert set(re.findall(r"^\* .* \(`([^`]+)`\): \d+ of \d+ runs\.$", begun, re.MULTILINE)) == packed
