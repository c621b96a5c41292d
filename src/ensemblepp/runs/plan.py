"""What a study's aggregation needs to know: its runs with their specifications and code, and the names they are shown by.

A plan is plain JSON, so that aggregation depends on what the configuration says and not on how it is read. Ensemble sizes and
seeds are listed beside specifications that leave them out: the whole fits on a command line at any scale, or does when packed.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from typing import Any

from ensemblepp.config.agents import PairAgent
from ensemblepp.config.fields import canonical_json
from ensemblepp.config.resolution import Config
from ensemblepp.runs.fingerprint import fingerprint

#: Characters of a plan that is handed on as it is: Linux takes 128 KiB for one argument, and a shell's command is one.
LONGEST = 100_000


def plan(config: Config, study: str) -> dict[str, Any]:
    """The plan of a study at the configuration's scale; `runs.aggregate.aggregate` says what it holds."""
    declared = config.studies[study]
    grid = declared.scales[config.scale]
    seed_blocks = list(grid.seed_blocks())
    shown_by: dict[str, list[str]] = {}
    for name in declared.agents:
        shown_by.setdefault(config.runner(name), []).append(name)
    runs = []
    for environment in grid.environments:
        for agent, shown in shown_by.items():
            names = [name for name in shown if config.takes_part(study, name, environment)]
            if not names:
                continue
            sizes = config.sizes(agent, grid)
            block = config.block(environment, agent, sizes[0], grid.horizon, *seed_blocks[0])
            shared = {key: value for key, value in block.spec.items() if key not in ("ensemble_size", "seeds")}
            runs.append({"agents": names, "sizes": sizes, "spec": shared, "code": fingerprint(*block.code)})
    return {
        "study": study,
        "title": declared.title,
        "scale": config.scale,
        "results": config.results,
        "horizon": grid.horizon,
        "seed_blocks": seed_blocks,
        # lists, since keys are sorted on a command line
        "environments": [{"name": name, "title": config.environments[name].title} for name in grid.environments],
        "agents": [{"name": name} | _shown(config, name) for name in declared.agents],
        "runs": runs,
    }


def _shown(config: Config, name: str) -> dict[str, str]:
    """An agent's label; for a pair, the laws that pick its chain."""
    agent = config.agents[name]
    if isinstance(agent, PairAgent):
        return {"label": agent.label, "reference": agent.reference, "perturbation": agent.perturbation}
    return {"label": agent.label}


def packed(plan: Mapping[str, Any]) -> str:
    """A plan for the command line: JSON, compressed where it is long; `arguments.plan` reads either."""
    text = canonical_json(plan)
    return text if len(text) <= LONGEST else f"zlib:{base64.b64encode(zlib.compress(text.encode(), 9)).decode()}"
