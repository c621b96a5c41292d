"""Progress: a line per 10 % where nobody watches, a bar on a terminal."""

from __future__ import annotations

import contextlib
import importlib
import os
import pty
import re
import subprocess
import sys
import termios

import numba
import pytest

from ensemblepp.runs import progress
from ensemblepp.runs.progress import Progress


def lines(capsys: pytest.CaptureFixture[str], total: int) -> list[str]:
    with Progress(total, "counting") as counter:
        for _ in range(total):
            counter.step()
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err.splitlines()


@pytest.mark.parametrize(
    ("total", "steps"),
    [
        (1, [1]),
        (3, [1, 2, 3]),
        (10, list(range(1, 11))),
        (25, [3, 5, 8, 10, 13, 15, 18, 20, 23, 25]),
        (1000, list(range(100, 1001, 100))),
    ],
)
def test_a_line_for_each_tenth_that_is_passed(capsys, total, steps):
    found = [
        re.fullmatch(rf"counting: step (\d+)/{total} \((\d+) %\), .* s, about .* s left", line) for line in lines(capsys, total)
    ]
    assert [(int(line[1]), int(line[2])) for line in found] == [(step, step * 100 // total) for step in steps]


def test_a_line_says_how_long_it_took_and_will_take(capsys, monkeypatch):
    """Two seconds a step, after a minute for the first: what is before the first step's end does not count."""
    now = 100.0
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now)
    with Progress(20, "counting") as counter:
        for step in range(20):
            now += 2 if step else 60
            counter.step()
    found = capsys.readouterr().err.splitlines()
    assert found[0] == "counting: step 2/20 (10 %), 2.0 s, about 36 s left"
    assert found[4] == "counting: step 10/20 (50 %), 18.0 s, about 20 s left"
    assert found[9] == "counting: step 20/20 (100 %), 38.0 s, about 0 s left"


@pytest.mark.parametrize(
    ("total", "counts", "steps"),
    [
        (90, [30, 30, 30], [30, 60, 90]),
        (1000, [1000], [1000]),
        (100, [5, 4, 1, 1, 49, 40], [10, 60, 100]),
        (30, [1] * 27 + [3], [3, 6, 9, 12, 15, 18, 21, 24, 27, 30]),
    ],
)
def test_many_steps_at_once_are_one_line_at_most(capsys, total, counts, steps):
    """A line where at least one more tenth is passed, whatever the number of them."""
    with Progress(total, "counting") as counter:
        for count in counts:
            counter.step(count)
    found = [re.match(r"counting: step (\d+)/(\d+) \((\d+) %\)", line) for line in capsys.readouterr().err.splitlines()]
    assert [(int(line[1]), int(line[2]), int(line[3])) for line in found] == [(at, total, at * 100 // total) for at in steps]


def test_the_time_left_of_unequal_steps(capsys, monkeypatch):
    """A second per step after the first call, which does not count: its 10 steps neither."""
    now = 0.0
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now)
    with Progress(100, "counting") as counter:
        now += 60
        counter.step(10)
        now += 30
        counter.step(30)
    assert capsys.readouterr().err.splitlines()[1] == "counting: step 40/100 (40 %), 30.0 s, about 60 s left"


def test_no_step_no_line(capsys):
    with Progress(0, "nothing"):
        pass
    assert capsys.readouterr().err == ""


def everything(watcher: int) -> str:
    """All that was written to a terminal whose other end is closed."""
    shown = b""
    with contextlib.suppress(OSError), os.fdopen(watcher, "rb", buffering=0) as file:
        while part := file.read(4096):
            shown += part
    return shown.decode()


def test_a_bar_on_a_terminal():
    script = (
        "from ensemblepp.runs.progress import Progress\n"
        "with Progress(50, 'counting') as counter:\n"
        "    for _ in range(30):\n"
        "        counter.step()\n"
        "    counter.step(20)\n"
    )
    watcher, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 80))
    with subprocess.Popen([sys.executable, "-c", script], stderr=terminal, stdout=subprocess.PIPE) as process:
        os.close(terminal)
        assert process.communicate()[0] == b""
    shown = everything(watcher)
    assert process.returncode == 0
    assert re.search(r"\rcounting: 100%\|.+\| 50/50 \[", shown)
    assert "left" not in shown, "no lines beside the bar"


COMPILED = """
import numba

def double(value):
    return 2 * value

def triple(value):
    return 3 * value
"""


def test_that_numba_compiles_is_said_once_and_only_when_it_does(capsys, tmp_path, monkeypatch):
    # by the environment: numba reads it again at any time, once a test has changed a variable of it
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    numba.config.reload_config()
    (tmp_path / "small_module.py").write_text(COMPILED)
    monkeypatch.syspath_prepend(tmp_path)
    functions = importlib.import_module("small_module")

    def told(*called: str) -> list[str]:
        with Progress(1, "counting") as counter, counter.telling_of_compilation():
            for name in called:
                assert numba.njit(cache=True)(getattr(functions, name))(2) in (4, 6)
        return capsys.readouterr().err.splitlines()

    assert told("double", "triple") == ["counting: compiling (half a minute; later runs find the code in the cache)"]
    assert told("double", "triple") == [], "found in the cache"
    numba.njit(functions.double)(2.0)
    assert capsys.readouterr().err == "", "nobody listens any more"
