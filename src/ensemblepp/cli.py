"""The command line: every rule of the workflow is one of these commands, and each also works by hand."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path

_TABLE = "how to read a table of the user's, as JSON (default: what config/environments.yaml says under datasets)"


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit status. A fault that the user can mend is one message, without a traceback."""
    options = _parser().parse_args(arguments)
    _settle_surroundings(options.threads)
    # modules of the user's lie beside the Snakefile, and the script `ensemblepp` does not look there by itself
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    from ensemblepp.errors import EnsembleError

    try:
        options.command(options)
    except EnsembleError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


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
    parser = argparse.ArgumentParser(
        prog="python -m ensemblepp",
        description="Scalable exploration via Ensemble++. Run from the folder that holds the Snakefile.",
    )
    parser.add_argument("--threads", type=int, default=1, help="threads of the numerical libraries (default 1)")
    commands = parser.add_subparsers(required=True, metavar="command")

    command = commands.add_parser("simulate", help="run one block of seeds and write its run file")
    command.add_argument("--environment", help="name in config/environments.yaml")
    command.add_argument("--agent", help="name in config/agents.yaml")
    command.add_argument("--ensemble-size", type=int, help="M (0, the default, for agents without an ensemble)", default=0)
    command.add_argument("--horizon", type=int, default=1000, help="T, rounds (default 1000)")
    command.add_argument("--seeds", default="0-9", help="a range of seeds, as 0-9 (the default)")
    command.add_argument("--spec", help="a block's resolved specification as JSON, instead of the options above")
    command.add_argument("--code", default="", help="code fingerprint to record")
    command.add_argument("--output", type=Path, help="run file to write (default: its place under results/)")
    command.set_defaults(command=_simulate)

    command = commands.add_parser("serve", help="run jobs for the process that this one's standard input comes from")
    command.add_argument("--socket", type=Path, required=True, help="the socket to make")
    command.set_defaults(command=_serve)

    command = commands.add_parser("retrieve", help="bring one raw file, from the folder ENSEMBLEPP_MIRROR or its sources")
    command.add_argument("--file", required=True, help="its path under data/raw")
    command.add_argument("--output", type=Path, required=True)
    command.set_defaults(command=_retrieve)

    command = commands.add_parser("check", help="check raw files line by line, without touching prepared data")
    command.add_argument("--dataset", required=True)
    command.add_argument("--table", help=_TABLE)
    command.add_argument("--output", type=Path, required=True, help="JSON file to write when all is well")
    command.add_argument("raw", type=Path, nargs="+")
    command.set_defaults(command=_check)

    command = commands.add_parser("prepare", help="raw files to one prepared netCDF file")
    command.add_argument("--dataset", required=True)
    command.add_argument("--table", help=_TABLE)
    command.add_argument("--output", type=Path, required=True)
    command.add_argument("raw", type=Path, nargs="+")
    command.set_defaults(command=_prepare)

    command = commands.add_parser("language-model", help="bring a language model into a local folder")
    command.add_argument("--spec", required=True, help="an entry of language_models as JSON")
    command.add_argument("--folder", type=Path, required=True)
    command.set_defaults(command=_language_model)

    command = commands.add_parser("embed", help="posts to vectors by a language model")
    command.add_argument("--prepared", type=Path, required=True)
    command.add_argument("--folder", type=Path, required=True, help="the language model's folder")
    command.add_argument("--first", type=int, required=True)
    command.add_argument("--last", type=int, required=True)
    command.add_argument("--pooling", choices=["last", "mean"], required=True)
    command.add_argument("--max-tokens", type=int, required=True)
    command.add_argument("--device", default="auto")
    command.add_argument("--output", type=Path, required=True)
    command.set_defaults(command=_embed)

    command = commands.add_parser("aggregate", help="run blocks of a study to one dataset")
    command.add_argument("--study", help="name in config/studies.yaml")
    command.add_argument("--plan", help="the study's plan as JSON, instead of --study")
    command.add_argument("--output", type=Path, required=True)
    command.set_defaults(command=_aggregate)

    command = commands.add_parser("present", help="draw the figures and make the tables of a study's dataset")
    command.add_argument("--dataset", type=Path, required=True)
    command.add_argument("--folder", type=Path, required=True, help="its figures/ and tables/ are written to")
    for kind in ("figures", "tables"):
        words = f"modules of ensemblepp.{kind}, or NAME=module:function for others"
        command.add_argument(f"--{kind}", nargs="*", default=[], metavar="NAME", help=words)
    command.set_defaults(command=_present)

    for kind in ("figure", "table"):
        command = commands.add_parser(kind, help=f"draw one {kind} from a study's dataset")
        words = f"module of ensemblepp.{kind}s, name under {kind}s in config/studies.yaml, or module:function"
        command.add_argument("--name", required=True, help=words)
        command.add_argument("--dataset", type=Path, required=True)
        command.add_argument("output", type=Path, nargs="+", help="files to write; the suffix chooses the format")
        command.set_defaults(command=_figure if kind == "figure" else _table)

    command = commands.add_parser("report", help="make results/<scale>/report.html where it is missing or out of date")
    command.add_argument("--config", help="the configuration as JSON (default: the files in config/)")
    command.add_argument("--scale", help="smoke, quick or paper, instead of the configured one")
    command.set_defaults(command=_report)

    command = commands.add_parser("publish", help="copy what is small of the complete studies to results/paper-scale")
    command.add_argument("--scale", default="paper", help="smoke, quick or paper (default)")
    command.add_argument("--folder", type=Path, default=Path("results/paper-scale"))
    command.set_defaults(command=_publish)

    command = commands.add_parser("cost", help="what a study's missing runs would take, from short runs of each")
    command.add_argument("--study", required=True)
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
    command.add_argument("--write", action="store_true")
    command.set_defaults(command=_config)
    return parser


def _simulate(options: argparse.Namespace) -> None:
    from ensemblepp.runs.block import run
    from ensemblepp.runs.progress import Progress

    if options.spec:
        spec, output, code = json.loads(options.spec), options.output, options.code
    else:
        # only here: a job of the workflow is told all that these know
        from ensemblepp.config.checks import horizon_faults
        from ensemblepp.config.loading import read_files
        from ensemblepp.errors import ConfigError
        from ensemblepp.runs.fingerprint import fingerprint

        config = read_files()
        try:
            first, last = map(int, options.seeds.split("-"))
        except ValueError:
            raise ConfigError(f"--seeds: found '{options.seeds}': must be a range such as 0-9") from None
        block = config.block(options.environment, options.agent, options.ensemble_size, options.horizon, first, last)
        faults = list(horizon_faults(config, "--horizon", options.horizon, options.environment))
        if faults:
            raise ConfigError("\n".join(faults))
        spec, output, code = block.spec, options.output or Path(block.path), fingerprint(*block.code)
    first, last = spec["seeds"]
    name = f"{spec['environment']['name']} {spec['agent']['name']} M={spec['ensemble_size']} seeds {first}-{last}"
    with Progress(spec["horizon"] * (last - first + 1), name) as progress:
        run(spec, output, code=code, on_step=progress.step)
    if not options.spec:
        print(output)


def _serve(options: argparse.Namespace) -> None:
    from ensemblepp.warm_start.server import serve

    serve(options.socket, main)


def _retrieve(options: argparse.Namespace) -> None:
    from ensemblepp.data import DATASETS, load
    from ensemblepp.data.sources import MIRROR_VARIABLE, retrieve

    files = {file.name: file for name in DATASETS for file in load(name).RAW}
    _require("--file", options.file, files)
    where = retrieve(files[options.file], options.output, os.environ.get(MIRROR_VARIABLE))
    print(f"{options.file}: from {where}", file=sys.stderr)


def _check(options: argparse.Namespace) -> None:
    import hashlib
    import tempfile

    from ensemblepp.storage.datasets import write_json

    prepare = _preparation(options)
    with tempfile.TemporaryDirectory() as folder:
        prepare(options.raw, Path(folder, "prepared.nc"))
    write_json({path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in options.raw}, options.output)


def _prepare(options: argparse.Namespace) -> None:
    _preparation(options)(options.raw, options.output)


def _preparation(options: argparse.Namespace) -> Callable[[list[Path], Path], None]:
    """What prepares --dataset, once its raw files are known to be there."""
    from ensemblepp.data import DATASETS, load, table
    from ensemblepp.errors import DataError

    declared = options.table and json.loads(options.table)
    if options.dataset not in DATASETS and not declared:
        from ensemblepp.config.loading import read_files

        tables = read_files().datasets
        _require("--dataset", options.dataset, [*DATASETS, *tables])
        declared = tables[options.dataset].declared()
    for path in options.raw:
        if not path.is_file():
            remedy = "; `python -m ensemblepp retrieve` brings it" if options.dataset in DATASETS else ""
            raise DataError(f"{path}: no such file{remedy}")
    if options.dataset in DATASETS:
        return load(options.dataset).prepare
    return partial(table.prepare, **declared)


def _language_model(options: argparse.Namespace) -> None:
    from ensemblepp.text.language_models import acquire

    acquire(json.loads(options.spec), options.folder)


def _embed(options: argparse.Namespace) -> None:
    from ensemblepp import devices
    from ensemblepp.runs.progress import Progress
    from ensemblepp.text.embedding import embed_posts

    with Progress(options.last - options.first + 1, f"embedding posts {options.first}-{options.last}") as progress:
        embed_posts(
            options.prepared,
            options.output,
            folder=options.folder,
            first=options.first,
            last=options.last,
            pooling=options.pooling,
            max_tokens=options.max_tokens,
            device=devices.require(options.device),
            on_text=progress.step,
        )


def _aggregate(options: argparse.Namespace) -> None:
    from ensemblepp.runs.aggregate import aggregate

    if options.plan:
        plan = json.loads(options.plan)
    else:
        from ensemblepp.config.loading import read_files
        from ensemblepp.runs.plan import plan as plan_of

        config = read_files()
        _require("--study", options.study, config.active_studies())
        plan = plan_of(config, options.study)
    aggregate(plan, options.output)


def _present(options: argparse.Namespace) -> None:
    from ensemblepp import figures, tables

    for kind, package in (("figures", figures), ("tables", tables)):
        for word in getattr(options, kind):
            name, _, place = word.partition("=")
            stem = f"{options.dataset.stem}-{name}"
            outputs = [options.folder / kind / f"{stem}.{suffix}" for suffix in package.SUFFIXES]
            package.save(place or name, options.dataset, outputs)


def _figure(options: argparse.Namespace) -> None:
    from ensemblepp.figures import save

    save(_presentation("figures", options.name), options.dataset, options.output)


def _table(options: argparse.Namespace) -> None:
    from ensemblepp.tables import save

    save(_presentation("tables", options.name), options.dataset, options.output)


def _presentation(kind: str, name: str) -> str:
    """The function behind the figure or table that --name names."""
    from ensemblepp import registry
    from ensemblepp.config import own_code
    from ensemblepp.errors import ConfigError

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


def _require(option: str, found: str, allowed: Collection[str]) -> None:
    from ensemblepp.errors import ConfigError

    if found not in allowed:
        raise ConfigError(f"{option}: found '{found}': must be one of {', '.join(allowed)}")


def _publish(options: argparse.Namespace) -> None:
    from ensemblepp.config.loading import read_files
    from ensemblepp.runs.publish import publish

    for study in publish(read_files(scale=options.scale), options.folder):
        print(f"{options.folder}: {study}")


def _cost(options: argparse.Namespace) -> None:
    from ensemblepp.config.loading import read_files
    from ensemblepp.runs.costs import estimate

    config = read_files(**({"scale": options.scale} if options.scale else {}))
    _require("--study", options.study, config.active_studies())
    print(f"{config.studies[options.study].title}: {estimate(config, options.study)}")


def _report(options: argparse.Namespace) -> None:
    from ensemblepp.config.loading import load, read_files
    from ensemblepp.runs.report import make

    overrides = {"scale": options.scale} if options.scale else {}
    config = load(json.loads(options.config) | overrides) if options.config else read_files(**overrides)
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
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _config(options: argparse.Namespace) -> None:
    from ensemblepp.config import documentation
    from ensemblepp.config.loading import read_files

    if options.write:
        for path in documentation.write_all():
            print(path)
    config = read_files()
    print(f"configuration is sound: scale {config.scale}, {len(config.active_studies())} studies")
