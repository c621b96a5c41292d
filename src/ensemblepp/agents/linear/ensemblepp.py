"""Linear Ensemble++ sampling (paper, Section "Linear Ensemble++ Sampling"), for many pairs of laws at once."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from ensemblepp.agents.linear.chains import LinearChains
from ensemblepp.randomness.distributions import Entry


class LinearEnsemblePlusPlus(LinearChains):
    """Linear Ensemble++ for every pair of the given reference and perturbation laws.

    Ensemble sampling (ES) as the paper's Figure 2 defines it is this agent with the coordinate reference.

    Args:
        seeds: the seeds.
        references: laws of zeta, names or laws of the user's (`distributions.law`).
        perturbations: laws of z, the same.
        options: as in `LinearChains`.
    """

    family = "linear"

    def __init__(self, seeds: Sequence[int], *, references: Sequence[Entry], perturbations: Sequence[Entry], **options) -> None:
        super().__init__(seeds, laws=tuple(itertools.product(references, perturbations)), **options)
