"""What the linear agents share: theta = mean + beta * covariance (B zeta), for many pairs of laws at once.

Kept in information form: with B_t = Sigma_t^{-1} A_t the paper's update (eq. "incre-matrix-factor") becomes
B_t = B_{t-1} + x z^T, and A zeta = Sigma (B zeta), which is O(d^2 + dM) per step.

An agent plays in one of three ways that agree up to rounding: step by step in NumPy on any environment (`act`, `update`),
or all rounds of a linear bandit in one call, by the engines of `ensemblepp.engines.linear`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from ensemblepp.agents.linear.posterior import LinearPosterior
from ensemblepp.bandit import AgentFamily, Choice, Decisions, SphereDecisions
from ensemblepp.randomness import distributions
from ensemblepp.randomness.streams import StepNoise, generator

Precision = Literal["auto", "mixed", "float64"]


class LinearChains:
    """Linear agents side by side, each with a reference and a perturbation law: a pair is a chain.

    Reference laws: those of `distributions.reference`, "member" (`distributions.member`), "none" (theta = mean: no
    exploration) and "exact" (theta from the posterior N(mean, covariance) itself). Perturbation laws: those of
    `distributions.perturbation`, and "none".

    Args:
        seeds: the seeds.
        dimension: d.
        laws: (reference, perturbation) of every chain, names or laws of the user's (`distributions.law`).
        prior_variance: Sigma_0 = prior_variance I.
        ensemble_size: M, columns of the factor A; 0 where no chain has an ensemble.
        labels: names of the chains in results; the laws if left out.
        inflation_delta: delta of the theory's inflation beta_t (paper, Appendix "Proof of Theorem ..."); None: beta_t = 1.
        precision: of B and of the scores when all rounds are played in one call; covariance and mean are always float64.
            "auto": float64 on the unit sphere, float32 ("mixed") on finite decision sets.
        pruning: whether actions that cannot be the best are left out of the scores; never changes a choice.
        exact_subspace: on the unit sphere with M < d, play in the coordinates of the span of A_0, which theta, mean and
            actions never leave in exact arithmetic.
        track_covariance: whether `diagnostics` follows how well A A^T tracks Sigma.
        device: "cpu" or "cuda".
        horizon: not used.
    """

    #: an own class that changes what the engines do by themselves names no family, and is played round by round
    family: ClassVar[AgentFamily | None] = None

    def __init__(
        self,
        seeds: Sequence[int],
        *,
        dimension: int,
        laws: Sequence[tuple[distributions.Entry, distributions.Entry]],
        prior_variance: float,
        ensemble_size: int = 0,
        labels: Sequence[tuple[str, str]] | None = None,
        inflation_delta: float | None = None,
        precision: Precision = "auto",
        pruning: bool = True,
        exact_subspace: bool = False,
        track_covariance: bool = False,
        device: str = "cpu",
        horizon: int | None = None,
    ) -> None:
        self.seeds = tuple(seeds)
        self.dimension = dimension
        self.ensemble_size = ensemble_size
        named = [(distributions.name_of(reference), distributions.name_of(perturbation)) for reference, perturbation in laws]
        #: laws of the user's by name
        self.own = {
            distributions.name_of(entry): distributions.law(entry, ensemble_size)
            for pair in laws
            for entry in pair
            if not isinstance(entry, str)
        }
        self.chains = tuple(labels or named)
        # gaussian perturbations are sphere perturbations, draw by draw: such chains are run once
        same = [(reference, "sphere" if perturbation == "gaussian" else perturbation) for reference, perturbation in named]
        self.laws = tuple(dict.fromkeys(same))
        #: for every chain its place among `laws`
        self.place = np.array([self.laws.index(pair) for pair in same])
        self.prior_variance = prior_variance
        self.inflation_delta = inflation_delta
        self.precision = precision
        self.pruning = pruning
        self.exact_subspace = exact_subspace
        self.device = device
        self.track_covariance = track_covariance
        self._initial: dict[int, np.ndarray] = {}
        #: scores that an engine computed, for benchmarks
        self.scores_computed = 0

    def initial_information(self, seed: int) -> np.ndarray:
        """B_0 = A_0 / prior_variance of one seed, (M, d): A_0 has N(0, Sigma_0) columns over sqrt(M).

        Column m is the same at every ensemble size but for that factor.
        """
        if seed not in self._initial:
            self._initial[seed] = self._draw_initial(seed)
        return self._initial[seed]

    def _draw_initial(self, seed: int) -> np.ndarray:
        columns = generator(seed, "agent").standard_normal((self.ensemble_size, self.dimension))
        return columns / np.sqrt(self.prior_variance * max(self.ensemble_size, 1))

    # --------------------------------------------------------------------------------------------------- step by step

    @cached_property
    def posterior(self) -> LinearPosterior:
        """Means and covariances, (seeds, chains, ...)."""
        return LinearPosterior(len(self.seeds), len(self.chains), self.dimension, self.prior_variance)

    @cached_property
    def information(self) -> np.ndarray:
        """B, shape (seeds, chains, d, M)."""
        start = np.stack([self.initial_information(seed).T for seed in self.seeds])
        return np.repeat(start[:, None], len(self.chains), axis=1)

    @cached_property
    def _noise(self) -> tuple[StepNoise, StepNoise]:
        return tuple(StepNoise(self.seeds, stream, self.ensemble_size) for stream in ("reference", "perturbation"))

    @cached_property
    def _bases(self) -> np.ndarray | None:
        """Orthonormal bases of the spans of A_0, (seeds, d, M), where `exact_subspace` asks for them."""
        if not self.exact_subspace or not 0 < self.ensemble_size < self.dimension:
            return None
        return np.stack([np.linalg.qr(self.initial_information(seed).T)[0] for seed in self.seeds])

    @property
    def factor(self) -> np.ndarray:
        """A = Sigma B, shape (seeds, chains, d, M)."""
        return np.matmul(self.posterior.covariance, self.information)

    def act(self, decisions: Decisions) -> Choice:
        theta = self.posterior.mean + self.posterior.inflation(self.inflation_delta) * self.deviation()
        if self._bases is not None and isinstance(decisions, SphereDecisions):
            theta = np.einsum("sdm,sem,sce->scd", self._bases, self._bases, theta, optimize=True)
        return decisions.maximise(theta)

    def deviation(self) -> np.ndarray:
        """A zeta for the present round, (seeds, chains, d)."""
        if not self.ensemble_size:
            return np.zeros_like(self.posterior.mean)
        gaussian = self._noise[0].next()
        zeta = np.stack([self.reference(self.laws[place][0], gaussian) for place in self.place], axis=1)
        return self.posterior.transform(np.matmul(self.information, zeta[..., None])[..., 0])

    def update(self, choice: Choice, reward: np.ndarray) -> None:
        self.posterior.update(choice.features, reward)
        if self.ensemble_size:
            gaussian = self._noise[1].next()
            z = np.stack([self.perturbation(self.laws[place][1], gaussian) for place in self.place], axis=1)
            self.information += choice.features[..., :, None] * z[..., None, :]

    def reference(self, law: str, gaussian: np.ndarray) -> np.ndarray:
        """The vectors zeta of a chain's law by its name, from standard normal ones, (..., M)."""
        if law == "none":
            return np.zeros_like(gaussian)
        return distributions.member(gaussian) if law == "member" else distributions.reference(self.own.get(law, law), gaussian)

    def perturbation(self, law: str, gaussian: np.ndarray) -> np.ndarray:
        """The vectors z of a chain's law by its name, from standard normal ones, (..., M)."""
        return distributions.perturbation(self.own.get(law, law), gaussian)

    def diagnostics(self) -> dict[str, np.ndarray]:
        """Least and greatest eigenvalue of Sigma^{-1/2} A A^T Sigma^{-1/2}, (seeds, chains) each (paper, Lemma 1)."""
        if not self.track_covariance:
            return {}
        # Sigma^{-1/2} A A^T Sigma^{-1/2} has the eigenvalues of (L^T B)(L^T B)^T, L L^T = Sigma
        root = np.linalg.cholesky(self.posterior.covariance)
        whitened = np.matmul(np.swapaxes(root, -1, -2), self.information)
        values = np.linalg.eigvalsh(np.matmul(whitened, np.swapaxes(whitened, -1, -2)))
        return {"tracking_low": values[..., 0].clip(min=0.0), "tracking_high": values[..., -1]}
