"""Files of columns: JSON lines, which tables and posts share with CSV and Parquet, and pandas' index."""

import gzip

import pytest

from ensemblepp.data import columns, table
from ensemblepp.errors import DataError

LINES = '{"a": 1, "b": " x ", "y": true}\n\n{"y": false, "b": null, "c": [1]}\n{"a": 2.5, "y": "no"}\n'


@pytest.mark.parametrize("packed", [False, True])
def test_json_lines_by_hand(tmp_path, packed):
    """Numbers and truth values as JSON writes them, texts without blanks around them, "" where a line has no such name."""
    path = tmp_path / ("mine.jsonl.gz" if packed else "mine.jsonl")
    path.write_bytes(gzip.compress(LINES.encode()) if packed else LINES.encode())
    found = columns.read(path, ["y", "a", "b"], {"y"})
    assert found.columns == {"y": ["true", "false", "no"], "a": ["1", "", "2.5"], "b": ["x", "", ""]}
    assert [found.place(row) for row in range(3)] == ["line 1", "line 3", "line 4"]
    assert columns.header(path) == ["a", "b", "y"]
    assert columns.rows_available(path) == 3


def test_a_table_in_json_lines(tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text(
        "".join(
            f'{{"age": {age}, "colour": "{colour}", "kind": "{colour[0]}"}}\n'
            for age, colour in [(1, "red"), (2, "blue"), (3, "red"), (4, "blue")]
        )
    )
    read = table.read(path, label="kind")
    assert (read.numeric, read.nominal, read.classes) == (("age",), ("colour",), ("b", "r"))
    assert read.values[:, 0].tolist() == [1, 2, 3, 4]


#: content, message after the path
FAULTS = {
    "no name": ('{"b": 1}\n', r", line 1: no column 'a' \(found b\)"),
    "empty": ("", r", line 1: the file is empty \(.*\)"),
    "cut": ('{"a": 1}\n{"a": "secr', r", line 2: not JSON \(Unterminated string starting at\)"),
    "a list": ('{"a": 1}\n[1, 2]\n', r", line 2: not an object \(expected names and values in braces\)"),
    "an object as a value": (
        '{"a": 1}\n{"a": {"secret": 1}}\n',
        r", line 2, column 'a': not a value \(expected a text, a number, true, false or null, found an object\)",
    ),
    "nested": ('{"a": 1}\n' + "[" * 100_000, r", line 2: not JSON \(.*\)"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_exact_line(tmp_path, fault):
    content, message = FAULTS[fault]
    path = tmp_path / "mine.jsonl"
    path.write_text(content)
    with pytest.raises(DataError, match=f"^{path}{message}$") as caught:
        columns.read(path, ["a"], ())
    assert "secret" not in str(caught.value)


def test_a_first_column_without_a_name_is_passed_over(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(",age,kind\n0,5,a\n1,6,b\n2,7,a\n3,8,b\n")
    read = table.read(path, label="kind")
    assert read.numeric == ("age",)
    with pytest.raises(DataError, match=r"line 1: no column 'hue' \(found age, kind\)$"):
        columns.header(path, ["hue"])
