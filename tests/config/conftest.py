"""No test of the configuration reads a mirror that the shell names."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _no_mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ENSEMBLEPP_MIRROR", raising=False)
