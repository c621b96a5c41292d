"""Vectors under the digests of what they were made of: what was made once is found again, by whoever asks.

A file of the folder holds vectors in the order in which they were made, is written whole and never changed, and is named by its
content. So several processes may write to one folder, and at worst make a vector twice. Nothing is read from a file before its
seal is compared (`storage.seals`); one that is damaged is named and removed, and its vectors count as never made.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ensemblepp.errors import ResultError
from ensemblepp.storage import leftovers
from ensemblepp.storage.datasets import atomic_path
from ensemblepp.storage.seals import add_seal, check_seal

#: Bytes of a key.
KEY_LENGTH = 32

_SUFFIX = ".vectors"
_REMEDY = "it is removed, and its vectors are made anew"


class VectorStore:
    """The vectors in a folder, and those that are added.

    Args:
        folder: where they are; it is made with the first of them.
    """

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        self._numbers: dict[bytes, int] = {}
        self._files: list[Path] = []
        self._starts = [0]  # the number of each file's first vector, and of the next file's
        if self._folder.exists():
            leftovers.clear(self._folder)
        for path in sorted(self._folder.glob(f"[!.]*{_SUFFIX}")):
            try:
                keys = _load(path)["key"].tobytes()
            except ResultError as error:
                print(error, file=sys.stderr, flush=True)
                path.unlink(missing_ok=True)
            else:
                self._note(path, [keys[start : start + KEY_LENGTH] for start in range(0, len(keys), KEY_LENGTH)])

    def __contains__(self, key: bytes) -> bool:
        return key in self._numbers

    def add(self, keys: Sequence[bytes], vectors: np.ndarray) -> None:
        """Keep `vectors`, (keys, width) float32, for later processes too.

        Raises:
            OSError: they cannot be written.
        """
        table = np.empty(len(keys), _kind(vectors.shape[1]))
        table["key"] = np.frombuffer(b"".join(keys), np.uint8).reshape(-1, KEY_LENGTH)
        table["vector"] = vectors
        path = self._folder / f"{hashlib.sha256(table.tobytes()).hexdigest()[:32]}{_SUFFIX}"
        with atomic_path(path) as temporary:
            with temporary.open("wb") as file:
                np.save(file, table, allow_pickle=False)
            add_seal(temporary)
        self._note(path, keys)

    def take(self, keys: Sequence[bytes]) -> np.ndarray:
        """The vectors of `keys`, (keys, width) float32.

        Raises:
            KeyError: there is none of a key.
            ResultError: a file was damaged since it was found.
        """
        numbers = np.array([self._numbers[key] for key in keys])
        files = np.searchsorted(self._starts, numbers, side="right") - 1
        result = None
        for file in np.unique(files):
            # read from the disk as far as it is asked for, and given back at once
            vectors = _load(self._files[file], sealed=True)["vector"]
            if result is None:
                result = np.empty((len(keys), vectors.shape[1]), np.float32)
            places = files == file
            result[places] = vectors[numbers[places] - self._starts[file]]
        return np.empty((0, 0), np.float32) if result is None else result

    def _note(self, path: Path, keys: Sequence[bytes]) -> None:
        self._files.append(path)
        # the first of equal ones, whose place is as good as any
        for number, key in enumerate(keys, self._starts[-1]):
            self._numbers.setdefault(key, number)
        self._starts.append(self._starts[-1] + len(keys))


def _kind(width: int) -> np.dtype:
    return np.dtype([("key", np.uint8, (KEY_LENGTH,)), ("vector", np.float32, (width,))])


def _load(path: Path, sealed: bool = False) -> np.ndarray:
    """The table of a file, on the disk still; `sealed` says that its seal was compared before.

    Raises:
        ResultError: it is damaged or of another kind.
    """
    if not sealed:
        check_seal(path, _REMEDY)
    try:
        table = np.load(path, mmap_mode="r", allow_pickle=False)
        if table.dtype != _kind(table.dtype["vector"].shape[0]):
            raise ValueError("another type of table")
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise ResultError(f"{path}: holds no vectors ({error}); {_REMEDY}") from error
    return table
