"""An edit between the plan of a job and its end is noticed, even one that is taken back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ensemblepp.errors import ResultError
from ensemblepp.runs.fingerprint import current, fingerprint
from ensemblepp.runs.sources import unedited


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module of the user's, of which another one is part."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "of_mine.py").write_text("import beside_mine\nRATE = beside_mine.RATE\n", encoding="utf-8")
    (tmp_path / "beside_mine.py").write_text("RATE = 1\n", encoding="utf-8")
    yield tmp_path
    # modules of these names are others in the next test
    (tmp_path / "of_mine.py").unlink()
    current("ensemblepp.errors")


def test_unedited_sources_are_no_matter(own):
    output = own / "run.nc"
    with unedited(current("of_mine"), ["of_mine"], [output]):
        output.touch()
    assert output.exists()


@pytest.mark.parametrize("edited", ["of_mine.py", "beside_mine.py"])
def test_an_edit_before_the_job_starts(own, edited):
    code = current("of_mine")
    (own / edited).write_text((own / edited).read_text() + "MORE = 2\n", encoding="utf-8")
    said = r"run\.nc: not made, as its code was edited since this job was planned"
    with pytest.raises(ResultError, match=said), unedited(code, ["of_mine"], [own / "run.nc"]):
        pytest.fail("it must not run")
    # what is kept is not what is asked for
    assert fingerprint("of_mine") == current("of_mine") != code


def test_an_edit_while_it_runs(own):
    outputs = [own / "run.nc", own / "run.json"]

    def make() -> None:
        with unedited(current("of_mine"), ["of_mine"], outputs):
            outputs[0].touch()
            (own / "beside_mine.py").write_text("RATE = 2\n", encoding="utf-8")

    with pytest.raises(ResultError, match=r"run\.nc: removed, as its code was edited while it was made"):
        make()
    assert not outputs[0].exists()


def test_a_comment_is_no_edit(own):
    code = current("of_mine")
    with unedited(code, ["of_mine"], [own / "run.nc"]):
        (own / "beside_mine.py").write_text("RATE = 1  # as ever\n", encoding="utf-8")
    assert current("of_mine") == code


def test_a_file_of_equal_size_and_time_is_read_again(own):
    """As an edit within the resolution of a clock, or a copy that keeps times."""
    path = own / "beside_mine.py"
    code, times = current("of_mine"), path.stat()
    path.write_text("RATE = 2\n", encoding="utf-8")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert current("of_mine") != code


def test_without_a_fingerprint_nothing_is_asked(own):
    with unedited("", ["no_such_module"], [own / "run.nc"]):
        pass


BLOCK = {
    "environment": {"name": "quadratic", "kind": "quadratic", "options": {}},
    "agent": {"name": "ucb", "kind": "linear_ucb", "options": {}},
    "engine": "step_by_step",
    "ensemble_size": 0,
    "horizon": 20,
    "seeds": [0, 1],
    "device": "cpu",
}

#: Other names of outputs.
OUT = {"check-data": "out.json"}

EMBED = "--prepared README.md --folder . --posts 2 --pooling mean --max-tokens 9"


@pytest.mark.parametrize(
    ("command", "options", "output"),
    [
        ("simulate", ["--spec", json.dumps(BLOCK)], "--output"),
        ("aggregate", ["--study", "linear"], "--output"),
        ("prepare", ["--dataset", "mushroom", "README.md"], "--output"),
        ("check-data", ["--dataset", "mushroom", "README.md"], "--output"),
        ("embed", EMBED.split(), "--output"),
        ("language-model", ["--spec", json.dumps({"source": "folder", "location": ".", "pooling": "mean"})], "--folder"),
        ("present", ["--dataset", "README.md", "--figures", "linear_regret"], "--folder"),
    ],
)
def test_commands_refuse_other_code(tmp_path, command, options, output):
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "ensemblepp",
            command,
            *options,
            "--code",
            "0" * 16,
            output,
            str(tmp_path / OUT.get(command, "out.nc")),
        ],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "not made, as its code was edited since this job was planned" in done.stderr
    assert not list(tmp_path.iterdir())
