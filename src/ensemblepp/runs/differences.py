"""How two specifications differ, in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

#: Stands for a value that is not there.
_ABSENT = object()


def differences(before: Any, now: Any, place: str = "") -> Iterator[str]:
    """A text for every value that changed, such as "agent.options.noise: was 0.1, is 0.2"."""
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in dict.fromkeys([*before, *now]):
            yield from differences(before.get(key, _ABSENT), now.get(key, _ABSENT), f"{place}.{key}".lstrip("."))
    elif isinstance(before, list) and isinstance(now, list) and len(before) == len(now) and before != now:
        for position, (one, other) in enumerate(zip(before, now, strict=True)):
            yield from differences(one, other, f"{place}.{position}")
    elif before is _ABSENT:
        yield f"{place}: is {_shown(now)}, was not there"
    elif now is _ABSENT:
        yield f"{place}: was {_shown(before)}, is not there any more"
    elif before != now:
        yield f"{place}: was {_shown(before)}, is {_shown(now)}"


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
