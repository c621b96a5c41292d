"""Moderation of posts as tokens: the stream, labels and rewards of moderation by embeddings."""

from __future__ import annotations

import numpy as np
import pytest
import tiny_posts
import xarray as xr

from ensemblepp.environments.moderation import Moderation
from ensemblepp.environments.moderation_tokens import TokenModeration
from ensemblepp.errors import ResultError
from ensemblepp.storage.datasets import read_dataset, write_dataset


def test_contexts_are_length_and_tokens_in_the_actions_block(tmp_path):
    """Token numbers survive as float32, the largest vocabularies' too."""
    token = np.array([[5, 0, 0], [250_000, 16_777_215, 9]], dtype=np.int32)
    data = {"token": (("post", "position"), token), "length": ("post", [1, 3]), "label": ("post", [0, 1])}
    write_dataset(xr.Dataset(data), tmp_path / "tokens.nc")
    bandit = TokenModeration([0], inputs={"tokens": tmp_path / "tokens.nc"}, passes=1)
    assert (bandit.dimension, bandit.fixed_actions) == (8, 2)
    features = bandit.features(np.array([[0, 3]]))
    assert features.tolist() == [[[1, 5, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 3, 250_000, 16_777_215, 9]]]
    assert bandit.means.tolist() == [[0.5, 1.0, 0.5, -0.5]]


def test_the_same_stream_as_by_embeddings(tmp_path):
    """Posts, means and noise, at every seed: 60 rounds of two passes."""
    path = tiny_posts.posts(tmp_path / "tokens.nc")
    label = read_dataset(path)["label"].values
    vectors = np.arange(40, dtype=np.float32)[:, None] + 1
    data = {"embedding": (("post", "feature"), vectors), "label": ("post", label)}
    write_dataset(xr.Dataset(data), tmp_path / "embeddings.nc")
    options = {"passes": 2}
    tokens = TokenModeration((3, 5), inputs={"tokens": path}, **options)
    embedded = Moderation((3, 5), inputs={"embeddings": tmp_path / "embeddings.nc"}, scaling="none", **options)
    np.testing.assert_array_equal(tokens.means, embedded.means)
    for left, right in zip(tokens.draw(60), embedded.draw(60), strict=True):
        np.testing.assert_array_equal(left, right)


def test_a_file_of_embeddings_is_refused(tmp_path):
    data = {"embedding": (("post", "feature"), np.ones((2, 3))), "label": ("post", [0, 1])}
    write_dataset(xr.Dataset(data), tmp_path / "embeddings.nc")
    with pytest.raises(ResultError, match="variable 'token' is missing or empty"):
        TokenModeration([0], inputs={"tokens": tmp_path / "embeddings.nc"}, passes=1)
