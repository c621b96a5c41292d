"""Run blocks: the same bytes twice, the same numbers in any block, paired comparisons, and what is said when one fails."""

import json
import math
import os
import platform
import subprocess
import sys
from importlib.metadata import version

import numpy as np
import pytest
import torch
import xarray as xr
from killed import EveryFourth

from ensemblepp.engines import step_by_step
from ensemblepp.environments.linear_finite import LinearFinite
from ensemblepp.errors import ConfigError, TrainingError
from ensemblepp.randomness.distributions import LAWS
from ensemblepp.runs import block as blocks
from ensemblepp.runs.block import run
from ensemblepp.runs.progress import Progress
from ensemblepp.storage.datasets import read_dataset, read_json, write_dataset
from ensemblepp.trajectory import time_grid

torch.set_num_threads(1)

LINEAR = {"dimension": 5, "actions": 20, "feature_bound": 5**-0.5, "prior_variance": 10.0, "noise": 1.0}
TRAINING = {
    "hidden": [16, 16],
    "learning_rate": 0.003,
    "batch_size": 32,
    "weight_decay": 0.01,
    "buffer_capacity": 100,
    "gradient_steps": 3,
    "warm_up": 20,
}
SCALES = {
    "prior_scale": 1.0,
    "posterior_scale": 0.1,
    "perturbation_scale": 0.01,
    "references": ["sphere"],
    "perturbations": ["sphere"],
    "update": "coordinate",
}

#: Kind, engine on the bandit that it is played on here, and options.
AGENTS = {
    "ts": ("linear_ts", "linear_compiled", {"prior_variance": 10.0}),
    "linear-ensemble++": (
        "linear_ensemblepp",
        "linear_compiled",
        {"references": list(LAWS), "perturbations": list(LAWS), "prior_variance": 10.0},
    ),
    "greedy": ("greedy", "neural_compiled", TRAINING),
    "ensemble++": ("neural_ensemblepp", "neural_compiled", TRAINING | SCALES),
}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A contextual bandit of 150 rows: two numbers and a constant, three classes by the angle of the two."""
    path = tmp_path_factory.mktemp("data") / "table.nc"
    points = np.random.default_rng(0).standard_normal((150, 2))
    angle = np.arctan2(points[:, 1], points[:, 0])
    values = np.column_stack([points, np.ones(150)])
    label = np.floor((angle + math.pi) / (2 * math.pi / 3)).astype(np.int8).clip(0, 2)
    write_dataset(xr.Dataset({"value": (("row", "attribute"), values), "label": ("row", label)}), path)
    return path


def linear_spec(agent: str, seeds: tuple[int, int], size: int, horizon: int = 100, **options) -> dict:
    """A block's resolved specification on a small linear bandit."""
    world = {"name": "small", "kind": "linear_finite", "options": LINEAR}
    return spec(world, agent, seeds, size, horizon, options)


def table_spec(table, agent: str, seeds: tuple[int, int], size: int, horizon: int = 120, **options) -> dict:
    """The same on the contextual bandit, with two passes and reward noise."""
    arguments = {"inputs": {"data": str(table)}, "coding": "onehot", "noise": 0.1, "passes": 2}
    world = {"name": "table", "kind": "classification", "options": arguments}
    return spec(world, agent, seeds, size, horizon, options)


def spec(world: dict, agent: str, seeds: tuple[int, int], size: int, horizon: int, options: dict) -> dict:
    kind, engine, defaults = AGENTS[agent]
    # the engines record no diagnostics
    engine = "step_by_step" if options.get("track_covariance") else engine
    return {
        "environment": world,
        "agent": {"name": agent, "kind": kind, "options": defaults | options},
        "engine": engine,
        "ensemble_size": size,
        "horizon": horizon,
        "seeds": list(seeds),
        "device": "cpu",
    }


def result(specification: dict, folder, name: str = "run") -> xr.Dataset:
    run(specification, folder / f"{name}.nc", code="fingerprint")
    return read_dataset(folder / f"{name}.nc")


@pytest.mark.parametrize(("agent", "size"), [("ts", 0), ("linear-ensemble++", 4), ("greedy", 0), ("ensemble++", 4)])
def test_two_runs_are_the_same_bytes(agent, size, table, tmp_path):
    linear = agent in ("ts", "linear-ensemble++")
    specification = linear_spec(agent, (0, 2), size) if linear else table_spec(table, agent, (0, 2), size)
    for name in ("first.nc", "second.nc"):
        run(specification, tmp_path / name, code="fingerprint")
    assert (tmp_path / "first.nc").read_bytes() == (tmp_path / "second.nc").read_bytes()


def halves(make, folder) -> tuple[xr.Dataset, xr.Dataset]:
    """Seeds 0..3 in one block, and 0..1 and 2..3 in two, joined."""
    whole = result(make((0, 3)), folder, "whole")
    parts = [result(make(seeds), folder, f"part{seeds[0]}") for seeds in ((0, 1), (2, 3))]
    return whole, xr.concat(parts, "seed", coords="minimal", compat="equals", join="exact", combine_attrs="drop")


@pytest.mark.parametrize(("agent", "size"), [("ts", 0), ("linear-ensemble++", 3), ("linear-ensemble++", 70)])
def test_linear_runs_do_not_depend_on_their_block(agent, size, tmp_path):
    """Every number of every seed is equal to the last bit."""
    whole, joined = halves(lambda seeds: linear_spec(agent, seeds, size), tmp_path)
    assert whole.equals(joined)


@pytest.mark.parametrize(("agent", "size"), [("greedy", 0), ("ensemble++", 4)])
def test_neural_runs_do_not_depend_on_their_block(agent, size, table, tmp_path):
    """300 gradient steps: the same action in every round, hence all the same numbers.

    A library may sum a batched product of another size in another order (tests/agents/test_neural.py bounds what that does
    to the parameters); a choice could then part where two scores are that close.
    """
    whole, joined = halves(lambda seeds: table_spec(table, agent, seeds, size), tmp_path)
    assert whole.equals(joined)
    assert len(np.unique(whole["action"])) == 3


def test_blocks_of_the_same_seeds_with_other_agents_meet_the_same_environment(table, tmp_path):
    """What always playing one class would have cost, round by round, is the same under every agent and ensemble size."""
    runs = [
        result(table_spec(table, agent, (0, 1), size), tmp_path, f"{agent}{size}")
        for agent, size in (("greedy", 0), ("ensemble++", 2), ("ensemble++", 8))
    ]
    for other in runs[1:]:
        assert np.array_equal(other["constant_regret"], runs[0]["constant_regret"])
        assert not np.array_equal(other["action"].values, runs[0]["action"].values)


def test_linear_comparisons_are_paired(tmp_path):
    """TS and Ensemble++ at two M, 25 chains each: actions, regret and rewards of the files fit one environment, one noise.

    The noise is read off the files as reward minus the chosen action's mean; rewards are stored cumulated in float32, so
    it is known to about 1e-4.
    """
    environment = LinearFinite(range(2), **LINEAR)
    means = environment.mean_rewards()
    noises = []
    for agent, size in (("ts", 0), ("linear-ensemble++", 2), ("linear-ensemble++", 16)):
        data = result(linear_spec(agent, (0, 1), size), tmp_path, f"{agent}{size}")
        for reference in data["reference"].values:
            for perturbation in data["perturbation"].values:
                chain = data.sel(reference=reference, perturbation=perturbation)
                chosen = np.take_along_axis(means, chain["action"].values, axis=1)
                gaps = means.max(axis=1, keepdims=True) - chosen
                np.testing.assert_allclose(chain["regret"], gaps.cumsum(axis=1), rtol=1e-5, atol=1e-5)
                noises.append(np.diff(chain["reward"].values.astype(float), prepend=0.0) - chosen)
    assert len(noises) == 51
    for noise in noises[1:]:
        np.testing.assert_allclose(noise, noises[0], atol=1e-4)
    assert 0.8 < np.std(noises[0]) < 1.2


def test_chains_lie_where_their_laws_say(tmp_path):
    """The slice (cube, sparse) of the 25-pair file is the run of that pair alone."""
    whole = result(linear_spec("linear-ensemble++", (0, 2), 4), tmp_path, "whole")
    pair = {"references": ["cube"], "perturbations": ["sparse"]}
    alone = result(linear_spec("linear-ensemble++", (0, 2), 4, **pair), tmp_path, "alone")
    part = whole.sel(reference=["cube"], perturbation=["sparse"])
    assert part.drop_attrs().equals(alone.drop_attrs())
    assert not np.array_equal(part["action"], whole.sel(reference=["sparse"], perturbation=["cube"])["action"])


def test_contents_of_a_run_file(table, tmp_path):
    """Dimensions, coordinates and attributes; cumulative numbers end at the horizon; nothing that varies from run to run."""
    specification = table_spec(table, "ensemble++", (3, 5), 4)
    data = result(specification, tmp_path)
    times = time_grid(120, coarse=True).tolist()
    sizes = {"seed": 3, "time": len(times), "step": 120, "action_index": 3}
    assert dict(data.sizes) == {"reference": 1, "perturbation": 1} | sizes
    assert data["seed"].values.tolist() == [3, 4, 5]
    assert (data["reference"].item(), data["perturbation"].item()) == ("sphere", "sphere")
    assert data["time"].values.tolist() == times
    assert data["regret"].dims == ("reference", "perturbation", "seed", "time")
    assert {name: data[name].dtype.name for name in ("regret", "reward", "optimal", "action")} == {
        "regret": "float32",
        "reward": "float32",
        "optimal": "int32",
        "action": "int32",
    }
    # regret is 1 per wrong class, so right rounds and regret add up to the time
    assert (data["optimal"] + data["regret"] == data["time"]).all()
    assert not {"tracking_low", "tracking_high"} & set(data)
    assert set(data.attrs) == {"spec", "code", "device"}
    assert json.loads(data.attrs["spec"]) == specification
    assert (data.attrs["code"], data.attrs["device"]) == ("fingerprint", "cpu")


def test_what_an_agent_says_of_itself_stands_in_the_run_file(tmp_path):
    """Diagnostics beside regret, at the same thinned times; the choices are those of a run without them."""
    told = result(linear_spec("linear-ensemble++", (0, 1), 12, horizon=150, track_covariance=True), tmp_path, "told")
    plain = result(linear_spec("linear-ensemble++", (0, 1), 12, horizon=150, precision="float64"), tmp_path, "plain")
    assert told["regret"].dims == told["tracking_low"].dims == ("reference", "perturbation", "seed", "time")
    assert told["tracking_low"].dtype == told["tracking_high"].dtype == np.float32
    assert told["tracking_low"].attrs["long_name"] == "tracking low"
    assert (told["tracking_low"] > 0).all()
    assert (told["tracking_low"] <= told["tracking_high"]).all()
    assert told.sizes["time"] < 120 < plain.sizes["time"]
    assert np.array_equal(told["action"], plain["action"])
    np.testing.assert_allclose(told["regret"], plain["regret"].sel(time=told["time"]), rtol=1e-6, atol=1e-5)


def test_a_block_of_many_chains_is_stored_on_the_coarse_grid(tmp_path):
    """25 pairs x 401 rounds are more than 10,000 entries; the actions stay."""
    data = result(linear_spec("linear-ensemble++", (0, 0), 4, horizon=401), tmp_path)
    assert data.sizes["time"] < 120
    assert data["time"].values[[0, -1]].tolist() == [1, 401]
    assert data.sizes["step"] == 401


def test_what_varies_from_run_to_run_stands_in_a_json_file(tmp_path):
    run(linear_spec("ts", (0, 0), 0), tmp_path / "run.nc")
    record = read_json(tmp_path / "run.json")
    costs = {"cpu_seconds", "peak_memory_mb", "seconds", "seconds_per_step"}
    assert set(record) == {"commit", "finished", "host", "python", "versions"} | costs
    assert min(record[name] for name in costs) > 0
    assert record["host"] == platform.node()
    assert record["python"] == platform.python_version()
    assert record["seconds"] > 0
    assert record["seconds_per_step"] == pytest.approx(record["seconds"] / 100)
    assert record["versions"].keys() >= {"ensemblepp", "numba", "numpy", "torch"}
    assert all(found == version(name) for name, found in record["versions"].items())


@pytest.mark.parametrize(("written", "left"), [("write_dataset", set()), ("write_json", {"run.nc"})])
def test_the_json_file_never_stands_alone(written, left, tmp_path, monkeypatch):
    """It is written last: a run that is killed as it writes either file leaves nothing, or the run file."""

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(blocks, written, killed)
    with pytest.raises(KeyboardInterrupt):
        run(linear_spec("ts", (0, 0), 0), tmp_path / "run.nc")
    assert {path.name for path in tmp_path.iterdir()} == left


def test_training_that_left_the_real_numbers_names_agent_seed_and_step(table, tmp_path):
    """A learning rate of 1e30 on linear heads; no file is left that a later job could take for a result."""
    specification = table_spec(table, "ensemble++", (6, 7), 4, learning_rate=1e30, hidden=[], gradient_steps=1)
    with pytest.raises(
        TrainingError, match=r"^NeuralEnsemblePlusPlus: the loss of seed 6, 7 is not finite at step 22; a smaller"
    ):
        run(specification, tmp_path / "run.nc")
    assert list(tmp_path.glob("run*")) == []


def test_a_horizon_beyond_the_data_is_refused(table, tmp_path):
    """150 rows x 2 passes."""
    with pytest.raises(ConfigError, match=r"round 301 is beyond the data: 150 rows x 2 pass\(es\)"):
        run(table_spec(table, "greedy", (0, 0), 0, horizon=301, warm_up=400), tmp_path / "run.nc")
    assert list(tmp_path.glob("run*")) == []


def test_a_log_tells_the_progress(table, tmp_path, capsys):
    """Not a terminal: a line per 10 % on standard error, of rounds summed over seeds, told at every stored time."""
    with Progress(200, "table greedy") as progress:
        run(table_spec(table, "greedy", (0, 1), 0, horizon=100), tmp_path / "run.nc", on_step=progress.step)
    lines = capsys.readouterr().err.splitlines()
    stored = time_grid(100, coarse=True)
    reached = [int(stored[stored >= share][0]) for share in range(10, 101, 10)]
    assert [line.partition(" %)")[0] for line in lines] == [f"table greedy: step {2 * step}/200 ({step}" for step in reached]


def test_a_linear_agent_tells_its_progress_seed_by_seed(tmp_path, capsys):
    with Progress(400, "small ts") as progress:
        run(linear_spec("ts", (0, 3), 0), tmp_path / "run.nc", on_step=progress.step)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(" %)")[0] for line in lines] == [
        f"small ts: step {100 * seed}/400 ({25 * seed}" for seed in range(1, 5)
    ]


def test_a_linear_run_without_the_gpu_it_asks_for_names_the_setting(monkeypatch, tmp_path):
    """Linear agents follow `linear_device`."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match=r"linear_device.*found 'cuda': torch sees no GPU here"):
        run(linear_spec("ts", (0, 0), 0) | {"device": "cuda"}, tmp_path / "run.nc")


def test_a_linear_run_does_not_import_torch(tmp_path):
    """On "cpu" torch need not even be there."""
    script = (
        "import json, sys\nsys.modules['torch'] = None\nfrom ensemblepp.runs.block import run\n"
        "run(json.loads(sys.argv[1]), 'run.nc')\nassert sys.modules['torch'] is None\n"
    )
    command = [sys.executable, "-c", script, json.dumps(linear_spec("ts", (0, 0), 0, horizon=2))]
    subprocess.run(command, cwd=tmp_path, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}, check=True)
    assert (tmp_path / "run.nc").exists()


def test_the_engine_that_a_specification_names_plays(tmp_path, monkeypatch):
    """Whatever else might: the specification says so. The same game either way."""
    compiled = result(linear_spec("ts", (0, 0), 0, horizon=30), tmp_path, "compiled")
    played = []
    monkeypatch.setattr(step_by_step, "play", lambda *args, play=step_by_step.play: played.append(1) or play(*args))
    steps = result(linear_spec("ts", (0, 0), 0, horizon=30) | {"engine": "step_by_step"}, tmp_path, "steps")
    assert played
    assert np.array_equal(steps["action"], compiled["action"])


def test_environment_and_agent_of_a_block(table):
    environment, agent = blocks.build(table_spec(table, "ensemble++", (3, 5), 4))
    assert (type(environment).__name__, type(agent).__name__) == ("Classification", "NeuralEnsemblePlusPlus")
    assert list(environment.seeds) == list(agent.seeds) == [3, 4, 5]
    assert (environment.dimension, agent.ensemble_size) == (agent.dimension, 4)


def test_classes_of_the_users_own(table, tmp_path, monkeypatch):
    (tmp_path / "own_things.py").write_text(
        "from ensemblepp.agents.neural.greedy import Greedy\n"
        "from ensemblepp.environments.classification import Classification\n\n\n"
        "class World(Classification):\n    pass\n\n\nclass Mine(Greedy):\n    pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    plain = table_spec(table, "greedy", (0, 1), 0)
    own = json.loads(json.dumps(plain))
    own["environment"] |= {"kind": "custom", "class": "own_things:World"}
    own["agent"] |= {"kind": "custom", "class": "own_things:Mine"}
    environment, agent = blocks.build(own)
    assert (type(environment).__name__, type(agent).__name__) == ("World", "Mine")
    alike = ("regret", "reward", "optimal", "action", "constant_regret")
    assert result(own, tmp_path, "own")[list(alike)].equals(result(plain, tmp_path, "plain")[list(alike)])


def test_an_option_that_a_class_hands_on_and_nothing_takes(table, tmp_path, monkeypatch):
    """The configuration sees that it is handed on, and not where to."""
    (tmp_path / "handing_on.py").write_text(
        "from ensemblepp.agents.neural.greedy import Greedy\n\n\n"
        "class Mine(Greedy):\n    def __init__(self, seeds, **options):\n        super().__init__(seeds, **options)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    specification = json.loads(json.dumps(table_spec(table, "greedy", (0, 1), 0)))
    specification["agent"] |= {"kind": "custom", "class": "handing_on:Mine"}
    blocks.build(specification)
    specification["agent"]["options"]["learning_rat"] = 0.1
    with pytest.raises(ConfigError, match=r"^greedy: learning_rat: handing_on:Mine takes no such option \(.*'learning_rat'"):
        blocks.build(specification)


# ------------------------------------------------------------------------------------------------- killed and resumed


def killed(specification: dict, output, rounds: int, code: str = "fingerprint") -> None:
    """The block until so many rounds, summed over seeds, are done, and then what stands for the end of its process."""
    done = 0

    def on_step(count: int) -> None:
        nonlocal done
        done += count
        if done >= rounds:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(specification, output, code=code, on_step=on_step)


@pytest.mark.parametrize(("agent", "size"), [("greedy", 0), ("ensemble++", 4)])
def test_a_killed_block_goes_on_to_the_same_bytes(agent, size, table, tmp_path, monkeypatch):
    """With a checkpoint at every fourth chance: a block killed twice leaves the file of one that was not, and no checkpoint.

    The resumed one first tells of the rounds that it finds done, 2 seeds x 60 or more, and then of the others only.
    """
    monkeypatch.setattr(blocks, "Checkpoint", EveryFourth)
    specification = table_spec(table, agent, (0, 1), size)
    run(specification, tmp_path / "whole.nc", code="fingerprint")
    killed(specification, tmp_path / "run.nc", 2 * 40)
    killed(specification, tmp_path / "run.nc", 2 * 90)
    assert [path.name for path in tmp_path.glob("run*")] == ["run.checkpoint"]
    told = []
    run(specification, tmp_path / "run.nc", code="fingerprint", on_step=told.append)
    assert (tmp_path / "run.nc").read_bytes() == (tmp_path / "whole.nc").read_bytes()
    assert sorted(path.name for path in tmp_path.glob("run*")) == ["run.json", "run.nc"]
    assert sum(told) == 2 * 120
    assert 2 * 60 <= told[0] < 2 * 90


@pytest.mark.parametrize("change", ["specification", "code", "library"])
def test_a_checkpoint_of_another_block_is_not_used(change, table, tmp_path, monkeypatch):
    """Killed after 90 rounds and then run with another noise, other code or another version of torch: all rounds anew."""
    monkeypatch.setattr(blocks, "Checkpoint", EveryFourth)
    specification, code = table_spec(table, "greedy", (0, 1), 0), "fingerprint"
    killed(specification, tmp_path / "run.nc", 2 * 90)
    if change == "specification":
        specification["environment"]["options"]["noise"] = 0.2
    elif change == "code":
        code = "another"
    else:
        found = blocks.versions() | {"torch": "0.1"}
        monkeypatch.setattr(blocks, "versions", lambda: found)
    told = []
    run(specification, tmp_path / "run.nc", code=code, on_step=told.append)
    assert told[0] < 2 * 20
    assert sum(told) == 2 * 120
    run(specification, tmp_path / "whole.nc", code=code)
    assert (tmp_path / "run.nc").read_bytes() == (tmp_path / "whole.nc").read_bytes()
    assert not (tmp_path / "run.checkpoint").exists()


@pytest.mark.parametrize("damage", ["flipped", "cut", "of another kind"])
def test_a_damaged_checkpoint_is_named_and_the_run_starts_over(damage, table, tmp_path, monkeypatch, capsys):
    """To the same bytes as if there had been none."""
    monkeypatch.setattr(blocks, "Checkpoint", EveryFourth)
    specification = table_spec(table, "ensemble++", (0, 1), 4)
    run(specification, tmp_path / "whole.nc", code="fingerprint")
    killed(specification, tmp_path / "run.nc", 2 * 90)
    path = tmp_path / "run.checkpoint"
    content = bytearray(path.read_bytes())
    content[2 * len(content) // 3] ^= 4
    path.write_bytes({"flipped": content, "cut": content[:-1000], "of another kind": b"half a checkpoint"}[damage])
    capsys.readouterr()
    told = []
    run(specification, tmp_path / "run.nc", code="fingerprint", on_step=told.append)
    line = capsys.readouterr().err
    assert line.startswith(f"{path}: ")
    assert line.endswith("; the run starts over\n")
    assert line.count("\n") == 1
    assert told[0] < 2 * 20
    assert sum(told) == 2 * 120
    assert (tmp_path / "run.nc").read_bytes() == (tmp_path / "whole.nc").read_bytes()
    assert not path.exists()
