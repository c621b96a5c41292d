"""config/agents.yaml: laws of zeta and z of the user's, and where a law can stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field

from ensemblepp.config.fields import Model, Place
from ensemblepp.randomness.distributions import ALLOWED, PERTURBATIONS, is_law

#: An agent's keys that name laws: what else than the laws of `distributions.LAWS` each allows.
ROLES: dict[str, tuple[str, ...]] = {
    "references": (),
    "perturbations": tuple(name for name in PERTURBATIONS if not is_law(name)),
    "update": (),
}


class OwnLaw(Model):
    """A law of your own, wherever an agent names one: a function of standard normal vectors."""

    function: Place = Field(
        description="`package.module:function`, from standard normal vectors (..., M) to zeta (..., M): mean 0, covariance I"
    )
    normalise: bool = Field(True, description="whether perturbations are zeta over its length; false: zeta / sqrt(M)")


def written_out(options: Mapping[str, Any], laws: Mapping[str, OwnLaw]) -> dict[str, Any]:
    """An agent's options with each law of the user's as `distributions.law` takes it."""
    return {key: _written(value, laws) if key in ROLES else value for key, value in options.items()}


def _written(value: Any, laws: Mapping[str, OwnLaw]) -> Any:
    if isinstance(value, list):
        return [_written(one, laws) for one in value]
    return {"name": value, **laws[value].model_dump()} if isinstance(value, str) and value in laws else value


def faults(values: Mapping[str, Any], laws: Mapping[str, OwnLaw]) -> Iterator[str]:
    """Each law among an agent's values that there is not, as "key: found ...: must be one of ...", and laws stated twice."""
    for role, others in ROLES.items():
        value = values.get(role, [])
        if isinstance(value, list) and all(isinstance(name, str) for name in value) and len(set(value)) < len(value):
            yield f"{role}: found {value}: each law only once"
        for place, name in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if not isinstance(name, str) or is_law(name) or name in others or name in laws:
                continue
            key = role if place is None else f"{role}.{place}"
            yield f"{key}: found '{name}': must be one of {', '.join([ALLOWED, *others, *laws])}"
