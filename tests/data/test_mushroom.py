"""The real Mushroom file, and what is said of a damaged one."""

import hashlib
import io
import zipfile

import numpy as np
import pytest

from ensemblepp.data import mushroom
from ensemblepp.data.sources import retrieve
from ensemblepp.errors import DataError
from ensemblepp.storage.datasets import read_dataset


@pytest.fixture
def raw(mirror):
    return mirror / "uci" / "agaricus-lepiota.data"


def test_counts_are_those_of_uci(raw):
    parsed = mushroom.parse(raw)
    assert parsed.codes.shape == (8124, 22)
    assert (parsed.codes.dtype, parsed.labels.dtype) == (np.int8, np.int8)
    assert np.bincount(parsed.labels).tolist() == [4208, 3916]
    assert parsed.codes.min(0).tolist() == [0] * 22
    assert (parsed.codes.max(0) + 1).tolist() == [len(seen) for seen in parsed.letters]


def test_values_seen_are_117_with_the_missing_one(raw):
    letters = dict(zip(mushroom.LEGEND, mushroom.parse(raw).letters, strict=True))
    assert sum(map(len, letters.values())) == 117
    assert len("".join(letters.values()).replace("?", "")) == 116
    assert [attribute for attribute, seen in letters.items() if "?" in seen] == ["stalk-root"]
    assert letters["veil-type"] == "p"
    assert sum(map(len, mushroom.LEGEND.values())) == 126


def test_first_row_by_hand(raw):
    parsed = mushroom.parse(raw)
    # p,x,s,n,t,p,f,c,n,k,e,e,s,s,w,w,p,w,o,p,k,s,u
    assert parsed.labels[0] == 1
    words = [
        mushroom.LEGEND[attribute][seen[code]]
        for attribute, seen, code in zip(mushroom.LEGEND, parsed.letters, parsed.codes[0], strict=True)
    ]
    assert words[:6] == ["convex", "smooth", "brown", "bruises", "pungent", "free"]
    assert words[-3:] == ["black", "scattered", "urban"]
    assert parsed.codes[0, :3].tolist() == ["bcfksx".index("x"), "fgsy".index("s"), "bcegnpruwy".index("n")]


def test_missing_stalk_roots_are_a_value_of_their_own(raw):
    parsed = mushroom.parse(raw)
    column = list(mushroom.LEGEND).index("stalk-root")
    assert parsed.letters[column] == "?bcer"
    assert np.count_nonzero(parsed.codes[:, column] == 0) == 2480


def test_prepared_file_holds_the_parsed_one_and_is_bit_identical(raw, tmp_path):
    outputs = [tmp_path / "first.nc", tmp_path / "second.nc"]
    for output in outputs:
        mushroom.prepare([raw], output)
    assert outputs[0].read_bytes() == outputs[1].read_bytes()
    dataset = read_dataset(outputs[0])
    parsed = mushroom.parse(raw)
    np.testing.assert_array_equal(dataset["code"], parsed.codes)
    np.testing.assert_array_equal(dataset["label"], parsed.labels)
    assert dataset["code"].dims == ("row", "attribute")
    assert dataset["attribute"].values[21] == "habitat"
    assert dataset["class"].values.tolist() == ["edible", "poisonous"]
    assert int(dataset["cardinality"].sum()) == 117
    assert dataset["letters"].sel(attribute="stalk-root") == "?bcer"
    assert dataset.attrs["license"] == "CC BY 4.0"
    assert dataset.attrs["sha256"] == hashlib.sha256(raw.read_bytes()).hexdigest()


def edited(number, edit):
    """A damage: `edit` applied to line `number`."""

    def damage(lines):
        return [*lines[: number - 1], edit(lines[number - 1]), *lines[number:]]

    return damage


def swapped(first, second):
    """A damage: two lines change places."""

    def damage(lines):
        lines = lines.copy()
        lines[first - 1], lines[second - 1] = lines[second - 1], lines[first - 1]
        return lines

    return damage


ORDER = "each line is well-formed, but these are not the publisher's lines in the publisher's order"

DAMAGES = {
    "cut inside a line": (
        lambda lines: [*lines[:4000], lines[4000][:20]],
        r"line 4001: the file is cut inside this line \(expected 8,124 whole lines, found '.{20}'\)",
    ),
    "cut after a line": (
        lambda lines: lines[:4000],
        r"line 4000: the file ends after this line \(expected 8,124 lines, found 4,000\)",
    ),
    "no final newline": (
        edited(8124, lambda line: line.rstrip(b"\n")),
        "line 8124: the file is cut inside this line",
    ),
    "header": (
        lambda lines: [b"class,cap-shape\n", *lines],
        r"line 1: wrong number of fields \(expected 23 parted by commas, found 2\)",
    ),
    "Windows line ends": (
        lambda lines: [line.replace(b"\n", b"\r\n") for line in lines],
        r"line 1: unknown habitat in field 23 \(expected one of g l m p u w d, found 'u\\r'\)",
    ),
    "undocumented letter": (
        edited(77, lambda line: line[:10] + b"z" + line[11:]),
        r"line 77: unknown odor in field 6 \(expected one of a l c y f m n p s, found 'z'\)",
    ),
    "missing where none is": (
        edited(77, lambda line: b"e,?" + line[3:]),
        r"line 77: unknown cap-shape in field 2 \(expected one of b c x f k s, found '\?'\)",
    ),
    "unknown class": (
        edited(77, lambda line: b"u" + line[1:]),
        r"line 77: unknown class in field 1 \(expected e or p, found 'u'\)",
    ),
    "field removed": (
        edited(8000, lambda line: line[2:]),
        r"line 8000: wrong number of fields \(expected 23 parted by commas, found 22\)",
    ),
    "lines swapped in a block": (swapped(1203, 1207), f"lines 1201-1300: {ORDER}"),
    "lines swapped across blocks": (swapped(250, 8120), f"lines 201-300: {ORDER}"),
    "class relabelled": (
        edited(8124, lambda line: (b"p" if line[:1] == b"e" else b"e") + line[1:]),
        r"lines 8101-8124: .*; class counts \(expected 4,208 e and 3,916 p, found 4,20[79] e and 3,91[57] p\)",
    ),
    "root made up": (
        edited(8124, lambda line: line.replace(b"?", b"b")),
        r"lines 8101-8124: .*; missing values in stalk-root \(expected 2,480, found 2,479\)",
    ),
    "a line too many": (
        lambda lines: [*lines, lines[-1]],
        "line 8125: the file goes on too long",
    ),
    "empty": (lambda lines: [], r"line 1: the file is empty \(expected 8,124 lines, found none\)"),
    "binary": (lambda lines: [b"\x00\x93\xff" * 999], "line 1: not text"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_file_names_the_line_and_leaves_the_prepared_file_alone(raw, tmp_path, name):
    damage, message = DAMAGES[name]
    damaged = tmp_path / "agaricus-lepiota.data"
    damaged.write_bytes(b"".join(damage(raw.read_bytes().splitlines(keepends=True))))
    output = tmp_path / "prepared" / "mushroom.nc"
    output.parent.mkdir()
    output.write_bytes(b"an earlier one")
    with pytest.raises(DataError, match=f"^{damaged}, {message}"):
        mushroom.prepare([damaged], output)
    assert [path.read_bytes() for path in output.parent.iterdir()] == [b"an earlier one"]


def test_damaged_mirror_file_is_refused_with_its_first_faulty_line(raw, tmp_path):
    (tmp_path / "agaricus-lepiota.data").write_bytes(raw.read_bytes()[:-5])
    with pytest.raises(DataError, match=r"wrong content \(sha256 expected e65d.*line 8124: the file is cut inside"):
        retrieve(mushroom.RAW[0], tmp_path / "raw", tmp_path)
    assert not (tmp_path / "raw").exists()


def test_retrieved_from_the_mirror_and_from_the_archive(mirror, raw, server, tmp_path):
    assert retrieve(mushroom.RAW[0], tmp_path / "raw", mirror) == str(raw)
    assert (tmp_path / "raw").read_bytes() == raw.read_bytes()
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as members:
        members.write(raw, "agaricus-lepiota.data")
    server.serve("/ml/machine-learning-databases/mushroom/agaricus-lepiota.data", status=502)
    server.serve("/static/public/73/mushroom.zip", archive.getvalue())
    assert retrieve(mushroom.RAW[0], tmp_path / "raw") == f"{server.url}/static/public/73/mushroom.zip"
    assert (tmp_path / "raw").read_bytes() == raw.read_bytes()
