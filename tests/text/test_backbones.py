"""Any causal model and any encoder: a text's vector is the model's own, and the same to the last bit in any company."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tiny_models import MAKES, POSITIONS, WORDS, make

from ensemblepp.errors import DataError
from ensemblepp.text import forward
from ensemblepp.text.embedding import Embedder
from ensemblepp.text.forward import padded

SOURCE = np.random.default_rng(0)
#: Of all lengths that the models take, most of them short, in no order.
LENGTHS = SOURCE.permutation([*range(1, POSITIONS + 1), *SOURCE.integers(1, 40, 80)])
TEXTS = [" ".join(SOURCE.choice(WORDS[2:], length)) for length in LENGTHS]


@pytest.fixture(scope="module", params=MAKES)
def made(request, tmp_path_factory):
    """A model's folder and its pooling."""
    return make(request.param, tmp_path_factory.mktemp("models") / request.param), MAKES[request.param][2]


@pytest.fixture(scope="module")
def embedder(made) -> Embedder:
    return Embedder(*made)


@pytest.fixture(scope="module")
def together(embedder) -> np.ndarray:
    return embedder(TEXTS)


def plainly(folder, pooling: str, text: str) -> np.ndarray:
    """The vector by the model library's plainest use: one text, no padding, no mask."""
    from transformers import AutoModel, AutoTokenizer

    ids = AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        hidden = AutoModel.from_pretrained(folder, dtype=torch.float32).eval()(input_ids=ids).last_hidden_state[0]
    return (hidden[-1] if pooling == "last" else hidden.mean(dim=0)).numpy()


def error(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference of any entry, relative to the norm of its vector."""
    return float(np.max(np.abs(found - expected) / np.linalg.norm(expected, axis=-1, keepdims=True)))


def test_a_vector_is_the_models_own(made, together):
    for place in range(0, len(TEXTS), 11):
        assert error(together[place], plainly(*made, TEXTS[place])) < 1e-5, f"{LENGTHS[place]} words"


def test_alone_and_in_company_to_the_bit(embedder, together):
    """Each in a call of its own, and all in another order and another company."""
    for place in range(0, len(TEXTS), 7):
        assert np.array_equal(embedder([TEXTS[place]])[0], together[place]), f"{LENGTHS[place]} words"
    order = np.random.default_rng(1).permutation(len(TEXTS))
    assert np.array_equal(embedder([TEXTS[place] for place in order]), together[order])
    some = order[: len(order) // 3]
    assert np.array_equal(embedder([TEXTS[place] for place in some]), together[some])


def test_the_number_of_threads_changes_no_bit(made, together):
    before = torch.get_num_threads()
    assert np.array_equal(Embedder(*made, threads=3)(TEXTS), together)
    assert torch.get_num_threads() == before


def test_longer_than_the_model_has_positions(embedder, together):
    """5,000 words are cut to as many as there are positions."""
    words = " ".join(SOURCE.choice(WORDS[2:], 5000))
    first = " ".join(words.split()[:POSITIONS])
    assert np.array_equal(*embedder([words, first]))
    assert np.array_equal(embedder([f"{TEXTS[0]}"])[0], together[0])


def test_bfloat16_differs_by_its_rounding(made, together):
    """Entries have eight bits there; the differences of all layers stay within a few hundredths of a vector."""
    found = Embedder(*made, precision="bfloat16")(TEXTS)
    assert found.dtype == np.float32
    relative = np.linalg.norm(found - together, axis=1) / np.linalg.norm(together, axis=1)
    assert 1e-4 < np.median(relative) < 0.05


def test_batches_have_fixed_shapes(embedder, monkeypatch):
    """Whatever is embedded, a length comes with one number of rows."""
    shapes = set()
    model = embedder._forward._model

    def noting(*, input_ids, attention_mask, **options):
        shapes.add(tuple(input_ids.shape))
        return original(input_ids=input_ids, attention_mask=attention_mask, **options)

    original = model.forward
    monkeypatch.setattr(model, "forward", noting)
    for texts in (TEXTS, TEXTS[:3], TEXTS[50:70]):
        embedder(texts)
    lengths = [length for _, length in shapes]
    assert len(set(lengths)) == len(lengths) > 10
    assert all(rows * length <= forward.BATCH_TOKENS["cpu"] for rows, length in shapes)


def test_little_is_padded():
    lengths = np.array([padded(tokens, 512) for tokens in range(1, 513)])
    assert (lengths >= np.arange(1, 513)).all()
    assert lengths.tolist() == sorted(lengths)
    assert len(set(lengths)) == 8 + 4 + 4 + 4 + 4
    # beyond the shortest, a quarter at most
    assert (lengths[16:] / np.arange(17, 513)).max() < 1.25
    assert padded(500, 500) == padded(499, 500) == 500


@pytest.mark.parametrize("text", ["", "  \n"])
def test_a_text_without_a_token(embedder, text):
    with pytest.raises(DataError, match=r"^text 2 has no token; texts must not be empty$"):
        embedder(["red", "green", text, "blue"])
