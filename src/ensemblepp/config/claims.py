"""config/claims.yaml: the paper's claims with the rules that decide them, and where its figures and tables are made again."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from ensemblepp.config.fields import Count, EnsembleSize, Horizon, Model, Positive
from ensemblepp.errors import one_of

Number = Annotated[float, Field(allow_inf_nan=False)]
Measure = Literal["regret", "accuracy", "reviews", "seconds"]
Law = Literal["gaussian", "sphere", "cube", "coordinate", "sparse"]


class Ledger(Model):
    """What all claims share."""

    level: Annotated[float, Field(gt=0, lt=1)] = Field(
        0.05, description="probability that any verdict of a protocol is wrong, at most (Holm)"
    )
    minimum_seeds: Annotated[int, Field(ge=2)] = Field(5, description="with fewer seeds nothing is decided")


class _Bounded(Model):
    """A claim holds if its statistic is surely within the bounds, and fails if it is surely beyond one."""

    at_least: Number | None = Field(None, description="lower bound; of two bounds the claim is an equivalence")
    at_most: Number | None = Field(None, description="upper bound")

    @model_validator(mode="after")
    def _some_bound(self) -> _Bounded:
        if self.at_least is None and self.at_most is None:
            raise ValueError("at_least or at_most: must be given")
        if self.at_least is not None and self.at_most is not None and self.at_least >= self.at_most:
            raise ValueError(f"at_least: found {self.at_least:g}: must be below at_most, {self.at_most:g}")
        return self


class Ratio(_Bounded):
    """Mean of an arm at the horizon over that of another, paired by seed."""

    statistic: Literal["ratio"] = Field(description="the kind of rule")
    measure: Measure = Field("regret", description="what is compared")


class Difference(_Bounded):
    """Mean of an arm at the horizon minus that of another, paired by seed."""

    statistic: Literal["difference"] = Field(description="the kind of rule")
    measure: Measure = Field("accuracy", description="what is compared")


class Across(_Bounded):
    """Mean of an arm in each further environment over that in the first."""

    statistic: Literal["across"] = Field(description="the kind of rule")
    measure: Measure = Field("regret", description="what is compared")


class Slopes(_Bounded):
    """Mean slope of a curve in the last quarter of the rounds over that in an earlier quarter, paired by seed."""

    statistic: Literal["slopes"] = Field(description="the kind of rule")
    measure: Literal["regret", "seconds"] = Field("regret", description="the curve")
    quarter: Annotated[int, Field(ge=1, le=3)] = Field(1, description="the earlier quarter")


class Exponent(_Bounded):
    """b of curve = c t^b from a tenth of the rounds on, clustered by seed."""

    statistic: Literal["exponent"] = Field(description="the kind of rule")
    measure: Literal["regret", "seconds"] = Field("regret", description="the curve")


class MinimumSize(_Bounded):
    """Exponent of a factor in the smallest M that matches exact Thompson sampling."""

    statistic: Literal["minimum_size"] = Field(description="the kind of rule")
    growing: Literal["dimension", "actions"] = Field(description="the factor")
    size_rule: Literal["two-sided", "one-sided"] = Field("two-sided", description="when an M matches; two-sided is the paper's")


class Frontier(_Bounded):
    """Ratio to every size of every other agent, at the arm's largest size of no more parameters."""

    statistic: Literal["frontier"] = Field(description="the kind of rule")
    measure: Measure = Field("regret", description="what is compared")


class Sandwich(_Bounded):
    """Share of seeds in which A A^T left [1/2, 3/2] of the covariance."""

    statistic: Literal["sandwich"] = Field(description="the kind of rule")


class Constant(Model):
    """A constant of the paper against what it is by another route; decided without runs."""

    statistic: Literal["constant"] = Field(description="the kind of rule")
    quantity: Literal["optimism", "optimism_printed", "concentration", "sequential_factor", "prior_factor", "update_cost"] = (
        Field(description="which one (`claims.formulas`)")
    )
    law: Law | None = Field(None, description="law of zeta")
    sizes: list[EnsembleSize] = Field([8], min_length=1, description="M")
    squared_threshold: Literal[1, 2] = Field(1, description="optimism: 1 in the tables, 2 in the proof")
    actions: Count | None = Field(None, description="concentration: |X|; null is a compact set")
    printed: Number | None = Field(None, description="the number that the paper prints")
    epsilon: Positive | None = Field(None, description="factors: the precision at which they are taken")
    dimension: Count | None = Field(None, description="update_cost: d")

    @model_validator(mode="after")
    def _complete(self) -> Constant:
        needed = {
            "optimism": ("law",),
            "optimism_printed": ("law", "printed"),
            "concentration": ("law",),
            "sequential_factor": ("printed", "epsilon"),
            "prior_factor": ("printed", "epsilon"),
            "update_cost": ("dimension",),
        }[self.quantity]
        for key in needed:
            if getattr(self, key) is None:
                raise ValueError(f"{key}: field required for quantity '{self.quantity}'")
        return self


class Parameters(Model):
    """A formula for a number of parameters against the network as built; decided without runs."""

    statistic: Literal["parameters"] = Field(description="the kind of rule")
    network: Literal["ensemble++", "ensemble+", "epinet"] = Field(description="whose")
    shapes: list[tuple[Count, Count]] = Field(min_length=1, description="[d, C] of environments")
    sizes: list[EnsembleSize] = Field(min_length=1, description="M")


Rule = Annotated[
    Ratio | Difference | Across | Slopes | Exponent | MinimumSize | Frontier | Sandwich | Constant | Parameters,
    Field(discriminator="statistic"),
]


class Arm(Model):
    """An agent, with laws and ensemble size where they are not its own or the evidence's."""

    agent: str = Field(description="name under agents")
    references: list[str] = Field([], description="laws of zeta; of several the mean, seed by seed")
    perturbations: list[str] = Field([], description="laws of z; of several the mean, seed by seed")
    size: EnsembleSize | None = Field(None, description="M, instead of the evidence's `sizes`")
    environment: str | None = Field(None, description="where it is played, instead of in the evidence's environments")


class Evidence(Model):
    """Which runs decide a claim under a protocol, and how many there must be."""

    study: str = Field(description="name under studies; without it, or without what is asked of it, the claim is not run")
    environments: list[str] = Field([], description="names under environments; none stands for all of the study's")
    of: list[Arm] = Field(min_length=1, description="what the claim is about; all must satisfy the rule")
    against: list[Arm] = Field([], description="what it is compared with; each must satisfy the rule")
    sizes: list[EnsembleSize] = Field([8], min_length=1, description="M; each must satisfy the rule")
    horizon: Horizon = Field(description="T for which the rule was fixed; other runs decide with an asterisk")
    seeds: Count = Field(description="seeds for which the rule was fixed; fewer decide with an asterisk")


class Claim(Model):
    """A statement of the paper that results can decide."""

    sentence: str = Field(description="what is claimed, in our words")
    place: str = Field(description="where the paper says so")
    exhibits: list[str] = Field([], description="the paper's labels of figures and tables, names under exhibits")
    rule: Rule = Field(description="statistic and bounds, fixed before the runs")
    contradicted_by: str = Field(description="what evidence would contradict it")
    evidence: dict[str, Evidence] = Field({}, description="protocol -> the runs that decide; none for what is computed")


class Exhibit(Model):
    """A figure or table of the paper, by its label, and what is made here in its place."""

    name: str = Field(description="as the paper calls it: Figure 1")
    shows: str = Field(description="what it shows, in our words")
    figures: list[str] = Field([], description="files under figures/, as study-name")
    tables: list[str] = Field([], description="files under tables/, as study-name")
    panels: list[str] = Field([], description="letters under which the paper has `figures`, one for each: [a, b]")
    drawing: bool = Field(False, description="nothing is measured in it")


def faults(claims: Mapping[str, Claim], exhibits: Mapping[str, Exhibit], laws: Collection[str]) -> Iterator[str]:
    """What is wrong with claims and exhibits, as "claims.<name>...: ...".

    A study, agent or environment that is not there is no fault: whoever takes one out of the configuration runs fewer claims.
    """
    for label, exhibit in exhibits.items():
        if not (exhibit.figures or exhibit.tables or exhibit.drawing):
            yield f"exhibits.{label}: names no figure or table; say `drawing: true` if nothing is measured in it"
        if exhibit.panels and len(exhibit.panels) != len(exhibit.figures):
            yield f"exhibits.{label}.panels: found {exhibit.panels}: must be as many as figures, {len(exhibit.figures)}"
    for name, claim in claims.items():
        where = f"claims.{name}"
        for label in claim.exhibits:
            if label not in exhibits:
                yield f"{where}.exhibits: found '{label}': {one_of(exhibits, label, 'exhibits: ')}"
        if isinstance(claim.rule, Constant | Parameters) == bool(claim.evidence):
            told = "is computed: give none" if claim.evidence else "field required: the runs that decide the claim"
            yield f"{where}.evidence: {told}"
            continue
        for protocol, evidence in claim.evidence.items():
            yield from (f"{where}.evidence.{protocol}.{fault}" for fault in _evidence_faults(claim.rule, evidence, laws))


def _evidence_faults(rule: Any, evidence: Evidence, laws: Collection[str]) -> Iterator[str]:
    if isinstance(rule, Ratio | Difference | Frontier) != bool(evidence.against):
        told = f"'{rule.statistic}' compares with nothing: give none" if evidence.against else "field required"
        yield f"against: {told}"
    if isinstance(rule, Across) and len(evidence.environments) < 2:
        yield f"environments: found {evidence.environments}: must be two at least, the first to compare with"
    for arm in (*evidence.of, *evidence.against):
        for key in ("references", "perturbations"):
            for law in getattr(arm, key):
                if law not in laws:
                    yield f"{key}: found '{law}': {one_of(laws, law)}"
        if arm.environment and not isinstance(rule, Ratio | Difference):
            yield f"agent '{arm.agent}': environment: '{rule.statistic}' compares within an environment: give none"
        if bool(arm.references) != bool(arm.perturbations):
            yield f"agent '{arm.agent}': references and perturbations must be given both, or none"
