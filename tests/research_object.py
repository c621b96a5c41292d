"""Does a research object keep its profile? Asked of the profile's own validator, without a network: `make check-metadata`.

    .venv-checks/bin/python tests/research_object.py results/paper-scale

Prints what is not as the profile requires or recommends, and leaves with status 1 if it breaks a requirement.
"""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path
from typing import Any
from unittest.mock import patch

import requests
from rocrate_validator import services
from rocrate_validator.utils.http import HttpRequester

#: What the terms mean; the locked version of the package rocrate carries it.
CONTEXT = "https://w3id.org/ro/crate/1.1/context"

PROFILE = "workflow-run-crate-0.5"


def packaged(requester: HttpRequester, address: str, **_: Any) -> requests.Response:
    """An answer from this machine alone."""
    answer = requests.Response()
    answer.status_code = 200 if address == CONTEXT else 404
    answer.headers["Content-Type"] = "application/ld+json"
    answer._content = files("rocrate").joinpath("data/ro-crate.jsonld").read_bytes()
    return answer


def validate(folder: Path) -> list[tuple[str, str]]:
    """(severity, what is wrong) of the research object in `folder`."""
    settings = {
        "rocrate_uri": str(folder),
        "profile_identifier": PROFILE,
        "requirement_severity": "RECOMMENDED",
        "offline": True,
    }
    with patch.object(HttpRequester, "get", packaged, create=True):
        result = services.validate(services.ValidationSettings.parse(settings))
    return sorted(
        {(issue.severity.name, f"{issue.violatingEntity or folder}: {issue.message}") for issue in result.get_issues()}
    )


if __name__ == "__main__":
    found = validate(Path(sys.argv[1]))
    for severity, message in found:
        print(f"{severity.lower()}: {message}")
    sys.exit(any(severity == "REQUIRED" for severity, _ in found))
