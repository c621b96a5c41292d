"""`python -m ensemblepp`, the same as the command `ensemblepp`."""

import gc
import os
import sys

from ensemblepp.warm_start import ask


def run() -> None:
    """Run this process's command and end the process; what profiles a command has to call `cli.main`.

    It ends at once: taking all libraries down in order takes a third as long as loading them, and every file is in its place.
    """
    try:
        status = ask(sys.argv[1:])
        if status is None:
            # what is loaded stays, and a collector that looks through it after every 700 new objects finds nothing
            gc.set_threshold(10_000)
            # only here: what it imports is what a warm start saves
            from ensemblepp.cli import main

            status = main()
    except KeyboardInterrupt:
        # while a job waits for the server, or before there is a command
        print("error: interrupted", file=sys.stderr)
        status = 130
    for stream in (sys.stdout, sys.stderr):
        # one that is closed is None
        try:
            if stream:
                stream.flush()
        except BrokenPipeError:
            # whoever reads, as `head`, has seen enough
            status = 141
    os._exit(status)


if __name__ == "__main__":
    run()
