"""config/tuning.yaml and what follows from it: equal tuning, the same number of settings for every agent.

A setting is a point of an agent's declared space. They are scrambled Sobol points, written out in config/settings.yaml by
`python -m ensemblepp config --write`, so that a reader sees what is played and a workflow's start need not compute them. Each
is an agent of its own, `NAME-setting-07`, which a study plays whose grid asks for settings. What is best there is written to
config/tuned.yaml by `python -m ensemblepp tune`, and is the agent `NAME-tuned`; where nothing is chosen it cannot be played.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field, ValidationError, model_validator

from ensemblepp.analysis.setting_names import setting_of
from ensemblepp.config.fields import Count, Model, Positive
from ensemblepp.errors import one_of

#: End of the name of the agent that plays what was chosen for one under `tuning`.
TUNED = "-tuned"

#: Digits of a value; more would say nothing.
_DIGITS = 3

_RENEW = "run `python -m ensemblepp config --write`"

#: A setting: key of the agent -> value.
Setting = dict[str, float | int]


class Knob(Model):
    """What a value is tuned over: a range, by its logarithm, or a list."""

    least: Positive | None = Field(None, description="lower end of a range")
    most: Positive | None = Field(None, description="upper end of a range")
    values: list[Positive] = Field([], description="instead of a range: the values, each as likely as any other")

    @model_validator(mode="after")
    def _one_form(self) -> Knob:
        if bool(self.values) == (self.least is not None or self.most is not None):
            raise ValueError("must be a range, least and most, or a list of values")
        if not self.values and not (self.least and self.most and self.least < self.most):
            raise ValueError("least and most: must both be given, least below most")
        return self

    def value(self, share: float) -> float | int:
        """What lies at a share, in [0, 1), of the range or the list."""
        if self.values:
            found = self.values[int(share * len(self.values))]
            return int(found) if found == int(found) else found
        assert self.least is not None
        assert self.most is not None
        return float(f"{self.least * (self.most / self.least) ** share:.{_DIGITS}g}")


class Space(Model):
    """What an agent's tuning may change, and how many settings it gets."""

    space: dict[str, Knob] = Field(min_length=1, description="key of the agent -> what it is tuned over")
    settings: Count = Field(32, description="how many settings; fewer than other agents get only where their cost forbids it")


class Chosen(Model):
    """The setting that was best for an agent in an environment, and where that was seen; written by `ensemblepp tune`."""

    setting: Annotated[int, Field(ge=0)] = Field(description="its number in config/settings.yaml")
    values: Setting = Field(description="its values")
    regret: float = Field(description="mean over the tuning seeds at the horizon")
    of: Count = Field(description="how many settings were played")
    study: str = Field(description="the study that played them")
    scale: str = Field(description="at this scale")
    horizon: Count = Field(description="rounds")
    seeds: list[Annotated[int, Field(ge=0)]] = Field(description="the tuning seeds")
    commit: str = Field(description="the git commit of the choice")


def points(spaces: Mapping[str, Space]) -> dict[str, list[Setting]]:
    """Every agent's settings: scrambled Sobol points, the same ones for spaces of one dimension.

    Fewer settings are the first of more, so a curve over their number goes on where it ended.
    """
    # only here: it takes a second to load
    from scipy.stats import qmc

    settings = {}
    for name, space in spaces.items():
        # as many as fill a power of two, by which they are balanced
        shares = qmc.Sobol(len(space.space), rng=0).random_base2((space.settings - 1).bit_length())[: space.settings]
        knobs = space.space.items()
        settings[name] = [
            {key: knob.value(float(share)) for (key, knob), share in zip(knobs, row, strict=True)} for row in shares
        ]
    return settings


def with_values(model: Any, values: Mapping[str, Any], label: str) -> Any:
    """An agent with some of its values set for all environments, and a label.

    Raises:
        pydantic.ValidationError: a key is not the agent's, or a value is not allowed.
    """
    stated = model.model_dump(by_alias=True, exclude_unset=True)
    others = {
        key: {name: value for name, value in own.items() if name not in values} for key, own in model.per_environment.items()
    }
    return type(model).model_validate(stated | dict(values) | {"label": label, "per_environment": others})


def with_choices(model: Any, choices: Mapping[str, Chosen], label: str) -> Any:
    """An agent with the values that were chosen for it in each environment, and a label."""
    own = {key: values for key, values in model.per_environment.items() if key not in choices}
    chosen = {environment: model.per_environment.get(environment, {}) | one.values for environment, one in choices.items()}
    stated = model.model_dump(by_alias=True, exclude_unset=True)
    return type(model).model_validate(stated | {"label": label, "per_environment": own | chosen})


def faults(config: Any) -> Iterator[str]:
    """What is wrong with spaces, settings and choices, as "config/...: key: ..."."""
    for name, space in config.tuning.items():
        where = f"config/tuning.yaml: tuning.{name}"
        if name not in config.agents:
            yield f"{where}: {one_of(config.named_agents, name, 'agents: ')}"
            continue
        for key, knob in space.space.items():
            for value in knob.values or (knob.least, knob.most):
                try:
                    with_values(config.agents[name], {key: int(value) if value == int(value) else value}, name)
                except (ValidationError, AttributeError):
                    told = f"not what agent '{name}' takes; config/README.md lists its keys"
                    yield f"{where}.space.{key}: found {value!r}: {told}"
        played = config.settings.get(name, [])
        if len(played) != space.settings or any(setting.keys() != space.space.keys() for setting in played):
            yield f"config/settings.yaml: settings.{name}: not those of config/tuning.yaml; {_RENEW}"
    for name in config.settings.keys() - config.tuning.keys():
        yield f"config/settings.yaml: settings.{name}: config/tuning.yaml has no such agent; {_RENEW}"
    for environment, choices in config.tuned.items():
        for name, chosen in choices.items():
            # of what is not configured, as where environments are a user's own, a choice decides nothing
            if environment not in config.environments or name not in config.tuning:
                continue
            played = config.settings.get(name, [])
            if chosen.setting >= len(played) or played[chosen.setting] != chosen.values:
                where = f"config/tuned.yaml: tuned.{environment}.{name}"
                told = f"not the values of setting {chosen.setting} in config/settings.yaml"
                yield f"{where}: {told}; run `python -m ensemblepp tune` again"


def seed_faults(config: Any) -> Iterator[str]:
    """Seeds that tuning and results share, as "studies.<name>...": what was chosen on a seed looks better on it than it is."""
    results = {
        seed: f"studies.{name}.scales.{scale}"
        for name, study in config.studies.items()
        for scale, grid in study.scales.items()
        if not grid.settings
        for seed in grid.seed_list()
    }
    for name, study in config.studies.items():
        for scale, grid in study.scales.items():
            where = f"studies.{name}.scales.{scale}"
            if not grid.settings:
                continue
            shared = next((seed for seed in grid.seed_list() if seed in results), None)
            if shared is not None:
                yield f"{where}.seeds: {shared} is a seed of {results[shared]}: tuning takes seeds that no result uses"
            if len(grid.seed_list()) < 2:
                yield f"{where}.seeds: tuning takes two seeds at least, to choose on some and value on another"
            untuned = next((agent for agent in study.agents if agent not in config.tuning and not setting_of(agent)), None)
            if untuned:
                yield f"{where}.settings: agent '{untuned}' has no space in config/tuning.yaml"
