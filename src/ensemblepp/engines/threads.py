"""Small matrix products on one thread, whatever a shell, a notebook or a cluster has set.

OpenBLAS divides even a product of 128 and 64 rows among all cores, and a thread that waits for another one waits in a loop. On
a busy machine that makes a round up to 60 times longer; seeds, blocks and processes are what fills cores here.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from importlib import import_module

from threadpoolctl import ThreadpoolController


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """OpenBLAS with one thread, in a `with` statement or as a decorator of what plays rounds; then with as many as before."""
    # compiled products go to the copy that scipy brings, and that is found only where it is loaded
    import_module("scipy.linalg.cython_blas")
    with ThreadpoolController().select(internal_api="openblas").limit(limits=1):
        yield
