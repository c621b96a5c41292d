"""A study's dataset of moderation, made from decisions that are drawn post by post, and the counts that it must give back."""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
import xarray as xr

TIME = np.array([1, 5, 10, 20, 40, 60, 80, 100, 150, 200])
FACTORS = ("environment", "agent", "reference", "perturbation", "ensemble_size")
AGENTS = {
    "ensemble++": ("Ensemble++", "neural_ensemblepp", 8),
    "ensemble+": ("Ensemble+", "ensembleplus", 8),
    "greedy": ("Greedy", "greedy", 0),
}

#: Chance that an agent takes action 1 on a free post, and on a hateful one.
CHANCES = {"ensemble++": (0.9, 0.3), "ensemble+": (0.8, 0.4), "greedy": (0.95, 0.6)}


class Study(NamedTuple):
    """The dataset, and what was drawn: hateful (seed, round), action 1 (agent, seed, round), ceiling, chance to be free."""

    data: xr.Dataset
    hateful: np.ndarray
    taken: np.ndarray
    ceiling: np.ndarray
    chance: np.ndarray


def play(
    actions: str = "publish_or_block", cost: float = 1 / 3, seeds: int = 3, agents: tuple[str, ...] = tuple(AGENTS)
) -> Study:
    source = np.random.default_rng(0)
    rounds = int(TIME[-1])
    hateful = source.random((seeds, rounds)) < 0.35
    taken = np.stack([source.random((seeds, rounds)) < np.where(hateful, *CHANCES[name][::-1]) for name in agents])
    # supervised probabilities: right more often than not
    chance = np.round(1 / (1 + np.exp(-(source.standard_normal((seeds, rounds)) + np.where(hateful, -1.0, 1.5)))), 3)
    ceiling = chance > 2 / 3
    free_reward, hate_reward = (1.0, -0.5) if actions == "publish_or_block" else (1 - cost, 0.5 - cost)
    one = np.where(hateful, hate_reward, free_reward)
    best = np.maximum(one, 0.5)

    def sums(acts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        regret = best - np.where(acts, one, 0.5)
        return regret.cumsum(axis=-1)[..., TIME - 1], (regret == 0).cumsum(axis=-1)[..., TIME - 1]

    sizes = sorted({AGENTS[name][2] for name in agents})
    shape = (1, len(agents), 1, 1, len(sizes), seeds, len(TIME))
    variables = {name: np.full(shape, np.nan) for name in ("regret", "optimal", "spread", "error", "loss")}
    for place, name in enumerate(agents):
        own = variables["regret"][0, place, 0, 0, sizes.index(AGENTS[name][2])]
        own[:], variables["optimal"][0, place, 0, 0, sizes.index(AGENTS[name][2])] = sums(taken[place])
        spread = 0.1 * (1 + np.arange(seeds))[:, None] * np.linspace(2, 1, len(TIME)) * (name != "greedy")
        for key, values in (("spread", spread), ("error", 0.3 + spread), ("loss", 1 / TIME + 0 * spread)):
            variables[key][0, place, 0, 0, sizes.index(AGENTS[name][2])] = values
    constant = np.stack([sums(np.full_like(hateful, action))[0] for action in (0, 1)])
    fixed = {"constant_regret": (("environment", "action_index", "seed", "time"), constant[None])}
    for what, values in zip(("regret", "optimal"), sums(ceiling), strict=True):
        fixed[f"ceiling_{what}"] = (("environment", "seed", "time"), values[None])
    if actions == "remove_or_review":
        cuts = np.append(np.quantile(chance, np.linspace(0, 1, 21)[:-1], method="higher"), np.inf)
        found = [sums(chance >= cut) for cut in cuts]
        for place, what in enumerate(("regret", "optimal")):
            values = np.stack([one[place] for one in found], axis=1)
            fixed[f"threshold_{what}"] = (("environment", "seed", "threshold", "time"), values[None])
    options = {"inputs": {"embeddings": "data/embeddings/tiny/hate_speech-500.nc"}, "scaling": "none", "actions": actions}
    options |= {"review_cost": cost, "passes": 1}
    specs = [
        {
            "environment": {"name": "posts", "kind": "moderation", "options": options},
            "agent": {
                "name": name,
                "kind": AGENTS[name][1],
                "options": {"hidden": [], "prior_scale": 0.2, "learning_rate": 1e-4},
            },
        }
        for name in agents
    ]
    coordinates = {
        "environment": ["posts"],
        "agent": list(agents),
        "reference": ["none"],
        "perturbation": ["none"],
        "ensemble_size": sizes,
        "seed": range(seeds),
        "time": TIME,
        "title": ("environment", ["Posts"]),
        "label": ("agent", [AGENTS[name][0] for name in agents]),
    }
    facts = {"study": "posts", "scale": "smoke", "horizon": rounds, "seeds": seeds, "specs": json.dumps(specs)}
    curves = {name: ((*FACTORS, "seed", "time"), values) for name, values in variables.items()}
    return Study(xr.Dataset(curves | fixed, coordinates, facts), hateful, taken, ceiling, chance)
