"""The bootstrapped ensemble without priors (Osband et al. 2016)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ensemblepp.agents.neural.member_heads import MemberHeads
from ensemblepp.randomness.draws import Uniforms


class BootstrappedEnsemble(MemberHeads):
    """Members that see each sample twice or not at all, by a coin of their own; no priors, no perturbations.

    Args:
        seeds: the seeds.
        ensemble_size: M.
        training: the keyword arguments of `MemberHeads`.
    """

    family = "linear_heads"
    weighted = True

    def __init__(self, seeds: Sequence[int], *, ensemble_size: int, **training) -> None:
        super().__init__(seeds, ensemble_size=ensemble_size, extra_width=ensemble_size, posterior_scale=1.0, **training)
        self.sources["weights"] = Coins(self.seeds, ensemble_size)

    def extra(self, chosen: torch.Tensor) -> torch.Tensor:
        return self.now("weights")


class Coins:
    """Weights 0 or 2 with probability 1/2 each: rounds -> (seeds, rounds, M), float32."""

    def __init__(self, seeds: Sequence[int], ensemble_size: int) -> None:
        self._uniforms = Uniforms(seeds, "perturbation/coins", (ensemble_size,))

    def __call__(self, rounds: int) -> np.ndarray:
        return np.where(self._uniforms(rounds) < 0.5, np.float32(2), np.float32(0))
