"""A dataset that holds what one table or figure reads, with all else that a study's dataset has: names, kinds, attributes."""

from __future__ import annotations

import json

import xarray as xr


def whole(dataset: xr.Dataset, environment: str = "linear_finite", agent: str = "linear_ensemblepp") -> xr.Dataset:
    """`dataset` as `aggregate` would write it; environments and agents without a kind are of these."""
    specs = json.loads(dataset.attrs.get("specs", "[]"))
    for name in ("environment", "agent"):
        if name not in dataset.dims:
            known = list(dict.fromkeys(spec[name]["name"] for spec in specs if name in spec)) or ["there"]
            dataset = dataset.drop_vars("regret").assign(regret=dataset["regret"].expand_dims({name: known}))
    if "environment" not in dataset["regret"].dims:
        dataset = dataset.assign(regret=dataset["regret"].expand_dims(environment=dataset["environment"]))
    if "ensemble_size" not in dataset.dims:
        dataset = dataset.assign(regret=dataset["regret"].expand_dims(ensemble_size=[8]))
    for name, shown in (("environment", "title"), ("agent", "label")):
        if shown not in dataset.coords:
            dataset = dataset.assign_coords({shown: (name, [str(one) for one in dataset[name].values])})
    specs = specs or [{} for _ in dataset["environment"]]
    for place, spec in enumerate(specs):
        names = dataset["environment"].values
        spec["environment"] = {"name": str(names[place % len(names)]), "kind": environment} | spec.get("environment", {})
        spec["agent"] = {"name": str(dataset["agent"].values[0]), "kind": agent} | spec.get("agent", {})
    told = {"study": "small", "study_title": "Small", "scale": "smoke", "horizon": 100, "seeds": 3}
    return dataset.assign_attrs(told | dataset.attrs | {"specs": json.dumps(specs)})
