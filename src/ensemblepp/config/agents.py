"""config/agents.yaml: every kind of agent, a pair of laws under a name of its own, and an agent of the user's."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from ensemblepp.bandit import AgentFamily
from ensemblepp.config.agent_model import AgentModel, PlayingModel
from ensemblepp.config.fields import Place
from ensemblepp.config.linear_agents import (
    EnsembleSamplingAgent,
    LinearEnsembleAgent,
    LinearGreedyAgent,
    LinearThompsonAgent,
    LinearUCBAgent,
    RecursiveRandomizedLeastSquaresAgent,
)
from ensemblepp.config.neural_agents import (
    BootstrapAgent,
    DropoutAgent,
    EnsemblePlusAgent,
    EpiNetAgent,
    EpsilonGreedyAgent,
    GreedyAgent,
    LMCTSAgent,
    NeuralEnsembleAgent,
    NeuralLinearAgent,
    NeuralTSAgent,
    NeuralUCBAgent,
)
from ensemblepp.config.text_agents import TextEnsembleAgent, TextEnsemblePlusAgent, TextGreedyAgent


class PairAgent(AgentModel):
    """One pair of laws of a linear_ensemblepp agent under its own name; its runs are that agent's, nothing is run twice."""

    kind: Literal["pair"]
    of: str = Field(description="name of the linear_ensemblepp agent")
    reference: str = Field(description="one of its references")
    perturbation: str = Field(description="one of its perturbations")


class CustomAgent(PlayingModel):
    """An agent of your own: any class with the interface of `ensemblepp.bandit.Agent`."""

    reads: ClassVar[Literal["features", "tokens"] | None] = None
    kind: Literal["custom"]
    class_path: Place = Field(alias="class", description="`package.module:Class`")
    plays_as: Literal["any", AgentFamily] = Field(
        "any",
        description="any: round by round; linear, neural, linear_heads, single_head, epinet: by the engines for classes "
        "derived from `LinearChains`, from `NeuralAgent`, from one that is made of linear heads, from one with a `SingleHead`, "
        "or from `EpiNet`",
    )
    uses_ensemble: bool = Field(False, description="whether it has an ensemble size")
    uses_gpu: bool = Field(False, description="whether it runs on the configured device")
    hyperparameters: dict[str, Any] = Field({}, description="keyword arguments of the class")

    @property
    def ensemble(self) -> bool:  # type: ignore[override]
        return self.uses_ensemble

    @property
    def device_setting(self) -> Literal["device", "linear_device"] | None:  # type: ignore[override]
        if not self.uses_gpu:
            return None
        return "linear_device" if self.plays_as == "linear" else "device"

    def options(self) -> dict[str, Any]:
        return dict(self.hyperparameters)

    def played_as(self) -> AgentFamily | None:
        return None if self.plays_as == "any" else self.plays_as


Agent = Annotated[
    LinearThompsonAgent
    | LinearEnsembleAgent
    | PairAgent
    | EnsembleSamplingAgent
    | RecursiveRandomizedLeastSquaresAgent
    | LinearGreedyAgent
    | LinearUCBAgent
    | GreedyAgent
    | EpsilonGreedyAgent
    | NeuralEnsembleAgent
    | EnsemblePlusAgent
    | BootstrapAgent
    | EpiNetAgent
    | LMCTSAgent
    | NeuralUCBAgent
    | NeuralTSAgent
    | NeuralLinearAgent
    | DropoutAgent
    | TextGreedyAgent
    | TextEnsembleAgent
    | TextEnsemblePlusAgent
    | CustomAgent,
    Field(discriminator="kind"),
]
