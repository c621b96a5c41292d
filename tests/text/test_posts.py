"""Embedding the posts of a data set: each text once, whatever is interrupted, damaged or asked for later."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from tiny_models import POSITIONS, WORDS, make

from ensemblepp.errors import DataError, ResultError
from ensemblepp.storage.datasets import read_dataset, write_dataset
from ensemblepp.storage.leftovers import prefix
from ensemblepp.text import embedding
from ensemblepp.text.embedding import Embedder, embed_posts
from ensemblepp.text.language_models import content

SOURCE = np.random.default_rng(0)
TEXTS = [" ".join(SOURCE.choice(WORDS[2:], length)) for length in SOURCE.integers(1, POSITIONS, 700)]
#: Texts that others have too, and one that is longer than the model takes.
TEXTS[5], TEXTS[699], TEXTS[300] = TEXTS[4], TEXTS[0], " ".join(SOURCE.choice(WORDS[2:], 5000))
LABELS = (SOURCE.random(700) < 0.4).astype(np.int8)

NOWHERE = "http://127.0.0.1:9"  # the discard port: refuses at once


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return make("llama", tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="module")
def vectors(model) -> np.ndarray:
    """The vectors of all texts, without any job."""
    return Embedder(model, "last")(TEXTS)


def prepared(path: Path, texts: list[str]) -> Path:
    columns = {"text": ("post", np.array(texts, object)), "label": ("post", LABELS[: len(texts)])}
    write_dataset(xr.Dataset(columns, attrs={"source": "invented"}), path)
    return path


@pytest.fixture(scope="module")
def posts(tmp_path_factory) -> Path:
    return prepared(tmp_path_factory.mktemp("data") / "posts.nc", TEXTS)


@pytest.fixture
def embedded(monkeypatch) -> list[str]:
    """The texts that a model has met, of all jobs of a test."""
    met: list[str] = []
    stream = Embedder.stream

    def noting(self, texts, what="text"):
        def noted():
            for name, text in texts:
                met.append(text)
                yield name, text

        return stream(self, noted(), what)

    monkeypatch.setattr(Embedder, "stream", noting)
    return met


def embed(posts: Path, output: Path, model: Path, count: int, **options) -> np.ndarray:
    embed_posts(posts, output, folder=model, posts=count, **{"pooling": "last", "max_tokens": 512} | options)
    return read_dataset(output, finite=("embedding",))["embedding"].values


def store(output: Path) -> list[Path]:
    return sorted(output.parent.glob("store/*/*.vectors"))


# --------------------------------------------------------------------------------------------------- each text once


def test_a_file_is_its_texts_vectors(model, posts, vectors, tmp_path):
    told = []
    found = embed(posts, tmp_path / "posts-700.nc", model, 700, on_text=told.append)
    assert np.array_equal(found, vectors)
    assert sum(told) == 700
    data = read_dataset(tmp_path / "posts-700.nc")
    assert data["label"].values.tolist() == LABELS.tolist()
    assert data["post"].values.tolist() == list(range(700))
    settings = {"pooling": "last", "max_tokens": 512, "precision": "float32"}
    assert data.attrs == {"language_model": "tiny", "language_model_sha256": content(model), **settings, "source": "invented"}
    assert not list(tmp_path.glob("store/*/*.lease"))


def test_a_longer_list_and_a_second_run_embed_what_is_new(model, posts, vectors, embedded, tmp_path):
    assert np.array_equal(embed(posts, tmp_path / "posts-300.nc", model, 300), vectors[:300])
    assert sorted(embedded) == sorted(set(TEXTS[:300])), "texts that stand twice are embedded once"
    embedded.clear()
    assert np.array_equal(embed(posts, tmp_path / "posts-700.nc", model, 700), vectors)
    assert sorted(embedded) == sorted(set(TEXTS) - set(TEXTS[:300]))
    embedded.clear()
    first = (tmp_path / "posts-700.nc").read_bytes()
    (tmp_path / "posts-700.nc").unlink()
    embed(posts, tmp_path / "posts-700.nc", model, 700)
    assert embedded == []
    assert (tmp_path / "posts-700.nc").read_bytes() == first


def test_the_same_bytes_whether_begun_with_fewer_or_not(model, posts, tmp_path):
    embed(posts, tmp_path / "one/posts-700.nc", model, 700)
    for count in (1, 200, 700):
        embed(posts, tmp_path / f"other/posts-{count}.nc", model, count)
    assert (tmp_path / "one/posts-700.nc").read_bytes() == (tmp_path / "other/posts-700.nc").read_bytes()


def test_no_model_is_loaded_when_all_is_there(model, posts, tmp_path, monkeypatch):
    embed(posts, tmp_path / "posts-50.nc", model, 50)

    def refuse(*arguments, **options):
        raise AssertionError("a model is loaded")

    monkeypatch.setattr(embedding, "Embedder", refuse)
    embed(posts, tmp_path / "posts-40.nc", model, 40)
    with pytest.raises(AssertionError, match="a model is loaded"):
        embed(posts, tmp_path / "posts-60.nc", model, 60)


def test_another_data_set_shares_texts(model, posts, vectors, embedded, tmp_path):
    others = prepared(tmp_path / "others.nc", [TEXTS[7], "green red", TEXTS[2]])
    embed(posts, tmp_path / "posts-10.nc", model, 10)
    embedded.clear()
    found = embed(others, tmp_path / "others-3.nc", model, 3)
    assert embedded == ["green red"]
    assert np.array_equal(found[[0, 2]], vectors[[7, 2]])


@pytest.mark.parametrize(
    "other", [{"max_tokens": 3}, {"pooling": "mean"}, {"precision": "bfloat16"}, {"code": "edited"}, {"model": "other"}]
)
def test_other_settings_are_embedded_anew(model, posts, embedded, tmp_path, other):
    other = dict(other)
    embed(posts, tmp_path / "posts-20.nc", model, 20)
    embedded.clear()
    folder = make("llama", tmp_path / "tiny", seed=1) if other.pop("model", None) else model
    found = embed(posts, tmp_path / "posts-20.nc", folder, 20, **other)
    assert sorted(embedded) == sorted(set(TEXTS[:20]))
    expected = Embedder(folder, **{"pooling": "last"} | {key: value for key, value in other.items() if key != "code"})
    assert np.array_equal(found, expected(TEXTS[:20]))


def test_a_model_with_other_files_under_the_same_name(posts, embedded, tmp_path):
    """What counts is what is in the folder."""
    folder = make("llama", tmp_path / "tiny")
    one = embed(posts, tmp_path / "posts-20.nc", folder, 20)
    shutil.rmtree(folder)
    make("llama", folder, seed=1)
    other = embed(posts, tmp_path / "posts-20.nc", folder, 20)
    assert not np.array_equal(one, other)
    embedded.clear()
    shutil.rmtree(folder)
    make("llama", folder)
    assert np.array_equal(embed(posts, tmp_path / "posts-20.nc", folder, 20), one)
    assert embedded == []


# ------------------------------------------------------------------------------------------- interruption and damage

#: Embeds, and dies without a word when so many posts are done.
DIES = """
import os, sys
from ensemblepp.text import embedding
embedding.EVERY = 0.0
done = 0
def count(more):
    global done
    done += more
    if done >= {place}:
        os._exit(9)
embedding.embed_posts({posts!r}, {output!r}, folder={model!r}, posts=700, pooling="last", max_tokens=512, on_text=count)
"""


@pytest.mark.parametrize("place", [1, 400])
def test_a_killed_job_goes_on_to_the_same_bytes(model, posts, embedded, tmp_path, place):
    output = tmp_path / "killed/posts-700.nc"
    script = DIES.format(place=place, posts=str(posts), output=str(output), model=str(model))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 9, done.stderr
    assert not output.exists()
    embed(posts, output, model, 700)
    # of the batch that was told of last nothing is kept
    assert (len(embedded) == len(set(TEXTS))) is (place == 1)
    embed(posts, tmp_path / "whole/posts-700.nc", model, 700)
    assert output.read_bytes() == (tmp_path / "whole/posts-700.nc").read_bytes()


def test_what_was_made_before_a_fault_is_kept(model, embedded, tmp_path):
    faulty = prepared(tmp_path / "faulty.nc", [*TEXTS[:200], " "])
    with pytest.raises(DataError, match=r"faulty\.nc: post 200 has no token; texts must not be empty$"):
        embed(faulty, tmp_path / "faulty-201.nc", model, 201)
    assert not (tmp_path / "faulty-201.nc").exists()
    embedded.clear()
    embed(faulty, tmp_path / "faulty-100.nc", model, 100)
    assert len(embedded) < 100


@pytest.mark.parametrize("damage", ["bit", "cut", "half-written"])
def test_a_damaged_store_is_made_anew(model, posts, embedded, tmp_path, capsys, damage):
    output = tmp_path / "posts-300.nc"
    embed(posts, output, model, 300)
    whole, embedded[:] = output.read_bytes(), []
    (path,) = store(output)
    saved = path.read_bytes()
    if damage == "half-written":
        path.unlink()
        # as by a process that is no more
        (path.parent / f"{prefix(path.stem).rpartition('-')[0]}-1.x.vectors").write_bytes(saved[:5000])
    else:
        path.write_bytes(saved[:900] + bytes([saved[900] ^ 1]) + saved[901:] if damage == "bit" else saved[:5000])
    output.unlink()
    embed(posts, output, model, 300)
    assert output.read_bytes() == whole
    assert sorted(embedded) == sorted(set(TEXTS[:300]))
    said = capsys.readouterr().err
    assert said.startswith(f"{path}: ") is (damage != "half-written")
    assert [file.suffix for file in path.parent.iterdir()] == [".vectors"], "nothing half-written stays"


def test_more_posts_than_there_are(model, posts, tmp_path):
    with pytest.raises(DataError) as fault:
        embed(posts, tmp_path / "out.nc", model, 701)
    assert str(fault.value) == f"{posts}: has 700 posts, 701 are asked for; lower environments.*.posts"
    assert not list(tmp_path.iterdir())


def test_numbers_that_are_not_finite(model, posts, tmp_path, monkeypatch):
    def overflown(self, texts, what="text"):
        yield [3, 0], np.array([[1.0, 2.0], [np.inf, 0.0]], np.float32)

    monkeypatch.setattr(Embedder, "stream", overflown)
    with pytest.raises(DataError) as fault:
        embed(posts, tmp_path / "out.nc", model, 5)
    assert str(fault.value) == f"{model}: gives no finite numbers for post 0; give this model precision: float32"
    assert not store(tmp_path / "out.nc")


def test_a_model_that_was_damaged(posts, tmp_path):
    folder = make("llama", tmp_path / "tiny")
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ResultError, match=r"model\.safetensors: damaged .*; delete .*tiny and run snakemake again$"):
        embed(posts, tmp_path / "out.nc", folder, 5)
    assert not (tmp_path / "out.nc").exists()


# -------------------------------------------------------------------------------------------------------- the network


def isolated() -> list[str]:
    """What starts a process in a network of its own, in which there is nothing; none where that is not allowed."""
    command = ["unshare", "--map-root-user", "--net"]
    tried = shutil.which("unshare") and subprocess.run([*command, "true"], capture_output=True, check=False)
    return command if tried and tried.returncode == 0 else []


def test_the_command_needs_no_network(model, posts, vectors, tmp_path):
    output = tmp_path / "posts-20.nc"
    command = [*isolated(), sys.executable, "-m", "ensemblepp", "embed", "--prepared", str(posts), "--folder", str(model)]
    options = ["--posts", "20", "--pooling", "last", "--max-tokens", "512", "--precision", "float32", "--output", str(output)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HF_")}
    environment |= {"HF_ENDPOINT": NOWHERE, "HF_HOME": str(tmp_path / "home"), "https_proxy": NOWHERE, "http_proxy": NOWHERE}
    done = subprocess.run([*command, *options], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Loading weights" not in done.stderr
    assert all(line.startswith("embedding 20 posts: step ") for line in done.stderr.splitlines())
    assert np.array_equal(read_dataset(output)["embedding"].values, vectors[:20])


def test_nothing_leaves_the_machine(model, monkeypatch):
    def refuse(self, address):
        raise AssertionError(f"asked the network for {address}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert Embedder(model, "last")(TEXTS[:3]).shape == (3, 32)


# --------------------------------------------------------------------------------------------------------- the memory

#: Embeds posts by a model of nothing but width, and tells how much memory that took at most.
GROWS = """
import re, sys
import numpy as np
from ensemblepp.text import embedding

class Wide:
    def __init__(self, *arguments, **options):
        pass
    def stream(self, texts, what):
        for post, text in texts:
            yield [post], np.full((1, 8192), post, np.float32)

embedding.Embedder = Wide
embedding.content = lambda folder: "wide"
count, folder = int(sys.argv[1]), sys.argv[2]
files = f"{folder}/posts.nc", f"{folder}/posts-{count}.nc"
embedding.embed_posts(*files, folder="wide", posts=count, pooling="last", max_tokens=9)
# not of `resource`: what the process that started this one took counts there
print(re.search(r"VmHWM:\\s*(\\d+)", open("/proc/self/status").read())[1])
"""


def test_memory_does_not_grow_with_the_posts(tmp_path):
    """Vectors of 32 kB: as many again are 130 MB, of which a twentieth of the whole is not the third part."""
    texts = [f"text {number}" for number in range(8400)]
    columns = {"text": ("post", np.array(texts, object)), "label": ("post", np.zeros(8400, np.int8))}
    write_dataset(xr.Dataset(columns), tmp_path / "posts.nc")
    peak = {}
    for count in (4200, 8400):
        command = [sys.executable, "-c", GROWS, str(count), str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        peak[count] = json.loads(done.stdout)
        shutil.rmtree(tmp_path / "store")
    assert peak[8400] < 1.05 * peak[4200]
    found = read_dataset(tmp_path / "posts-8400.nc")["embedding"].values
    assert np.array_equal(found[:, 0], np.arange(8400))
