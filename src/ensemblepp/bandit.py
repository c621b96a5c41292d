"""The whole interface between environments and agents.

Everything is batched: axis 0 is the seed, axis 1 the chain within the seed (for agents of Ensemble++ the reference x
perturbation pairs, otherwise one). Chains of one seed meet the same decision sets and the same reward noise.

Any agent plays any environment round by round. Those that name a family are also played whole, and much faster, by an engine
that knows it (`ensemblepp.engines`): the outcome is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np

from ensemblepp.errors import ConfigError


class Choice(NamedTuple):
    """What an agent chose in one round."""

    #: (seeds, chains) int, position in the decision set; it hides the method `index` of tuples
    index: np.ndarray  # type: ignore[assignment]
    features: np.ndarray  #: (seeds, chains, d) the chosen action's features


class Outcome(NamedTuple):
    """What the environment answers in one round."""

    reward: np.ndarray  #: (seeds, chains) observed reward, with noise
    regret: np.ndarray  #: (seeds, chains) best mean reward of the decision set minus the chosen one's, without noise


@dataclass(frozen=True)
class Decisions:
    """The decision sets of one round: `features` has shape (seeds, actions, d)."""

    features: np.ndarray

    def maximise(self, theta: np.ndarray) -> Choice:
        """The action with the greatest <x, theta> for every chain; ties go to the lowest index.

        Args:
            theta: (seeds, chains, d) parameter vectors.
        """
        index = np.empty(theta.shape[:2], dtype=np.intp)
        for seed, features in enumerate(self.features):
            # one matrix product per seed keeps the score table in the cache
            index[seed] = (theta[seed] @ features.T).argmax(axis=1)
        return self.choose(index)

    def choose(self, index: np.ndarray) -> Choice:
        """The choice of the actions at `index`, shape (seeds, chains)."""
        return Choice(index, self.features[np.arange(len(index))[:, None], index])


class SphereDecisions:
    """The unit sphere as the decision set of every seed."""

    @property
    def features(self) -> np.ndarray:
        """There is no list of the actions.

        Raises:
            ConfigError: always.
        """
        raise ConfigError("this agent needs a finite decision set; leave it out of studies on linear_sphere environments")

    def maximise(self, theta: np.ndarray) -> Choice:
        """theta / |theta| for every chain, (seeds, chains, d); the first axis where theta is zero. The index is always 0."""
        norm = np.linalg.norm(theta, axis=-1, keepdims=True)
        axis = np.zeros(theta.shape[-1])
        axis[0] = 1.0
        return Choice(np.zeros(theta.shape[:2], dtype=np.intp), np.where(norm > 0, theta / np.where(norm > 0, norm, 1.0), axis))


class Environment(Protocol):
    """A bandit for several seeds at once.

    A class is constructed as `Environment(seeds, **options)`, where `options` are what the configuration gives.
    """

    # a type checker reads properties, so that a class may have a tuple, a property or a constant; others read attributes
    if TYPE_CHECKING:

        @property
        def seeds(self) -> Sequence[int]:
            """The seeds, in the order of axis 0."""

        @property
        def dimension(self) -> int:
            """d, entries of an action's feature vector."""

        @property
        def fixed_actions(self) -> int:
            """Number of actions whose meaning is the same in every round (so that "always action a" is a policy), else 0."""

    else:
        seeds: Sequence[int]
        dimension: int
        fixed_actions: int

    def decisions(self) -> Decisions:
        """The decision sets of the present round."""

    def mean_rewards(self) -> np.ndarray:
        """(seeds, actions) noise-free rewards of the present round's decision sets."""

    def step(self, choice: Choice) -> Outcome:
        """Answer the present round's choices and go on to the next round."""


class Agent(Protocol):
    """An agent for several seeds at once.

    A class is constructed as `Agent(seeds, dimension=d, ensemble_size=M, horizon=T, device="cpu", **options)`, where
    `options` are its hyper-parameters as the configuration gives them. It may define `diagnostics()`, the present state of
    what it has to say of itself as name -> (seeds, chains), always the same names: run files keep it.
    """

    if TYPE_CHECKING:

        @property
        def seeds(self) -> Sequence[int]:
            """The seeds, in the order of axis 0."""

        @property
        def chains(self) -> Sequence[tuple[str, str]]:
            """One (reference, perturbation) pair of law names per chain; ("none", "none") where an agent has no such laws."""

    else:
        seeds: Sequence[int]
        chains: Sequence[tuple[str, str]]

    def act(self, decisions: Decisions) -> Choice:
        """Choose one action for every seed and chain."""

    def update(self, choice: Choice, reward: np.ndarray) -> None:
        """Learn from the rewards, shape (seeds, chains), of the choices made by the last `act`."""


@dataclass(frozen=True)
class LinearInstance:
    """One seed of a linear bandit, whole, for the engines that play all its rounds in one call (`LinearEnvironment`)."""

    seed: int
    theta: np.ndarray  #: (d,) the true parameter theta*
    reward_noise: Callable[[int], np.ndarray]  #: rounds -> (rounds,) noise of the next rounds' rewards
    features: np.ndarray | None = None  #: (actions, d) if the decision set stays
    fresh: Callable[[int], np.ndarray] | None = None  #: rounds -> (rounds, actions, d) if every round has its own
    actions: int = 0  #: size of the decision sets, 0 if infinite

    @property
    def sphere(self) -> bool:
        """Whether the decision set is the whole unit sphere."""
        return self.features is None and self.fresh is None


class LinearEnvironment(Environment, Protocol):
    """An environment of the family "linear": it can also give itself away whole; the same seed plays the same either way.

    Like any environment it is played once: whole, or round by round.
    """

    def instances(self) -> Iterator[LinearInstance]:
        """One instance per seed, each made when it is asked for, so that one at a time is in memory."""


#: What an environment is to the engines, by its attribute `family`: "linear" gives `instances`, "pool" is an
#: `environments.pool.Pool`; without one it is played round by round.
EnvironmentFamily = Literal["linear", "pool"]

#: The same of an agent: "linear" is an `agents.linear.chains.LinearChains`, "neural" an `agents.neural.base.NeuralAgent`,
#: "linear_heads", "single_head" and "epinet" are some of them that compiled rounds know as well.
AgentFamily = Literal["linear", "neural", "linear_heads", "single_head", "epinet"]
