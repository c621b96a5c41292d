"""Linear agents one run at a time, as the papers write them: what the batched and the compiled agents are held against.

Nothing but the random streams is shared with the package: laws by loops over one vector, precision matrices inverted
explicitly, every score an entry of one float64 matrix-vector product.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np

from ensemblepp.bandit import Choice, Environment, SphereDecisions
from ensemblepp.randomness.streams import StepNoise, generator

PRIOR_VARIANCE = 10.0


def reference(law: str, gaussian: np.ndarray) -> np.ndarray:
    """zeta of one standard normal vector, by the sampling algorithms of the paper's appendix (s = 2).

    "member" is sqrt(M) e_m: classical ensemble sampling acts through one member.
    """
    size = len(gaussian)
    order = sorted(range(size), key=lambda index: -abs(gaussian[index]))
    if law == "gaussian":
        return np.array([float(value) for value in gaussian])
    if law == "sphere":
        norm = math.sqrt(math.fsum(value**2 for value in gaussian))
        return np.array([math.sqrt(size) * value / norm for value in gaussian])
    kept = {"cube": size, "coordinate": 1, "member": 1, "sparse": min(2, size)}[law]
    zeta = np.zeros(size)
    for index in order[:kept]:
        zeta[index] = math.copysign(math.sqrt(size / kept), 1.0 if law == "member" else gaussian[index])
    return zeta


def perturbation(law: str, gaussian: np.ndarray) -> np.ndarray:
    """z = zeta / |zeta| (paper, Appendix "Sampling, Isotropy, ..."); "raw_gaussian" is N(0, I/M) as it is."""
    if law == "raw_gaussian":
        return np.array([value / math.sqrt(len(gaussian)) for value in gaussian])
    zeta = reference(law, gaussian)
    return zeta / math.sqrt(math.fsum(value**2 for value in zeta))


class Agent(Protocol):
    """What `run` asks for: a parameter vector (or a choice of its own), and to learn from one observation."""

    def parameters(self) -> np.ndarray: ...

    def observe(self, x: np.ndarray, y: float) -> None: ...


class Ridge:
    """The posterior N(mean, covariance), eq. "incre-posterior"; as an agent it is greedy."""

    def __init__(self, dimension: int, prior_variance: float = PRIOR_VARIANCE) -> None:
        self.prior_precision = np.eye(dimension) / prior_variance
        self.precision = self.prior_precision.copy()
        self.covariance = prior_variance * np.eye(dimension)
        self.mean = np.zeros(dimension)

    def parameters(self) -> np.ndarray:
        return self.mean

    def observe(self, x: np.ndarray, y: float) -> None:
        before = self.precision
        self.precision = before + np.outer(x, x)
        self.covariance = np.linalg.inv(self.precision)
        self.mean = self.covariance @ (before @ self.mean + x * y)

    def inflation(self, delta: float | None) -> float:
        """beta_t = sqrt(lambda) + sqrt(2 log(1/delta) + log det(Sigma^-1 / lambda)), with an explicit determinant."""
        if delta is None:
            return 1.0
        penalty = self.prior_precision[0, 0]
        return math.sqrt(penalty) + math.sqrt(2 * math.log(1 / delta) + np.linalg.slogdet(self.precision / penalty)[1])


class ThompsonSampling(Ridge):
    """theta = mean + beta R^-1 g with R^T R the precision, R upper triangular."""

    def __init__(self, seed: int, dimension: int, prior_variance: float = PRIOR_VARIANCE, delta: float | None = None) -> None:
        super().__init__(dimension, prior_variance)
        self.delta = delta
        self.noise = StepNoise([seed], "reference", dimension)

    def parameters(self) -> np.ndarray:
        root = np.linalg.cholesky(self.precision).T
        return self.mean + self.inflation(self.delta) * (np.linalg.inv(root) @ self.noise.next()[0])


class EnsemblePlusPlus(Ridge):
    """Linear Ensemble++, eqs. "ensemble++_theta_linear" and "incre-matrix-factor", with one pair of laws.

    `subspace`: theta is projected onto the span of A_0 in every round.
    """

    def __init__(
        self,
        seed: int,
        dimension: int,
        size: int,
        laws: tuple[str, str],
        *,
        prior_variance: float = PRIOR_VARIANCE,
        delta: float | None = None,
        subspace: bool = False,
    ) -> None:
        super().__init__(dimension, prior_variance)
        self.laws, self.delta = laws, delta
        columns = math.sqrt(prior_variance) * generator(seed, "agent").standard_normal((size, dimension))
        self.factor = columns.T / math.sqrt(size)
        self.projection = np.eye(dimension)
        if subspace:
            self.projection = self.factor @ np.linalg.pinv(self.factor)
        self.reference_noise = StepNoise([seed], "reference", size)
        self.perturbation_noise = StepNoise([seed], "perturbation", size)

    def parameters(self) -> np.ndarray:
        zeta = reference(self.laws[0], self.reference_noise.next()[0])
        return self.projection @ (self.mean + self.inflation(self.delta) * (self.factor @ zeta))

    def observe(self, x: np.ndarray, y: float) -> None:
        before = self.precision
        super().observe(x, y)
        z = perturbation(self.laws[1], self.perturbation_noise.next()[0])
        self.factor = self.covariance @ (before @ self.factor + np.outer(x, z))


class EnsembleSampling:
    """Classical ensemble sampling: M ridge regressions, each from its own prior draw and with its own noise in the rewards."""

    def __init__(self, seed: int, dimension: int, size: int, prior_variance: float = PRIOR_VARIANCE) -> None:
        self.size = size
        self.penalty = np.eye(dimension) / prior_variance
        self.priors = math.sqrt(prior_variance) * generator(seed, "agent").standard_normal((size, dimension))
        self.reference_noise = StepNoise([seed], "reference", size)
        self.perturbation_noise = StepNoise([seed], "perturbation", size)
        self.features: list[np.ndarray] = []
        #: of every member
        self.rewards: list[list[float]] = [[] for _ in range(size)]

    def member(self, member: int) -> np.ndarray:
        """argmin over theta of sum (y_s + w_s - <x_s, theta>)^2 + |theta - prior|^2 / prior_variance."""
        x = np.array(self.features).reshape(-1, len(self.penalty))
        y = np.array(self.rewards[member])
        return np.linalg.solve(self.penalty + x.T @ x, self.penalty @ self.priors[member] + x.T @ y)

    def parameters(self) -> np.ndarray:
        gaussian = self.reference_noise.next()[0]
        return self.member(max(range(self.size), key=lambda member: abs(gaussian[member])))

    def observe(self, x: np.ndarray, y: float) -> None:
        self.features.append(x)
        # the member's own noise, sqrt(M) z_m, is standard normal
        for rewards, own in zip(self.rewards, self.perturbation_noise.next()[0], strict=True):
            rewards.append(y + own)


class RecursiveRandomizedLeastSquares(Ridge):
    """RRLS: eq. "recursive-update" alone, from theta_0 ~ N(0, Sigma_0)."""

    def __init__(self, seed: int, dimension: int, prior_variance: float = PRIOR_VARIANCE) -> None:
        super().__init__(dimension, prior_variance)
        self.theta = math.sqrt(prior_variance) * generator(seed, "agent").standard_normal((1, dimension))[0]
        self.perturbation_noise = StepNoise([seed], "perturbation", 1)

    def parameters(self) -> np.ndarray:
        return self.theta

    def observe(self, x: np.ndarray, y: float) -> None:
        before = self.precision
        super().observe(x, y)
        self.theta = self.covariance @ (before @ self.theta + x * (y + self.perturbation_noise.next()[0, 0]))


class UpperConfidenceBound(Ridge):
    """LinUCB: every action's value by itself."""

    def __init__(self, dimension: int, width: float | None, delta: float, prior_variance: float = PRIOR_VARIANCE) -> None:
        super().__init__(dimension, prior_variance)
        self.width, self.delta = width, delta

    def bounds(self, features: np.ndarray) -> list[float]:
        width = self.inflation(self.delta) if self.width is None else self.width
        return [x @ self.mean + width * math.sqrt(x @ self.covariance @ x) for x in features]

    def best(self, features: np.ndarray) -> int:
        bounds = self.bounds(features)
        return bounds.index(max(bounds))


class Run(NamedTuple):
    """What happened, round by round; regret and reward are cumulative."""

    action: np.ndarray
    regret: np.ndarray
    reward: np.ndarray


def run(environment: Environment, agent: Agent | UpperConfidenceBound, rounds: int) -> Run:
    """Let an agent play the only seed of an environment, round by round."""
    actions, gaps, rewards = [], [], []
    for _ in range(rounds):
        decisions = environment.decisions()
        action = 0
        if isinstance(decisions, SphereDecisions):
            theta = agent.parameters()
            norm = np.linalg.norm(theta)
            x = theta / norm if norm > 0 else np.eye(len(theta))[0]
        else:
            features = decisions.features[0]
            action = agent.best(features) if hasattr(agent, "best") else int(np.argmax(features @ agent.parameters()))
            x = features[action]
        outcome = environment.step(Choice(np.array([[action]]), x[None, None]))
        agent.observe(x, outcome.reward.item())
        actions.append(action)
        gaps.append(outcome.regret.item())
        rewards.append(outcome.reward.item())
    return Run(np.array(actions), np.cumsum(gaps), np.cumsum(rewards))
