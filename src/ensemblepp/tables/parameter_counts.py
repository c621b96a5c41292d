"""How many parameters the neural agents have: by the paper's formulas, as built, and trainable (paper, "Parameter Counts")."""

from __future__ import annotations

import json
import math

import pandas as pd
import xarray as xr

from ensemblepp.analysis import theory

NEEDS = {
    "environments": ["quadratic", "vector_quadratic", "neural"],
    "agent_kinds": ["neural_ensemblepp", "ensembleplus", "epinet", "greedy"],
}

SIZES = (2, 4, 8, 16, 32, 64)


def build(dataset: xr.Dataset) -> pd.DataFrame:
    """A row for every network of the study and ensemble size; environments that ask for the same networks share rows.

    d is the number of an action's features, C that of the network's outputs.
    """
    titles = dict(zip(dataset["environment"].values, dataset["title"].values, strict=True))
    labels = dict(zip(dataset["agent"].values, dataset["label"].values, strict=True))
    # (shape, label, network) -> titles, in the order of the specifications
    found: dict[tuple[object, ...], dict[str, None]] = {}
    for spec in json.loads(dataset.attrs["specs"]):
        network = theory.network_of(spec)
        if network and spec["agent"]["name"] in labels:
            kind, shape = network
            key = (*shape.items(), str(labels[spec["agent"]["name"]]), kind)
            found.setdefault(key, {})[str(titles[spec["environment"]["name"]])] = None
    rows = []
    for (*items, label, kind), environments in found.items():
        shape = dict(items)
        for size in (0,) if kind == "greedy" else SIZES:
            total, trainable = theory.parameter_counts(kind, **shape, ensemble_size=size)
            printed = theory.paper_parameter_count(kind, **shape, ensemble_size=size)
            rows.append(
                {
                    "environment": ", ".join(environments),
                    "agent": label,
                    "d": str(shape["dimension"]),
                    "C": str(shape["classes"]),
                    "M": str(size) if size else "-",
                    "paper's formula": "-" if math.isnan(printed) else printed,
                    "as built": total,
                    "trainable": trainable,
                    "frozen": total - trainable,
                }
            )
    return pd.DataFrame(rows)
