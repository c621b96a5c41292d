"""Posts to tokens: what the tokenizer says, cut where it cuts, and no text in any message."""

from __future__ import annotations

import hashlib
import shutil

import numpy as np
import pytest
import tiny_models
import xarray as xr

from ensemblepp.cli import main
from ensemblepp.errors import DataError
from ensemblepp.storage.datasets import read_dataset, read_json, write_dataset, write_json
from ensemblepp.text.language_models import CHECKSUMS
from ensemblepp.text.tokens import tokenise_posts, tokenised

TEXTS = ["red", "green blue red w3", "w1 w2"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return tiny_models.make("gpt2", tmp_path_factory.mktemp("models") / "gpt2")


@pytest.fixture
def prepared(tmp_path):
    data = {"text": ("post", np.array(TEXTS, object)), "label": ("post", np.array([0, 1, 1], np.int8))}
    write_dataset(xr.Dataset(data, attrs={"source": "here"}), tmp_path / "posts.nc")
    return tmp_path / "posts.nc"


def numbers(text: str) -> list[int]:
    return [tiny_models.WORDS.index(word) for word in text.split()]


def test_tokens_are_padded_on_the_right_with_zeros(model, prepared, tmp_path):
    tokenise_posts(prepared, tmp_path / "tokens.nc", folder=model, posts=3, max_tokens=512)
    found = read_dataset(tmp_path / "tokens.nc", finite=("token",), holds=("language_model",))
    assert (found["token"].dtype, found["length"].dtype) == (np.int32, np.int32)
    rows = [numbers(text) for text in TEXTS]
    assert found["token"].values.tolist() == [[*row, 0, 0, 0, 0][:4] for row in rows]
    assert found["length"].values.tolist() == [1, 4, 2]
    assert found["label"].values.tolist() == [0, 1, 1]
    assert found["post"].values.tolist() == [0, 1, 2]
    assert (found.attrs["language_model"], found.attrs["source"], found.attrs["max_tokens"]) == ("gpt2", "here", 512)


def test_the_first_posts_alone(model, prepared, tmp_path):
    tokenise_posts(prepared, tmp_path / "tokens.nc", folder=model, posts=1, max_tokens=512)
    assert read_dataset(tmp_path / "tokens.nc").sizes == {"post": 1, "position": 1}


def test_long_posts_are_cut(model):
    """By the limit that is asked for, and at the model's positions."""
    token, length = tokenised(["red green blue w1", "red"], model, 2)
    assert token.tolist() == [numbers("red green"), [*numbers("red"), 0]]
    token, length = tokenised(["red " * 5000], model, 10_000)
    assert length.tolist() == [tiny_models.POSITIONS]


def test_more_posts_than_there_are(model, prepared, tmp_path):
    with pytest.raises(DataError, match=r"posts\.nc: has 3 posts, 4 are asked for; lower environments"):
        tokenise_posts(prepared, tmp_path / "tokens.nc", folder=model, posts=4, max_tokens=512)
    assert not (tmp_path / "tokens.nc").exists()


def test_a_post_without_a_token(model):
    with pytest.raises(DataError, match=r"^post 1 has no token; texts must not be empty$"):
        tokenised(["red", "", "w1"], model, 512)


def test_the_command(model, prepared, tmp_path, capsys):
    options = [
        "--prepared",
        str(prepared),
        "--folder",
        str(model),
        "--max-tokens",
        "3",
        "--output",
        str(tmp_path / "tokens.nc"),
    ]
    assert main(["tokenise", *options, "--posts", "2"]) == 0
    assert read_dataset(tmp_path / "tokens.nc").sizes == {"post": 2, "position": 3}
    assert main(["tokenise", *options, "--posts", "5"]) == 1
    assert capsys.readouterr().err.startswith("error: ")


def test_a_tokenizer_that_cannot_be_read(model, tmp_path):
    shutil.copytree(model, tmp_path / "bad")
    (tmp_path / "bad/tokenizer.json").write_text("{")
    known = read_json(tmp_path / "bad" / CHECKSUMS)
    write_json(known | {"tokenizer.json": hashlib.sha256(b"{").hexdigest()}, tmp_path / "bad" / CHECKSUMS)
    with pytest.raises(DataError, match=r"bad: no tokenizer can be read \(.*\); delete the folder, and see language_models"):
        tokenised(["red"], tmp_path / "bad", 512)
