"""A small whole configuration, to be changed in one place or another, and the faults that a change makes."""

from __future__ import annotations

import pytest
import yaml

from ensemblepp.config.loading import load
from ensemblepp.errors import ConfigError

SMALL = """
scale: quick
environments:
  line: {kind: linear_finite, title: Line, dimension: 20, actions: 5}
  mushroom: {kind: classification, title: Mushroom, dataset: mushroom}
  posts: {kind: moderation, title: Posts, language_model: tiny, posts: 1200}
language_models:
  tiny: {source: folder, location: models/tiny, pooling: last}
agents:
  ts: {kind: linear_ts, label: TS}
  linear: {kind: linear_ensemblepp, label: Ensemble++, references: [gaussian], perturbations: [sphere, cube]}
  neural:
    kind: neural_ensemblepp
    label: Ensemble++
    per_environment:
      classification: {gradient_steps: 50, hidden: [8]}
      mushroom: {gradient_steps: 7}
  greedy: {kind: greedy, label: Greedy}
studies:
  curves:
    title: Curves
    agents: [ts, linear]
    figures: [linear_regret]
    tables: [final_regret]
    scales:
      smoke: {environments: [line], horizon: 5, seeds: 1}
      quick: {environments: [line], horizon: 20, seeds: 3, ensemble_sizes: [2, 4], seeds_per_block: 2}
  deep:
    title: Deep
    agents: [neural, greedy]
    scales:
      quick: {environments: [mushroom, posts], horizon: 30, seeds: [0, 5]}
"""


def small(**changes: object) -> dict:
    """SMALL with other values; a key is the path to a value, with `/` between its parts, and None removes it."""
    values = yaml.safe_load(SMALL)
    for path, value in changes.items():
        *parents, last = path.split("/")
        place = values
        for parent in parents:
            place = place[parent]
        if value is None:
            del place[last]
        else:
            place[last] = value
    return values


def faults(values: dict) -> list[str]:
    """The lines of the message with which `values` are refused."""
    with pytest.raises(ConfigError) as error:
        load(values)
    return str(error.value).splitlines()


PAIR = {"kind": "pair", "label": "Pair", "of": "linear"}


def with_pairs(**changes: object) -> dict:
    """SMALL with two pairs of `linear` in place of it in the curves."""
    pairs = {
        "agents/cubed": PAIR | {"label": "Cubed", "reference": "gaussian", "perturbation": "cube"},
        "agents/round": PAIR | {"reference": "gaussian", "perturbation": "sphere"},
        "studies/curves/agents": ["ts", "cubed", "round"],
    }
    return small(**pairs | changes)


ENVIRONMENTS, AGENTS, STUDIES = (f"config/{name}.yaml: {name}" for name in ("environments", "agents", "studies"))
LINUCB = {"kind": "linear_ucb", "label": "LinUCB"}
BALL = {"kind": "linear_sphere", "title": "Ball", "dimension": 4}
