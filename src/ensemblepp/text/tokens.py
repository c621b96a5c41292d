"""Posts to tokens by a language model's tokenizer, once: what agents that train the model read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr

from ensemblepp.errors import DataError
from ensemblepp.storage.datasets import read_dataset, write_dataset
from ensemblepp.text.backbones import load_tokenizer


def tokenise_posts(prepared: str | Path, output: str | Path, *, folder: str | Path, posts: int, max_tokens: int) -> None:
    """Write `token` (post, position), right-padded with 0, `length` and `label` (post) of a prepared file's first posts.

    Args:
        prepared: netCDF file with `text` and `label` (post).
        output: netCDF file to write; it has as many positions as the longest post has tokens.
        folder: the language model's folder.
        posts: how many.
        max_tokens: longer posts are cut, as the tokenizer cuts them; none is longer than the model's positions.

    Raises:
        DataError: the prepared file has fewer posts, a post has no token, or the folder has no tokenizer.
    """
    source = read_dataset(prepared, holds=("text", "label"))
    if posts > source.sizes["post"]:
        raise DataError(f"{prepared}: has {source.sizes['post']} posts, {posts} are asked for; lower environments.*.posts")
    source = source.isel(post=slice(posts))
    token, length = tokenised([str(text) for text in source["text"].values], folder, max_tokens)
    attributes = {"language_model": Path(folder).name, "max_tokens": max_tokens, "source": source.attrs.get("source", "")}
    dataset = xr.Dataset(
        {"token": (("post", "position"), token), "length": ("post", length), "label": ("post", source["label"].values)},
        {"post": np.arange(posts)},
        attributes,
    )
    write_dataset(dataset, output)


def tokenised(texts: list[str], folder: str | Path, max_tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """(texts, positions) tokens, right-padded with 0, and (texts,) lengths, both int32.

    Raises:
        DataError: a text has no token; the message names its place and never quotes it.
    """
    tokenizer = load_tokenizer(folder)
    # some models have more places in their table than positions; their tokenizers know
    most = min(max_tokens, _positions(folder) or max_tokens, tokenizer.model_max_length)
    rows = [tokenizer(text, truncation=True, max_length=most)["input_ids"] for text in texts]
    length = np.array([len(row) for row in rows], dtype=np.int32)
    if not length.all():
        raise DataError(f"post {int(length.argmin())} has no token; texts must not be empty")
    token = np.zeros((len(rows), length.max()), dtype=np.int32)
    # all posts at once: a place is filled where it is before its row's end
    token[np.arange(token.shape[1]) < length[:, None]] = np.concatenate(rows)
    return token, length


def _positions(folder: str | Path) -> int | None:
    """How many positions the model has; None if its configuration does not say."""
    from transformers import AutoConfig

    config = AutoConfig.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)
    return getattr(config, "max_position_embeddings", None)
