"""Results on disk: a file under its final name is whole, whatever happens to its writer; a damaged one is refused by name."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import netCDF4
import numpy as np
import pytest
import xarray as xr

from ensemblepp.errors import ResultError
from ensemblepp.storage.datasets import atomic_path, read_dataset, read_json, write_dataset, write_json
from ensemblepp.storage.seals import add_seal


def dataset(value: float = 1.0) -> xr.Dataset:
    """Numbers, texts and attributes of every kind that is stored."""
    return xr.Dataset(
        {
            "regret": (("seed", "time"), np.array([[0.5, value], [0.25, 3.0]], np.float32), {"long_name": "regret"}),
            "action": (("seed", "time"), np.array([[1, 2], [3, 4]], np.int32)),
            "text": ("seed", np.array(["a", "böse ✓"], object)),
            "total": ((), 2.5),
        },
        {"seed": [3, 7], "time": [1, 2], "title": ("seed", ["first", "second"])},
        {"spec": '{"a": true}', "horizon": 2, "share": 0.5},
    )


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# ---------------------------------------------------------------------------------------------- writing and reading


def test_what_is_read_is_what_was_written(tmp_path):
    path = tmp_path / "new" / "folder" / "run.nc"
    write_dataset(dataset(), path)
    assert read_dataset(path, finite=("regret", "total")).identical(dataset())
    assert names(path.parent) == ["run.nc"]


def test_writing_leaves_the_dataset_as_it_was(tmp_path):
    given = dataset()
    write_dataset(given, tmp_path / "run.nc")
    assert given.identical(dataset())
    assert given["regret"].encoding == {}


def test_equal_datasets_give_equal_bytes(tmp_path):
    write_dataset(dataset(), tmp_path / "a.nc")
    write_dataset(dataset(), tmp_path / "other_name.nc")
    write_dataset(dataset(2.0), tmp_path / "different.nc")
    content = {path.stem: path.read_bytes() for path in tmp_path.iterdir()}
    assert content["a"] == content["other_name"]
    assert content["a"] != content["different"]


def test_equal_bytes_in_another_process_at_another_time(tmp_path):
    script = "import sys; sys.path.insert(0, sys.argv[1]); import test_datasets as t; t.write_dataset(t.dataset(), sys.argv[2])"
    write_dataset(dataset(), tmp_path / "here.nc")
    subprocess.run([sys.executable, "-c", script, str(Path(__file__).parent), str(tmp_path / "there.nc")], check=True)
    assert (tmp_path / "there.nc").read_bytes() == (tmp_path / "here.nc").read_bytes()


def test_numbers_are_compressed(tmp_path):
    write_dataset(xr.Dataset({"zeros": ("x", np.zeros(1_000_000))}), tmp_path / "zeros.nc")
    assert (tmp_path / "zeros.nc").stat().st_size < 100_000


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600), (0o002, 0o664)])
def test_permissions_follow_the_umask(tmp_path, mask, mode):
    before = os.umask(mask)
    try:
        write_dataset(dataset(), tmp_path / "run.nc")
        write_json({}, tmp_path / "run.json")
        assert os.umask(mask) == mask, "the umask itself must stay"
    finally:
        os.umask(before)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {mode}


def test_json_has_sorted_keys_and_keeps_letters(tmp_path):
    write_json({"b": [1, 2.5], "a": "müde"}, tmp_path / "new" / "a.json")
    text = (tmp_path / "new/a.json").read_text(encoding="utf-8")
    text = re.sub("[0-9a-f]{64}", "checksum of the rest", text)
    assert text == '{\n  "a": "müde",\n  "b": [\n    1,\n    2.5\n  ],\n  "sha256": "checksum of the rest"\n}\n'
    assert read_json(tmp_path / "new" / "a.json") == {"b": [1, 2.5], "a": "müde"}
    assert names(tmp_path / "new") == ["a.json"]


# ------------------------------------------------------------------------------------------------------ failed writes


def test_a_failed_write_keeps_the_old_file_and_leaves_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "run.nc"
    write_dataset(dataset(), path)
    before = path.read_bytes()

    def half(self, target, **_):
        Path(target).write_bytes(before[: len(before) // 2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(xr.Dataset, "to_netcdf", half)
    with pytest.raises((OSError, ResultError), match="No space left on device"):
        write_dataset(dataset(2.0), path)
    assert path.read_bytes() == before
    assert names(tmp_path) == ["run.nc"]


def test_what_reads_back_differently_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "run.nc"
    write_dataset(dataset(), path)
    before = path.read_bytes()
    write = xr.Dataset.to_netcdf
    monkeypatch.setattr(xr.Dataset, "to_netcdf", lambda self, *to, **how: write(self.assign(total=9.0), *to, **how))
    with pytest.raises(ResultError) as error:
        write_dataset(dataset(), path)
    assert str(error.value) == f"{path}: what was written could not be read back; is the disk full?"
    assert path.read_bytes() == before
    assert names(tmp_path) == ["run.nc"]


def test_a_failed_json_keeps_the_old_file(tmp_path):
    path = tmp_path / "a.json"
    write_json({"a": 1}, path)
    with pytest.raises(TypeError):
        write_json({"a": object()}, path)
    assert read_json(path) == {"a": 1}
    assert names(tmp_path) == ["a.json"]


def test_a_temporary_file_stands_beside_the_final_one_and_keeps_its_suffix(tmp_path):
    path = tmp_path / "figure.pdf"
    with atomic_path(path) as temporary:
        assert (temporary.parent, temporary.suffix) == (tmp_path, ".pdf")
        assert temporary.name.startswith(".")
        temporary.write_text("whole")
        assert not path.exists()
    assert path.read_text() == "whole"
    assert names(tmp_path) == ["figure.pdf"]


# ---------------------------------------------------------------------------- writers that are killed or that race

#: Writes a dataset of about a megabyte, filled with a number, to a path: once, or for ever.
WRITER = """
import os, resource, signal, sys
from pathlib import Path
import numpy as np, xarray as xr
from ensemblepp.storage import datasets as results

path, number, moment = sys.argv[1], float(sys.argv[2]), sys.argv[3]
data = xr.Dataset({"x": ("t", np.random.default_rng(0).normal(size=150_000)), "number": ((), number)})

def kill(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

if moment.startswith("size"):
    # a limit on the size of files ends the process, or the write, when the file has grown so far
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL if moment.startswith("size killed") else signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(moment.split()[-1]),) * 2)
elif moment == "reading back":
    xr.open_dataset = kill
elif moment == "flushing":
    os.fsync = kill
elif moment == "renaming":
    Path.replace = kill
print("ready", flush=True)
while True:
    results.write_dataset(data, path)
    if moment != "looping":
        break
"""


def writer(path: Path, number: int, moment: str) -> subprocess.Popen:
    command = [sys.executable, "-c", WRITER, str(path), str(number), moment]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def rewrite(path: Path, number: float) -> None:
    """What `WRITER` writes, in this process."""
    write_dataset(xr.Dataset({"x": ("t", np.random.default_rng(0).normal(size=150_000)), "number": ((), number)}), path)


def number_of(path: Path) -> float:
    """The number in a file of `WRITER`, which must be whole."""
    read = read_dataset(path, finite=("x", "number"))
    np.testing.assert_array_equal(read["x"], np.random.default_rng(0).normal(size=150_000))
    return float(read["number"])


@pytest.mark.parametrize(
    ("moment", "status"),
    [
        ("size killed 0", -signal.SIGXFSZ),
        ("size killed 4000", -signal.SIGXFSZ),
        ("size killed 900000", -signal.SIGXFSZ),
        ("size failed 900000", 1),
        ("reading back", -signal.SIGKILL),
        ("flushing", -signal.SIGKILL),
        ("renaming", -signal.SIGKILL),
    ],
)
def test_a_writer_that_dies_leaves_the_old_file_and_a_second_try_succeeds(tmp_path, moment, status):
    path = tmp_path / "run.nc"
    rewrite(path, 1.0)
    with writer(path, 2, moment) as process:
        assert process.wait(timeout=60) == status
    assert number_of(path) == 1.0
    rewrite(path, 3.0)
    assert number_of(path) == 3.0


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.05, 0.11])
def test_a_killed_writer_never_leaves_half_a_file(tmp_path, delay):
    path = tmp_path / "run.nc"
    with writer(path, 2, "looping") as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(delay)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert not path.exists() or number_of(path) == 2.0
    rewrite(path, 3.0)
    assert number_of(path) == 3.0


def test_two_writers_of_one_path_leave_one_valid_file(tmp_path):
    path = tmp_path / "run.nc"
    with writer(path, 2, "looping") as first, writer(path, 3, "looping") as second:
        try:
            for process in (first, second):
                assert process.stdout.readline() == "ready\n"
            met = set()
            end = time.monotonic() + 20
            while met != {2.0, 3.0} and time.monotonic() < end:
                if path.exists():
                    met.add(number_of(path))
        finally:
            first.kill()
            second.kill()
    assert met == {2.0, 3.0}
    assert number_of(path) in (2.0, 3.0)


# ------------------------------------------------------------------------------------------------------- damaged files


UNSEALED = "unfinished, or not written by this project (it does not end with its checksum); delete it and run snakemake again"


def refusal(path: Path, read: Callable = read_dataset, **options: object) -> str:
    with pytest.raises(ResultError) as error:
        read(path, **options)
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


def test_a_missing_file(tmp_path):
    assert refusal(tmp_path / "run.nc") == "no such file; run snakemake to make it"


@pytest.mark.parametrize("kept", [0.0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.9999])
def test_a_truncated_file(tmp_path, kept):
    path = tmp_path / "run.nc"
    write_dataset(dataset(), path)
    content = path.read_bytes()
    path.write_bytes(content[: int(kept * len(content))])
    assert refusal(path) == UNSEALED


@pytest.mark.parametrize("content", [b"seed,regret\n0,1\n", bytes(4096), b"\x89HDF\r\n\x1a\n" + bytes(4096)])
def test_a_file_of_another_kind(tmp_path, content):
    (tmp_path / "run.nc").write_bytes(content)
    assert refusal(tmp_path / "run.nc") == UNSEALED


def test_an_unfinished_file(tmp_path):
    dataset().to_netcdf(tmp_path / "run.nc")
    assert refusal(tmp_path / "run.nc") == UNSEALED


def test_a_folder(tmp_path):
    (tmp_path / "run.nc").mkdir()
    assert refusal(tmp_path / "run.nc").startswith("cannot be read (")


def test_every_flipped_bit_is_noticed(tmp_path):
    """Anywhere: data, coordinates, attributes, HDF5's own tables, and the checksum itself."""
    path = tmp_path / "run.nc"
    write_dataset(dataset(), path)
    content = path.read_bytes()
    source = np.random.default_rng(0)
    places = [*source.integers(8 * len(content), size=300), *range(8 * (len(content) - 70), 8 * len(content), 7)]
    for place in map(int, places):
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << (place % 8)
        path.write_bytes(flipped)
        assert refusal(path) in (UNSEALED, "damaged (its content differs from its checksum); delete it and run snakemake again")
    path.write_bytes(content)
    assert read_dataset(path).identical(dataset())


def test_other_programs_read_the_file(tmp_path):
    """The line after HDF5's own content is in nobody's way."""
    path = tmp_path / "run.nc"
    write_dataset(dataset(), path)
    xr.testing.assert_identical(xr.load_dataset(path), dataset())
    with netCDF4.Dataset(path) as file:
        assert set(dataset().data_vars) <= set(file.variables)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite(tmp_path, value):
    path = tmp_path / "run.nc"
    write_dataset(dataset(value), path)
    assert read_dataset(path).identical(dataset(value))
    read_dataset(path, finite=("action", "total"))
    expected = "variable 'regret' holds values that are not finite; delete it and run snakemake again"
    assert refusal(path, finite=("total", "regret")) == expected


def test_a_missing_or_empty_variable(tmp_path):
    path = tmp_path / "run.nc"
    write_dataset(dataset().assign(none=("nothing", np.empty(0))), path)
    for name in ("reward", "none"):
        expected = f"variable '{name}' is missing or empty; delete it and run snakemake again"
        assert refusal(path, finite=(name,)) == expected


def test_a_file_of_another_kind_that_is_whole(tmp_path):
    path = tmp_path / "data.nc"
    write_dataset(dataset(), path)
    assert read_dataset(path, holds=("action", "title", "seed", "spec")).attrs["horizon"] == 2
    with pytest.raises(ResultError, match=r"data\.nc: a file of another kind \(there is no 'label' in it\); delete it and run"):
        read_dataset(path, holds=("spec", "label"))


def test_a_variable_that_holds_no_numbers(tmp_path):
    path = tmp_path / "run.nc"
    write_dataset(dataset(), path)
    assert refusal(path, finite=("text",)).startswith("variable 'text' holds values that are not finite")


@pytest.mark.parametrize("content", [b"seed,regret\n0,1\n", b"\x89HDF\r\n\x1a\n" + bytes(4096)])
def test_a_sealed_file_that_is_no_netcdf(tmp_path, content):
    path = tmp_path / "run.nc"
    path.write_bytes(content)
    add_seal(path)
    assert refusal(path).startswith("cannot be read as netCDF (")


def test_json_that_is_not_as_it_was_written(tmp_path):
    """Every bit but those that change nothing that is read, every length; other files; and what stands in place of one."""
    path = tmp_path / "a.json"
    value = {"seconds": 2.5, "versions": {"numpy": "2.4"}, "names": ["böse ✓"], "none": None}
    write_json(value, path)
    content = path.read_bytes()
    harmless = 0
    for place in range(8 * len(content)):
        flipped = bytearray(content)
        flipped[place // 8] ^= 1 << (place % 8)
        path.write_bytes(flipped)
        try:
            assert read_json(path) == value
            harmless += 1
        except ResultError:
            refusal(path, read_json)
    # a space or a line's end that became another
    assert harmless < 0.02 * 8 * len(content)
    for length in range(len(content) - 1):
        path.write_bytes(content[:length])
        refusal(path, read_json)
    remedy = "delete it and run snakemake again"
    for text in ("[1]", "{}", '{"seconds": 2.5}'):
        path.write_text(text)
        assert refusal(path, read_json) == f"unfinished, or not written by this project (it holds no checksum); {remedy}"
    path.write_text('{"seconds": 2.5, "sha256": "0"}')
    assert refusal(path, read_json) == f"damaged (its content differs from its checksum); {remedy}"
    path.write_text("[" * 100_000)
    assert refusal(path, read_json).startswith("damaged (not JSON: ")
    path.unlink()
    assert refusal(path, read_json) == "no such file; run snakemake to make it"
    path.mkdir()
    assert refusal(path, read_json).startswith("cannot be read (")
