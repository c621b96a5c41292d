"""Commands that run agents: by hand, as jobs of the workflow, and for them."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from pathlib import Path
from typing import Any

from ensemblepp.arguments import output
from ensemblepp.cli.shared import presentation, print_rows, unedited
from ensemblepp.errors import ConfigError

#: What `quickstart` compares, the yardstick first, and with which ensembles.
QUICK_AGENTS, QUICK_SIZES = ("ts", "ensemble++-only-gaussian-sphere", "ensemble-sampling"), (2, 8, 32)
QUICK_ENVIRONMENT = "finite-d10-100"


def quickstart(options: argparse.Namespace) -> None:
    from ensemblepp.figures import SUFFIXES

    output(options.output, [f".{suffix}" for suffix in SUFFIXES])

    from ensemblepp.runs.comparison import compare

    dataset = compare(QUICK_AGENTS, QUICK_ENVIRONMENT, options.horizon, options.seeds, ensemble_sizes=QUICK_SIZES)
    print(f"regret after {options.horizon:,} rounds minus that of TS, mean of {options.seeds} paired seeds and 95 % interval:")
    found = dataset.bandit.differences()
    rows = found[["agent", "M", "difference", "95 % low", "95 % high"]].itertuples(index=False)
    print_rows(
        [("agent", "M", "difference", "from", "to"), *((agent, size, *(f"{x:.1f}" for x in xs)) for agent, size, *xs in rows)]
    )
    dataset.bandit.plot().savefig(options.output)
    print(options.output)


def simulate(options: argparse.Namespace) -> None:
    from ensemblepp.errors import InterfaceError

    if options.spec:
        if options.output is None:
            raise ConfigError("--spec: names no run file; give --output too")
        spec, path, code = options.spec, options.output, options.code
    else:
        # only here: a job of the workflow is told all that this knows
        spec, path, code = _by_hand(options)
    output(path, [".nc"])

    from ensemblepp.runs import requirements
    from ensemblepp.runs.job import simulate
    from ensemblepp.runs.progress import Progress
    from ensemblepp.specification import Block

    requirements.require(spec)

    first, last = spec["seeds"]
    environment, agent = spec["environment"]["name"], spec["agent"]["name"]
    name = f"{environment} {agent} M={spec['ensemble_size']} seeds {first}-{last}"
    try:
        if not options.spec and (words := requirements.announced(spec)):
            print(f"{name}: {words}", file=sys.stderr, flush=True)
        with (
            unedited(code, Block("", spec).code, path, path.with_suffix(".json")),
            Progress(spec["horizon"] * (last - first + 1), name) as progress,
            progress.telling_of_compilation(),
        ):
            simulate(spec, path, code=code, on_step=progress.step)
    except InterfaceError as error:
        raise InterfaceError(f"agent '{agent}' in environment '{environment}': {error}") from error
    if not options.spec:
        from ensemblepp.runs.by_hand import regret_in_words

        # not on standard output, which is the path for whoever calls this from a script
        for line in regret_in_words(path):
            print(line, file=sys.stderr)
        print(f"to draw it: python -m ensemblepp plot {path}", file=sys.stderr, flush=True)
        print(path)


def _by_hand(options: argparse.Namespace) -> tuple[dict[str, Any], Path, str]:
    """What a block is, from names and numbers: its specification, its run file, and the fingerprint of its code."""
    from ensemblepp.config.checks import horizon_faults
    from ensemblepp.config.loading import read_files
    from ensemblepp.runs.fingerprint import fingerprint

    config = read_files()
    for option, allowed in (("environment", config.environments), ("agent", config.named_agents)):
        if getattr(options, option) is None:
            raise ConfigError(f"--{option}: must be given; it is one of {', '.join(allowed)}")
    parts = options.seeds.split("-")
    if len(parts) != 2 or not all(part.isascii() and part.isdigit() for part in parts):
        raise ConfigError(f"--seeds: found '{options.seeds}': must be a range such as 0-9")
    first, last = map(int, parts)
    block = config.block(options.environment, options.agent, options.ensemble_size, options.horizon, first, last)
    faults = list(horizon_faults(config, "--horizon", options.horizon, options.environment))
    if faults:
        raise ConfigError("\n".join(faults))
    return block.spec, options.output or Path(block.path), fingerprint(*block.code)


def plot(options: argparse.Namespace) -> None:
    from ensemblepp.figures import SUFFIXES
    from ensemblepp.runs.by_hand import plot

    output(options.output, [f".{suffix}" for suffix in SUFFIXES])
    plot(options.runs, options.output, presentation("figures", options.figure))
    print(options.output)


def resume(_options: argparse.Namespace) -> None:
    from ensemblepp.runs.controllers import last

    arguments = last()
    print(shlex.join(["snakemake", *arguments]), file=sys.stderr, flush=True)
    # the workflow puts in order what the process before has left
    os.execv(sys.executable, [sys.executable, "-m", "snakemake", *arguments])
