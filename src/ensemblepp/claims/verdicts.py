"""What a claim comes to: its parts against the rule's bounds, two p values, and a verdict.

A claim may have many parts, such as an agent against each of four others. It holds if all of them do: its p value for "holds"
is the largest of theirs (intersection-union, no correction needed). It fails if one of them is surely beyond a bound, for which
the smallest counts, times the number of parts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from ensemblepp.analysis.estimates import Estimate, interquartile_mean
from ensemblepp.analysis.families import holm

Verdict = Literal["holds", "fails", "undecided", "not run"]
VERDICTS: tuple[Verdict, ...] = ("holds", "fails", "undecided", "not run")


class NotRun(Exception):
    """There is no run that could decide a claim; says what is missing."""


@dataclass(frozen=True)
class Part:
    """One comparison of a claim.

    Attributes:
        words: what is compared, as "Quadratic, M = 8: Ensemble++ / Greedy".
        estimate: what is compared with the bounds.
        differences: (seeds,) what stands behind it, seed by seed, below zero where a seed speaks for "at most"; None where a
            seed alone says nothing.
    """

    words: str
    estimate: Estimate
    differences: np.ndarray | None = None


@dataclass(frozen=True)
class Exact:
    """One comparison of numbers that are computed, not estimated."""

    words: str
    value: float
    holds: bool


@dataclass(frozen=True)
class Finding:
    """A claim under one protocol, before it is seen among the others.

    Attributes:
        parts: what was estimated; empty for a claim that was not run or is exact.
        exact: what was computed.
        bounds: at_least and at_most of the rule, NaN where there is none.
        reason: why the claim was not run.
        short: in what the runs fall short of the rule, as "5 seeds, not 10".
        minimum_seeds: with fewer, nothing is decided.
        horizon: T of the runs.
    """

    parts: Sequence[Part] = ()
    exact: Sequence[Exact] = ()
    bounds: tuple[float, float] = (math.nan, math.nan)
    reason: str = ""
    short: Sequence[str] = ()
    minimum_seeds: int = 2
    horizon: int | None = None

    @property
    def tested(self) -> bool:
        """Whether there are p values."""
        return bool(self.parts) and self.seeds >= self.minimum_seeds

    @property
    def seeds(self) -> int:
        """Of the part with the fewest."""
        return min((part.estimate.seeds for part in self.parts), default=0)

    def p_values(self) -> tuple[float, float]:
        """(for "holds", for "fails")."""
        against = min(p_against(part.estimate, self.bounds) for part in self.parts)
        return max(p_for(part.estimate, self.bounds) for part in self.parts), min(1.0, len(self.parts) * against)

    def decisive(self, verdict: Verdict) -> Part:
        """The part that shows why: what speaks most against a claim that fails, otherwise what speaks least for it."""
        if verdict == "fails":
            return min(self.parts, key=lambda part: p_against(part.estimate, self.bounds))
        return max(self.parts, key=lambda part: p_for(part.estimate, self.bounds))


def p_for(estimate: Estimate, bounds: tuple[float, float]) -> float:
    """p value against "it is not within the bounds": of two bounds the larger, as two one-sided tests have it."""
    least, most = bounds
    above = 0.0 if math.isnan(least) else estimate.p_above(least)
    below = 0.0 if math.isnan(most) else estimate.p_below(most)
    return max(above, below)


def p_against(estimate: Estimate, bounds: tuple[float, float]) -> float:
    """p value against "it is within the bounds": of two bounds the smaller, doubled."""
    least, most = bounds
    values = [estimate.p_below(least)] if not math.isnan(least) else []
    values += [estimate.p_above(most)] if not math.isnan(most) else []
    return min(1.0, len(values) * min(values))


def verdicts(findings: Sequence[Finding], level: float) -> list[tuple[Verdict, float, float]]:
    """The verdict of every claim of one protocol with its two p values, adjusted by Holm over all of them together.

    The family is fixed beforehand: every claim that runs can decide counts twice, for "holds" and for "fails", with p = 1 for
    what was not run or has too few seeds. So at most `level` is the probability that any verdict is ever wrong, whichever way,
    and no run takes back a verdict on other runs. What is exact needs no correction.
    """
    family = [place for place, finding in enumerate(findings) if not finding.exact]
    raw = np.array([findings[place].p_values() if findings[place].tested else (1.0, 1.0) for place in family])
    adjusted = dict(zip(family, holm(raw.ravel()).reshape(-1, 2).tolist(), strict=True))
    outcomes: list[tuple[Verdict, float, float]] = []
    for place, finding in enumerate(findings):
        holds, fails = adjusted[place] if finding.tested else (math.nan, math.nan)
        outcomes.append((_verdict(finding, holds, fails, level), holds, fails))
    return outcomes


def _verdict(finding: Finding, holds: float, fails: float, level: float) -> Verdict:
    if finding.reason:
        return "not run"
    if finding.exact:
        return "holds" if all(one.holds for one in finding.exact) else "fails"
    if holds <= level or fails <= level:
        return "holds" if holds < fails else "fails"
    return "undecided"


def beside(part: Part) -> dict[str, Any]:
    """What stands beside a mean that a few seeds may carry: the middle half's mean, and how many seeds are on which side."""
    if part.differences is None:
        return {}
    middle, lower, upper = interquartile_mean(part.differences)
    return {
        "interquartile_mean": middle,
        "interquartile_low": lower,
        "interquartile_high": upper,
        "seeds_below": int((part.differences < 0).sum()),
        "seeds_above": int((part.differences > 0).sum()),
    }
