"""What was published as a research object: what was run, on which inputs, with what, by whom and when, and what came out.

It is `ro-crate-metadata.json`, an RO-Crate of the profile Workflow Run Crate (https://w3id.org/ro/wfrun/workflow/0.5), and
`make check-metadata` holds it against that profile. A publication is one action: jobs are summed up by rule in
provenance.json, so the profile that wants an action for every job does not fit.

All is taken from the configuration and from what was recorded, nothing from the clock: equal results give equal bytes.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ensemblepp.config.loading import read_yaml
from ensemblepp.config.resolution import Config
from ensemblepp.data import load
from ensemblepp.data.sources import HOSTS, RawFile, Source
from ensemblepp.errors import ResultError

if TYPE_CHECKING:
    from rocrate.model.entity import Entity
    from rocrate.rocrate import ROCrate

METADATA = "ro-crate-metadata.json"
WORKFLOW = "workflow/Snakefile"

#: What of the repository a research object holds, as it was when that was published.
SOURCES = (WORKFLOW, "workflow/rules/*.smk", "config/*.yaml", "requirements*.lock", "CITATION.cff", "LICENSE")

PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": ("Workflow RO-Crate", "1.0"),
}
FORMATS = {
    ".csv": "text/csv",
    ".json": "application/json",
    ".md": "text/markdown",
    ".nc": "application/x-netcdf",
    ".pdf": "application/pdf",
    ".png": "image/png",
    ".tex": "application/x-tex",
    ".xz": "application/x-xz",
    ".yaml": "application/yaml",
}


def sources() -> list[Path]:
    """The files of `SOURCES`.

    Raises:
        ResultError: one is not here, or the library that writes research objects is not.
    """
    try:
        import rocrate.rocrate  # noqa: F401
    except ImportError as error:
        raise ResultError(f"publishing needs the package rocrate ({error}); `make install` installs it") from None
    found = {pattern: sorted(Path().glob(pattern)) for pattern in SOURCES}
    for pattern, paths in found.items():
        if not paths:
            raise ResultError(f"{pattern}: no such file; publish from the folder that holds the Snakefile")
    return [path for paths in found.values() for path in paths]


def owner(path: Path, studies: Mapping[str, Any]) -> str | None:
    """The study that a published file is of: the longest name that fits, since a study's name may begin another's."""
    return max((name for name in studies if path.name.startswith((f"{name}-", f"{name}."))), key=len, default=None)


def write_crate(config: Config, folder: Path, provenance: Mapping[str, Any]) -> None:
    """Copy `sources` to `folder`, and describe them and all else that lies there.

    Args:
        config: the configuration of the scale that was published.
        folder: what was published: figures/, tables/, datasets/, provenance.json and README.md.
        provenance: the content of provenance.json.
    """
    from rocrate.rocrate import ROCrate

    for place in ("workflow", "config"):
        shutil.rmtree(folder / place, ignore_errors=True)
    for source in sources():
        (folder / source).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, folder / source)
    crate = ROCrate(version="1.1")
    _add_terms(crate)
    citation: Mapping[str, Any] = read_yaml(folder / "CITATION.cff")
    authors = [_author(crate, author) for author in citation["authors"]]
    licence = _entity(crate, f"https://spdx.org/licenses/{citation['license']}", "CreativeWork", name=citation["license"])
    files = {path: _file(crate, config, folder, path) for path in _files(folder)}
    workflow = _workflow(crate, files, citation, provenance)
    _say(workflow, author=authors, license=licence)
    actions = [
        _action(crate, config, number, publication, files) for number, publication in enumerate(provenance["publications"], 1)
    ]
    for action in actions:
        _say(action, instrument=workflow, agent=authors[0])
    actions[-1].append_to("result", [entity for name, entity in files.items() if name.startswith("claims/")])
    _say(files["provenance.json"], about=actions)
    _say(files["README.md"], about=crate.root_dataset)
    for address, (name, version) in PROFILES.items():
        _entity(crate, address, "CreativeWork", name=name, version=version)
    crate.metadata["conformsTo"] = [{"@id": crate.metadata.profile}, {"@id": list(PROFILES)[-1]}]
    _say(
        crate.root_dataset,
        name=f"Results of {citation['title']}",
        description=f"Figures, tables, summaries over seeds and provenance at scale {config.scale}, and what made them.",
        conformsTo=[{"@id": address} for address in PROFILES],
        author=authors,
        publisher=authors[0],
        license=licence,
        keywords=citation["keywords"],
        citation=[_paper(crate, paper) for paper in citation["references"]],
        mainEntity=workflow,
        mentions=actions,
        datePublished=max(action["endTime"] for action in actions),
    )
    _write(crate, folder)


def renew(config: Config, folder: Path) -> None:
    """Tell in a research object of the files that are there now, and leave all else that it tells as it is.

    For what is written anew of results that are published: how they are drawn, and what is said about them.

    Args:
        config: as of `write_crate`.
        folder: what was published; nothing is done where no research object is.
    """
    if not (folder / METADATA).exists():
        return
    from rocrate.rocrate import ROCrate

    crate = ROCrate(folder)
    _add_terms(crate)
    told = {entity.id: entity for entity in crate.get_entities() if "File" in entity.type and not entity.id.startswith("#")}
    here = _files(folder)
    made = {name: _file(crate, config, folder, name) for name in here if name not in told}
    for name in told.keys() & set(here):
        _say(told[name], **_size(folder / name))
    actions = crate.get_by_type("CreateAction")
    last = max(actions, key=lambda action: action["endTime"])
    for action in actions:
        results = action["result"] if isinstance(action["result"], list) else [action["result"]]
        studies = {owner(Path(entity.id), config.studies) for entity in results}
        results += [entity for name, entity in made.items() if owner(Path(name), config.studies) in studies - {None}]
        # claims are decided by all that is published
        results += [entity for name, entity in made.items() if action is last and name.startswith("claims/")]
        action["result"] = [entity for entity in results if entity.id in here]
    for name in told.keys() - set(here):
        crate.delete(told[name])
    _write(crate, folder)


def faults(metadata: Path) -> Iterator[tuple[Path, str]]:
    """Files of a research object that are not as its `ro-crate-metadata.json` says, and what is wrong with each."""
    folder = metadata.parent
    try:
        graph = json.loads(metadata.read_bytes())["@graph"]
        sums = {entity["@id"]: entity["sha256"] for entity in graph if "File" in entity["@type"]}
    except (ValueError, LookupError, TypeError) as error:
        yield metadata, f"damaged (no research object: {type(error).__name__}: {error})"
        return
    for name in _files(folder):
        if name not in sums:
            yield folder / name, f"{METADATA} does not tell of it"
        elif sums.pop(name) != _sha256(folder / name):
            yield folder / name, f"its SHA-256 is not that in {METADATA}"
    yield from ((folder / name, "missing") for name in sums)


def _files(folder: Path) -> list[str]:
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(name for name in found if name != METADATA)


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _write(crate: ROCrate, folder: Path) -> None:
    """Write the metadata, entities by name: rocrate's own order is another once they have been read again."""
    crate.metadata.write(folder)
    content = json.loads((folder / METADATA).read_bytes())
    content["@graph"].sort(key=lambda entity: entity["@id"])
    (folder / METADATA).write_text(json.dumps(content, indent=4, sort_keys=True), encoding="utf-8")


def _size(path: Path) -> dict[str, str]:
    return {"contentSize": str(path.stat().st_size), "sha256": _sha256(path)}


def _add_terms(crate: ROCrate) -> None:
    """What RO-Crate 1.1 has no name for."""
    crate.metadata.extra_terms["sha256"] = "https://w3id.org/ro/terms/workflow-run#sha256"


def _say(entity: Entity, **properties: Any) -> None:
    """Give an entity properties; RO-Crate wants one value as itself, not as a list of one."""
    for name, value in properties.items():
        entity[name] = value[0] if isinstance(value, list) and len(value) == 1 else value


def _entity(crate: ROCrate, identifier: str, kind: str, **properties: Any) -> Entity:
    from rocrate.model.contextentity import ContextEntity

    return crate.add(ContextEntity(crate, identifier, {"@type": kind, **properties}))


def _author(crate: ROCrate, author: Mapping[str, str]) -> Entity:
    """A person or an organisation, as CITATION.cff has it."""
    if "name" in author:
        return _entity(crate, f"#{author['name'].replace(' ', '-')}", "Organization", name=author["name"])
    name = f"{author['given-names']} {author['family-names']}"
    person = _entity(crate, author.get("orcid", f"#{name.replace(' ', '-')}"), "Person", name=name)
    if "affiliation" in author:
        person["affiliation"] = _author(crate, {"name": author["affiliation"]})
    return person


def _paper(crate: ROCrate, paper: Mapping[str, Any]) -> Entity:
    authors = [_author(crate, author) for author in paper["authors"]]
    return _entity(
        crate, paper["url"], "ScholarlyArticle", name=paper["title"], author=authors, datePublished=str(paper["year"])
    )


def _file(crate: ROCrate, config: Config, folder: Path, name: str) -> Entity:
    from rocrate.model.computationalworkflow import ComputationalWorkflow
    from rocrate.model.file import File

    path = Path(folder, name)
    properties = {"name": name} | _size(path)
    properties["encodingFormat"] = FORMATS.get(path.suffix, "text/plain")
    study = owner(path, config.studies)
    if study and path.parent != folder:
        properties["description"] = f"{config.studies[study].title}: {path.stem.removeprefix(study).strip('-') or 'summary'}"
    kind = ComputationalWorkflow if name == WORKFLOW else File
    return crate.add(kind(crate, path, name, properties=properties))


def _page(name: str, version: str) -> str:
    """Where a version of Python, or of a package, is described; a build of it has an address of its own."""
    public, _, build = version.partition("+")
    if name == "python":
        return f"https://www.python.org/downloads/release/python-{public.replace('.', '')}/"
    return f"https://pypi.org/project/{name}/{public}/{build and f'#{build}'}"


def _workflow(
    crate: ROCrate, files: Mapping[str, Entity], citation: Mapping[str, Any], provenance: Mapping[str, Any]
) -> Entity:
    """The main workflow, with the parameter that it takes and the software that it was run with."""
    from rocrate.model.computerlanguage import get_lang

    versions = {pair for publication in provenance["publications"] for pair in publication["versions"].items()}
    # it needs itself least of all
    needed = sorted((name, version) for name, version in versions if name != "ensemblepp")
    workflow = files[WORKFLOW]
    _say(
        workflow,
        name=citation["title"],
        version=str(citation["version"]),
        programmingLanguage=crate.add(get_lang(crate, "snakemake")),
        hasPart=[entity for name, entity in files.items() if name.startswith("workflow/rules/")],
        input=[_entity(crate, "#scale", "FormalParameter", name="scale", additionalType="Text", valueRequired=False)],
        softwareRequirements=[
            _entity(
                crate, _page(name, version), "SoftwareApplication", name=name, softwareVersion=version, url=_page(name, version)
            )
            for name, version in needed
        ],
    )
    return workflow


def _action(crate: ROCrate, config: Config, number: int, publication: Mapping[str, Any], files: Mapping[str, Entity]) -> Entity:
    """What was published at one time: all runs of its studies, and what was made of them."""
    # JSON forgets their order
    studies = {name: publication["studies"][name] for name in config.studies if name in publication["studies"]}
    scale = _entity(crate, f"#scale-{config.scale}", "PropertyValue", name="scale", value=config.scale)
    scale["exampleOfWork"] = crate.get("#scale")
    given = [entity for name, entity in files.items() if name.startswith("config/") or name.endswith(".lock")]
    made = [entity for name, entity in files.items() if "/" in name and owner(Path(name), config.studies) in studies]
    ends = [instant(call["started"]) + timedelta(seconds=call["seconds"]) for call in publication["invocations"]]
    ends += [instant(publication["finished"])] if "finished" in publication else []
    took = f"{sum(rule['cpu_seconds'] or 0 for rule in publication['rules'].values()) / 3600:.1f} CPU hours"
    action = _entity(
        crate,
        f"#publication-{number}",
        "CreateAction",
        name=f"{len(studies)} studies at scale {config.scale}",
        description=(
            f"{', '.join(studies)}: {sum(facts['blocks'] for facts in studies.values())} blocks of runs, {took} on "
            f"{publication['machine']['processor']}; commits {', '.join(publication['commits'])}; "
            f"with {', '.join(f'{name} {version}' for name, version in sorted(publication['versions'].items()))}"
        ),
        actionStatus="http://schema.org/CompletedActionStatus",
        endTime=max(ends).isoformat(timespec="seconds"),
        object=[scale, *given, *_inputs(crate, config, publication | {"studies": studies})],
        result=made,
    )
    if publication["invocations"]:
        action["startTime"] = min(instant(call["started"]) for call in publication["invocations"]).isoformat()
    return action


def instant(text: str) -> datetime:
    """A time as records have it, in UTC."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S%z").astimezone(UTC)


def checksums(config: Config, studies: Iterable[str]) -> dict[str, str]:
    """SHA-256 of the raw files of some studies whose publisher states none, as they are here."""
    found = (raw for dataset in _named(config, studies, "dataset") for raw in _raw(config, dataset) if raw.sha256 is None)
    return {raw.name: _sha256(path) for raw in found if (path := Path("data/raw", raw.name)).is_file()}


def _named(config: Config, studies: Iterable[str], attribute: str) -> list[str]:
    """The data sets or language models of the environments of some studies."""
    names = (name for study in studies for name in config.studies[study].scales[config.scale].environments)
    found = (getattr(config.environments[name], attribute, None) for name in names)
    return list(dict.fromkeys(filter(None, found)))


def _raw(config: Config, dataset: str) -> tuple[RawFile, ...]:
    """The raw files of a data set; of a file of the user's, that."""
    published = config.published(dataset)
    if published:
        return load(published).RAW
    path = Path(config.datasets[dataset].file)
    return (RawFile(path.name, (Source(path.name),), (), _sha256(path)),)


def _inputs(crate: ROCrate, config: Config, publication: Mapping[str, Any]) -> Iterator[Entity]:
    """The raw files and language models of a publication. No files of the object: what is kept of them is what was unpacked."""
    hosts = {host: default for host, (_, default) in HOSTS.items()}
    for dataset in _named(config, publication["studies"], "dataset"):
        for raw in _raw(config, dataset):
            entity = _entity(crate, f"#{raw.name}", "CreativeWork", name=raw.name, url=raw.sources[0].url.format(**hosts))
            if digest := raw.sha256 or publication.get("inputs", {}).get(raw.name):
                entity["sha256"] = digest
            yield entity
    for name in _named(config, publication["studies"], "language_model"):
        model = config.language_models[name]
        text = "; ".join(f"{key} {value}" for key, value in model.model_dump().items() if value)
        yield _entity(crate, f"#{name}", "CreativeWork", name=model.location, description=text)
