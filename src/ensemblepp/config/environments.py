"""config/environments.yaml: what gives decision sets, rewards and regret, and the language models that embed posts."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from ensemblepp.bandit import EnvironmentFamily
from ensemblepp.config.fields import Count, Horizon, Length, Model, NonNegative, Place, Positive, Width
from ensemblepp.randomness.streams import MAX_WIDTH


class EnvironmentModel(Model):
    """What every environment has."""

    #: the family of its class (`bandit.EnvironmentFamily`)
    family: ClassVar[EnvironmentFamily | None] = None
    #: what an action is given as: its features, or the tokens of a text
    gives: ClassVar[Literal["features", "tokens"]] = "features"

    title: str = Field(description="name in figures and tables")

    def options(self) -> dict[str, Any]:
        """The keyword arguments of the environment's class; `inputs` are files that a job reads."""
        return self.model_dump(exclude={"kind", "title"})

    def played_as(self) -> EnvironmentFamily | None:
        """The family that decides on the engine; None: it is played round by round."""
        return self.family


class LinearFiniteEnvironment(EnvironmentModel):
    """Finite-action linear bandit: theta* ~ N(0, prior_variance I), a decision set per seed or a fresh one per round."""

    family: ClassVar[EnvironmentFamily | None] = "linear"
    kind: Literal["linear_finite"]
    dimension: Annotated[int, Field(ge=1, le=MAX_WIDTH)] = Field(description="d, entries of a feature vector")
    actions: Length = Field(description="size of the decision set")
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


class LinearSphereEnvironment(EnvironmentModel):
    """Compact-action linear bandit: the decision set is the unit sphere, theta* ~ N(0, prior_variance I)."""

    family: ClassVar[EnvironmentFamily | None] = "linear"
    kind: Literal["linear_sphere"]
    dimension: Annotated[int, Field(ge=1, le=MAX_WIDTH)] = Field(description="d, entries of a feature vector")
    prior_variance: Positive = Field(10.0, description="variance of every entry of theta*")
    noise: NonNegative = Field(1.0, description="standard deviation of the reward noise")


class CandidatesEnvironment(EnvironmentModel):
    """What the synthetic nonlinear bandits share: a list of candidate actions, of which every round offers some."""

    family: ClassVar[EnvironmentFamily | None] = "pool"
    dimension: Width = Field(100, description="d, entries of a feature vector")
    candidates: Length = Field(1000, description="actions in the list, |X|")
    offered: Length = Field(50, description="how many of them a round offers, uniformly without replacement")
    features: Literal["sphere", "gaussian"] = Field(
        "sphere", description="law of a candidate's features: uniform on the unit sphere, or N(0, I)"
    )

    @model_validator(mode="after")
    def _enough(self) -> Any:
        if self.offered > self.candidates:
            raise ValueError(f"offered is {self.offered}: cannot be more than the {self.candidates} candidates")
        return self


class QuadraticEnvironment(CandidatesEnvironment):
    """Quadratic bandit: f(x) = scale x^T Theta Theta^T x, Theta a d x d matrix of N(0, 1) entries."""

    kind: Literal["quadratic"]
    scale: Positive = Field(0.01, description="factor of the quadratic form")
    noise: NonNegative = Field(0.1, description="standard deviation of the reward noise")


class VectorQuadraticEnvironment(CandidatesEnvironment):
    """Vector quadratic bandit: f(x) = scale (x^T theta)^2."""

    kind: Literal["vector_quadratic"]
    scale: Positive = Field(10.0, description="factor of the square")
    parameter: Literal["ball", "sphere"] = Field("ball", description="law of theta: uniform in the unit ball, or on the sphere")
    noise: NonNegative = Field(0.1, description="standard deviation of the reward noise")


class NeuralEnvironment(CandidatesEnvironment):
    """Neural bandit: Bernoulli rewards, their probability the second softmax output of a random ReLU network."""

    kind: Literal["neural"]
    hidden: list[Width] = Field([50, 50], description="widths of the network's layers")
    temperature: Positive = Field(0.1, description="divides the logits; the smaller, the less noise")
    weights: Literal["xavier", "testbed"] = Field(
        "xavier", description="law of the network: the released lineage's, or the Neural Testbed's"
    )


class ClassificationEnvironment(EnvironmentModel):
    """A classification data set as a bandit: one action per class, reward 1 for the right one."""

    family: ClassVar[EnvironmentFamily | None] = "pool"
    kind: Literal["classification"]
    dataset: str = Field(description="mushroom or shuttle, which are UCI's, or a name under `datasets`")
    coding: Literal["onehot", "ordinal"] = Field("onehot", description="how nominal attributes become numbers")
    scaling: Literal["unit", "standardise", "none"] = Field(
        "unit", description="unit: rows of norm 1; standardise: columns of mean 0 and variance 1, but for 0/1 indicators"
    )
    noise: NonNegative = Field(0.1, description="standard deviation of the reward noise")
    passes: Count = Field(1, description="how often every row may be shown (the paper's T = 10,000 needs 2 on Mushroom)")

    def options(self) -> dict[str, Any]:
        return {
            "inputs": {"data": f"data/prepared/{self.dataset}.nc"},
            **self.model_dump(include={"coding", "scaling", "noise", "passes"}),
        }


class ModerationEnvironment(EnvironmentModel):
    """Hate-speech moderation: what becomes of a post that is known by the embedding of a frozen language model."""

    family: ClassVar[EnvironmentFamily | None] = "pool"
    kind: Literal["moderation"]
    dataset: str = Field("hate_speech", description="hate_speech, davidson or hatecheck, or posts under `datasets`")
    language_model: str = Field(description="a name under language_models")
    posts: Length = Field(description="posts in the stream, the first of the data set's own order; each is embedded once")
    scaling: Literal["none", "unit", "standardise"] = Field(
        "none",
        description="none: as the model gave them, which the released code feeds; unit: embeddings of norm 1; standardise: "
        "features of mean 0 and variance 1",
    )
    actions: Literal["publish_or_block", "remove_or_review"] = Field(
        "publish_or_block",
        description="the paper's two wordings: publish or block; or remove the post by itself, or have it reviewed, which "
        "alone shows its label",
    )
    review_cost: Annotated[float, Field(gt=0, lt=0.5)] = Field(
        1 / 3, description="c, taken off a reviewed post's reward; a post is worth it whose chance to be free is above 2c"
    )
    passes: Count = Field(1, description="how often every post may be shown")

    @field_validator("review_cost")
    @classmethod
    def _told_apart(cls, cost: float) -> float:
        if abs(cost - 0.25) < 0.01:
            raise ValueError("must not be 1/4, where both mistakes cost the same, so that no run file could tell them apart")
        return cost

    @model_validator(mode="after")
    def _reviewed(self) -> ModerationEnvironment:
        if self.actions != "remove_or_review" and "review_cost" in self.model_fields_set:
            raise ValueError("review_cost: there is no review where actions is publish_or_block")
        return self

    def options(self) -> dict[str, Any]:
        stem = f"{self.language_model}/{self.dataset}-{self.posts}"
        inputs = {"embeddings": f"data/embeddings/{stem}.nc", "ceiling": f"data/ceilings/{stem}-{self.scaling}.nc"}
        return {"inputs": inputs, **self.model_dump(include={"scaling", "actions", "review_cost", "passes"})}


class TokenModerationEnvironment(EnvironmentModel):
    """Hate-speech moderation for agents that train the language model: a post is given as its tokens."""

    family: ClassVar[EnvironmentFamily | None] = "pool"
    gives: ClassVar[Literal["features", "tokens"]] = "tokens"
    #: publish and block
    actions: ClassVar[int] = 2
    kind: Literal["moderation_tokens"]
    dataset: Literal["hate_speech"] = Field("hate_speech", description="the posts")
    language_model: str = Field(description="a name under language_models, whose tokenizer is used")
    posts: Length = Field(description="distinct posts in the stream, which is that of kind moderation with as many posts")
    passes: Count = Field(1, description="how often every post may be shown")

    def options(self) -> dict[str, Any]:
        tokens = f"data/tokens/{self.language_model}/{self.dataset}-{self.posts}.nc"
        # not the class but the agents that play here read the model
        inputs = {"tokens": tokens, "model": f"{self.model_folder()}/config.json"}
        return {"inputs": inputs, "passes": self.passes}

    def model_folder(self) -> str:
        """Where the language model lies."""
        return f"data/models/{self.language_model}"


class CustomEnvironment(EnvironmentModel):
    """An environment of your own: any class with the interface of `ensemblepp.bandit.Environment`."""

    kind: Literal["custom"]
    class_path: Place = Field(alias="class", description="`package.module:Class`")
    plays_as: Literal["any", "linear", "pool"] = Field(
        "any",
        description="any: round by round; linear, pool: by the engines for classes that are a `LinearEnvironment`, or derived "
        "from `Pool`",
    )
    arguments: dict[str, Any] = Field({}, alias="options", description="keyword arguments of the class")
    inputs: dict[str, str | list[str]] = Field(
        {}, description="files that a run reads, a path or a list of paths by name; the class is given the mapping as `inputs`"
    )
    longest: Horizon | None = Field(None, description="rounds that it can be played for; null: any number")

    def options(self) -> dict[str, Any]:
        return self.arguments | ({"inputs": self.inputs} if self.inputs else {})

    def played_as(self) -> EnvironmentFamily | None:
        return None if self.plays_as == "any" else self.plays_as


Environment = Annotated[
    LinearFiniteEnvironment
    | LinearSphereEnvironment
    | QuadraticEnvironment
    | VectorQuadraticEnvironment
    | NeuralEnvironment
    | ClassificationEnvironment
    | ModerationEnvironment
    | TokenModerationEnvironment
    | CustomEnvironment,
    Field(discriminator="kind"),
]


class LanguageModel(Model):
    """A language model and how a text becomes one vector."""

    source: Literal["hub", "package", "folder"] = Field(
        description="a hub repository, a path inside an installed Python package, or a local folder"
    )
    location: str = Field(description="repository name, `package/path` or folder")
    revision: str = Field("main", description="hub revision (branch, tag or commit)")
    checksums: dict[str, str] = Field({}, description="SHA-256 that files of a hub repository must have, by name")
    pooling: Literal["last", "mean"] = Field(description="hidden state of the last token, or the mean over tokens")
    max_tokens: Count = Field(512, description="longer texts are cut, here or at what the model has positions for")
    precision: Literal["auto", "float32", "bfloat16"] = Field(
        "auto", description="numbers that it computes with; auto: bfloat16 where processor or GPU has instructions for it"
    )

    def brought(self) -> dict[str, Any]:
        """What decides the files of its folder: how texts are embedded with them does not."""
        return self.model_dump(include={"source", "location", "revision", "checksums"})
