"""A target that a user names on Snakemake's command line: is it one, and which was meant?"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping

from ensemblepp import registry
from ensemblepp.config.checks import horizon_faults
from ensemblepp.config.resolution import Config
from ensemblepp.errors import ConfigError, one_of

#: Results of one scale, as its folder begins.
_SCALE = re.compile(r"results/(smoke|quick|paper)/")


def faults_of_wildcards(config: Config, target: str, wildcards: Mapping[str, str]) -> Iterator[str]:
    """Why a file that some rule would make cannot be made: a name that there is not, or rounds that the data do not have."""
    known = {
        "study": config.active_studies(),
        "environment": config.environments,
        "agent": config.agents if wildcards.get("agent") in config.agents else config.named_agents,
        "dataset": [*registry.DATASETS, *config.datasets],
        "model": config.language_models,
    }
    faults = [
        f"target '{target}': {key}: found '{wildcards[key]}': {one_of(names, wildcards[key])}"
        for key, names in known.items()
        if key in wildcards and wildcards[key] not in names
    ]
    yield from faults
    if faults or "ensemble_size" not in wildcards:
        return
    numbers = {key: int(wildcards[key]) for key in ("ensemble_size", "horizon", "first", "last")}
    try:
        config.block(wildcards["environment"], wildcards["agent"], **numbers)
    except ConfigError as error:
        yield f"target '{target}': {error}"
    yield from horizon_faults(config, f"target '{target}'", numbers["horizon"], wildcards["environment"])


def unknown(config: Config, target: str, rules: Collection[str]) -> str:
    """What to say of a target that is no rule, no file that is there, and nothing that a rule makes.

    Args:
        config: the configuration.
        target: as the user wrote it.
        rules: names of rules that can be asked for.
    """
    scale = _SCALE.match(target)
    if scale and scale[1] != config.scale:
        return f"target '{target}': the scale is '{config.scale}'; add --config scale={scale[1]}"
    for name, reason in config.awaiting().items():
        if target in (name, f"study_{name.replace('-', '_')}"):
            return f"target '{target}': {reason}"
    studies = {f"study_{name.replace('-', '_')}": name for name in config.active_studies()}
    files = [path for study in studies.values() for path in config.files(study)] if "/" in target else []
    # a study goes by its own name too
    words = [*rules, *files, *studies.values()]
    near = next(iter(difflib.get_close_matches(target, words, n=1)), "")
    meant = next((rule for rule, name in studies.items() if name == near), near)
    here = f"studies at scale {config.scale}: {', '.join(studies)}"
    return f"target '{target}': no rule and no file of that name; {here}" + (f"; did you mean '{meant}'?" if meant else "")
