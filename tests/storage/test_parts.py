"""Datasets in parts: as those that are written and read whole, with the same seals and faults."""

from __future__ import annotations

import re

import numpy as np
import pytest
import xarray as xr

from ensemblepp.errors import ResultError
from ensemblepp.storage.datasets import open_dataset, read_dataset, write_dataset
from ensemblepp.storage.parts import ROWS, write_in_parts

COUNT = 2 * ROWS + 5
VALUES = np.random.default_rng(0).standard_normal((COUNT, 3)).astype(np.float32)
REST = xr.Dataset({"label": ("post", np.arange(COUNT, dtype=np.int8) % 2)}, {"post": np.arange(COUNT)}, {"source": "invented"})


def parts(sizes=(1, ROWS, 300)):
    """The values in uneven parts."""
    start = 0
    for size in (*sizes, COUNT):
        if start < COUNT:
            yield VALUES[start : start + size]
        start += size


def write(path, made=None):
    write_in_parts(REST, "embedding", ("post", "feature"), parts() if made is None else made, path)


def test_read_whole(tmp_path):
    write(tmp_path / "a.nc")
    found = read_dataset(tmp_path / "a.nc", finite=("embedding",), holds=("label", "source"))
    assert found["embedding"].dims == ("post", "feature")
    assert found["embedding"].dtype == np.float32
    assert found.identical(REST.assign(embedding=(("post", "feature"), VALUES)))


def test_equal_values_in_other_parts_give_equal_bytes(tmp_path):
    write(tmp_path / "a.nc")
    write(tmp_path / "b.nc", parts((ROWS, ROWS)))
    assert (tmp_path / "a.nc").read_bytes() == (tmp_path / "b.nc").read_bytes()


def test_missing_rows_leave_no_file(tmp_path):
    with pytest.raises(ResultError, match=r"a\.nc: what was written could not be read back"):
        write(tmp_path / "a.nc", [VALUES[:7]])
    assert not list(tmp_path.iterdir())


def test_a_fault_of_what_gives_the_parts_leaves_what_was_there(tmp_path):
    write(tmp_path / "a.nc")
    before = (tmp_path / "a.nc").read_bytes()

    def failing():
        yield VALUES[:7]
        raise ResultError("no more")

    with pytest.raises(ResultError, match=r"^no more$"):
        write(tmp_path / "a.nc", failing())
    assert (tmp_path / "a.nc").read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_read_in_parts(tmp_path):
    texts = np.array([f"text {number}" for number in range(COUNT)], object)
    write_dataset(REST.assign(text=("post", texts)), tmp_path / "a.nc")
    with open_dataset(tmp_path / "a.nc", holds=("text", "label")) as stored:
        assert stored["text"][300:302].values.tolist() == ["text 300", "text 301"]
        assert not isinstance(stored["text"].variable._data, np.ndarray), "the others are on the disk"


@pytest.mark.parametrize("spoil", ["missing", "damaged", "other"])
def test_faults_are_those_of_reading_it_whole(tmp_path, spoil):
    path = tmp_path / "a.nc"
    if spoil != "missing":
        write(path)
    if spoil == "damaged":
        content = path.read_bytes()
        path.write_bytes(content[:500] + bytes([content[500] ^ 1]) + content[501:])
    holds = ("text",) if spoil == "other" else ()
    with pytest.raises(ResultError) as whole:
        read_dataset(path, holds=holds)
    with pytest.raises(ResultError, match=f"^{re.escape(str(whole.value))}$"), open_dataset(path, holds=holds):
        pass
