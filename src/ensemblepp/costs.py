"""What a study would cost: its missing run blocks are played for a few rounds, and their CPU time is carried on."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from ensemblepp.config import Block, Config
from ensemblepp.simulate import simulate

#: Rounds of the short runs, beyond the warm-up of the neural agents.
ROUNDS = (300, 600, 900)


def estimate(config: Config, study: str) -> str:
    """CPU hours of the blocks of `study` that do not exist, in words; what they need if their data are not here."""
    missing = [block for block in config.blocks(study) if not Path(block.path).exists()]
    absent = sorted({path for block in missing for path in block.inputs if not Path(path).exists()})
    if absent:
        return f"needs `{absent[0]}`" + (f" and {len(absent) - 1} more files" if len(absent) > 1 else "")
    hours = sum(block_seconds(block) for block in missing) / 3600
    return f"about {hours:.1f} CPU hours for {len(missing)} run blocks" if missing else "its figures and tables are missing"


def block_seconds(block: Block) -> float:
    """CPU seconds that a block would take, by least squares on three short runs of all its seeds.

    They are a line in the rounds, or for agents whose rounds get longer (attribute `cost_degree` of the class) a polynomial.
    """
    from ensemblepp.blocks import load_class

    horizon = block.spec["horizon"]
    degree = getattr(load_class(block.spec["agent"]["class"]), "cost_degree", 1)
    rounds = [min(count, horizon) for count in ROUNDS]
    # compiling is no cost of a run
    _seconds(block, min(rounds[0], 10))
    spent = [_seconds(block, count) for count in rounds]
    if horizon <= rounds[-1]:
        return spent[-1]
    coefficients = np.polynomial.polynomial.polyfit(rounds, spent, degree)
    return float(np.polynomial.polynomial.polyval(horizon, coefficients))


def _seconds(block: Block, rounds: int) -> float:
    import torch  # only here: the workflow is parsed without it

    from ensemblepp.blocks import load_class

    torch.set_num_threads(1)
    spec = block.spec
    seeds = range(spec["seeds"][0], spec["seeds"][1] + 1)
    environment = load_class(spec["environment"]["class"])(seeds, **spec["environment"]["options"])
    agent = load_class(spec["agent"]["class"])(
        seeds,
        dimension=environment.dimension,
        ensemble_size=spec["ensemble_size"],
        # as the full run has it: some settings follow from it
        horizon=spec["horizon"],
        device="cpu",
        **spec["agent"]["options"],
    )
    start = time.process_time()
    simulate(environment, agent, rounds)
    return time.process_time() - start
