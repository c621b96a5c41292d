"""Texts to vectors by a language model in memory, in batches of fixed shapes: what an embedding's numbers come from.

A text is padded on the right to a length that its own tokens decide, and all batches of one length have equally many rows; what
is missing of the last one is filled. The libraries below choose how to compute by the shape of what they are given, so a text's
vector depends on nothing else that is embedded, nor on the order (docs/decisions.md says how far).
"""

from __future__ import annotations

import itertools
from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np
import torch

from ensemblepp.errors import DataError

#: Tokens of a batch, with padding. Twice as many are 7 % faster on a CPU, but fill more rows of every length's last batch: of
#: 400 posts 71 % of the computed tokens would be theirs and not 83 %, of 2,000 posts 89 and 91 %. A GPU needs more to be busy.
BATCH_TOKENS = {"cpu": 256, "cuda": 1 << 15}

#: Texts that are split into tokens together.
_TOGETHER = 128

#: Texts and what they are called, for who asks which vector is whose.
Batch = tuple[list[Hashable], list[list[int]], int]


class Forward:
    """A language model, and the pooling that makes one vector of a text.

    Args:
        tokenizer: of `transformers`.
        model: of `transformers`, as it is to compute: on its device, in its precision.
        pooling: "last" (hidden state of the last token) or "mean" (over tokens).
        max_tokens: longer texts are cut.
        threads: batches that are computed at once on a CPU, each on one thread; the numbers do not depend on it.
    """

    def __init__(
        self, tokenizer: Any, model: torch.nn.Module, pooling: Literal["last", "mean"], max_tokens: int, threads: int = 1
    ) -> None:
        self._tokenizer, self._model, self._pooling = tokenizer, model.eval(), pooling
        # nothing is generated: keys and values are of no later use
        model.config.use_cache = False
        self._device = model.device
        self._threads = threads if self._device.type == "cpu" else 1
        positions = getattr(model.config, "max_position_embeddings", None) or max_tokens
        # some models have more places in their table than positions; their tokenizers know
        self._most = min(max_tokens, positions, tokenizer.model_max_length)
        self.width = model.config.hidden_size

    def __call__(self, texts: Iterable[tuple[Hashable, str]], what: str) -> Iterator[tuple[list[Hashable], np.ndarray]]:
        """Names of texts and their vectors, (texts, width) float32, as they come ready. At most a few batches are in memory.

        Args:
            texts: a name of each, which stands in messages after `what`, and the text.
            what: what the texts are.

        Raises:
            DataError: a text has no token at all.
        """
        # threads of this one's own: how many the caller lets torch have is no matter for the numbers
        with ThreadPoolExecutor(self._threads, initializer=torch.set_num_threads, initargs=(1,)) as workers:
            submitted = (workers.submit(self._embed, batch) for batch in self._batches(texts, what))
            # one more than are computed: the next is ready when a worker is
            ahead = deque(itertools.islice(submitted, self._threads + 1))
            while ahead:
                yield ahead.popleft().result()
                ahead.extend(itertools.islice(submitted, 1))

    def _batches(self, texts: Iterable[tuple[Hashable, str]], what: str) -> Iterator[Batch]:
        waiting: dict[int, tuple[list[Hashable], list[list[int]]]] = defaultdict(lambda: ([], []))
        texts = iter(texts)
        while group := list(itertools.islice(texts, _TOGETHER)):
            options = {"truncation": True, "max_length": self._most, "padding": False}
            split = self._tokenizer([text for _, text in group], **options)["input_ids"]
            for (name, _), tokens in zip(group, split, strict=True):
                if not tokens:
                    raise DataError(f"{what} {name} has no token; texts must not be empty")
                length = padded(len(tokens), self._most)
                names, rows = waiting[length]
                names.append(name)
                rows.append(tokens)
                if len(rows) == self._rows(length):
                    yield (*waiting.pop(length), length)
        for length in sorted(waiting):
            yield (*waiting.pop(length), length)

    def _rows(self, length: int) -> int:
        return max(1, BATCH_TOKENS[self._device.type] // length)

    @torch.inference_mode()
    def _embed(self, batch: Batch) -> tuple[list[Hashable], np.ndarray]:
        names, tokens, length = batch
        ids = np.zeros((self._rows(length), length), np.int64)
        # a row that stands for none is one token
        lengths = np.ones(len(ids), np.int64)
        for row, text in enumerate(tokens):
            ids[row, : len(text)] = text
            lengths[row] = len(text)
        lengths = torch.from_numpy(lengths).to(self._device)
        # any token may pad: it is masked, and nothing is read at its position
        mask = (torch.arange(length, device=self._device) < lengths[:, None]).long()
        hidden = self._model(input_ids=torch.from_numpy(ids).to(self._device), attention_mask=mask).last_hidden_state
        if self._pooling == "last":
            pooled = hidden[torch.arange(len(hidden), device=self._device), lengths - 1].float()
        else:
            pooled = (hidden.float() * mask[..., None]).sum(dim=1) / lengths[:, None]
        return names, pooled[: len(tokens)].cpu().numpy()


def padded(tokens: int, most: int) -> int:
    """What a text of so many tokens is padded to: a multiple of 4 up to 32, of 8 up to 64, and so on, but `most` at most."""
    step = max(4, 1 << max(0, (tokens - 1).bit_length() - 3))
    return min(-(-tokens // step) * step, most)
