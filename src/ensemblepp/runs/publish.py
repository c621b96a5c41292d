"""The small, tracked side of a full run: figures, tables, summaries over seeds, and what it took to make them."""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ensemblepp import figures, registry
from ensemblepp.analysis import needs
from ensemblepp.analysis.published import KEPT, summary
from ensemblepp.analysis.selection import had, read_study
from ensemblepp.claims import writing
from ensemblepp.config.resolution import ARTEFACTS, Config
from ensemblepp.errors import ResultError
from ensemblepp.runs import archives, crate, ledger
from ensemblepp.runs.costs import measured, not_measured
from ensemblepp.runs.differences import differences
from ensemblepp.runs.machine import machine
from ensemblepp.specification import Block
from ensemblepp.storage.datasets import read_dataset, read_json, write_dataset, write_json

FOLDER = "results/paper-scale"

#: Formats of tables that are worth tracking.
TABLES = ("csv", "md", "tex")


def publish(config: Config, folder: str | Path = FOLDER) -> list[str]:
    """Put the artefacts of every study that is complete at the configured scale into `folder`, and say what is missing.

    Studies that were published before and are not complete here stay as they are, and so do runs that were packed
    (`runs.archives`), until their study is complete. Tables are copied, figures drawn from what is published (`redraw`), and
    so are the claims decided (`claims/`: the ledger, where anything is claimed). Written beside them: datasets/<study>.nc
    (`analysis.published`), provenance.json (per publication: machine, versions, commits, wall and CPU seconds and peak memory
    per rule; and the studies that were not run, with what they would cost, where that was measured here or for an earlier
    publication), README.md, and the whole as a research object (`crate`).

    Returns:
        The studies that were published now.

    Raises:
        ResultError: no study is complete, or a file of one is damaged or missing; nothing is published then.
    """
    studies = config.active_studies()
    complete = [name for name in studies if all(Path(path).exists() for path in config.files(name))]
    if not complete:
        raise ResultError(f"{config.results}: no study is complete; run snakemake --config scale={config.scale} first")
    crate.sources()
    folder = Path(folder)
    before = _before(folder)
    earlier = _earlier(before, set(studies) - set(complete))
    kept = {name for publication in earlier for name in publication["studies"]}
    # before anything is written: what is damaged shows here
    publication = _publication(config, complete)
    missing = [name for name in studies if name not in kept and name not in complete]
    costs = {name: record for name in missing if (record := measured(config, name, before["costs"]))}
    not_run = {name: costs[name]["words"] if name in costs else not_measured(config, name) for name in missing}
    summaries = {
        name: summary(read_dataset(f"{config.results}/datasets/{name}.nc", holds=("regret", *KEPT))) for name in complete
    }
    for path in [path for kind in (*ARTEFACTS, "datasets") for path in folder.glob(f"{kind}/*")]:
        if crate.owner(path, studies) not in kept:
            path.unlink()
    for name in complete:
        for artefact in studies[name].tables:
            for suffix in TABLES:
                source = Path(config.results, "tables", f"{name}-{artefact}.{suffix}")
                (folder / "tables").mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, folder / "tables" / source.name)
        write_dataset(summaries[name], folder / "datasets" / f"{name}.nc")
        _draw(config, name, folder)
        archives.archive(folder, name).unlink(missing_ok=True)
    publications = [*earlier, publication]
    provenance = {"scale": config.scale, "publications": publications, "not_run": not_run, "costs": costs}
    _say(config, folder, provenance)
    crate.write_crate(config, folder, provenance)
    return complete


def outdated(config: Config, datasets: Iterable[Path]) -> dict[str, str]:
    """Published datasets of studies that the configuration would not make any more, and each one's first difference in words.

    Compared are runs, and of each the options that both sides state: others came or went with the code, and a new one's
    default is what was played before.

    Raises:
        ResultError: a published dataset is damaged, or holds no specifications.
    """
    studies = config.active_studies()
    found = {}
    for path in datasets:
        if path.stem in studies:
            held = json.loads(read_dataset(path, finite=(), holds=("specs",)).attrs["specs"])
            reason = next(_changes([Block(config.results, spec) for spec in held], config.blocks(path.stem)), None)
            found |= {path.stem: reason} if reason else {}
        else:
            found[path.stem] = f"scale {config.scale} has no such study"
    return found


def _changes(held: Sequence[Block], wanted: Sequence[Block]) -> Iterator[str]:
    """Why runs that were published are not those that are asked for."""
    were, are = ({block.path: block.spec for block in blocks} for blocks in (held, wanted))
    yield from (f"holds {path}" for path in sorted(were.keys() - are.keys()))
    yield from (f"without {path}" for path in sorted(are.keys() - were.keys()))
    for path in sorted(were.keys() & are.keys()):
        for part in ("environment", "agent"):
            before, now = were[path][part]["options"], are[path][part]["options"]
            both = [key for key in before if key in now]
            changed = differences({key: before[key] for key in both}, {key: now[key] for key in both})
            yield from (f"{path}: {part}.options.{change}" for change in changed)


def renew(config: Config, folder: str | Path = FOLDER) -> list[Path]:
    """Write anew what of a published folder depends on the configuration; nothing where nothing is published.

    That is the ledger, which studies are out of date (provenance.json), and README.md.

    Raises:
        ResultError: provenance or a dataset is damaged.
    """
    folder = Path(folder)
    if not (folder / "provenance.json").exists():
        return []
    written = _say(config, folder, read_json(folder / "provenance.json", "take it from git again"))
    crate.renew(config, folder)
    return written


def _say(config: Config, folder: Path, provenance: dict) -> list[Path]:
    """Write the ledger, provenance.json and README.md of what is published."""
    stale = outdated(config, sorted(folder.glob("datasets/*.nc")))
    written = []
    if config.claims:
        written = [folder / "claims" / f"ledger.{suffix}" for suffix in writing.SUFFIXES]
        written[0].parent.mkdir(parents=True, exist_ok=True)
        writing.save(ledger.published(config, folder, stale), written)
    write_json(provenance | {"outdated": stale}, folder / "provenance.json")
    text = readme(config, provenance, stale, archives.begun(config, folder))
    (folder / "README.md").write_text(text, encoding="utf-8")
    return [*written, folder / "provenance.json", folder / "README.md"]


def redraw(config: Config, folder: str | Path = FOLDER) -> tuple[list[Path], list[str]]:
    """Draw the figures of all published studies, and decide the claims, from the datasets that are published with them.

    No run is needed.

    Returns:
        The figures that were drawn, without their suffixes, and a line for each that stays as it was, because what it needs
        was not published.

    Raises:
        ResultError: there is no provenance, or a dataset is damaged or missing.
    """
    folder = Path(folder)
    provenance = read_json(folder / "provenance.json", "take it from git again")
    published = [
        name for publication in provenance["publications"] for name in publication["studies"] if name in config.studies
    ]
    drawn, left = [], []
    for name in published:
        of_study = _draw(config, name, folder)
        drawn += of_study[0]
        left += of_study[1]
    renew(config, folder)
    return drawn, left


def _draw(config: Config, study: str, folder: Path) -> tuple[list[Path], list[str]]:
    """The figures of a published study, and why others are not drawn."""
    drawn, left = [], []
    dataset = read_study(folder / "datasets" / f"{study}.nc", "a figure", {})
    for artefact in config.studies[study].figures:
        place = config.presentation("figures", artefact)
        fault = next(needs.unmet(registry.needs(place), had(dataset)), None)
        stem = folder / "figures" / f"{study}-{artefact}"
        if fault:
            left.append(f"{stem}: {fault}")
        else:
            figures.write(place, dataset, [stem.with_name(f"{stem.name}.{suffix}") for suffix in figures.SUFFIXES])
            drawn.append(stem)
    return drawn, left


def _before(folder: Path) -> dict:
    """The content of provenance.json, empty where nothing was published."""
    path = folder / "provenance.json"
    return {"publications": [], "costs": {}} | (read_json(path, "take it from git again") if path.exists() else {})


def _earlier(before: dict, wanted: set[str]) -> list[dict]:
    """What was published before of the studies `wanted`; what it took is said of all, so that the names of others stay."""
    kept = []
    for publication in before["publications"]:
        studies = {name: facts for name, facts in publication["studies"].items() if name in wanted}
        if studies:
            renewed = {*publication.get("renewed", ()), *publication["studies"]} - set(studies)
            kept.append(publication | {"studies": studies, "renewed": sorted(renewed)})
    return kept


def _publication(config: Config, complete: list[str]) -> dict:
    runs = [read_json(Path(block.path).with_suffix(".json")) for name in complete for block in config.blocks(name)]
    return {
        "studies": {
            name: {
                "blocks": len(config.blocks(name)),
                "horizon": config.studies[name].scales[config.scale].horizon,
                "seeds": len(config.studies[name].scales[config.scale].seed_list()),
            }
            for name in complete
        },
        "commits": sorted({run["commit"] for run in runs}),
        "finished": max((run["finished"] for run in runs), key=crate.instant),
        "inputs": crate.checksums(config, complete),
        "versions": runs[-1]["versions"] | {"python": runs[-1]["python"]},
        "machine": machine(),
        "rules": _rules(config, complete),
        "invocations": _invocations(config.scale),
    }


#: A job of less memory (MB) has asked a warm process to be run: what Snakemake has measured is who asked.
ASKED = 50.0


def _rules(config: Config, studies: list[str]) -> dict[str, dict]:
    """Jobs, wall and CPU seconds and peak memory (MB) per rule, of these studies.

    Runs say it of themselves; of other jobs it is what Snakemake has measured, and None of those that started warm.
    """
    rules: dict[str, dict[str, Any]] = defaultdict(
        lambda: {"jobs": 0, "wall_seconds": 0.0, "cpu_seconds": 0.0, "peak_memory_mb": 0.0}
    )

    def count(name: str, wall: float, cpu: float, memory: float, *, asked: bool = False) -> None:
        rule = rules[name]
        rule["jobs"] += 1
        rule["wall_seconds"] = round(rule["wall_seconds"] + wall, 1)
        known = not asked and rule["cpu_seconds"] is not None
        rule["cpu_seconds"] = round(rule["cpu_seconds"] + cpu, 1) if known else None
        rule["peak_memory_mb"] = round(max(rule["peak_memory_mb"], memory), 1) if known else None

    for path in sorted({block.path for name in studies for block in config.blocks(name)}):
        run = read_json(Path(path).with_suffix(".json"))
        count("simulate", run["seconds"], run["cpu_seconds"], run["peak_memory_mb"])
    base = Path(f"logs/{config.scale}/benchmarks")
    for file in sorted(file for file in base.glob("*/*.tsv") if file.stem in studies):
        # of a job that is shorter than Snakemake's first sample there is a wall time and no more
        row = _benchmark(file)
        count(file.parent.name, row["s"], row["cpu_time"], row["max_rss"], asked=not row["max_rss"] >= ASKED)
    return dict(sorted(rules.items()))


def _benchmark(path: Path) -> pd.Series:
    """The last row of one of Snakemake's benchmarks."""
    try:
        row = pd.read_csv(path, sep="\t", na_values=["-", "NA"]).iloc[-1]
        return row[["s", "cpu_time", "max_rss"]].astype(float)
    except (ValueError, LookupError) as error:
        raise ResultError(f"{path}: not a benchmark of Snakemake's; delete it") from error


def _invocations(scale: str) -> list[dict]:
    """What Snakemake was called for and how long it took, as the workflow records it."""
    path = Path(f"logs/{scale}/invocations.jsonl")
    try:
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.exists() else []
    except ValueError as error:
        raise ResultError(f"{path}: a line of it is no JSON; delete that line") from error


def readme(config: Config, provenance: dict, outdated: Mapping[str, str], begun: Mapping[str, int]) -> str:
    """What was published, what of it the configuration would make with other values, and what it took.

    Args:
        config: the configuration of the scale that was published.
        provenance: the content of provenance.json.
        outdated: as `outdated` finds them.
        begun: as `archives.begun` finds them.
    """
    lines = [
        f"# Results at scale `{config.scale}`",
        "",
        f"Made by `snakemake --cores all --config scale={config.scale}`, then `python -m ensemblepp publish`.",
        "`datasets/` holds, per study, mean, standard error and median of the regret over seeds, and every final regret; of",
        "few runs all curves. The figures are drawn from these: `python -m ensemblepp publish --redraw` draws them anew.",
        f"`python -m ensemblepp page --scale {config.scale} --folder {FOLDER}` makes one page of all of it.",
        "The folder is a research object: `ro-crate-metadata.json` tells of every file, what it was made of, when and by whom.",
        "",
        "| study | seeds | rounds | files |",
        "| --- | --- | --- | --- |",
    ]
    published = {name: facts for publication in provenance["publications"] for name, facts in publication["studies"].items()}
    for name in [name for name in config.studies if name in published]:
        study, facts = config.studies[name], published[name]
        links = [
            f"[{artefact.replace('_', ' ')}]({kind}/{name}-{artefact}.{suffix})"
            for kind, suffix in (("figures", "png"), ("tables", "md"))
            for artefact in getattr(study, kind)
        ]
        lines.append(f"| {study.title} | {facts['seeds']} | {facts['horizon']:,} | {', '.join(links)} |")
    if outdated:
        lines += ["", "Made under values that the configuration has changed since, and not run again yet:", ""]
        lines += [f"* {config.studies[name].title} (`{name}`): {reason}." for name, reason in outdated.items()]
    if provenance["not_run"]:
        lines += ["", "Not run at this scale yet:", ""]
        for name, study in config.studies.items():
            if name in provenance["not_run"]:
                lines.append(f"* {study.title}: {provenance['not_run'][name]}.")
    if begun:
        lines += ["", "Begun; the runs that are finished are in `runs/`, and `python -m ensemblepp unpack` puts them back:", ""]
        for name, runs in begun.items():
            lines.append(f"* {config.studies[name].title} (`{name}`): {runs} of {len(config.blocks(name))} runs.")
    for publication in provenance["publications"]:
        machine = publication["machine"]
        titles = [study.title for name, study in config.studies.items() if name in publication["studies"]]
        renewed = len(publication.get("renewed", ()))
        titles += [f"{renewed} more that were made anew since"] if renewed else []
        lines += ["", f"What it took on {machine['processor']}, {machine['cores']} cores ({'; '.join(titles)}):", ""]
        lines += ["| rule | jobs | wall, s | CPU, s | peak memory of a job, MB |", "| --- | --- | --- | --- | --- |"]
        for rule, cost in publication["rules"].items():
            found = (cost[key] for key in ("jobs", "wall_seconds", "cpu_seconds", "peak_memory_mb"))
            numbers = ("-" if number is None else f"{number:.0f}" for number in found)
            lines.append(f"| {rule} | {' | '.join(numbers)} |")
        if publication["invocations"]:
            total = sum(call["seconds"] for call in publication["invocations"])
            lines += ["", f"Snakemake's own wall time, all calls: {total / 60:.1f} min."]
    return "\n".join(lines) + "\n"
