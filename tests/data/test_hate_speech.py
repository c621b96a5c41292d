"""Both raw files of Measuring Hate Speech. No assertion compares texts directly: a failure would print them."""

import csv
import gzip
import hashlib
import io

import numpy as np
import pandas as pd
import pytest

from ensemblepp.data import hate_speech
from ensemblepp.data.hate_speech import HubContent, posts_file, prepare, read, rows_available
from ensemblepp.data.sources import retrieve
from ensemblepp.errors import DataError, UnreachableError
from ensemblepp.storage.datasets import read_dataset

SMALL = HubContent(rows=99, posts=99)
HUB_PATH = "/datasets/ucberkeley-dlab/measuring-hate-speech/resolve/{}/measuring-hate-speech.parquet"


@pytest.fixture
def raw(mirror):
    return mirror / "hatespeech" / "mhs_unique_comments.csv.gz"


@pytest.fixture
def table(mirror):
    """The first 99 rows of the hub's table, with all its columns."""
    return pd.read_csv(mirror / "hatespeech" / "mhs_first99_full.csv")


def parquet(table):
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    return buffer.getvalue()


def made_up(**columns):
    """A small hub table of invented posts."""
    return pd.DataFrame(
        {"comment_id": [7, 3, 7], "hate_speech_score": [0.6, 0.5, 0.6], "text": ["b", "a", "b"], "platform": [0, 1, 0]}
        | columns
    )


def test_mirror_counts(raw):
    posts = read(raw)
    assert (posts.source, posts.label_cut) == ("mirror", 0.0)
    assert len(posts.text) == 15628
    assert np.bincount(posts.label).tolist() == [10008, 5620]
    assert posts.annotations.sum() == 27112
    assert len(set(posts.comment_id.tolist())) == 15628
    lengths = [len(text) for text in posts.text]
    assert (min(lengths), max(lengths)) == (8, 600)


def test_every_prefix_is_a_fair_sample(raw):
    label = read(raw).label
    for size in (500, 2000, 8000):
        share, spread = 5620 / 15628, np.sqrt(0.36 * 0.64 / size)
        assert abs(label[:size].mean() - share) < 3 * spread


def test_order_depends_on_ids_alone():
    ids = np.arange(1000)
    ordered = ids[hate_speech.order(ids)]
    assert sorted(ordered.tolist()) == ids.tolist()
    np.testing.assert_array_equal(ids[::-1][hate_speech.order(ids[::-1])], ordered)
    even = ids[::2]
    np.testing.assert_array_equal(even[hate_speech.order(even)], ordered[ordered % 2 == 0])
    # printf "ensemble++ order of posts $id" | sha256sum, for each id, sorted
    assert ordered[:5].tolist() == [226, 602, 639, 603, 885]


def test_hub_rows_become_posts(tmp_path):
    path = tmp_path / "posts"
    path.write_bytes(parquet(made_up()))
    posts = read(path, hub_content=HubContent(rows=3, posts=2))
    by_id = {
        post: (text, label, count)
        for post, text, label, count in zip(posts.comment_id, posts.text, posts.label, posts.annotations, strict=True)
    }
    assert by_id == {3: ("a", 0, 1), 7: ("b", 1, 2)}  # a score of exactly 0.5 is not hate
    assert (posts.source, posts.label_cut) == ("hub", 0.5)
    assert read(path, threshold=0.4, hub_content=HubContent(3, 2)).label.tolist() == [1, 1]


def test_hub_and_mirror_agree_where_they_share_posts(raw, table, tmp_path):
    path = tmp_path / "posts"
    path.write_bytes(parquet(table))
    hub = read(path, threshold=0.0, hub_content=SMALL)
    mirrored = read(raw)
    rows = {post: row for row, post in enumerate(mirrored.comment_id.tolist())}
    shared = [(row, rows[post]) for row, post in enumerate(hub.comment_id.tolist()) if post in rows]
    assert len(shared) == 38
    assert all(hub.label[here] == mirrored.label[there] for here, there in shared)
    assert sum(hub.text[here] != mirrored.text[there] for here, there in shared) == 0
    assert [there for _, there in shared] == sorted(there for _, there in shared)


def test_hub_label_is_the_score_above_one_half(table, tmp_path):
    path = tmp_path / "posts"
    path.write_bytes(parquet(table))
    assert read(path, hub_content=SMALL).label.sum() == 21


@pytest.mark.parametrize("revision", ["main", "0123456789abcdef0123456789abcdef01234567"])
def test_hub_file_is_retrieved_and_prepared(server, table, tmp_path, revision):
    server.serve(HUB_PATH.format(revision), parquet(table))
    file = posts_file(revision, SMALL)
    assert retrieve(file, tmp_path / "posts") == server.url + HUB_PATH.format(revision)
    prepare([tmp_path / "posts"], tmp_path / "hate_speech.nc", hub_content=SMALL)
    dataset = read_dataset(tmp_path / "hate_speech.nc")
    assert dict(dataset.sizes) == {"post": 99, "class": 2}
    assert (dataset.attrs["source"], dataset.attrs["label_cut"]) == ("hub", 0.5)
    assert int(dataset["label"].sum()) == 21


def test_hub_file_with_other_counts_is_refused(server, table, tmp_path):
    server.serve(HUB_PATH.format(hate_speech.REVISION), parquet(table))
    with pytest.raises(UnreachableError, match=r"posts: number of rows \(expected 135,556, found 99\)"):
        retrieve(hate_speech.RAW[0], tmp_path / "posts")
    assert not (tmp_path / "posts").exists()


@pytest.mark.parametrize(
    ("columns", "counts", "message"),
    [
        ({}, (4, 2), r"number of rows \(expected 4, found 3\)"),
        ({}, (3, 3), r"number of comments \(expected 3, found 2\)"),
        ({"hate_speech_score": [0.6, 0.5, 0.7]}, (3, 2), "comment 7 has 2 scores"),
        (
            {"hate_speech_score": [0.6, None, 0.6]},
            (3, 2),
            r"row 2: wrong hate_speech_score \(expected a value, found none\)",
        ),
        ({"text": ["b", "a", ""]}, (3, 2), r"row 3: wrong text \(expected a value, found none\)"),
    ],
)
def test_damaged_hub_file(tmp_path, columns, counts, message):
    path = tmp_path / "posts"
    path.write_bytes(parquet(made_up(**columns)))
    with pytest.raises(DataError, match=message):
        read(path, hub_content=HubContent(*counts))


def test_an_edited_hub_file_is_refused(tmp_path):
    """Every row is well-formed: only the checksum tells."""
    path = tmp_path / "posts"
    path.write_bytes(parquet(made_up()))
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    assert len(read(path, hub_content=HubContent(3, 2, digest)).text) == 2
    path.write_bytes(parquet(made_up(text=["b", "c", "b"])))
    with pytest.raises(
        DataError, match=rf"not the file of revision 5468f6e.* \(sha256 expected {digest}, found [0-9a-f]{{64}}\)"
    ):
        read(path, hub_content=HubContent(3, 2, digest))


def test_hub_file_without_a_column_or_cut_is_refused(tmp_path):
    path = tmp_path / "posts"
    path.write_bytes(parquet(made_up().drop(columns="hate_speech_score")))
    with pytest.raises(DataError, match="columns hate_speech_score are missing"):
        read(path)
    path.write_bytes(parquet(made_up())[:-9])
    with pytest.raises(DataError, match="not a whole parquet file"):
        read(path)


def test_prepared_file_is_bit_identical(raw, tmp_path):
    outputs = [tmp_path / "first.nc", tmp_path / "second.nc"]
    for output in outputs:
        prepare([raw], output)
    assert outputs[0].read_bytes() == outputs[1].read_bytes()
    dataset = read_dataset(outputs[0])
    posts = read(raw)
    assert sum(kept != text for kept, text in zip(dataset["text"].values, posts.text, strict=True)) == 0
    np.testing.assert_array_equal(dataset["label"], posts.label)
    assert (dataset.attrs["source"], dataset.attrs["label_cut"]) == ("mirror", 0.0)
    assert dataset["class"].values.tolist() == ["free", "hate"]


def with_field(line, field, value):
    """A damage: one field of one line is changed."""

    def damage(rows):
        rows[line - 1][field] = value

    return damage


def relabelled(rows):
    rows[1][2] = "10"[int(rows[1][2])]


def swapped(rows):
    rows[5], rows[6] = rows[6], rows[5]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            with_field(1, 0, "id"),
            r", line 1: wrong header \(expected comment_id,text,label,n_rows, found 4 other fields",
        ),
        (with_field(9, 0, "nine"), ", line 9: wrong comment_id"),
        (with_field(9, 1, ""), r", line 9: wrong text \(expected a text, found none\)"),
        (with_field(9, 2, "2"), r", line 9: wrong label \(expected 0 or 1, found '2'\)"),
        (with_field(9, 3, "0"), r", line 9: wrong n_rows \(expected a whole number from 1, found '0'\)"),
        (lambda rows: rows[8].pop(), r", line 9: wrong number of fields \(expected 4, found 3\)"),
        (lambda rows: rows.insert(9, rows[8]), ", line 10: this comment_id was met before"),
        (
            lambda rows: rows.pop(),
            r", line 15628: the file ends after this line \(expected 15,628 posts, found 15,627\)",
        ),
        (relabelled, r": posts labelled 0 and 1 \(expected \(10008, 5620\), found "),
        (swapped, ": each line is well-formed, but lines were re-ordered or edited"),
    ],
)
def test_damaged_mirror_file(raw, tmp_path, damage, message):
    with gzip.open(raw, "rt", encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    damage(rows)
    damaged = tmp_path / "mhs_unique_comments.csv.gz"
    with gzip.open(damaged, "wt", encoding="utf-8", newline="", compresslevel=1) as file:
        csv.writer(file).writerows(rows)
    with pytest.raises(DataError, match=f"^{damaged}{message}"):
        retrieve(hate_speech.RAW[0], tmp_path / "posts", tmp_path)
    assert not (tmp_path / "posts").exists()


@pytest.mark.parametrize(
    "content", ["cut", b"", b"\x00\x93\xff" * 999, gzip.compress(b"\xff\xfe\n", mtime=0)], ids=["cut", "empty", "bytes", "gzip"]
)
def test_unreadable_file_leaves_the_prepared_file_alone(raw, tmp_path, content):
    damaged = tmp_path / "posts"
    damaged.write_bytes(raw.read_bytes()[:50_000] if content == "cut" else content)
    output = tmp_path / "hate_speech.nc"
    output.write_bytes(b"an earlier one")
    with pytest.raises(DataError, match=f"^{damaged}, "):
        prepare([damaged], output)
    assert output.read_bytes() == b"an earlier one"


def test_rows_available(raw, tmp_path):
    assert rows_available() == rows_available(tmp_path) == 39565
    (tmp_path / raw.name).write_bytes(raw.read_bytes()[:100])
    assert rows_available(tmp_path) == 15628
    (tmp_path / "measuring-hate-speech.parquet").write_bytes(parquet(made_up()))  # the whole set wins over a part
    assert rows_available(tmp_path) == 39565


def test_annotations_repeat_their_posts(raw):
    """27,112 rows in the mirror's file of 15,628 posts; the first n are a fair sample of them."""
    once = read(raw)
    every = hate_speech.repeated(once)
    assert len(every.comment_id) == once.annotations.sum() == rows_available(raw.parent, "annotations") == 27_112
    ids, counts = np.unique(every.comment_id, return_counts=True)
    expected = dict(zip(once.comment_id.tolist(), once.annotations.tolist(), strict=True))
    assert dict(zip(ids.tolist(), counts.tolist(), strict=True)) == expected
    label = dict(zip(once.comment_id.tolist(), once.label.tolist(), strict=True))
    assert every.label.tolist() == [label[post] for post in every.comment_id.tolist()]
    share = every.label.mean()
    assert abs(share - 0.443) < 0.001, "the manifest's share of all rows"
    assert abs(every.label[:3000].mean() - share) < 3 * np.sqrt(share * (1 - share) / 3000)


def test_annotations_in_the_prepared_file(tmp_path):
    path = tmp_path / "posts"
    path.write_bytes(parquet(made_up()))
    prepare([path], tmp_path / "posts.nc", posts="annotations", hub_content=HubContent(3, 2))
    data = read_dataset(tmp_path / "posts.nc")
    assert sorted(data["comment_id"].values.tolist()) == [3, 7, 7]
    assert data.attrs["posts"] == "annotations"


def test_a_threshold_needs_scores(raw):
    with pytest.raises(DataError, match=r"threshold 0\.7 needs the hub's scores \(expected measuring-hate-speech\.parquet,"):
        read(raw, threshold=0.7)
    assert read(raw, threshold=0.0).label_cut == 0.0
