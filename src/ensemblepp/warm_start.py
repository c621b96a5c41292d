"""Jobs that start warm: a process that has loaded what simulations need forks one for every job of this machine.

A simulation of a second needs one to two to load its libraries. So the workflow keeps a server while it runs here; a job asks
it for a process by a socket (`ask`), gives it its arguments, environment, working directory and outputs, and ends with its
status. The forked process is all that a process of the job's own would be, but for its parent. It ends when the job that asked
for it does; the server ends with the workflow, however that ends. Without a server, as on a cluster, a job loads all by itself.

Nothing of the package is imported here: asking must cost nothing.
"""

from __future__ import annotations

import contextlib
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
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path

#: Where a job finds the server: a socket's path.
VARIABLE = "ENSEMBLEPP_WARM_START"

#: What is loaded before the first job, as far as no job has to wait for what it does not need.
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
    "ensemblepp.engines.neural.stacked",
)

#: Length of a number before a message, in bytes.
_HEAD = 8

#: How commands begin that the server runs: it has one thread, and loads nothing for others.
SERVED = ["--threads", "1", "simulate"]


def ask(arguments: list[str]) -> int | None:
    """Let the server run a command; its exit status, or None where there is no server, or where it does not run such."""
    path = os.environ.get(VARIABLE)
    if not path or arguments[: len(SERVED)] != SERVED:
        return None
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(path)
        except OSError:
            return None
        request = json.dumps({"arguments": arguments, "folder": str(Path.cwd()), "environment": dict(os.environ)}).encode()
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            # standard output and error are handed over as they are
            socket.send_fds(connection, [len(request).to_bytes(_HEAD, "big")], [1, 2])
            connection.sendall(request)
            answer = connection.recv(1)
        except OSError:
            answer = b""
    if not answer:
        print("error: the process that ran this job died (out of memory?)", file=sys.stderr)
        return 1
    return answer[0]


def start() -> subprocess.Popen:
    """A server for all that this process starts from now on; it ends with this process."""
    path = Path(tempfile.mkdtemp(prefix="ensemblepp-"), "socket")
    os.environ[VARIABLE] = str(path)
    command = [sys.executable, "-m", __package__, "serve", "--socket", str(path)]
    # a session of its own, so that an interrupt from the terminal reaches jobs and not the server they run in
    return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)


def serve(path: Path, run: Callable[[list[str]], int], modules: Sequence[str] = MODULES) -> None:
    """Serve jobs at `path` until standard input is closed, which it is when the process that started this one ends.

    Python has one thread here, and libraries have none that computes, or a fork would not be safe.

    Args:
        path: the socket to make, in a folder of its own; both are removed in the end.
        run: runs a command and returns its exit status.
        modules: what to load, when the first job is there.
    """
    waiting = list(modules)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        path.chmod(0o600)
        # jobs wait in line while libraries are loaded
        listener.listen(1024)
        # of processes that have ended the system takes care
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while sys.stdin.fileno() not in select.select([listener, sys.stdin.fileno()], [], [])[0]:
            while waiting:
                importlib.import_module(waiting.pop(0))
            connection, _ = listener.accept()
            with connection:
                if os.fork() == 0:
                    listener.close()
                    os._exit(_job(connection, run))
    path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        path.parent.rmdir()


def _job(connection: socket.socket, run: Callable[[list[str]], int]) -> int:
    """Be the job that has connected: take its place, run its command, answer with its status."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    head, outputs, _, _ = socket.recv_fds(connection, _HEAD, 2)
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
    """End when the job does: whoever kills it means this process."""
    with contextlib.suppress(OSError):
        connection.recv(1)
    os._exit(1)


def _received(connection: socket.socket, length: int) -> bytes:
    parts = bytearray()
    while len(parts) < length:
        part = connection.recv(length - len(parts))
        if not part:
            os._exit(1)
        parts += part
    return bytes(parts)
