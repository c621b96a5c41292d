"""The scripts beside the pages, which are no package."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


def loaded(name: str) -> ModuleType:
    found = importlib.util.spec_from_file_location(f"{name}_of_docs", DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def published() -> ModuleType:
    """docs/published.py."""
    return loaded("published")


@pytest.fixture(scope="session")
def make() -> Iterator[ModuleType]:
    """docs/make.py, which asks for its neighbour."""
    sys.path.insert(0, str(DOCS))
    yield loaded("make")
    sys.path.remove(str(DOCS))
