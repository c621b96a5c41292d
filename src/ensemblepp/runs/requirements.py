"""What a run block takes, said before it starts: memory at least, from its specification; time, from short runs."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ensemblepp.errors import ConfigError
from ensemblepp.specification import Block
from ensemblepp.trajectory import MAX_STORED_ACTIONS, stored_rounds

#: Rounds, of all seeds together, that take minutes or more.
LONG = 1_000_000

#: What a trained number takes: itself, its gradient and Adam's two moments, float32.
_TRAINED = 4 * 4


def require(spec: Mapping[str, Any]) -> None:
    """Leave before memory runs out.

    Raises:
        ConfigError: the block takes more than there is; names the largest part.
    """
    parts, there = least(spec), available()
    if sum(parts.values()) > there:
        largest = max(parts, key=parts.__getitem__)
        raise ConfigError(
            f"{spec['agent']['name']} in {spec['environment']['name']} needs at least {_size(sum(parts.values()))} of memory, "
            f"of which {_size(parts[largest])} for {largest}; there are {_size(there)} here"
        )


def announced(spec: Mapping[str, Any]) -> str:
    """What a long block takes, in words, from short runs of two of its seeds; empty for one of less than `LONG` rounds."""
    first, last = spec["seeds"]
    seeds = last - first + 1
    if seeds * spec["horizon"] < LONG:
        return ""
    from ensemblepp.runs.costs import block_seconds  # only here: jobs of the workflow never ask

    two = Block("", {**spec, "seeds": [first, min(last, first + 1)]})
    seconds = block_seconds(two) * seeds / min(seeds, 2)
    units = (("days", 86400), ("hours", 3600), ("minutes", 60))
    unit, length = next((pair for pair in units if seconds >= pair[1]), units[-1])
    return f"about {seconds / length:.1f} {unit} of one core, and {_size(sum(least(spec).values()))} of memory at least"


def least(spec: Mapping[str, Any]) -> dict[str, int]:
    """Bytes that a block takes at least, by what takes them; classes of the user's count as nothing."""
    environment, agent = spec["environment"]["options"], spec["agent"]["options"]
    seeds = spec["seeds"][1] - spec["seeds"][0] + 1
    chains = len(agent.get("references", (0,))) * len(agent.get("perturbations", (0,)))
    dimension, members = environment.get("dimension", 1), spec["ensemble_size"]
    parts = {"what is recorded": seeds * chains * 12 * len(stored_rounds(chains, spec["horizon"], False))}
    parts["what is recorded"] += 4 * min(seeds * chains * spec["horizon"], MAX_STORED_ACTIONS)
    kind = spec["environment"]["kind"]
    if kind == "linear_finite":
        together = 1 if spec["engine"] == "linear_compiled" else seeds
        parts["decision sets"] = together * environment["actions"] * dimension * 8
    if "candidates" in environment:
        parts["candidate actions"] = seeds * environment["candidates"] * dimension * 4
    if kind == "quadratic":
        parts["the quadratic form"] = seeds * dimension**2 * 8
    if kind == "neural":
        parts["the environment's networks"] = seeds * _weights([dimension, *environment["hidden"]]) * 4
    if "hidden" in agent:
        widths = [dimension, *agent["hidden"]]
        trained = _weights(widths) + widths[-1] * members
        parts["the agent's networks"] = seeds * chains * trained * _TRAINED
    elif "folder" in agent:
        weights = sum(file.stat().st_size for file in Path(agent["folder"]).glob("*.safetensors"))
        parts["the agent's language models"] = seeds * chains * weights * _TRAINED // 4
    elif kind.startswith("linear"):
        parts["covariances and ensembles"] = chains * dimension * (dimension * 8 + members * 4)
    return parts


def available() -> int:
    """Bytes of memory that a process may take here: the machine's, or what its control group allows."""
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        allowed = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
    except OSError:
        return most
    return min(most, int(allowed)) if allowed.isdigit() else most


def _weights(widths: list[int]) -> int:
    return sum(first * second for first, second in itertools.pairwise(widths))


def _size(count: int) -> str:
    return f"{count / 1e9:,.1f} GB"
