"""The typed configuration: the one source of defaults, of the JSON schema and of the tables in config/README.md.

Snakemake merges config/config.yaml, environments.yaml, agents.yaml and studies.yaml into one mapping; `load` checks all of
it before any job exists and returns a `Config`, which resolves studies into run blocks. Nothing here imports torch or
xarray: this module is read every time the workflow is parsed.
"""

from __future__ import annotations

import ast
import importlib.util
import itertools
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from ensemblepp.data import load as load_dataset_module
from ensemblepp.data.sources import MIRROR_VARIABLE
from ensemblepp.distributions import Law, Perturbation
from ensemblepp.errors import ConfigError
from ensemblepp.streams import MAX_WIDTH

Scale = Literal["smoke", "quick", "paper"]
SCALES: tuple[Scale, ...] = get_args(Scale)

#: Where each top-level key is written, for error messages.
FILES = {
    "environments": "config/environments.yaml",
    "language_models": "config/environments.yaml",
    "protocols": "config/agents.yaml",
    "agents": "config/agents.yaml",
    "studies": "config/studies.yaml",
}
CONFIG_FILES = ("config/config.yaml", *dict.fromkeys(FILES.values()))

#: What is presented from a study, and in which formats.
ARTEFACTS = {"figures": ("pdf", "png"), "tables": ("csv", "md", "tex", "html")}

#: The function that makes a module of ensemblepp.figures or ensemblepp.tables one that a study can declare.
_ENTRY_POINTS = {"figures": "draw", "tables": "build"}

#: Posts that one job embeds, on one thread: texts are cheap to resume and jobs run side by side.
EMBEDDING_SHARD = 500

#: What every agent's class is given by `ensemblepp.blocks.run`, so no hyper-parameter of the user's can be called so.
_GIVEN = {"self", "seeds", "dimension", "ensemble_size", "horizon", "device"}

_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]*")

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Count = Annotated[int, Field(ge=1)]
EnsembleSize = Annotated[int, Field(ge=1, le=MAX_WIDTH)]


class Model(BaseModel):
    """A part of the configuration; unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


# --------------------------------------------------------------------------------------------------- environments


class LinearFiniteEnvironment(Model):
    """Finite-action linear bandit: theta* ~ N(0, prior_variance I), a decision set per seed or a fresh one per round."""

    class_path: ClassVar[str] = "ensemblepp.environments.linear_finite:LinearFinite"
    kind: Literal["linear_finite"]
    title: str = Field(description="name in figures and tables")
    dimension: Annotated[int, Field(ge=1, le=MAX_WIDTH)] = Field(description="d, entries of a feature vector")
    actions: Count = Field(description="size of the decision set")
    features: Literal["cube", "sphere"] = Field(
        "cube", description="law of an action's features: uniform in [-u, u]^d, or uniform on the unit sphere"
    )
    varying: bool = Field(False, description="whether every round has a fresh decision set (varying contexts)")
    feature_bound: Literal["1/sqrt(5)", "1/sqrt(d)"] = Field(
        "1/sqrt(5)", description="u; the paper's appendix and the released code say 1/sqrt(5), its main text 1/sqrt(d)"
    )
    prior_variance: Positive = Field(10.0, description="variance of every entry of theta*")
    noise: NonNegative = Field(1.0, description="standard deviation of the reward noise")

    def options(self) -> dict[str, Any]:
        bound = (5 if self.feature_bound == "1/sqrt(5)" else self.dimension) ** -0.5
        return self.model_dump(exclude={"kind", "title"}) | {"feature_bound": bound}


class LinearSphereEnvironment(Model):
    """Compact-action linear bandit: the decision set is the unit sphere, theta* ~ N(0, prior_variance I)."""

    class_path: ClassVar[str] = "ensemblepp.environments.linear_sphere:LinearSphere"
    kind: Literal["linear_sphere"]
    title: str = Field(description="name in figures and tables")
    dimension: Annotated[int, Field(ge=1, le=MAX_WIDTH)] = Field(description="d, entries of a feature vector")
    prior_variance: Positive = Field(10.0, description="variance of every entry of theta*")
    noise: NonNegative = Field(1.0, description="standard deviation of the reward noise")

    def options(self) -> dict[str, Any]:
        return self.model_dump(exclude={"kind", "title"})


class CandidatesEnvironment(Model):
    """What the synthetic nonlinear bandits share: a list of candidate actions, of which every round offers some."""

    title: str = Field(description="name in figures and tables")
    dimension: Count = Field(100, description="d, entries of a feature vector")
    candidates: Count = Field(1000, description="actions in the list, |X|")
    offered: Count = Field(50, description="how many of them a round offers, uniformly without replacement")
    features: Literal["sphere", "gaussian"] = Field(
        "sphere", description="law of a candidate's features: uniform on the unit sphere, or N(0, I)"
    )

    @model_validator(mode="after")
    def _enough(self) -> Any:
        if self.offered > self.candidates:
            raise ValueError(f"offered is {self.offered}: cannot be more than the {self.candidates} candidates")
        return self

    def options(self) -> dict[str, Any]:
        return self.model_dump(exclude={"kind", "title"})


class QuadraticEnvironment(CandidatesEnvironment):
    """Quadratic bandit: f(x) = scale x^T Theta Theta^T x, Theta a d x d matrix of N(0, 1) entries."""

    class_path: ClassVar[str] = "ensemblepp.environments.candidates:Quadratic"
    kind: Literal["quadratic"]
    scale: Positive = Field(0.01, description="factor of the quadratic form")
    noise: NonNegative = Field(0.1, description="standard deviation of the reward noise")


class VectorQuadraticEnvironment(CandidatesEnvironment):
    """Vector quadratic bandit: f(x) = scale (x^T theta)^2."""

    class_path: ClassVar[str] = "ensemblepp.environments.candidates:VectorQuadratic"
    kind: Literal["vector_quadratic"]
    scale: Positive = Field(10.0, description="factor of the square")
    parameter: Literal["ball", "sphere"] = Field("ball", description="law of theta: uniform in the unit ball, or on the sphere")
    noise: NonNegative = Field(0.1, description="standard deviation of the reward noise")


class NeuralEnvironment(CandidatesEnvironment):
    """Neural bandit: Bernoulli rewards, their probability the second softmax output of a random ReLU network."""

    class_path: ClassVar[str] = "ensemblepp.environments.candidates:Neural"
    kind: Literal["neural"]
    hidden: list[Count] = Field([50, 50], description="widths of the network's layers")
    temperature: Positive = Field(0.1, description="divides the logits; the smaller, the less noise")
    weights: Literal["xavier", "testbed"] = Field(
        "xavier", description="law of the network: the released lineage's, or the Neural Testbed's"
    )


class ClassificationEnvironment(Model):
    """A UCI classification data set as a bandit: one action per class, reward 1 for the right one."""

    class_path: ClassVar[str] = "ensemblepp.environments.classification:Classification"
    kind: Literal["classification"]
    title: str = Field(description="name in figures and tables")
    dataset: Literal["mushroom", "shuttle"] = Field(description="the UCI data set")
    coding: Literal["onehot", "ordinal"] = Field("onehot", description="how nominal attributes become numbers")
    noise: NonNegative = Field(0.1, description="standard deviation of the reward noise")
    passes: Count = Field(1, description="how often every row may be shown (the paper's T = 10,000 needs 2 on Mushroom)")

    def options(self) -> dict[str, Any]:
        return {
            "inputs": {"data": f"data/prepared/{self.dataset}.nc"},
            **self.model_dump(include={"coding", "noise", "passes"}),
        }


class ModerationEnvironment(Model):
    """Hate-speech moderation: publish or block a post, known by the embedding of a frozen language model."""

    class_path: ClassVar[str] = "ensemblepp.environments.moderation:Moderation"
    kind: Literal["moderation"]
    title: str = Field(description="name in figures and tables")
    dataset: Literal["hate_speech"] = Field("hate_speech", description="the posts")
    language_model: str = Field(description="a name under language_models")
    posts: Count = Field(description="distinct posts in the stream; each is embedded once")
    scaling: Literal["unit", "none"] = Field("unit", description="norm of the embeddings")
    passes: Count = Field(1, description="how often every post may be shown")

    def options(self) -> dict[str, Any]:
        return {"inputs": {"embeddings": self.shards()}, **self.model_dump(include={"scaling", "passes"})}

    def shards(self) -> list[str]:
        """The files that hold the embeddings of the first `posts` posts; a greater number only adds files."""
        starts = range(0, self.posts, EMBEDDING_SHARD)
        ends = [min(start + EMBEDDING_SHARD, self.posts) - 1 for start in starts]
        folder = f"data/embeddings/{self.language_model}"
        return [f"{folder}/{self.dataset}-{start}-{end}.nc" for start, end in zip(starts, ends, strict=True)]


Environment = Annotated[
    LinearFiniteEnvironment
    | LinearSphereEnvironment
    | QuadraticEnvironment
    | VectorQuadraticEnvironment
    | NeuralEnvironment
    | ClassificationEnvironment
    | ModerationEnvironment,
    Field(discriminator="kind"),
]


class LanguageModel(Model):
    """A language model and how a text becomes one vector."""

    source: Literal["hub", "package", "folder"] = Field(
        description="a hub repository, a path inside an installed Python package, or a local folder"
    )
    location: str = Field(description="repository name, `package/path` or folder")
    revision: str = Field("main", description="hub revision (branch, tag or commit)")
    pooling: Literal["last", "mean"] = Field(description="hidden state of the last token, or the mean over tokens")
    max_tokens: Count = Field(512, description="longer texts are cut")


# --------------------------------------------------------------------------------------------------------- agents


class AgentModel(Model):
    """What every agent has."""

    #: False for agents without an ensemble: they run once, under ensemble size 0
    ensemble: ClassVar[bool] = True
    neural: ClassVar[bool] = False
    label: str = Field(description="name in figures and tables")

    def options(self) -> dict[str, Any]:
        return self.model_dump(exclude={"kind", "label", "protocol", "per_environment"})


class LinearAgentModel(AgentModel):
    """What every linear agent has."""

    prior_variance: Positive = Field(10.0, description="Sigma_0 = prior_variance I")


class LinearChainsModel(LinearAgentModel):
    """What the linear agents with theta = mean + beta_t A zeta share."""

    inflation_delta: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        None, description="delta of the theory's inflation beta_t; null: beta_t = 1, as in every experiment of the paper"
    )
    precision: Literal["auto", "mixed", "float64"] = Field(
        "auto",
        description="of ensemble and scores (mean and covariance are float64); auto: float64 on the unit sphere, else mixed",
    )
    pruning: bool = Field(
        True, description="leave out scores of actions that cannot be the best; same choices, but no measure of an agent's cost"
    )


class LinearThompsonAgent(LinearChainsModel):
    """Exact Thompson sampling in a linear bandit."""

    class_path: ClassVar[str] = "ensemblepp.agents.linear_ts:LinearThompsonSampling"
    ensemble: ClassVar[bool] = False
    kind: Literal["linear_ts"]


class LinearEnsembleAgent(LinearChainsModel):
    """Linear Ensemble++ for every pair of the given laws; with the coordinate reference alone it is the paper's ES."""

    class_path: ClassVar[str] = "ensemblepp.agents.linear_ensemblepp:LinearEnsemblePlusPlus"
    kind: Literal["linear_ensemblepp"]
    references: list[Law] = Field(min_length=1, description="laws of zeta (acting)")
    perturbations: list[Perturbation] = Field(
        min_length=1, description="laws of z (data noise); raw_gaussian is N(0, I/M), the others have unit length"
    )
    exact_subspace: bool = Field(
        False, description="on the unit sphere with M < d: play within the span of A_0, as exact arithmetic does"
    )
    track_covariance: bool = Field(False, description="record the extreme eigenvalues of Sigma^-1/2 A A^T Sigma^-1/2 (slow)")


class PairAgent(AgentModel):
    """One pair of laws of a linear_ensemblepp agent under its own name; its runs are that agent's, nothing is run twice."""

    kind: Literal["pair"]
    of: str = Field(description="name of the linear_ensemblepp agent")
    reference: Law = Field(description="one of its references")
    perturbation: Perturbation = Field(description="one of its perturbations")


class EnsembleSamplingAgent(LinearChainsModel):
    """Classical ensemble sampling: M independent members with perturbed rewards, one of them acts."""

    class_path: ClassVar[str] = "ensemblepp.agents.linear_ensemble_sampling:EnsembleSampling"
    kind: Literal["ensemble_sampling"]


class RecursiveRandomizedLeastSquaresAgent(LinearChainsModel):
    """RRLS: one member with perturbed rewards (paper, Appendix "Recursive Randomized Least Squares")."""

    class_path: ClassVar[str] = "ensemblepp.agents.linear_ensemble_sampling:RecursiveRandomizedLeastSquares"
    ensemble: ClassVar[bool] = False
    kind: Literal["rrls"]


class LinearGreedyAgent(LinearChainsModel):
    """Greedy least squares: theta = mean."""

    class_path: ClassVar[str] = "ensemblepp.agents.linear_greedy:LinearGreedy"
    ensemble: ClassVar[bool] = False
    kind: Literal["linear_greedy"]


class LinearUCBAgent(LinearAgentModel):
    """LinUCB, on finite decision sets."""

    class_path: ClassVar[str] = "ensemblepp.agents.linear_ucb:LinearUCB"
    ensemble: ClassVar[bool] = False
    kind: Literal["linear_ucb"]
    width: Positive | None = Field(None, description="factor of the standard deviation; null: the theory's beta_t")
    delta: Annotated[float, Field(gt=0, lt=1)] = Field(0.05, description="confidence level of beta_t")


class NeuralAgentModel(AgentModel):
    """What every neural agent has: the paper's training protocol."""

    neural: ClassVar[bool] = True
    protocol: str | None = Field(None, description="a name under protocols: values per environment that agents share")
    hidden: list[Count] = Field([64, 64], description="widths of the ReLU trunk; empty: linear heads on the features")
    learning_rate: Positive = Field(1e-4, description="Adam's step size")
    batch_size: Count = Field(128, description="samples per gradient step")
    weight_decay: NonNegative = Field(0.01, description="lambda; divided by the samples in the buffer")
    buffer_capacity: Count = Field(10_000, description="C, samples in the FIFO buffer")
    gradient_steps: Count = Field(1, description="G, gradient steps per round that trains")
    update_every: Count = Field(1, description="every how many rounds the agent trains")
    warm_up: Annotated[int, Field(ge=0)] = Field(128, description="rounds before the first gradient step")
    timed: bool = Field(False, description="record the seconds of the rounds; such a run does not repeat to the bit")
    per_environment: dict[str, dict[str, Any]] = Field(
        {}, description="values that differ in some environments, by environment name or kind; stronger than the protocol's"
    )


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

    class_path: ClassVar[str] = "ensemblepp.agents.greedy:Greedy"
    ensemble: ClassVar[bool] = False
    kind: Literal["greedy"]


class EpsilonGreedyAgent(LossModel):
    """Greedy, but for a random action now and then."""

    class_path: ClassVar[str] = "ensemblepp.agents.greedy:EpsilonGreedy"
    ensemble: ClassVar[bool] = False
    kind: Literal["epsilon_greedy"]
    epsilon: Annotated[float, Field(ge=0, le=1)] = Field(0.05, description="probability of a random action")


class NeuralEnsembleAgent(ScalesModel):
    """Neural Ensemble++ for every pair of the given laws."""

    class_path: ClassVar[str] = "ensemblepp.agents.neural_ensemblepp:NeuralEnsemblePlusPlus"
    kind: Literal["neural_ensemblepp"]
    references: list[Law] = Field(["sphere"], min_length=1, description="laws of zeta (acting)")
    perturbations: list[Perturbation] = Field(["sphere"], min_length=1, description="laws of z (data noise)")
    update: Law = Field("coordinate", description="law of the directions that the loss averages over")


class EnsemblePlusAgent(ScalesModel):
    """Ensemble+: members on one trunk, with a frozen prior network of its own trunk."""

    class_path: ClassVar[str] = "ensemblepp.agents.neural_ensembleplus:EnsemblePlus"
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

    class_path: ClassVar[str] = "ensemblepp.agents.neural_ensembleplus:BootstrappedEnsemble"
    kind: Literal["bootstrap"]


class EpiNetAgent(ScalesModel):
    """EpiNet: a base network, a small network of features and index, and frozen prior networks."""

    class_path: ClassVar[str] = "ensemblepp.agents.epinet:EpiNet"
    kind: Literal["epinet"]
    index_samples: Count = Field(16, description="indices that the loss averages over, drawn for every sample")
    double_softmax: bool = Field(
        False, description="with two logits, feed their softmax to the cross-entropy, as the released code does by mistake"
    )


class LMCTSAgent(NeuralAgentModel):
    """Langevin Monte Carlo Thompson sampling: noisy gradient steps on the whole history (no minibatches, no buffer)."""

    class_path: ClassVar[str] = "ensemblepp.agents.lmcts:LMCTS"
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

    class_path: ClassVar[str] = "ensemblepp.agents.neural_gradients:NeuralUCB"
    ensemble: ClassVar[bool] = False
    kind: Literal["neural_ucb"]
    ridge: Positive = Field(1.0, description="lambda, the matrix at the start")
    exploration: NonNegative = Field(
        0.1, description="nu, factor of sqrt(ridge g^T U^-1 g / m), U = ridge I + sum g g^T / m, m the trunk's width"
    )


class NeuralTSAgent(NeuralUCBAgent):
    """NeuralTS with a diagonal matrix of gradients."""

    class_path: ClassVar[str] = "ensemblepp.agents.neural_gradients:NeuralTS"
    kind: Literal["neural_ts"]  # type: ignore[assignment]


class NeuralLinearAgent(NeuralAgentModel):
    """NeuralLinear: Thompson sampling by Bayesian linear regression on the features that Greedy's network learns."""

    class_path: ClassVar[str] = "ensemblepp.agents.neural_linear:NeuralLinear"
    ensemble: ClassVar[bool] = False
    kind: Literal["neural_linear"]
    prior_variance: Positive = Field(1.0, description="variance of the regression's weights")
    noise: Positive = Field(0.1, description="standard deviation of the rewards in the regression")
    refresh: Count = Field(100, description="every how many rounds the regression is done anew with the present features")


class DropoutAgent(LossModel):
    """MC dropout: the network's units are dropped at random when it acts as when it trains."""

    class_path: ClassVar[str] = "ensemblepp.agents.dropout:Dropout"
    ensemble: ClassVar[bool] = False
    kind: Literal["dropout"]
    rate: Annotated[float, Field(gt=0, lt=1)] = Field(0.2, description="probability that a hidden unit is dropped")


class CustomAgent(AgentModel):
    """An agent of your own: any class with the interface of `ensemblepp.agents.base.Agent`."""

    kind: Literal["custom"]
    class_path: str = Field(alias="class", description="`package.module:Class`", pattern=r"^[\w.]+:\w+$")
    uses_ensemble: bool = Field(False, description="whether it has an ensemble size")
    uses_gpu: bool = Field(False, description="whether it runs on the configured device")
    hyperparameters: dict[str, Any] = Field({}, description="keyword arguments of the class")

    @property
    def ensemble(self) -> bool:  # type: ignore[override]
        return self.uses_ensemble

    @property
    def neural(self) -> bool:  # type: ignore[override]
        return self.uses_gpu

    def options(self) -> dict[str, Any]:
        return dict(self.hyperparameters)


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
    | CustomAgent,
    Field(discriminator="kind"),
]


# -------------------------------------------------------------------------------------------------------- studies


class Grid(Model):
    """What a scale sets: horizon, seeds and grids."""

    environments: list[str] = Field(min_length=1, description="names under environments")
    horizon: Count = Field(description="T, rounds per run")
    seeds: Count | list[Annotated[int, Field(ge=0)]] = Field(description="a number n (seeds 0..n-1) or a list")
    ensemble_sizes: list[EnsembleSize] = Field([8], min_length=1, description="M")
    seeds_per_block: Count = Field(10, description="seeds simulated together: one file, one job")

    @field_validator("seeds", mode="before")
    @classmethod
    def _some_seeds(cls, seeds: Any) -> Any:
        # before the type is checked: of a union, pydantic reports every branch
        listed = seeds if isinstance(seeds, list) else [seeds]
        whole = all(type(seed) is int and seed >= 0 for seed in listed)
        if not whole or not listed or len(set(listed)) < len(listed) or seeds == 0:
            raise ValueError("must be a number of at least 1, or a list of whole numbers, each only once")
        return seeds

    def seed_list(self) -> list[int]:
        return list(range(self.seeds)) if isinstance(self.seeds, int) else sorted(self.seeds)

    def seed_blocks(self) -> Iterator[tuple[int, int]]:
        """(first, last) of runs of consecutive seeds, cut at multiples of `seeds_per_block`."""
        by_block = itertools.groupby(
            enumerate(self.seed_list()), lambda pair: (pair[1] - pair[0], pair[1] // self.seeds_per_block)
        )
        for _, pairs in by_block:
            seeds = [seed for _, seed in pairs]
            yield seeds[0], seeds[-1]


class Study(Model):
    """A declared grid of runs, and what is drawn from it."""

    title: str = Field(description="heading in the report")
    agents: list[str] = Field(min_length=1, description="names under agents")
    figures: list[str] = Field([], description="modules of ensemblepp.figures")
    tables: list[str] = Field([], description="modules of ensemblepp.tables")
    scales: dict[Scale, Grid] = Field(min_length=1, description="one grid per scale; a scale left out skips the study")


class Settings(Model):
    """config/config.yaml: what to run, where, and where raw data may come from."""

    scale: Scale = Field("quick", description="smoke (a minute, CI), quick (minutes) or paper (as published)")
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto",
        description="where neural agents train; auto takes a GPU where torch sees one, cuda also requests one on SLURM",
    )
    linear_device: Literal["cpu", "cuda"] = Field(
        "cpu", description="where linear agents run: the compiled kernel on cpu, one large batch per block on cuda"
    )
    mirror: str | None = Field(
        None,
        description="folder looked in for raw files before the network; the variable ENSEMBLEPP_MIRROR does the same",
    )
    on_unreachable: Literal["auto", "skip", "fail"] = Field(
        "auto",
        description="when raw data cannot be had: skip the studies that need it, or fail; auto skips at smoke and quick",
    )


class Config(Settings):
    """Everything that the YAML files declare."""

    language_models: dict[str, LanguageModel] = {}
    environments: dict[str, Environment] = {}
    protocols: dict[str, dict[str, dict[str, Any]]] = Field(
        {},
        description="name -> environment's name or kind -> values that every agent of the protocol takes there, if it has them",
    )
    agents: dict[str, Agent] = {}
    studies: dict[str, Study] = {}

    # ------------------------------------------------------------------------------------------------ resolving

    @property
    def results(self) -> str:
        return f"results/{self.scale}"

    @property
    def mirror_folder(self) -> str | None:
        return os.environ.get(MIRROR_VARIABLE) or self.mirror

    @property
    def skips_unreachable(self) -> bool:
        return self.on_unreachable == "skip" or (self.on_unreachable == "auto" and self.scale != "paper")

    def active_studies(self) -> dict[str, Study]:
        """The studies that the present scale runs."""
        return {name: study for name, study in self.studies.items() if self.scale in study.scales}

    def agent_for(self, agent: str, environment: str) -> AgentModel:
        """The agent with the values that hold in one environment; a pair is its agent with one law in each role."""
        model = self.agents[agent]
        if isinstance(model, PairAgent):
            laws = {"references": [model.reference], "perturbations": [model.perturbation]}
            return self.agents[model.of].model_copy(update=laws)
        values = self._values(model, environment)
        return type(model).model_validate(model.model_dump(by_alias=True) | values) if values else model

    def _values(self, model: AgentModel, environment: str) -> dict[str, Any]:
        """What holds for an agent in one environment: of its protocol, then its own; a name is stronger than a kind."""
        keys = (self.environments[environment].kind, environment)
        shared = self.protocols.get(getattr(model, "protocol", None) or "", {})
        values: dict[str, Any] = {}
        for key in keys:
            values |= {name: value for name, value in shared.get(key, {}).items() if name in type(model).model_fields}
        for key in keys:
            values |= getattr(model, "per_environment", {}).get(key, {})
        return values

    def blocks(self, study: str) -> list[Block]:
        """Every run block of a study at the present scale, each once."""
        return list({block.path: block for block in self.runs(study).values()}.values())

    def runs(self, study: str) -> dict[tuple[str, str, int, int], Block]:
        """The block of every (environment, agent, ensemble size, first seed) of a study; pairs lie in their agent's blocks."""
        grid = self.studies[study].scales[self.scale]
        return {
            (environment, agent, size, first): self.block(environment, self.runner(agent), size, grid.horizon, first, last)
            for environment in grid.environments
            for agent in self.studies[study].agents
            for size in (grid.ensemble_sizes if self.agents[agent].ensemble else [0])
            for first, last in grid.seed_blocks()
        }

    def runner(self, agent: str) -> str:
        """The agent whose blocks hold `agent`'s runs: itself, or the one that it is a pair of."""
        return getattr(self.agents[agent], "of", agent)

    def part(self, study: str) -> dict[str, Any]:
        """The smallest configuration that still resolves `study` at the present scale: what its aggregation depends on."""
        declared = self.studies[study]
        grid = declared.scales[self.scale]
        environments = {name: self.environments[name] for name in grid.environments}
        kinds = {environment.kind for environment in environments.values()}
        names = dict.fromkeys([*declared.agents, *map(self.runner, declared.agents)])
        agents = {name: self.agents[name].model_dump(by_alias=True) for name in names}
        for agent in agents.values():
            if "per_environment" in agent:
                overrides = agent["per_environment"].items()
                agent["per_environment"] = {key: value for key, value in overrides if key in environments or key in kinds}
        protocols = {agent["protocol"] for agent in agents.values() if agent.get("protocol")}
        models = {environment.language_model for environment in environments.values() if hasattr(environment, "language_model")}
        return {
            "scale": self.scale,
            "device": self.device,
            "linear_device": self.linear_device,
            "language_models": {name: self.language_models[name].model_dump() for name in sorted(models)},
            "environments": {name: environment.model_dump() for name, environment in environments.items()},
            "protocols": {
                name: {key: value for key, value in self.protocols[name].items() if key in environments or key in kinds}
                for name in sorted(protocols)
            },
            "agents": agents,
            "studies": {study: declared.model_dump(include={"title", "agents"}) | {"scales": {self.scale: grid.model_dump()}}},
        }

    def artefacts(self, study: str) -> list[str]:
        """Every file that is presented from one study: figures and tables in all their formats."""
        declared = self.studies[study]
        return [
            f"{self.results}/{kind}/{study}-{name}.{suffix}"
            for kind, suffixes in ARTEFACTS.items()
            for name in getattr(declared, kind)
            for suffix in suffixes
        ]

    def files(self, study: str) -> list[str]:
        """Every file under results/ that belongs to one study."""
        runs = [block.path for block in self.blocks(study)]
        return [*runs, f"{self.results}/datasets/{study}.nc", *self.artefacts(study)]

    def block(self, environment: str, agent: str, ensemble_size: int, horizon: int, first: int, last: int) -> Block:
        """One run block.

        Raises:
            ConfigError: there is no such environment or agent, the agent has no such ensemble size, or nothing would be run.
        """
        for key, name in (("environments", environment), ("agents", agent)):
            if name not in getattr(self, key):
                raise ConfigError(f"found '{name}': must be one of {key}: {', '.join(getattr(self, key))}")
        if self.agents[agent].ensemble != (ensemble_size > 0) or ensemble_size > MAX_WIDTH:
            allowed = f"1 to {MAX_WIDTH}" if self.agents[agent].ensemble else "0, since it has no ensemble"
            raise ConfigError(f"ensemble size {ensemble_size}: agent '{agent}' takes {allowed}")
        if horizon < 1:
            raise ConfigError(f"horizon {horizon}: must be at least 1")
        if last < first:
            raise ConfigError(f"seeds {first}-{last}: the last must not be below the first")
        world, model = self.environments[environment], self.agent_for(agent, environment)
        spec = {
            "environment": {"name": environment, "class": world.class_path, "options": world.options()},
            "agent": {"name": agent, "class": model.class_path, "options": model.options()},
            "ensemble_size": ensemble_size,
            "horizon": horizon,
            "seeds": [first, last],
            "device": self.device if model.neural else self.linear_device if isinstance(model, LinearChainsModel) else "cpu",
        }
        return Block(self.results, spec)


@dataclass(frozen=True)
class Block:
    """Consecutive seeds of one (environment, agent, ensemble size, horizon): one job, one file."""

    results: str
    spec: dict[str, Any]

    @property
    def path(self) -> str:
        spec = self.spec
        first, last = spec["seeds"]
        folder = f"{self.results}/runs/{spec['environment']['name']}/{spec['agent']['name']}"
        return f"{folder}/M{spec['ensemble_size']}/T{spec['horizon']}/seeds{first}-{last}.nc"

    @property
    def inputs(self) -> list[str]:
        files = self.spec["environment"]["options"].get("inputs", {}).values()
        return [path for entry in files for path in ([entry] if isinstance(entry, str) else entry)]

    @property
    def modules(self) -> list[str]:
        """The modules that define the block's numbers, for its code fingerprint."""
        classes = [self.spec[part]["class"].split(":")[0] for part in ("environment", "agent")]
        return [*classes, "ensemblepp.blocks"]


def canonical_json(value: Any) -> str:
    """`value` as JSON on one line with sorted keys: equal values give equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


# -------------------------------------------------------------------------------------------------------- loading


def load(values: Mapping[str, Any]) -> Config:
    """Check the merged configuration.

    Raises:
        ConfigError: one line per fault: file, key, value and what is allowed.
    """
    try:
        config = Config.model_validate(dict(values))
    except ValidationError as error:
        raise ConfigError("\n".join(_line(fault) for fault in error.errors())) from None
    faults = list(_cross_check(config))
    if faults:
        raise ConfigError("\n".join(faults))
    return config


def read_files(folder: str | Path = ".", **overrides: Any) -> Config:
    """Read and check the configuration files below `folder`, as Snakemake does; `overrides` replace top-level keys."""
    values: dict[str, Any] = {}
    for name in CONFIG_FILES:
        path = Path(folder) / name
        if not path.exists():
            raise ConfigError(f"{path}: no such file; run from the folder that holds the Snakefile")
        try:
            read = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        except yaml.MarkedYAMLError as error:
            raise ConfigError(f"{path}: line {error.problem_mark.line + 1}: not valid YAML: {error.problem}") from None
        if not isinstance(read, Mapping):
            raise ConfigError(f"{path}: must be a mapping of keys to values")
        values |= read
    return load(values | overrides)


def _line(fault: Mapping[str, Any]) -> str:
    """One pydantic fault as "file: key: found value: what is allowed"."""
    where = [str(part) for part in fault["loc"] if part != "[key]"]
    file = FILES.get(where[0], "config/config.yaml") if where else "config/config.yaml"
    # pydantic puts the discriminator's value into the location of a tagged union; the file has no such level
    if where[:1] in (["environments"], ["agents"]) and len(where) > 2:
        del where[2]
    found = "" if isinstance(fault["input"], Mapping) else f"found {fault['input']!r}: "
    message = fault["msg"].removeprefix("Value error, ")
    if fault["type"] == "extra_forbidden":
        found, message = "", "unknown key; config/README.md lists the keys"
    elif fault["type"].startswith("union_tag_"):
        where.append("kind")
        found = f"found '{fault['ctx']['tag']}': " if "tag" in fault["ctx"] else ""
        message = f"input should be {fault['ctx']['expected_tags']}" if found else "field required"
    return f"{file}: {'.'.join(where)}: {found}{message[0].lower()}{message[1:]}"


def _cross_check(config: Config) -> Iterator[str]:
    for key in ("environments", "language_models", "protocols", "agents", "studies"):
        for name in getattr(config, key):
            if not _NAME.fullmatch(name):
                yield f"{FILES[key]}: {key}.{name}: a name has lower-case letters, digits, '+', '-' and '.' only"
    yield from _check_environments(config)
    yield from _check_protocols(config)
    yield from _check_agents(config)
    for name, study in config.studies.items():
        yield from _check_study(config, name, study)
    if config.mirror_folder and not Path(config.mirror_folder).is_dir():
        place = MIRROR_VARIABLE if os.environ.get(MIRROR_VARIABLE) else "config/config.yaml: mirror"
        yield f"{place}: found '{config.mirror_folder}': not a folder"


def _check_environments(config: Config) -> Iterator[str]:
    for name, environment in config.environments.items():
        model = getattr(environment, "language_model", None)
        if model is not None and model not in config.language_models:
            allowed = ", ".join(config.language_models) or "none is declared"
            where = f"{FILES['environments']}: environments.{name}.language_model"
            yield f"{where}: found '{model}': must be one of language_models: {allowed}"


def _check_agents(config: Config) -> Iterator[str]:
    for name, agent in config.agents.items():
        where = f"{FILES['agents']}: agents.{name}"
        if isinstance(agent, CustomAgent):
            yield from _check_custom(where, agent)
        if isinstance(agent, PairAgent):
            yield from _check_pair(config, where, agent)
        protocol = getattr(agent, "protocol", None)
        if protocol is not None and protocol not in config.protocols:
            allowed = ", ".join(config.protocols) or "none is declared"
            yield f"{where}.protocol: found '{protocol}': must be one of protocols: {allowed}"
        for key, values in getattr(agent, "per_environment", {}).items():
            kinds = {environment.kind for environment in config.environments.values()}
            if key not in config.environments and key not in kinds:
                yield f"{where}.per_environment: found '{key}': must be the name or kind of an environment"
                continue
            try:
                type(agent).model_validate(agent.model_dump(by_alias=True) | values)
            except ValidationError as error:
                for fault in error.errors():
                    yield _line({**fault, "loc": ("agents", name, agent.kind, "per_environment", key, *fault["loc"])})


def _check_protocols(config: Config) -> Iterator[str]:
    neural = [model for model in _agent_models() if issubclass(model, NeuralAgentModel)]
    known = sorted({name for model in neural for name in model.model_fields} - {"kind", "label", "protocol", "per_environment"})
    kinds = {environment.kind for environment in config.environments.values()}
    for name, places in config.protocols.items():
        where = f"{FILES['protocols']}: protocols.{name}"
        for key, values in places.items():
            if key not in config.environments and key not in kinds:
                yield f"{where}: found '{key}': must be the name or kind of an environment"
                continue
            for field, value in values.items():
                if field not in known:
                    yield f"{where}.{key}.{field}: unknown key; agents have {', '.join(known)}"
                    continue
                # any agent that has the key says whether the value is allowed
                model = next(model for model in neural if field in model.model_fields)
                kind = get_args(model.model_fields["kind"].annotation)[0]
                try:
                    model.model_validate({"kind": kind, "label": "", field: value})
                except ValidationError as error:
                    yield from (_line({**fault, "loc": ("protocols", name, key, *fault["loc"])}) for fault in error.errors())


def _agent_models() -> list[type[AgentModel]]:
    return list(get_args(get_args(Agent)[0]))


def _check_pair(config: Config, where: str, pair: PairAgent) -> Iterator[str]:
    allowed = [name for name, agent in config.agents.items() if isinstance(agent, LinearEnsembleAgent)]
    if pair.of not in allowed:
        known = ", ".join(allowed) or "none is declared"
        yield f"{where}.of: found '{pair.of}': must be an agent of kind linear_ensemblepp: {known}"
        return
    for role in ("reference", "perturbation"):
        laws = getattr(config.agents[pair.of], f"{role}s")
        if getattr(pair, role) not in laws:
            yield f"{where}.{role}: found '{getattr(pair, role)}': agent '{pair.of}' runs {', '.join(laws)}"


def _check_custom(where: str, agent: CustomAgent) -> Iterator[str]:
    """The class of a custom agent and the names of its keyword arguments, read without importing it."""
    module, class_name = agent.class_path.split(":")
    try:
        found = importlib.util.find_spec(module)
    except (ImportError, ValueError):
        found = None
    if found is None or not found.origin or not found.origin.endswith(".py"):
        yield f"{where}.class: found '{agent.class_path}': no module '{module}' can be imported"
        return
    try:
        tree = ast.parse(Path(found.origin).read_text(encoding="utf-8"))
    except SyntaxError as error:
        yield f"{where}.class: found '{agent.class_path}': {found.origin}, line {error.lineno}: {error.msg}"
        return
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    if class_name not in classes:
        yield f"{where}.class: found '{agent.class_path}': {found.origin} defines no class '{class_name}'"
        return
    for node in classes[class_name].body:
        if isinstance(node, ast.FunctionDef) and node.name == "__init__" and node.args.kwarg is None:
            known = {argument.arg for argument in [*node.args.args, *node.args.kwonlyargs]} - _GIVEN
            for key in agent.hyperparameters:
                if key not in known:
                    allowed = ", ".join(sorted(known)) or "none"
                    yield f"{where}.hyperparameters.{key}: unknown key; {class_name} takes {allowed}"


def _check_study(config: Config, name: str, study: Study) -> Iterator[str]:
    where = f"{FILES['studies']}: studies.{name}"
    yield from _unknown(f"{where}.agents", study.agents, config.agents)
    for kind in ARTEFACTS:
        yield from _unknown(f"{where}.{kind}", getattr(study, kind), presentable(kind))
    for scale, grid in study.scales.items():
        place = f"{where}.scales.{scale}"
        faults = list(_unknown(f"{place}.environments", grid.environments, config.environments))
        yield from faults
        if not faults and not any(True for _ in _unknown(where, study.agents, config.agents)):
            spheres = [name for name in grid.environments if isinstance(config.environments[name], LinearSphereEnvironment)]
            for agent in study.agents:
                if spheres and isinstance(config.agents[agent], LinearUCBAgent):
                    yield f"{place}.environments: found '{spheres[0]}': agent '{agent}' needs a finite decision set"
        if len(set(grid.ensemble_sizes)) < len(grid.ensemble_sizes):
            yield f"{place}.ensemble_sizes: found {grid.ensemble_sizes}: each size only once"
        if scale != config.scale or faults:
            continue
        for environment in grid.environments:
            yield from horizon_faults(config, f"{place}.horizon", grid.horizon, environment)


def horizon_faults(config: Config, where: str, horizon: int, name: str) -> Iterator[str]:
    """Why environment `name` cannot be played for `horizon` rounds, if it cannot; `where` begins the message."""
    environment = config.environments[name]
    if not hasattr(environment, "passes"):
        return
    rows = load_dataset_module(environment.dataset).rows_available(config.mirror_folder)
    if isinstance(environment, ModerationEnvironment):
        if environment.posts > rows:
            yield (
                f"{FILES['environments']}: environments.{name}.posts: found {environment.posts}: "
                f"the source that serves this data set has {rows} posts"
            )
        rows = environment.posts
    available = rows * environment.passes
    if horizon > available:
        yield (
            f"{where}: found {horizon}: environment '{name}' supports at most {available} "
            f"({rows} rows x {environment.passes} pass(es)); lower the horizon or raise environments.{name}.passes"
        )


def presentable(kind: str) -> list[str]:
    """The modules of ensemblepp.figures or ensemblepp.tables that a study can declare, read without importing them."""
    start = f"\ndef {_ENTRY_POINTS[kind]}("
    return sorted(path.stem for path in Path(__file__).parent.joinpath(kind).glob("*.py") if start in path.read_text("utf-8"))


def _unknown(where: str, names: list[str], known: Collection[str]) -> Iterator[str]:
    for name in names:
        if name not in known:
            yield f"{where}: found '{name}': must be one of {', '.join(known) or 'none is declared'}"
    if len(set(names)) < len(names):
        yield f"{where}: found {names}: each name only once"
