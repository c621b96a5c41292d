"""A table that lives outside the package, added by the how-to pages' lines of configuration alone, is played and drawn."""

from __future__ import annotations

import re

import matplotlib as mpl
import pytest
import xarray as xr
from project import HOW_TO, Project

pytestmark = pytest.mark.workflow

FIGURE, DATASET = "results/smoke/figures/uci-nonlinear_regret.png", "results/smoke/datasets/uci.nc"


def rows() -> list[str]:
    """200 wines whose kind shows in their colour, and in their acidity for the white ones."""
    kinds = [
        ("red", 3 + row % 5, "merlot") if row % 2 else ("white", row % 7, "dry" if row % 7 > 3 else "sweet")
        for row in range(200)
    ]
    return ["colour,acidity,kind", *(f"{colour},{acidity},{kind}" for colour, acidity, kind in kinds)]


def declare(environments: str) -> str:
    """config/environments.yaml with the how-to page's two entries."""
    table, entry = re.findall(r"^```yaml\n(datasets:\n.*?)^```.*?^```yaml\n(.*?)^```", HOW_TO, re.MULTILINE | re.DOTALL)[0]
    return environments.replace("\nenvironments:\n", f"\n{table}\nenvironments:\n{entry}", 1)


def test_a_table_of_one_s_own_is_in_the_figure(smoke_copy: Project):
    environments, studies = smoke_copy.folder / "config/environments.yaml", smoke_copy.folder / "config/studies.yaml"
    table = smoke_copy.folder / "wine.csv"
    environments.write_text(declare(environments.read_text()))
    before, heading, after = studies.read_text().partition("\n  uci:\n")
    studies.write_text(before + heading + after.replace("[mushroom, shuttle]", "[mushroom, shuttle, wine]", 1))

    refused = smoke_copy.snakemake(FIGURE)
    assert refused.returncode != 0
    assert "config/environments.yaml: datasets.wine: wine.csv: no such file\n" in refused.stdout

    table.write_text("\n".join(rows()) + "\n")
    jobs = smoke_copy.planned(FIGURE)
    assert jobs["prepare"] == ["data/prepared/wine.nc"]
    assert {path.split("/")[3] for path in jobs["simulate"]} == {"wine"}
    done = smoke_copy.snakemake(FIGURE)
    assert done.returncode == 0, done.stdout
    data = xr.load_dataset(smoke_copy.folder / DATASET)
    wine = data.sel(environment="wine")
    assert wine["constant_regret"].dropna("action_index", how="all").sizes["action_index"] == 3
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    from ensemblepp.figures import nonlinear_regret

    drawn = nonlinear_regret.draw(data)
    plt.close(drawn)
    assert "Wine" in [axes.get_title() for axes in drawn.axes]
    assert not smoke_copy.planned(FIGURE)

    # an edited table is prepared and played anew, and nothing else
    table.write_text("\n".join(rows()).replace("white,0,sweet", "white,1,sweet") + "\n")
    jobs = smoke_copy.planned(FIGURE)
    assert jobs["prepare"] == ["data/prepared/wine.nc"]
    table.write_text("\n".join(rows()) + "\nwhite,sour,dry\n")
    prepared = (smoke_copy.folder / "data/prepared/wine.nc").read_bytes()
    faulty = smoke_copy.snakemake(FIGURE)
    assert faulty.returncode != 0
    assert (
        "error: wine.csv, line 202, column 'acidity': not a number "
        "(expected a number, or the column under `nominal`, found 'sour')\n" in faulty.stdout
    )
    assert (smoke_copy.folder / "data/prepared/wine.nc").read_bytes() == prepared
