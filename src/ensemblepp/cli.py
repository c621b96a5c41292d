"""The command line: every rule of the workflow is one of these commands, and each also works by hand."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shlex
import sys
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ensemblepp.arguments import MAX_THREADS, Parser, finite, folder, mapping, output, plan, specification, user_error, whole
from ensemblepp.errors import ConfigError, DataError, EnsembleError, in_lines, one_of

#: What `list` shows.
LISTED = ("studies", "agents", "environments", "datasets", "language_models", "laws", "figures", "tables")

#: What `quickstart` compares, the yardstick first, and with which ensembles.
QUICK_AGENTS, QUICK_SIZES = ("ts", "ensemble++-only-gaussian-sphere", "ensemble-sampling"), (2, 8, 32)
QUICK_ENVIRONMENT = "finite-d10-100"

#: What `moderate` compares: values under which agents learn from embeddings.
MODERATING_AGENTS = ("ensemble++-text", "greedy-text")

#: The greatest number that an option takes; what is sensible is known to those who use it.
LARGEST = 2**63 - 1

#: What a shell gives as the status of a command that Ctrl-C has ended.
INTERRUPTED = 130

_DECLARED = "how to read a data set under datasets, as JSON (default: what config/environments.yaml says there)"


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit status. A fault that the user can mend is one line, without a traceback."""
    options = _parser().parse_args(arguments)
    _settle_surroundings(options.threads)
    if options.command not in (_language_model, _retrieve, _moderate):
        # the hub's client reads it when it is loaded; what is asked of the hub is asked by those alone
        os.environ["HF_HUB_OFFLINE"] = "1"
    # modules of the user's lie beside the Snakefile, and the script `ensemblepp` does not look there by itself
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    try:
        return options.command(options) or 0
    except EnsembleError as error:
        print(in_lines(error), file=sys.stderr)
        return 1
    except MemoryError as error:
        print(f"error: out of memory: {error}" if str(error) else "error: out of memory", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {user_error(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return INTERRUPTED


class _Version(argparse.Action):
    """Say the version and leave; the package is not asked before."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, nargs=0, **keywords)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        print(f"ensemblepp {version('ensemblepp')}")
        parser.exit()


#: What numba may be told by variables: where its cache lies, and which processor it compiles for. All others change the code.
_NUMBA = {"NUMBA_CACHE_DIR", "NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES"}


def _settle_surroundings(threads: int) -> None:
    """What a shell, a notebook or a cluster has set must change nothing; before a numerical library is loaded."""
    for name in [name for name in os.environ if name.startswith("NUMBA_") and name not in _NUMBA]:
        del os.environ[name]
    # one thread per process unless told otherwise
    for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR"):
        os.environ[f"{library}_NUM_THREADS"] = str(threads)
    # figures are files; a notebook's backend is not there
    os.environ["MPLBACKEND"] = "agg"
    # HDF5's locks fail on NFS
    os.environ.setdefault("HDF5_USE_FILE_LOCKING", "FALSE")
    # needed by cuBLAS for equal results at equal seeds; must be set before torch is loaded
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="python -m ensemblepp",
        description="Scalable exploration via Ensemble++. Run from the folder that holds the Snakefile.",
    )
    parser.add_argument(
        "--threads", type=whole(1, MAX_THREADS), default=1, metavar="N", help="threads of the numerical libraries (default 1)"
    )
    parser.add_argument("--version", action=_Version, help="say the version and leave")
    commands = parser.add_subparsers(required=True, metavar="command")

    command = commands.add_parser(
        "quickstart",
        help="a first comparison in a minute: exact Thompson sampling, Ensemble++ and ensemble sampling, as a figure",
    )
    command.add_argument("--horizon", type=whole(1, LARGEST), default=1000, help="T, rounds (default 1000)")
    command.add_argument("--seeds", type=whole(2, LARGEST), default=20, help="how many (default 20)")
    command.add_argument(
        "--output", type=Path, default=Path("quickstart.png"), help=".pdf or .png to write (default quickstart.png)"
    )
    command.set_defaults(command=_quickstart)

    command = commands.add_parser(
        "moderate",
        help="replay labelled posts of your own as a stream: decisions with their uncertainty, and a page about them",
    )
    command.add_argument("posts", type=Path, metavar="POSTS", help="a .csv, .parquet or .jsonl file, a row for every post")
    command.add_argument("--text-column", required=True, metavar="NAME", help="the column of the posts")
    words = "the column of the labels: yes or no, true or false, 1 or 0, where 1 is a post to be blocked; or scores"
    command.add_argument("--label-column", required=True, metavar="NAME", help=words)
    words = "labels are scores, and a post is to be blocked whose score is above this"
    command.add_argument("--threshold", type=finite, metavar="SCORE", help=words)
    words = "publish or block (default); or remove the post, or have a person review it"
    command.add_argument("--actions", choices=["publish_or_block", "remove_or_review"], default="publish_or_block", help=words)
    words = "the frozen model that embeds posts, of `list language_models` (default minilm)"
    command.add_argument("--language-model", default="minilm", metavar="NAME", help=words)
    words = "how embeddings are given to agents: as they are (default), of norm 1, or features of mean 0 and variance 1"
    command.add_argument("--scaling", choices=["none", "unit", "standardise"], default="none", help=words)
    words = f"neural agents, of `list agents` (default {' '.join(MODERATING_AGENTS)})"
    command.add_argument("--agents", nargs="+", default=list(MODERATING_AGENTS), metavar="NAME", help=words)
    command.add_argument("--ensemble-size", type=whole(1, LARGEST), default=8, help="M (default 8)")
    command.add_argument("--seeds", type=whole(1, LARGEST), default=1, help="orders of the posts (default 1)")
    command.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto", help="auto (default), cpu or cuda")
    words = "folder to make, for report.html, decisions.csv and what a second start goes on from (default: POSTS-moderation)"
    command.add_argument("--output", type=Path, metavar="FOLDER", help=words)
    command.set_defaults(command=_moderate)

    command = commands.add_parser("simulate", help="run one block of seeds and write its run file")
    command.add_argument("--environment", help="name in config/environments.yaml")
    command.add_argument("--agent", help="name in config/agents.yaml")
    command.add_argument(
        "--ensemble-size", type=whole(0, LARGEST), help="M (0, the default, for agents without an ensemble)", default=0
    )
    command.add_argument("--horizon", type=whole(1, LARGEST), default=1000, help="T, rounds (default 1000)")
    command.add_argument("--seeds", default="0-9", help="a range of seeds, as 0-9 (the default)")
    command.add_argument(
        "--spec", type=specification, help="a block's resolved specification as JSON, instead of the options above"
    )
    _add_code(command)
    command.add_argument("--output", type=Path, help="run file to write (default: its place under results/)")
    command.set_defaults(command=_simulate)

    command = commands.add_parser("serve", help="run jobs for the process that this one's standard input comes from")
    command.add_argument("--socket", type=Path, required=True, help="the socket to make")
    command.set_defaults(command=_serve)

    command = commands.add_parser("retrieve", help="bring one raw file, from the folder ENSEMBLEPP_MIRROR or its sources")
    command.add_argument("--file", required=True, help="its path under data/raw")
    command.add_argument("--output", type=Path, required=True, help="file to write")
    command.set_defaults(command=_retrieve)

    command = commands.add_parser("check-data", help="check raw files line by line, without touching prepared data")
    command.add_argument("--dataset", required=True, help="a published data set, or a name under datasets (`list datasets`)")
    command.add_argument("--declared", type=mapping, help=_DECLARED)
    command.add_argument("--output", type=Path, required=True, help="JSON file to write when all is well")
    command.add_argument("raw", type=Path, nargs="+", help="the raw files")
    _add_code(command)
    command.set_defaults(command=_check_data)

    command = commands.add_parser("prepare", help="raw files to one prepared netCDF file")
    command.add_argument("--dataset", required=True, help="a published data set, or a name under datasets (`list datasets`)")
    command.add_argument("--declared", type=mapping, help=_DECLARED)
    command.add_argument("--output", type=Path, required=True, help="netCDF file to write")
    command.add_argument("raw", type=Path, nargs="+", help="the raw files")
    _add_code(command)
    command.set_defaults(command=_prepare)

    command = commands.add_parser("language-model", help="bring a language model into a local folder")
    command.add_argument("--spec", type=mapping, required=True, help="an entry of language_models as JSON")
    command.add_argument("--folder", type=Path, required=True, help="the folder to make")
    _add_code(command)
    command.set_defaults(command=_language_model)

    command = commands.add_parser("embed", help="posts to vectors by a language model")
    command.add_argument("--prepared", type=Path, required=True, help="the prepared posts")
    command.add_argument("--folder", type=Path, required=True, help="the language model's folder")
    command.add_argument("--posts", type=whole(1, LARGEST), required=True, help="how many posts, from the first")
    words = "hidden state of the last token, or the mean over tokens"
    command.add_argument("--pooling", choices=["last", "mean"], required=True, help=words)
    command.add_argument("--max-tokens", type=whole(1, LARGEST), required=True, help="longer texts are cut")
    words = "numbers that the model computes with: auto (default: bfloat16 where the device has instructions for it), or which"
    command.add_argument("--precision", choices=["auto", "float32", "bfloat16"], default="auto", help=words)
    command.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto", help="auto (default), cpu or cuda")
    command.add_argument("--output", type=Path, required=True, help="netCDF file to write")
    _add_code(command)
    command.set_defaults(command=_embed)

    command = commands.add_parser("tokenise", help="posts to tokens by a language model's tokenizer")
    command.add_argument("--prepared", type=Path, required=True, help="the prepared posts")
    command.add_argument("--folder", type=Path, required=True, help="the language model's folder")
    command.add_argument("--posts", type=whole(1, LARGEST), required=True, help="how many posts, from the first")
    command.add_argument("--max-tokens", type=whole(1, LARGEST), required=True, help="longer texts are cut")
    command.add_argument("--output", type=Path, required=True, help="netCDF file to write")
    _add_code(command)
    command.set_defaults(command=_tokenise)

    command = commands.add_parser("ceiling", help="what a supervised fit makes of embedded posts, each by a fit without it")
    command.add_argument("--embeddings", type=Path, required=True, help="the file of embeddings")
    words = "how an agent is shown them: as they are, of norm 1, or features of mean 0 and variance 1"
    command.add_argument("--scaling", choices=["none", "unit", "standardise"], required=True, help=words)
    command.add_argument("--output", type=Path, required=True, help="netCDF file to write")
    _add_code(command)
    command.set_defaults(command=_ceiling)

    command = commands.add_parser("aggregate", help="run blocks of a study to one dataset")
    command.add_argument("--study", help="name in config/studies.yaml")
    command.add_argument("--plan", type=plan, help="the study's plan as JSON, instead of --study")
    command.add_argument("--output", type=Path, required=True, help="netCDF file to write")
    _add_code(command)
    command.set_defaults(command=_aggregate)

    command = commands.add_parser("present", help="draw the figures and make the tables of a study's dataset")
    command.add_argument("--dataset", type=Path, required=True, help="the study's dataset")
    command.add_argument("--folder", type=Path, required=True, help="its figures/ and tables/ are written to")
    for kind in ("figures", "tables"):
        words = f"modules of ensemblepp.{kind}, or NAME=module:function for others"
        command.add_argument(f"--{kind}", nargs="*", default=[], metavar="NAME", help=words)
    _add_code(command)
    command.set_defaults(command=_present)

    command = commands.add_parser(
        "claims", help="decide the paper's claims by the datasets that there are, and print the ledger"
    )
    command.add_argument("--scale", help="smoke, quick or paper, instead of the configured one")
    command.add_argument("--plan", type=mapping, help="the ledger's plan as JSON, instead of the configuration")
    words = ".csv, .json, .md and .tex files to write, instead of printing"
    command.add_argument("--output", type=Path, nargs="+", default=[], help=words)
    _add_code(command)
    command.set_defaults(command=_claims)

    for kind in ("figure", "table"):
        command = commands.add_parser(kind, help=f"draw one {kind} from a study's dataset")
        words = f"module of ensemblepp.{kind}s, name under {kind}s in config/studies.yaml, or module:function"
        command.add_argument("--name", required=True, help=words)
        command.add_argument("--dataset", type=Path, required=True, help="the study's dataset")
        command.add_argument("output", type=Path, nargs="+", help="files to write; the suffix chooses the format")
        command.set_defaults(command=_figure if kind == "figure" else _table)

    command = commands.add_parser("plot", help="draw run files, such as `simulate` writes: regret by agent and environment")
    command.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="run files of equal horizons")
    command.add_argument(
        "--figure", default="nonlinear_regret", help="what to draw, as --name of figure (default nonlinear_regret)"
    )
    command.add_argument("--output", type=Path, default=Path("regret.png"), help=".pdf or .png (default regret.png)")
    command.set_defaults(command=_plot)

    command = commands.add_parser("report", help="make results/<scale>/report.html where it is missing or out of date")
    command.add_argument("--config", type=mapping, help="the configuration as JSON (default: the files in config/)")
    command.add_argument("--scale", help="smoke, quick or paper, instead of the configured one")
    command.set_defaults(command=_report)

    command = commands.add_parser(
        "check", help="verify results: whole, of the present configuration and code, finite; changes nothing"
    )
    words = "files or folders under results/ (default: the configured scale's); run from the folder that holds the Snakefile"
    command.add_argument("paths", type=Path, nargs="*", metavar="PATH", help=words)
    command.set_defaults(command=_check)

    command = commands.add_parser("why", help="what snakemake would make anew, and because of which edit; makes nothing")
    command.add_argument("targets", nargs="*", metavar="TARGET", help="files or rules, as snakemake takes them (default: all)")
    command.add_argument("--scale", help="smoke, quick or paper, instead of the configured one")
    command.set_defaults(command=_why)

    command = commands.add_parser("resume", help="start snakemake again as it was last started here, after whatever ended it")
    command.set_defaults(command=_resume)

    command = commands.add_parser("publish", help="copy what is small of the complete studies to results/paper-scale")
    command.add_argument("--scale", default="paper", help="smoke, quick or paper (default)")
    command.add_argument(
        "--folder", type=Path, default=Path("results/paper-scale"), help="where to (default results/paper-scale)"
    )
    command.set_defaults(command=_publish)

    command = commands.add_parser("cost", help="what all studies' missing runs would take, from runs that were made here")
    command.add_argument("--study", help="one study, from short runs of its blocks instead: exact, and minutes long")
    command.add_argument("--scale", help="smoke, quick or paper, instead of the configured one")
    command.set_defaults(command=_cost)

    command = commands.add_parser("show", help="how the configuration resolves, and which value comes from where")
    shown = command.add_subparsers(required=True, metavar="agent|environment")
    command = shown.add_parser("agent", help="an agent in one environment: every value and where it is from, engine and device")
    command.add_argument("name", help="name in config/agents.yaml")
    command.add_argument("--environment", required=True, help="name in config/environments.yaml")
    command.set_defaults(command=_show_agent)
    command = shown.add_parser("environment", help="what an environment's class is built with, and the files that it reads")
    command.add_argument("name", help="name in config/environments.yaml")
    command.set_defaults(command=_show_environment)

    command = commands.add_parser("config", help="check the configuration; --write renews what is generated from its model")
    command.add_argument("--write", action="store_true", help="renew the JSON schema and the tables of config/README.md")
    command.set_defaults(command=_config)

    command = commands.add_parser("list", help="the names that the configuration knows: studies, agents, environments and more")
    command.add_argument("what", nargs="?", choices=LISTED, help=f"one of {', '.join(LISTED)} (default: all)")
    command.set_defaults(command=_list)
    return parser


def _add_code(command: argparse.ArgumentParser) -> None:
    words = "the fingerprint that the workflow took of this job's code: other code is refused (default: any will do)"
    command.add_argument("--code", default="", help=words)


def _unedited(code: str, places: Sequence[str], *outputs: Path) -> contextlib.AbstractContextManager[None]:
    # only here: what asks for help, or for a version, needs none of it
    from ensemblepp.runs.sources import unedited

    return unedited(code, places, outputs)


def _quickstart(options: argparse.Namespace) -> None:
    from ensemblepp.figures import SUFFIXES

    output(options.output, [f".{suffix}" for suffix in SUFFIXES])

    from ensemblepp.runs.comparison import compare

    dataset = compare(QUICK_AGENTS, QUICK_ENVIRONMENT, options.horizon, options.seeds, ensemble_sizes=QUICK_SIZES)
    print(f"regret after {options.horizon:,} rounds minus that of TS, mean of {options.seeds} paired seeds and 95 % interval:")
    found = dataset.bandit.differences()
    rows = found[["agent", "M", "difference", "95 % low", "95 % high"]].itertuples(index=False)
    _print_rows(
        [("agent", "M", "difference", "from", "to"), *((agent, size, *(f"{x:.1f}" for x in xs)) for agent, size, *xs in rows)]
    )
    dataset.bandit.plot().savefig(options.output)
    print(options.output)


def _moderate(options: argparse.Namespace) -> None:
    place = options.output or Path(f"{options.posts.name.partition('.')[0]}-moderation")
    folder(place)
    for name in ("decisions.csv", "report.html"):
        if (place / name).is_dir():
            raise ConfigError(f"--output: '{place / name}' is a folder; name another with --output")
    if (place / "decisions.csv").exists():
        raise ConfigError(f"--output: '{place / 'decisions.csv'}' exists: delete it, or name another folder with --output")

    from ensemblepp.runs.moderate import PAGE, TABLE, WORK, moderate

    found = moderate(
        options.posts,
        text=options.text_column,
        label=options.label_column,
        threshold=options.threshold,
        agents=options.agents,
        language_model=options.language_model,
        scaling=options.scaling,
        actions=options.actions,
        ensemble_size=options.ensemble_size,
        seeds=options.seeds,
        folder=place / WORK,
        device=options.device,
    )
    found.write(place)
    columns = [name for name in found.summary.columns if name.startswith("accuracy")]
    rows = (
        (who, *(f"{share:.1%}" for share in shares))
        for who, *shares in found.summary[["who", *columns]].itertuples(index=False)
    )
    _print_rows([("", *columns), *rows])
    print(place / TABLE)
    print(place / PAGE)


def _simulate(options: argparse.Namespace) -> None:
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
            _unedited(code, Block("", spec).code, path, path.with_suffix(".json")),
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
    for option, allowed in (("environment", config.environments), ("agent", config.agents)):
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


def _plot(options: argparse.Namespace) -> None:
    from ensemblepp.figures import SUFFIXES
    from ensemblepp.runs.by_hand import plot

    output(options.output, [f".{suffix}" for suffix in SUFFIXES])
    plot(options.runs, options.output, _presentation("figures", options.figure))
    print(options.output)


def _serve(options: argparse.Namespace) -> None:
    from ensemblepp.warm_start.server import serve

    serve(options.socket, main)


def _retrieve(options: argparse.Namespace) -> None:
    from ensemblepp.data import DATASETS, load
    from ensemblepp.data.sources import MIRROR_VARIABLE, retrieve

    files = {file.name: file for name in DATASETS for file in load(name).RAW}
    _require("--file", options.file, files)
    output(options.output)
    where = retrieve(files[options.file], options.output, os.environ.get(MIRROR_VARIABLE))
    print(f"{options.file}: from {where}", file=sys.stderr)


def _check_data(options: argparse.Namespace) -> None:
    import hashlib
    import tempfile

    from ensemblepp.storage.datasets import write_json

    prepare = _preparation(options)
    output(options.output, [".json"])
    with _unedited(options.code, _data_code(options), options.output), tempfile.TemporaryDirectory() as folder:
        _say(prepare(options.raw, Path(folder, "prepared.nc")))
        write_json({path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in options.raw}, options.output)


def _prepare(options: argparse.Namespace) -> None:
    prepare = _preparation(options)
    with _unedited(options.code, _data_code(options), options.output):
        _say(prepare(options.raw, output(options.output, [".nc"])))


def _say(words: str | None) -> None:
    if words:
        print(words, file=sys.stderr)


def _data_code(options: argparse.Namespace) -> list[str]:
    from ensemblepp.registry import DATASETS, OWN_DATASETS

    declared = _declared(options)
    return [OWN_DATASETS[declared.kind] if declared else DATASETS[options.dataset]]


def _preparation(options: argparse.Namespace) -> Callable[[list[Path], Path], str | None]:
    """What prepares --dataset, once its raw files are known to be there."""
    import importlib

    from ensemblepp.registry import DATASETS, OWN_DATASETS

    declared = _declared(options)
    published = declared.published if declared else options.dataset
    for path in options.raw:
        if not path.is_file():
            remedy = "; `python -m ensemblepp retrieve` brings it" if published else ""
            raise DataError(f"{path}: no such file{remedy}")
    module = importlib.import_module(OWN_DATASETS[declared.kind] if declared else DATASETS[published])
    return partial(module.prepare, **declared.declared()) if declared else module.prepare


def _declared(options: argparse.Namespace) -> Any:
    """The entry under `datasets` that --dataset is, as --declared or the configuration has it; None for a published one."""
    from ensemblepp.registry import DATASETS

    if options.declared is None:
        if options.dataset in DATASETS:
            return None
        from ensemblepp.config.loading import read_files

        known = read_files().datasets
        _require("--dataset", options.dataset, [*DATASETS, *known])
        return known[options.dataset]
    from pydantic import TypeAdapter, ValidationError

    from ensemblepp.config.datasets import Dataset

    given = options.declared if options.declared.get("kind") == "hate_speech" else options.declared | {"file": "declared.csv"}
    try:
        return TypeAdapter(Dataset).validate_python(given)
    except ValidationError as error:
        raise ConfigError("\n".join(_in_words("--declared", fault) for fault in error.errors())) from None


def _in_words(option: str, fault: Any) -> str:
    # the first part of a data set's place is its kind
    place = fault["loc"][1:] if option == "--declared" else fault["loc"]
    return f"{option}: {'.'.join(map(str, place))}: {fault['msg'][0].lower()}{fault['msg'][1:]}"


def _language_model(options: argparse.Namespace) -> None:
    from pydantic import ValidationError

    from ensemblepp.config.environments import LanguageModel
    from ensemblepp.text.language_models import MARK, acquire

    try:
        # how texts are embedded is no matter here
        model = LanguageModel.model_validate({"pooling": "last", **options.spec})
    except ValidationError as error:
        raise ConfigError("\n".join(_in_words("--spec", fault) for fault in error.errors())) from None
    folder(options.folder.parent)
    with _unedited(options.code, ["ensemblepp.text.language_models"], options.folder / MARK):
        acquire(model.brought(), options.folder)


def _embed(options: argparse.Namespace) -> None:
    output(options.output, [".nc"])
    from ensemblepp import devices
    from ensemblepp.runs.fingerprint import current
    from ensemblepp.runs.progress import Progress
    from ensemblepp.text import precision
    from ensemblepp.text.embedding import embed_posts

    with (
        _unedited(options.code, ["ensemblepp.text.embedding"], options.output),
        Progress(options.posts, f"embedding {options.posts} posts") as progress,
    ):
        embed_posts(
            options.prepared,
            options.output,
            folder=options.folder,
            posts=options.posts,
            pooling=options.pooling,
            max_tokens=options.max_tokens,
            precision=precision.resolve(options.precision, options.device),
            device=devices.require(options.device),
            threads=options.threads,
            code=current("ensemblepp.text.forward"),
            on_text=progress.step,
        )


def _tokenise(options: argparse.Namespace) -> None:
    output(options.output, [".nc"])
    from ensemblepp.text.tokens import tokenise_posts

    with _unedited(options.code, ["ensemblepp.text.tokens"], options.output):
        tokenise_posts(
            options.prepared, options.output, folder=options.folder, posts=options.posts, max_tokens=options.max_tokens
        )


def _ceiling(options: argparse.Namespace) -> None:
    output(options.output, [".nc"])
    from ensemblepp.environments.ceiling import write

    with _unedited(options.code, ["ensemblepp.environments.ceiling"], options.output):
        write(options.embeddings, options.output, options.scaling)


def _aggregate(options: argparse.Namespace) -> None:
    from ensemblepp.runs.aggregate import aggregate

    planned = options.plan
    if planned is None:
        from ensemblepp.config.loading import read_files
        from ensemblepp.runs.plan import plan as plan_of

        config = read_files()
        _require("--study", options.study, config.active_studies())
        planned = plan_of(config, options.study)
    with _unedited(options.code, ["ensemblepp.runs.aggregate"], options.output):
        aggregate(planned, output(options.output, [".nc"]))


def _present(options: argparse.Namespace) -> None:
    from ensemblepp import figures, registry, tables

    folder(options.folder)
    work, places = [], []
    for kind, package in (("figures", figures), ("tables", tables)):
        for word in getattr(options, kind):
            name, _, place = word.partition("=")
            stem = f"{options.dataset.stem}-{name}"
            outputs = [options.folder / kind / f"{stem}.{suffix}" for suffix in package.SUFFIXES]
            work.append((package.save, place or name, outputs))
            places += [f"ensemblepp.{kind}", registry.presentation(kind, place or name)]
    with _unedited(options.code, places, *(path for *_, outputs in work for path in outputs)):
        for save, name, outputs in work:
            save(name, options.dataset, outputs)


def _claims(options: argparse.Namespace) -> None:
    from ensemblepp.claims import writing

    outputs = [output(path, [f".{suffix}" for suffix in writing.SUFFIXES]) for path in options.output]
    planned = options.plan
    if planned is None:
        from ensemblepp.config.loading import read_files
        from ensemblepp.runs.ledger import plan as plan_of

        config = read_files(**({"scale": options.scale} if options.scale else {}))
        planned = plan_of(config, {}, existing=True)
    if outputs:
        with _unedited(options.code, writing.CODE, *outputs):
            writing.save(planned, outputs)
        return
    from ensemblepp.claims.ledger import decide

    ledger = decide(planned)
    _print_rows(writing.overview(ledger))
    for line in writing.counted(ledger):
        print(line)


def _figure(options: argparse.Namespace) -> None:
    from ensemblepp.figures import SUFFIXES, save

    name = _presentation("figures", options.name)
    save(name, options.dataset, [output(path, [f".{suffix}" for suffix in SUFFIXES]) for path in options.output])


def _table(options: argparse.Namespace) -> None:
    from ensemblepp.tables import SUFFIXES, save

    name = _presentation("tables", options.name)
    save(name, options.dataset, [output(path, [f".{suffix}" for suffix in SUFFIXES]) for path in options.output])


def _presentation(kind: str, name: str) -> str:
    """The function behind the figure or table that --name names."""
    from ensemblepp import registry
    from ensemblepp.config import own_code

    fault = own_code.function_fault(registry.presentation(kind, name))
    if not fault:
        return name
    if ":" in name:
        raise ConfigError(f"--name: found '{name}': {fault}")
    # only here: one of ours needs no configuration
    from ensemblepp.config.checks import presentable
    from ensemblepp.config.loading import read_files

    config = read_files()
    _require("--name", name, [*presentable(kind), *getattr(config, kind)])
    return config.presentation(kind, name)


def _require(option: str, found: str | None, allowed: Collection[str]) -> None:
    if found is None:
        raise ConfigError(f"{option}: must be given; it is one of {', '.join(allowed)}")
    if found not in allowed:
        raise ConfigError(f"{option}: found '{found}': {one_of(allowed, found)}")


def _check(options: argparse.Namespace) -> int:
    from ensemblepp.config.loading import read_files
    from ensemblepp.runs import verification
    from ensemblepp.runs.progress import Progress
    from ensemblepp.runs.publish import FOLDER

    config = read_files()
    faulty = 0
    for path in options.paths or [Path(config.results)]:
        place = Path(os.path.relpath(path))
        if place.parts[:1] != ("results",) or len(place.parts) < 2:
            raise ConfigError(f"{path}: must lie under results/<scale>")
        files = verification.files(place)
        with Progress(max(len(files), 1), f"checking {place}") as progress:
            if place.is_relative_to(FOLDER):
                findings = list(verification.verify_published(files, progress.step))
            else:
                config = read_files(scale=place.parts[1])
                findings = list(verification.verify(config, files, progress.step))
        for finding in findings:
            print(f"{finding.fault}: {finding.path}: {finding.reason}")
        faulty += len(findings)
        counts = [(fault, sum(finding.fault == fault for finding in findings)) for fault in verification.FAULTS]
        words = ", ".join(f"{count} {fault}" for fault, count in counts if count) or "all in order"
        print(f"{place}: {len(files)} files, {words}")
        if place == Path(config.results):
            for study, absent in verification.missing(config).items():
                print(f"not made yet: {len(absent)} files of study {study}, {absent[0]} for one")
    return int(faulty > 0)


def _why(options: argparse.Namespace) -> None:
    from ensemblepp.config.loading import read_files
    from ensemblepp.runs.reasons import why

    for line in why(read_files(**({"scale": options.scale} if options.scale else {})), options.targets):
        print(line)


def _resume(_options: argparse.Namespace) -> None:
    from ensemblepp.runs.controllers import last

    arguments = last()
    print(shlex.join(["snakemake", *arguments]), file=sys.stderr, flush=True)
    # the workflow puts in order what the process before has left
    os.execv(sys.executable, [sys.executable, "-m", "snakemake", *arguments])


def _publish(options: argparse.Namespace) -> None:
    from ensemblepp.config.loading import read_files
    from ensemblepp.runs.publish import publish

    for study in publish(read_files(scale=options.scale), options.folder):
        print(f"{options.folder}: {study}")


def _cost(options: argparse.Namespace) -> None:
    from ensemblepp.config.loading import read_files
    from ensemblepp.runs.costs import estimate

    config = read_files(**({"scale": options.scale} if options.scale else {}))
    if options.study is None:
        from ensemblepp.runs.budget import budgets, in_words

        studies, total = budgets(config)
        rows = [(name, *one.cells()) for name, one in (*studies.items(), ("total", total))]
        _print_rows([("study", *total.HEADINGS), *rows])
        for line in in_words(total):
            print(line)
        return
    _require("--study", options.study, config.active_studies())
    words = estimate(config, options.study, lambda path: print(f"short runs of {path}", file=sys.stderr, flush=True))
    print(f"{config.studies[options.study].title}: {words}")


def _report(options: argparse.Namespace) -> None:
    from ensemblepp.config.loading import load, read_files
    from ensemblepp.runs.report import make

    overrides = {"scale": options.scale} if options.scale else {}
    config = load(options.config | overrides) if options.config else read_files(**overrides)
    print(f"report: {make(config)}")


def _show_agent(options: argparse.Namespace) -> None:
    from ensemblepp import registry
    from ensemblepp.config.loading import read_files

    config = read_files()
    _require("name", options.name, config.agents)
    _require("--environment", options.environment, config.environments)
    resolved = config.agent_for(options.name, options.environment)
    runner = config.runner(options.name)
    spec = config.block(options.environment, options.name, int(config.agents[runner].ensemble), 1, 0, 0).spec
    print(f"agent {options.name} ({config.agents[options.name].label}) in environment {options.environment}")
    _print_rows([("kind", spec["agent"]["kind"]), ("class", registry.agent_path(spec)), ("engine", spec["engine"])])
    _print_rows([("device", spec["device"])])
    print()
    rows = [(key, json.dumps(value), resolved.origins[key]) for key, value in resolved.model.options().items()]
    _print_rows([("key", "value", "from"), *rows])


def _show_environment(options: argparse.Namespace) -> None:
    from ensemblepp import registry
    from ensemblepp.config.loading import read_files
    from ensemblepp.config.resolution import described

    config = read_files()
    _require("name", options.name, config.environments)
    environment = config.environments[options.name]
    described_as = described(options.name, environment, environment.options())
    place = registry.class_path(registry.ENVIRONMENTS, described_as)
    print(f"environment {options.name} ({environment.title})")
    _print_rows([("kind", environment.kind), ("class", place), ("family", environment.played_as() or "any, round by round")])
    print()
    stated = environment.model_fields_set | getattr(environment, "arguments", {}).keys()
    rows = [
        (key, json.dumps(value), f"environments.{options.name}" if key in stated or key == "inputs" else "default")
        for key, value in described_as["options"].items()
    ]
    _print_rows([("key", "value", "from"), *rows])


def _print_rows(rows: Sequence[tuple[str, ...]]) -> None:
    """Rows of a table, in columns."""
    if not rows:
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _list(options: argparse.Namespace) -> None:
    from ensemblepp.config.checks import presentable
    from ensemblepp.config.loading import read_files
    from ensemblepp.data import DATASETS
    from ensemblepp.randomness.distributions import LAWS

    config = read_files()
    named = {
        "studies": {name: f"{study.title} [{', '.join(study.scales)}]" for name, study in config.studies.items()},
        "agents": {name: f"{agent.label} ({agent.kind})" for name, agent in config.agents.items()},
        "environments": {name: f"{place.title} ({place.kind})" for name, place in config.environments.items()},
        "datasets": {
            **dict.fromkeys(DATASETS, ""),
            **{name: getattr(own, "file", own.published) for name, own in config.datasets.items()},
        },
        "language_models": {name: model.location for name, model in config.language_models.items()},
        "laws": {**dict.fromkeys(LAWS, ""), **{name: law.function for name, law in config.laws.items()}},
    }
    for kind in ("figures", "tables"):
        own = getattr(config, kind)
        named[kind] = {**dict.fromkeys(presentable(kind), ""), **{name: one.function for name, one in own.items()}}
    for kind in [options.what] if options.what else LISTED:
        print(kind)
        _print_rows([(f"  {name}", words) for name, words in named[kind].items()])


def _config(options: argparse.Namespace) -> None:
    from ensemblepp.config import documentation
    from ensemblepp.config.loading import read_files

    if options.write:
        for path in documentation.write_all():
            print(path)
    config = read_files()
    print(f"configuration is sound: scale {config.scale}, {len(config.active_studies())} studies")
