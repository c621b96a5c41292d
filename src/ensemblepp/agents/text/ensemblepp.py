"""Ensemble++ on a language model that it trains (paper, Appendix "Content Moderation").

The base head's gradient reaches the backbone. The ensemble's heads, and the fixed prior heads that the released code adds to
the paper's formula, are on the same hidden state without gradient: one pass through the model serves all.
"""

from __future__ import annotations

from ensemblepp.agents.neural.ensemblepp import NeuralEnsemblePlusPlus
from ensemblepp.agents.text.backbone import BackboneAgent


class TextEnsemblePlusPlus(NeuralEnsemblePlusPlus, BackboneAgent):
    """`NeuralEnsemblePlusPlus` whose trunk is a language model; its keyword arguments, and those of `BackboneAgent`."""

    family = "neural"
