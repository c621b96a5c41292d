"""A small entry of every kind of environment and agent, and blocks of two seeds made of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr

from ensemblepp import registry
from ensemblepp.config.loading import load
from ensemblepp.runs.block import build
from ensemblepp.storage.datasets import write_dataset

ROUNDS = 12


def environment_entry(kind: str, folder: Path) -> dict:
    small = {"dimension": 6, "candidates": 20, "offered": 5}
    entries = {
        "linear_finite": {"dimension": 4, "actions": 7},
        "linear_sphere": {"dimension": 4},
        "quadratic": small,
        "vector_quadratic": small,
        "neural": small,
        "classification": {"dataset": "shuttle"},
        "moderation": {"language_model": "tiny", "posts": 40},
    }
    source = np.random.default_rng(0)
    labels = np.arange(40) % 2
    if kind == "classification":
        data = xr.Dataset({"value": (("row", "attribute"), source.normal(size=(40, 3))), "label": ("row", labels)})
        write_dataset(data, folder / "data/prepared/shuttle.nc")
    if kind == "moderation":
        data = xr.Dataset({"embedding": (("post", "feature"), source.normal(size=(40, 3))), "label": ("post", labels)})
        write_dataset(data, folder / "data/embeddings/tiny/hate_speech-40.nc")
        judged = xr.Dataset({"free": ("post", source.random(40)), "label": ("post", labels)})
        write_dataset(judged, folder / "data/ceilings/tiny/hate_speech-40-none.nc")
    return {"kind": kind, "title": kind, **entries[kind]}


def agent_entry(kind: str, **changes) -> dict:
    entry = {"kind": kind, "label": kind, **changes}
    if kind == "linear_ensemblepp":
        entry |= {"references": ["gaussian"], "perturbations": ["sphere"]}
    neural = registry.AGENTS[kind].startswith("ensemblepp.agents.neural.")
    return entry | ({"warm_up": 2, "batch_size": 4, "hidden": [5]} if neural else {})


def built(environment: dict, agent: dict):
    """Environment, agent and engine of a block of two seeds, resolved as the workflow does."""
    config = load(
        {
            "scale": "quick",
            "device": "cpu",
            "environments": {"environment": environment},
            "language_models": {"tiny": {"source": "folder", "location": "tiny", "pooling": "last"}},
            "agents": {"agent": agent},
        }
    )
    size = 4 if config.agents["agent"].ensemble else 0
    spec = config.block("environment", "agent", size, ROUNDS, 0, 1).spec
    return *build(spec), spec["engine"]
