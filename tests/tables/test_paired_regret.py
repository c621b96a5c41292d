"""Differences of final regret, seed by seed, by hand."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

from ensemblepp.tables import paired_regret

#: (agent, M): final regret of the two seeds in the first environment; the second environment's is ten times that.
FINAL = {
    ("ensemble++", 4): [10.0, 30.0],
    ("ensemble++", 8): [8.0, 20.0],
    ("ensemble+", 4): [14.0, 36.0],
    ("ensemble+", 8): [7.0, 23.0],
    ("greedy", 0): [18.0, 30.0],
}


def dataset() -> xr.Dataset:
    agents, sizes = ["ensemble++", "ensemble+", "greedy"], [0, 4, 8]
    regret = np.full((2, 3, 1, 1, 3, 2, 2), np.nan)
    for (agent, size), final in FINAL.items():
        for place, factor in enumerate((1, 10)):
            regret[place, agents.index(agent), 0, 0, sizes.index(size)] = factor * np.outer(final, [0.5, 1.0])
    dims = ("environment", "agent", "reference", "perturbation", "ensemble_size", "seed", "time")
    coordinates = {
        "environment": ["a", "b"],
        "agent": agents,
        "reference": ["none"],
        "perturbation": ["none"],
        "ensemble_size": sizes,
        "seed": [0, 1],
        "time": [5, 10],
        "title": ("environment", ["A", "B"]),
        "label": ("agent", ["Ensemble++", "Ensemble+", "Greedy"]),
    }
    return xr.Dataset({"regret": (dims, regret)}, coordinates)


def test_differences_by_hand():
    """Greedy against M = 8: 18 - 8 = 10 and 30 - 20 = 10; Ensemble+ with M = 8: -1 and 3, half of the time better."""
    table = paired_regret.build(dataset()).set_index(["environment", "agent", "M", "against"])
    assert len(table) == 2 * 4
    greedy = table.loc["A", "Greedy", "-", "Ensemble++, M = 8"]
    assert (greedy["difference"], greedy["95 % low"], greedy["95 % high"], greedy["median"]) == (10, 10, 10, 10)
    assert greedy["share of the first's regret"] == pytest.approx(10 / 14)
    assert greedy["seeds where the first is better"] == greedy["seeds"] == 2
    plus = table.loc["A", "Ensemble+", "8", "Ensemble++, M = 8"]
    assert (plus["difference"], plus["median"], plus["seeds where the first is better"]) == (1, 1, 1)
    # t with one degree of freedom: 12.706 standard errors, each |3 - (-1)| / 2
    assert plus["95 % high"] == pytest.approx(1 + 12.7062 * 2, rel=1e-4)
    assert table.loc["B", "Ensemble+", "4", "Ensemble++, M = 4"]["difference"] == 50


def test_an_only_size_is_compared_with_every_size():
    """The first agent ran M = 8 alone: Ensemble+ with M = 4 is held against it too."""
    alone = dataset()
    alone["regret"].loc[{"agent": "ensemble++", "ensemble_size": 4}] = np.nan
    table = paired_regret.build(alone)
    assert set(table["against"]) == {"Ensemble++, M = 8"}
    four = table[(table["environment"] == "A") & (table["M"] == "4")].iloc[0]
    assert four["difference"] == pytest.approx((14 - 8 + 36 - 20) / 2)
