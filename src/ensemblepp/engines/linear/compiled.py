"""Linear bandits played whole on a CPU: what the compiled kernel is fed with, seed by seed, and what it leaves."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ensemblepp.agents.linear.chains import LinearChains
from ensemblepp.bandit import LinearEnvironment, LinearInstance
from ensemblepp.engines.linear import kernel
from ensemblepp.errors import TrainingError
from ensemblepp.randomness.streams import GaussianRows
from ensemblepp.storage.checkpoints import Checkpoint
from ensemblepp.trajectory import Trajectory, stores_actions

#: Rounds per call of the kernel, and bytes that fresh decision sets of one call may take: memory only, never the values.
ROUNDS = 1000
FRESH_BYTES = 1 << 20

#: State of the chains that share a call: half of a second-level cache.
STATE_BYTES = 1 << 20

#: Fewer actions than this are all scored.
PRUNED_ACTIONS = 1000


def play(
    agent: LinearChains,
    environment: LinearEnvironment,
    horizon: int,
    time: np.ndarray,
    on_step: Callable[[int], None],
    checkpoint: Checkpoint | None = None,
) -> Trajectory:
    """Play `horizon` rounds of every seed; outputs at the rounds `time`; `on_step` hears of rounds done.

    A block takes a minute or two, so there are no checkpoints.

    Raises:
        TrainingError: theta is not a number.
    """
    seeds, chains = len(agent.seeds), len(agent.laws)
    regret, reward = (np.empty((seeds, chains, len(time)), dtype=np.float32) for _ in range(2))
    optimal = np.empty((seeds, chains, len(time)), dtype=np.int32)
    small = stores_actions(seeds, len(agent.chains), horizon)
    action = np.zeros((seeds, chains, horizon), dtype=np.int32) if small else None
    for row, instance in enumerate(environment.instances()):
        chosen = action[row] if small and not instance.sphere else np.zeros((chains, 0), dtype=np.int32)
        run = InstanceRun(agent, instance)
        for start in range(0, horizon, run.rounds):
            rounds = min(run.rounds, horizon - start)
            run.advance(rounds, start, time, (regret[row], reward[row], optimal[row], chosen[:, start : start + rounds]))
            on_step(rounds)
    place = agent.place
    return Trajectory(time, regret[:, place], reward[:, place], optimal[:, place], action[:, place] if small else None, None)


class InstanceRun:
    """One seed's chains in one instance: tables, state, and the rounds that follow."""

    def __init__(self, agent: LinearChains, instance: LinearInstance) -> None:
        self.agent, self.instance = agent, instance
        size, chains = agent.ensemble_size, len(agent.laws)
        self.theta, start = instance.theta, agent.initial_information(instance.seed)
        if instance.sphere and agent.exact_subspace and 0 < size < len(self.theta):
            # an orthonormal basis of the span of A_0: everything the agent does happens in it
            basis = np.linalg.qr(start.T)[0]
            self.theta, start = basis.T @ self.theta, start @ basis
        self.dimension = dimension = len(self.theta)
        self.length = kernel.padded(dimension)
        double = agent.precision == "float64" or (agent.precision == "auto" and instance.sphere)
        self.dtype = np.dtype(np.float64 if double else np.float32)
        self.exact = any(reference == "exact" for reference, _ in agent.laws)

        self.rounds = ROUNDS  # per call
        self.sorted: np.ndarray | None = None
        if instance.sphere:
            self.actions = self._actions(np.zeros((1, 0, dimension)), np.zeros((1, 0)))
        elif instance.features is not None:
            self.actions = self._sorted_actions(instance.features)
        else:
            self.rounds = min(ROUNDS, max(1, FRESH_BYTES // (8 * instance.actions * dimension)))

        #: laws that the kernel has no code for, of either role
        self.own = [
            list(dict.fromkeys(pair[role] for pair in agent.laws if pair[role] not in kernel.CODES)) for role in range(2)
        ]
        references, perturbations = (
            np.array([kernel.OWN + own.index(law) if law in own else kernel.CODES[law] for law in laws])
            for laws, own in zip(zip(*agent.laws, strict=True), self.own, strict=True)
        )
        covariance = np.zeros((chains, dimension, self.length))
        covariance[:, range(dimension), range(dimension)] = agent.prior_variance
        information = np.zeros((chains, size, self.length), self.dtype)
        information[:, :, :dimension] = start
        factor = np.zeros((chains, dimension, dimension) if self.exact else (chains, 0, 0))
        factor[...] = np.eye(factor.shape[-1]) / np.sqrt(agent.prior_variance)
        mean, gain, last = (np.zeros((chains, self.length)) for _ in range(3))
        scale, totals = np.zeros((chains, 2)), np.zeros((chains, 3))
        self.state = kernel.Chains(references, perturbations, covariance, mean, information, factor, gain, last, scale, totals)
        # exact draws need d Gaussian entries a round, ensembles M
        self.reference = GaussianRows(instance.seed, "reference", dimension if self.exact else max(size, 1))
        self.perturbation = GaussianRows(instance.seed, "perturbation", max(size, 1))
        # the first round has none before it: no update is left to be made
        self.last = np.ones((1, max(size, 1)))
        self.last_own = np.zeros((len(self.own[1]), 1, max(size, 1)))
        self.work: dict[int, kernel.Work] = {}
        self.log_delta = -1.0 if agent.inflation_delta is None else np.log(1 / agent.inflation_delta)

    def _sorted_actions(self, features: np.ndarray) -> kernel.Actions:
        """A decision set that stays, sorted by mean reward, best first.

        Pruning needs the order, and it is the same without pruning, so that ties fall alike.
        """
        # not a matrix product, which rounds equal actions differently: they must stay in their order
        means = np.einsum("nd,d->n", features, self.theta)
        self.sorted = np.argsort(-means, kind="stable")
        features, means = features[self.sorted], means[self.sorted]
        actions = self._actions(features[None], means[None])._replace(
            reach=np.linalg.norm(features, axis=1).max(), fallback=int(np.argmin(self.sorted))
        )
        if not self.agent.pruning or len(means) < PRUNED_ACTIONS:
            return actions
        across = features - np.outer(means / (self.theta @ self.theta), self.theta)
        perpendicular = np.maximum.accumulate(np.linalg.norm(across, axis=1)[::-1])[::-1]
        return actions._replace(scores=means, perpendicular=np.ascontiguousarray(perpendicular))

    def _actions(self, features: np.ndarray, means: np.ndarray) -> kernel.Actions:
        """Decision sets (sets, actions, d) with their mean rewards (sets, actions), as the kernel takes them."""
        lanes = kernel.width(self.dtype)
        sets, actions, dimension = features.shape
        arms = np.empty((sets, -(-actions // lanes) * dimension * lanes), self.dtype)
        for one, packed in zip(features, arms, strict=True):
            kernel.pack(one, lanes, packed)
        best = means.max(axis=1) if actions else np.array([np.linalg.norm(self.instance.theta)])
        none = np.zeros(0)
        return kernel.Actions(
            self.instance.sphere, arms, self._pad(features), means, best, self._pad(self.theta), none, none, 0.0, 0
        )

    def _pad(self, vectors: np.ndarray) -> np.ndarray:
        out = np.zeros((*vectors.shape[:-1], self.length))
        out[..., : vectors.shape[-1]] = vectors
        return out

    def _chains_per_call(self) -> int:
        """As many chains as keep their state in the cache, unless the actions do not fit there anyway."""
        if self.instance.sphere:
            return 1  # nothing is shared
        if self.actions.arms[0].nbytes > STATE_BYTES:
            return len(self.agent.laws)
        state = sum(array[0].nbytes for array in (self.state.covariance, self.state.information))
        return max(kernel.TILE, STATE_BYTES // state // kernel.TILE * kernel.TILE)

    def _work(self, chains: int) -> kernel.Work:
        """Working memory for a call with so many chains; all calls but the last have as many."""
        if chains not in self.work:
            self.work[chains] = kernel.working_memory(chains, self.dimension, self.dtype)
        return self.work[chains]

    def _noise(self, rounds: int) -> tuple[kernel.Noise, kernel.Noise]:
        """The kernel's `reference` and `perturbation`; a row of the latter belongs to the round before."""
        reference, perturbation = self.reference.take(rounds), self.perturbation.take(rounds)
        shifted = np.concatenate([self.last, perturbation[:-1]])
        self.last = perturbation[-1:].copy()
        references = _own(self.own[0], self.agent.reference, reference)
        perturbations = _own(self.own[1], self.agent.perturbation, perturbation)
        shifted_own = np.concatenate([self.last_own, perturbations[:, :-1]], axis=1)
        self.last_own = perturbations[:, -1:].copy()
        return self._tables(reference, references), self._tables(shifted, shifted_own)

    def _tables(self, gaussian: np.ndarray, own: np.ndarray) -> kernel.Noise:
        gaussian, dtype = np.ascontiguousarray(gaussian), self.dtype
        norms, signs = np.empty(len(gaussian)), np.empty(gaussian.shape, dtype)
        largest = np.zeros((len(gaussian), 2), dtype=np.int32)
        kernel.noise_tables(gaussian, norms, signs, largest)
        # draws from the posterior itself are float64, whatever the scores are
        exact = gaussian if self.exact else np.empty((0, 0))
        return kernel.Noise(gaussian.astype(dtype), exact, norms, signs, largest, np.ascontiguousarray(own, dtype))

    def advance(self, rounds: int, start: int, time: np.ndarray, outputs: tuple[np.ndarray, ...]) -> None:
        """Play the rounds start..start + rounds - 1 with every chain and write (regret, reward, optimal, chosen).

        Raises:
            TrainingError: theta is not a number.
        """
        agent = self.agent
        if self.instance.fresh is not None:
            features = self.instance.fresh(rounds)
            self.actions = self._actions(features, features @ self.theta)
        reference, perturbation = self._noise(rounds)
        noise = self.instance.reward_noise(rounds)
        stored = np.full(rounds, -1)
        columns = np.flatnonzero((time > start) & (time <= start + rounds))
        stored[time[columns] - 1 - start] = columns
        together = self._chains_per_call()
        for first in range(0, len(agent.laws), together):
            part = slice(first, first + together)
            step, chain, scores = kernel.play(
                self.actions,
                reference,
                perturbation,
                noise,
                kernel.Chains(*(array[part] for array in self.state)),
                kernel.Outputs(stored, *(array[part] for array in outputs)),
                self._work(len(agent.laws[part])),
                1 / agent.prior_variance,
                self.log_delta,
            )
            if step >= 0:
                pair = " x ".join(agent.laws[first + chain])
                raise TrainingError(
                    f"{type(agent).__name__} ({pair}), seed {self.instance.seed}, step {start + step + 1}: theta is not a "
                    "number; check prior_variance and noise"
                )
            agent.scores_computed += scores
        chosen = outputs[-1]
        if self.sorted is not None and chosen.size:
            chosen[...] = self.sorted[chosen]


def _own(laws: list[str], vectors: Callable[[str, np.ndarray], np.ndarray], gaussian: np.ndarray) -> np.ndarray:
    """(laws, rounds, M) of standard normal rows (rounds, M)."""
    return np.array([vectors(law, gaussian) for law in laws]).reshape(len(laws), *gaussian.shape)
