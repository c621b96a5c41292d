"""Greedy on a language model that it trains (the paper's classifier, A = 0)."""

from __future__ import annotations

from ensemblepp.agents.neural.greedy import Greedy
from ensemblepp.agents.text.backbone import BackboneAgent


class TextGreedy(Greedy, BackboneAgent):
    """`Greedy` whose trunk is a language model; the keyword arguments are those of `BackboneAgent`."""

    family = "neural"
