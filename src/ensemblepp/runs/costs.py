"""What a study would cost: its missing run blocks are played for a few rounds, and their CPU time is carried on."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.polynomial import Polynomial
from scipy.optimize import nnls

from ensemblepp.config.fields import canonical_json
from ensemblepp.config.resolution import Config
from ensemblepp.engines.choice import simulate
from ensemblepp.environments.pool import Pool
from ensemblepp.runs.availability import not_downloaded
from ensemblepp.runs.block import build
from ensemblepp.runs.budget import costs_alike
from ensemblepp.runs.machine import machine
from ensemblepp.specification import Block
from ensemblepp.storage.datasets import read_json, write_json

#: Rounds of the short runs, beyond the warm-up of the neural agents; and of agents whose rounds get longer: a bend shows late.
ROUNDS, LONGER = (200, 300, 400), (200, 400, 800)


def estimate(config: Config, study: str, on_block: Callable[[str], None] = lambda name: None) -> str:
    """CPU hours of the blocks of `study` that do not exist, in words; what they need if their data are not here.

    Blocks that differ in their seeds and in options that cost nothing cost the same, and one of them is measured. What is said
    is kept for `measured`. `on_block` is told which block is measured next.
    """
    missing = [block for block in config.blocks(study) if not Path(block.path).exists()]
    if not missing:
        return "its figures and tables are missing"
    absent = sorted({path for block in missing for path in block.inputs if not Path(path).exists()})
    if absent and (models := not_downloaded(config, study)):
        words = f"needs the language model{'s' * (len(models) > 1)} {' and '.join(models)}"
    elif absent:
        words = f"needs `{absent[0]}`" + (f" and {len(absent) - 1} more files" if len(absent) > 1 else "")
    else:
        hours = _hours(missing, on_block)
        words = f"about {hours:.1f} CPU hours for {len(missing)} run blocks, measured on {machine()['processor']}"
    write_json(_records(config) | {study: {"words": words, "blocks": asked(config, study)}}, _file(config))
    return words


def measured(config: Config, study: str, published: Mapping[str, Any] | None = None) -> dict[str, str] | None:
    """What `estimate` said last of a study, as "words" and the digest of its "blocks"; None where nothing holds any more.

    Args:
        config: the configuration.
        study: the study.
        published: such records by study, asked after those of this machine.
    """
    digest = asked(config, study)
    for records in (_records(config), published or {}):
        if isinstance(record := records.get(study), dict) and record["blocks"] == digest:
            return record
    return None


def not_measured(config: Config, study: str) -> str:
    """What to say of a study whose cost is unknown."""
    return f"not measured: `python -m ensemblepp cost --study {study} --scale {config.scale}`"


def _hours(blocks: Sequence[Block], on_block: Callable[[str], None]) -> float:
    """CPU hours of all `blocks`."""
    seconds: dict[str, float] = {}
    total = 0.0
    for block in blocks:
        first, last = block.spec["seeds"]
        alike = canonical_json(costs_alike(block.spec) | {"seeds": last - first})
        if alike not in seconds:
            on_block(block.path)
            seconds[alike] = block_seconds(block)
        total += seconds[alike]
    return total / 3600


def asked(config: Config, study: str) -> str:
    """16 hex digits that change with the run blocks of a study."""
    return hashlib.sha256(canonical_json([block.spec for block in config.blocks(study)]).encode()).hexdigest()[:16]


def _records(config: Config) -> dict[str, Any]:
    path = _file(config)
    return read_json(path, "delete it") if path.exists() else {}


def _file(config: Config) -> Path:
    return Path("logs", config.scale, "costs.json")


def block_seconds(block: Block) -> float:
    """CPU seconds that a block would take, by least squares on three short runs of all its seeds.

    They are a line in the rounds. For agents whose rounds get longer (attribute `cost_degree` of the class) they are a
    polynomial up to as many rounds as there are different actions, and its tangent from there on: nothing new can come then.
    No coefficient is negative: what noise in the short runs says of their bend would be carried far.
    """
    horizon = block.spec["horizon"]
    environment, agent = build(block.spec | {"device": "cpu"})
    degree = getattr(agent, "cost_degree", 1)
    growing = min(horizon, environment.means.shape[-1]) if isinstance(environment, Pool) else horizon
    # the short runs have their own
    del environment, agent
    rounds = [min(count, horizon) for count in (LONGER if degree > 1 else ROUNDS)]
    # compiling is no cost of a run
    _seconds(block, min(rounds[0], 10))
    spent = [_seconds(block, count) for count in rounds]
    if horizon <= rounds[-1]:
        return spent[-1]
    # in units of the longest run, so that the columns are of one size
    coefficients, _ = nnls((np.array(rounds)[:, None] / rounds[-1]) ** np.arange(degree + 1), spent)
    cost, unit = Polynomial(coefficients), rounds[-1]
    return float(cost(growing / unit) + cost.deriv()(growing / unit) * (horizon - growing) / unit)


def _seconds(block: Block, rounds: int) -> float:
    # the specification's horizon, as some settings follow from it
    environment, agent = build(block.spec | {"device": "cpu"})
    start = time.process_time()
    simulate(environment, agent, rounds)
    return time.process_time() - start
