"""The errors a user is meant to read: one line that says what is wrong and what to do next."""

from __future__ import annotations

import difflib
from collections.abc import Collection


class EnsembleError(Exception):
    """Base of every error whose message is written for the user; the command line prints it without a traceback."""


class ConfigError(EnsembleError):
    """A configuration value is not allowed: names file, key, value and what is allowed."""


class DataError(EnsembleError):
    """A data file is not what it should be: names file, line, what was expected and what was found."""


class UnreachableError(EnsembleError):
    """No source of a file could be reached: names every source and why it failed, and the setting that helps."""


class ResultError(EnsembleError):
    """A results file is damaged or belongs to another specification."""


class TrainingError(EnsembleError):
    """Training left the real numbers: names agent, seed and step."""


class InterfaceError(EnsembleError):
    """An agent or environment, of the user's as a rule, breaks what `ensemblepp.bandit` promises: names class and method."""


def in_lines(error: Exception) -> str:
    """An error for a terminal; of several faults every line begins alike."""
    return "\n".join(f"error: {line}" for line in str(error).splitlines())


def one_of(allowed: Collection[str], found: object, what: str = "") -> str:
    """That a name must be one of others, which `what` says what they are; and which of them was probably meant."""
    near = difflib.get_close_matches(str(found), allowed, n=1)
    meant = f"; did you mean '{near[0]}'?" if near else ""
    return f"must be one of {what}{', '.join(allowed) or 'none is declared'}{meant}"
