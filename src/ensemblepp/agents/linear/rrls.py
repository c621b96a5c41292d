"""Recursive randomised least squares (paper, Appendix "Recursive Randomized Least Squares"): ensemble sampling, one member."""

from __future__ import annotations

from collections.abc import Sequence

from ensemblepp.agents.linear.ensemble_sampling import EnsembleSampling


class RecursiveRandomizedLeastSquares(EnsembleSampling):
    """RRLS: one member, no ensemble size.

    Args:
        seeds: the seeds.
        options: as in `LinearChains`.
    """

    family = "linear"

    def __init__(self, seeds: Sequence[int], *, ensemble_size: int = 0, **options) -> None:
        super().__init__(seeds, ensemble_size=1, **options)
