# What all rules share: the checked configuration, wildcard constraints, the target list and the words at start and end.
import atexit
import functools
import json
import os
import sys
import time
from pathlib import Path

from snakemake.cli import get_argument_parser

from ensemblepp import devices
from ensemblepp.claims.writing import CODE as LEDGER_CODE
from ensemblepp.claims.writing import SUFFIXES as LEDGER_SUFFIXES
from ensemblepp.config.fields import canonical_json
from ensemblepp.config.loading import load
from ensemblepp.config.resolution import ARTEFACTS
from ensemblepp.config.targets import faults_of_wildcards, unknown
from ensemblepp.data import load as load_dataset
from ensemblepp.data.sources import MIRROR_VARIABLE
from ensemblepp.errors import ConfigError, ResultError, in_lines
from ensemblepp.registry import DATASETS, OWN_DATASETS
from ensemblepp.report import CODE as PAGE_CODE
from ensemblepp.report import digest as page_digest
from ensemblepp.runs import commits, controllers, ledger, pace, page, screen, slurm
from ensemblepp.runs.fingerprint import fingerprint
from ensemblepp.runs.plan import packed, plan
from ensemblepp.runs.priorities import Priorities
from ensemblepp.text import precision
from ensemblepp.warm_start import server as warm_server

try:
    CONFIG = load(config)
except ConfigError as error:
    print(in_lines(error), file=sys.stderr)
    sys.exit(1)

# to the jobs by the environment, not by `params`: where a verified file came from is no reason to fetch it again
if CONFIG.mirror_folder:
    os.environ.update({MIRROR_VARIABLE: CONFIG.mirror_folder})

# resolved once: a job may run on a machine that sees other devices
os.environ[devices.PLANNED_VARIABLE] = devices.resolve("auto")
os.environ[precision.PLANNED_VARIABLE] = precision.resolve("auto", CONFIG.device)

STUDIES = CONFIG.active_studies()

CONTROLLER = None
# not in the processes that it starts for jobs
if workflow.is_main_process:
    CONTROLLER = controllers.enter(sys.argv[1:])
    if "snakemake_executor_plugin_slurm" in sys.modules:
        slurm.be_patient(sys.modules["snakemake_executor_plugin_slurm"])

# beside the plan, where there is no page and there will be jobs; which executor it is, is not known yet
SERVER = None
if CONTROLLER and CONFIG.warm_start and workflow.resource_settings.nodes is None and not Path(CONFIG.page).exists():
    played = {place for study in STUDIES.values() for place in study.scales[CONFIG.scale].environments}
    trained = any(CONFIG.environments[place].kind == "moderation_tokens" for place in played)
    also = (*warm_server.LANGUAGE_MODELS, *warm_server.REPORT) if trained else warm_server.REPORT
    SERVER = warm_server.start(at_once=True, also=also)

RESULTS = CONFIG.results


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
    posts=r"\d+",
    scaling="none|unit|standardise",
    first=r"\d+",
    last=r"\d+",
    study=r"[^/]+",


def wanted(_wildcards):
    """What `all` asks for: every study's run files, dataset, figures and tables, but for studies whose data cannot be had."""
    missing = missing_studies()
    if missing and not CONFIG.skips_unreachable:
        for study, reason in missing.items():
            print(f"error: study '{study}' cannot run: {reason}", file=sys.stderr)
        sys.exit(1)
    config["left_out"] = {STUDIES[study].title: reason for study, reason in missing.items()}
    config["left_out"] |= {CONFIG.studies[study].title: reason for study, reason in CONFIG.awaiting().items()}
    say_left_out()
    return [
        *(path for study in STUDIES if study not in missing for path in complete(study)),
        *CONFIG.ledger_files(),
        CONFIG.page,
    ]


@functools.cache
def missing_studies():
    """Studies whose data cannot be had, and why."""
    # asked only when `all` or the ledger is asked for: a job of a cluster, or one named target, never probes the network
    from ensemblepp.runs.availability import left_out

    return left_out(CONFIG, detail=not CONFIG.skips_unreachable)


@functools.cache
def page_plan():
    """What the page is made from."""
    return page.plan(CONFIG, missing_studies())


def complete(study):
    """All files of a study, the JSON beside each run file too: Snakemake makes a deleted one anew only if it is asked for."""
    files = CONFIG.files(study)
    records = [str(Path(path).with_suffix(".json")) for path in files if path.startswith(f"{RESULTS}/runs/")]
    return [*files, *records]


def say_left_out():
    for title, reason in config.get("left_out", {}).items():
        print(f"Left out: {title}: {reason}.", file=sys.stderr)


def raw_files(wildcards):
    """What a data set is prepared from: a file of the user's, or the files that `retrieve` brings."""
    published = CONFIG.published(wildcards.dataset)
    if published is None:
        return [CONFIG.datasets[wildcards.dataset].file]
    return [f"data/raw/{file.name}" for file in load_dataset(published).RAW]


def declared_option(wildcards):
    """How a data set under `datasets` is read, for the command line; empty for any other."""
    own = CONFIG.datasets.get(wildcards.dataset)
    return ["--declared", canonical_json({"kind": own.kind, **own.declared()})] if own else []


def data_code(wildcards):
    own = CONFIG.datasets.get(wildcards.dataset)
    return fingerprint(OWN_DATASETS[own.kind] if own else DATASETS[wildcards.dataset])


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


def memory_of(wildcards, attempt):
    """Megabytes of a run block: an agent that trains a language model holds it four times, and what a minibatch leaves of it.

    A job that ran out of memory is sent again with more.
    """
    return (8000 if "folder" in block(wildcards).spec["agent"]["options"] else 3000) * attempt


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


#: What is said last of all, when Snakemake's own words are over.
LAST_WORDS = []


@atexit.register
def say_last_words():
    for line in LAST_WORDS:
        print(line, file=sys.stderr)


def target_faults(target):
    """What is wrong with a target; nothing of a file that lies there, or of one that only Snakemake can judge."""
    # `default` is defined in the file that includes all of these
    if target in {"default", *(known.name for known in workflow.rules)}:
        return []
    makers = [rule for rule in workflow.rules if rule.is_producer(target)]
    if makers:
        wildcards = makers[0].get_wildcards(target)
        return list(faults_of_wildcards(CONFIG, target, wildcards))
    if Path(target).exists():
        return []
    return [unknown(CONFIG, target, [rule.name for rule in workflow.rules if not rule.wildcard_names])]


def asked_for():
    """The targets on the command line of this process; Snakemake has not handed them on when it reads this."""
    if Path(sys.argv[0]).parent.name != "snakemake" and Path(sys.argv[0]).name != "snakemake":
        return []
    return get_argument_parser().parse_known_args(sys.argv[1:])[0].targets or []


def make_report():
    """Snakemake's report, if `all` was asked for and is there; not after a run for single targets."""
    if "left_out" not in config or workflow.dryrun:
        return
    from ensemblepp.runs.report import make

    try:
        LAST_WORDS.append(f"How it was made: {make(CONFIG)}")
    except ResultError as error:
        LAST_WORDS.append(f"No report of how it was made: {error}")
    LAST_WORDS.append(f"Report: {Path(CONFIG.page).absolute()}")


# not of the processes that it starts for single jobs
if workflow.is_main_process:
    screen.shorten(workflow.logger_manager)
    # no hook tells of it
    screen.tell_nothing_to_be_done(workflow.logger_manager, make_report)


# a hook of the process that runs the workflow, not of a job on a cluster
onstart:
    if doubt := commits.doubt():
        print(doubt, file=sys.stderr)
    pace.steady(workflow.scheduler)
    if workflow.local_exec and CONFIG.warm_start and not SERVER:
        warm_server.start(also=warm_server.REPORT)
    if not workflow.local_exec and CONTROLLER:
        CONTROLLER.note(cluster=True)


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
