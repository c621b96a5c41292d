"""What was found out about source texts, kept beside the package's bytecode for the next process.

A plan reads some two hundred modules as syntax trees, and hardly one of them differs from the plan before. What is kept is
found by the digest of the whole text and by that of the code that found it out, so that nothing of it can be out of date; a
damaged file, or one that cannot be written, costs the time that it would have saved.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import importlib.util
import json
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ensemblepp.storage import leftovers

#: Of so many texts something is kept at most; of more, of those alone that this process asked for.
MOST = 2000

#: Whose answers are kept.
_ASKING = ("fingerprint.py", "remembered.py")

_asked: set[str] = set()
_is_new = False


def keep(text: str, question: str, answer: Callable[[], Any]) -> Any:
    """What `answer` returns, of JSON's types, or returned earlier for an equal text and question.

    Args:
        text: a source.
        question: what is asked of it; of one text, each question has one answer.
        answer: called if nothing is kept.
    """
    global _is_new
    key = hashlib.sha256(text.encode()).hexdigest()
    answers = _kept().setdefault(key, {})
    _asked.add(key)
    if question not in answers:
        answers[question] = answer()
        _is_new = True
    return answers[question]


def path() -> Path:
    """The file for this Python and this package's code."""
    folder = Path(__file__).parent
    sources = b"".join((folder / name).read_bytes() for name in _ASKING)
    digest = hashlib.sha256(sources + sys.version.encode()).hexdigest()[:16]
    return Path(importlib.util.cache_from_source(str(folder / "remembered.py"))).with_suffix(f".{digest}.json")


def save() -> None:
    """Write what is new, for other processes, where Python keeps bytecode; one that ends in the usual way does so by itself."""
    global _is_new
    if not _is_new or sys.dont_write_bytecode:
        return
    kept = _kept()
    if len(kept) > MOST:
        kept = {key: kept[key] for key in _asked}
    content = json.dumps(kept, separators=(",", ":")).encode()
    place = path()
    # not by `storage.datasets`, which loads xarray in every plan
    partial = place.with_name(f"{leftovers.prefix(place.stem)}{uuid.uuid4().hex}")
    with contextlib.suppress(OSError):
        place.parent.mkdir(exist_ok=True)
        leftovers.clear(place.parent)
        try:
            partial.write_bytes(hashlib.sha256(content).hexdigest().encode() + b"\n" + content)
            partial.replace(place)
        finally:
            partial.unlink(missing_ok=True)
        for old in place.parent.glob(f"remembered.{sys.implementation.cache_tag}.*.json"):
            if old != place:
                old.unlink(missing_ok=True)
    _is_new = False


@functools.cache
def _kept() -> dict[str, dict[str, Any]]:
    """Of every text, by its digest, the answers."""
    # a process that is forked from this one ends without it
    atexit.register(save)
    try:
        checksum, _, content = path().read_bytes().partition(b"\n")
    except OSError:
        return {}
    return json.loads(content) if hashlib.sha256(content).hexdigest().encode() == checksum else {}
