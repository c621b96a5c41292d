"""config/agents.yaml: agents that learn with a neural network."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ensemblepp.bandit import AgentFamily
from ensemblepp.config.agent_model import PlayingModel
from ensemblepp.config.fields import Count, Length, NonNegative, Positive, Width


class TrainingModel(PlayingModel):
    """What every agent that trains has: the paper's training protocol."""

    device_setting: ClassVar[Literal["device", "linear_device"] | None] = "device"
    family: ClassVar[AgentFamily | None] = "neural"
    learning_rate: Positive = Field(1e-4, description="Adam's step size")
    batch_size: Length = Field(128, description="samples per gradient step")
    weight_decay: NonNegative = Field(0.01, description="lambda; divided by the samples in the buffer")
    buffer_capacity: Count = Field(10_000, description="C, samples in the FIFO buffer")
    gradient_steps: Count = Field(1, description="G, gradient steps per round that trains")
    update_every: Count = Field(1, description="every how many rounds the agent trains")
    warm_up: Annotated[int, Field(ge=0)] = Field(128, description="rounds before the first gradient step")
    timed: bool = Field(False, description="record the seconds of the rounds; such a run does not repeat to the bit")


class NeuralAgentModel(TrainingModel):
    """What every agent with a network of its own has."""

    hidden: list[Width] = Field([64, 64], description="widths of the ReLU trunk; empty: linear heads on the features")


class LossModel(NeuralAgentModel):
    """What agents that can be fitted to classes have."""

    loss: Literal["squared", "cross_entropy"] = Field("squared", description="cross_entropy: two logits, for rewards 0 and 1")


class ScalesModel(LossModel):
    """What agents with a fixed random prior have."""

    prior_scale: NonNegative = Field(1.0, description="factor of the fixed prior")
    posterior_scale: Positive = Field(0.1, description="factor of the trained part of the ensemble")
    perturbation_scale: NonNegative = Field(0.01, description="factor of the perturbations z in the targets")


class GreedyAgent(LossModel):
    """The trunk and one linear head: no ensemble, no prior, no noise."""

    family: ClassVar[AgentFamily | None] = "linear_heads"
    ensemble: ClassVar[bool] = False
    kind: Literal["greedy"]


class EpsilonGreedyAgent(LossModel):
    """Greedy, but for a random action now and then."""

    family: ClassVar[AgentFamily | None] = "linear_heads"
    ensemble: ClassVar[bool] = False
    kind: Literal["epsilon_greedy"]
    epsilon: Annotated[float, Field(ge=0, le=1)] = Field(0.05, description="probability of a random action")


class NeuralEnsembleAgent(ScalesModel):
    """Neural Ensemble++ for every pair of the given laws."""

    family: ClassVar[AgentFamily | None] = "linear_heads"
    kind: Literal["neural_ensemblepp"]
    references: list[str] = Field(
        ["sphere"],
        min_length=1,
        description="laws of zeta (acting): gaussian, sphere, cube, coordinate, sparse, or one of `laws`",
    )
    perturbations: list[str] = Field(
        ["sphere"], min_length=1, description="laws of z (data noise): the same, and raw_gaussian, which is N(0, I/M)"
    )
    update: str = Field("coordinate", description="law of the directions that the loss averages over, as under `references`")


class EnsemblePlusAgent(ScalesModel):
    """Ensemble+: members on one trunk, with a frozen prior network of its own trunk."""

    family: ClassVar[AgentFamily | None] = "linear_heads"
    kind: Literal["ensembleplus"]
    equal_noise: bool = Field(
        True,
        description="perturb a member by the standard deviation of Ensemble++'s; false: 1/sqrt(M) of it (released code)",
    )
    any_class: bool = Field(
        False, description="with two logits, act by the greatest of any class, as the released code does by mistake"
    )


class BootstrapAgent(LossModel):
    """Members on one trunk that see each sample twice or not at all; no priors."""

    family: ClassVar[AgentFamily | None] = "linear_heads"
    kind: Literal["bootstrap"]


class EpiNetAgent(ScalesModel):
    """EpiNet: a base network, a small network of features and index, and frozen prior networks."""

    family: ClassVar[AgentFamily | None] = "epinet"
    kind: Literal["epinet"]
    index_samples: Length = Field(16, description="indices that the loss averages over, drawn for every sample")
    double_softmax: bool = Field(
        False, description="with two logits, feed their softmax to the cross-entropy, as the released code does by mistake"
    )


class LMCTSAgent(NeuralAgentModel):
    """Langevin Monte Carlo Thompson sampling: noisy gradient steps on the whole history (no minibatches, no buffer)."""

    ensemble: ClassVar[bool] = False
    kind: Literal["lmcts"]
    learning_rate: Positive = Field(1e-3, description="step size of the first rounds")
    gradient_steps: Count = Field(50, description="greatest number of Langevin steps per round, K")
    weight_decay: NonNegative = Field(2.0, description="added to the gradient, times the parameters")
    warm_up: Annotated[int, Field(ge=0)] = Field(0, description="rounds before the first Langevin step")
    temperature: Positive = Field(0.01, description="the inverse temperature is 1 / (temperature d ln T)")
    decay_every: Count = Field(20, description="the step size becomes learning_rate / t at every so many rounds")


class NeuralUCBAgent(NeuralAgentModel):
    """NeuralUCB with a diagonal matrix of gradients."""

    family: ClassVar[AgentFamily | None] = "single_head"
    ensemble: ClassVar[bool] = False
    kind: Literal["neural_ucb"]
    ridge: Positive = Field(1.0, description="lambda, the matrix at the start")
    exploration: NonNegative = Field(
        0.1, description="nu, factor of sqrt(ridge g^T U^-1 g / m), U = ridge I + sum g g^T / m, m the trunk's width"
    )


class NeuralTSAgent(NeuralUCBAgent):
    """NeuralTS with a diagonal matrix of gradients."""

    kind: Literal["neural_ts"]  # type: ignore[assignment]


class NeuralLinearAgent(NeuralAgentModel):
    """NeuralLinear: Thompson sampling by Bayesian linear regression on the features that Greedy's network learns."""

    family: ClassVar[AgentFamily | None] = "single_head"
    ensemble: ClassVar[bool] = False
    kind: Literal["neural_linear"]
    prior_variance: Positive = Field(1.0, description="variance of the regression's weights")
    noise: Positive = Field(0.1, description="standard deviation of the rewards in the regression")
    refresh: Count = Field(100, description="every how many rounds the regression is done anew with the present features")


class DropoutAgent(LossModel):
    """MC dropout: the network's units are dropped at random when it acts as when it trains."""

    family: ClassVar[AgentFamily | None] = "single_head"
    ensemble: ClassVar[bool] = False
    kind: Literal["dropout"]
    rate: Annotated[float, Field(gt=0, lt=1)] = Field(0.2, description="probability that a hidden unit is dropped")
