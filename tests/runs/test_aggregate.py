"""Run blocks to one dataset: every cell is the number of one run file, and a block that is not the one asked for is refused."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from ensemblepp.config.fields import canonical_json
from ensemblepp.config.loading import load
from ensemblepp.config.resolution import Config
from ensemblepp.errors import ResultError
from ensemblepp.runs import block as blocks
from ensemblepp.runs.aggregate import FACTORS, aggregate
from ensemblepp.runs.fingerprint import fingerprint
from ensemblepp.runs.plan import plan
from ensemblepp.storage.datasets import read_dataset, write_dataset

CONFIG = {
    "environments": {
        "near": {"kind": "linear_finite", "title": "Near", "dimension": 3, "actions": 5},
        "far": {"kind": "linear_finite", "title": "Far away", "dimension": 3, "actions": 5, "noise": 0.5},
    },
    "agents": {
        "ts": {"kind": "linear_ts", "label": "TS"},
        "linear": {
            "kind": "linear_ensemblepp",
            "label": "Ensemble++",
            "references": ["gaussian", "coordinate"],
            "perturbations": ["sphere", "cube"],
        },
    },
    "studies": {
        "small": {
            "title": "A small study",
            "agents": ["ts", "linear"],
            "scales": {
                "quick": {
                    "environments": ["near", "far"],
                    "horizon": 12,
                    "seeds": 3,
                    "seeds_per_block": 2,
                    "ensemble_sizes": [3, 2],
                }
            },
        }
    },
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which all blocks of the small study have run and were aggregated."""
    folder = tmp_path_factory.mktemp("aggregate")
    before = Path.cwd()
    os.chdir(folder)
    try:
        config = load(CONFIG)
        for block in config.blocks("small"):
            blocks.run(block.spec, block.path, code=fingerprint(*block.code))
        aggregate(plan(config, "small"), "small.nc")
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def config(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.chdir(folder)
    return load(CONFIG)


@pytest.fixture
def dataset(config: Config) -> xr.Dataset:
    return read_dataset("small.nc")


# --------------------------------------------------------------------------------------------------------- the cells


def run_file(environment: str, agent: str, size: int, seeds: str) -> xr.Dataset:
    with xr.open_dataset(f"results/quick/runs/{environment}/{agent}/M{size}/T12/seeds{seeds}.nc") as stored:
        return stored.load()


SEEDS_OF_FILES = {"0-1": (0, 1), "2-2": (2,)}


def test_every_cell_is_the_number_of_its_run_file(dataset):
    compared = 0
    for environment, (agent, sizes), (text, seeds) in itertools.product(
        ("near", "far"), {"ts": (0,), "linear": (2, 3)}.items(), SEEDS_OF_FILES.items()
    ):
        for size in sizes:
            run = run_file(environment, agent, size, text)
            assert run["seed"].values.tolist() == list(seeds)
            for name, seed, row, column, step in itertools.product(
                ("regret", "reward", "optimal"), seeds, run["reference"].values, run["perturbation"].values, range(1, 13)
            ):
                place = {"reference": row, "perturbation": column, "seed": seed, "time": step}
                cell = dataset[name].sel(environment=environment, agent=agent, ensemble_size=size, **place)
                assert float(cell) == float(run[name].sel(place))
                compared += 1
    # 2 environments, (1 + 2 sizes x 4 pairs of laws) chains, 3 seeds, 12 steps, 3 variables
    assert compared == 2 * 9 * 3 * 12 * 3
    for name in ("regret", "reward", "optimal"):
        assert int(dataset[name].notnull().sum()) == 2 * 9 * 3 * 12


def test_what_was_not_run_is_nan(dataset):
    regret = dataset["regret"]
    for absent in (
        {"agent": "ts", "ensemble_size": [2, 3]},
        {"agent": "linear", "ensemble_size": 0},
        {"agent": "ts", "reference": ["gaussian", "coordinate"]},
        {"agent": "linear", "perturbation": "none"},
    ):
        assert regret.sel(absent).isnull().all()


def test_coordinates_titles_and_attributes(dataset):
    assert dataset["regret"].dims == FACTORS
    assert dataset["environment"].values.tolist() == ["near", "far"]
    assert dataset["title"].values.tolist() == ["Near", "Far away"]
    assert dataset["agent"].values.tolist() == ["ts", "linear"]
    assert dataset["label"].values.tolist() == ["TS", "Ensemble++"]
    assert dataset["reference"].values.tolist() == ["none", "gaussian", "coordinate"]
    assert dataset["perturbation"].values.tolist() == ["none", "sphere", "cube"]
    assert dataset["ensemble_size"].values.tolist() == [0, 2, 3]
    assert dataset["seed"].values.tolist() == [0, 1, 2]
    assert dataset["time"].values.tolist() == list(range(1, 13))
    assert "constant_regret" not in dataset
    expected = {"study": "small", "study_title": "A small study", "scale": "quick", "horizon": 12, "seeds": 3}
    assert {name: dataset.attrs[name] for name in expected} == expected


def test_the_specifications_and_the_code_of_every_run_are_kept(dataset, config):
    runs = config.blocks("small")
    assert json.loads(dataset.attrs["specs"]) == [block.spec for block in runs]
    assert json.loads(dataset.attrs["codes"]) == {block.path: fingerprint(*block.code) for block in runs}


def test_a_plan_that_was_on_a_command_line_aggregates_to_the_same_bytes(config, tmp_path):
    aggregate(json.loads(canonical_json(plan(config, "small"))), tmp_path / "again.nc")
    assert (tmp_path / "again.nc").read_bytes() == Path("small.nc").read_bytes()


# ------------------------------------------------------------------------------------------------- blocks at fault

BLOCK = Path("results/quick/runs/far/linear/M3/T12/seeds2-2.nc")


@pytest.fixture
def block(config: Config):
    """One run file that the test may damage; it is put back."""
    content = BLOCK.read_bytes()
    yield BLOCK
    BLOCK.write_bytes(content)


def refusal(config: Config, tmp_path: Path, block: Path = BLOCK) -> str:
    with pytest.raises(ResultError) as error:
        aggregate(plan(config, "small"), tmp_path / "refused.nc")
    assert list(tmp_path.iterdir()) == []
    message = str(error.value)
    assert message.startswith(f"{block}: ")
    return message.removeprefix(f"{block}: ")


def test_a_block_of_another_specification(config, block, tmp_path):
    values = CONFIG | {"environments": CONFIG["environments"] | {"far": CONFIG["environments"]["far"] | {"noise": 0.7}}}
    other = next(other for other in load(values).blocks("small") if other.path == str(BLOCK))
    blocks.run(other.spec, block)
    assert refusal(config, tmp_path) == "made from another specification (environment differ); delete it and run again"


def test_a_block_of_other_seeds_under_this_name(config, block, tmp_path):
    block.write_bytes(block.with_name("seeds0-1.nc").read_bytes())
    assert refusal(config, tmp_path) == "made from another specification (seeds differ); delete it and run again"


def test_a_block_made_by_other_code(config, block, tmp_path):
    spec = json.loads(read_dataset(block).attrs["spec"])
    blocks.run(spec, block, code="0123456789abcdef")
    assert refusal(config, tmp_path) == "made by other code than the present one; delete it and run again"


def edited(block: Path, change: Callable[[xr.Dataset], xr.Dataset]) -> None:
    """The file as if it had been written so: sealed, and of the right specification and code."""
    write_dataset(change(read_dataset(block)), block)


def again(name: str, place: int) -> Callable[[xr.Dataset], xr.Dataset]:
    """One entry of a dimension in the place of all that there are."""
    return lambda run: run.isel({name: [place] * run.sizes[name]})


def without(name: str, place: int) -> Callable[[xr.Dataset], xr.Dataset]:
    return lambda run: run.isel({name: [other for other in range(run.sizes[name]) if other != place]})


ALL = "12 entries from 1 to 12"


@pytest.mark.parametrize(
    ("change", "line"),
    [
        pytest.param(without("seed", 1), "seed holds 0, not 0, 1", id="a seed missing"),
        pytest.param(again("seed", 1), "seed holds 1, 1, not 0, 1", id="a seed doubled"),
        pytest.param(lambda run: run.isel(seed=[1, 0]), "seed holds 1, 0, not 0, 1", id="seeds in another order"),
        pytest.param(lambda run: run.assign_coords(seed=[0, 7]), "seed holds 0, 7, not 0, 1", id="other seeds"),
        pytest.param(lambda run: run.drop_vars("time"), f"time holds 12 entries from 0 to 11, not {ALL}", id="no times"),
        pytest.param(without("time", 5), f"time holds 11 entries from 1 to 12, not {ALL}", id="a time dropped"),
        pytest.param(lambda run: run.isel(time=slice(0, 9)), f"time holds 9 entries from 1 to 9, not {ALL}", id="no end"),
        pytest.param(without("reference", 0), "reference holds coordinate, not gaussian, coordinate", id="a law missing"),
        pytest.param(again("perturbation", 0), "perturbation holds sphere, sphere, not sphere, cube", id="a law doubled"),
        pytest.param(without("step", 0), "step holds 11 entries from 0 to 10, not 12 entries from 0 to 11", id="steps"),
        pytest.param(lambda run: run.drop_vars("agent"), "coordinate 'agent' is missing", id="no agent"),
        pytest.param(lambda run: run.assign_coords(agent="ts"), "agent holds ts, not linear", id="another agent"),
        pytest.param(lambda run: run.assign_coords(environment="near"), "environment holds near, not far", id="environment"),
        pytest.param(lambda run: run.assign_coords(ensemble_size=2), "ensemble_size holds 2, not 3", id="another size"),
        pytest.param(lambda run: run.drop_vars("optimal"), "variable 'optimal' is missing or empty", id="no optimal"),
        pytest.param(
            lambda run: run.assign(regret=run["regret"].isel(seed=0)),
            "variable 'regret' has the dimensions (reference, perturbation, time), not (reference, perturbation, seed, time)",
            id="a dimension missing",
        ),
        pytest.param(
            lambda run: run.transpose("seed", ...),
            "variable 'regret' has the dimensions (seed, reference, perturbation, time), not "
            "(reference, perturbation, seed, time)",
            id="dimensions in another order",
        ),
        pytest.param(
            lambda run: run.assign(other=("seed", [1.0, 2.0])),
            "variable 'other' has the dimensions (seed), not (reference, perturbation, seed, time)",
            id="another variable",
        ),
        pytest.param(lambda run: run.drop_attrs(), "made from another specification (", id="no specification"),
        pytest.param(lambda run: run.assign_attrs(spec="{"), "its specification is no JSON", id="half a specification"),
    ],
)
def test_a_block_that_is_not_what_its_specification_says(config, tmp_path, monkeypatch, change, line):
    """Every dimension and coordinate: nothing is aggregated, and one line says what is wrong."""
    block = BLOCK.with_name("seeds0-1.nc")
    content = block.read_bytes()
    try:
        edited(block, change)
        found = refusal(config, tmp_path, block)
        assert found.startswith(line)
        assert found.endswith("; delete it and run snakemake again") or found.endswith("; delete it and run again")
        assert "\n" not in found
    finally:
        block.write_bytes(content)


def test_a_truncated_block(config, block, tmp_path):
    block.write_bytes(block.read_bytes()[:-100])
    message = "unfinished, or not written by this project (it does not end with its checksum)"
    assert refusal(config, tmp_path).startswith(message)


def test_a_missing_block(config, block, tmp_path):
    block.unlink()
    assert refusal(config, tmp_path) == "no such file; run snakemake to make it"


@pytest.mark.parametrize("name", ["regret", "reward", "optimal"])
def test_a_block_with_a_nan(config, block, tmp_path, name):
    run = read_dataset(block)
    run[name] = run[name].astype(np.float32)
    run[name][0, 0, 0, 4] = np.nan
    write_dataset(run, block)
    expected = f"variable '{name}' holds values that are not finite; delete it and run snakemake again"
    assert refusal(config, tmp_path) == expected


# ------------------------------------------------------------------------ contextual environments and long horizons


def contextual(horizon: int) -> Config:
    """TS on six posts of two features, shown in one random order per seed, again and again."""
    return load(
        {
            "environments": {
                "posts": {
                    "kind": "moderation",
                    "title": "Posts",
                    "language_model": "tiny",
                    "posts": 6,
                    "passes": -(-horizon // 6),
                }
            },
            "language_models": {"tiny": {"source": "folder", "location": "tiny", "pooling": "last"}},
            "agents": {"ts": CONFIG["agents"]["ts"]},
            "studies": {
                "posts": {
                    "title": "Posts",
                    "agents": ["ts"],
                    "scales": {"quick": {"environments": ["posts"], "horizon": horizon, "seeds": 2, "seeds_per_block": 1}},
                }
            },
        }
    )


def aggregated(config: Config) -> xr.Dataset:
    """The posts' study: two of the six posts are hateful."""
    vectors = np.arange(12, dtype=np.float32).reshape(6, 2) + 1
    posts = xr.Dataset({"embedding": (("post", "feature"), vectors), "label": ("post", np.array([0, 1, 0, 0, 1, 0], np.int8))})
    inputs = config.environments["posts"].options()["inputs"]
    write_dataset(posts, inputs["embeddings"])
    # right about all but the first, which is free, and the second, which is hateful
    judged = xr.Dataset({"free": ("post", np.array([0.1, 0.9, 0.8, 0.7, 0.6, 0.9])), "label": posts["label"]})
    write_dataset(judged, inputs["ceiling"])
    for block in config.blocks("posts"):
        blocks.run(block.spec, block.path, code=fingerprint(*block.code))
    aggregate(plan(config, "posts"), "posts.nc")
    return read_dataset("posts.nc")


def test_regret_of_constant_actions(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dataset = aggregated(contextual(12))
    constant = dataset["constant_regret"]
    assert constant.dims == ("environment", "action_index", "seed", "time")
    # after each pass over 4 free and 2 hateful posts: always block loses 1 - 0.5 on free ones, always publish 0.5 + 0.5
    # on hateful ones
    for step, passes in ((6, 1), (12, 2)):
        np.testing.assert_allclose(constant.sel(environment="posts", action_index=0, time=step), 4 * 0.5 * passes)
        np.testing.assert_allclose(constant.sel(environment="posts", action_index=1, time=step), 2 * 1.0 * passes)
    # the ceiling misses 0.5 on the first post and 1 on the second, in each pass
    assert dataset["ceiling_regret"].dims == dataset["ceiling_optimal"].dims == ("environment", "seed", "time")
    for step, passes in ((6, 1), (12, 2)):
        np.testing.assert_allclose(dataset["ceiling_regret"].sel(environment="posts", time=step), 1.5 * passes)
        np.testing.assert_allclose(dataset["ceiling_optimal"].sel(environment="posts", time=step), 4 * passes)
    for seed in (0, 1):
        with xr.open_dataset(f"results/quick/runs/posts/ts/M0/T12/seeds{seed}-{seed}.nc") as run:
            for name in ("constant_regret", "ceiling_regret", "ceiling_optimal"):
                found = dataset[name].sel(environment="posts", seed=seed)
                np.testing.assert_array_equal(found, run[name].sel(seed=seed))


def test_time_is_thinned_to_a_subset_with_both_ends(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dataset = aggregated(contextual(600))
    time = dataset["time"].values
    assert (time[0], time[-1]) == (1, 600)
    assert (np.diff(time) > 0).all()
    assert 60 < len(time) <= 120
    assert np.diff(time).max() <= 1 + 599 / 59, "half of the points are evenly spaced"
    assert time[:8].tolist() == list(range(1, 9)), "half of the points are dense at the start"
    with xr.open_dataset("results/quick/runs/posts/ts/M0/T600/seeds1-1.nc") as run:
        assert set(time) < set(run["time"].values)
        for name in ("regret", "reward", "optimal"):
            cells = (
                dataset[name].sel(environment="posts", agent="ts", ensemble_size=0, seed=1).isel(reference=0, perturbation=0)
            )
            np.testing.assert_array_equal(cells, run[name].sel(time=time).isel(reference=0, perturbation=0, seed=0))


# --------------------------------------------------------------------------------------- pairs of laws, diagnostics

PAIRS = {"es": ("coordinate", "sphere"), "cubed": ("gaussian", "cube")}


def paired(agents: list[str], horizon: int = 12, **linear: object) -> Config:
    """Studies of TS, of pairs of laws, and of the agent that runs them."""
    pairs = {
        name: {"kind": "pair", "label": name.upper(), "of": "linear", "reference": laws[0], "perturbation": laws[1]}
        for name, laws in PAIRS.items()
    }
    grid = {"environments": ["near"], "horizon": horizon, "seeds": 3, "seeds_per_block": 2, "ensemble_sizes": [3, 2]}
    values = CONFIG | {
        "agents": CONFIG["agents"] | pairs | {"linear": CONFIG["agents"]["linear"] | linear},
        "studies": {"pairs": {"title": "Pairs", "agents": agents, "scales": {"quick": grid}}},
    }
    return load(values)


def aggregate_of(config: Config, monkeypatch: pytest.MonkeyPatch, folder: Path) -> xr.Dataset:
    """The study's dataset, after its blocks have run in `folder`."""
    monkeypatch.chdir(folder)
    for block in config.blocks("pairs"):
        blocks.run(block.spec, block.path, code=fingerprint(*block.code))
    aggregate(plan(config, "pairs"), "pairs.nc")
    return read_dataset("pairs.nc")


def test_a_pair_shows_the_chain_of_its_laws(monkeypatch, tmp_path):
    """Every cell of two pairs is the number of `linear`'s run file; they stand at the law "none", like TS."""
    dataset = aggregate_of(paired(["ts", "es", "cubed"]), monkeypatch, tmp_path)
    assert sorted(path.name for path in (tmp_path / "results/quick/runs/near").iterdir()) == ["linear", "ts"]
    assert dataset["agent"].values.tolist() == ["ts", "es", "cubed"]
    assert dataset["label"].values.tolist() == ["TS", "ES", "CUBED"]
    assert dataset["reference"].values.tolist() == dataset["perturbation"].values.tolist() == ["none"]
    compared = 0
    for (text, seeds), size, agent in itertools.product(SEEDS_OF_FILES.items(), (2, 3), ("es", "cubed")):
        run = run_file("near", "linear", size, text)
        for name, seed in itertools.product(("regret", "reward", "optimal"), seeds):
            found = dataset[name].sel(environment="near", agent=agent, ensemble_size=size, seed=seed).squeeze().values
            laws = dict(zip(("reference", "perturbation"), PAIRS[agent], strict=True))
            assert np.array_equal(found, run[name].sel(laws).sel(seed=seed).values)
            compared += 1
    assert compared == 2 * 2 * 3 * 3
    regret = dataset["regret"].sel(environment="near").squeeze()
    assert not np.array_equal(regret.sel(agent="es", ensemble_size=3), regret.sel(agent="cubed", ensemble_size=3))
    assert int(dataset["regret"].notnull().sum()) == (1 + 2 * 2) * 3 * 12
    assert len(json.loads(dataset.attrs["codes"])) == 6, "two blocks of seeds for TS and for each of two sizes"


def test_pairs_beside_their_agent(monkeypatch, tmp_path):
    """The agent keeps its laws, and the pair is the same curve at the law "none"."""
    dataset = aggregate_of(paired(["linear", "es"]), monkeypatch, tmp_path)
    assert dataset["reference"].values.tolist() == ["gaussian", "coordinate", "none"]
    regret = dataset["regret"].sel(environment="near")
    pair = regret.sel(agent="es", reference="none", perturbation="none")
    chain = regret.sel(agent="linear", reference="coordinate", perturbation="sphere")
    assert np.array_equal(pair.values, chain.values)
    assert regret.sel(agent="es", reference="coordinate").isnull().all()
    assert regret.sel(agent="linear", reference="none").isnull().all()
    assert int(regret.notnull().sum()) == (2 * 4 + 2) * 3 * 12


def test_blocks_on_the_coarse_grid_meet_blocks_with_every_round(monkeypatch, tmp_path):
    """4 pairs x 2,600 rounds are stored coarsely, TS on the grid of long horizons: the dataset has the same times of both."""
    dataset = aggregate_of(paired(["ts", "es"], horizon=2600), monkeypatch, tmp_path)
    assert (int(dataset["time"][0]), int(dataset["time"][-1])) == (1, 2600)
    with xr.open_dataset("results/quick/runs/near/ts/M0/T2600/seeds0-1.nc") as run:
        assert run.sizes["time"] > 500
        cells = dataset["regret"].sel(environment="near", agent="ts", ensemble_size=0, seed=[0, 1]).squeeze()
        assert np.array_equal(cells, run["regret"].sel(time=dataset["time"]).squeeze())
    with xr.open_dataset("results/quick/runs/near/linear/M2/T2600/seeds0-1.nc") as run:
        assert np.array_equal(run["time"], dataset["time"])
    assert not dataset["regret"].sel(agent="es", ensemble_size=2).isnull().any()


def test_diagnostics_land_in_the_dataset(monkeypatch, tmp_path):
    """They have the dimensions of regret, and NaN for the agents that say nothing; a pair shows its own chain's."""
    dataset = aggregate_of(paired(["ts", "linear", "es"], horizon=30, track_covariance=True), monkeypatch, tmp_path)
    for name in ("tracking_low", "tracking_high"):
        values = dataset[name].sel(environment="near")
        assert dataset[name].dims == FACTORS
        assert values.sel(agent="ts").isnull().all()
        for text, seeds in SEEDS_OF_FILES.items():
            with xr.open_dataset(f"results/quick/runs/near/linear/M3/T30/seeds{text}.nc") as run:
                place = {"reference": run["reference"], "perturbation": run["perturbation"], "seed": list(seeds)}
                cells = values.sel(agent="linear", ensemble_size=3).sel(place)
                assert np.array_equal(cells, run[name].sel(time=dataset["time"]).transpose(*cells.dims))
                chain = run[name].sel(reference="coordinate", perturbation="sphere", time=dataset["time"])
                pair = values.sel(agent="es", ensemble_size=3, reference="none", perturbation="none", seed=list(seeds))
                assert np.array_equal(pair, chain.transpose(*pair.dims))
    low, high = (dataset[f"tracking_{end}"].sel(agent="linear") for end in ("low", "high"))
    assert float((high - low).min()) >= 0


def test_the_plan_of_a_study_of_pairs_aggregates_to_the_same_bytes_from_a_command_line(monkeypatch, tmp_path):
    config = paired(["ts", "es"])
    aggregate_of(config, monkeypatch, tmp_path)
    aggregate(json.loads(canonical_json(plan(config, "pairs"))), "again.nc")
    assert Path("again.nc").read_bytes() == Path("pairs.nc").read_bytes()
