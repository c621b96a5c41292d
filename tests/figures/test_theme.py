"""The theme and the palettes are seaborn's, to the last bit, and seaborn is not loaded for them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
import seaborn as sns
import xarray as xr

from ensemblepp.figures import style, theme
from ensemblepp.storage.datasets import write_dataset


def test_matplotlib_is_set_as_seaborn_sets_it():
    with mpl.rc_context():
        mpl.rcdefaults()
        theme.apply()
        found, letters = mpl.rcParams.copy(), dict(mpl.colors.get_named_colors_mapping())
        mpl.rcdefaults()
        sns.set_theme(context="paper", style="ticks", palette="colorblind")
        differing = {name for name, value in mpl.rcParams.items() if found[name] != value}
        assert differing == {"image.cmap"}
        assert letters == mpl.colors.get_named_colors_mapping()


def test_all_of_seaborns_settings_are_set():
    """Whatever the user's own file of matplotlib's settings says."""
    of_seaborn = sns.axes_style("ticks") | sns.plotting_context("paper") | {"axes.prop_cycle": None}
    assert set(theme.SETTINGS) == set(of_seaborn) - {"image.cmap"}


def test_the_palette_is_seaborns():
    assert list(sns.color_palette("colorblind")) == theme.COLORBLIND


@pytest.mark.parametrize("count", [1, 2, 3, 8, 40])
def test_viridis_is_seaborns(count):
    assert theme.viridis(count) == list(sns.color_palette("viridis_r", count))
    assert style.sequence(count) == list(sns.color_palette("viridis_r", count + 1)[1:])


def test_shades_are_seaborns():
    greys = [(part, part, part) for part in (0.0, 1e-9, 0.15, 0.5, 1.0)]
    edges = [(1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0), (0.0, 1.0, 1.0)]
    others = map(tuple, np.random.default_rng(0).random((300, 3)))
    for colour in [*style.COLOURS.values(), *theme.COLORBLIND, *theme.viridis(9), *greys, *edges, *others]:
        assert theme.shades(colour, 5) == list(sns.light_palette(colour, 5)), colour


@pytest.mark.parametrize(("name", "loads"), [("linear_regret", False), ("laws_heatmap", True)])
def test_only_a_figure_that_draws_with_seaborn_loads_it(tmp_path: Path, name, loads):
    dims = ("environment", "agent", "reference", "perturbation", "ensemble_size", "seed", "time")
    regret = np.full((1, 3, 2, 1, 3, 2, 2), np.nan)
    # TS without laws and an ensemble, ES and Ensemble++ with a pair of laws at two sizes
    for agent, law, sizes in ((0, 0, [0]), (1, 1, [1, 2]), (2, 1, [1, 2])):
        for size in sizes:
            regret[0, agent, law, 0, size] = [[1, 2 + agent], [2, 3 + agent]]
    coordinates = {
        "environment": ["near"],
        "agent": ["ts", "es", "linear"],
        "reference": ["none", "gaussian"],
        "perturbation": ["sphere"],
        "ensemble_size": [0, 2, 8],
        "seed": [0, 1],
        "time": [50, 100],
        "title": ("environment", ["Near"]),
        "label": ("agent", ["TS", "ES", "Ensemble++"]),
    }
    kinds = {"ts": "linear_ts", "es": "ensemble_sampling", "linear": "linear_ensemblepp"}
    near = {"name": "near", "kind": "linear_finite"}
    specs = [{"environment": near, "agent": {"name": name, "kind": kind}} for name, kind in kinds.items()]
    facts = {"study": "small", "scale": "smoke", "horizon": 100, "seeds": 2, "specs": json.dumps(specs)}
    write_dataset(xr.Dataset({"regret": (dims, regret)}, coordinates, facts), tmp_path / "small.nc")
    script = (
        "import json, sys\n"
        "from ensemblepp.cli import main\n"
        "assert main(sys.argv[1:]) == 0\n"
        "heavy = {'seaborn', 'scipy.stats', 'scipy.optimize', 'torch', 'numba', 'pydantic'}\n"
        "print(json.dumps(sorted(heavy & set(sys.modules))))"
    )
    command = ["figure", "--name", name, "--dataset", "small.nc", "small.pdf"]
    done = subprocess.run([sys.executable, "-c", script, *command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout)
    assert ("seaborn" in loaded) == loads
    assert loads or loaded == []
