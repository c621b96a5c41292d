"""Ensemble++: scalable exploration with a shared ensemble factor, and the study that checks the paper's claims.

What stands here is what agents and environments of one's own are made with, what plays them and what compares them. Each is
loaded when it is asked for, so that `import ensemblepp` loads no numerical library.
"""

from __future__ import annotations

# not from typing, which takes longer to load than a job to ask for a process
TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

    from ensemblepp.agents.linear.ensemblepp import LinearEnsemblePlusPlus
    from ensemblepp.agents.neural.base import NeuralAgent
    from ensemblepp.agents.neural.ensemblepp import NeuralEnsemblePlusPlus
    from ensemblepp.bandit import Agent, Choice, Decisions, Environment, Outcome
    from ensemblepp.engines.choice import simulate
    from ensemblepp.randomness.streams import generator
    from ensemblepp.runs.comparison import compare
    from ensemblepp.runs.moderate import moderate

__version__ = "1.0.0"

__all__ = [
    "Agent",
    "Choice",
    "Decisions",
    "Environment",
    "LinearEnsemblePlusPlus",
    "NeuralAgent",
    "NeuralEnsemblePlusPlus",
    "Outcome",
    "compare",
    "generator",
    "moderate",
    "simulate",
]


def __getattr__(name: str) -> Any:
    # not `from ensemblepp import registry`, which asks this function for it
    from ensemblepp.registry import PUBLIC, load

    if name not in PUBLIC:
        raise AttributeError(f"module 'ensemblepp' has no attribute '{name}'")
    return load(f"{PUBLIC[name]}:{name}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
