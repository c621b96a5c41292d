"""The process that has loaded what jobs need, and forks one for every job that asks."""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

from ensemblepp.warm_start import HEAD, VARIABLE

#: What is loaded before the first job: what simulations need. After a colon, what is called of it.
MODULES = (
    "ensemblepp.runs.block",
    "ensemblepp.runs.progress",
    "ensemblepp.environments.candidates",
    "ensemblepp.environments.classification",
    "ensemblepp.environments.moderation",
    "ensemblepp.environments.linear_finite",
    "ensemblepp.environments.linear_sphere",
    "ensemblepp.engines.step_by_step",
    "ensemblepp.engines.linear.compiled",
    "ensemblepp.engines.neural.compiled",
    "ensemblepp.engines.neural.epinet",
    "ensemblepp.engines.neural.stacked",
    "ensemblepp.compilation.compiled:get_ready",
    "ensemblepp.runs.block:versions",
)

#: What is loaded while no job asks: what later jobs need.
LATER = (
    "ensemblepp.runs.sources:get_ready",
    "ensemblepp.runs.aggregate",
    "ensemblepp.data",
    "ensemblepp.tables",
    "ensemblepp.figures.style",
    "scipy.stats",
    "seaborn",
    "matplotlib.backends.backend_pdf",
)

#: What agents that train a language model need besides.
LANGUAGE_MODELS = ("ensemblepp.text.backbones:get_ready",)

#: What the report of a workflow needs besides; where a workflow runs these libraries are there.
REPORT = ("snakemake.cli", "snakemake.report.html_reporter")

#: Seconds that a job has to end in good order: what SLURM gives after its own SIGTERM.
GRACE = 30.0


def start(*, at_once: bool = False, also: Sequence[str] = ()) -> subprocess.Popen:
    """A server for all that this process starts from now on; it ends with this process.

    Args:
        at_once: there will be jobs: what they need is loaded before the first is there.
        also: what is to be loaded besides, while no job asks.
    """
    path = Path(tempfile.mkdtemp(prefix="ensemblepp-"), "socket")
    os.environ[VARIABLE] = str(path)
    command = [sys.executable, "-m", "ensemblepp", "serve", "--socket", str(path), "--also", *also]
    command += ["--at-once"] if at_once else []
    # a session of its own, so that an interrupt from the terminal reaches jobs and not the server they run in
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)


def serve(
    path: Path,
    run: Callable[[list[str]], int],
    modules: Sequence[str] = MODULES,
    later: Sequence[str] = LATER,
    *,
    at_once: bool = False,
) -> None:
    """Serve jobs at `path` until standard input is closed, which it is when the process that started this one ends.

    Python has one thread here, and libraries have none that computes, or a fork would not be safe.

    Args:
        path: the socket to make, in a folder of its own; both are removed in the end.
        run: runs a command and returns its exit status.
        modules: what to load, when the first job is there, or at once.
        later: what to load after that, while no job waits.
    """
    first, later = list(modules), list(later)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        path.chmod(0o600)
        # jobs wait in line while libraries are loaded
        listener.listen(1024)
        # of processes that have ended the system takes care
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while at_once and first:
            _load(first.pop(0))
        while True:
            ready = select.select([listener, sys.stdin], [], [], 0 if later and not first else None)[0]
            if sys.stdin in ready:
                break
            if not ready:
                _load(later.pop(0))
                continue
            while first:
                _load(first.pop(0))
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    listener.close()
                    os._exit(_job(connection, run))
    path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        path.parent.rmdir()


def _load(name: str) -> None:
    module, _, function = name.partition(":")
    loaded = importlib.import_module(module)
    if function:
        getattr(loaded, function)()
    # what stays is not looked through for garbage, by this process or by those forked from it
    gc.freeze()


def _job(connection: socket.socket, run: Callable[[list[str]], int]) -> int:
    """Be the job that has connected: take its place, run its command, answer with its status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, outputs, _, _ = socket.recv_fds(connection, HEAD, 2)
    request = json.loads(_received(connection, int.from_bytes(head, "big")))
    for own, given in zip((1, 2), outputs, strict=True):
        os.dup2(given, own)
        os.close(given)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv[1:] = request["arguments"]
    threading.Thread(target=_end_with_job, args=(connection,), daemon=True).start()
    try:
        status = run(request["arguments"])
    except SystemExit as leaving:
        status = leaving.code if isinstance(leaving.code, int) else 1
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    with contextlib.suppress(OSError):
        connection.sendall(bytes([status & 0xFF]))
    return status


def _end_with_job(connection: socket.socket) -> None:
    """End when the job does or is told to, since that means this process: by SIGTERM, for which some commands are ready."""
    with contextlib.suppress(OSError):
        connection.recv(1)
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(1)


def _received(connection: socket.socket, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        part = connection.recv(length - len(parts))
        if not part:
            os._exit(1)
        parts += part
    return bytes(parts)
