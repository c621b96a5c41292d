"""config/agents.yaml: agents for linear bandits."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ensemblepp.bandit import AgentFamily
from ensemblepp.config.agent_model import PlayingModel
from ensemblepp.config.fields import Positive


class LinearAgentModel(PlayingModel):
    """What every linear agent has."""

    prior_variance: Positive = Field(10.0, description="Sigma_0 = prior_variance I")


class LinearChainsModel(LinearAgentModel):
    """What the linear agents with theta = mean + beta_t A zeta share."""

    device_setting: ClassVar[Literal["device", "linear_device"] | None] = "linear_device"
    family: ClassVar[AgentFamily | None] = "linear"

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

    ensemble: ClassVar[bool] = False
    kind: Literal["linear_ts"]


class LinearEnsembleAgent(LinearChainsModel):
    """Linear Ensemble++ for every pair of the given laws; with the coordinate reference alone it is the paper's ES."""

    kind: Literal["linear_ensemblepp"]
    references: list[str] = Field(
        min_length=1, description="laws of zeta (acting): gaussian, sphere, cube, coordinate, sparse, or one of `laws`"
    )
    perturbations: list[str] = Field(
        min_length=1,
        description="laws of z (data noise), the same and raw_gaussian, which is N(0, I/M); the others have unit length",
    )
    exact_subspace: bool = Field(
        False, description="on the unit sphere with M < d: play within the span of A_0, as exact arithmetic does"
    )
    track_covariance: bool = Field(False, description="record the extreme eigenvalues of Sigma^-1/2 A A^T Sigma^-1/2 (slow)")

    def played_as(self) -> AgentFamily | None:
        # the engines record no diagnostics
        return None if self.track_covariance else self.family


class EnsembleSamplingAgent(LinearChainsModel):
    """Classical ensemble sampling: M independent members with perturbed rewards, one of them acts."""

    kind: Literal["ensemble_sampling"]


class RecursiveRandomizedLeastSquaresAgent(LinearChainsModel):
    """RRLS: one member with perturbed rewards (paper, Appendix "Recursive Randomized Least Squares")."""

    ensemble: ClassVar[bool] = False
    kind: Literal["rrls"]


class LinearGreedyAgent(LinearChainsModel):
    """Greedy least squares: theta = mean."""

    ensemble: ClassVar[bool] = False
    kind: Literal["linear_greedy"]


class LinearUCBAgent(LinearAgentModel):
    """LinUCB, on finite decision sets."""

    ensemble: ClassVar[bool] = False
    kind: Literal["linear_ucb"]
    width: Positive | None = Field(None, description="factor of the standard deviation; null: the theory's beta_t")
    delta: Annotated[float, Field(gt=0, lt=1)] = Field(0.05, description="confidence level of beta_t")
