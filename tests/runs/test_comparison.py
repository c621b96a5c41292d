"""A comparison in Python: the run files that the workflow makes, to the last bit, whatever interrupts it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import ensemblepp
from ensemblepp import compare
from ensemblepp.config.fields import canonical_json
from ensemblepp.config.loading import load, read_files
from ensemblepp.config.shipped import shipped
from ensemblepp.errors import ConfigError, DataError
from ensemblepp.runs import comparison
from ensemblepp.runs.aggregate import aggregate
from ensemblepp.runs.fingerprint import fingerprint
from ensemblepp.runs.job import StoppedError
from ensemblepp.runs.plan import plan
from ensemblepp.specification import Block
from ensemblepp.storage.datasets import read_dataset
from ensemblepp.warm_start import VARIABLE

ROOT = Path(__file__).resolve().parents[2]
LINEAR = "ensemble++-only-gaussian-sphere"

#: An agent of the user's in a file beside the script.
UNIFORM = """
import numpy as np

from ensemblepp import generator


class Uniform:
    chains = (("none", "none"),)

    def __init__(self, seeds, *, dimension, ensemble_size, horizon, device, broken=False):
        self.seeds, self.broken = tuple(seeds), broken
        self._sources = [generator(seed, "agent") for seed in self.seeds]

    def act(self, decisions):
        actions = decisions.features.shape[1]
        return decisions.choose(np.array([[source.integers(actions)] for source in self._sources]))

    def update(self, choice, reward):
        if self.broken:
            from ensemblepp.errors import ConfigError

            raise ConfigError("it broke")
"""


@pytest.fixture(autouse=True, scope="module")
def _warm() -> Iterator[None]:
    """One process that has libraries loaded, for the jobs of all tests."""
    with comparison.surroundings(warm=True):
        yield


def finished(folder: Path) -> list[Path]:
    """Run files with what stands beside them, which is written last."""
    return [path.with_suffix(".nc") for path in sorted(folder.glob("runs/**/[!.]*.json"))]


def run_files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in finished(folder)}


def as_the_rule_does(block: Block, output: Path) -> None:
    """What workflow/rules/simulate.smk runs."""
    job = ["simulate", "--spec", canonical_json(block.spec), "--code", fingerprint(*block.code), "--output", str(output)]
    subprocess.run([sys.executable, "-m", "ensemblepp", "--threads", "1", *job], check=True, capture_output=True)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The run files that are made from now on."""
    made, job = [], comparison._job

    def noted(block, *others):
        made.append(block.path)
        return job(block, *others)

    monkeypatch.setattr(comparison, "_job", noted)
    return made


@pytest.mark.parametrize(
    ("environment", "agents", "engines"),
    [
        ("finite-d10-100", {LINEAR: 4, "greedy": 0}, ["linear_compiled", "step_by_step"]),
        ("quadratic", {"ensemble++": 4}, ["neural_compiled"]),
    ],
)
def test_run_files_are_those_of_the_configuration(tmp_path, environment, agents, engines):
    """Bit for bit, and however seeds are cut into blocks."""
    found = compare(list(agents), environment, 140, 2, ensemble_sizes=4, folder=tmp_path / "python", device="cpu")
    config = read_files(ROOT, device="cpu")
    for (agent, size), engine in zip(agents.items(), engines, strict=True):
        block = config.block(environment, agent, size, 140, 0, 1)
        assert block.spec["engine"] == engine
        as_the_rule_does(block, tmp_path / "literal.nc")
        path = tmp_path / "python" / Path(block.path).relative_to(config.results)
        assert path.read_bytes() == (tmp_path / "literal.nc").read_bytes()
        assert path.with_suffix(".json").exists()
    alone = compare(list(agents), environment, 140, 2, ensemble_sizes=4, seeds_per_block=1, device="cpu", progress=False)
    xr.testing.assert_equal(found, alone)


def test_the_dataset_is_the_one_of_a_study(tmp_path):
    compare(["ts", "es"], "finite-d10-100", 30, 4, ensemble_sizes=[2, 4], seeds_per_block=2, folder=tmp_path / "python")
    grid = {"environments": ["finite-d10-100"], "horizon": 30, "seeds": 4, "ensemble_sizes": [2, 4], "seeds_per_block": 2}
    study = {"title": "Comparison", "agents": ["ts", "es"], "scales": {"quick": grid}}
    planned = plan(load(shipped() | {"studies": {"mine": study}}), "mine")
    aggregate(planned | {"results": str(tmp_path / "python")}, tmp_path / "study.nc")
    study, found = read_dataset(tmp_path / "study.nc"), read_dataset(tmp_path / "python" / comparison.DATASET)
    xr.testing.assert_equal(study, found)
    assert found.attrs["specs"] == study.attrs["specs"]
    assert found.sizes["seed"] == 4
    assert found["ensemble_size"].values.tolist() == [0, 2, 4]


def test_only_what_is_new_is_made(tmp_path, monkeypatch):
    compare(["ts"], "finite-d10-100", 20, 2, folder=tmp_path, seeds_per_block=1)
    made = counted(monkeypatch)
    compare(["ts"], "finite-d10-100", 20, 2, folder=tmp_path, seeds_per_block=1)
    assert made == []
    compare(["ts", "linear-greedy"], "finite-d10-100", 20, 3, folder=tmp_path, seeds_per_block=1)
    folder = f"{tmp_path}/runs/finite-d10-100"
    greedy = [f"{folder}/linear-greedy/M0/T20/seeds{seed}-{seed}.nc" for seed in range(3)]
    assert sorted(made) == sorted([f"{folder}/ts/M0/T20/seeds2-2.nc", *greedy])
    made.clear()
    damaged = Path(greedy[1])
    damaged.write_bytes(damaged.read_bytes()[:-9])
    Path(greedy[2]).with_suffix(".json").unlink()
    compare(["ts", "linear-greedy"], "finite-d10-100", 20, 3, folder=tmp_path, seeds_per_block=1)
    assert sorted(made) == greedy[1:]


def test_a_list_of_seeds(tmp_path):
    found = compare(["ts"], "finite-d10-100", 20, np.array([7, 3]), folder=tmp_path)
    assert found["seed"].values.tolist() == [3, 7]
    whole = compare(["ts"], "finite-d10-100", 20, 8)
    np.testing.assert_array_equal(found["regret"], whole["regret"].sel(seed=[3, 7]))


def test_killed_and_resumed_equals_uninterrupted(tmp_path, monkeypatch):
    options = {"seeds_per_block": 1, "workers": 1}
    compare([LINEAR], "finite-d10-100", 400, 6, folder=tmp_path / "whole", **options)
    with monkeypatch.context() as alone:
        alone.delenv(VARIABLE)
        script = (
            f"from ensemblepp import compare; compare([{LINEAR!r}], 'finite-d10-100', 400, 6, folder='killed', **{options})"
        )
        process = subprocess.Popen([sys.executable, "-c", script], cwd=tmp_path, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 300
    while len(finished(tmp_path / "killed")) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (tmp_path / "killed" / comparison.DATASET).exists(), "killed too late to show anything"
    kept = {path: path.stat().st_mtime_ns for path in finished(tmp_path / "killed")}
    assert kept
    compare([LINEAR], "finite-d10-100", 400, 6, folder=tmp_path / "killed", **options)
    assert run_files(tmp_path / "killed") == run_files(tmp_path / "whole")
    assert len(run_files(tmp_path / "whole")) == 6
    assert {path: path.stat().st_mtime_ns for path in kept} == kept, "what was finished is not made again"


def test_a_class_of_ones_own_and_one_that_fails(tmp_path, monkeypatch):
    (tmp_path / "uniform_of_mine.py").write_text(UNIFORM)
    monkeypatch.syspath_prepend(tmp_path)
    # one that knows where this module lies
    monkeypatch.delenv(VARIABLE)
    from uniform_of_mine import Uniform

    folder = tmp_path / "runs-of-mine"
    found = compare(["ts", Uniform], "finite-d10-100", 40, 2, folder=folder)
    assert found["agent"].values.tolist() == ["ts", "uniform"]
    regret = found["regret"].isel(time=-1).max(["environment", "reference", "perturbation", "ensemble_size"]).mean("seed")
    assert float(regret.sel(agent="uniform")) > 2 * float(regret.sel(agent="ts"))
    with pytest.raises(StoppedError, match=r"^it broke$"):
        compare(
            {"broken": (Uniform, {"broken": True}), "linear greedy": "linear-greedy"}, "finite-d10-100", 40, 2, folder=folder
        )
    assert list((folder / "runs/finite-d10-100/own-linear-greedy").rglob("*.nc")), "the others are finished"
    defined_here = type("Here", (), {"__module__": "__main__", "__qualname__": "Here"})
    with pytest.raises(ConfigError, match=r"^Here: defined in a notebook, .*put it into a file, as here\.py"):
        compare([defined_here], "finite-d10-100", 40, 2)


def test_classes_and_kinds_of_the_package_are_the_same():
    by_name = compare([LINEAR], "finite-d10-100", 20, 2, progress=False)
    laws = {"references": ["gaussian"], "perturbations": ["sphere"]}
    by_kind = {"by kind": ("linear_ensemblepp", laws), "by class": (ensemblepp.LinearEnsemblePlusPlus, laws)}
    finite = ("linear_finite", {"dimension": 10, "actions": 100})
    found = compare(by_kind, finite, 20, 2, progress=False)
    for agent in ("by-kind", "by-class"):
        np.testing.assert_array_equal(found["regret"].sel(agent=agent), by_name["regret"].sel(agent=LINEAR))
    assert found["label"].values.tolist() == ["by kind", "by class"]


def frame() -> pd.DataFrame:
    source = np.random.default_rng(0)
    kinds = source.integers(3, size=90)
    return pd.DataFrame(
        {"size": kinds + 0.1 * source.normal(size=90), "colour": np.array(["a", "b", "c"])[kinds], "kind": kinds}
    )


def test_a_table_as_file_frame_and_array(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = frame()
    table.to_csv("flowers.csv", index=False)
    quick = [("greedy", {"warm_up": 20})]
    found = compare(quick, {"table": "flowers.csv", "label": "kind"}, 80, 2, folder="kept", progress=False)
    assert found["environment"].values.tolist() == ["flowers"]
    assert found["constant_regret"].sizes["action_index"] == 3
    again = compare(quick, {"table": table, "label": "kind"}, 80, 2, progress=False)
    np.testing.assert_array_equal(again["regret"], found["regret"])
    numbers = {"table": table[["size"]].to_numpy(), "label": table["kind"]}
    array = compare(quick, numbers, 80, 2, progress=False)
    alone = compare(quick, {"table": "flowers.csv", "label": "kind", "features": ["size"]}, 80, 2, progress=False)
    np.testing.assert_array_equal(array["regret"], alone["regret"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["flowers.csv", "kept"], "nothing is left elsewhere"


def test_an_edited_table_is_played_anew(tmp_path, monkeypatch):
    table = frame()
    compare(["linear-greedy"], {"table": table, "label": "kind"}, 30, 2, folder=tmp_path)
    made = counted(monkeypatch)
    compare(["linear-greedy"], {"table": table, "label": "kind"}, 30, 2, folder=tmp_path)
    assert made == []
    table.loc[0, "size"] = 9.0
    compare(["linear-greedy"], {"table": table, "label": "kind"}, 30, 2, folder=tmp_path)
    assert len(made) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((["tss"], "finite-d10-100", 10), "agents: found 'tss': must be one of ts, "),
        ((["ts"], "finite-d10", 10), "environments: found 'finite-d10': must be one of finite-d10-100, "),
        (("ts", "finite-d10-100", 10), "agents: found 'ts': must be a list of agents, or a mapping of labels to agents"),
        (([3], "finite-d10-100", 10), "agents: found 3: must be a name, a class, or (kind, options) or (class, options)"),
        (([("tss", {})], "finite-d10-100", 10), "agents: found kind 'tss': must be one of linear_ts, "),
        (([("linear_ts", {"prior": 1})], "finite-d10-100", 10), "agents.linear-ts.prior: unknown key; config/README.md"),
        ((["linucb"], "sphere-d10", 10), "environments: found 'sphere-d10': agent 'linucb' needs a finite decision set"),
        ((["ts"], "finite-d10-100", 0), "horizon: found 0: "),
        ((["ts"], "finite-d10-100", 10, 0), "seeds: found 0: must be a number of at least 1, or a list of whole numbers"),
        ((["ts", "ts"], "finite-d10-100", 10), "agents: found ['ts', 'ts']: each name only once"),
        ((["ts"], {"table": "x.csv"}, 10), "environment: label: must be given, as in {'table': 'wine.csv', 'label': 'kind'}"),
        ((["ts"], {"table": "x.txt", "label": "kind"}, 10), "environment: table: found 'x.txt': must end in .csv, "),
        ((["ts"], {"table": [[1.0]], "label": [1, 2]}, 10), "environment: table: must be a file, a data frame, or an array "),
        ((["ts"], {"table": frame(), "label": "kind", "nose": 1}, 10), "environment: nose: must be one of table, label, "),
        ((["ts"], {"table": frame(), "label": "kind", "noise": -1}, 10), "environment: noise: found -1: "),
        ((["greedy"], {"table": frame(), "label": "kind"}, 91), "horizon: found 91: environment 'table' can be played for 90"),
    ],
)
def test_what_is_refused(tmp_path, arguments, message):
    with pytest.raises(ConfigError) as error:
        compare(*arguments, folder=tmp_path / "never")
    assert str(error.value).startswith(message), str(error.value)
    assert not list(tmp_path.glob("never/runs"))


def test_files_that_are_missing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r"^data/\S+: no such file; in the repository, `snakemake --cores all data/"):
        compare(["ensemble++"], "moderation-minilm", 10, 2)
    with pytest.raises(DataError, match=r"^absent\.csv: no such file$"):
        compare(["ensemble++"], {"table": "absent.csv", "label": "kind"}, 10, 2)


def test_data_of_the_shipped_configuration_are_brought(tmp_path, monkeypatch, mirror):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ENSEMBLEPP_MIRROR", str(mirror))
    found = compare(["linear-greedy"], "mushroom", 10, 2, progress=False)
    assert Path("data/prepared/mushroom.nc").exists()
    spec = json.loads(found.attrs["specs"])[0]
    assert spec["environment"]["options"]["inputs"] == {"data": "data/prepared/mushroom.nc"}


def test_it_says_how_far_it_is(capfd):
    compare(["ts"], "finite-d10-100", 20, 2, seeds_per_block=1)
    said = capfd.readouterr().err.splitlines()
    assert said[-1].startswith("comparison: step 40/40 (100 %)")
    compare(["ts"], "finite-d10-100", 20, 2, progress=False)
    assert capfd.readouterr().err == ""
