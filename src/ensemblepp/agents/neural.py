"""What every neural agent shares: replay buffer, minibatches, Adam, and the round's schedule, stacked over seeds.

The loss of all seeds is one sum whose gradient falls apart by seed, so one backward pass trains them all. A neural agent
adds its parameters, how it scores actions and its loss (see `greedy` for the smallest one).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ensemblepp.environments.base import Choice, Decisions
from ensemblepp.errors import TrainingError
from ensemblepp.streams import generator


class NeuralAgent:
    """Base of the neural agents (paper, Algorithm 1 and Appendix "Ensemble++ Algorithm Details").

    Args:
        seeds: the seeds.
        dimension: entries of an action's features.
        horizon: rounds to come (bounds the buffer's memory).
        device: a torch device name.
        learning_rate: Adam's step size.
        batch_size: samples per gradient step, drawn with replacement from the buffer.
        weight_decay: lambda; the coupled L2 coefficient is lambda / (samples in the buffer).
        buffer_capacity: C; the oldest sample leaves when it is full (FIFO).
        gradient_steps: G, gradient steps per round.
        warm_up: rounds before the first gradient step.

    Subclasses fill `self.parameters` (trainable leaf tensors, seed first), then call `self.start()`, and define `score`
    and `loss`. `extra_width` more numbers per sample (the perturbations, say) go to the buffer with every sample.
    """

    chains: Sequence[tuple[str, str]] = (("none", "none"),)

    def __init__(
        self,
        seeds: Sequence[int],
        *,
        dimension: int,
        horizon: int,
        device: str,
        learning_rate: float,
        batch_size: int,
        weight_decay: float,
        buffer_capacity: int,
        gradient_steps: int,
        warm_up: int,
        extra_width: int = 0,
    ) -> None:
        self.seeds = tuple(seeds)
        self.device = torch.device(device)
        self.parameters: list[torch.Tensor] = []
        self.gradient_steps = gradient_steps
        self.batch_size = batch_size
        self._weight_decay = weight_decay
        self._learning_rate = learning_rate
        self._warm_up = warm_up
        self._round = 0
        self._capacity = min(buffer_capacity, horizon)
        # one row holds features, reward and extras, so that a minibatch is a single gather
        self._buffer = torch.zeros(len(self.seeds), self._capacity, dimension + 1 + extra_width, device=self.device)
        self._dimension = dimension
        self._minibatch_generators = [generator(seed, "minibatch") for seed in self.seeds]
        self._seed_axis = torch.arange(len(self.seeds), device=self.device)[:, None]

    def start(self) -> None:
        """Make the parameters trainable and the optimiser ready; switch torch to flushed denormals and determinism."""
        # Adam's moments of dead units decay into denormal numbers, which are up to 50 times slower
        torch.set_flush_denormal(True)
        torch.use_deterministic_algorithms(True)
        for parameter in self.parameters:
            parameter.requires_grad_(True)
        self._optimiser = torch.optim.Adam(self.parameters, lr=self._learning_rate, fused=True)

    def score(self, features: torch.Tensor) -> torch.Tensor:
        """Values to maximise this round, (seeds, actions), from features (seeds, actions, dimension)."""
        raise NotImplementedError

    def extra(self) -> np.ndarray | None:
        """This round's extra numbers per sample, (seeds, extra_width), or None."""
        return None

    def loss(self, features: torch.Tensor, reward: torch.Tensor, extra: torch.Tensor) -> torch.Tensor:
        """Loss per seed, shape (seeds,), of a minibatch: (seeds, batch, dimension), (seeds, batch), (seeds, batch, extra)."""
        raise NotImplementedError

    def act(self, decisions: Decisions) -> Choice:
        with torch.no_grad():
            values = self.score(self._tensor(decisions.features))
        return decisions.choose(values.argmax(dim=1, keepdim=True).cpu().numpy())

    def update(self, choice: Choice, reward: np.ndarray) -> None:
        parts = [choice.features[:, 0], reward]
        extra = self.extra()
        if extra is not None:
            parts.append(extra)
        self._buffer[:, self._round % self._capacity] = self._tensor(np.concatenate(parts, axis=1))
        self._round += 1
        # drawn every round, used or not: the draws of a round then do not depend on the warm-up
        draws = [source.random((self.gradient_steps, self.batch_size)) for source in self._minibatch_generators]
        if self._round <= self._warm_up:
            return
        stored = min(self._round, self._capacity)
        rows = torch.from_numpy((np.stack(draws) * stored).astype(np.int64)).to(self.device)
        self._optimiser.param_groups[0]["weight_decay"] = self._weight_decay / stored
        for step in range(self.gradient_steps):
            batch = self._buffer[self._seed_axis, rows[:, step]]
            features, rewards, extras = batch.split([self._dimension, 1, batch.shape[-1] - self._dimension - 1], dim=-1)
            losses = self.loss(features, rewards[..., 0], extras)
            self._optimiser.zero_grad()
            losses.sum().backward()
            self._optimiser.step()
        self._check(losses.detach())

    def _check(self, losses: torch.Tensor) -> None:
        finite = torch.isfinite(losses)
        if not finite.all():
            bad = [seed for seed, good in zip(self.seeds, finite.tolist(), strict=True) if not good]
            raise TrainingError(
                f"{type(self).__name__}: the loss of seed {', '.join(map(str, bad))} is not finite at step {self._round}; "
                "a smaller learning_rate or prior_scale in config/agents.yaml may help"
            )

    def _tensor(self, array: np.ndarray) -> torch.Tensor:
        return torch.as_tensor(array, dtype=torch.float32, device=self.device)
