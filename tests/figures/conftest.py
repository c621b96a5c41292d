"""What every test of a figure needs."""

from __future__ import annotations

from collections.abc import Iterator

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from ensemblepp.figures import style


@pytest.fixture(autouse=True)
def _styled() -> Iterator[None]:
    """The style of `figures.save`, on a canvas without a screen; nothing stays open."""
    mpl.use("Agg")
    style.apply()
    yield
    plt.close("all")
