"""The real command line: what it writes and prints, and that every fault of a user is one line and exit status 1."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import shutil
import subprocess
import sys
import termios
from pathlib import Path

import pytest
import xarray as xr

from ensemblepp.config.checks import CONFIG_FILES
from ensemblepp.config.loading import read_files
from ensemblepp.runs.by_hand import regret_in_words
from ensemblepp.runs.fingerprint import fingerprint
from ensemblepp.specification import Block
from ensemblepp.storage.datasets import read_json

ROOT = Path(__file__).resolve().parents[1]
LIBRARIES = ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a copy of the shipped configuration, without mirror."""
    monkeypatch.delenv("ENSEMBLEPP_MIRROR", raising=False)
    for name in CONFIG_FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    return tmp_path


def run(folder: Path, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ensemblepp", *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=os.environ | environment, capture_output=True, text=True, check=False)


def fault(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that a command that failed has said."""
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    return line.removeprefix("error: ")


def read(path: Path) -> xr.Dataset:
    with xr.open_dataset(path) as stored:
        return stored.load()


# ------------------------------------------------------------------------------------------------------------ simulate

BY_HAND = ("simulate", "--environment", "finite-d10-100", "--agent", "linear-ensemble++", "--ensemble-size", 4)
RUN = "results/quick/runs/finite-d10-100/linear-ensemble++/M4/T30/seeds2-4.nc"


def block(folder: Path) -> Block:
    return read_files(folder).block("finite-d10-100", "linear-ensemble++", 4, 30, 2, 4)


def test_a_block_by_hand(folder):
    done = run(folder, *BY_HAND, "--horizon", 30, "--seeds", "2-4")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{RUN}\n"
    asked = block(folder)
    stored = read(folder / RUN)
    assert json.loads(stored.attrs["spec"]) == asked.spec
    assert stored.attrs["code"] == fingerprint(*asked.code)
    assert stored["regret"].shape == (5, 6, 3, 30)
    assert stored["seed"].values.tolist() == [2, 3, 4]
    beside = json.loads((folder / RUN).with_suffix(".json").read_text())
    assert {"seconds", "host", "versions"} <= beside.keys()
    # the first run on a machine says that it compiles
    lines = [line for line in done.stderr.splitlines() if ": compiling" not in line]
    # rounds of three seeds, which are played one after the other
    assert [line.split(":")[0] for line in lines[:3]] == ["finite-d10-100 linear-ensemble++ M=4 seeds 2-4"] * 3
    assert [re.search(r"step (\d+)/90", line)[1] for line in lines[:3]] == ["30", "60", "90"]
    assert lines[3:-1] == list(regret_in_words(folder / RUN))
    assert lines[-1] == f"to draw it: python -m ensemblepp plot {RUN}"
    words = lines[-1].partition("ensemblepp ")[2].split()
    done = run(folder, *words)
    assert done.stdout == "regret.png\n", done.stderr
    assert (folder / "regret.png").stat().st_size > 1000


def test_a_block_as_the_workflow_asks_for_it_has_the_same_bytes(folder):
    run(folder, *BY_HAND, "--horizon", 30, "--seeds", "2-4")
    asked = block(folder)
    code = fingerprint(*asked.code)
    done = run(folder, "simulate", "--spec", json.dumps(asked.spec), "--code", code, "--output", "new/run.nc")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "regret" not in done.stderr, "a job of the workflow needs no words"
    assert (folder / "new/run.nc").read_bytes() == (folder / RUN).read_bytes()


def test_another_place_for_the_run_file(folder):
    done = run(folder, "simulate", "--environment", "finite-d10-100", "--agent", "ts", "--horizon", 5, "--output", "mine.nc")
    assert done.stdout == "mine.nc\n"
    assert read(folder / "mine.nc")["seed"].values.tolist() == list(range(10))
    assert not (folder / "results").exists()


def test_a_bar_on_a_terminal(folder):
    watcher, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 120))
    command = [sys.executable, "-m", "ensemblepp", *map(str, BY_HAND), "--horizon", "30"]
    with subprocess.Popen(command, cwd=folder, stderr=terminal, stdout=subprocess.PIPE, text=True) as process:
        os.close(terminal)
        path = process.communicate()[0].strip()
    shown = b""
    with contextlib.suppress(OSError), os.fdopen(watcher, "rb", buffering=0) as file:
        while part := file.read(4096):
            shown += part
    assert process.returncode == 0
    assert read(folder / path).sizes["step"] == 30
    assert re.search(r"\rfinite-d10-100 linear-ensemble\+\+ M=4 seeds 0-9: 100%\|.+\| 300/300 \[", shown.decode())
    assert "s left" not in shown.decode()


SIMULATE = ("simulate", "--environment", "finite-d10-100", "--agent", "ts")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*SIMULATE, "--environment", "mars"), "found 'mars': must be one of environments: finite-d10-100, "),
        ((*SIMULATE, "--agent", "ucb"), "found 'ucb': must be one of agents: ts, "),
        (("simulate", "--agent", "ts"), "--environment: must be given; it is one of finite-d10-100, "),
        ((*SIMULATE, "--ensemble-size", 3), "ensemble size 3: agent 'ts' takes 0, since it has no ensemble"),
        ((*SIMULATE, "--agent", "es"), "ensemble size 0: agent 'es' takes 1 to 1024"),
        ((*SIMULATE, "--seeds", "3"), "--seeds: found '3': must be a range such as 0-9"),
        ((*SIMULATE, "--seeds", "a-b"), "--seeds: found 'a-b': must be a range such as 0-9"),
        ((*SIMULATE, "--seeds", "0-1-2"), "--seeds: found '0-1-2': must be a range such as 0-9"),
        ((*SIMULATE, "--seeds", "9-0"), "seeds 9-0: the last must not be below the first"),
        ((*SIMULATE, "--environment", "mushroom"), "data/prepared/mushroom.nc: no such file; run snakemake to make it"),
        (("aggregate", "--study", "mars", "--output", "a.nc"), "--study: found 'mars': must be one of "),
        (("cost", "--study", "mars"), "--study: found 'mars': must be one of "),
        (("aggregate", "--study", "linear", "--output", "a.nc"), "results/quick/runs/finite-d10-100/ts/M0/"),
        (("figure", "--name", "pie", "--dataset", "a.nc", "a.pdf"), "--name: found 'pie': must be one of "),
        (
            ("figure", "--name", "nonlinear_regret", "--dataset", "a.nc", "a.pdf"),
            "a.nc: no such file; run snakemake to make it",
        ),
        (("table", "--name", "pie", "--dataset", "a.nc", "a.csv"), "--name: found 'pie': must be one of "),
        (("retrieve", "--file", "uci/iris", "--output", "a"), "--file: found 'uci/iris': must be one of uci/"),
        (("prepare", "--dataset", "iris", "--output", "a.nc", "raw"), "--dataset: found 'iris': must be one of mushroom, "),
        (
            ("check-data", "--dataset", "mushroom", "--output", "a.json", "raw"),
            "raw: no such file; `python -m ensemblepp retrieve`",
        ),
        (("report", "--scale", "huge"), "config/config.yaml: scale: found 'huge': input should be 'smoke', 'quick' or 'paper'"),
    ],
)
def test_a_fault_is_one_line(folder, arguments, message):
    before = sorted(folder.rglob("*"))
    assert fault(run(folder, *arguments)).startswith(message)
    assert sorted(folder.rglob("*")) == before, "nothing is written"


def test_without_a_command_or_with_an_unknown_one(folder):
    done = run(folder)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: python -m ensemblepp")
    done = run(folder, "fly")
    assert done.returncode == 2
    assert done.stderr.startswith("error: argument command: found 'fly': must be one of quickstart, ")


# -------------------------------------------------------------------------------------------------------------- config


def test_a_sound_configuration(folder):
    done = run(folder, "config")
    config = read_files(folder)
    assert done.returncode == 0
    assert done.stdout == f"configuration is sound: scale {config.scale}, {len(config.active_studies())} studies\n"


def test_every_fault_of_the_configuration_is_a_line(folder):
    path = folder / "config/config.yaml"
    path.write_text(path.read_text().replace("device: auto", "device: tpu") + "\nspeed: 3\n")
    done = run(folder, "config")
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "error: config/config.yaml: device: found 'tpu': input should be 'auto', 'cpu' or 'cuda'",
        "error: config/config.yaml: speed: unknown key; config/README.md lists the keys",
    ]


def test_a_command_from_the_wrong_folder(tmp_path):
    message = "config/config.yaml: no such file; run from the folder that holds the Snakefile"
    assert fault(run(tmp_path, "config")) == message
    assert fault(run(tmp_path, *SIMULATE)) == message


def test_writing_what_is_generated(folder):
    (folder / "workflow/schemas").mkdir(parents=True)
    shutil.copyfile(ROOT / "config/README.md", folder / "config/README.md")
    done = run(folder, "config", "--write")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == ["workflow/schemas/config.schema.json", "config/README.md"]
    assert (folder / "workflow/schemas/config.schema.json").read_text() == (
        ROOT / "workflow/schemas/config.schema.json"
    ).read_text()


# ----------------------------------------------------------------------------------------------------------- raw files

#: The first row of UCI's mushrooms, as its documentation describes the format.
MUSHROOM = "p,x,s,n,t,p,f,c,n,k,e,e,s,s,w,w,p,w,o,p,k,s,u\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (MUSHROOM * 3, "line 3: the file ends after this line (expected 8,124 lines, found 3)"),
        (MUSHROOM * 2 + MUSHROOM[:17], "line 3: the file is cut inside this line (expected 8,124 whole lines, found "),
        ("", "line 1: the file is empty (expected 8,124 lines, found none)"),
        (MUSHROOM + MUSHROOM.replace("p,x", "z,x"), "line 2: unknown class in field 1 (expected e or p, found 'z')"),
    ],
)
@pytest.mark.parametrize(("command", "output"), [("check-data", "checked.json"), ("prepare", "prepared.nc")])
def test_a_damaged_raw_file(folder, command, output, content, message):
    (folder / "raw.data").write_text(content)
    (folder / output).write_text("what was there")
    done = run(folder, command, "--dataset", "mushroom", "--output", output, "raw.data")
    assert fault(done).startswith(f"raw.data, {message}")
    assert (folder / output).read_text() == "what was there"


def test_whole_raw_files_are_checked_and_prepared(folder, mirror):
    raw = mirror / "uci/agaricus-lepiota.data"
    done = run(folder, "check-data", "--dataset", "mushroom", "--output", "checked.json", raw)
    assert done.returncode == 0, done.stderr
    published = "e65d082030501a3ebcbcd7c9f7c71aa9d28fdfff463bf4cf4716a3fe13ac360e"
    assert read_json(folder / "checked.json") == {"agaricus-lepiota.data": published}
    done = run(folder, "prepare", "--dataset", "mushroom", "--output", "data/prepared/mushroom.nc", raw)
    assert done.returncode == 0, done.stderr
    assert read(folder / "data/prepared/mushroom.nc").sizes["row"] == 8124
    done = run(folder, *SIMULATE, "--environment", "mushroom", "--agent", "greedy", "--horizon", 3, "--seeds", "0-1")
    assert done.returncode == 0, done.stderr
    assert read(folder / done.stdout.strip())["constant_regret"].sizes["action_index"] == 2


def test_a_raw_file_from_the_mirror(folder, mirror):
    done = run(
        folder,
        *("retrieve", "--file", "uci/agaricus-lepiota.data", "--output", "data/raw/mushrooms"),
        ENSEMBLEPP_MIRROR=str(mirror),
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == f"uci/agaricus-lepiota.data: from {mirror}/uci/agaricus-lepiota.data\n"
    assert (folder / "data/raw/mushrooms").read_bytes() == (mirror / "uci/agaricus-lepiota.data").read_bytes()


# ------------------------------------------------------------------------------------------------------------- threads


def exported(folder: Path, *arguments: str, then: str = "") -> list[str]:
    """What a command leaves in its environment as the number of threads of each library, and what `then` prints."""
    script = (
        "import os, sys\n"
        "from ensemblepp.cli import main\n"
        "assert not {'numpy', 'torch'} & set(sys.modules)\n"
        "main(sys.argv[1:])\n"
        f"print(*[os.environ[f'{{name}}_NUM_THREADS'] for name in {LIBRARIES}])\n"
    )
    # what the user's shell says is overruled: the scheduler has counted on --threads
    shell = os.environ | {"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    command = [sys.executable, "-c", script + then, *arguments, "config"]
    done = subprocess.run(command, cwd=folder, env=shell, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.splitlines()[1:]


def test_one_thread_unless_told_otherwise(folder):
    assert exported(folder, then="import torch\nprint(torch.get_num_threads())\n") == ["1 1 1 1 1", "1"]


def test_as_many_threads_as_told(folder):
    assert exported(folder, "--threads", "3") == ["3 3 3 3 3"]


@pytest.mark.parametrize("buffered", [["-u"], []])
def test_a_reader_that_has_seen_enough_is_no_error(buffered):
    """As `| head -1`: what is written after that goes nowhere, and nobody is told."""
    command = [sys.executable, *buffered, "-m", "ensemblepp", "show", "agent", "lmcts", "--environment", "mushroom"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 141
