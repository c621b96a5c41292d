"""Agents and environments as a user might write them by mistake: each breaks one promise of `ensemblepp.bandit`."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from ensemblepp.agents.neural.greedy import Greedy
from ensemblepp.bandit import Choice, Decisions, Outcome
from ensemblepp.environments.candidates import Quadratic
from ensemblepp.environments.linear_finite import LinearFinite
from ensemblepp.environments.pool import Rounds

ACTIONS = 7


class Sound:
    """An agent that keeps every promise: it takes the first action."""

    chains = (("none", "none"),)

    def __init__(self, seeds, *, dimension, ensemble_size, horizon, device):
        self.seeds, self.round = tuple(seeds), 0

    def act(self, decisions):
        self.round += 1
        return decisions.choose(self.index())

    def index(self):
        return np.zeros((len(self.seeds), len(self.chains)), dtype=np.intp)

    def update(self, choice, reward):
        pass


class OneSeed(Sound):
    def act(self, decisions):
        return Choice(np.zeros((1, 1), dtype=np.intp), decisions.features[:1, [0]])


class Last(Sound):
    def index(self):
        return super().index() - 1


class LaterLast(Sound):
    def index(self):
        return super().index() - (self.round == 9)


class Beyond(Sound):
    def act(self, decisions):
        return Choice(self.index() + ACTIONS, decisions.features[:, [0]])


class Fractions(Sound):
    def act(self, decisions):
        return Choice(self.index() * 1.0, decisions.features[:, [0]])


class NoArrays(Sound):
    def act(self, decisions):
        return Choice([[0]] * len(self.seeds), decisions.features[:, [0]])


class Nothing(Sound):
    def act(self, decisions):
        return None


class OtherFeatures(Sound):
    def act(self, decisions):
        return Choice(self.index(), decisions.features[:, [1]])


class NoAct:
    chains = (("none", "none"),)

    def __init__(self, seeds, **_):
        self.seeds = tuple(seeds)

    def update(self, choice, reward):
        pass


class NoUpdate(Sound):
    update = None


class OtherSeeds(Sound):
    def __init__(self, seeds, **given):
        super().__init__(range(len(seeds) + 1), **given)


class NoChains(Sound):
    chains = ()


class ChainTwice(Sound):
    chains = (("none", "none"), ("none", "none"))


class ChainsOfTexts(Sound):
    chains = ("gaussian", "sphere")


class HalfOfThePairs(Sound):
    chains = (("gaussian", "sphere"), ("sphere", "gaussian"))


class ReservedName(Sound):
    def diagnostics(self):
        return {"regret": np.zeros((len(self.seeds), 1))}


class OneValue(Sound):
    def diagnostics(self):
        return {"loss": np.zeros(1)}


class NewName(Sound):
    def diagnostics(self):
        return {f"loss{min(self.round, 1)}": np.zeros((len(self.seeds), 1))}


class Stacked(Greedy):
    """A neural agent whose own code chooses, within the stacked rounds."""

    def choose(self, features):
        return self.position(features.shape[0])

    def position(self, chains):
        return torch.zeros(chains, dtype=torch.long)


class StackedOneChain(Stacked):
    def position(self, chains):
        return super().position(1)


class StackedBeyond(Stacked):
    def position(self, chains):
        return super().position(chains) + 50


class StackedLast(Stacked):
    def position(self, chains):
        return super().position(chains) - 1


class Bandit:
    """An environment that keeps every promise."""

    dimension, fixed_actions = 3, ACTIONS

    def __init__(self, seeds):
        self.seeds, self.round = tuple(seeds), 0
        self.features = np.ones((len(self.seeds), ACTIONS, 3))
        # equal features would let agents choose by features that are not the action's
        self.features[:, :, 0] = np.arange(ACTIONS)

    def decisions(self):
        return Decisions(self.features)

    def mean_rewards(self):
        return np.zeros((len(self.seeds), ACTIONS))

    def step(self, choice):
        self.round += 1
        return Outcome(np.zeros(choice.index.shape), np.zeros(choice.index.shape))


class NoStep(Bandit):
    step = None


class NoDimension(Bandit):
    dimension = None


class FlatFeatures(Bandit):
    def decisions(self):
        return Decisions(self.features[0])


class WrongWidth(Bandit):
    dimension = 4


class FewerActions(Bandit):
    fixed_actions = ACTIONS + 1


class MeansOfOneSeed(Bandit):
    def mean_rewards(self):
        return np.zeros((1, ACTIONS))


class RegretOfOneSeed(Bandit):
    def step(self, choice):
        return super().step(choice)._replace(regret=np.zeros((1, 1)))


class LaterRegretOfOneSeed(Bandit):
    def step(self, choice):
        outcome = super().step(choice)
        return outcome._replace(regret=np.zeros((1, 1))) if self.round == 9 else outcome


class RewardOnly(Bandit):
    def step(self, choice):
        return super().step(choice).reward


class RegretNotANumber(Bandit):
    def step(self, choice):
        outcome = super().step(choice)
        return outcome._replace(regret=outcome.regret + (np.nan if self.round == 9 else 0))


class Lists(Quadratic):
    """A pool of its own."""

    def __init__(self, seeds):
        super().__init__(seeds, dimension=4, candidates=10, offered=5, features="sphere", scale=0.1, noise=0.1)


class OfferBeyond(Lists):
    def draw(self, rounds):
        drawn = super().draw(rounds)
        return Rounds(drawn.offers + 9, drawn.noise)


class OfferBefore(Lists):
    def draw(self, rounds):
        drawn = super().draw(rounds)
        return Rounds(drawn.offers - 1, drawn.noise)


class NoiseOfOneSeed(Lists):
    def draw(self, rounds):
        drawn = super().draw(rounds)
        return Rounds(drawn.offers, drawn.noise[:1])


class TooManyRounds(Lists):
    def draw(self, rounds):
        return super().draw(rounds + 1)


class MeansMissing(Lists):
    def __init__(self, seeds):
        super().__init__(seeds)
        self.means = self.means[:, :-1]


class DoubleTable(Lists):
    def __init__(self, seeds):
        super().__init__(seeds)
        self.table = self.table.astype(float)


class Whole(LinearFinite):
    """A linear bandit of its own, which gives itself away whole."""

    family = "linear"

    def __init__(self, seeds):
        super().__init__(
            seeds, dimension=4, actions=6, features="cube", varying=False, feature_bound=1.0, prior_variance=1.0, noise=0.1
        )


class OneInstance(Whole):
    def instances(self):
        return list(super().instances())[:1]


class Backwards(Whole):
    def instances(self):
        return reversed(list(super().instances()))


class ShortTheta(Whole):
    def instances(self):
        return [replace(one, theta=one.theta[:-1]) for one in super().instances()]


class ShortNoise(Whole):
    def instances(self):
        return [replace(one, reward_noise=lambda rounds, one=one: one.reward_noise(rounds)[1:]) for one in super().instances()]


class NoNumber(Whole):
    def instances(self):
        return [replace(one, features=one.features * np.nan) for one in super().instances()]
