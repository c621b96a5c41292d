"""Texts to vectors by a frozen language model, each text once: the files that the moderation environments read.

Vectors are kept beside these files by text, model and settings (`storage.vectors`): a job that was killed goes on from there,
and a longer list, another data set or a second run embeds only what is new.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import numpy as np
import xarray as xr

from ensemblepp.errors import DataError
from ensemblepp.storage.datasets import open_dataset
from ensemblepp.storage.leases import Lease
from ensemblepp.storage.parts import ROWS, write_in_parts
from ensemblepp.storage.vectors import VectorStore
from ensemblepp.text.language_models import content, verify

#: Seconds of work that a killed job loses at most, beside one batch of every length; and vectors that wait in memory at most.
EVERY = 20.0
MOST = 2048

#: Libraries whose versions may decide a vector's last digits.
_LIBRARIES = ("numpy", "tokenizers", "torch", "transformers")


class Embedder:
    """A language model from a local folder, and the pooling that makes one vector of a text.

    Args:
        folder: a transformers model folder (`ensemblepp.text.language_models.acquire` makes one).
        pooling: "last" (hidden state of the last token, as the paper uses GPT-2) or "mean" (over tokens, for encoders).
        max_tokens: longer texts are cut.
        device: a torch device name.
        precision: "float32" or "bfloat16", in which the model computes.
        threads: batches that are computed at once on a CPU.

    Raises:
        ResultError: the folder is not as `acquire` left it.
        DataError: the folder has no tokenizer or no model that can be read, or one that is neither causal nor an encoder.
    """

    def __init__(
        self,
        folder: str | Path,
        pooling: Literal["last", "mean"],
        max_tokens: int = 512,
        device: str = "cpu",
        *,
        precision: Literal["float32", "bfloat16"] = "float32",
        threads: int = 1,
    ) -> None:
        verify(folder)
        # the folder is all it needs: no request may leave the machine
        os.environ["HF_HUB_OFFLINE"] = "1"
        # one thread here, and no words about it when a process is forked
        os.environ["TOKENIZERS_PARALLELISM"] = "false"
        import torch
        from transformers import AutoModel, AutoTokenizer
        from transformers.utils import logging

        from ensemblepp.text.forward import Forward

        # hundreds of steps in a log file, within a second
        logging.disable_progress_bar()

        # said and not left to defaults: nothing in the folder is run, and no weights are unpickled
        closed = {"local_files_only": True, "trust_remote_code": False}
        # whatever the libraries below raise, the folder holds no model that they can read
        try:
            tokenizer = AutoTokenizer.from_pretrained(str(folder), **closed)
        except Exception as error:
            raise DataError(_unreadable(folder, "tokenizer", error)) from error
        try:
            model = AutoModel.from_pretrained(str(folder), dtype=getattr(torch, precision), use_safetensors=True, **closed)
        except Exception as error:
            raise DataError(_unreadable(folder, "model", error)) from error
        if model.config.is_encoder_decoder:
            raise DataError(f"{folder}: a model of encoder and decoder; take a causal model or an encoder")
        self._forward = Forward(tokenizer, model.to(device), pooling, max_tokens, threads)

    def __call__(self, texts: Sequence[str], on_text: Callable[[int], None] = lambda count: None) -> np.ndarray:
        """Embed `texts`; (texts, hidden size) float32, in their order. `on_text` is told how many more are done.

        Raises:
            DataError: a text has no token at all.
        """
        result = np.empty((len(texts), self._forward.width), np.float32)
        for rows, vectors in self.stream(enumerate(texts)):
            result[rows] = vectors
            on_text(len(rows))
        return result

    def stream(self, texts: Iterable[tuple[Hashable, str]], what: str = "text") -> Iterator[tuple[list[Hashable], np.ndarray]]:
        """Embed texts that come one by one, in bounded memory (`forward.Forward`).

        Args:
            texts: a name of each, and the text.
            what: what they are, for messages.

        Raises:
            DataError: a text has no token at all.
        """
        return self._forward(texts, what)


def embed_posts(
    prepared: str | Path,
    output: str | Path,
    *,
    folder: str | Path,
    posts: int,
    pooling: Literal["last", "mean"],
    max_tokens: int,
    precision: Literal["float32", "bfloat16"] = "float32",
    device: str = "cpu",
    threads: int = 1,
    code: str = "",
    on_text: Callable[[int], None] = lambda count: None,
) -> None:
    """Embed the first `posts` posts of a prepared file; write `embedding` (post, feature) and `label`.

    Posts of one text are embedded once. Memory does not grow with the posts, but for some 300 bytes of each.

    Args:
        prepared: netCDF with `text` (post) and `label` (post).
        output: the file to write; vectors are kept in the folder `store` beside it.
        folder, pooling, max_tokens, precision, device, threads: as of `Embedder`.
        posts: how many.
        code: the fingerprint of `ensemblepp.text.forward`; vectors of other code are not used.
        on_text: is told how many more posts are done.

    Raises:
        DataError: the prepared file has fewer posts, a post has no token, or the model gives no finite numbers.
        ResultError: a file is not as it was written.
    """
    prepared, output = Path(prepared), Path(output)
    with open_dataset(prepared, holds=("text", "label")) as source:
        if posts > source.sizes["post"]:
            raise DataError(f"{prepared}: has {source.sizes['post']} posts, {posts} are asked for; lower environments.*.posts")
        settings = {"pooling": pooling, "max_tokens": max_tokens, "precision": precision}
        model = content(folder)
        place = output.parent / "store" / _name({**settings, "model": model, "device": device, "code": code})
        # of two jobs with the same posts the second one waits, and finds what it needs
        with Lease(place / f"{prepared.stem}.lease", str(output)):
            keys = [hashlib.sha256(text.encode()).digest() for text in _texts(source, posts)]
            store = VectorStore(place)
            missing: dict[bytes, int] = {}
            for post, key in enumerate(keys):
                if key not in store:
                    missing.setdefault(key, post)
            on_text(posts - len(missing))
            if missing:
                embedder = Embedder(folder, **settings, device=device, threads=threads)
                chosen = set(missing.values())
                texts = ((post, text) for post, text in enumerate(_texts(source, posts)) if post in chosen)
                _keep(embedder.stream(texts, f"{prepared}: post"), keys, store, folder, on_text)
                # what follows needs its memory more
                del embedder
        dataset = xr.Dataset(
            {"label": ("post", source["label"][:posts].values)},
            {"post": np.arange(posts)},
            {
                "language_model": Path(folder).name,
                "language_model_sha256": model,
                **settings,
                "source": source.attrs.get("source", ""),
            },
        )
    parts = (store.take(keys[start : start + ROWS]) for start in range(0, posts, ROWS))
    write_in_parts(dataset, "embedding", ("post", "feature"), parts, output)


def _keep(
    made: Iterator[tuple[list[int], np.ndarray]],
    keys: Sequence[bytes],
    store: VectorStore,
    folder: str | Path,
    on_text: Callable[[int], None],
) -> None:
    """Put vectors that come by posts into the store, several batches together."""
    waiting: dict[bytes, np.ndarray] = {}
    last = time.monotonic()
    try:
        for posts, vectors in made:
            finite = np.isfinite(vectors).all(axis=1)
            if not finite.all():
                post = posts[int(finite.argmin())]
                raise DataError(f"{folder}: gives no finite numbers for post {post}; give this model precision: float32")
            waiting |= {keys[post]: vector for post, vector in zip(posts, vectors, strict=True)}
            on_text(len(posts))
            if time.monotonic() - last > EVERY or len(waiting) >= MOST:
                store.add(list(waiting), np.stack(list(waiting.values())))
                waiting, last = {}, time.monotonic()
    finally:
        # of a run that fails, too: the next one need not make them again
        if waiting:
            store.add(list(waiting), np.stack(list(waiting.values())))


def _texts(source: xr.Dataset, posts: int) -> Iterator[str]:
    """The first texts, read from the disk a few at a time."""
    for start in range(0, posts, ROWS):
        yield from map(str, source["text"][start : min(start + ROWS, posts)].values)


def _name(settings: dict[str, object]) -> str:
    """The folder of all vectors that are made alike."""
    versions = {name: version(name) for name in _LIBRARIES}
    return hashlib.sha256(json.dumps(settings | versions, sort_keys=True).encode()).hexdigest()[:16]


def _unreadable(folder: str | Path, what: str, error: Exception) -> str:
    reason = next(iter(str(error).splitlines()), type(error).__name__)
    return f"{folder}: no {what} can be read ({reason}); delete the folder, and see language_models in config/environments.yaml"
