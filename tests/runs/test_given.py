"""How classes that are given in Python are played."""

from __future__ import annotations

import pytest

from ensemblepp.agents.linear.greedy import LinearGreedy
from ensemblepp.agents.neural.dropout import Dropout
from ensemblepp.agents.neural.epinet import EpiNet
from ensemblepp.agents.neural.greedy import Greedy
from ensemblepp.agents.neural.lmcts import LMCTS
from ensemblepp.config.agents import CustomAgent
from ensemblepp.runs import given


class OwnLinear(LinearGreedy):
    pass


class OwnLMCTS(LMCTS):
    pass


class OwnGreedy(Greedy):
    pass


class OwnDropout(Dropout):
    pass


class OwnEpiNet(EpiNet):
    pass


class SaysSo(Dropout):
    family = "single_head"


class Plain:
    pass


@pytest.mark.parametrize(
    ("kind", "plays_as"),
    [
        (Plain, "any"),
        (OwnLinear, "any"),
        # by the rounds that all neural agents share: a derived class may have changed what compiled ones know of it
        (OwnLMCTS, "neural"),
        (OwnGreedy, "neural"),
        (OwnDropout, "neural"),
        (OwnEpiNet, "neural"),
        (SaysSo, "single_head"),
    ],
)
def test_what_a_derived_class_is_played_by(kind, plays_as):
    (entry,) = given.agents([kind], {}).entries.values()
    assert entry["plays_as"] == plays_as
    assert CustomAgent.model_validate(entry).plays_as == plays_as
