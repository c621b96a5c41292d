"""Classical ensemble sampling (Lu and Van Roy 2017): M independent members, each fitted to its own perturbed rewards.

Member m starts at theta_m ~ N(0, Sigma_0) and regresses on y + w_m with w_m ~ N(0, 1) fresh every round; a round acts on a
member drawn uniformly. With z ~ N(0, I/M) and A_0 as in Ensemble++, member m is mean + sqrt(M) A e_m exactly, so it is a chain
like any. With M = 1 it is recursive randomised least squares (`rrls`).
"""

from __future__ import annotations

from collections.abc import Sequence

from ensemblepp.agents.linear.chains import LinearChains


class EnsembleSampling(LinearChains):
    """Classical ensemble sampling with `ensemble_size` members.

    Args:
        seeds: the seeds.
        options: as in `LinearChains`.
    """

    family = "linear"

    def __init__(self, seeds: Sequence[int], **options) -> None:
        super().__init__(seeds, laws=[("member", "raw_gaussian")], labels=[("none", "none")], **options)
