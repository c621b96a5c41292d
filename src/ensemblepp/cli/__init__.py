"""The command line: every rule of the workflow is one of these commands, and each also works by hand."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from ensemblepp.arguments import user_error
from ensemblepp.cli import moderating, preparing, presenting
from ensemblepp.cli.parser import make_parser
from ensemblepp.errors import EnsembleError, in_lines

#: What a shell gives as the status of a command that Ctrl-C has ended.
INTERRUPTED = 130

#: What it gives as that of one whose reader is gone.
CLOSED = 141

#: What numba may be told by variables: where its cache lies, and which processor it compiles for. All others change the code.
_NUMBA = {"NUMBA_CACHE_DIR", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"}


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit status. A fault that the user can mend is one line, without a traceback."""
    options = make_parser(_serve).parse_args(arguments)
    _settle_surroundings(options.threads)
    if options.command not in (preparing.language_model, preparing.retrieve, moderating.moderate, presenting.render):
        # the hub's client reads it when it is loaded; what is asked of the hub is asked by those alone
        os.environ["HF_HUB_OFFLINE"] = "1"
    # modules of the user's lie beside the Snakefile, and the script `ensemblepp` does not look there by itself
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        return options.command(options) or 0
    except EnsembleError as error:
        print(in_lines(error), file=sys.stderr)
        return 1
    except MemoryError as error:
        print(f"error: out of memory: {error}" if str(error) else "error: out of memory", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # whoever reads, as `head`, has seen enough; what is still to be flushed goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED
    except OSError as error:
        print(f"error: {user_error(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return INTERRUPTED


def _serve(options: argparse.Namespace) -> None:
    # here, as it runs whatever else is a command
    from ensemblepp.warm_start.server import LATER, serve

    serve(options.socket, main, later=(*LATER, *options.also), at_once=options.at_once)


def _settle_surroundings(threads: int) -> None:
    """What a shell, a notebook or a cluster has set must change nothing; before a numerical library is loaded."""
    for name in [name for name in os.environ if name.startswith("NUMBA_") and name not in _NUMBA]:
        del os.environ[name]
    # one thread per process unless told otherwise
    for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR"):
        os.environ[f"{library}_NUM_THREADS"] = str(threads)
    # figures are files; a notebook's backend is not there
    os.environ["MPLBACKEND"] = "agg"
    # HDF5's locks fail on NFS
    os.environ.setdefault("HDF5_USE_FILE_LOCKING", "FALSE")
    # needed by cuBLAS for equal results at equal seeds; must be set before torch is loaded
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
