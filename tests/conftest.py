"""Fixtures that several folders of tests share."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# before numpy is there: several processes run tests, and libraries that wait for threads of their own take all processors
for library in ("OMP", "MKL", "OPENBLAS", "NUMBA"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def mirror() -> Path:
    """A folder that holds the real raw files, as `mirror` in config/config.yaml would name it."""
    folder = Path(os.environ.get("ENSEMBLEPP_MIRROR") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip("no raw data: set ENSEMBLEPP_MIRROR to a folder that holds uci/ and hatespeech/")
    return folder


@pytest.fixture(autouse=True)
def _no_figure_stays_open() -> Iterator[None]:
    """Or the next test that counts figures finds another's, whichever that is in this run's order."""
    yield
    pyplot = sys.modules.get("matplotlib.pyplot")
    left = pyplot.get_fignums() if pyplot else []
    if left:
        pyplot.close("all")
    assert left == [], "this test leaves figures open"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whole runs of the workflow first: begun last, one would keep a process busy when the others have nothing left to do."""
    items.sort(key=lambda item: item.get_closest_marker("workflow") is None)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One per processor: what the suite waits for computes, too, and every process loads the libraries for itself."""
    return os.cpu_count() or 1
