"""What every test of a figure needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest
import xarray as xr
from whole_study import whole

from ensemblepp import figures
from ensemblepp.figures import style
from ensemblepp.storage.datasets import write_dataset


@pytest.fixture(autouse=True)
def _styled() -> Iterator[None]:
    """The style of `figures.save`, on a canvas without a screen; nothing stays open."""
    mpl.use("Agg")
    style.apply()
    yield
    plt.close("all")


@pytest.fixture
def same_bytes(tmp_path: Path) -> Callable[[str, xr.Dataset], None]:
    """A check that a figure, saved twice from a dataset file, has the same bytes in both formats, and is closed."""

    def check(name: str, dataset: xr.Dataset) -> None:
        write_dataset(whole(dataset), tmp_path / "study.nc")
        for folder in ("a", "b"):
            outputs = [tmp_path / folder / f"figure.{suffix}" for suffix in ("pdf", "png")]
            figures.save(name, tmp_path / "study.nc", outputs)
        for suffix, magic in (("pdf", b"%PDF"), ("png", b"\x89PNG")):
            content = (tmp_path / "a" / f"figure.{suffix}").read_bytes()
            assert content.startswith(magic)
            assert content == (tmp_path / "b" / f"figure.{suffix}").read_bytes()
        assert not plt.get_fignums(), "a saved figure is closed"

    return check
