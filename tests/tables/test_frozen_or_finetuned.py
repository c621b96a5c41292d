"""The table of frozen against fine-tuned language models, by hand."""

from __future__ import annotations

import json

import pytest
from finetuned_study import dataset

from ensemblepp.analysis import backbones
from ensemblepp.errors import ResultError
from ensemblepp.storage.datasets import write_dataset
from ensemblepp.tables import frozen_or_finetuned as table
from ensemblepp.tables import save


def test_differences_by_hand():
    """Frozen minus fine-tuned, seed by seed: 10, 8 and 12 of MiniLM's Ensemble++; t with two degrees of freedom is 4.303."""
    rows = table.build(dataset()).set_index(["language model", "agent"])
    assert list(rows.index) == [(model, agent) for model in ("MiniLM", "GPT-2") for agent in ("Ensemble++", "Greedy")]
    own = rows.loc["MiniLM", "Ensemble++"]
    assert (own["M"], own["seeds"], own["better"]) == ("4", 3, "fine-tuned")
    assert own["difference"] == pytest.approx(10, rel=1e-5)
    assert own["95 % low"] == pytest.approx(10 - 4.302653 * 2 / 3**0.5, rel=1e-4)
    assert own["accuracy, frozen"] == pytest.approx(0.68, rel=1e-5)
    assert own["accuracy, fine-tuned"] == pytest.approx(0.78, rel=1e-5)
    assert own["regret, frozen"] == pytest.approx(32, rel=1e-5)
    assert rows.loc["MiniLM", "Greedy"]["better"] == "undecided"
    assert rows.loc["GPT-2", "Greedy"]["M"] == "-"
    assert rows.loc["GPT-2", "Greedy"]["difference"] == pytest.approx(-10, rel=1e-5)
    assert rows.loc["GPT-2", "Greedy"]["better"] == "frozen"


def test_saved(tmp_path):
    """Through the file, as the workflow makes them."""
    write_dataset(dataset(), tmp_path / "study.nc")
    save("frozen_or_finetuned", tmp_path / "study.nc", [tmp_path / "table.csv"])
    assert (tmp_path / "table.csv").read_text().count("\n") == 1 + 4


def test_a_study_with_one_of_both_only():
    names = ["small-frozen", "large-tuned"]
    alone = dataset().sel(environment=names)
    specs = [spec for spec in json.loads(alone.attrs["specs"]) if spec["environment"]["name"] in names]
    with pytest.raises(ResultError, match="no language model of the study is there both frozen and fine-tuned"):
        backbones.backbones(alone.assign_attrs(specs=json.dumps(specs)))
