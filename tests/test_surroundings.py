"""What shells, notebooks and clusters set changes no byte of a run or a figure, and fails none."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from ensemblepp.storage.datasets import write_dataset

ROOT = Path(__file__).parent.parent

#: What they have been seen to set, and users to have left behind.
SURROUNDINGS = {
    # clusters
    **{"OMP_NUM_THREADS": "7", "MKL_NUM_THREADS": "3", "NUMBA_NUM_THREADS": "1", "SLURM_CPUS_PER_TASK": "16"},
    # shells
    **{"PYTHONOPTIMIZE": "2", "PYTHONWARNINGS": "error", "PYTHONHASHSEED": "5", "PYTHONSAFEPATH": "1"},
    **{"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii", "TERM": "dumb", "COLUMNS": "20", "TZ": "Asia/Tokyo"},
    **dict.fromkeys(("HOME", "TMPDIR", "MPLCONFIGDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"), "/nonexistent"),
    # a search for a fault in compiled code
    **{"NUMBA_DISABLE_JIT": "1", "NUMBA_OPT": "0", "NUMBA_BOUNDSCHECK": "1", "NUMBA_LOOP_VECTORIZE": "0"},
    # notebooks
    **{"MPLBACKEND": "module://matplotlib_inline.backend_inline", "MATPLOTLIBRC": "{folder}/matplotlibrc"},
}

BLOCKS = {
    "linear": ("--environment=finite-d10-100", "--agent=linear-ensemble++", "--ensemble-size=4", "--horizon=40"),
    "compiled": ("--environment=quadratic", "--agent=ensemble++", "--ensemble-size=4", "--horizon=140"),
    "stacked": ("--environment=quadratic", "--agent=dropout", "--horizon=140"),
}

FIGURE = """
import matplotlib.pyplot as plt

def draw(dataset):
    figure, axes = plt.subplots()
    axes.plot(dataset["time"], dataset["regret"].squeeze())
    axes.set_xlabel("round")
    return figure
"""


def study() -> xr.Dataset:
    """A dataset of one environment, agent and seed."""
    factors = {"environment": ["near"], "agent": ["ts"], "reference": ["none"], "perturbation": ["none"]}
    coordinates = factors | {"ensemble_size": [0], "seed": [0], "time": [1, 2, 3]}
    regret = np.array([0.5, 0.7, 0.8]).reshape([len(values) for values in coordinates.values()])
    names = {"title": ("environment", ["Near"]), "label": ("agent", ["TS"])}
    specs = [{"environment": {"name": "near", "kind": "linear_finite"}, "agent": {"name": "ts", "kind": "linear_ts"}}]
    facts = {"study": "linear", "scale": "smoke", "seeds": 1, "horizon": 3, "specs": json.dumps(specs)}
    return xr.Dataset({"regret": (tuple(coordinates), regret)}, coordinates | names, facts)


def made(folder: Path, environment: dict[str, str]) -> dict[str, str]:
    """Digests of run files and of a figure that are made with some variables set."""
    folder.mkdir()
    (folder / "matplotlibrc").write_text("axes.xmargin: 0.3\nxtick.minor.visible: True\n", encoding="utf-8")
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    variables = os.environ | {"PYTHONPATH": path} | {name: value.format(folder=folder) for name, value in environment.items()}
    commands = [["simulate", *block, "--seeds=0-1", f"--output={folder / name}.nc"] for name, block in BLOCKS.items()]
    picture = str(folder / "a.png")
    (folder / "surrounded.py").write_text(FIGURE, encoding="utf-8")
    write_dataset(study(), folder / "study.nc")
    commands.append(["figure", "--name=surrounded:draw", f"--dataset={folder / 'study.nc'}", picture])
    for command in commands:
        done = subprocess.run(
            [sys.executable, "-m", "ensemblepp", *command], cwd=ROOT, env=variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
    files = [path for path in folder.iterdir() if path.suffix in (".nc", ".png")]
    assert len(files) == len(BLOCKS) + 2
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


@pytest.mark.thorough
def test_nothing_around_changes_a_byte(tmp_path):
    assert made(tmp_path / "odd", SURROUNDINGS) == made(tmp_path / "plain", {})
