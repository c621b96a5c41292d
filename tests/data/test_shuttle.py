"""The real Shuttle files, and what is said of a damaged one."""

import io
import zipfile

import numpy as np
import pytest

from ensemblepp.data import shuttle
from ensemblepp.data.sources import retrieve
from ensemblepp.errors import DataError
from ensemblepp.storage.datasets import read_dataset


@pytest.fixture
def raw(mirror):
    return [mirror / "uci" / "shuttle.trn", mirror / "uci" / "shuttle.tst"]


def test_counts_are_those_of_uci(raw):
    training, test = (shuttle.parse(path, path.name) for path in raw)
    assert training.values.shape == (43500, 9)
    assert test.values.shape == (14500, 9)
    assert (training.values.dtype, training.labels.dtype) == (np.int32, np.int8)
    total = np.bincount(training.labels) + np.bincount(test.labels)
    assert total.tolist() == [45586, 50, 171, 8903, 3267, 10, 13]
    assert total.sum() == shuttle.ROWS == 58000


def test_first_rows_by_hand(raw):
    training, test = (shuttle.parse(path, path.name) for path in raw)
    assert training.values[0].tolist() == [50, 21, 77, 0, 28, 0, 27, 48, 22]
    assert training.labels[:2].tolist() == [1, 3]
    assert test.values[0].tolist() == [55, 0, 81, 0, -6, 11, 25, 88, 64]
    assert test.labels[0] == 3


def test_prepared_file_holds_training_then_test_rows_and_is_bit_identical(raw, tmp_path):
    outputs = [tmp_path / "first.nc", tmp_path / "second.nc"]
    for output in outputs:
        shuttle.prepare(raw, output)
    assert outputs[0].read_bytes() == outputs[1].read_bytes()
    dataset = read_dataset(outputs[0])
    parts = [shuttle.parse(path, path.name) for path in raw]
    np.testing.assert_array_equal(dataset["value"], np.concatenate([part.values for part in parts]))
    np.testing.assert_array_equal(dataset["label"], np.concatenate([part.labels for part in parts]))
    assert dataset["value"].dims == ("row", "attribute")
    assert dataset["value"].values[43500].tolist() == [55, 0, 81, 0, -6, 11, 25, 88, 64]
    assert dataset["class"].values[0] == "Rad Flow"


def replaced(number, line):
    return lambda lines: [*lines[: number - 1], line, *lines[number:]]


ORDER = "each line is well-formed, but these are not the publisher's lines in the publisher's order"

DAMAGES = {
    "cut inside a line": (
        lambda lines: [*lines[:9], lines[9][:-4]],
        r"line 10: the file is cut inside this line \(expected 14,500 whole lines, found '",
    ),
    "cut after a line": (
        lambda lines: lines[:-1],
        r"line 14499: the file ends after this line \(expected 14,500 lines, found 14,499\)",
    ),
    "tabs": (
        lambda lines: [line.replace(b" ", b"\t") for line in lines],
        r"line 1: wrong number of fields \(expected 10 parted by one space, found 1\)",
    ),
    "field removed": (
        replaced(12000, b"1 2 3 4 5 6 7 8 1\n"),
        r"line 12000: wrong number of fields \(expected 10 parted by one space, found 9\)",
    ),
    "not an integer": (
        replaced(5, b"1 2 3 4.5 5 6 7 8 9 1\n"),
        r"line 5: not a number in field 4 \(expected an integer of at most 8 digits, found '4\.5'\)",
    ),
    "too large": (
        replaced(5, b"1 2 3 4 5 6 7 8 9999999999 1\n"),
        r"line 5: not a number in field 9 \(expected an integer of at most 8 digits, found '9999999999'\)",
    ),
    "unknown class": (
        replaced(5, b"1 2 3 4 5 6 7 8 9 8\n"),
        r"line 5: unknown class in field 10 \(expected 1 to 7, found 8\)",
    ),
    "value edited": (lambda lines: [lines[0].replace(b"81", b"82"), *lines[1:]], f"lines 1-100: {ORDER}"),
    "lines swapped in a block": (
        lambda lines: [*lines[:1200], lines[1201], lines[1200], *lines[1202:]],
        f"lines 1201-1300: {ORDER}",
    ),
    "lines moved across blocks": (lambda lines: [*lines[:14450], *lines[:50]][::-1][:14500], f"lines 1-100: {ORDER}"),
    "class relabelled": (
        lambda lines: [lines[0][:-2] + b"1\n", *lines[1:]],
        r"lines 1-100: .*; class counts \(expected 11,478 13 39 2,155 809 4 2, found 11,479 13 39 2,154 809 4 2\)",
    ),
    "empty": (lambda lines: [], r"line 1: the file is empty \(expected 14,500 lines, found none\)"),
    "still packed": (lambda lines: [b"\x1f\x9d\x90" * 99], "line 1: not text"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_file_names_the_line_and_leaves_the_prepared_file_alone(raw, tmp_path, name):
    damage, message = DAMAGES[name]
    damaged = tmp_path / "shuttle.tst"
    damaged.write_bytes(b"".join(damage(raw[1].read_bytes().splitlines(keepends=True))))
    output = tmp_path / "prepared" / "shuttle.nc"
    output.parent.mkdir()
    output.write_bytes(b"an earlier one")
    with pytest.raises(DataError, match=f"^{damaged}, {message}"):
        shuttle.prepare([raw[0], damaged], output)
    assert [path.read_bytes() for path in output.parent.iterdir()] == [b"an earlier one"]


def test_training_and_test_file_are_not_taken_for_each_other(raw, tmp_path):
    with pytest.raises(DataError, match=r"shuttle\.tst, line 14500: the file ends after this line"):
        shuttle.prepare(raw[::-1], tmp_path / "shuttle.nc")


def test_retrieved_from_the_packed_file_and_from_the_archive(raw, server, tmp_path, compress):
    packed = compress(raw[0].read_bytes())
    folder = "/ml/machine-learning-databases/statlog/shuttle"
    server.serve(f"{folder}/shuttle.trn.Z", packed)
    assert retrieve(shuttle.RAW[0], tmp_path / "trn") == f"{server.url}{folder}/shuttle.trn.Z"
    assert (tmp_path / "trn").read_bytes() == raw[0].read_bytes()

    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as members:
        members.writestr("shuttle.trn.Z", packed)
        members.write(raw[1], "shuttle.tst")
    server.serve(f"{folder}/shuttle.trn.Z", packed[:-9])
    server.serve("/static/public/148/statlog+shuttle.zip", archive.getvalue())
    for file, path in zip(shuttle.RAW, raw, strict=True):
        assert retrieve(file, tmp_path / path.name) == f"{server.url}/static/public/148/statlog+shuttle.zip"
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()
