"""Language models come whole or not at all, from a package, a folder or the hub; a fault is one line with advice."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from hashlib import sha1, sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ensemblepp.errors import ResultError, UnreachableError
from ensemblepp.storage.datasets import read_json
from ensemblepp.text.language_models import (
    CHECKSUMS,
    MARK,
    ORIGIN,
    acquire,
    content,
    hub_address,
    local_source,
    missing,
    verify,
)

NOWHERE = "http://127.0.0.1:9"  # the discard port: refuses at once
COMMIT = "0123456789" * 4

#: A model's files as a publisher gives them, and the others that are of no use here.
FILES = {
    "config.json": b'{"model_type": "bert"}',
    "model-00001-of-00002.safetensors": b"first",
    "model-00002-of-00002.safetensors": b"second",
    "model.safetensors.index.json": b"{}",
    "tokenizer.json": b"{}",
    "tokenizer_config.json": b"{}",
    "vocab.txt": b"a\nb\n",
}
OTHERS = {"README.md": b"# A model", "pytorch_model.bin": b"weights", "onnx.onnx": b"weights"}


def contents(folder: Path) -> dict[str, bytes]:
    """What is in a model's folder, beside the checksums, which must be right, and where it is from."""
    verify(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name not in (CHECKSUMS, ORIGIN)}


def spec(source: str, location: object, revision: str = "main") -> dict[str, str]:
    return {"source": source, "location": str(location), "revision": revision, "pooling": "mean"}


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """A folder with a model."""
    folder = tmp_path / "published"
    folder.mkdir()
    for name, body in (FILES | OTHERS).items():
        (folder / name).write_bytes(body)
    return folder


# ------------------------------------------------------------------------------------------------ folder and package


def test_from_a_folder_comes_what_a_model_needs(tmp_path, published):
    acquire(spec("folder", published), tmp_path / "models" / "mine")
    assert contents(tmp_path / "models/mine") == FILES
    assert [path.name for path in (tmp_path / "models").iterdir()] == ["mine"], "nothing temporary stays"


def test_from_a_path_inside_an_installed_package(tmp_path, published, monkeypatch):
    package = tmp_path / "packages" / "own_model"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('only its files are wanted')\n")
    published.rename(package / "weights")
    monkeypatch.syspath_prepend(tmp_path / "packages")
    acquire(spec("package", "own_model/weights"), tmp_path / "mine")
    assert contents(tmp_path / "mine") == FILES
    assert local_source(spec("package", "own_model/weights")) == package / "weights"
    with pytest.raises(UnreachableError) as error:
        acquire(spec("package", "own_model/other"), tmp_path / "other")
    assert str(error.value) == (
        "language model own_model/other: no such path in package 'own_model'; see language_models in config/environments.yaml"
    )


@pytest.mark.parametrize(
    ("source", "location", "message"),
    [
        ("package", "no_such_package/model", "package 'no_such_package' is not installed (see requirements-models.lock)"),
        ("package", "json.py", "package 'json.py' is not installed (see requirements-models.lock)"),
        ("folder", "no/such/folder", "no such folder; see language_models in config/environments.yaml"),
    ],
)
def test_what_is_not_there_is_named_with_advice(tmp_path, monkeypatch, source, location, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UnreachableError) as error:
        acquire(spec(source, location), "models/mine")
    assert str(error.value) == missing(spec(source, location)) == f"language model {location}: {message}"
    assert list(Path("models").iterdir()) == []


@pytest.mark.parametrize(
    ("removed", "pattern"), [(["config.json"], "config.json"), ([name for name in FILES if "000" in name], "*.safetensors")]
)
def test_a_folder_without_a_model(tmp_path, published, removed, pattern):
    for name in removed:
        (published / name).unlink()
    with pytest.raises(UnreachableError) as error:
        acquire(spec("folder", published), tmp_path / "mine")
    assert str(error.value) == f"language model {published}: has no {pattern}; it must be a transformers model"
    assert not (tmp_path / "mine").exists()


# ------------------------------------------------------------------------------------------------------ interruption


@pytest.mark.parametrize("moved", range(len(FILES) + 2))
def test_an_interrupted_acquisition_never_looks_like_a_model(tmp_path, published, monkeypatch, moved):
    """`moved` files have found their place when the interruption comes; another model was there before."""
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in ("config.json", "old.safetensors", "vocab.json", "chat_template.jinja"):
        (folder / name).write_bytes(b"another model's")
    replace, done = Path.replace, []

    def interrupted(self, target):
        if Path(target).parent != folder:
            return replace(self, target)
        if len(done) == moved:
            raise KeyboardInterrupt
        done.append(target)
        return replace(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", interrupted)
        with pytest.raises(KeyboardInterrupt):
            acquire(spec("folder", published), folder)
    assert not (folder / MARK).exists()
    assert len(list(folder.iterdir())) == moved
    acquire(spec("folder", published), folder)
    assert contents(folder) == FILES
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "published"]


@pytest.mark.parametrize("name", [*FILES, CHECKSUMS])
def test_a_damaged_model_is_named(tmp_path, published, name):
    """Before any of its files is loaded: one bit, a byte less, a missing file, and one that is not of it."""
    folder = tmp_path / "mine"
    acquire(spec("folder", published), folder)
    verify(folder)
    path = folder / name
    content = path.read_bytes()
    for damaged in (bytes([content[0] ^ 1]) + content[1:], content[:-2], None):
        path.unlink() if damaged is None else path.write_bytes(damaged)
        with pytest.raises(ResultError, match=f"^{re.escape(str(path))}: .*; delete {re.escape(str(folder))} and run|no such"):
            verify(folder)
    path.write_bytes(content)
    verify(folder)
    (folder / "pytorch_model.bin").touch()
    with pytest.raises(ResultError, match=r"pytorch_model\.bin: not of this language model; delete"):
        verify(folder)


def test_an_interrupted_copy_never_looks_like_a_model(tmp_path, published, monkeypatch):
    def full(source, target):
        Path(target).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copyfile", full)
    with pytest.raises(OSError, match="No space left"):
        acquire(spec("folder", published), tmp_path / "mine")
    assert [path.name for path in tmp_path.iterdir()] == ["published"]


def test_content_is_of_the_files_and_not_of_their_origin(tmp_path, published):
    folders = [tmp_path / name for name in ("one", "other", "edited")]
    acquire(spec("folder", published), folders[0])
    published.rename(tmp_path / "elsewhere")
    acquire(spec("folder", tmp_path / "elsewhere"), folders[1])
    (tmp_path / "elsewhere/vocab.txt").write_bytes(b"a\nc\n")
    acquire(spec("folder", tmp_path / "elsewhere"), folders[2])
    one, other, edited = map(content, folders)
    assert one == other != edited
    assert read_json(folders[0] / ORIGIN) == {"source": "folder", "location": str(published)}


# --------------------------------------------------------------------------------------------------------------- hub


class Hub(BaseHTTPRequestHandler):
    """As much of the hub as one download of `own/model` asks for; `own/weightless` is the same without weights."""

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        body, headers = self.find(self.path.split("?")[0])
        self.send_response(404 if body is None else 200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        if self.command == "GET" and body:
            self.wfile.write(body)

    def find(self, path: str) -> tuple[bytes | None, dict[str, str]]:
        for repository in ("own/model", "own/weightless"):
            files = {name: body for name, body in (FILES | OTHERS).items() if "model" in repository or "000" not in name}
            if path in (f"/api/models/{repository}/revision/{name}" for name in ("v1", COMMIT)):
                return json.dumps(
                    {"id": repository, "sha": COMMIT, "siblings": [{"rfilename": name} for name in files]}
                ).encode(), {}
            if path == f"/api/models/{repository}/tree/{COMMIT}":
                sizes = {name: {"size": len(body), "oid": sha1(body).hexdigest()} for name, body in files.items()}
                return json.dumps([{"type": "file", "path": name} | size for name, size in sizes.items()]).encode(), {}
            folder, _, name = path.rpartition("/")
            if folder == f"/{repository}/resolve/{COMMIT}" and name in files:
                return files[name], {"X-Repo-Commit": COMMIT, "ETag": f'"{sha1(files[name]).hexdigest()}"'}
        return None, {}

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Hub) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def from_hub(endpoint: str, location: str, folder: Path, **options: object) -> subprocess.CompletedProcess[str]:
    """The command of the workflow in a process of its own, since the hub's client reads its settings when it is imported."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGINGFACE_"))}
    environment |= {"HF_ENDPOINT": endpoint, "HF_HOME": str(folder.parent / "home"), "NO_PROXY": "*"}
    command = [sys.executable, "-m", "ensemblepp", "language-model", "--folder", str(folder)]
    return subprocess.run(
        [*command, "--spec", json.dumps(spec("hub", location, "v1") | options)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_from_the_hub(tmp_path, hub):
    done = from_hub(hub, "own/model", tmp_path / "mine")
    assert done.returncode == 0, done.stderr
    assert contents(tmp_path / "mine") == FILES
    origin = read_json(tmp_path / "mine" / ORIGIN)
    assert origin == {"source": "hub", "location": "own/model", "revision": "v1", "commit": COMMIT}


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("own/other", "the hub cannot be reached (Client error '404 Not Found' for url"),
        ("own/weightless", "has no *.safetensors; it must be a transformers model"),
    ],
)
def test_the_hub_has_no_such_model(tmp_path, hub, location, reason):
    done = from_hub(hub, location, tmp_path / "mine")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"error: language model {location}")
    assert reason in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "mine").exists()


def test_the_hub_has_another_file_than_expected(tmp_path, hub):
    name = "vocab.txt"
    right = sha256(FILES[name]).hexdigest()
    assert from_hub(hub, "own/model", tmp_path / "right", checksums={name: right}).returncode == 0
    for wrong in ({name: "0" * 64}, {name: right, "absent.txt": right}):
        done = from_hub(hub, "own/model", tmp_path / "wrong", checksums=wrong)
        assert done.returncode == 1
        assert f"{[*wrong][-1]} is not the file that is expected (sha256 " in done.stderr.splitlines()[-1]
        assert not (tmp_path / "wrong").exists()


def test_an_unreachable_hub_is_one_line_with_advice(tmp_path):
    done = from_hub(NOWHERE, "own/model", tmp_path / "mine")
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: language model own/model@v1: the hub cannot be reached (")
    assert "Connection refused" in line
    assert line.endswith("; name a packaged model or a local folder under language_models in config/environments.yaml")
    assert not (tmp_path / "mine").exists()


def test_the_address_that_tells_whether_the_hub_answers(monkeypatch):
    monkeypatch.delenv("HF_ENDPOINT", raising=False)
    assert hub_address(spec("hub", "own/model", "v1")) == "https://huggingface.co/own/model/resolve/v1/config.json"
    monkeypatch.setenv("HF_ENDPOINT", "http://mirror.example/")
    assert hub_address(spec("hub", "own/model")) == "http://mirror.example/own/model/resolve/main/config.json"
