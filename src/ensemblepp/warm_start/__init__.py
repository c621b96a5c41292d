"""Jobs that start warm: a process that has loaded what they need forks one for every job of this machine.

A job of a second needs one to two to load its libraries. So the workflow keeps a server while it runs here (`server`); a job
asks it for a process by a socket (`ask`), gives it its arguments, environment, working directory and outputs, and ends with its
status. The forked process is all that a process of the job's own would be, but for its parent. When the job that asked for it
ends or is told to (SIGTERM), it is told so too and may save what it has; the server ends with the workflow, however that ends.
Without a server, as on a cluster, a job loads all by itself.

Asking must cost nothing: little is imported here, and nothing of the package.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys

#: Where a job finds the server: a socket's path.
VARIABLE = "ENSEMBLEPP_WARM_START"

#: Commands that the server runs, on one thread; others are rare, or start processes and threads themselves.
SERVED = ("simulate", "aggregate", "present", "claims", "page", "render", "check-data", "prepare")

#: Length of a number before a message, in bytes.
HEAD = 8


def ask(arguments: list[str]) -> int | None:
    """Let the server run a command; its exit status, or None where there is no server, or where it does not run such."""
    path = os.environ.get(VARIABLE)
    command = arguments[2:] if arguments[:2] == ["--threads", "1"] else arguments
    if not path or not command or command[0] not in SERVED:
        return None
    told = []
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(path)
        except OSError:
            return None

        def pass_on(number: int, _: object) -> None:
            told.append(number)
            # the other side, if it is there, reads an end, and answers when it has come to its own
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_WR)

        signal.signal(signal.SIGTERM, pass_on)
        folder = os.getcwd()  # noqa: PTH109 - pathlib takes longer to load than all else here
        request = json.dumps({"arguments": arguments, "folder": folder, "environment": dict(os.environ)}).encode()
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            # standard output and error are handed over as they are
            socket.send_fds(connection, [len(request).to_bytes(HEAD, "big")], [1, 2])
            connection.sendall(request)
            answer = connection.recv(1)
        except OSError:
            answer = b""
    if not answer and told:
        print("error: told to end", file=sys.stderr)
        return 128 + told[0]
    if not answer:
        print("error: the process that ran this job died (out of memory?)", file=sys.stderr)
        return 1
    return answer[0]
