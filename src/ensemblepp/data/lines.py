"""Files of lines: reading them strictly, and telling which lines are not the publisher's.

Every fault is a `DataError` that names the file, the line, what was expected and what was found. Faults that no line
shows by itself (lines swapped, a field changed into another allowed one) are found by comparing short digests of blocks
of lines with those of the publisher's file, which are kept in the folder `checksums`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib import resources
from itertools import zip_longest
from pathlib import Path
from typing import NoReturn

from ensemblepp.errors import DataError

BLOCK = 100
"""Lines per digest."""
_DIGITS = 8
_SHOWN = 60


def fail(path: str | Path, line: int, reason: str, expected: str, found: str) -> NoReturn:
    """Raise the `DataError` of one faulty line (counted from 1)."""
    raise DataError(f"{path}, line {line}: {reason} (expected {expected}, found {found})")


def shown(text: str | bytes) -> str:
    """`text` quoted, with control characters visible, and cut to a readable length."""
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}..."


def numbered_lines(path: str | Path, rows: int) -> Iterator[tuple[int, str]]:
    """Yield (number from 1, line without its newline) for each of the `rows` lines of an ASCII file.

    Raises:
        DataError: the file is empty, holds bytes that are not ASCII text, ends inside a line, or has too few or too
            many lines; a file that ends too early names its last line.
    """
    number = 0
    with Path(path).open("rb") as file:
        for number, line in enumerate(file, start=1):
            if number > rows:
                fail(path, number, "the file goes on too long", f"{rows:,} lines", f"{shown(line)} after them")
            try:
                text = line.decode("ascii")
            except UnicodeDecodeError as error:
                fail(path, number, "not text", "ASCII characters only", f"byte 0x{line[error.start]:02x}")
            if not text.endswith("\n"):
                fail(path, number, "the file is cut inside this line", f"{rows:,} whole lines", shown(text))
            yield number, text.removesuffix("\n")
    if number == 0:
        fail(path, 1, "the file is empty", f"{rows:,} lines", "none")
    if number < rows:
        fail(path, number, "the file ends after this line", f"{rows:,} lines", f"{number:,}")


def block_digests(path: str | Path) -> list[str]:
    """The first 8 hexadecimal digits of the sha256 of each block of 100 lines (the last one may be shorter)."""
    lines = Path(path).read_bytes().splitlines(keepends=True)
    blocks = (b"".join(lines[start : start + BLOCK]) for start in range(0, len(lines), BLOCK))
    return [hashlib.sha256(block).hexdigest()[:_DIGITS] for block in blocks]


def checksum_text(path: str | Path) -> str:
    """The content of `checksums/<name>.txt` for the publisher's file at `path`: a header, then one digest a line.

    To make that file anew (only if the publisher's file changes, with its sha256 verified):
    `Path("checksums", path.name + ".txt").write_text(checksum_text(path))`.
    """
    header = (
        f"# {Path(path).name}: the first {_DIGITS} hexadecimal digits of the sha256 of each block of {BLOCK} lines,\n"
        "# in order; made by ensemblepp.data.lines.checksum_text from the file whose sha256 the parser states.\n"
    )
    return header + "".join(f"{digest}\n" for digest in block_digests(path))


def check_blocks(path: str | Path, name: str, problem: str | None = None) -> None:
    """Check that the lines of the file at `path` are those of the publisher's file `name`, in its order.

    Args:
        path: the file, whose lines were found to be well-formed.
        name: the publisher's file: digests are read from `checksums/<name>.txt`.
        problem: what is already known to be wrong with the file as a whole, for the message.

    Raises:
        DataError: a block differs; names the lines of the first such block.
    """
    text = resources.files("ensemblepp.data").joinpath("checksums", f"{name}.txt").read_text(encoding="ascii")
    expected = [line for line in text.splitlines() if not line.startswith("#")]
    reason = "each line is well-formed, but these are not the publisher's lines in the publisher's order"
    for block, (right, found) in enumerate(zip_longest(expected, block_digests(path))):
        if right != found:
            last = min((block + 1) * BLOCK, Path(path).read_bytes().count(b"\n"))
            raise DataError(
                f"{path}, lines {block * BLOCK + 1}-{last}: {reason} (re-ordered or edited; digest "
                f"expected {right}, found {found}){f'; {problem}' if problem else ''}"
            )
    if problem:
        raise DataError(f"{path}: {problem}")
