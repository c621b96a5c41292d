# What all rules share: the checked configuration, wildcard constraints, the target list and the words at start and end.
import os
import sys
from pathlib import Path

from snakemake.logging import logger

# the package and the Python of this snakemake, wherever it was started from
os.environ["PATH"] = str(Path(sys.executable).parent) + os.pathsep + os.environ["PATH"]
os.environ["PYTHONPATH"] = str(Path(workflow.basedir, "src")) + os.pathsep + os.environ.get("PYTHONPATH", "")
sys.path.insert(0, str(Path(workflow.basedir, "src")))

from ensemblepp.config import canonical_json, load
from ensemblepp.data.sources import MIRROR_VARIABLE
from ensemblepp.errors import ConfigError, UnreachableError
from ensemblepp.fingerprint import fingerprint

try:
    CONFIG = load(config)
except ConfigError as error:
    print(error, file=sys.stderr)
    sys.exit(1)

# to the jobs by the environment, not by `params`: where a verified file came from is no reason to fetch it again
if CONFIG.mirror_folder:
    os.environ[MIRROR_VARIABLE] = CONFIG.mirror_folder

RESULTS = CONFIG.results
STUDIES = CONFIG.active_studies()
SUFFIXES = {"figure": ("pdf", "png"), "table": ("csv", "md", "tex", "html")}


wildcard_constraints:
    folder=r"[^/]+",
    file=r"[^/]+",
    dataset=r"[^/]+",
    model=r"[^/]+",
    environment=r"[^/]+",
    agent=r"[^/]+",
    ensemble_size=r"\d+",
    horizon=r"\d+",
    first=r"\d+",
    last=r"\d+",
    study=r"[^/]+",
    figure=r"[^/]+",
    table=r"[^/]+",


def artefacts(study):
    """Every file that is presented from one study."""
    declared = STUDIES[study]
    for kind in ("figure", "table"):
        for name in getattr(declared, f"{kind}s"):
            for suffix in SUFFIXES[kind]:
                yield f"{RESULTS}/{kind}s/{study}-{name}.{suffix}"


def wanted(_wildcards):
    """The targets of `rule all`: what every study presents, but for studies whose data cannot be had."""
    # asked only when `all` is asked for: a job of a cluster, or one named target, never probes the network
    from ensemblepp.availability import left_out

    missing = left_out(CONFIG)
    for study, reason in missing.items():
        if not CONFIG.skips_unreachable:
            raise UnreachableError(f"study '{study}' cannot run: {reason}")
    config["left_out"] = {STUDIES[study].title: reason for study, reason in missing.items()}
    if missing:
        logger.warning(left_out_line())
    return [path for study in STUDIES if study not in missing for path in artefacts(study)]


def left_out_line():
    parts = [f"{title} ({reason})" for title, reason in config.get("left_out", {}).items()]
    return f"Left out: {'; '.join(parts)}." if parts else ""


onsuccess:
    if config.get("left_out"):
        print(left_out_line(), file=sys.stderr)
