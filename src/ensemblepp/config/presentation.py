"""Whether a study has what its figures and tables need (`analysis.needs`), told from the configuration before anything runs."""

from __future__ import annotations

from collections.abc import Iterator

from ensemblepp.analysis import needs
from ensemblepp.config import own_code
from ensemblepp.config.agents import CustomAgent
from ensemblepp.config.environments import (
    ClassificationEnvironment,
    CustomEnvironment,
    ModerationEnvironment,
    TokenModerationEnvironment,
)
from ensemblepp.config.linear_agents import LinearEnsembleAgent
from ensemblepp.config.neural_agents import TrainingModel
from ensemblepp.config.resolution import ARTEFACTS, Config
from ensemblepp.config.studies import Grid, Study


def faults(config: Config, where: str) -> Iterator[str]:
    """What figures and tables need and their studies do not have; `where` begins each message."""
    for name, study in config.studies.items():
        for scale, grid in study.scales.items():
            had = _had(config, study, grid)
            for kind in ARTEFACTS:
                for artefact in getattr(study, kind):
                    wanted = own_code.constant(config.presentation(kind, artefact), needs.CONSTANT)
                    found = f"{where}: studies.{name}.{kind}: found '{artefact}'"
                    fault = needs.form_fault(wanted)
                    if fault:
                        yield f"{found}: {fault}"
                        continue
                    yield from (f"{found}: at scale {scale} it {unmet}" for unmet in needs.unmet(wanted, had))


def _had(config: Config, study: Study, grid: Grid) -> needs.Had:
    runners = [config.agents[config.runner(name)] for name in study.agents]
    return needs.Had(
        {name: config.environments[name].kind for name in grid.environments},
        {name: config.agents[name].kind for name in study.agents},
        {name: _variables(config, study, name) for name in grid.environments},
        any(runner.ensemble for runner in runners),
    )


def _variables(config: Config, study: Study, environment: str) -> set[str] | None:
    """The variables of a study's runs in an environment; None where a class of the user's decides."""
    place = config.environments[environment]
    models = [config.agent_for(name, environment).model for name in study.agents if config.plays(name, environment)]
    if isinstance(place, CustomEnvironment) or any(isinstance(model, CustomAgent) for model in models):
        return None
    names = set(needs.ALWAYS)
    if isinstance(place, ClassificationEnvironment | ModerationEnvironment | TokenModerationEnvironment):
        names.add("constant_regret")
    if isinstance(place, ModerationEnvironment):
        policies = ("ceiling", "threshold") if place.actions == "remove_or_review" else ("ceiling",)
        names |= {f"{policy}_{what}" for policy in policies for what in ("regret", "optimal")}
    for model in models:
        if isinstance(model, TrainingModel):
            names |= {"loss", "spread", "explored"} | ({"seconds"} if model.timed else set())
            # others do not say what reward they expect
            names |= {"error"} if model.family == "linear_heads" else set()
        if isinstance(model, LinearEnsembleAgent) and model.track_covariance:
            names |= {"tracking_low", "tracking_high"}
    return names
