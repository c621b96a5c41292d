"""Commands that tell: what there is and what it is made of, what it would cost, and what is stale or wrong."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from ensemblepp.cli.shared import print_rows, require
from ensemblepp.errors import ConfigError

#: What `list` shows.
LISTED = ("studies", "agents", "environments", "datasets", "language_models", "laws", "figures", "tables")


def check(options: argparse.Namespace) -> int:
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
                config = read_files(scale="paper")
                findings = list(verification.verify_published(config, files, progress.step))
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


def why(options: argparse.Namespace) -> None:
    from ensemblepp.config.loading import read_files
    from ensemblepp.runs.reasons import why

    for line in why(read_files(**({"scale": options.scale} if options.scale else {})), options.targets):
        print(line)


def cost(options: argparse.Namespace) -> None:
    from ensemblepp.config.loading import read_files
    from ensemblepp.runs.costs import estimate

    config = read_files(**({"scale": options.scale} if options.scale else {}))
    if options.study is None:
        from ensemblepp.runs.budget import budgets, in_words

        studies, total = budgets(config)
        rows = [(name, *one.cells()) for name, one in (*studies.items(), ("total", total))]
        print_rows([("study", *total.HEADINGS), *rows])
        for line in in_words(total):
            print(line)
        return
    require("--study", options.study, config.active_studies())
    words = estimate(config, options.study, lambda path: print(f"short runs of {path}", file=sys.stderr, flush=True))
    print(f"{config.studies[options.study].title}: {words}")


def show_agent(options: argparse.Namespace) -> None:
    from ensemblepp import registry
    from ensemblepp.config.loading import read_files

    config = read_files()
    if options.name not in config.agents:
        require("name", options.name, config.named_agents)
    require("--environment", options.environment, config.environments)
    resolved = config.agent_for(options.name, options.environment)
    runner = config.runner(options.name)
    spec = config.block(options.environment, options.name, int(config.agents[runner].ensemble), 1, 0, 0).spec
    print(f"agent {options.name} ({config.agents[options.name].label}) in environment {options.environment}")
    print_rows([("kind", spec["agent"]["kind"]), ("class", registry.agent_path(spec)), ("engine", spec["engine"])])
    print_rows([("device", spec["device"])])
    print()
    rows = [(key, json.dumps(value), resolved.origins[key]) for key, value in resolved.model.options().items()]
    print_rows([("key", "value", "from"), *rows])


def show_environment(options: argparse.Namespace) -> None:
    from ensemblepp import registry
    from ensemblepp.config.loading import read_files
    from ensemblepp.config.resolution import described

    config = read_files()
    require("name", options.name, config.environments)
    environment = config.environments[options.name]
    described_as = described(options.name, environment, environment.options())
    place = registry.class_path(registry.ENVIRONMENTS, described_as)
    print(f"environment {options.name} ({environment.title})")
    print_rows([("kind", environment.kind), ("class", place), ("family", environment.played_as() or "any, round by round")])
    print()
    stated = environment.model_fields_set | getattr(environment, "arguments", {}).keys()
    rows = [
        (key, json.dumps(value), f"environments.{options.name}" if key in stated or key == "inputs" else "default")
        for key, value in described_as["options"].items()
    ]
    print_rows([("key", "value", "from"), *rows])


def list_names(options: argparse.Namespace) -> None:
    from ensemblepp.config.checks import presentable
    from ensemblepp.config.loading import read_files
    from ensemblepp.data import DATASETS
    from ensemblepp.randomness.distributions import LAWS

    config = read_files()
    named = {
        "studies": {name: f"{study.title} [{', '.join(study.scales)}]" for name, study in config.studies.items()},
        "agents": {name: f"{config.agents[name].label} ({config.agents[name].kind})" for name in config.named_agents},
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
        print_rows([(f"  {name}", words) for name, words in named[kind].items()])


def show_configuration(options: argparse.Namespace) -> None:
    from ensemblepp.config import documentation
    from ensemblepp.config.loading import read_files
    from ensemblepp.runs import publish

    written = documentation.write_all() if options.write else []
    config = read_files(merged=options.files)
    if options.write:
        # what is published says which of it is out of date
        written += publish.renew(read_files(scale="paper"))
    for path in written:
        print(path)
    print(f"configuration is sound: scale {config.scale}, {len(config.active_studies())} studies")
