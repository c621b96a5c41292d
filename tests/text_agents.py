"""Small agents on tiny language models, and the bandits that they play."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import tiny_posts
import torch
import xarray as xr

from ensemblepp.agents.neural.ensembleplus import EnsemblePlus
from ensemblepp.agents.neural.ensemblepp import NeuralEnsemblePlusPlus
from ensemblepp.agents.neural.greedy import Greedy
from ensemblepp.agents.text.backbone import BackboneAgent
from ensemblepp.agents.text.ensembleplus import TextEnsemblePlus
from ensemblepp.agents.text.ensemblepp import TextEnsemblePlusPlus
from ensemblepp.agents.text.greedy import TextGreedy
from ensemblepp.environments.moderation import Moderation
from ensemblepp.environments.moderation_tokens import TokenModeration
from ensemblepp.storage.datasets import read_dataset, write_dataset

MEMBERS = 3
TRAINING = {"learning_rate": 1e-3, "batch_size": 8, "weight_decay": 0.1, "buffer_capacity": 30, "gradient_steps": 1}
TRAINING |= {"warm_up": 4, "update_every": 2}
SCALES = {"ensemble_size": MEMBERS, "prior_scale": 0.5, "posterior_scale": 0.3, "perturbation_scale": 0.2}
LAWS = {"references": ["sphere"], "perturbations": ["sphere"], "update": "coordinate"}

#: Name -> the class, the same agent on embeddings, and hyper-parameters of both.
AGENTS = {
    "greedy": (TextGreedy, Greedy, {}),
    "ensemble++": (TextEnsemblePlusPlus, NeuralEnsemblePlusPlus, SCALES | LAWS),
    "ensemble+": (TextEnsemblePlus, EnsemblePlus, SCALES | {"equal_noise": True}),
}


def bandit(folder: Path, seeds=(0, 1), passes: int = 2) -> TokenModeration:
    """Forty posts as tokens."""
    path = folder / "tokens.nc"
    return TokenModeration(seeds, inputs={"tokens": path if path.exists() else tiny_posts.posts(path)}, passes=passes)


def agent(name: str, model: Path, environment: TokenModeration, horizon: int = 40, **changes) -> BackboneAgent:
    options = TRAINING | AGENTS[name][2] | {"pooling": tiny_posts.POOLING[model.name]} | changes
    backbone = {"folder": model, "actions": 2, "device": "cpu"}
    return AGENTS[name][0](environment.seeds, dimension=environment.dimension, horizon=horizon, **backbone | options)


def hidden_state(model: torch.nn.Module, post: np.ndarray, pooling: str) -> torch.Tensor:
    """One post, (1 + positions,), by the library's plainest use: no padding, no mask."""
    ids = torch.as_tensor(post[1 : 1 + int(post[0])].astype(np.int64))[None]
    states = model(input_ids=ids).last_hidden_state[0]
    return states[-1] if pooling == "last" else states.mean(dim=0)


def embedded(folder: Path, model: Path, seeds=(0, 1), passes: int = 2) -> tuple[Moderation, np.ndarray]:
    """The same posts as embeddings, and these, (posts, hidden)."""
    from transformers import AutoModel

    tokens = read_dataset(folder / "tokens.nc")
    posts = np.concatenate([tokens["length"].values[:, None], tokens["token"].values], axis=1)
    plain = AutoModel.from_pretrained(model, dtype=torch.float32).eval()
    with torch.no_grad():
        vectors = np.stack([hidden_state(plain, post, tiny_posts.POOLING[model.name]).numpy() for post in posts])
    data = {"embedding": (("post", "feature"), vectors), "label": ("post", tokens["label"].values)}
    write_dataset(xr.Dataset(data), folder / f"{model.name}.nc")
    inputs = {"embeddings": folder / f"{model.name}.nc"}
    return Moderation(seeds, inputs=inputs, scaling="none", passes=passes), vectors
