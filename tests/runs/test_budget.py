"""What missing runs would take, by records: numbers that a person can verify."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensemblepp.config.loading import load, read_files
from ensemblepp.config.resolution import Config
from ensemblepp.runs import block as blocks
from ensemblepp.runs.budget import STRUCTURE, Budget, Record, budget, budgets, costs_alike, in_words, records
from ensemblepp.storage.datasets import write_json

CONFIG = {
    "environments": {
        "near": {"kind": "linear_finite", "title": "Near", "dimension": 3, "actions": 5},
        "far": {"kind": "linear_finite", "title": "Far", "dimension": 6, "actions": 5},
        "square": {"kind": "quadratic", "title": "Square", "dimension": 3},
    },
    "agents": {
        "ts": {"kind": "linear_ts", "label": "TS"},
        "linear": {"kind": "linear_ensemblepp", "label": "L", "references": ["cube"], "perturbations": ["cube"]},
        "lmcts": {"kind": "lmcts", "label": "LMCTS"},
    },
    "studies": {
        name: {"title": name, "agents": ["ts"], "scales": {"quick": {"environments": ["near"], "horizon": 40, "seeds": seeds}}}
        for name, seeds in (("small", 10), ("large", 12))
    },
}


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    monkeypatch.chdir(tmp_path)
    return load(CONFIG)


def made(config: Config, *arguments: object, cpu: float = 10.0, seconds: float = 4.0, size: int = STRUCTURE + 1000) -> None:
    """A real run of these names at scale smoke, with a record and a size that a person can calculate with."""
    path = Path(config.block(*arguments).path.replace("/quick/", "/smoke/"))
    blocks.run(config.block(*arguments).spec, path)
    write_json({"cpu_seconds": cpu, "seconds": seconds}, path.with_suffix(".json"))
    with path.open("ab") as file:
        file.truncate(size)


def asked(config: Config, *arguments: object) -> Budget:
    return budget([config.block(*arguments)], list(records("results")))


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run file is read as if it had its own size."""
    import ensemblepp.runs.budget as module

    read = module.read_dataset

    def from_copy(path):
        content = Path(path).read_bytes().rstrip(b"\0")
        Path("copy.nc").write_bytes(content)
        return read("copy.nc")

    monkeypatch.setattr(module, "read_dataset", from_copy)


@pytest.mark.usefixtures("whole")
def test_time_and_disk_grow_with_rounds_and_seeds(config):
    """Half of a record at most is what a process needs to start: 5 s, and 5 s for 2 seeds x 20 rounds."""
    made(config, "near", "ts", 0, 20, 0, 1)
    found = asked(config, "near", "ts", 0, 40, 0, 3)
    assert found.cpu_hours == pytest.approx((5 + 5 * 4) / 3600)
    # every round of every seed is stored at either horizon
    assert found.bytes == pytest.approx(STRUCTURE + 4 * 1000)
    assert (found.jobs, found.gpu_hours, found.guessed, found.unknown) == (1, 0, 0, 0)


@pytest.mark.usefixtures("whole")
def test_the_start_is_no_more_than_the_shortest_run_of_the_engine(config):
    made(config, "near", "ts", 0, 20, 0, 1)
    made(config, "near", "ts", 0, 2, 0, 1, cpu=1.0)
    assert asked(config, "near", "ts", 0, 40, 0, 1).cpu_hours == pytest.approx((1 + 9 * 2) / 3600)


@pytest.mark.usefixtures("whole")
def test_the_nearest_ensemble_size_then_the_longest_run(config):
    for size, horizon, cpu in ((2, 20, 100.0), (8, 10, 60.0), (8, 20, 20.0)):
        made(config, "near", "linear", size, horizon, 0, 1, cpu=cpu)
    assert asked(config, "near", "linear", 16, 40, 0, 1).cpu_hours == pytest.approx((10 + 10 * 2) / 3600)


@pytest.mark.usefixtures("whole")
def test_another_environment_of_the_kind_is_a_guess(config):
    made(config, "near", "ts", 0, 20, 0, 1)
    found = asked(config, "far", "ts", 0, 20, 0, 1)
    # twice the dimension
    assert found.cpu_hours == pytest.approx((5 + 5 * 2) / 3600)
    assert found.guessed == 1
    assert asked(config, "square", "lmcts", 0, 20, 0, 1).unknown == 1


@pytest.mark.usefixtures("whole")
def test_nothing_is_said_of_runs_whose_rounds_get_longer(config):
    made(config, "square", "lmcts", 0, 4, 0, 0, size=2 * STRUCTURE)
    assert asked(config, "square", "lmcts", 0, 8, 0, 0).unknown == 1
    assert asked(config, "square", "lmcts", 0, 4, 0, 1).unknown == 0


def test_the_agents_whose_rounds_get_longer_are_those_that_say_so():
    from ensemblepp import registry
    from ensemblepp.runs.budget import GROWING

    said = {kind for kind, place in registry.AGENTS.items() if getattr(registry.load(place), "cost_degree", 1) > 1}
    assert said == GROWING


@pytest.mark.usefixtures("whole")
def test_a_gpu_is_counted_by_the_clock_and_by_records_of_a_gpu_alone(config):
    made(config, "near", "ts", 0, 20, 0, 1)
    (record,) = records("results")
    gpu = record._replace(spec=record.spec | {"device": "cuda"})
    block = config.block("near", "ts", 0, 40, 0, 1)
    block.spec["device"] = "cuda"
    found = budget([block], [record, gpu])
    assert (found.cpu_hours, found.gpu_hours) == (0, pytest.approx(8 / 3600))
    assert budget([block], [record]).unknown == 1


@pytest.mark.usefixtures("whole")
def test_shared_blocks_count_once_in_the_total_and_finished_ones_not_at_all(config):
    made(config, "near", "ts", 0, 40, 0, 3)
    studies, total = budgets(config)
    # seeds 0-9; 0-9 and 10-11
    assert [studies[name].jobs for name in ("small", "large")] == [1, 2]
    assert total == studies["large"]
    shared = Path(config.blocks("small")[0].path)
    shared.parent.mkdir(parents=True)
    shared.touch()
    studies, total = budgets(config)
    assert studies["small"] == Budget(0, 0, 0, 0, 0, 0)
    assert total.jobs == 1


def test_without_records_every_number_is_left_out_and_that_is_said(config):
    _, total = budgets(config)
    assert total == Budget(2, 0, 0, 0, 0, 2)
    assert total.cells() == ("2", "0.00", "0.00", "0", "0", "2")
    assert [line.split(",")[0] for line in in_words(total)][1:] == ["2 of 2 blocks are in no number"]


@pytest.mark.usefixtures("whole")
def test_damaged_records_are_none(config):
    made(config, "near", "ts", 0, 20, 0, 1)
    (path,) = Path("results").rglob("*.json")
    path.write_text("{")
    assert list(records("results")) == []


@pytest.mark.parametrize(("option", "alike"), [("temperature", True), ("learning_rate", True), ("gradient_steps", False)])
def test_options_that_cost_nothing_and_names_make_no_difference(config, option, alike):
    own = {"kind": "lmcts", "label": "Mine", option: 3}
    other = load(CONFIG | {"agents": CONFIG["agents"] | {"mine": own}})
    blocks = [other.block("square", name, 0, 10, 0, 0).spec for name in ("lmcts", "mine")]
    assert (costs_alike(blocks[0]) == costs_alike(blocks[1])) == alike


def test_everything_shipped_can_be_asked_for_whatever_is_recorded(tmp_path, monkeypatch):
    """Blocks of all environments and agents at the paper's scale, when shorter runs of each have been made."""
    shipped = read_files(Path(__file__).resolve().parents[2], scale="paper")
    # where nothing has run
    monkeypatch.chdir(tmp_path)
    blocks = [block for study in shipped.active_studies() for block in shipped.blocks(study)]
    known = [
        Record(block.spec | {"seeds": [0, 0], "ensemble_size": 4}, 10.0, 10.0, 2.0 * STRUCTURE, 1, False) for block in blocks
    ]
    found = budget(blocks, known)
    assert found.jobs == len(blocks) > 500
    assert found.unknown == found.guessed == 0
    assert found.cpu_hours > 0
