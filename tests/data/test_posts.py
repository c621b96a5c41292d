"""Files of posts: labels, scores and duplicates by hand, and the one line that every fault gives, which quotes no text."""

import json

import numpy as np
import pandas as pd
import pytest

from ensemblepp.data import posts
from ensemblepp.errors import DataError
from ensemblepp.storage.datasets import read_dataset

#: Nine rows: "b" is there three times with both labels, "c" twice.
ROWS = [("a", "yes"), ("b", "no"), ("c", "No"), ("b", "yes"), ("d", "no"), ("b", "yes"), ("c", "no"), ("e", "YES"), ("f", "no")]
BY_TEXT = {"a": 1, "b": 1, "c": 0, "d": 0, "e": 1, "f": 0}


def write(folder, rows=ROWS, name: str = "mine.csv"):
    """The rows as a file, of the format that its name says."""
    path = folder / name
    frame = pd.DataFrame(rows, columns=["text", "label"])
    if name.endswith(".parquet"):
        frame.to_parquet(path)
    elif name.endswith(".jsonl"):
        path.write_text("".join(json.dumps({"text": text, "label": label}) + "\n\n" for text, label in rows), encoding="utf-8")
    else:
        frame.to_csv(path)  # pandas' index is a first column without a name
    return path


def read(path, **options) -> posts.Posts:
    return posts.read(path, text="text", label="label", **options)


def labels(found: posts.Posts) -> dict[str, int]:
    return dict(zip(found.text.tolist(), found.label.tolist(), strict=True))


@pytest.mark.parametrize("name", ["mine.csv", "mine.parquet", "mine.jsonl"])
def test_duplicates_become_one_post_by_their_more_frequent_label(tmp_path, name):
    found = read(write(tmp_path, name=name))
    assert labels(found) == BY_TEXT
    assert (found.rows, found.merged, found.contradicted) == (9, 3, 1)
    assert found.label.dtype == np.int8


def test_a_tie_is_not_blocked(tmp_path):
    assert labels(read(write(tmp_path, [("a", 1), ("a", 0), ("b", 1)]))) == {"a": 0, "b": 1}


def test_duplicates_stay_where_they_shall(tmp_path):
    found = read(write(tmp_path), duplicates="keep")
    assert (len(found.text), found.merged, found.contradicted) == (9, 0, 0)
    assert sorted(zip(found.text.tolist(), found.label.tolist(), strict=True)) == sorted(
        (text, int(label.lower() == "yes")) for text, label in ROWS
    )


@pytest.mark.parametrize("words", [("yes", "no"), ("True", "FALSE"), (1, 0), (1.0, 0.0), (True, False)])
@pytest.mark.parametrize("name", ["mine.csv", "mine.parquet", "mine.jsonl"])
def test_words_of_labels(tmp_path, words, name):
    rows = [(text, words[0] if label else words[1]) for text, label in BY_TEXT.items()]
    assert labels(read(write(tmp_path, rows, name))) == BY_TEXT


def test_scores_are_cut_above_the_threshold_and_those_of_one_text_by_their_mean(tmp_path):
    """a: 0.5 is not above 0.5; b: (0.9 + 0.3) / 2 = 0.6 is, though one of its two rows is not."""
    rows = [("a", 0.5), ("b", 0.9), ("c", -2), ("b", 0.3)]
    found = read(write(tmp_path, rows), threshold=0.5)
    assert labels(found) == {"a": 0, "b": 1, "c": 0}
    assert (found.merged, found.contradicted) == (1, 1)
    assert labels(read(write(tmp_path, rows), threshold=0.4)) == {"a": 1, "b": 1, "c": 0}


def test_the_order_is_that_of_the_texts_whatever_the_order_of_the_rows(tmp_path):
    found = read(write(tmp_path))
    assert read(write(tmp_path, ROWS[::-1])).text.tolist() == found.text.tolist()
    assert found.text.tolist() != sorted(found.text.tolist()), "sorted posts would be no fair sample"
    kept = read(write(tmp_path), duplicates="keep")
    first = [text for row, text in enumerate(kept.text.tolist()) if text not in kept.text[:row].tolist()]
    assert sorted(first) == sorted(found.text.tolist())


SECRET = "a text that must never be quoted"

#: rows, options, message after the path
FAULTS = {
    "no label": (
        [(SECRET, ""), ("b", "yes")],
        {},
        r", line 2, column 'label': no label \(expected yes or no, .*, found none\)",
    ),
    "another word": (
        [("b", "yes"), (SECRET, "maybe")],
        {},
        r", line 3, column 'label': not a label \(expected .*, found 'maybe'\)",
    ),
    "a text as a label": ([("b", SECRET)], {}, r", line 2, column 'label': not a label \(expected .*, found 32 characters\)"),
    "a score without a threshold": (
        [("b", 0.7)],
        {},
        r", line 2, column 'label': not a label \(.* set `threshold`, found '0.7'\)",
    ),
    "no score": (
        [("b", None), ("c", 1)],
        {"threshold": 0.5},
        r", line 2, column 'label': no score \(expected a finite number, found none\)",
    ),
    "not a number": ([("b", "high")], {"threshold": 0.5}, r", line 2, column 'label': not a score \(.*, found 'high'\)"),
    "infinite": ([("b", "inf")], {"threshold": 0.5}, r", line 2, column 'label': not a score \(.*, found 'inf'\)"),
    "an empty text": ([("b", 1), (" ", 0)], {}, r", line 3, column 'text': an empty text \(expected a post, found none\)"),
    "a constant label": (
        [(SECRET, 1), ("b", 1)],
        {},
        r", column 'label': one class only \(expected posts to block and others, found 2 hate ones\)",
    ),
    "scores on one side": (
        [(SECRET, 0.1), ("b", 0.2)],
        {"threshold": 0.5},
        r", column 'label': one class only \(expected posts to block and others, found 2 free ones\)",
    ),
    "no rows": ([], {}, r": no rows \(expected a post a row, found none\)"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_exact_line_without_a_text(tmp_path, fault):
    rows, options, message = FAULTS[fault]
    path = write(tmp_path, rows)
    with pytest.raises(DataError, match=f"^{path}{message}$") as caught:
        read(path, **options)
    assert SECRET not in str(caught.value)


def test_files_that_are_none(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("text,hate\na,1\n")
    with pytest.raises(DataError, match=r"mine\.csv, line 1: no column 'label' \(found text, hate\)$"):
        read(path)
    path.write_bytes(b"text,label\na,1\ncaf\xe9,0\n")
    with pytest.raises(DataError, match=r"mine\.csv, line 3: not text \(expected UTF-8, found byte 0xe9\)$"):
        read(path)


def test_the_prepared_file_and_what_is_said_of_it(tmp_path):
    said = posts.prepare([write(tmp_path)], tmp_path / "mine.nc", text="text", label="label")
    assert said == f"{tmp_path / 'mine.csv'}: 6 posts of 9 rows, 3 to be blocked; 3 duplicates merged, 1 posts with both labels"
    data = read_dataset(tmp_path / "mine.nc")
    assert data["label"].dtype == np.int8
    assert dict(zip(data["text"].values.tolist(), data["label"].values.tolist(), strict=True)) == BY_TEXT
    assert (data.attrs["source"], int(data.attrs["merged"]), int(data.attrs["contradicted"])) == ("mine.csv", 3, 1)
