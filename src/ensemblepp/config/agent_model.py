"""What all agents of config/agents.yaml have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from ensemblepp.bandit import AgentFamily
from ensemblepp.config.fields import Model


class AgentModel(Model):
    """What every entry under `agents` has."""

    label: str = Field(description="name in figures and tables")


class PlayingModel(AgentModel):
    """What every agent that plays has: one that is not merely a name for some of another's runs."""

    #: False for agents without an ensemble: they run once, under ensemble size 0
    ensemble: ClassVar[bool] = True
    #: which setting of config.yaml says where it runs; None: on a CPU
    device_setting: ClassVar[Literal["device", "linear_device"] | None] = None
    #: the family of its class (`bandit.AgentFamily`)
    family: ClassVar[AgentFamily | None] = None
    #: what its environments must give (`EnvironmentModel.gives`); None: whatever they give
    reads: ClassVar[Literal["features", "tokens"] | None] = "features"

    protocol: str | None = Field(None, description="a name under protocols: values per environment that agents share")
    per_environment: dict[str, dict[str, Any]] = Field(
        {}, description="values that differ in some environments, by environment name or kind; stronger than all others"
    )

    def options(self) -> dict[str, Any]:
        """The keyword arguments of the agent's class."""
        return self.model_dump(exclude=set(PlayingModel.model_fields) | {"kind"})

    def options_in(self, environment: Any, language_models: Mapping[str, Any], device: str) -> dict[str, Any]:
        """The same in one environment, on a device, for an agent that has to know more of these than others."""
        return self.options()

    def played_as(self) -> AgentFamily | None:
        """The family that decides on the engine; None: it is played round by round."""
        return self.family
