"""Commands that make something of run files: datasets, figures, tables, the ledger, the report, what is published."""

from __future__ import annotations

import argparse
from pathlib import Path

from ensemblepp.arguments import folder, output
from ensemblepp.cli.shared import presentation, print_rows, require, unedited
from ensemblepp.errors import ResultError


def aggregate(options: argparse.Namespace) -> None:
    from ensemblepp.runs.aggregate import aggregate

    planned = options.plan
    if planned is None:
        from ensemblepp.config.loading import read_files
        from ensemblepp.runs.plan import plan as plan_of

        config = read_files()
        require("--study", options.study, config.active_studies())
        planned = plan_of(config, options.study)
    with unedited(options.code, ["ensemblepp.runs.aggregate"], options.output):
        aggregate(planned, output(options.output, [".nc"]))


def present(options: argparse.Namespace) -> None:
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
    with unedited(options.code, places, *(path for *_, outputs in work for path in outputs)):
        for save, name, outputs in work:
            save(name, options.dataset, outputs)


def claims(options: argparse.Namespace) -> None:
    from ensemblepp.claims import writing

    outputs = [output(path, [f".{suffix}" for suffix in writing.SUFFIXES]) for path in options.output]
    planned = options.plan
    if planned is None:
        from ensemblepp.config.loading import read_files
        from ensemblepp.runs.ledger import plan as plan_of

        config = read_files(**({"scale": options.scale} if options.scale else {}))
        planned = plan_of(config, {}, existing=True)
    if outputs:
        with unedited(options.code, writing.CODE, *outputs):
            writing.save(planned, outputs)
        return
    from ensemblepp.claims.ledger import decide

    ledger = decide(planned)
    print_rows(writing.overview(ledger))
    for line in writing.counted(ledger):
        print(line)


def figure(options: argparse.Namespace) -> None:
    from ensemblepp.figures import SUFFIXES, save

    name = presentation("figures", options.name)
    save(name, options.dataset, [output(path, [f".{suffix}" for suffix in SUFFIXES]) for path in options.output])


def table(options: argparse.Namespace) -> None:
    from ensemblepp.tables import SUFFIXES, save

    name = presentation("tables", options.name)
    save(name, options.dataset, [output(path, [f".{suffix}" for suffix in SUFFIXES]) for path in options.output])


def tune(options: argparse.Namespace) -> None:
    from ensemblepp.config.loading import read_files
    from ensemblepp.runs import tuning

    config = read_files(scale=options.scale)
    require("--study", options.study, config.active_studies())
    chosen = tuning.choose(config, options.study)
    tuning.write(config, chosen)
    rows = [
        (environment, agent, f"setting {one['setting']} of {one['of']}", f"regret {one['regret']:g}", str(one["values"]))
        for environment, choices in chosen.items()
        for agent, one in choices.items()
    ]
    print_rows([("environment", "agent", "best", "mean", "values"), *rows])
    print(tuning.FILE)


def publish(options: argparse.Namespace) -> None:
    from ensemblepp.config.loading import read_files
    from ensemblepp.runs.publish import publish, redraw

    config = read_files(scale=options.scale)
    if options.redraw:
        drawn, left = redraw(config, options.folder)
        for line in (*drawn, *(f"not drawn: {fault}" for fault in left)):
            print(line)
        return
    for study in publish(config, options.folder):
        print(f"{options.folder}: {study}")


def pack(options: argparse.Namespace) -> None:
    from ensemblepp.config.loading import read_files
    from ensemblepp.runs import archives, publish

    config = read_files(scale=options.scale)
    for study in options.studies:
        require("STUDY", study, config.active_studies())
    for study in options.studies:
        done = archives.pack(config, study, options.folder)
        print(f"{archives.archive(options.folder, study)}: {done} of {len(config.blocks(study))} runs")
    publish.renew(config, options.folder)


def unpack(options: argparse.Namespace) -> None:
    from ensemblepp.config.loading import read_files
    from ensemblepp.runs import archives

    config = read_files(scale=options.scale)
    for study, restored, present, refused in archives.unpack(config, options.folder, options.studies):
        for line in refused:
            print(f"left out: {line}")
        print(f"{study}: {restored} runs put back, {present} there already, {len(refused)} left out")


def page(options: argparse.Namespace) -> None:
    from ensemblepp.report import CODE
    from ensemblepp.report.page import save

    planned = options.plan
    if planned is None:
        from ensemblepp.config.loading import read_files
        from ensemblepp.runs.page import plan as plan_of

        config = read_files(**({"scale": options.scale} if options.scale else {}))
        planned = plan_of(config, {}, results=str(options.folder or config.results))
        if not planned["studies"]:
            raise ResultError(f"{planned['results']}: no study is there; run snakemake --config scale={config.scale} first")
    target = output(options.output or Path(planned["results"], "index.html"), [".html"])
    with unedited(options.code, CODE, target):
        save(planned, target)
    # a job of the workflow says nothing
    if options.plan is None:
        print(f"page: {target.absolute()}")


def report(options: argparse.Namespace) -> None:
    from ensemblepp.config.loading import load, read_files
    from ensemblepp.runs.report import make

    overrides = {"scale": options.scale} if options.scale else {}
    config = load(options.config | overrides) if options.config else read_files(**overrides)
    print(f"report: {make(config)}")


def render(options: argparse.Namespace) -> None:
    from ensemblepp.runs.report import render

    render(options.settings, options.output)
