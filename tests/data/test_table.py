"""Tables of the user's: how columns become numbers and codes, and the one line that every fault gives."""

import gzip
import json

import numpy as np
import pandas as pd
import pytest

from ensemblepp.data import columns, table
from ensemblepp.environments.classification import Classification
from ensemblepp.errors import DataError
from ensemblepp.storage.datasets import read_dataset

#: Two numeric columns, a text column, codes that look like numbers, and three classes.
CSV = """age,colour,score,zip,kind
1, red ,0.5,10,b
2,blue,-1e2,9,a
3,red,.25,10,c
4,"green, dark",4,9,a
5,blue,0,100,b
6,red,7,10,c
"""


def write(folder, text: str = CSV, name: str = "mine.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


# ---------------------------------------------------------------------------------------------------- what is read


def test_columns_by_hand(tmp_path):
    """Numbers stay; texts are coded in their order, without the blanks around them; declared codes in the order of numbers."""
    read = table.read(write(tmp_path), label="kind", nominal=["zip"])
    assert read.numeric == ("age", "score")
    assert read.values.tolist() == [[1, 0.5], [2, -100], [3, 0.25], [4, 4], [5, 0], [6, 7]]
    assert read.nominal == ("colour", "zip")
    assert read.categories == (("blue", "green, dark", "red"), ("9", "10", "100"))
    assert read.codes.tolist() == [[2, 1], [0, 0], [2, 1], [1, 0], [0, 2], [2, 1]]
    assert read.classes == ("a", "b", "c")
    assert read.labels.tolist() == [1, 0, 2, 0, 1, 2]


def test_features_are_those_that_are_named(tmp_path):
    """In the file's order."""
    read = table.read(write(tmp_path), label="kind", features=["zip", "age"])
    assert read.numeric == ("age", "zip")
    assert read.codes.shape == (6, 0)


def test_numbers_as_labels_are_in_the_order_of_numbers(tmp_path):
    read = table.read(write(tmp_path), label="zip", features=["age"])
    assert read.classes == ("9", "10", "100")


@pytest.mark.parametrize("packed", [False, True])
def test_other_files_of_the_same_table(tmp_path, packed):
    """Byte order mark, carriage returns, empty lines, a line break in quotes, no last line break; packed or not."""
    text = '\ufeffage,note,kind\r\n1,"two\r\nlines",b\r\n\r\n2,x,a\r\n3,x,b\r\n4,x,a'
    path = tmp_path / ("mine.csv.gz" if packed else "mine.csv")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    read = table.read(path, label="kind")
    assert read.numeric == ("age",)
    assert read.values[:, 0].tolist() == [1, 2, 3, 4]
    assert read.classes == ("a", "b")


def test_parquet_is_the_same_table(tmp_path):
    """Whole numbers, floats, texts, truth values and pandas categories."""
    frame = pd.read_csv(write(tmp_path), skipinitialspace=True)
    frame["kind"] = frame["kind"].astype("category")
    frame["big"] = [True, False, True, True, False, False]
    frame.to_parquet(tmp_path / "mine.parquet")
    path = tmp_path / "mine.parquet"
    read, expected = (
        table.read(path, label="kind", nominal=["zip"]),
        table.read(tmp_path / "mine.csv", label="kind", nominal=["zip"]),
    )
    assert (read.numeric, read.classes) == (expected.numeric, expected.classes)
    assert np.array_equal(read.values, expected.values)
    assert read.nominal == ("colour", "zip", "big")
    assert np.array_equal(read.codes[:, :2], expected.codes)
    assert read.categories == (*expected.categories, ("False", "True"))
    assert np.array_equal(read.labels, expected.labels)
    assert columns.rows_available(path) == 6


def test_rows_are_counted_without_reading(tmp_path):
    """Header and empty lines are none; an edited file is counted anew."""
    path = write(tmp_path, "a,b\n1,2\n\n3,4\n5,6")
    assert columns.rows_available(path) == 3
    write(tmp_path, "a,b\n1,2\n")
    assert columns.rows_available(path) == 1


def test_missing_values_may_be_a_category(tmp_path):
    path = write(tmp_path, "colour,kind\nred,a\n,b\nred,a\n ,b\n")
    read = table.read(path, label="kind", missing="category")
    assert read.categories == (("", "red"),)
    assert read.codes[:, 0].tolist() == [1, 0, 1, 0]


# ---------------------------------------------------------------------------------------------------------- faults

#: content, options, message after the path
FAULTS = {
    "empty": ("", {}, r", line 1: the file is empty \(expected a line of column names, found none\)"),
    "only a header": ("a,y\n", {}, r": no rows \(expected rows after the column names, found none\)"),
    "no label column": ("a,b\n1,2\n", {}, r", line 1: no column 'y' \(found a, b\)"),
    "no feature column": ("a,y\n1,2\n", {"features": ["b"]}, r", line 1: no column 'b' \(found a, y\)"),
    "no nominal column": ("a,y\n1,2\n", {"nominal": ["c"]}, r", line 1: no column 'c' \(found a, y\)"),
    "semicolons": ("a;y\n1;2\n", {}, r", line 1: no column 'y' \(found a;y\)"),
    "same names": (
        "a,y,a\n1,2,3\n",
        {},
        r", line 1: two columns have one name \(expected different names, found 'a' at places 1 and 3\)",
    ),
    "no name": ("a,,y\n1,2,3\n", {}, r", line 1: column 2 has no name \(expected a name for every column\)"),
    "label alone": ("y\n1\n2\n1\n2\n", {}, r": no column but the label 'y' \(expected at least one feature\)"),
    "short line": ("a,y\n1,2\n3\n", {}, r", line 3: wrong number of fields \(expected 2, as in line 1, found 1\)"),
    "long line": ("a,y\n1,2\n\n3,4,5\n", {}, r", line 4: wrong number of fields \(expected 2, as in line 1, found 3\)"),
    "open quote": ('a,y\n1,"2\n', {}, r", line 2: not CSV \(unexpected end of data\)"),
    "no label": ("a,y\n1,2\n3, \n", {}, r", line 3, column 'y': no label \(expected a class, found none\)"),
    "one class": ("a,y\n1,u\n2,u\n", {}, r", column 'y': one class only \(expected two or more, found 'u' in all rows\)"),
    "a class a row": (
        "a,y\n1,u\n2,v\n3,w\n4,v\n",
        {},
        r", column 'y': not a column of classes \(expected two rows or more for a class, found 3 values in 4 rows\)",
    ),
    "text": (
        "a,y\n1,u\n?,u\n2,v\n3,v\n",
        {},
        r", line 3, column 'a': not a number \(expected a number, or the column under `nominal`, found '\?'\)",
    ),
    "text after a line break": (
        'n,a,y\n"x\nx",1,u\nx,two,u\nx,2,v\nx,3,v\n',
        {},
        r", line 4, column 'a': not a number \(expected a number, or the column under `nominal`, found 'two'\)",
    ),
    "nan": (
        "a,y\n1,u\nNaN,u\n2,v\n3,v\n",
        {},
        r", line 3, column 'a': not a number \(expected a number, or the column under `nominal`, found 'NaN'\)",
    ),
    "infinite": ("a,y\n1,u\n2,u\n1e999,v\n3,v\n", {}, r", line 4, column 'a': not a finite number \(.*, found '1e999'\)"),
    "no number": ("a,y\n1,u\n2,u\n,v\n3,v\n", {}, r", line 4, column 'a': no value \(expected a number, found none\)"),
    "no number, though texts may miss": (
        "a,y\n1,u\n2,u\n,v\n3,v\n",
        {"missing": "category"},
        r", line 4, column 'a': no value \(expected a number, found none\)",
    ),
    "no text": (
        "a,y\np,u\n,u\nq,v\nq,v\n",
        {},
        r", line 3, column 'a': no value \(expected one, or `missing: category`, found none\)",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_one_exact_line(tmp_path, fault):
    content, options, message = FAULTS[fault]
    path = write(tmp_path, content)
    with pytest.raises(DataError, match=f"^{path}{message}$") as caught:
        table.read(path, label="y", **options)
    assert "\n" not in str(caught.value)


def test_files_that_are_none(tmp_path):
    with pytest.raises(DataError, match=r"no\.csv: no such file$"):
        table.read(tmp_path / "no.csv", label="y")
    latin = tmp_path / "latin.csv"
    latin.write_bytes(b"a,y\n1,caf\xe9\n")
    with pytest.raises(DataError, match=r"latin\.csv, line 2: not text \(expected UTF-8, found byte 0xe9\)$"):
        table.read(latin, label="y")
    packed = tmp_path / "cut.csv.gz"
    packed.write_bytes(gzip.compress(b"a,y\n" + b"1,u\n2,v\n" * 9999)[:-20])
    with pytest.raises(DataError, match=r"cut\.csv\.gz, after line \d+: the file cannot be read on \(.*end-of-stream.*\)$"):
        table.read(packed, label="y")
    parquet = tmp_path / "bad.parquet"
    parquet.write_bytes(b"PAR1 and no more")
    with pytest.raises(DataError, match=r"bad\.parquet: not a whole Parquet file"):
        table.read(parquet, label="y")


def test_faults_in_parquet_name_the_row(tmp_path):
    path = tmp_path / "mine.parquet"
    frame = pd.DataFrame({"a": [1.0, 2.0, np.nan, 4.0], "b": ["x", None, "y", "z"], "y": ["u", "v", "u", None]})
    frame["when"] = pd.Timestamp("2024-01-01")
    frame.to_parquet(path)

    def fault(**options) -> str:
        with pytest.raises(DataError) as caught:
            table.read(path, **options)
        return str(caught.value).removeprefix(str(path))

    assert fault(label="y", features=["a"]) == ", row 4, column 'y': no label (expected a class, found none)"
    frame["y"] = list("uvuv")
    frame.to_parquet(path)
    assert fault(label="y", features=["a"]) == ", row 3, column 'a': no value (expected a number, found none)"
    assert (
        fault(label="y", features=["b"]) == ", row 2, column 'b': no value (expected one, or `missing: category`, found none)"
    )
    assert fault(label="y", features=["when"]).startswith(", column 'when': unknown type (expected numbers, texts or true and")
    assert fault(label="z") == ", columns: no column 'z' (found a, b, y, when)"


# -------------------------------------------------------------------------------------------------- prepared and played


def test_the_prepared_file(tmp_path):
    path, output = write(tmp_path), tmp_path / "mine.nc"
    table.prepare([path], output, label="kind", nominal=["zip"])
    data = read_dataset(output)
    assert data["value"].dims == ("row", "attribute")
    assert data["attribute"].values.tolist() == ["age", "score"]
    assert data["code"].dims == ("row", "nominal")
    assert data["cardinality"].values.tolist() == [3, 3]
    assert json.loads(data["categories"].sel(nominal="colour").item()) == ["blue", "green, dark", "red"]
    assert data["class"].values.tolist() == ["a", "b", "c"]
    assert data["label"].values.tolist() == [1, 0, 2, 0, 1, 2]
    first = output.read_bytes()
    table.prepare([path], output, label="kind", nominal=["zip"])
    assert output.read_bytes() == first


def contexts(folder, **options) -> np.ndarray:
    """The contexts of a bandit on the prepared table, (row, width)."""
    table.prepare([folder / "mine.csv"], folder / "mine.nc", label="kind", features=["age", "colour"])
    settings = {"coding": "onehot", "scaling": "none", "noise": 0.0, "passes": 1} | options
    environment = Classification((0,), inputs={"data": folder / "mine.nc"}, **settings)
    assert environment.fixed_actions == 3
    assert environment.means.reshape(6, 3).argmax(axis=1).tolist() == [1, 0, 2, 0, 1, 2]
    return environment.table[0]


def test_numbers_and_codes_side_by_side(tmp_path):
    """The number first, then the indicators of blue, "green, dark" and red; or the code."""
    write(tmp_path)
    assert contexts(tmp_path).tolist() == [[1, 0, 0, 1], [2, 1, 0, 0], [3, 0, 0, 1], [4, 0, 1, 0], [5, 1, 0, 0], [6, 0, 0, 1]]
    assert contexts(tmp_path, coding="ordinal").tolist() == [[1, 2], [2, 0], [3, 2], [4, 1], [5, 0], [6, 2]]


def test_scaling_by_hand(tmp_path):
    """Row (3, 0, 0, 1) has norm sqrt(10). Ages 1 to 6 have mean 3.5 and variance 35/12; indicators stay, codes do not."""
    write(tmp_path)
    np.testing.assert_allclose(contexts(tmp_path, scaling="unit")[2], np.array([3, 0, 0, 1]) / 10**0.5, rtol=1e-6)
    standard = contexts(tmp_path, scaling="standardise")
    np.testing.assert_allclose(standard[:, 0], (np.arange(1, 7) - 3.5) / (35 / 12) ** 0.5, rtol=1e-6)
    assert standard[:, 1:].tolist() == contexts(tmp_path)[:, 1:].tolist()
    codes = contexts(tmp_path, coding="ordinal", scaling="standardise")
    np.testing.assert_allclose(codes.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(codes.std(axis=0), 1, rtol=1e-6)
    write(tmp_path, CSV.replace("red", "blue").replace('"green, dark"', "blue"))
    assert contexts(tmp_path, coding="ordinal", scaling="standardise")[:, 1].tolist() == [0] * 6
