# What all rules share: the checked configuration, wildcard constraints, the target list and the words at start and end.
import json
import os
import sys
import time
from pathlib import Path

# the package and the Python of this snakemake, wherever it was started from
SOURCE = str(Path(workflow.basedir, "src"))
sys.path.insert(0, SOURCE)
for variable, folder in {
    "PATH": str(Path(sys.executable).parent),
    "PYTHONPATH": SOURCE,
}.items():
    others = os.environ.get(variable)
    os.environ.update({variable: f"{folder}{os.pathsep}{others}" if others else folder})

from ensemblepp.config import canonical_json, load
from ensemblepp.data import load as load_dataset
from ensemblepp.data.sources import MIRROR_VARIABLE
from ensemblepp.errors import ConfigError, ResultError
from ensemblepp.fingerprint import fingerprint

try:
    CONFIG = load(config)
except ConfigError as error:
    print(error, file=sys.stderr)
    sys.exit(1)

# to the jobs by the environment, not by `params`: where a verified file came from is no reason to fetch it again
if CONFIG.mirror_folder:
    os.environ.update({MIRROR_VARIABLE: CONFIG.mirror_folder})

RESULTS = CONFIG.results
STUDIES = CONFIG.active_studies()


wildcard_constraints:
    scale=CONFIG.scale,
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


def wanted(_wildcards):
    """What `all` asks for: every study's run files, dataset, figures and tables, but for studies whose data cannot be had."""
    # asked only when `all` is asked for: a job of a cluster, or one named target, never probes the network
    from ensemblepp.availability import left_out

    missing = left_out(CONFIG, detail=not CONFIG.skips_unreachable)
    if missing and not CONFIG.skips_unreachable:
        for study, reason in missing.items():
            print(f"error: study '{study}' cannot run: {reason}", file=sys.stderr)
        sys.exit(1)
    config["left_out"] = {STUDIES[study].title: reason for study, reason in missing.items()}
    say_left_out()
    # run files and datasets too: Snakemake makes a deleted one anew only if it is asked for
    return [path for study in STUDIES if study not in missing for path in CONFIG.files(study)]


def say_left_out():
    for title, reason in config.get("left_out", {}).items():
        print(f"Left out: {title}: {reason}.", file=sys.stderr)


def raw_files(wildcards):
    return [f"data/raw/{file.name}" for file in load_dataset(wildcards.dataset).RAW]


def block(wildcards):
    """The run block that a run file's path names."""
    numbers = (int(wildcards[name]) for name in ("ensemble_size", "horizon", "first", "last"))
    return CONFIG.block(wildcards.environment, wildcards.agent, *numbers)


def run_files(wildcards):
    return [block.path for block in CONFIG.blocks(wildcards.study)]


def grid(wildcards):
    return STUDIES[wildcards.study].scales[CONFIG.scale]


def declared(kind):
    """The figures or tables that any study declares."""
    return sorted({name for study in CONFIG.studies.values() for name in getattr(study, kind)})


def make_report():
    """The report, once everything in it exists; not after a run for single targets."""
    from ensemblepp.report import make

    try:
        print(f"Report: {make(CONFIG)}", file=sys.stderr)
    except ResultError as error:
        print(f"No report: {error}", file=sys.stderr)


STARTED = time.time()


def record(outcome):
    """A line per call of Snakemake: how long it took, for the provenance of published results."""
    path = Path("logs", CONFIG.scale, "invocations.jsonl")
    path.parent.mkdir(parents=True, exist_ok=True)
    facts = {
        "command": " ".join(["snakemake", *sys.argv[1:]]),
        "cores": workflow.cores,
        "outcome": outcome,
        "seconds": round(time.time() - STARTED, 1),
        "started": time.strftime("%Y-%m-%dT%H:%M:%S%z", time.localtime(STARTED)),
    }
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(facts) + "\n")


onsuccess:
    record("success")
    make_report()
    say_left_out()


onerror:
    record("error")
    say_left_out()
