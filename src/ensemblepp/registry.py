"""Where everything that the configuration names is found: one line for each kind, and nothing is imported.

Run files and fingerprints know kinds, not places, so a module can move without a run being made again.
"""

from __future__ import annotations

import importlib
from typing import Any

#: kind of an environment -> "module:Class"
ENVIRONMENTS = {
    "linear_finite": "ensemblepp.environments.linear_finite:LinearFinite",
    "linear_sphere": "ensemblepp.environments.linear_sphere:LinearSphere",
    "quadratic": "ensemblepp.environments.candidates:Quadratic",
    "vector_quadratic": "ensemblepp.environments.candidates:VectorQuadratic",
    "neural": "ensemblepp.environments.candidates:Neural",
    "classification": "ensemblepp.environments.classification:Classification",
    "moderation": "ensemblepp.environments.moderation:Moderation",
    "moderation_tokens": "ensemblepp.environments.moderation_tokens:TokenModeration",
}

#: data set -> its module, with the surface that `ensemblepp.data` tells of
DATASETS = {
    "mushroom": "ensemblepp.data.mushroom",
    "shuttle": "ensemblepp.data.shuttle",
    "hate_speech": "ensemblepp.data.hate_speech",
    "davidson": "ensemblepp.data.davidson",
    "hatecheck": "ensemblepp.data.hatecheck",
}

#: kind of a data set of the user's -> the module that prepares it
OWN_DATASETS = {
    "table": "ensemblepp.data.table",
    "posts": "ensemblepp.data.posts",
    "hate_speech": "ensemblepp.data.hate_speech",
}

#: kind of an agent -> "module:Class"
AGENTS = {
    "linear_ts": "ensemblepp.agents.linear.thompson_sampling:LinearThompsonSampling",
    "linear_ensemblepp": "ensemblepp.agents.linear.ensemblepp:LinearEnsemblePlusPlus",
    "ensemble_sampling": "ensemblepp.agents.linear.ensemble_sampling:EnsembleSampling",
    "rrls": "ensemblepp.agents.linear.rrls:RecursiveRandomizedLeastSquares",
    "linear_greedy": "ensemblepp.agents.linear.greedy:LinearGreedy",
    "linear_ucb": "ensemblepp.agents.linear.ucb:LinearUCB",
    "greedy": "ensemblepp.agents.neural.greedy:Greedy",
    "epsilon_greedy": "ensemblepp.agents.neural.epsilon_greedy:EpsilonGreedy",
    "neural_ensemblepp": "ensemblepp.agents.neural.ensemblepp:NeuralEnsemblePlusPlus",
    "ensembleplus": "ensemblepp.agents.neural.ensembleplus:EnsemblePlus",
    "bootstrap": "ensemblepp.agents.neural.bootstrap:BootstrappedEnsemble",
    "epinet": "ensemblepp.agents.neural.epinet:EpiNet",
    "lmcts": "ensemblepp.agents.neural.lmcts:LMCTS",
    "neural_ucb": "ensemblepp.agents.neural.neural_ucb:NeuralUCB",
    "neural_ts": "ensemblepp.agents.neural.neural_ts:NeuralTS",
    "neural_linear": "ensemblepp.agents.neural.neural_linear:NeuralLinear",
    "dropout": "ensemblepp.agents.neural.dropout:Dropout",
    "text_greedy": "ensemblepp.agents.text.greedy:TextGreedy",
    "text_ensemblepp": "ensemblepp.agents.text.ensemblepp:TextEnsemblePlusPlus",
    "text_ensembleplus": "ensemblepp.agents.text.ensembleplus:TextEnsemblePlus",
}

#: name of an engine -> module with `play(agent, environment, horizon, time, on_step, checkpoint)`
ENGINES = {
    "step_by_step": "ensemblepp.engines.step_by_step",
    "linear_compiled": "ensemblepp.engines.linear.compiled",
    "linear_batched": "ensemblepp.engines.linear.batched",
    "neural_compiled": "ensemblepp.engines.neural.compiled",
    "epinet_compiled": "ensemblepp.engines.neural.epinet",
    "single_head_compiled": "ensemblepp.engines.neural.single_head",
    "neural_stacked": "ensemblepp.engines.neural.stacked",
}

#: name in the package itself -> module that defines it
PUBLIC = {
    "Agent": "ensemblepp.bandit",
    "Choice": "ensemblepp.bandit",
    "Decisions": "ensemblepp.bandit",
    "Environment": "ensemblepp.bandit",
    "LinearEnsemblePlusPlus": "ensemblepp.agents.linear.ensemblepp",
    "NeuralAgent": "ensemblepp.agents.neural.base",
    "NeuralEnsemblePlusPlus": "ensemblepp.agents.neural.ensemblepp",
    "Outcome": "ensemblepp.bandit",
    "compare": "ensemblepp.runs.comparison",
    "generator": "ensemblepp.randomness.streams",
    "moderate": "ensemblepp.runs.moderate",
    "simulate": "ensemblepp.engines.choice",
}


def class_path(table: dict[str, str], part: dict[str, Any]) -> str:
    """ "module:Class" of the environment or agent that a specification's `part` describes: by its kind, or the user's own."""
    return part["class"] if part["kind"] == "custom" else table[part["kind"]]


def environment_path(spec: dict[str, Any]) -> str:
    """ "module:Class" of a block's environment."""
    return class_path(ENVIRONMENTS, spec["environment"])


def agent_path(spec: dict[str, Any]) -> str:
    """ "module:Class" of a block's agent."""
    return class_path(AGENTS, spec["agent"])


def presentation(package: str, name: str) -> str:
    """ "module:function" of a figure or table by its name among ours; one of the user's has that for a name already.

    Args:
        package: "figures" or "tables".
        name: a module of the package, or "module:function".
    """
    entry_point = {"figures": "draw", "tables": "build"}[package]
    return name if ":" in name else f"ensemblepp.{package}.{name}:{entry_point}"


def load(path: str) -> Any:
    """What "module:name" names, imported now."""
    module, name = path.split(":")
    return getattr(importlib.import_module(module), name)


def needs(path: str) -> dict[str, Any]:
    """What the module of a figure or table, "module:function", says that it needs (`analysis.needs`), imported now."""
    return getattr(importlib.import_module(path.partition(":")[0]), "NEEDS", {})
