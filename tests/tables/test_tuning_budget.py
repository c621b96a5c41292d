"""The table of tuning by hand: expected best of k, exploration, and which values the best setting has."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xarray as xr
from synthetic_studies import study

from ensemblepp.tables import tuning_budget

#: Final regret at two seeds: each setting is chosen at one seed and valued at the other.
REGRET = {"ours": [9.0, 11.0], "ours-setting-00": [6.0, 2.0], "ours-setting-01": [3.0, 4.0]}
RATES = {"ours": 1e-4, "ours-setting-00": 1e-4, "ours-setting-01": 0.01}


def played() -> xr.Dataset:
    dataset = study({("near", name, 8): np.array(regret) for name, regret in REGRET.items()})
    specs = json.loads(dataset.attrs["specs"])
    for spec in specs:
        spec["agent"]["options"]["learning_rate"] = RATES[spec["agent"]["name"]]
    return dataset.assign_attrs(specs=json.dumps(specs)).assign(explored=xr.zeros_like(dataset["regret"]) + 25)


def test_rows_by_hand():
    rows = tuning_budget.build(played()).set_index("settings tried")
    assert list(rows.index) == ["as is", "1", "2"]
    # of one setting the mean of both; of two, the best at the other seed: setting 0 at seed 0, setting 1 at seed 1
    assert rows["regret"].tolist() == pytest.approx([10, (4.5 + 3) / 2, (6 + 4) / 2])
    # t with one degree of freedom: 12.7062 standard errors on either side
    assert rows.loc["2", "95 % high"] == pytest.approx(5 + 12.7062, abs=1e-3)
    assert rows["explored"].tolist() == pytest.approx([0.25, np.nan, 0.25], nan_ok=True)
    assert rows["best setting"].tolist() == ["-", "-", "learning_rate 0.01"]
    assert set(rows["seeds"]) == {2}


def test_agents_that_say_nothing_of_their_exploration_have_none():
    rows = tuning_budget.build(played().drop_vars("explored"))
    assert rows["explored"].isna().all()
