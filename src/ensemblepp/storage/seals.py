"""The seal of a file: a last line that holds the checksum of all bytes before it, compared before anything else reads them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import BinaryIO

from ensemblepp.errors import ResultError

#: The last line of a sealed file.
SEAL = b"\nsha256 %s\n"
SEAL_LENGTH = len(SEAL % bytes(64))

#: Bytes that are read at once.
_CHUNK = 1 << 20


def add_seal(path: str | Path) -> None:
    """Write the last line of a file that is otherwise complete."""
    with Path(path).open("r+b") as file:
        length = file.seek(0, 2)
        line = _line(file, length)
        file.seek(length)
        file.write(line)


def check_seal(path: str | Path, remedy: str) -> None:
    """Compare a file with its last line.

    Args:
        path: the file.
        remedy: what to do about a file that is not as it was written, for the message.

    Raises:
        ResultError: the file cannot be read, has no seal or was changed since it was sealed.
    """
    try:
        with Path(path).open("rb") as file:
            length = max(file.seek(0, 2) - SEAL_LENGTH, 0)
            file.seek(length)
            found = file.read()
            expected = _line(file, length)
    except OSError as error:
        raise ResultError(f"{path}: cannot be read ({error}); {remedy}") from error
    if not found.startswith(SEAL.split(b"%")[0]):
        raise ResultError(f"{path}: unfinished, or not written by this project (it does not end with its checksum); {remedy}")
    if found != expected:
        raise ResultError(f"{path}: damaged (its content differs from its checksum); {remedy}")


def _line(file: BinaryIO, length: int) -> bytes:
    """The last line of a file whose first `length` bytes are its content."""
    digest = hashlib.sha256()
    file.seek(0)
    while length > 0 and (part := file.read(min(length, _CHUNK))):
        digest.update(part)
        length -= len(part)
    return SEAL % digest.hexdigest().encode()
