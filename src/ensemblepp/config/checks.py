"""What is checked beyond types: names that must exist, values that must fit each other; each fault is one line for the user."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from ensemblepp import registry
from ensemblepp.config import claims, datasets, laws, own_code, tuning
from ensemblepp.config.agent_model import AgentModel, PlayingModel
from ensemblepp.config.agents import Agent, CustomAgent, PairAgent
from ensemblepp.config.environments import (
    ClassificationEnvironment,
    CustomEnvironment,
    LinearSphereEnvironment,
    ModerationEnvironment,
    TokenModerationEnvironment,
)
from ensemblepp.config.linear_agents import LinearEnsembleAgent, LinearUCBAgent
from ensemblepp.config.neural_agents import TrainingModel
from ensemblepp.config.resolution import ARTEFACTS, Config, own_values, with_options
from ensemblepp.config.studies import OwnArtefact, Study
from ensemblepp.data import load as load_dataset_module
from ensemblepp.data.sources import MIRROR_VARIABLE
from ensemblepp.errors import one_of
from ensemblepp.randomness.distributions import LAWS, is_taken

#: Where each top-level key is written.
FILES = {
    "environments": "config/environments.yaml",
    "datasets": "config/environments.yaml",
    "language_models": "config/environments.yaml",
    "protocols": "config/agents.yaml",
    "laws": "config/agents.yaml",
    "agents": "config/agents.yaml",
    "tuning": "config/tuning.yaml",
    "settings": "config/settings.yaml",
    "tuned": "config/tuned.yaml",
    "figures": "config/studies.yaml",
    "tables": "config/studies.yaml",
    "studies": "config/studies.yaml",
    "ledger": "config/claims.yaml",
    "exhibits": "config/claims.yaml",
    "claims": "config/claims.yaml",
}
CONFIG_FILES = ("config/config.yaml", *dict.fromkeys(FILES.values()))

#: Files of a study that Snakemake plans in minutes.
MAX_BLOCKS = 200_000

_NAME = re.compile(r"[a-z0-9][a-z0-9+.-]*")

#: Of figures and tables: a hyphen ends the name of the study, before theirs, in a file's name.
_ARTEFACT_NAME = re.compile(r"[a-z0-9][a-z0-9_]*")


def in_words(fault: Mapping[str, Any]) -> str:
    """One pydantic fault as "file: key: found value: what is allowed"."""
    where = [str(part) for part in fault["loc"] if part != "[key]"]
    file = FILES.get(where[0], "config/config.yaml") if where else "config/config.yaml"
    # pydantic puts the discriminator's value into the location of a tagged union; the file has no such level
    if where[:1] in (["environments"], ["datasets"], ["agents"]) and len(where) > 2:
        del where[2]
    # and so it does of a claim's rule
    if where[:1] == ["claims"] and where[2:3] == ["rule"] and len(where) > 3:
        del where[3]
    found = "" if isinstance(fault["input"], Mapping) else f"found {fault['input']!r}: "
    message = fault["msg"].removeprefix("Value error, ")
    if fault["type"] == "extra_forbidden":
        found, message = "", "unknown key; config/README.md lists the keys"
    elif fault["type"].startswith("union_tag_"):
        where.append("statistic" if where[0] == "claims" else "kind")
        found = f"found '{fault['ctx']['tag']}': " if "tag" in fault["ctx"] else ""
        message = f"input should be {fault['ctx']['expected_tags']}" if found else "field required"
    return f"{file}: {'.'.join(where)}: {found}{message[0].lower()}{message[1:]}"


def faults_of(config: Config) -> Iterator[str]:
    """Every fault of a configuration whose types are right, a line each."""
    for key in ("environments", "datasets", "language_models", "protocols", "laws", "agents", "studies", "claims"):
        for name in getattr(config, key):
            if not _NAME.fullmatch(name):
                yield f"{FILES[key]}: {key}.{name}: a name has lower-case letters, digits, '+', '-' and '.' only"
    yield from (f"{FILES['datasets']}: datasets.{fault}" for fault in datasets.faults(config.datasets))
    yield from _check_environments(config)
    yield from _check_laws(config)
    yield from _check_protocols(config)
    yield from _check_agents(config)
    yield from tuning.faults(config)
    yield from (f"{FILES['studies']}: {fault}" for fault in tuning.seed_faults(config))
    for kind in ARTEFACTS:
        for name, artefact in getattr(config, kind).items():
            yield from _check_artefact(kind, name, artefact)
    for name, study in config.studies.items():
        yield from _check_study(config, name, study)
    for fault in claims.faults(config.claims, config.exhibits, [*LAWS, *config.laws]):
        yield f"{FILES['claims']}: {fault}"
    if config.mirror_folder and not Path(config.mirror_folder).is_dir():
        place = MIRROR_VARIABLE if os.environ.get(MIRROR_VARIABLE) else "config/config.yaml: mirror"
        yield f"{place}: found '{config.mirror_folder}': not a folder"


def _check_environments(config: Config) -> Iterator[str]:
    for name, environment in config.environments.items():
        if isinstance(environment, CustomEnvironment):
            where = f"{FILES['environments']}: environments.{name}"
            layers = {"options": environment.arguments}
            yield from _check_class(where, environment.class_path, layers, own_code.ENVIRONMENT)
            takes = own_code.keywords(environment.class_path)
            if environment.inputs and not takes.hands_on and "inputs" not in takes.named:
                yield f"{where}.inputs: found {environment.inputs}: {environment.class_path} takes no inputs"
            if not environment.inputs and "inputs" in takes.required:
                yield f"{where}.inputs: field required: {environment.class_path} has no default for it"
        if isinstance(environment, ClassificationEnvironment | ModerationEnvironment | TokenModerationEnvironment):
            posts = not isinstance(environment, ClassificationEnvironment)
            published = datasets.POSTS if posts else datasets.CLASSIFIED
            allowed = [*published, *(own for own, dataset in config.datasets.items() if dataset.of_posts == posts)]
            yield from _unknown(f"{FILES['environments']}: environments.{name}.dataset", [environment.dataset], allowed)
        model = getattr(environment, "language_model", None)
        if model is not None and model not in config.language_models:
            where = f"{FILES['environments']}: environments.{name}.language_model"
            yield f"{where}: found '{model}': {one_of(config.language_models, model, 'language_models: ')}"


def _check_laws(config: Config) -> Iterator[str]:
    for name, law in config.laws.items():
        where = f"{FILES['laws']}: laws.{name}"
        if is_taken(name):
            yield f"{where}: there is a law of this name already"
        if fault := own_code.function_fault(law.function):
            yield f"{where}.function: found '{law.function}': {fault}"


def _check_artefact(kind: str, name: str, artefact: OwnArtefact) -> Iterator[str]:
    where = f"{FILES[kind]}: {kind}.{name}"
    if not _ARTEFACT_NAME.fullmatch(name):
        yield f"{where}: a name has lower-case letters, digits and '_' only"
    if name in presentable(kind):
        yield f"{where}: there is a module ensemblepp.{kind}.{name} already"
    if fault := own_code.function_fault(artefact.function):
        yield f"{where}.function: found '{artefact.function}': {fault}"
    if artefact.caption_file and not Path(artefact.caption_file).is_file():
        yield f"{where}.caption: found '{artefact.caption_file}': no such file"


def _check_agents(config: Config) -> Iterator[str]:
    for name in config.declared_agents:
        agent, where = config.agents[name], f"{FILES['agents']}: agents.{name}"
        if isinstance(agent, CustomAgent):
            layers = {"hyperparameters": agent.hyperparameters}
            layers |= {f"per_environment.{key}": values for key, values in agent.per_environment.items()}
            shared = config.protocols.get(agent.protocol or "", {}).values()
            yield from _check_class(
                where, agent.class_path, layers, own_code.AGENT, {key for values in shared for key in values}
            )
        elif isinstance(agent, PlayingModel):
            yield from (f"{where}.{fault}" for fault in laws.faults(own_values(agent), config.laws))
            for key, values in agent.per_environment.items():
                yield from (f"{where}.per_environment.{key}.{fault}" for fault in laws.faults(values, config.laws))
        if isinstance(agent, PairAgent):
            yield from _check_pair(config, where, agent)
        protocol = getattr(agent, "protocol", None)
        if protocol is not None and protocol not in config.protocols:
            yield f"{where}.protocol: found '{protocol}': {one_of(config.protocols, protocol, 'protocols: ')}"
        for key, values in getattr(agent, "per_environment", {}).items():
            kinds = {environment.kind for environment in config.environments.values()}
            if key not in config.environments and key not in kinds:
                yield f"{where}.per_environment: found '{key}': must be the name or kind of an environment"
                continue
            try:
                with_options(agent, own_values(agent) | values)
            except ValidationError as error:
                for fault in error.errors():
                    yield in_words({**fault, "loc": ("agents", name, agent.kind, "per_environment", key, *fault["loc"])})


def _check_protocols(config: Config) -> Iterator[str]:
    neural = [model for model in _agent_models() if issubclass(model, TrainingModel)]
    known = sorted({name for model in neural for name in model.model_fields} - {"kind", *PlayingModel.model_fields})
    kinds = {environment.kind for environment in config.environments.values()}
    for name, places in config.protocols.items():
        where = f"{FILES['protocols']}: protocols.{name}"
        for key, values in places.items():
            if key not in config.environments and key not in kinds:
                yield f"{where}: found '{key}': must be the name or kind of an environment"
                continue
            yield from (f"{where}.{key}.{fault}" for fault in laws.faults(values, config.laws))
            for field, value in values.items():
                if field not in known:
                    yield f"{where}.{key}.{field}: unknown key; agents have {', '.join(known)}"
                    continue
                # any agent that has the key says whether the value is allowed
                model = next(model for model in neural if field in model.model_fields)
                kind = get_args(model.model_fields["kind"].annotation)[0]
                try:
                    model.model_validate({"kind": kind, "label": "", field: value})
                except ValidationError as error:
                    yield from (in_words({**fault, "loc": ("protocols", name, key, *fault["loc"])}) for fault in error.errors())


def _agent_models() -> list[type[AgentModel]]:
    return list(get_args(get_args(Agent)[0]))


def _check_pair(config: Config, where: str, pair: PairAgent) -> Iterator[str]:
    allowed = [name for name, agent in config.agents.items() if isinstance(agent, LinearEnsembleAgent)]
    if pair.of not in allowed:
        known = ", ".join(allowed) or "none is declared"
        yield f"{where}.of: found '{pair.of}': must be an agent of kind linear_ensemblepp: {known}"
        return
    for role in ("reference", "perturbation"):
        laws = getattr(config.agents[pair.of], f"{role}s")
        if getattr(pair, role) not in laws:
            yield f"{where}.{role}: found '{getattr(pair, role)}': agent '{pair.of}' runs {', '.join(laws)}"


def _check_class(
    where: str, place: str, layers: Mapping[str, Mapping[str, Any]], given: Collection[str], shared: Collection[str] = ()
) -> Iterator[str]:
    """A class of the user's and the names of its keyword arguments, read without importing it.

    `layers` are the places of `where` that state some; `given` are stated for every class; `shared` may be stated elsewhere.
    """
    node, fault = own_code.definition(place)
    if node is None:
        yield f"{where}.class: found '{place}': {fault}"
        return
    takes = own_code.keywords(place)
    for layer, values in layers.items():
        for key in values:
            if not takes.hands_on and key not in takes.named - given:
                allowed = ", ".join(sorted(takes.named - given)) or "none"
                yield f"{where}.{layer}.{key}: unknown key; {node.name} takes {allowed}"
    stated = {key for values in layers.values() for key in values}
    for key in sorted(takes.required - given - stated - set(shared)):
        yield f"{where}.{next(iter(layers))}.{key}: field required: {node.name} has no default for it"


def _check_study(config: Config, name: str, study: Study) -> Iterator[str]:
    where = f"{FILES['studies']}: studies.{name}"
    yield from _unknown(f"{where}.agents", study.agents, config.agents, config.named_agents)
    for kind in ARTEFACTS:
        yield from _unknown(f"{where}.{kind}", getattr(study, kind), [*presentable(kind), *getattr(config, kind)])
    known = [name for name in study.agents if name in config.agents]
    yield from _alike(f"{where}.agents", "label", {name: config.agents[name].label for name in known})
    for scale, grid in study.scales.items():
        place = f"{where}.scales.{scale}"
        titles = {name: config.environments[name].title for name in grid.environments if name in config.environments}
        yield from _alike(f"{place}.environments", "title", titles)
        faults = list(_unknown(f"{place}.environments", grid.environments, config.environments))
        yield from faults
        yield from _unknown(f"{place}.without", list(grid.without), grid.environments)
        for environment, agents in grid.without.items():
            yield from _unknown(f"{place}.without.{environment}", agents, study.agents)
        if not faults and not any(True for _ in _unknown(where, study.agents, config.agents)):
            yield from _partners(config, f"{place}.environments", study.agents, grid.environments)
            spheres = [name for name in grid.environments if isinstance(config.environments[name], LinearSphereEnvironment)]
            for agent in study.agents:
                if spheres and isinstance(config.agents[agent], LinearUCBAgent):
                    yield f"{place}.environments: found '{spheres[0]}': agent '{agent}' needs a finite decision set"
        runs = grid.block_count() * len(grid.environments) * len(study.agents) * len(grid.ensemble_sizes)
        if runs > MAX_BLOCKS:
            yield f"{place}: {runs:,} run blocks: at most {MAX_BLOCKS:,} can be planned; raise seeds_per_block, or lower seeds"
        if len(set(grid.ensemble_sizes)) < len(grid.ensemble_sizes):
            yield f"{place}.ensemble_sizes: found {grid.ensemble_sizes}: each size only once"
        if scale != config.scale or faults:
            continue
        for environment in grid.environments:
            yield from horizon_faults(config, f"{place}.horizon", grid.horizon, environment)


def _partners(config: Config, where: str, agents: list[str], environments: list[str]) -> Iterator[str]:
    """An agent that plays in none of a study's environments, or an environment that none of its agents plays in."""
    for agent in agents:
        if not any(config.plays(agent, environment) for environment in environments):
            wanted = config.agents[config.runner(agent)].reads
            yield f"{where}: agent '{agent}' plays in none of {', '.join(environments)}: it needs {wanted}"
    for environment in environments:
        if not any(config.plays(agent, environment) for agent in agents):
            given = config.environments[environment].gives
            yield f"{where}: found '{environment}': it gives {given}, which none of the agents reads"


def _alike(where: str, key: str, words: Mapping[str, str]) -> Iterator[str]:
    """Two names that are shown by the same words: they would be one in figures and tables."""
    first: dict[str, str] = {}
    for name, word in words.items():
        if word in first:
            yield f"{where}: '{first[word]}' and '{name}' have one {key}, '{word}': give each its own"
        first.setdefault(word, name)


def horizon_faults(config: Config, where: str, horizon: int, name: str) -> Iterator[str]:
    """Why environment `name` cannot be played for `horizon` rounds, if it cannot; `where` begins the message."""
    environment = config.environments[name]
    longest = getattr(environment, "longest", None)
    if longest is not None and horizon > longest:
        yield f"{where}: found {horizon}: environment '{name}' can be played for {longest} rounds at most"
    if not hasattr(environment, "passes"):
        return
    own = config.datasets.get(environment.dataset)
    if own is not None:
        rows = own.rows_available(config.mirror_folder)
    elif environment.dataset in registry.DATASETS:
        rows = load_dataset_module(environment.dataset).rows_available(config.mirror_folder)
    else:
        return
    if rows is None:
        return
    if isinstance(environment, ModerationEnvironment | TokenModerationEnvironment):
        if environment.posts > rows:
            yield (
                f"{FILES['environments']}: environments.{name}.posts: found {environment.posts}: "
                f"the source that serves this data set has {rows} posts"
            )
        rows = environment.posts
    available = rows * environment.passes
    if horizon > available:
        yield (
            f"{where}: found {horizon}: environment '{name}' supports at most {available} "
            f"({rows} rows x {environment.passes} pass(es)); lower the horizon or raise environments.{name}.passes"
        )


def presentable(kind: str) -> list[str]:
    """The modules of ensemblepp.figures or ensemblepp.tables that a study can declare, read without importing them."""
    start = f"\ndef {registry.presentation(kind, '').partition(':')[2]}("
    return sorted(
        path.stem for path in Path(__file__).parents[1].joinpath(kind).glob("*.py") if start in path.read_text("utf-8")
    )


def _unknown(where: str, names: list[str], known: Collection[str], told: Collection[str] = ()) -> Iterator[str]:
    """Names that there are not, or twice; `told` are the known ones that a user is told of, if not all."""
    for name in names:
        if name not in known:
            yield f"{where}: found '{name}': {one_of(told or known, name)}"
    if len(set(names)) < len(names):
        yield f"{where}: found {names}: each name only once"
