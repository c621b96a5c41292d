"""A small entry of every kind of environment and agent, and blocks of two seeds made of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tiny_models
import tiny_posts
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
        "moderation_tokens": {"language_model": "tiny", "posts": 40},
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
    if kind == "moderation_tokens":
        tiny_posts.posts(folder / "data/tokens/tiny/hate_speech-40.nc")
        if not (folder / "data/models/tiny").exists():
            tiny_models.make("gpt2", folder / "data/models/tiny")
    return {"kind": kind, "title": kind, **entries[kind]}


def agent_entry(kind: str, **changes) -> dict:
    entry = {"kind": kind, "label": kind, **changes}
    if kind == "linear_ensemblepp":
        entry |= {"references": ["gaussian"], "perturbations": ["sphere"]}
    training = {"neural": {"warm_up": 2, "batch_size": 4, "hidden": [5]}, "text": {"warm_up": 2, "batch_size": 4}}
    return entry | training.get(family_of(kind), {})


def family_of(kind: str) -> str:
    """Which folder of agents an agent's kind is from: "linear", "neural" or "text"."""
    return registry.AGENTS[kind].split(".")[2]


def partner_of(kind: str) -> str:
    """A kind of environment with few actions that agents of a kind play: their own family's where there is one."""
    return {"linear": "linear_finite", "neural": "moderation", "text": "moderation_tokens"}[family_of(kind)]


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
