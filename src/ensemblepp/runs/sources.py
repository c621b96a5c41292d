"""A job works with the code that its fingerprint tells of, from its beginning to its end, or not at all.

The workflow takes fingerprints as it is read, and a job may start hours later: an edit in between, or one that is made and
taken back while jobs run, would leave results under the name of other code.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from ensemblepp import registry
from ensemblepp.errors import ResultError
from ensemblepp.runs.fingerprint import current, fingerprint


@contextlib.contextmanager
def unedited(code: str, places: Sequence[str], outputs: Sequence[Path]) -> Iterator[None]:
    """Within this the sources are those that `code` was made of; if they are not in the end, the outputs are removed.

    Args:
        code: a fingerprint; empty: nothing is asked.
        places: what it is of, as `runs.fingerprint.fingerprint` takes it.
        outputs: the files that are made within.

    Raises:
        ResultError: the sources were edited.
    """
    if code and current(*places) != code:
        raise ResultError(
            f"{outputs[0]}: not made, as its code was edited since this job was planned; run snakemake again, which plans with "
            "the code as it is now"
        )
    yield
    if code and current(*places) != code:
        for path in outputs:
            path.unlink(missing_ok=True)
        raise ResultError(f"{outputs[0]}: removed, as its code was edited while it was made; run snakemake again")


def get_ready() -> None:
    """Read the package's sources, for a process that others are forked from."""
    fingerprint(*registry.ENVIRONMENTS.values(), *registry.AGENTS.values(), *registry.ENGINES.values(), "ensemblepp.runs.block")
