"""A figure's bytes depend on its data and on nothing around the process that draws it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import pytest
from figure_cases import CASES
from fontTools.ttLib import TTFont
from whole_study import whole

from ensemblepp.storage.datasets import write_dataset

#: Draws every "figure, ..." of a folder of datasets in the order of the alphabet, or against it.
DRAW = """
import os, sys
from pathlib import Path
from ensemblepp import figures

os.umask(int(sys.argv[4], 8))
for dataset in sorted(Path(sys.argv[1]).iterdir(), reverse=sys.argv[3] == "backwards"):
    outputs = [Path(sys.argv[2]) / f"{dataset.stem}.{suffix}" for suffix in figures.SUFFIXES]
    figures.save(dataset.stem, dataset, outputs)
assert "matplotlib.pyplot" not in sys.modules or not sys.modules["matplotlib.pyplot"].get_fignums(), "a saved figure is closed"
"""


def fonts(folder: Path) -> None:
    """Other letters under the names of those that figures are written with, and of the one that seaborn asks for first."""
    folder.mkdir(parents=True)
    own = Path(mpl.get_data_path(), "fonts", "ttf")
    for file, name in (
        ("DejaVuSerif.ttf", "DejaVu Sans"),
        ("DejaVuSerif-Bold.ttf", "DejaVu Sans"),
        ("DejaVuSerif.ttf", "Arial"),
    ):
        font = TTFont(own / file)
        for record in font["name"].names:
            if record.nameID in (1, 16):
                font["name"].setName(name, record.nameID, record.platformID, record.platEncID, record.langID)
        font.save(folder / f"{name}-{file}")


def drawn(data: Path, output: Path, order: str, mask: str, surroundings: dict[str, str]) -> dict[str, bytes]:
    command = [sys.executable, "-c", DRAW, str(data), str(output), order, mask]
    done = subprocess.run(command, env=os.environ | surroundings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {path.name: path.read_bytes() for path in output.iterdir()}


@pytest.mark.thorough
def test_every_figure_has_the_same_bytes_wherever_it_is_drawn(tmp_path):
    data = tmp_path / "data"
    for name in sorted({case for case in CASES if "," not in case}):
        write_dataset(whole(CASES[name]()), data / f"{name}.nc")
    home = tmp_path / "home"
    fonts(home / ".local/share/fonts")
    (home / "matplotlib").mkdir()
    (home / "matplotlib/matplotlibrc").write_text(
        "font.family: serif\nsavefig.dpi: 50\naxes.grid: True\npath.simplify: False\n"
    )
    one = {"PYTHONHASHSEED": "1", "TZ": "UTC", "LC_ALL": "C", "OMP_NUM_THREADS": "1"}
    # a list of fonts that is made anew, and begins with what the machine has
    other = {"PYTHONHASHSEED": "2", "TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8", "OMP_NUM_THREADS": "2", "MPLBACKEND": "svg"}
    other |= {"HOME": str(home), "XDG_DATA_HOME": str(home / ".local/share"), "MPLCONFIGDIR": str(home / "matplotlib")}
    here = drawn(data, tmp_path / "here", "forwards", "022", one)
    there = drawn(data, tmp_path / "there", "backwards", "077", other)
    assert len(here) == 2 * len(list(data.iterdir()))
    assert [name for name in here if here[name] != there.get(name)] == []
    assert all(content.startswith((b"%PDF", b"\x89PNG")) for content in here.values())
    # what was there to be found
    listed = next((home / "matplotlib").glob("fontlist-*.json")).read_text()
    assert str(home / ".local/share/fonts") in listed
