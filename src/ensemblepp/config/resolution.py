"""The whole configuration, and how it resolves: values to agents, studies to run blocks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from pydantic import Field, PrivateAttr, ValidationError, model_validator

from ensemblepp import devices, figures, registry, tables
from ensemblepp.analysis.setting_names import setting_name, setting_of
from ensemblepp.claims import writing
from ensemblepp.config import own_code
from ensemblepp.config.agent_model import PlayingModel
from ensemblepp.config.agents import Agent, CustomAgent, PairAgent
from ensemblepp.config.claims import Claim, Exhibit, Ledger
from ensemblepp.config.datasets import Dataset
from ensemblepp.config.environments import Environment, LanguageModel
from ensemblepp.config.fields import MAX_BLOCK, MAX_HORIZON, MAX_SEED
from ensemblepp.config.laws import OwnLaw, written_out
from ensemblepp.config.neural_agents import NeuralAgentModel
from ensemblepp.config.settings import Settings
from ensemblepp.config.studies import Grid, OwnArtefact, Study
from ensemblepp.config.tuning import TUNED, Chosen, Setting, Space, with_choices, with_values
from ensemblepp.data.sources import MIRROR_VARIABLE
from ensemblepp.engines.choice import engine_name
from ensemblepp.errors import ConfigError, one_of
from ensemblepp.randomness.streams import MAX_WIDTH
from ensemblepp.specification import Block

#: What is presented from a study, and in which formats.
ARTEFACTS = {"figures": figures.SUFFIXES, "tables": tables.SUFFIXES}


@dataclass(frozen=True)
class ResolvedAgent:
    """An agent as it plays in one environment.

    Attributes:
        model: the agent's model with every value that holds there.
        origins: key -> where its value comes from: "default", or the place in the configuration files.
    """

    model: PlayingModel
    origins: dict[str, str]


class Config(Settings):
    """Everything that the YAML files declare."""

    datasets: dict[str, Dataset] = Field({})
    language_models: dict[str, LanguageModel] = Field({})
    environments: dict[str, Environment] = Field({})
    protocols: dict[str, dict[str, dict[str, Any]]] = Field(
        {},
        description="name -> environment's name or kind -> values that every agent of the protocol takes there, if it has them",
    )
    laws: dict[str, OwnLaw] = Field({})
    agents: dict[str, Agent] = Field({})
    tuning: dict[str, Space] = Field({})
    settings: dict[str, list[Setting]] = Field({}, description="of agents under tuning; `config --write` renews them")
    tuned: dict[str, dict[str, Chosen]] = Field(
        {}, description="environment -> agent under tuning -> the setting that is best there; `tune` writes them"
    )
    figures: dict[str, OwnArtefact] = Field({})
    tables: dict[str, OwnArtefact] = Field({})
    studies: dict[str, Study] = Field({})
    ledger: Ledger = Field(Ledger())
    exhibits: dict[str, Exhibit] = Field({}, description="the paper's label of a figure or table -> what is made in its place")
    claims: dict[str, Claim] = Field({})

    _resolved: dict[tuple[str, str], ResolvedAgent] = PrivateAttr(default_factory=dict)
    _declared: tuple[str, ...] = PrivateAttr(())

    @model_validator(mode="after")
    def _with_settings(self) -> Config:
        """Agents that follow from those under `tuning`, and settings among the agents of studies that ask for them."""
        self._declared = tuple(self.agents)
        for name, base in [(name, self.agents[name]) for name in self.tuning if name in self.agents]:
            choices = {place: self.tuned[place][name] for place in self.tuned if self._chosen(name, place)}
            try:
                for place, values in enumerate(self.settings.get(name, ())):
                    label = f"{base.label}, setting {place}"
                    self.agents.setdefault(setting_name(name, place), with_values(base, values, label))
                tuned = with_choices(base, choices, f"{base.label} (tuned)")
            except (ValidationError, AttributeError):
                continue  # said by `tuning.faults`
            self.agents.setdefault(f"{name}{TUNED}", tuned)
        for name, study in self.studies.items():
            count = study.scales[self.scale].settings if self.scale in study.scales else 0
            played = [
                setting_name(agent, place)
                for agent in study.agents
                for place in range(min(count, len(self.settings.get(agent, ()))))
            ]
            # once, also of a configuration that was written out with them
            new = [agent for agent in played if agent not in study.agents]
            self.studies[name] = study.model_copy(update={"agents": [*study.agents, *new]})
        return self

    @property
    def named_agents(self) -> list[str]:
        """All agents but those that play settings, of which there are hundreds."""
        return [name for name in self.agents if not setting_of(name)]

    @property
    def declared_agents(self) -> tuple[str, ...]:
        """The agents of the configuration files, without those that follow from `tuning`."""
        return self._declared

    # ------------------------------------------------------------------------------------------------ resolving

    @property
    def results(self) -> str:
        return f"results/{self.scale}"

    @property
    def mirror_folder(self) -> str | None:
        return os.environ.get(MIRROR_VARIABLE) or self.mirror

    @property
    def skips_unreachable(self) -> bool:
        return self.on_unreachable == "skip" or (self.on_unreachable == "auto" and self.scale != "paper")

    def published(self, dataset: str) -> str | None:
        """The published data set whose raw files a data set is made from; None: it is made from a file of the user's."""
        return self.datasets[dataset].published if dataset in self.datasets else dataset

    def active_studies(self) -> dict[str, Study]:
        """The studies that the present scale runs, but for those that await values."""
        return {name: study for name, study in self.studies.items() if self.scale in study.scales and not self.awaits(name)}

    def awaiting(self) -> dict[str, str]:
        """The studies of the present scale that cannot be run before agents are tuned, and why."""
        asked = (name for name, study in self.studies.items() if self.scale in study.scales)
        return {name: reason for name in asked if (reason := self.awaits(name))}

    def awaits(self, study: str) -> str:
        """Why a study of the present scale cannot be run before agents are tuned; empty if it can."""
        agents, environments = self.studies[study].agents, self.studies[study].scales[self.scale].environments
        pairs = [(agent, place) for agent in agents for place in environments if self.takes_part(study, agent, place)]
        return next(filter(None, (self.untuned(*pair) for pair in pairs)), "")

    def _chosen(self, agent: str, environment: str) -> bool:
        """Whether values are chosen, at the paper's scale or at this one: what a few rounds chose holds for these alone."""
        choices = self.tuned.get(environment, {})
        return agent in choices and choices[agent].scale in ("paper", self.scale)

    def untuned(self, agent: str, environment: str) -> str:
        """Why an agent cannot be played in an environment before it is tuned; empty if it can."""
        base = agent.removesuffix(TUNED)
        if base == agent or base not in self.tuning or agent in self._declared or self._chosen(base, environment):
            return ""
        playing = (
            (name, scale)
            for name, study in self.studies.items()
            for scale, grid in study.scales.items()
            if grid.settings and base in study.agents and environment in grid.environments
        )
        name, scale = max(playing, key=lambda found: found[1] == "paper", default=("", ""))
        how = f"make study '{name}' at scale {scale}, then `python -m ensemblepp tune --study {name} --scale {scale}`"
        none = "no study plays its settings there; declare one whose grid has `settings` in config/studies.yaml"
        return f"no values are chosen yet for agent '{agent}' in environment '{environment}': {how if name else none}"

    def agent_for(self, agent: str, environment: str) -> ResolvedAgent:
        """An agent in one environment; a pair is its agent with one law in each role.

        From weak to strong: the default, the agent's protocol, its own value, its per_environment. Within a protocol and within
        per_environment, an environment's name is stronger than its kind.
        """
        if (agent, environment) not in self._resolved:
            self._resolved[agent, environment] = self._resolve(agent, environment)
        return self._resolved[agent, environment]

    def _resolve(self, agent: str, environment: str) -> ResolvedAgent:
        model = self.agents[agent]
        if isinstance(model, PairAgent):
            whole = self.agent_for(model.of, environment)
            laws = {"references": [model.reference], "perturbations": [model.perturbation]}
            return ResolvedAgent(whole.model.model_copy(update=laws), whole.origins | dict.fromkeys(laws, f"agents.{agent}"))
        keys = (self.environments[environment].kind, environment)
        layers = [(f"protocols.{model.protocol}.{key}", self._shared(model, key)) for key in keys]
        layers.append((f"agents.{agent}", own_values(model)))
        layers += [(f"agents.{agent}.per_environment.{key}", model.per_environment.get(key, {})) for key in keys]
        values, origins = {}, dict.fromkeys(model.options(), "default")
        for place, layer in layers:
            values |= layer
            origins |= dict.fromkeys(layer, place)
        return ResolvedAgent(with_options(model, values), origins)

    def _shared(self, model: PlayingModel, key: str) -> dict[str, Any]:
        """What a protocol says for an environment's name or kind, as far as the agent has such values."""
        shared = self.protocols.get(model.protocol or "", {}).get(key, {})
        if isinstance(model, CustomAgent):
            return {name: value for name, value in shared.items() if own_code.takes(model.class_path, name, NEURAL_KEYS)}
        return {name: value for name, value in shared.items() if name in type(model).model_fields}

    def blocks(self, study: str) -> list[Block]:
        """Every run block of a study at the present scale, each once."""
        return list({block.path: block for block in self.runs(study).values()}.values())

    def runs(self, study: str) -> dict[tuple[str, str, int, int], Block]:
        """The block of every (environment, agent, ensemble size, first seed) of a study; pairs lie in their agent's blocks."""
        grid = self.studies[study].scales[self.scale]
        return {
            (environment, agent, size, first): self.block(environment, self.runner(agent), size, grid.horizon, first, last)
            for environment in grid.environments
            for agent in self.studies[study].agents
            if self.takes_part(study, agent, environment)
            for size in self.sizes(self.runner(agent), grid)
            for first, last in grid.seed_blocks()
        }

    def takes_part(self, study: str, agent: str, environment: str) -> bool:
        """Whether an agent of a study is played in one of its environments at the present scale."""
        left_out = self.studies[study].scales[self.scale].without.get(environment, [])
        return self.plays(agent, environment) and not {agent, (setting_of(agent) or (agent,))[0]} & {*left_out}

    def plays(self, agent: str, environment: str) -> bool:
        """Whether an agent reads what an environment gives: features, or the tokens of a text."""
        return self.agents[self.runner(agent)].reads in (None, self.environments[environment].gives)

    def sizes(self, agent: str, grid: Grid) -> list[int]:
        """The ensemble sizes that an agent runs with."""
        return grid.ensemble_sizes if self.agents[agent].ensemble else [0]

    def runner(self, agent: str) -> str:
        """The agent whose blocks hold `agent`'s runs: itself, or the one that it is a pair of."""
        model = self.agents[agent]
        return model.of if isinstance(model, PairAgent) else agent

    def artefacts(self, study: str) -> list[str]:
        """Every file that is presented from one study: figures and tables in all their formats."""
        declared = self.studies[study]
        return [
            f"{self.results}/{kind}/{study}-{name}.{suffix}"
            for kind, suffixes in ARTEFACTS.items()
            for name in getattr(declared, kind)
            for suffix in suffixes
        ]

    @property
    def page(self) -> str:
        """The page that opens with the answer (`report.page`)."""
        return f"{self.results}/index.html"

    def ledger_files(self) -> list[str]:
        """The ledger of claims in all its formats; none where nothing is claimed."""
        return [f"{self.results}/claims/ledger.{suffix}" for suffix in writing.SUFFIXES] if self.claims else []

    def presentation(self, kind: str, name: str) -> str:
        """ "module:function" of a figure or table, one of the user's or one of ours."""
        own = getattr(self, kind)
        return own[name].function if name in own else registry.presentation(kind, name)

    def files(self, study: str) -> list[str]:
        """Every file under results/ that belongs to one study."""
        runs = [block.path for block in self.blocks(study)]
        return [*runs, f"{self.results}/datasets/{study}.nc", *self.artefacts(study)]

    def block(self, environment: str, agent: str, ensemble_size: int, horizon: int, first: int, last: int) -> Block:
        """One run block.

        Raises:
            ConfigError: there is no such environment or agent, the agent has no such ensemble size, or nothing would be run.
        """
        if environment not in self.environments:
            raise ConfigError(f"found '{environment}': {one_of(self.environments, environment, 'environments: ')}")
        if agent not in self.agents:
            raise ConfigError(f"found '{agent}': {one_of(self.named_agents, agent, 'agents: ')}")
        if not self.plays(agent, environment):
            reads, gives = self.agents[self.runner(agent)].reads, self.environments[environment].gives
            raise ConfigError(f"agent '{agent}' reads {reads}: environment '{environment}' gives {gives}")
        if reason := self.untuned(agent, environment):
            raise ConfigError(reason)
        has_ensemble = self.agents[self.runner(agent)].ensemble
        if has_ensemble != (ensemble_size > 0) or ensemble_size > MAX_WIDTH:
            allowed = f"1 to {MAX_WIDTH}" if has_ensemble else "0, since it has no ensemble"
            raise ConfigError(f"ensemble size {ensemble_size}: agent '{agent}' takes {allowed}")
        if not 1 <= horizon <= MAX_HORIZON:
            raise ConfigError(f"horizon {horizon}: must be at least 1 and at most {MAX_HORIZON:,}")
        if last < first:
            raise ConfigError(f"seeds {first}-{last}: the last must not be below the first")
        if last - first >= MAX_BLOCK or last > MAX_SEED:
            raise ConfigError(f"seeds {first}-{last}: must be at most {MAX_BLOCK:,}, and none above {MAX_SEED}")
        place, resolved = self.environments[environment], self.agent_for(agent, environment).model
        device = devices.resolve(getattr(self, resolved.device_setting)) if resolved.device_setting else "cpu"
        options = written_out(resolved.options_in(place, self.language_models, device), self.laws)
        spec = {
            "environment": described(environment, place, place.options()),
            "agent": described(agent, resolved, options),
            "engine": engine_name(resolved.played_as(), place.played_as(), device, horizon),
            "ensemble_size": ensemble_size,
            "horizon": horizon,
            "seeds": [first, last],
            "device": device,
        }
        return Block(self.results, spec)


#: What a protocol may set for a class of the user's that hands on any keyword: the keys of all neural agents.
NEURAL_KEYS = frozenset(NeuralAgentModel.model_fields) - frozenset(PlayingModel.model_fields)


def described(name: str, model: Any, options: dict[str, Any]) -> dict[str, Any]:
    """An environment or agent in a block's specification."""
    own = {"class": model.class_path} if model.kind == "custom" else {}
    return {"name": name, "kind": model.kind, **own, "options": options}


def own_values(model: PlayingModel) -> dict[str, Any]:
    """The values that an agent's entry states itself."""
    if isinstance(model, CustomAgent):
        return dict(model.hyperparameters)
    return {
        name: getattr(model, name)
        for name in model.model_fields_set
        if name not in PlayingModel.model_fields and name != "kind"
    }


def with_options(model: PlayingModel, values: dict[str, Any]) -> PlayingModel:
    """The agent with other values, checked like its entry.

    Raises:
        pydantic.ValidationError: a value is not allowed.
    """
    stated = model.model_dump(by_alias=True)
    stated |= {"hyperparameters": values} if isinstance(model, CustomAgent) else values
    return type(model).model_validate(stated)
