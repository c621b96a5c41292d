"""Lines are read strictly, and blocks of lines are told apart by short digests."""

import hashlib
from pathlib import Path

import pytest

from ensemblepp.data import load
from ensemblepp.data.lines import block_digests, check_blocks, checksum_text, numbered_lines
from ensemblepp.errors import DataError

CHECKSUMS = Path(load("mushroom").__file__).parent / "checksums"


def write(folder: Path, content: bytes) -> Path:
    path = folder / "raw.data"
    path.write_bytes(content)
    return path


def test_lines_are_numbered_from_one(tmp_path):
    assert list(numbered_lines(write(tmp_path, b"a\n\nb c\n"), 3)) == [(1, "a"), (2, ""), (3, "b c")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"line 1: the file is empty \(expected 2 lines, found none\)"),
        (b"a\n", r"line 1: the file ends after this line \(expected 2 lines, found 1\)"),
        (b"a\nb", r"line 2: the file is cut inside this line \(expected 2 whole lines, found 'b'\)"),
        (b"a\nb\nc\n", r"line 3: the file goes on too long \(expected 2 lines, found b'c\\n' after them\)"),
        (b"a\n\xe9\n", r"line 2: not text \(expected ASCII characters only, found byte 0xe9\)"),
    ],
)
def test_faulty_files_name_file_line_expected_and_found(tmp_path, content, message):
    path = write(tmp_path, content)
    with pytest.raises(DataError, match=f"^{path}, {message}$"):
        list(numbered_lines(path, 2))


def test_block_digests_are_those_of_a_hundred_lines_each(tmp_path):
    content = b"".join(b"%d\n" % number for number in range(250))
    blocks = [b"".join(b"%d\n" % number for number in part) for part in (range(100), range(100, 200), range(200, 250))]
    assert block_digests(write(tmp_path, content)) == [hashlib.sha256(block).hexdigest()[:8] for block in blocks]


@pytest.mark.parametrize("name", ["agaricus-lepiota.data", "shuttle.trn", "shuttle.tst"])
def test_kept_checksums_are_those_of_the_real_files(mirror, name):
    assert (CHECKSUMS / f"{name}.txt").read_text() == checksum_text(mirror / "uci" / name)
    check_blocks(mirror / "uci" / name, name)


def test_a_problem_no_block_shows_is_still_an_error(mirror):
    path = mirror / "uci" / "shuttle.tst"
    with pytest.raises(DataError, match=r"shuttle\.tst: too heavy$"):
        check_blocks(path, "shuttle.tst", "too heavy")
