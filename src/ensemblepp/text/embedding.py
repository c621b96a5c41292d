"""Texts to vectors by a frozen language model, once: the cache that the moderation environments read.

A vector must not depend on what else is in the batch: texts are padded on the right, the padding is masked, and the hidden
state is taken at the text's own last token (or averaged over its own tokens).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
import xarray as xr

from ensemblepp.errors import DataError
from ensemblepp.storage.datasets import read_dataset, write_dataset
from ensemblepp.text.language_models import verify

#: Padded tokens per batch: bounds memory, whatever the lengths.
BATCH_TOKENS = 4096


class Embedder:
    """A language model from a local folder, and the pooling that makes one vector of a text.

    Args:
        folder: a transformers model folder (`ensemblepp.text.language_models.acquire` makes one).
        pooling: "last" (hidden state of the last token, as the paper uses GPT-2) or "mean" (over tokens, for encoders).
        max_tokens: longer texts are cut.
        device: a torch device name.

    Raises:
        ResultError: the folder is not as `acquire` left it.
        DataError: the folder has no tokenizer or no model that can be read.
    """

    def __init__(
        self, folder: str | Path, pooling: Literal["last", "mean"], max_tokens: int = 512, device: str = "cpu"
    ) -> None:
        verify(folder)
        # the folder is all it needs: no request may leave the machine
        os.environ["HF_HUB_OFFLINE"] = "1"
        from transformers import AutoModel, AutoTokenizer

        # said and not left to defaults: nothing in the folder is run, and no weights are unpickled
        closed = {"local_files_only": True, "trust_remote_code": False}
        # whatever the libraries below raise, the folder holds no model that they can read
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(str(folder), **closed)
        except Exception as error:
            raise DataError(_unreadable(folder, "tokenizer", error)) from error
        try:
            self._model = AutoModel.from_pretrained(str(folder), dtype=torch.float32, use_safetensors=True, **closed)
        except Exception as error:
            raise DataError(_unreadable(folder, "model", error)) from error
        self._model.to(device).eval()
        self._pooling, self._device = pooling, device
        positions = getattr(self._model.config, "max_position_embeddings", max_tokens)
        self._max_tokens = min(max_tokens, positions)

    def __call__(self, texts: Sequence[str], on_text: Callable[[], None] = lambda: None) -> np.ndarray:
        """Embed `texts`; (texts, hidden size) float32, in their order. `on_text` is called after each.

        Raises:
            DataError: a text has no token at all.
        """
        tokens = [self._tokenizer(text, truncation=True, max_length=self._max_tokens)["input_ids"] for text in texts]
        for row, ids in enumerate(tokens):
            if not ids:
                raise DataError(f"text {row} has no token; texts must not be empty")
        result = np.empty((len(texts), self._model.config.hidden_size), dtype=np.float32)
        with torch.inference_mode():
            for rows in _batches([len(ids) for ids in tokens]):
                result[rows] = self._embed([tokens[row] for row in rows])
                for _ in rows:
                    on_text()
        return result

    def _embed(self, tokens: list[list[int]]) -> np.ndarray:
        lengths = torch.tensor([len(ids) for ids in tokens], device=self._device)
        # any token may pad: it is masked, and nothing is read at its position
        ids = torch.zeros(len(tokens), int(lengths.max()), dtype=torch.long, device=self._device)
        for row, text in enumerate(tokens):
            ids[row, : len(text)] = torch.tensor(text)
        mask = (torch.arange(ids.shape[1], device=self._device) < lengths[:, None]).long()
        hidden = self._model(input_ids=ids, attention_mask=mask).last_hidden_state
        if self._pooling == "last":
            pooled = hidden[torch.arange(len(tokens), device=self._device), lengths - 1]
        else:
            pooled = (hidden * mask[..., None]).sum(dim=1) / lengths[:, None]
        return pooled.float().cpu().numpy()


def embed_posts(
    prepared: str | Path,
    output: str | Path,
    *,
    folder: str | Path,
    posts: int,
    pooling: Literal["last", "mean"],
    max_tokens: int,
    device: str = "cpu",
    on_text: Callable[[], None] = lambda: None,
) -> None:
    """Embed the first `posts` posts of a prepared file; write `embedding` (post, feature) and `label`.

    Raises:
        DataError: the prepared file has fewer posts.
    """
    source = read_dataset(prepared, holds=("text", "label"))
    if posts > source.sizes["post"]:
        raise DataError(f"{prepared}: has {source.sizes['post']} posts, {posts} are asked for; lower environments.*.posts")
    source = source.isel(post=slice(posts))
    vectors = Embedder(folder, pooling, max_tokens, device)([str(text) for text in source["text"].values], on_text)
    attributes = {
        "language_model": Path(folder).name,
        "pooling": pooling,
        "max_tokens": max_tokens,
        "source": source.attrs.get("source", ""),
    }
    dataset = xr.Dataset(
        {"embedding": (("post", "feature"), vectors), "label": ("post", source["label"].values)},
        {"post": np.arange(posts)},
        attributes,
    )
    write_dataset(dataset, output)


def _unreadable(folder: str | Path, what: str, error: Exception) -> str:
    reason = next(iter(str(error).splitlines()), type(error).__name__)
    return f"{folder}: no {what} can be read ({reason}); delete the folder, and see language_models in config/environments.yaml"


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Rows in batches of similar length, so that little is computed on padding."""
    batch: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda index: lengths[index]):
        if batch and (len(batch) + 1) * lengths[row] > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(row)
    if batch:
        yield batch
