"""Linear games played whole on a CPU: what the compiled kernel is fed with, seed by seed, and what it leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np

from ensemblepp.agents import linear_kernel as kernel
from ensemblepp.environments.base import LinearGame
from ensemblepp.errors import TrainingError
from ensemblepp.simulate import Trajectory, stores_actions
from ensemblepp.streams import GaussianRows

if TYPE_CHECKING:
    from ensemblepp.agents.linear_chains import LinearChains

#: Rounds per call of the kernel, and bytes that fresh decision sets of one call may take: memory only, never the values.
ROUNDS = 1000
FRESH_BYTES = 1 << 25

#: State of the chains that share a call: half of a second-level cache.
STATE_BYTES = 1 << 20

#: Fewer actions than this are all scored.
PRUNED_ACTIONS = 1000


def play(
    agent: LinearChains, games: Iterable[LinearGame], horizon: int, time: np.ndarray, on_step: Callable[[int], None]
) -> Trajectory:
    """Play every seed's game; arguments, result and errors are those of `LinearChains.play`."""
    seeds, chains = len(agent.seeds), len(agent.laws)
    regret, reward = (np.empty((seeds, chains, len(time)), dtype=np.float32) for _ in range(2))
    optimal = np.empty((seeds, chains, len(time)), dtype=np.int32)
    small = stores_actions(seeds, len(agent.chains), horizon)
    action = np.zeros((seeds, chains, horizon), dtype=np.int32) if small else None
    for row, game in enumerate(games):
        chosen = action[row] if small and not game.sphere else np.zeros((chains, 0), dtype=np.int32)
        run = _Run(agent, game)
        for start in range(0, horizon, run.rounds):
            rounds = min(run.rounds, horizon - start)
            run.advance(rounds, start, time, regret[row], reward[row], optimal[row], chosen[:, start : start + rounds])
            on_step(rounds)
    place = agent.place
    return Trajectory(
        time, regret[:, place], reward[:, place], optimal[:, place], action[:, place] if small else None, None
    )


class _Run:
    """One seed's chains in one game: tables, state, and the rounds that follow."""

    def __init__(self, agent: LinearChains, game: LinearGame) -> None:
        self.agent, self.game = agent, game
        theta, start = game.theta, agent.start(game.seed)
        size = agent.ensemble_size
        if game.sphere and agent.exact_subspace and 0 < size < len(theta):
            # an orthonormal basis of the span of A_0: everything the agent does happens in it
            basis = np.linalg.qr(start.T)[0]
            theta, start = basis.T @ theta, start @ basis
        self.dimension = dimension = len(theta)
        self.length = kernel.padded(dimension)
        exact = any(reference == "exact" for reference, _ in agent.laws)
        double = agent.precision == "float64" or (agent.precision == "auto" and game.sphere)
        self.dtype = np.dtype(np.float64 if double else np.float32)
        chains = len(agent.laws)
        self.references, self.perturbations = (
            np.array([kernel.CODES[pair[role]] for pair in agent.laws]) for role in range(2)
        )
        self.theta = self._pad(theta)
        self.best = np.array([np.linalg.norm(game.theta)])
        self.rounds = ROUNDS
        self._lay_out_actions()

        self.covariance = np.zeros((chains, dimension, self.length))
        self.covariance[:, range(dimension), range(dimension)] = agent.prior_variance
        self.mean = np.zeros((chains, self.length))
        self.information = np.zeros((chains, size, self.length), self.dtype)
        self.information[:, :, :dimension] = start
        self.factor = np.zeros((chains, dimension, dimension) if exact else (chains, 0, 0))
        self.factor[...] = np.eye(self.factor.shape[-1]) / np.sqrt(agent.prior_variance)
        self.pending = np.zeros((chains, 3, self.length))
        self.totals = np.zeros((chains, 3))
        # exact draws need d Gaussian entries a round, ensembles M
        self.acting = GaussianRows(game.seed, "reference", dimension if exact else max(size, 1))
        self.disturbing = GaussianRows(game.seed, "perturbation", max(size, 1))
        self.last = np.ones((1, max(size, 1)))
        self.exact = exact
        self.together = self._chains_per_call()

    def _pad(self, vectors: np.ndarray) -> np.ndarray:
        out = np.zeros((*vectors.shape[:-1], self.length))
        out[..., : vectors.shape[-1]] = vectors
        return out

    def _lay_out_actions(self) -> None:
        """Sorted by their mean reward, best first: pruning needs it, and ties then fall alike with and without pruning."""
        game, empty = self.game, np.zeros(0)
        self.sorted, self.scores, self.perpendicular, self.reach, self.fallback = None, empty, empty, 0.0, 0
        if game.sphere:
            self.arms = np.zeros((1, 0), self.dtype)
            self.features = np.zeros((1, 0, self.length))
            self.means = np.zeros((1, 0))
        elif game.features is not None:
            means = game.features @ game.theta
            self.sorted = np.argsort(-means, kind="stable")
            features, means = game.features[self.sorted], means[self.sorted]
            self._set_actions(features[None], means[None])
            self.fallback = int(np.argmin(self.sorted))
            self.reach = np.linalg.norm(features, axis=1).max()
            if self.agent.pruning and len(means) >= PRUNED_ACTIONS:
                across = features - np.outer(means / (game.theta @ game.theta), game.theta)
                self.scores = means
                self.perpendicular = np.maximum.accumulate(np.linalg.norm(across, axis=1)[::-1])[::-1].copy()
        else:
            # drawn when they are played; one round's set stands in for the shapes
            self.rounds = min(ROUNDS, max(1, FRESH_BYTES // (8 * game.actions * self.dimension)))
            self._set_actions(np.zeros((1, game.actions, self.dimension)), np.zeros((1, game.actions)))

    def _set_actions(self, features: np.ndarray, means: np.ndarray) -> None:
        lanes = kernel.width(self.dtype)
        sets, actions, dimension = features.shape
        self.arms = np.empty((sets, -(-actions // lanes) * dimension * lanes), self.dtype)
        for one, arms in zip(features, self.arms, strict=True):
            kernel.pack(one, lanes, arms)
        self.features, self.means = self._pad(features), means
        self.best = means.max(axis=1)

    def _chains_per_call(self) -> int:
        """As many chains as keep their state in the cache, unless the actions do not fit there anyway."""
        if self.game.sphere:
            return 1  # nothing is shared
        if self.arms[0].nbytes > STATE_BYTES:
            return len(self.agent.laws)
        state = self.length * (self.information.shape[1] * self.dtype.itemsize + 8 * self.dimension + 8 * 5)
        return max(kernel.TILE, STATE_BYTES // state // kernel.TILE * kernel.TILE)

    def _noise(self, rounds: int) -> tuple[tuple, tuple]:
        """What the kernel takes as `acting` and `disturbing`; a row of the latter belongs to the round before."""
        acting, disturbing = self.acting.take(rounds), self.disturbing.take(rounds)
        shifted = np.concatenate([self.last, disturbing[:-1]])
        self.last = disturbing[-1:].copy()
        dtype = np.float64 if self.exact else self.dtype
        return self._tables(acting, dtype), self._tables(shifted, dtype)

    @staticmethod
    def _tables(gaussian: np.ndarray, dtype: np.dtype) -> tuple:
        rounds, size = gaussian.shape
        norms, signs = np.empty(rounds), np.empty((rounds, size), dtype)
        largest = np.zeros((rounds, 2), dtype=np.int32)
        kernel.noise_tables(np.ascontiguousarray(gaussian), norms, signs, largest)
        return np.ascontiguousarray(gaussian, dtype), norms, signs, largest

    def advance(
        self,
        rounds: int,
        start: int,
        time: np.ndarray,
        regret: np.ndarray,
        reward: np.ndarray,
        optimal: np.ndarray,
        chosen: np.ndarray,
    ) -> None:
        """Play the rounds start..start + rounds - 1 with every chain and write the outputs."""
        game, agent = self.game, self.agent
        if game.fresh is not None:
            features = game.fresh(rounds)
            self._set_actions(features, features @ game.theta)
        acting, disturbing = self._noise(rounds)
        noise = game.reward_noise(rounds)
        stored = np.full(rounds, -1)
        columns = np.flatnonzero((time > start) & (time <= start + rounds))
        stored[time[columns] - 1 - start] = columns
        log_delta = -1.0 if agent.inflation_delta is None else np.log(1 / agent.inflation_delta)
        for first in range(0, len(agent.laws), self.together):
            part = slice(first, first + self.together)
            step, chain, scores = kernel.play(
                game.sphere,
                self.arms,
                self.features,
                self.means,
                self.best,
                self.theta,
                noise,
                self.scores,
                self.perpendicular,
                self.reach,
                self.fallback,
                self.references[part],
                self.perturbations[part],
                acting,
                disturbing,
                1 / agent.prior_variance,
                log_delta,
                self.covariance[part],
                self.mean[part],
                self.information[part],
                self.factor[part],
                self.pending[part],
                self.totals[part],
                stored,
                regret[part],
                reward[part],
                optimal[part],
                chosen[part],
            )
            if step >= 0:
                pair = " x ".join(agent.laws[first + chain])
                raise TrainingError(
                    f"{type(agent).__name__} ({pair}), seed {game.seed}, step {start + step + 1}: theta is not a number; "
                    "check prior_variance and noise"
                )
            agent.scores_computed += scores
        if self.sorted is not None and chosen.size:
            chosen[...] = self.sorted[chosen]
