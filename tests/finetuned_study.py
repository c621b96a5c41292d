"""A small study's dataset of frozen and fine-tuned language models, whose numbers can be worked out by hand."""

from __future__ import annotations

import json

import numpy as np
import xarray as xr
from whole_study import whole

TIME = np.array([1, 5, 50, 100])

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
    # the ceiling of frozen embeddings is wrong in one of five rounds, half of the time about a hateful post
    for name, rate in (("regret", 0.15), ("optimal", 0.8)):
        ceiling = np.full((4, 3, len(TIME)), np.nan, np.float32)
        ceiling[::2] = rate * TIME
        variables[f"ceiling_{name}"] = (("environment", "seed", "time"), ceiling)
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
