"""Greedy least squares in a linear bandit: theta is the ridge estimate, no exploration."""

from __future__ import annotations

from collections.abc import Sequence

from ensemblepp.agents.linear.chains import LinearChains


class LinearGreedy(LinearChains):
    """theta_t = mean.

    Args:
        seeds: the seeds.
        options: as in `LinearChains`.
    """

    family = "linear"

    def __init__(self, seeds: Sequence[int], **options) -> None:
        super().__init__(seeds, laws=[("none", "none")], **options)
