"""Which studies can run here: by what is on disk, in the mirror, or answered for by a server of this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from ensemblepp.config.loading import load
from ensemblepp.config.resolution import Config
from ensemblepp.data import hate_speech
from ensemblepp.runs.availability import left_out

NOWHERE = "http://127.0.0.1:9"  # the discard port: refuses at once
REFUSED = "no connection: [Errno 111] Connection refused"

MUSHROOM = "/ml/machine-learning-databases/mushroom/agaricus-lepiota.data"
SHUTTLE = "/static/public/148/statlog+shuttle.zip"
POSTS = f"/datasets/ucberkeley-dlab/measuring-hate-speech/resolve/{hate_speech.REVISION}/measuring-hate-speech.parquet"
MODEL = "/own/model/resolve/v1/config.json"

RAW = {"mushroom": ["agaricus-lepiota.data"], "shuttle": ["shuttle.trn", "shuttle.tst"]}


def config(**settings: object) -> Config:
    """A study for each kind of need, one for all data sets of UCI, and one at another scale."""
    posts = {"kind": "moderation", "title": "Posts", "posts": 10}
    grid = {"horizon": 5, "seeds": 1}
    needs = {
        "nothing": ["line"],
        "mushrooms": ["mushroom"],
        "uci": ["mushroom", "shuttle"],
        "hub": ["posts-hub"],
        "package": ["posts-package"],
        "folder": ["posts-folder"],
    }
    studies = {
        name: {"title": name, "agents": ["ts"], "scales": {"quick": {"environments": environments} | grid}}
        for name, environments in needs.items()
    }
    studies["later"] = {"title": "later", "agents": ["ts"], "scales": {"paper": {"environments": ["posts-hub"]} | grid}}
    return load(
        {
            "environments": {
                "line": {"kind": "linear_finite", "title": "Line", "dimension": 3, "actions": 5},
                "mushroom": {"kind": "classification", "title": "Mushroom", "dataset": "mushroom"},
                "shuttle": {"kind": "classification", "title": "Shuttle", "dataset": "shuttle"},
                **{f"posts-{source}": posts | {"language_model": source} for source in ("hub", "package", "folder")},
            },
            "language_models": {
                "hub": {"source": "hub", "location": "own/model", "revision": "v1", "pooling": "last"},
                "package": {"source": "package", "location": "no_such_package/model", "pooling": "last"},
                "folder": {"source": "folder", "location": "models/mine", "pooling": "last"},
            },
            "agents": {"ts": {"kind": "linear_ts", "label": "TS"}},
            "studies": studies,
        }
        | settings
    )


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty working directory, no mirror, and no server that answers."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ENSEMBLEPP_MIRROR", raising=False)
    monkeypatch.setenv("ENSEMBLEPP_UCI_URL", NOWHERE)
    monkeypatch.setenv("HF_ENDPOINT", NOWHERE)
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[set[str], list[str]]]:
    """Stands for UCI and for the hub: (the paths that it has, to be filled; the paths that it was asked for)."""
    has: set[str] = set()
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            asked.append(self.path)
            self.send_response(200 if self.path in has else 404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        for variable in ("ENSEMBLEPP_UCI_URL", "HF_ENDPOINT"):
            monkeypatch.setenv(variable, f"http://127.0.0.1:{http.server_port}")
        yield has, asked
        http.shutdown()
        thread.join()


def put(folder: str, *names: str) -> None:
    for name in names:
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("not read here")


def unreachable(*names: str) -> str:
    return f"no source of {', '.join(names)} can be reached (set ENSEMBLEPP_MIRROR to a folder that holds it)"


NO_MUSHROOM = unreachable("uci/agaricus-lepiota.data")
NO_SHUTTLE = unreachable("uci/shuttle.trn", "uci/shuttle.tst")
NO_POSTS = unreachable("hatespeech/posts")
NO_PACKAGE = "language model no_such_package/model: package 'no_such_package' is not installed (see requirements-models.lock)"
NO_FOLDER = "language model models/mine: no such folder; see language_models in config/environments.yaml"


def test_without_data_and_network_every_need_is_named():
    assert left_out(config()) == {
        "mushrooms": NO_MUSHROOM,
        "uci": f"{NO_MUSHROOM}; {NO_SHUTTLE}",
        "hub": f"{NO_POSTS}; language model own/model cannot be reached ({REFUSED})",
        "package": f"{NO_POSTS}; {NO_PACKAGE}",
        "folder": f"{NO_POSTS}; {NO_FOLDER}",
    }


def test_in_detail_every_source_is_named_with_its_reason(tmp_path):
    tried = f"{NOWHERE}{MUSHROOM}: {REFUSED}; {NOWHERE}/static/public/73/mushroom.zip: {REFUSED}"
    assert left_out(config(), detail=True)["mushrooms"] == f"{NO_MUSHROOM[:-1]}; tried {tried})"
    absent = f"mirror {tmp_path}: holds none of uci/agaricus-lepiota.data, agaricus-lepiota.data"
    with_mirror = left_out(config(mirror=str(tmp_path)), detail=True)
    assert with_mirror["mushrooms"] == f"{NO_MUSHROOM[:-1]}; tried {absent}; {tried})"


def test_raw_files_that_are_here_are_enough():
    put("data/raw/uci", *RAW["mushroom"])
    assert left_out(config()).keys() == {"uci", "hub", "package", "folder"}
    put("data/raw/uci", "shuttle.trn")
    assert left_out(config())["uci"] == unreachable("uci/shuttle.tst")
    put("data/raw/uci", "shuttle.tst")
    assert left_out(config()).keys() == {"hub", "package", "folder"}


@pytest.mark.parametrize("by", ["setting", "variable"])
def test_a_mirror_is_enough(monkeypatch, by):
    put("mirror/uci", *RAW["mushroom"], *RAW["shuttle"])
    put("mirror", "measuring-hate-speech.parquet")
    if by == "variable":
        monkeypatch.setenv("ENSEMBLEPP_MIRROR", "mirror")
    settings = {"mirror": "mirror"} if by == "setting" else {}
    assert left_out(config(**settings)) == {
        "hub": f"language model own/model cannot be reached ({REFUSED})",
        "package": NO_PACKAGE,
        "folder": NO_FOLDER,
    }


def test_language_models_that_are_here_are_enough():
    put("data/raw/hatespeech", "posts")
    put("data/models/hub", "config.json")
    put("models/mine", "config.json")
    put("data/models/package", "model.safetensors")
    assert left_out(config()) == {"mushrooms": NO_MUSHROOM, "uci": f"{NO_MUSHROOM}; {NO_SHUTTLE}", "package": NO_PACKAGE}


def test_sources_that_answer_are_enough(server):
    has, asked = server
    put("models/mine", "config.json")
    has |= {MUSHROOM, SHUTTLE, POSTS, MODEL}
    assert left_out(config()) == {"package": NO_PACKAGE}
    assert {MUSHROOM, SHUTTLE, POSTS, MODEL} <= set(asked)


def test_a_source_that_has_no_such_file(server):
    has, _ = server
    put("data/raw/hatespeech", "posts")
    has |= {MUSHROOM}
    found = left_out(config())
    assert found["uci"] == NO_SHUTTLE
    assert found["hub"] == "language model own/model cannot be reached (HTTP 404 Not Found)"
    assert "mushrooms" not in found


def test_only_what_is_missing_and_needed_is_asked_for(server):
    has, asked = server
    put("data/raw/uci", *RAW["mushroom"], *RAW["shuttle"])
    put("data/raw/hatespeech", "posts")
    put("data/models/hub", "config.json")
    left_out(config())
    assert asked == []
    assert left_out(config(scale="smoke")) == {}
    Path("data/models/hub/config.json").unlink()
    has |= {MODEL}
    assert left_out(config(scale="paper")) == {}
    assert asked == [MODEL]
