"""Datasets as they are published, small enough for git, and what figures and tables are made of them.

Of a study with few runs all curves are kept. Of one with many, there are the mean over seeds, its standard error and the median
at every fourth stored time, and every seed's final regret.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

#: Every how many of a dataset's stored times the summary of a large study keeps, the last one always among them.
EVERY = 4

#: Numbers of regret, of what was run, up to which a study is small: all that it holds over time is kept, but for the rewards.
SMALL = 2**16

#: The attribute of a dataset some of whose numbers are stand-ins; it says which.
STAND_INS = "stand_ins"

#: Attributes of a dataset that its summary keeps.
KEPT = ("study", "study_title", "scale", "horizon", "seeds", "specs", "codes")


def summary(dataset: xr.Dataset) -> xr.Dataset:
    """Regret over seeds: mean, standard error and median, and every seed's final regret; of a small study its curves too."""
    # not by the size: of all combinations of agents, laws and ensemble sizes most are not run
    small = int(dataset["regret"].notnull().sum()) <= SMALL
    shown = dataset if small else dataset.isel(time=slice(None, None, -EVERY)).sortby("time")
    # a combination was run for every seed or for none, so nothing is skipped: NaN stays NaN
    regret = shown["regret"]
    deviation = regret.std("seed", ddof=1, skipna=False, dtype=float)
    curves = {name: values for name, values in shown.items() if {"seed", "time"} <= {*values.dims} and name != "reward"}
    return xr.Dataset(
        {
            "mean": regret.mean("seed", skipna=False, dtype=float).astype("float32"),
            "standard_error": (deviation / np.sqrt(regret.sizes["seed"])).astype("float32"),
            "median": regret.median("seed", skipna=False).astype("float32"),
            "final_regret": regret.isel(time=-1, drop=True),
            **(curves if small else {}),
        },
        attrs={key: dataset.attrs[key] for key in KEPT},
    ).assign_coords(title=dataset["title"], label=dataset["label"])


def restored(published: xr.Dataset) -> xr.Dataset:
    """A published dataset with `regret` (..., seed, time), as figures and tables ask for it; any other stays as it is.

    Where no curves were kept, the final regret is every seed's own. At earlier times there are stand-ins, in the order of the
    final regrets, whose mean and standard error are the published ones: enough for means and their intervals, and for nothing
    that asks for single seeds or for quantiles before the end.
    """
    if "regret" in published or "final_regret" not in published:
        return published
    final = published["final_regret"].astype(float)
    seeds = final.sizes["seed"]
    centred = final - final.mean("seed")
    error = final.std("seed", ddof=1) / np.sqrt(seeds)
    # of mean zero and standard error one; where all seeds end alike, any such numbers
    ranks = np.arange(seeds) - (seeds - 1) / 2
    alike = xr.DataArray(ranks / ranks.std(ddof=1) * np.sqrt(seeds), {"seed": final["seed"]}, "seed")
    places = (centred / error.where(error > 0)).where(error > 0, alike)
    regret = published["mean"] + published["standard_error"] * places
    last = regret["time"] == regret["time"][-1]
    regret = regret.where(~last, final).transpose(*published["mean"].dims[:-1], "seed", "time").astype("float32")
    return published.assign(regret=regret).assign_attrs({STAND_INS: "regret before the end"})
