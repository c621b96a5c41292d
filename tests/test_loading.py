"""No command loads a library that it does not use: loading is most of what a short job takes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from ensemblepp.storage.datasets import write_dataset

HEAVY = {"matplotlib", "numba", "pandas", "pydantic", "scipy", "scipy.stats", "seaborn", "torch", "tqdm", "xarray"}


def loaded(folder: Path, code: str) -> set[str]:
    """Those of `HEAVY` that are loaded when the code has run."""
    script = f"import json, sys\nfrom ensemblepp.cli import main\n{code}\nprint(json.dumps(sorted({HEAVY} & set(sys.modules))))"
    done = subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """A study's dataset: one agent, two seeds."""
    factors = {
        "environment": ["near"],
        "agent": ["greedy"],
        "reference": ["none"],
        "perturbation": ["none"],
        "ensemble_size": [0],
        "seed": [0, 1],
        "time": [50, 100],
    }
    labels = {"title": ("environment", ["Near"]), "label": ("agent", ["Greedy"])}
    regret = np.array([[1.0, 2.0], [2.0, 5.0]]).reshape(1, 1, 1, 1, 1, 2, 2)
    specs = [{"environment": {"name": "near", "kind": "quadratic"}, "agent": {"name": "greedy", "kind": "greedy"}}]
    facts = {"study": "small", "scale": "smoke", "horizon": 100, "seeds": 2, "specs": json.dumps(specs)}
    write_dataset(xr.Dataset({"regret": (tuple(factors), regret)}, factors | labels, facts), tmp_path / "small.nc")
    return tmp_path / "small.nc"


@pytest.mark.parametrize(
    ("command", "made"),
    [
        (["table", "--name", "final_regret", "--dataset", "small.nc", "a.csv", "a.tex"], "a.csv"),
        (["present", "--dataset", "small.nc", "--folder", ".", "--tables", "final_regret"], "tables/small-final_regret.csv"),
    ],
)
def test_a_table(dataset, command, made):
    found = loaded(dataset.parent, f"assert main({command}) == 0")
    # scipy for the t distribution's quantile; pandas looks for matplotlib
    assert found - {"matplotlib"} == {"pandas", "scipy", "xarray"}
    assert (dataset.parent / made).read_text().count("\n") == 2


def test_run_blocks_to_a_dataset(tmp_path):
    assert loaded(tmp_path, "import ensemblepp.runs.aggregate") == {"pandas", "xarray"}


def test_progress_where_nobody_watches(tmp_path):
    code = "from ensemblepp.runs.progress import Progress\nProgress(3, 'counting')"
    assert not loaded(tmp_path, code)


# ------------------------------------------------------------------------------------------------------------- leaving


def test_what_was_printed_is_there_when_the_process_ends(tmp_path):
    """Into a file, where output waits in a buffer; and the status is the command's."""
    with Path(tmp_path, "out").open("wb") as out, Path(tmp_path, "err").open("wb") as err:
        command = [sys.executable, "-m", "ensemblepp", "config"]
        done = subprocess.run(command, cwd=Path(__file__).resolve().parents[1], stdout=out, stderr=err, check=False)
    assert done.returncode == 0, (tmp_path / "err").read_text()
    assert (tmp_path / "out").read_text().startswith("configuration is sound: ")
    with Path(tmp_path, "err").open("wb") as err:
        done = subprocess.run(command, cwd=tmp_path, stderr=err, check=False)
    assert done.returncode == 1
    assert (tmp_path / "err").read_text().startswith("error: config/config.yaml: no such file")


def test_a_closed_output_is_no_fault(tmp_path):
    command = [sys.executable, "-m", "ensemblepp", "config"]
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(command, cwd=root, preexec_fn=lambda: os.close(1), stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
