"""The table of parameter counts: every network of a study once, with the published numbers, in every format."""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path

import xarray as xr
from whole_study import whole

from ensemblepp import tables
from ensemblepp.storage.datasets import write_dataset
from ensemblepp.tables import parameter_counts

KINDS = {
    "ours": ("Ensemble++", "neural_ensemblepp"),
    "members": ("Ensemble+", "ensembleplus"),
    "index": ("EpiNet", "epinet"),
    "greedy": ("Greedy", "greedy"),
    "wandering": ("ε-greedy", "epsilon_greedy"),
}

#: d and C; mushroom's d is its data's.
ENVIRONMENTS = {"quadratic": (100, 1), "neural": (100, 2), "vector-quadratic": (100, 1), "mushroom": (None, 1)}
SIZES = ["2", "4", "8", "16", "32", "64"]


def study(environments: Sequence[str] = tuple(ENVIRONMENTS), agents: Sequence[str] = tuple(KINDS)) -> xr.Dataset:
    """Names, labels and specifications, with two blocks for every ensemble."""
    specs = []
    for environment in environments:
        dimension, classes = ENVIRONMENTS[environment]
        world = {"name": environment, "options": {"dimension": dimension} if dimension else {"passes": 2}}
        for agent in agents:
            options = {"hidden": [64, 64], "loss": "cross_entropy" if classes == 2 else "squared"}
            model = {"name": agent, "kind": KINDS[agent][1], "options": options}
            specs += [{"environment": world, "agent": model, "ensemble_size": size} for size in (2, 8)]
    return xr.Dataset(
        {"regret": ("seed", [1.0])},
        {
            "environment": list(environments),
            "title": ("environment", [name.capitalize() for name in environments]),
            "agent": list(agents),
            "label": ("agent", [KINDS[name][0] for name in agents]),
        },
        {"specs": json.dumps(specs)},
    )


def test_every_network_once():
    """Environments with one shape share rows, in the order of the study; Greedy has no M, and epsilon-greedy is not counted."""
    table = parameter_counts.build(study())
    expected = []
    for environment, classes in (("Quadratic, Vector-quadratic", "1"), ("Neural", "2")):
        for agent in ("Ensemble++", "Ensemble+", "EpiNet"):
            expected += [(environment, agent, "100", classes, size) for size in SIZES]
        expected.append((environment, "Greedy", "100", classes, "-"))
    assert list(table[["environment", "agent", "d", "C", "M"]].itertuples(index=False, name=None)) == expected


def test_cells_are_the_published_numbers():
    table = parameter_counts.build(study()).set_index(["agent", "C", "M"])
    columns = ["paper's formula", "as built", "trainable", "frozen"]
    expected = {
        ("Ensemble++", "1", "8"): [11713, 11712, 11200, 512],
        ("Ensemble+", "1", "64"): [29568, 29568, 14784, 14784],
        ("EpiNet", "1", "8"): [17931, 17980, 13652, 4328],
        ("EpiNet", "2", "32"): [31867, 32477, 14973, 17504],
        ("Ensemble++", "2", "8"): [12802, 12800, 11776, 1024],
    }
    for cell, numbers in expected.items():
        assert table.loc[cell, columns].tolist() == numbers
    greedy = table.loc["Greedy", "1", "-"]
    assert greedy["paper's formula"] == "-", "the paper has none"
    assert (greedy["as built"], greedy["trainable"], greedy["frozen"]) == (10688, 10688, 0)


def test_formats(tmp_path: Path):
    write_dataset(whole(study(["quadratic"], ["ours", "greedy"]), "quadratic"), tmp_path / "study.nc")
    outputs = [tmp_path / f"table.{suffix}" for suffix in ("csv", "md", "tex", "html")]
    tables.save("parameter_counts", tmp_path / "study.nc", outputs)
    rows = list(csv.reader(outputs[0].read_text().splitlines()))
    assert rows[1] == ["Quadratic", "Ensemble++", "100", "1", "2", "10945", "10944", "10816", "128"]
    lines = outputs[1].read_text().splitlines()
    assert lines[2] == "| Quadratic | Ensemble++ | 100 | 1 | 2 | 10945 | 10944 | 10816 | 128 |"
    assert lines[-1] == "| Quadratic | Greedy | 100 | 1 | - | - | 10688 | 10688 | 0 |"
    assert "11713" in outputs[2].read_text()
    assert "11713" in outputs[3].read_text()
