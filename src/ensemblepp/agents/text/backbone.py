"""A language model in the place of a neural agent's trunk, trained with the heads (paper, Appendix "Content Moderation").

    x = (post, action a)  ->  h(post; w) in block a of R^{actions x hidden}, zeros elsewhere

h is the hidden state of the post's last token, or the mean over its tokens. Heads on h in blocks are heads of every action. At
one seed they start as those of the same agent on the model's embeddings, which draws the same minibatches too: with a backbone
that does not move, both are one agent (tested).

Every chain trains a model of its own, whose weights lie in the agent's flat tensor like all that is trained: one step of Adam,
one coupled decay, one checkpoint. Texts are padded on the right to the longest of a pass, and their padding is masked.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from ensemblepp.agents.neural.base import NeuralAgent
from ensemblepp.text.backbones import load_backbone

#: What a pass through the model costs by itself, in tokens: a minibatch is cut into passes of similar lengths where that is
#: less than the padding it saves.
PASS_TOKENS = {"cpu": 64, "cuda": 8192}

#: Names of the backbone's parameters among the agent's begin like this.
_PREFIX = "backbone."


class BackboneAgent(NeuralAgent):
    """Base of the agents that train a language model; to be derived from after the agent whose heads are taken.

    Args:
        seeds: the seeds.
        dimension: entries of an action's features: `actions` x (1 + positions).
        folder: the language model's folder.
        pooling: "last" (hidden state of the last token) or "mean" (over tokens).
        actions: how many there are, each with heads of its own.
        backbone_learning_rate: Adam's step size for the backbone; None: that of the heads, 0: it stays as it is.
        precision: "bfloat16" computes hidden states in it; weights, heads and what Adam keeps are float32.
        gradient_checkpointing: compute hidden states a second time for the gradient and do not keep them.
        training: the keyword arguments of `NeuralAgent`, but for `hidden`.

    Raises:
        ResultError: the folder is not as `text.language_models.acquire` left it.
        DataError: there is no model in it that can be read.
    """

    family = "neural"
    # lengths differ from round to round
    captures = False

    def __init__(
        self,
        seeds: Sequence[int],
        *,
        dimension: int,
        folder: str | Path,
        pooling: Literal["last", "mean"],
        actions: int,
        backbone_learning_rate: float | None = None,
        precision: Literal["float32", "bfloat16"] = "float32",
        gradient_checkpointing: bool = False,
        **training,
    ) -> None:
        super().__init__(seeds, dimension=dimension, hidden=(), **training)
        self.actions, self.pooling = actions, pooling
        self.backbone_learning_rate = self.learning_rate if backbone_learning_rate is None else backbone_learning_rate
        self.half = precision == "bfloat16"
        self._folder, self._gradient_checkpointing = str(folder), gradient_checkpointing
        self._load()
        self.width = actions * self._models[0].config.hidden_size
        # the backbone and the heads count their steps apart, as they are two steps of Adam
        self._backbone_steps = torch.zeros((), device=self.device)
        # posts and their hidden states under the present weights: what is offered is read to act, and again for what is stored
        self._last_read: tuple[torch.Tensor, torch.Tensor] | None = None

    # ------------------------------------------------------------------------------------------------------ the trunk

    def trunk_parameters(self, generators: Sequence[np.random.Generator]) -> dict[str, np.ndarray]:
        """The trained model's weights, the same for every seed."""
        weights = {name: value.detach().cpu().numpy() for name, value in self._models[0].named_parameters()}
        return {_PREFIX + name: np.broadcast_to(value, (len(generators), *value.shape)) for name, value in weights.items()}

    def trunk(self, features: torch.Tensor) -> torch.Tensor:
        """h in the action's block: (chains, rows, dimension) to (chains, rows, width)."""
        blocks = features.unflatten(-1, (self.actions, -1))
        # a post has a token at least, and only the action's block has a post
        action = blocks[..., 0].argmax(dim=-1)
        posts = blocks.sum(dim=-2).to(torch.int64)
        if torch.is_grad_enabled():
            with torch.set_grad_enabled(self.backbone_learning_rate > 0):
                hidden = self._read_all(posts)
        else:
            if self._last_read is None or not torch.equal(self._last_read[0], posts):
                self._last_read = posts, self._read_all(posts)
            hidden = self._last_read[1]
        chosen = action[..., None] == torch.arange(self.actions, device=self.device)
        return (chosen[..., None] * hidden[..., None, :]).flatten(-2)

    def _read_all(self, posts: torch.Tensor) -> torch.Tensor:
        """h of posts (chains, rows, 1 + positions), (chains, rows, hidden)."""
        return torch.stack([self._hidden(model, own) for model, own in zip(self._models, posts, strict=True)])

    def _hidden(self, model: torch.nn.Module, posts: torch.Tensor) -> torch.Tensor:
        """h of posts (rows, 1 + positions), (rows, hidden); a post that is there twice is read once."""
        # sorted by their first entry, the length
        distinct, place = torch.unique(posts, dim=0, return_inverse=True)
        lengths = distinct[:, 0].tolist()
        passes = [self._read(model, distinct[rows]) for rows in passes_of(lengths, PASS_TOKENS[self.device.type])]
        return torch.cat(passes).index_select(0, place)

    def _read(self, model: torch.nn.Module, posts: torch.Tensor) -> torch.Tensor:
        """h of posts in one pass."""
        length = posts[:, 0]
        tokens = posts[:, 1 : 1 + int(length[-1])]
        mask = torch.arange(tokens.shape[1], device=self.device) < length[:, None]
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.half):
            hidden = model(input_ids=tokens, attention_mask=mask.to(torch.int64)).last_hidden_state.to(torch.float32)
        if self.pooling == "last":
            return hidden[torch.arange(len(posts), device=self.device), length - 1]
        return (hidden * mask[..., None]).sum(dim=1) / length[:, None]

    # ------------------------------------------------------------------------------------------------------- training

    def _step(self) -> None:
        """One step of Adam, of the heads at their step size and of the backbone at its own."""
        heads = min(offset for name, (offset, _) in self.layout.items() if not name.startswith(_PREFIX))
        self._adam(slice(heads, None), self._steps, self.learning_rate)
        if self.backbone_learning_rate > 0:
            self._adam(slice(0, heads), self._backbone_steps, self.backbone_learning_rate)
            self._last_read = None

    # ------------------------------------------------------------------------------------------------------- plumbing

    def _load(self) -> None:
        self._models = [
            load_backbone(self._folder, gradient_checkpointing=self._gradient_checkpointing).to(self.device)
            for _ in range(self.stack)
        ]

    def _bind(self) -> None:
        """The models' parameters too are parts of `flat`, leaf tensors of their own with parts of its gradient as theirs."""
        super()._bind()
        for name, stacked in self.parameters.items():
            if not name.startswith(_PREFIX):
                continue
            owner, _, own = name.removeprefix(_PREFIX).rpartition(".")
            for model, value, gradient in zip(self._models, stacked.detach(), stacked.grad, strict=True):
                leaf = torch.nn.Parameter(value)
                leaf.grad = gradient
                setattr(model.get_submodule(owner), own, leaf)

    def __getstate__(self) -> dict[str, Any]:
        # weights are in `flat`, and a gradient is used in the round that makes it
        left_out = ("_models", "_last_read", "gradient")
        return {name: value for name, value in super().__getstate__().items() if name not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.stack, self.device = state["stack"], state["device"]
        self._folder, self._gradient_checkpointing = state["_folder"], state["_gradient_checkpointing"]
        self._last_read = None
        self._load()
        super().__setstate__(state | {"gradient": torch.zeros_like(state["flat"])})


def passes_of(lengths: Sequence[int], cost: int) -> list[slice]:
    """The cheapest cut of texts, sorted by length, into passes: padded tokens plus `cost` for each pass.

    Args:
        lengths: of the texts, rising.
        cost: what a pass costs by itself, in tokens.
    """
    least, start = [0.0], [0]
    for end in range(1, len(lengths) + 1):
        costs = [least[first] + (end - first) * lengths[end - 1] + cost for first in range(end)]
        start.append(min(range(end), key=costs.__getitem__))
        least.append(costs[start[end]])
    cuts, end = [], len(lengths)
    while end:
        cuts.append(slice(start[end], end))
        end = start[end]
    return cuts[::-1]
