"""What every neural agent shares: parameters stacked over chains, replay buffer, minibatches, Adam, the round's schedule.

A chain is a seed with one setting of its laws. All chains' parameters lie in one flat tensor; their losses are one sum whose
gradient falls apart by chain, so one backward pass and one fused Adam step train them all, and nothing in Python grows with
the number of chains. Random numbers are drawn ahead for many rounds. `act` and `update` play rounds one by one, on any
environment; on pools the engines of `ensemblepp.engines.neural` play the same rounds faster.

A neural agent adds its parameters, how it scores actions and its loss: see `greedy` for the smallest one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from torch.optim.adam import adam

from ensemblepp.agents.neural import mlp
from ensemblepp.agents.neural.products import layer, softplus
from ensemblepp.bandit import AgentFamily, Choice, Decisions
from ensemblepp.errors import TrainingError
from ensemblepp.randomness.draws import Uniforms

Loss = Literal["squared", "cross_entropy"]

#: Rounds whose random numbers are drawn at once; changes memory and speed, never the values.
CHUNK = 64

#: Random numbers of all seeds that a source of many holds at once (64 MB); changes memory and speed, never the values.
MAX_DRAWN = 1 << 24

#: Every parameter starts at a multiple of so many floats, and the last one ends there: two of the widest registers, which torch
#: takes at a time, so that no number is left over to be rounded in another way.
_ALIGNMENT = 32


class Scores(NamedTuple):
    """What an agent thinks of the actions on offer."""

    value: torch.Tensor  #: (chains, actions), to be maximised
    mean: torch.Tensor  #: (chains, actions), what would be maximised without exploring


class NeuralAgent:
    """Base of the neural agents (paper, Algorithm 1 and Appendix "Ensemble++ Algorithm Details").

    Args:
        seeds: the seeds.
        dimension: entries of an action's features.
        horizon: rounds to come (bounds the buffer's memory).
        device: a torch device name.
        hidden: widths of the ReLU trunk's layers; empty for heads on the features themselves.
        learning_rate: Adam's step size.
        batch_size: samples per gradient step, drawn with replacement from the buffer.
        weight_decay: lambda; the coupled L2 coefficient is lambda / (samples in the buffer).
        buffer_capacity: C; the oldest sample leaves when it is full (FIFO).
        gradient_steps: G, gradient steps per round that trains.
        update_every: every how many rounds the agent trains.
        warm_up: rounds before the first gradient step.
        loss: "squared", or "cross_entropy" on two logits for rewards 0 and 1.
        timed: whether an engine also records the seconds that the rounds took; such runs do not repeat to the bit.
        chains: (reference, perturbation) names of every seed's chains.

    Subclasses pass their trainable tensors to `start`, and define `score` and `loss_of`. They may add `sources` of random
    numbers, `extra` numbers per sample for the buffer, and `spread`.
    """

    #: an own class that is played by the compiled rounds says so itself ("linear_heads", "single_head", "epinet")
    family: ClassVar[AgentFamily | None] = "neural"
    #: whether a round has the same operations on the same shapes every time, so that a CUDA graph can replay it
    captures = True

    def __init__(
        self,
        seeds: Sequence[int],
        *,
        dimension: int,
        horizon: int,
        device: str,
        hidden: Sequence[int],
        learning_rate: float,
        batch_size: int,
        weight_decay: float,
        buffer_capacity: int,
        gradient_steps: int,
        warm_up: int,
        update_every: int = 1,
        loss: Loss = "squared",
        timed: bool = False,
        chains: Sequence[tuple[str, str]] = (("none", "none"),),
        extra_width: int = 0,
    ) -> None:
        _switch_torch()
        self.seeds, self.chains = tuple(seeds), tuple(chains)
        self.device = torch.device(device)
        self.dimension = dimension
        self.hidden = tuple(hidden)
        self.width = self.hidden[-1] if self.hidden else dimension
        self.classes = 2 if loss == "cross_entropy" else 1
        self.gradient_steps, self.batch_size, self.update_every = gradient_steps, batch_size, update_every
        self.warm_up, self.weight_decay, self.learning_rate = warm_up, weight_decay, learning_rate
        self.capacity = min(buffer_capacity, horizon)
        self.timed = timed
        self.extra_width = extra_width
        self.stack = len(self.seeds) * len(self.chains)
        #: rounds that are done; on the device as well, for operations that must not wait for the host
        self.round = 0
        self.clock = torch.zeros(1, dtype=torch.int64, device=self.device)
        #: rounds so far in which the choice was not the best by `Scores.mean`
        self.explored = torch.zeros(self.stack, dtype=torch.int64, device=self.device)
        self.last_loss = torch.full((self.stack,), torch.nan, device=self.device)
        self._buffer: torch.Tensor | None = None
        self._offered: torch.Tensor | None = None
        #: name -> rounds -> (seeds or chains, rounds, ...): random numbers of the next rounds
        self.sources: dict[str, Callable[[int], np.ndarray]] = {
            "minibatch": Uniforms(self.seeds, "minibatch", (gradient_steps, batch_size))
        }
        #: rounds whose random numbers are drawn at once
        self.chunk = CHUNK
        self._draws: dict[str, torch.Tensor] = {}
        self._left = 0
        self._place = torch.zeros(1, dtype=torch.int64, device=self.device)

    # ------------------------------------------------------------------------------------------------ for subclasses

    def start(self, parameters: dict[str, np.ndarray]) -> None:
        """Take the trainable tensors, (seeds, ...) each, as `self.parameters[name]` (chains, ...), and make Adam ready."""
        self.layout: dict[str, tuple[int, tuple[int, ...]]] = {}
        end = 0
        for name, value in parameters.items():
            shape = (self.stack, *value.shape[1:])
            self.layout[name] = (end, shape)
            end += -(-int(np.prod(shape)) // _ALIGNMENT) * _ALIGNMENT
        self.flat = torch.zeros(end, device=self.device)
        self.flat.grad = torch.zeros_like(self.flat)
        self._moments = torch.zeros_like(self.flat), torch.zeros_like(self.flat)
        self._steps = torch.zeros((), device=self.device)
        self._bind()
        with torch.no_grad():
            for name, value in parameters.items():
                self.parameters[name].copy_(self.fixed(value))

    def fixed(self, values: np.ndarray) -> torch.Tensor:
        """A float32 tensor of this agent's chains, (chains, ...), from values per seed, (seeds, ...)."""
        return self.tensor(np.repeat(values, len(self.chains), axis=0))

    def trunk_parameters(self, generators: Sequence[np.random.Generator]) -> dict[str, np.ndarray]:
        """The trunk's weights and biases as torch would draw them, under the names that `trunk` expects."""
        layers = mlp.init_layers(generators, [self.dimension, *self.hidden])
        return {f"{kind}{i}": array for i, layer in enumerate(layers) for kind, array in zip("wb", layer, strict=True)}

    def trunk(self, features: torch.Tensor) -> torch.Tensor:
        """h(x; w): (chains, rows, dimension) to (chains, rows, width)."""
        for place in range(len(self.hidden)):
            features = layer(features, self.parameters[f"w{place}"], self.parameters[f"b{place}"])
        return features

    def limit_chunk(self, numbers: int) -> None:
        """Draw fewer rounds ahead if a source has so many numbers per seed and round that they would be over `MAX_DRAWN`."""
        self.chunk = max(1, min(self.chunk, MAX_DRAWN // (numbers * len(self.seeds))))

    def now(self, name: str, step: int | None = None) -> torch.Tensor:
        """The present round's random numbers of a source, (chains, ...), or those of its gradient step `step` alone."""
        draws = self._draws[name] if step is None else self._draws[name][:, :, step]
        return draws.index_select(1, self._place).squeeze(1)

    def score(self, features: torch.Tensor) -> Scores:
        """What to maximise this round, from features (chains, actions, dimension)."""
        raise NotImplementedError

    def extra(self, chosen: torch.Tensor) -> torch.Tensor | None:
        """Extra numbers to keep with this round's sample, (chains, extra_width); `chosen` (chains, 1, dimension)."""
        return None

    def loss_of(self, features: torch.Tensor, reward: torch.Tensor, extra: torch.Tensor, step: int) -> torch.Tensor:
        """Loss per chain, (chains,), of a minibatch: (chains, batch, dimension), (chains, batch), (chains, batch, extra)."""
        raise NotImplementedError

    def spread(self, features: torch.Tensor) -> torch.Tensor:
        """Standard deviation of what the agent samples when it acts, (chains, actions)."""
        return torch.zeros(features.shape[:2], device=self.device)

    def expected(self, features: torch.Tensor) -> torch.Tensor:
        """Predicted mean rewards, (chains, actions); NaN of agents that do not say."""
        return torch.full(features.shape[:2], torch.nan, device=self.device)

    def fitted(self, outputs: torch.Tensor, reward: torch.Tensor) -> torch.Tensor:
        """Loss per sample of predictions: squared error of (..., 1), or cross-entropy of two logits (..., 2)."""
        if self.classes == 1:
            return (outputs[..., 0] - reward).square()
        return softplus(outputs[..., 1] - outputs[..., 0]) - reward * (outputs[..., 1] - outputs[..., 0])

    # ---------------------------------------------------------------------------------------------------- the round

    def load(self, rounds: int) -> None:
        """Draw the random numbers of the next `rounds` rounds."""
        for name, source in self.sources.items():
            values = source(rounds)
            if len(values) < self.stack:
                values = np.repeat(values, len(self.chains), axis=0)
            self.put(name, values)
        self._left = rounds
        self._place.zero_()

    def put(self, name: str, values: np.ndarray) -> None:
        """Put the numbers of the rounds ahead, (chains, rounds, ...), where `now` finds them; CUDA graphs keep the place."""
        tensor = torch.from_numpy(np.ascontiguousarray(values))
        if values.dtype == np.float64:
            tensor = tensor.to(torch.float32)
        held = self._draws.get(name)
        if held is not None and held.shape[1] >= tensor.shape[1]:
            held[:, : tensor.shape[1]].copy_(tensor)
        else:
            self._draws[name] = tensor.to(self.device)

    def choose(self, features: torch.Tensor) -> torch.Tensor:
        """Position of the chosen action, (chains,), of features (chains, actions, dimension)."""
        with torch.no_grad():
            value, mean = self.score(features)
            chosen = value.argmax(dim=1)
            self.explored += chosen != mean.argmax(dim=1)
        return chosen

    def observe(self, features: torch.Tensor, reward: torch.Tensor, item: torch.Tensor | None = None) -> None:
        """Put a sample, (chains, dimension) and (chains,), into the buffer, and let the clock tick.

        On a pool, `item` (chains,) says which of its items was chosen.
        """
        if self._buffer is None:
            if self.round:
                raise RuntimeError("the compiled rounds keep no buffer to go on from: play all rounds in one call")
            width = self.dimension + 1 + self.extra_width
            # one row holds features, reward and extras, so that a minibatch is a single gather
            self._buffer = torch.zeros(self.stack, self.capacity, width, device=self.device)
            self._first_row = torch.arange(self.stack, device=self.device)[:, None] * self.capacity
        parts = [features, reward[:, None]]
        with torch.no_grad():
            extra = self.extra(features[:, None])
        if extra is not None:
            parts.append(extra)
        self._buffer.index_copy_(1, self.clock % self.capacity, torch.cat(parts, dim=1)[:, None])
        self.clock += 1

    def train(self) -> None:
        """The gradient steps of one round."""
        draws, stored = self.now("minibatch"), self.clock.clamp(max=self.capacity)
        rows = (draws * stored).to(torch.int64)
        decay = self.weight_decay / stored
        samples = self._buffer.flatten(0, 1)
        for step in range(self.gradient_steps):
            batch = samples.index_select(0, (rows[:, step] + self._first_row).flatten()).unflatten(0, rows[:, step].shape)
            features, reward, extra = batch.split([self.dimension, 1, self.extra_width], dim=-1)
            losses = self.loss_of(features, reward[..., 0], extra, step)
            self.flat.grad.zero_()
            losses.sum().backward()
            with torch.no_grad():
                self.flat.grad.addcmul_(self.flat, decay)
                self._step()
        self.last_loss.copy_(losses.detach())

    def _step(self) -> None:
        """One step of Adam of all that is trained."""
        self._adam(slice(None), self._steps, self.learning_rate)

    def _adam(self, part: slice, steps: torch.Tensor, learning_rate: float) -> None:
        """One step of Adam (Kingma & Ba 2015) with their constants, which are torch's too, of a part of `flat`."""
        # the function behind torch.optim.Adam: the class imports torch._dynamo, two seconds in every run
        adam(
            *([tensor[part]] for tensor in (self.flat, self.flat.grad, *self._moments)),
            max_exp_avg_sqs=[],
            state_steps=[steps],
            fused=True,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=learning_rate,
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )

    def end_round(self) -> None:
        """Go on to the next round's random numbers."""
        self._place += 1
        self._left -= 1
        self.round += 1

    def trains(self, round_: int) -> bool:
        """Whether there are gradient steps at the end of round `round_`, counted from 1."""
        return round_ > self.warm_up and round_ % self.update_every == 0

    # ------------------------------------------------------------------------------------------- the agent protocol

    def act(self, decisions: Decisions) -> Choice:
        if self._left == 0:
            self.load(self.chunk)
        features = self.tensor(np.repeat(decisions.features, len(self.chains), axis=0))
        self._offered = features
        chosen = self.choose(features).reshape(len(self.seeds), -1)
        return decisions.choose(chosen.cpu().numpy())

    def update(self, choice: Choice, reward: np.ndarray) -> None:
        if self._left == 0:
            self.load(self.chunk)
        self.observe(self.tensor(choice.features).flatten(0, 1), self.tensor(reward).flatten())
        if self.trains(self.round + 1):
            self.train()
        self.end_round()
        if self.device.type == "cpu":
            self.check()

    def diagnostics(self) -> dict[str, np.ndarray]:
        """Loss of the last minibatch, mean spread over the actions last offered, and rounds that explored so far."""
        with torch.no_grad():
            nothing = torch.full((self.stack,), torch.nan)
            spread = nothing if self._offered is None else self.spread(self._offered).mean(dim=1)
        present = {"loss": self.last_loss, "spread": spread, "explored": self.explored}
        # copies: on the CPU the arrays would go on to change with the tensors
        return {name: values.cpu().numpy().copy().reshape(len(self.seeds), -1) for name, values in present.items()}

    def prediction_error(self, means: np.ndarray) -> np.ndarray:
        """How far off the predictions for the actions last offered are, (seeds, chains): root of their mean squared error.

        NaN of agents that do not predict rewards, or only classes.

        Args:
            means: (seeds, actions) their noise-free rewards, which the agent never sees.
        """
        with torch.no_grad():
            predicted = self.expected(self._offered)
            if self.classes == 2:
                predicted = torch.full_like(predicted, torch.nan)
            error = (predicted - self.fixed(means)).square().mean(dim=1).sqrt()
        return error.cpu().numpy().reshape(len(self.seeds), -1)

    def parameter_counts(self) -> tuple[int, int]:
        """(all, trainable) parameters of one chain; frozen priors are the difference."""
        trainable = sum(int(np.prod(shape[1:])) for _, shape in self.layout.values())
        return trainable + self.frozen_parameters(), trainable

    def frozen_parameters(self) -> int:
        """Parameters that are not trained."""
        return 0

    def check(self) -> None:
        """Raise if a loss is not a number or a parameter is not finite.

        Raises:
            TrainingError: names the agent, the seeds and the round.
        """
        bad = torch.isinf(self.last_loss)
        # the least and the greatest are no numbers if one is none; thirty times faster than to ask all
        if not torch.stack(torch.aminmax(self.flat)).isfinite().all():
            for parameter in self.parameters.values():
                bad = bad | ~torch.isfinite(parameter.detach()).flatten(1).all(dim=1)
        if bad.any():
            seeds = [self.seeds[chain // len(self.chains)] for chain in bad.nonzero()[:, 0].tolist()]
            raise TrainingError(
                f"{type(self).__name__}: the loss of seed {', '.join(map(str, dict.fromkeys(seeds)))} is not finite at step "
                f"{self.round}; a smaller learning_rate, or prior_scale where it has one, in config/agents.yaml may help"
            )

    # ------------------------------------------------------------------------------------------------------- plumbing

    def tensor(self, array: np.ndarray) -> torch.Tensor:
        return torch.as_tensor(np.ascontiguousarray(array), dtype=torch.float32).to(self.device)

    def _bind(self) -> None:
        """Parameters as leaf tensors that are parts of `flat`, with parts of its gradient as theirs."""
        self.parameters: dict[str, torch.Tensor] = {}
        for name, (offset, shape) in self.layout.items():
            part = slice(offset, offset + int(np.prod(shape)))
            leaf = self.flat[part].view(shape).detach().requires_grad_()
            leaf.grad = self.flat.grad[part].view(shape)
            self.parameters[name] = leaf

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        # views of `flat`, and what a CUDA graph holds, are made again
        del state["parameters"]
        return state | {"gradient": self.flat.grad}

    def __setstate__(self, state: dict[str, Any]) -> None:
        _switch_torch()
        gradient = state.pop("gradient")
        self.__dict__.update(state)
        self.flat.grad = gradient
        self._bind()


def _switch_torch() -> None:
    """Flushed denormals and determinism, in this process."""
    # Adam's moments of dead units decay into denormal numbers, which are up to 50 times slower
    torch.set_flush_denormal(True)
    # cuBLAS reads it when it is first used
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    # the same as use_deterministic_algorithms(True), which imports torch._dynamo: two seconds in every run
    torch.set_deterministic_debug_mode("error")
    # with determinism, torch fills new tensors with NaN before it writes to them: a tenth of a round
    torch.utils.deterministic.fill_uninitialized_memory = False
