"""config/agents.yaml: agents that train a language model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from ensemblepp.config.fields import NonNegative, Positive
from ensemblepp.config.neural_agents import TrainingModel
from ensemblepp.text import precision


class TextAgentModel(TrainingModel):
    """What every agent that trains a language model has; the model is that of its environment, of kind moderation_tokens."""

    reads: ClassVar[Literal["features", "tokens"] | None] = "tokens"
    backbone_learning_rate: NonNegative | None = Field(
        None, description="Adam's step size for the language model; null: that of the heads, 0: it stays as it is"
    )
    precision: Literal["auto", "float32", "bfloat16"] = Field(
        "auto",
        description="of the model's hidden states; auto: bfloat16 on a GPU that has instructions for it. Weights are float32",
    )
    gradient_checkpointing: bool = Field(
        False, description="compute hidden states twice and do not keep them, where memory is short"
    )

    def options_in(self, environment: Any, language_models: Mapping[str, Any], device: str) -> dict[str, Any]:
        model = language_models[environment.language_model]
        own = {"folder": environment.model_folder(), "pooling": model.pooling, "actions": environment.actions}
        # processors that have it would train to other numbers than those that have not
        automatic = precision.resolve("auto", device) if device == "cuda" else "float32"
        return self.options() | own | ({"precision": automatic} if self.precision == "auto" else {})


class TextGreedyAgent(TextAgentModel):
    """One linear head per action on a language model, both trained: no ensemble, no prior, no noise."""

    ensemble: ClassVar[bool] = False
    kind: Literal["text_greedy"]


class TextScalesModel(TextAgentModel):
    """What agents with fixed random prior heads on a language model have."""

    prior_scale: NonNegative = Field(0.2, description="factor of the fixed prior heads")
    posterior_scale: Positive = Field(0.1, description="factor of the trained heads of the ensemble")
    perturbation_scale: NonNegative = Field(0.01, description="factor of the perturbations z in the targets")


class TextEnsembleAgent(TextScalesModel):
    """Ensemble++ on a language model: the base head trains it, the ensemble's heads do not."""

    kind: Literal["text_ensemblepp"]
    references: list[str] = Field(
        ["sphere"], min_length=1, description="laws of zeta (acting), as of neural_ensemblepp; a backbone for each pair"
    )
    perturbations: list[str] = Field(["sphere"], min_length=1, description="laws of z (data noise), as of neural_ensemblepp")
    update: str = Field("coordinate", description="law of the directions that the loss averages over, as under `references`")


class TextEnsemblePlusAgent(TextScalesModel):
    """Ensemble+ on a language model, which its members train."""

    kind: Literal["text_ensembleplus"]
    equal_noise: bool = Field(True, description="as of ensembleplus")
