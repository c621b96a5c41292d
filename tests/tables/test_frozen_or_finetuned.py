"""Frozen against fine-tuned language models, by hand: the table and what the figure draws; a real small study for both."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr
from whole_study import whole

from ensemblepp.analysis import backbones
from ensemblepp.errors import ResultError
from ensemblepp.figures import frozen_or_finetuned as figure
from ensemblepp.storage.datasets import write_dataset
from ensemblepp.tables import frozen_or_finetuned as table
from ensemblepp.tables import save

TIME = np.array([1, 2, 50, 100])

#: Environment -> language model, kind; MiniLM with as many posts only.
PLACES = {
    "small-frozen": ("minilm", "moderation"),
    "small-tuned": ("minilm", "moderation_tokens"),
    "large-frozen": ("gpt2", "moderation"),
    "large-tuned": ("gpt2", "moderation_tokens"),
}
TITLES = ["MiniLM, frozen", "MiniLM, fine-tuned", "GPT-2, frozen", "GPT-2, fine-tuned"]
KINDS = {
    "ensemble++": "neural_ensemblepp",
    "greedy": "greedy",
    "ensemble++-tuned": "text_ensemblepp",
    "greedy-tuned": "text_greedy",
}
LABELS = ["Ensemble++ (released)", "Greedy (released)", "Ensemble++ (fine-tuned)", "Greedy (fine-tuned)"]

#: Environment, agent -> regret a round of the seeds 0, 1 and 2.
RATES = {
    ("small-frozen", "ensemble++"): (0.30, 0.32, 0.34),
    ("small-tuned", "ensemble++-tuned"): (0.20, 0.24, 0.22),
    ("small-frozen", "greedy"): (0.30, 0.30, 0.30),
    ("small-tuned", "greedy-tuned"): (0.30, 0.40, 0.32),
    ("large-frozen", "ensemble++"): (0.40, 0.40, 0.40),
    ("large-tuned", "ensemble++-tuned"): (0.10, 0.10, 0.10),
    ("large-frozen", "greedy"): (0.20, 0.22, 0.24),
    ("large-tuned", "greedy-tuned"): (0.30, 0.32, 0.34),
}


def dataset() -> xr.Dataset:
    """An agent is wrong in as many rounds as it has regret, so its accuracy is 1 less the rate."""
    sizes, agents, places = [0, 4], list(KINDS), list(PLACES)
    factors = ("environment", "agent", "reference", "perturbation", "ensemble_size", "seed", "time")
    regret = np.full((4, 4, 2, 1, 2, 3, len(TIME)), np.nan, np.float32)
    specs = []
    for (place, agent), rates in RATES.items():
        size = 0 if agent.startswith("greedy") else 4
        law = int(not size)
        regret[places.index(place), agents.index(agent), law, 0, sizes.index(size)] = np.outer(rates, TIME)
        model, kind = PLACES[place]
        folder = "tokens" if kind == "moderation_tokens" else "embeddings"
        inputs = {folder: f"data/{folder}/{model}/hate_speech-100.nc"}
        environment = {"name": place, "kind": kind, "options": {"inputs": inputs}}
        specs.append({"environment": environment, "agent": {"name": agent, "kind": KINDS[agent]}, "ensemble_size": size})
    # always block is wrong in 40 of 100 rounds, always publish in 60
    constant = np.array([0.5 * 0.4, 0.6])[:, None, None] * np.ones((4, 2, 3, 1)) * TIME
    variables = {
        "regret": (factors, regret),
        "optimal": (factors, TIME - regret),
        "constant_regret": (("environment", "action_index", "seed", "time"), constant.astype(np.float32)),
    }
    coordinates = {
        "environment": places,
        "agent": agents,
        "reference": ["sphere", "none"],
        "perturbation": ["sphere"],
        "ensemble_size": sizes,
        "seed": [0, 1, 2],
        "time": TIME,
        "action_index": [0, 1],
        "title": ("environment", TITLES),
        "label": ("agent", LABELS),
    }
    return whole(xr.Dataset(variables, coordinates, {"horizon": 100, "seeds": 3, "specs": json.dumps(specs)}))


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


def test_a_panel_for_each_language_model():
    """Frozen lines dashed, fine-tuned ones solid, an agent in its colour, and the best constant action."""
    panels = figure.draw(dataset()).axes
    assert [axes.get_title() for axes in panels] == ["MiniLM", "GPT-2"]
    for axes, place in zip(panels, ("small", "large"), strict=True):
        lines = {line.get_label(): line for line in axes.get_lines()}
        for label, agent in (("Ensemble++", "ensemble++"), ("Greedy", "greedy")):
            frozen, tuned = (lines[f"{label}, {word}"] for word in ("frozen", "fine-tuned"))
            assert (frozen.get_linestyle(), tuned.get_linestyle()) == ("--", "-")
            assert frozen.get_color() == tuned.get_color()
            expected = 1 - np.mean(RATES[f"{place}-frozen", agent])
            np.testing.assert_allclose(frozen.get_ydata(), np.full(3, expected), rtol=1e-5)
            expected = 1 - np.mean(RATES[f"{place}-tuned", f"{agent}-tuned"])
            np.testing.assert_allclose(tuned.get_ydata(), np.full(3, expected), rtol=1e-5)
        np.testing.assert_allclose(lines["best constant action"].get_ydata(), np.full(3, 0.6), rtol=1e-5)
        np.testing.assert_array_equal(lines["best constant action"].get_xdata(), TIME[1:])


def test_width_and_type():
    """6.75 inches, and no word below 7 points."""
    drawn = figure.draw(dataset())
    assert drawn.get_figwidth() == 6.75
    texts = [text for axes in drawn.axes for text in (axes.title, axes.xaxis.label, *axes.get_xticklabels())]
    texts += [text for legend in drawn.legends for text in legend.get_texts()]
    assert min(text.get_fontsize() for text in texts) >= 7


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
