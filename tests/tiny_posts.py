"""Posts as the tokens of a small language model (`tiny_models`), which learn soon what tells them apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tiny_models
import xarray as xr

from ensemblepp.storage.datasets import write_dataset

VOCABULARY, HIDDEN = len(tiny_models.WORDS), 32

#: Models that are trained in tests -> how their hidden states become one vector.
POOLING = {name: tiny_models.MAKES[name][2] for name in ("gpt2", "gpt_neox", "bert")}


def posts(path: Path, count: int = 40, longest: int = 12) -> Path:
    """A file of tokens as rule tokenise makes one, of 1 to `longest` each; the label is whether token 7 is in a post."""
    source = np.random.default_rng(1)
    length = source.integers(1, longest + 1, count).astype(np.int32)
    length[0] = longest
    token = source.integers(1, VOCABULARY, (count, longest)).astype(np.int32)
    token[np.arange(longest) >= length[:, None]] = 0
    label = np.arange(count) % 2
    token[label == 1, 0] = 7
    token[(label == 0)[:, None] & (token == 7)] = 8
    data = {"token": (("post", "position"), token), "length": ("post", length), "label": ("post", label.astype(np.int8))}
    write_dataset(xr.Dataset(data, {"post": np.arange(count)}), path)
    return path
