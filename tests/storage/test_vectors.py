"""A store of vectors: what was added is found by later processes, damage is named and costs no more than making anew."""

from __future__ import annotations

import numpy as np
import pytest

from ensemblepp.errors import ResultError
from ensemblepp.storage.leftovers import prefix
from ensemblepp.storage.vectors import VectorStore

KEYS = [bytes([number]) * 32 for number in range(10)]
VECTORS = np.arange(30, dtype=np.float32).reshape(10, 3)


@pytest.fixture
def folder(tmp_path):
    """A store of two files, of four and six vectors."""
    store = VectorStore(tmp_path / "store")
    store.add(KEYS[:4], VECTORS[:4])
    store.add(KEYS[4:], VECTORS[4:])
    return tmp_path / "store"


def files(folder):
    return sorted(folder.glob("*.vectors"))


def test_what_was_added_is_found_in_any_order(folder):
    for store in (VectorStore(folder), VectorStore(folder)):
        assert all(key in store for key in KEYS)
        assert b"\xff" * 32 not in store
        order = [9, 0, 3, 3, 7, 4]
        found = store.take([KEYS[place] for place in order])
        assert found.dtype == np.float32
        assert found.tolist() == VECTORS[order].tolist()


def test_a_store_knows_what_it_adds_itself(tmp_path):
    store = VectorStore(tmp_path)
    assert KEYS[0] not in store
    store.add(KEYS[:2], VECTORS[:2])
    store.add(KEYS[1:3], VECTORS[1:3])
    assert store.take([KEYS[2], KEYS[1]]).tolist() == VECTORS[[2, 1]].tolist()
    assert VectorStore(tmp_path).take([KEYS[1]]).tolist() == VECTORS[1:2].tolist()


def test_equal_content_is_one_file(folder):
    VectorStore(folder).add(KEYS[:4], VECTORS[:4])
    assert len(files(folder)) == 2


def test_keys_that_end_in_zeros(tmp_path):
    key = b"a" + bytes(31)
    VectorStore(tmp_path).add([key], VECTORS[:1])
    assert key in VectorStore(tmp_path)


@pytest.mark.parametrize("damage", ["bit", "cut", "empty", "another kind"])
def test_a_damaged_file_is_named_and_made_anew(folder, capsys, damage):
    path = files(folder)[0]
    content = path.read_bytes()
    if damage == "bit":
        content = content[:200] + bytes([content[200] ^ 4]) + content[201:]
    path.write_bytes({"cut": content[:-70], "empty": b"", "another kind": b"text"}.get(damage, content))
    store = VectorStore(folder)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{path}: ")
    assert line.endswith("; it is removed, and its vectors are made anew")
    assert not path.exists()
    gone = [place for place, key in enumerate(KEYS) if key not in store]
    assert gone in (list(range(4)), list(range(4, 10)))
    store.add([KEYS[place] for place in gone], VECTORS[gone])
    assert VectorStore(folder).take(KEYS).tolist() == VECTORS.tolist()


def test_a_sealed_file_that_is_no_table(folder, capsys):
    from ensemblepp.storage.seals import add_seal

    path = folder / f"{'0' * 32}.vectors"
    for content in (b"nothing of the kind", None):
        if content is None:
            with path.open("wb") as file:
                np.save(file, VECTORS)
        else:
            path.write_bytes(content)
        add_seal(path)
        assert all(key in VectorStore(folder) for key in KEYS)
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"{path}: holds no vectors (")
        assert not path.exists()


def test_what_a_killed_writer_left_is_no_file_of_the_store(folder):
    half = folder / f"{prefix('half')}x.vectors"
    half.write_bytes(b"half of a table")
    store = VectorStore(folder)
    assert half.exists(), "it may be of one that lives"
    assert all(key in store for key in KEYS)
    gone = folder / f"{prefix('gone').rpartition('-')[0]}-1.x.vectors"
    half.rename(gone)
    assert all(key in VectorStore(folder) for key in KEYS)
    assert not gone.exists()


def test_a_file_that_goes_while_it_is_used(folder):
    store = VectorStore(folder)
    files(folder)[0].unlink()
    with pytest.raises(ResultError, match=r"\.vectors: holds no vectors"):
        store.take(KEYS)
