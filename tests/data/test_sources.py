"""Raw files: mirror first, then each source in turn; nothing wrong or half-written ever lands under the final name."""

import errno
import hashlib
import io
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from ensemblepp.data import DATASETS, load, sources
from ensemblepp.data.sources import RawFile, Source, reachable, reachable_all, retrieve
from ensemblepp.errors import DataError, UnreachableError

REFUSED = f"no connection: [Errno {errno.ECONNREFUSED}] Connection refused"
CONTENT = b"one\ntwo\nthree\n"


def refuse(path: Path) -> None:
    raise DataError(f"{path}, line 2: not a number (expected 2, found two)")


FILE = RawFile(
    name="uci/numbers.data",
    sources=(Source("{uci}/old/numbers.data"), Source("{uci}/new/numbers.data")),
    mirror_paths=("uci/numbers.data", "numbers.data"),
    sha256=hashlib.sha256(CONTENT).hexdigest(),
    check=refuse,
)


def zipped(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("_", "."), content)
    return buffer.getvalue()


@pytest.fixture
def destination(tmp_path):
    return tmp_path / "raw" / "uci" / "numbers.data"


@pytest.mark.parametrize("name", FILE.mirror_paths)
def test_mirror_is_used_before_any_source(server, tmp_path, destination, name):
    copy = tmp_path / "mirror" / name
    copy.parent.mkdir(parents=True)
    copy.write_bytes(CONTENT)
    assert retrieve(FILE, destination, tmp_path / "mirror") == str(copy)
    assert destination.read_bytes() == CONTENT
    assert server.asked == []


def test_mirror_with_wrong_content_names_the_file_both_hashes_and_the_first_faulty_line(tmp_path, destination):
    copy = tmp_path / "numbers.data"
    copy.write_bytes(CONTENT[:-2])
    destination.parent.mkdir(parents=True)
    destination.write_bytes(b"what was there")
    with pytest.raises(DataError) as error:
        retrieve(FILE, destination, tmp_path)
    message = str(error.value)
    assert message.startswith(f"{copy}: wrong content (sha256 expected {FILE.sha256}, found ")
    assert hashlib.sha256(CONTENT[:-2]).hexdigest() in message
    assert message.endswith(f"{copy}, line 2: not a number (expected 2, found two)")
    assert [path.read_bytes() for path in destination.parent.iterdir()] == [b"what was there"]


def test_mirror_without_the_file_falls_back_to_the_sources(server, tmp_path, destination):
    server.serve("/old/numbers.data", CONTENT)
    assert retrieve(FILE, destination, tmp_path) == f"{server.url}/old/numbers.data"


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param({"status": 502}, id="bad gateway"),
        pytest.param({"status": 404}, id="not found"),
        pytest.param({"body": b"<html>maintenance</html>"}, id="wrong content"),
        pytest.param({"body": CONTENT, "cut": 4}, id="cut transfer"),
    ],
)
def test_a_source_that_fails_gives_way_to_the_next(server, destination, bad):
    server.serve("/old/numbers.data", **bad)
    server.serve("/new/numbers.data", CONTENT)
    assert retrieve(FILE, destination) == f"{server.url}/new/numbers.data"
    assert destination.read_bytes() == CONTENT


def test_a_failed_download_is_tried_again(server, destination):
    server.serve("/old/numbers.data", status=503)
    server.then("/old/numbers.data", CONTENT, cut=4)
    server.then("/old/numbers.data", CONTENT)
    assert retrieve(FILE, destination) == f"{server.url}/old/numbers.data"
    assert server.asked == [("GET", "/old/numbers.data")] * 3


def test_wrong_content_is_not_downloaded_again(server, destination):
    server.serve("/old/numbers.data", b"other")
    server.serve("/new/numbers.data", CONTENT)
    retrieve(FILE, destination)
    assert server.asked == [("GET", "/old/numbers.data"), ("GET", "/new/numbers.data")]


def test_redirects_are_followed(server, destination):
    server.serve("/old/numbers.data", status=302, location=f"{server.url}/moved")
    server.serve("/moved", CONTENT)
    assert retrieve(FILE, destination) == f"{server.url}/old/numbers.data"


def test_no_source_names_each_url_each_reason_and_the_setting(server, destination, tmp_path):
    nowhere = replace(FILE, sources=(*FILE.sources, Source("http://127.0.0.1:9/numbers.data")))
    server.serve("/old/numbers.data", status=502)
    server.serve("/new/numbers.data", b"other")
    with pytest.raises(UnreachableError) as error:
        retrieve(nowhere, destination, tmp_path / "absent")
    message = str(error.value)
    assert message.startswith(f"uci/numbers.data: no source gave this file; tried mirror {tmp_path}/absent: no such folder")
    assert f"{server.url}/old/numbers.data: HTTP 502 Bad Gateway" in message
    assert f"{server.url}/new/numbers.data: numbers.data: wrong content (sha256 expected {FILE.sha256}, found" in message
    assert f"http://127.0.0.1:9/numbers.data: {REFUSED}." in message
    assert message.endswith(
        "Set 'mirror' in config/config.yaml, or ENSEMBLEPP_MIRROR, to a folder that holds it as "
        "uci/numbers.data or numbers.data"
    )
    assert "\n" not in message
    assert not destination.parent.exists() or list(destination.parent.iterdir()) == []


def test_packed_sources_are_unpacked(server, destination, compress):
    server.serve("/numbers.data.Z", compress(CONTENT))
    server.serve("/plain.zip", zipped(other=b"", numbers_data=CONTENT))
    server.serve("/packed.zip", zipped(numbers_data_Z=compress(CONTENT)))
    for source in (
        Source("{uci}/numbers.data.Z"),
        Source("{uci}/plain.zip", member="numbers.data"),
        Source("{uci}/packed.zip", member="numbers.data.Z"),
    ):
        retrieve(replace(FILE, sources=(source,)), destination)
        assert destination.read_bytes() == CONTENT
        destination.unlink()


@pytest.mark.parametrize(
    ("path", "member", "content", "reason"),
    [
        ("numbers.Z", None, b"not packed", "numbers.Z cannot be unpacked"),
        ("a.zip", "numbers.data", b"not packed", "a.zip cannot be unpacked (File is not a zip file)"),
        ("a.zip", "numbers.data", zipped(other=b""), "There is no item named 'numbers.data' in the archive"),
        ("a.zip", "numbers.Z", zipped(numbers_Z=b"\x1f\x9d\x90"), "wrong content"),
        ("a.zip", "numbers.Z", zipped(numbers_Z=b""), "numbers.Z cannot be unpacked"),
    ],
)
def test_a_damaged_archive_is_one_more_failed_source(server, destination, path, member, content, reason):
    server.serve(f"/{path}", content)
    with pytest.raises(UnreachableError) as error:
        retrieve(replace(FILE, sources=(Source(f"{{uci}}/{path}", member),)), destination)
    assert reason in str(error.value)


def test_without_a_published_hash_the_check_decides(server, destination):
    server.serve("/old/numbers.data", CONTENT)
    server.serve("/new/numbers.data", b"1\n2\n")

    def numbers(path: Path) -> None:
        if path.read_bytes() != b"1\n2\n":
            refuse(path)

    assert retrieve(replace(FILE, sha256=None, check=numbers), destination) == f"{server.url}/new/numbers.data"
    with pytest.raises(UnreachableError, match=r"/old/numbers\.data: numbers\.data, line 2: not a number"):
        retrieve(replace(FILE, sha256=None, check=refuse), destination)
    assert destination.read_bytes() == b"1\n2\n"


def test_reachable_in_the_mirror(server, tmp_path):
    (tmp_path / "numbers.data").touch()
    found = reachable(FILE, tmp_path)
    assert (found.ok, found.where, found.tried) == (True, str(tmp_path / "numbers.data"), ())
    assert server.asked == []


def test_reachable_asks_with_head_and_says_who_did_not_answer(server, tmp_path):
    server.serve("/new/numbers.data", CONTENT)
    found = reachable(FILE, tmp_path)
    assert (found.ok, found.where) == (True, f"{server.url}/new/numbers.data")
    assert found.tried == (
        f"mirror {tmp_path}: holds none of uci/numbers.data, numbers.data",
        f"{server.url}/old/numbers.data: HTTP 404 Not Found",
    )
    assert sorted(server.asked) == [("HEAD", "/new/numbers.data"), ("HEAD", "/old/numbers.data")]


@pytest.mark.parametrize("refusal", [403, 405, 501])
def test_reachable_asks_again_with_get_where_head_is_refused(server, refusal):
    file = replace(FILE, sources=FILE.sources[:1])
    server.serve("/old/numbers.data", CONTENT, head_status=refusal)
    assert reachable(file).ok
    server.serve("/old/numbers.data", status=410, head_status=refusal)
    assert reachable(file).tried == (f"{server.url}/old/numbers.data: HTTP 410 Gone",)


def test_reachable_gives_up_on_silent_and_absent_servers(server, monkeypatch):
    server.serve("/old/numbers.data", silent=True)
    file = replace(FILE, sources=(FILE.sources[0], Source("http://127.0.0.1:9/numbers.data")))
    refused = f"http://127.0.0.1:9/numbers.data: {REFUSED}"
    monkeypatch.setattr(sources, "PROBE_TIMEOUT", 0.2)
    found = reachable(file)
    assert not found.ok
    assert found.tried == (f"{server.url}/old/numbers.data: no answer in time", refused)
    monkeypatch.setattr(sources, "PROBE_TIMEOUT", 5)
    monkeypatch.setattr(sources, "PROBE_DEADLINE", 0.5)
    assert reachable(file).tried == (f"{server.url}/old/numbers.data: no answer within 0.5 s", refused)


def test_reachable_all_asks_for_every_raw_file_and_for_a_shared_archive_once(server):
    server.serve("/static/public/148/statlog+shuttle.zip", b"zip")
    files = [file for name in DATASETS for file in load(name).RAW]
    found = reachable_all(files)
    assert {name: each.ok for name, each in found.items()} == {
        "uci/agaricus-lepiota.data": False,
        "uci/shuttle.trn": True,
        "uci/shuttle.tst": True,
        "hatespeech/posts": False,
        "hatespeech/davidson_labeled_data.csv": False,
        "hatespeech/hatecheck_test_suite_cases.csv": False,
    }
    assert server.asked.count(("HEAD", "/static/public/148/statlog+shuttle.zip")) == 1
    (posts,) = load("hate_speech").RAW
    assert ("HEAD", posts.sources[0].url.removeprefix("{hub}")) in server.asked


def test_base_urls_are_read_at_call_time(monkeypatch):
    source = Source("{uci}/static/public/73/mushroom.zip", member="agaricus-lepiota.data")
    monkeypatch.delenv("ENSEMBLEPP_UCI_URL", raising=False)
    assert source.address == "https://archive.ics.uci.edu/static/public/73/mushroom.zip"
    monkeypatch.setenv("ENSEMBLEPP_UCI_URL", "http://mirror.example/uci/")
    assert source.address == "http://mirror.example/uci/static/public/73/mushroom.zip"


def test_every_data_set_has_the_same_light_surface():
    """The workflow imports these modules whenever it is parsed."""
    program = (
        "import sys; from ensemblepp.data import DATASETS, load\n"
        "for name in DATASETS: assert load(name).RAW and callable(load(name).prepare)\n"
        "print(sorted({'xarray', 'requests', 'pooch', 'pandas', 'datasets', 'unlzw3', 'pyarrow'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
