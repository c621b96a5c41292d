"""What a run block is: its resolved specification, where its file lies, what it reads, and the code behind its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ensemblepp import registry


@dataclass(frozen=True)
class Block:
    """Consecutive seeds of one (environment, agent, ensemble size, horizon): one job, one file.

    Attributes:
        results: the folder of the scale's results.
        spec: the resolved specification, which is everything that a run depends on beside code and input files:

            environment, agent   {"name", "kind", "options"}, and "class" where the kind is custom; a law of the user's is not
                                 its name but {"name", "function", "normalise"}
            engine               a key of `registry.ENGINES`
            device               "cpu" or "cuda"
            ensemble_size        M; 0 for agents without an ensemble
            horizon              T
            seeds                [first, last]
    """

    results: str
    spec: dict[str, Any]

    @property
    def path(self) -> str:
        """The run file."""
        spec = self.spec
        first, last = spec["seeds"]
        folder = f"{self.results}/runs/{spec['environment']['name']}/{spec['agent']['name']}"
        return f"{folder}/M{spec['ensemble_size']}/T{spec['horizon']}/seeds{first}-{last}.nc"

    @property
    def inputs(self) -> list[str]:
        """The files that the environment reads."""
        files = self.spec["environment"]["options"].get("inputs", {}).values()
        return [path for entry in files for path in ([entry] if isinstance(entry, str) else entry)]

    @property
    def code(self) -> tuple[str, ...]:
        """What its numbers come from, for `runs.fingerprint`: its environment, its agent, its engine, and what runs them."""
        engine = registry.ENGINES[self.spec["engine"]]
        classes = registry.environment_path(self.spec), registry.agent_path(self.spec)
        return *classes, *self._laws, engine, "ensemblepp.runs.block"

    @property
    def _laws(self) -> tuple[str, ...]:
        """The functions of the user's laws (`randomness.distributions.law`)."""
        options = self.spec["agent"]["options"]
        named = [options.get(role, []) for role in ("references", "perturbations", "update")]
        entries = [entry for value in named for entry in (value if isinstance(value, list) else [value])]
        places = {entry["function"] for entry in entries if isinstance(entry, dict) and entry.keys() >= {"name", "function"}}
        return tuple(sorted(places))
