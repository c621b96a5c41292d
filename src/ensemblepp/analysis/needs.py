"""What a figure or table needs of the study that it is made for, and whether a study has it.

A module says so beside its function, in a constant that is read without importing it; all keys may be left out:

    NEEDS = {
        "variables": ["constant_regret"],  # of the dataset, in every environment
        "environments": ["moderation"],  # kinds: every environment is of one of them
        "agents": ["ts"],  # names of agents that the study has
        "agent_kinds": ["neural_ensemblepp"],  # at least one agent is of one of these kinds
        "ensembles": True,  # at least one agent has an ensemble
        "compared": True,  # there are two agents at least
    }
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

#: The constant in a figure's or table's module.
CONSTANT = "NEEDS"

#: Keys of the constant, and what each holds.
KEYS: dict[str, type] = {
    "variables": list,
    "environments": list,
    "agents": list,
    "agent_kinds": list,
    "ensembles": bool,
    "compared": bool,
}

#: Variables that every run has.
ALWAYS = ("regret", "reward", "optimal")


@dataclass(frozen=True)
class Had:
    """What a study has.

    Attributes:
        environments: name -> kind.
        agents: name -> kind.
        variables: environment -> names of its variables; None where only a run can tell, as with a class of the user's.
        ensembles: whether an agent has an ensemble.
    """

    environments: Mapping[str, str]
    agents: Mapping[str, str]
    variables: Mapping[str, Collection[str] | None]
    ensembles: bool


def form_fault(needs: Any) -> str:
    """Why the value of a module's constant does not say what is needed; empty if it does."""
    if not isinstance(needs, dict):
        return f"{CONSTANT} is no mapping of {', '.join(KEYS)}"
    for key, value in needs.items():
        if key not in KEYS:
            return f"{CONSTANT}: found '{key}': must be one of {', '.join(KEYS)}"
        if not isinstance(value, KEYS[key]) or (KEYS[key] is list and not all(isinstance(name, str) for name in value)):
            expected = "a list of names" if KEYS[key] is list else "True or False"
            return f"{CONSTANT}: {key}: found {value!r}: must be {expected}"
    return ""


def unmet(needs: Mapping[str, Any], had: Had) -> Iterator[str]:
    """What is needed and not had, as "needs ...: ..."."""
    kinds = needs.get("environments")
    for name, kind in had.environments.items() if kinds else ():
        if kind not in kinds:
            yield f"needs environments of kind {' or '.join(kinds)}: '{name}' is of kind {kind}"
    for name in needs.get("agents", ()):
        if name not in had.agents:
            yield f"needs agent '{name}': the study has {', '.join(had.agents)}"
    kinds = needs.get("agent_kinds")
    if kinds and not set(kinds) & set(had.agents.values()):
        yield f"needs an agent of kind {' or '.join(kinds)}: the study has {', '.join(dict.fromkeys(had.agents.values()))}"
    if needs.get("ensembles") and not had.ensembles:
        yield f"needs an agent with an ensemble: the study has {', '.join(had.agents)}"
    if needs.get("compared") and len(had.agents) < 2:
        yield f"needs two agents to compare: the study has {', '.join(had.agents)}"
    for variable in needs.get("variables", ()):
        without = next((name for name, known in had.variables.items() if known is not None and variable not in known), None)
        if without is not None:
            known = ", ".join(sorted({*ALWAYS, *(had.variables[without] or ())}))
            yield f"needs variable '{variable}': in environment '{without}' there are {known}"
