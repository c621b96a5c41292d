"""Davidson et al. and HateCheck, from the mirror's files. No assertion compares texts directly: a failure would print them."""

import gzip
import hashlib

import numpy as np
import pytest

from ensemblepp.data import davidson, hatecheck, load
from ensemblepp.data.sources import retrieve
from ensemblepp.errors import DataError
from ensemblepp.storage.datasets import read_dataset

NAMES = ("davidson", "hatecheck")


@pytest.fixture
def raw(mirror, tmp_path):
    """The raw files, brought here, by data set."""
    files = {}
    for name in NAMES:
        files[name] = tmp_path / f"{name}.csv"
        retrieve(load(name).RAW[0], files[name], mirror)
    return files


def test_a_packed_file_of_the_mirror_is_unpacked_and_verified(mirror, tmp_path, raw):
    for name, path in raw.items():
        assert hashlib.sha256(path.read_bytes()).hexdigest() == load(name).RAW[0].sha256
    folder = tmp_path / "mirror/hatespeech"
    folder.mkdir(parents=True)
    copy = folder / "davidson_labeled_data.csv.gz"
    content = raw["davidson"].read_bytes()
    copy.write_bytes(gzip.compress(content)[:-9])
    with pytest.raises(DataError, match=rf"^{copy}: cannot be unpacked \(.*\)$"):
        retrieve(davidson.RAW[0], tmp_path / "out.csv", tmp_path / "mirror")
    copy.write_bytes(gzip.compress(content.replace(b"\n1,3,0,3,0,1,", b"\n1,3,0,3,0,7,", 1)))
    with pytest.raises(
        DataError, match=rf"^{copy}: wrong content .*; {copy}, line \d+, column 'class': unknown class \(expected"
    ):
        retrieve(davidson.RAW[0], tmp_path / "out.csv", tmp_path / "mirror")
    assert not (tmp_path / "out.csv").exists()


def test_sources_are_fixed_commits():
    for name in NAMES:
        (source,) = load(name).RAW[0].sources
        assert source.url.startswith("{github}/")
        assert len(source.url.split("/")[3]) == 40


@pytest.mark.parametrize(
    ("name", "blocked", "extra", "counts"),
    [
        ("davidson", 20_620, "kind", {0: 1_430, 1: 19_190, 2: 4_163}),
        ("hatecheck", 2_563, "functionality", None),
    ],
)
def test_the_prepared_file(raw, tmp_path, name, blocked, extra, counts):
    load(name).prepare([raw[name]], tmp_path / "posts.nc")
    data = read_dataset(tmp_path / "posts.nc")
    posts = load(name).rows_available()
    assert (data.sizes["post"], int(data["label"].sum()), data["label"].dtype) == (posts, blocked, np.int8)
    assert all(map(str.strip, data["text"].values.tolist()))
    if counts:
        assert dict(zip(*np.unique(data[extra].values, return_counts=True), strict=True)) == counts
        assert np.array_equal(data["label"].values == 0, data[extra].values == 2)
    else:
        assert len(set(data[extra].values.tolist())) == 29
    share, size = blocked / posts, 1000
    assert abs(data["label"].values[:size].mean() - share) < 3 * np.sqrt(share * (1 - share) / size), "a fair sample"


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("davidson", b"\n1,3,0,3,0,1,", b"\n1,3,0,3,0,2,", r"tweets of class 0, 1 and 2 \(expected \(1430, 19190, 4163\)"),
        (
            "hatecheck",
            b",hateful,",
            b",hatefull,",
            r"line \d+, column 'label_gold': unknown label \(expected non-hateful or hateful",
        ),
        ("hatecheck", b",hateful,", b",non-hateful,", r"number of cases \(expected"),
    ],
)
def test_an_edited_file_is_refused(raw, name, old, new, message):
    raw[name].write_bytes(raw[name].read_bytes().replace(old, new, 1))
    with pytest.raises(DataError, match=message) as caught:
        load(name).read(raw[name])
    assert len(str(caught.value)) < 300, "no text is quoted"


def test_the_order_is_fixed(raw):
    """By the cases' numbers, as `posts.order` puts them: moved rows change nothing."""
    lines = raw["hatecheck"].read_bytes().splitlines()
    before = hatecheck.read(raw["hatecheck"])
    raw["hatecheck"].write_bytes(b"\n".join([lines[0], *lines[:0:-1]]))
    after = hatecheck.read(raw["hatecheck"])
    assert all(np.array_equal(left, right) for left, right in zip(before, after, strict=True))
