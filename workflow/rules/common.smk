# What all rules share: the checked configuration, wildcard constraints, the target list and the words at start and end.
import functools
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

from ensemblepp import devices
from ensemblepp.config.fields import canonical_json
from ensemblepp.config.loading import load
from ensemblepp.config.resolution import ARTEFACTS
from ensemblepp.data import load as load_dataset
from ensemblepp.data.sources import MIRROR_VARIABLE
from ensemblepp.errors import ConfigError, ResultError
from ensemblepp.registry import DATASETS
from ensemblepp.runs.fingerprint import fingerprint
from ensemblepp.runs.plan import plan
from ensemblepp.runs.priorities import Priorities
from ensemblepp.warm_start import server as warm_server

try:
    CONFIG = load(config)
except ConfigError as error:
    print(error, file=sys.stderr)
    sys.exit(1)

# to the jobs by the environment, not by `params`: where a verified file came from is no reason to fetch it again
if CONFIG.mirror_folder:
    os.environ.update({MIRROR_VARIABLE: CONFIG.mirror_folder})

# resolved once: a job may run on a machine that sees other devices
os.environ[devices.PLANNED_VARIABLE] = devices.resolve("auto")

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
    from ensemblepp.runs.availability import left_out

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
    """What a data set is prepared from: a table of the user's, or the files that `retrieve` brings."""
    if wildcards.dataset in CONFIG.datasets:
        return [CONFIG.datasets[wildcards.dataset].file]
    return [f"data/raw/{file.name}" for file in load_dataset(wildcards.dataset).RAW]


def table_option(wildcards):
    """How a table of the user's is read, for the command line; empty for any other data set."""
    table = CONFIG.datasets.get(wildcards.dataset)
    return ["--table", canonical_json(table.declared())] if table else []


def data_code(wildcards):
    return fingerprint(DATASETS.get(wildcards.dataset, "ensemblepp.data.table"))


def block(wildcards):
    """The run block that a run file's path names."""
    numbers = (int(wildcards[name]) for name in ("ensemble_size", "horizon", "first", "last"))
    return resolved(wildcards.environment, wildcards.agent, *numbers)


@functools.cache
def resolved(*names):
    """The run block of an environment, agent, ensemble size, horizon, first and last seed."""
    return CONFIG.block(*names)


PRIORITIES = Priorities()


def priority_of(wildcards):
    """The priority of a run block."""
    return PRIORITIES(block(wildcards))


def run_files(wildcards):
    return [block.path for block in CONFIG.blocks(wildcards.study)]


def presentation_code(study):
    """The code of everything that is drawn and tabulated of a study."""
    return [
        place
        for kind in ARTEFACTS
        if getattr(study, kind)
        for place in [f"ensemblepp.{kind}", *(CONFIG.presentation(kind, name) for name in getattr(study, kind))]
    ]


def presented(study, kind):
    """A study's figures or tables as `present` takes them: names, and of the user's where their functions are."""
    own = getattr(CONFIG, kind)
    return [f"{name}={own[name].function}" if name in own else name for name in getattr(study, kind)]


def caption(kind, name):
    """The file that describes a figure or table, from the folder of the rules or of the user's."""
    own = getattr(CONFIG, kind).get(name)
    if own and own.caption_file:
        return str(Path(own.caption_file).absolute())
    return f"../report/{'own' if own else name}.rst"


def own_words(study):
    """What report/own.rst says of the figures and tables of the user's that have no file to describe them."""
    own = [(name, getattr(CONFIG, kind).get(name)) for kind in ARTEFACTS for name in getattr(study, kind)]
    return {name: one.caption or f"made by {one.function}" for name, one in own if one and not one.caption_file}


def make_report():
    """The report, once everything in it exists; not after a run for single targets."""
    from ensemblepp.runs.report import make

    try:
        print(f"Report: {make(CONFIG)}", file=sys.stderr)
    except ResultError as error:
        print(f"No report: {error}", file=sys.stderr)


# a hook of the process that runs the workflow, not of a job on a cluster
onstart:
    if workflow.local_exec and CONFIG.warm_start:
        warm_server.start()


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
