"""Fine-tuning on a GPU: GPT-2's real shapes in bfloat16 within five minutes, near float32, the same numbers twice, resumed.

Weights are random, as GPT-2's own are on the hub. Skipped where torch sees no GPU. `pytest -s` shows rounds per second.
"""

from __future__ import annotations

import os
import time

# before the first matrix product on a GPU: torch refuses deterministic ones without it (the command line sets it as well)
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

import hashlib

import numpy as np
import pytest
import text_agents as small
import tiny_models
import torch
import xarray as xr
from killed import Killed, assert_equal, killer

from ensemblepp.engines.choice import simulate
from ensemblepp.environments.moderation_tokens import TokenModeration
from ensemblepp.storage.checkpoints import Checkpoint
from ensemblepp.storage.datasets import write_dataset, write_json
from ensemblepp.text.language_models import CHECKSUMS

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="torch sees no GPU on this machine")

#: Rounds of GPT-2, and the seconds that all tests of it may take together.
ROUNDS, SECONDS = 400, 300

#: The released code's values.
RELEASED = {"learning_rate": 1e-4, "batch_size": 32, "weight_decay": 0.1, "buffer_capacity": 10_000, "update_every": 10}
RELEASED |= {"warm_up": 20, "pooling": "last"}
#: The paper's: batch 128, a step every round.
PAPER = RELEASED | {"batch_size": 128, "weight_decay": 0.01, "update_every": 1}


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    """124 million random weights, as their configuration draws them."""
    from transformers import GPT2Config, GPT2Model

    folder = tmp_path_factory.mktemp("models") / "gpt2"
    torch.manual_seed(0)
    GPT2Model(GPT2Config()).save_pretrained(folder)
    files = [file for file in folder.iterdir() if file.is_file()]
    write_json({file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}, folder / CHECKSUMS)
    return folder


@pytest.fixture(scope="module")
def posts(tmp_path_factory):
    """As many tokens as real posts have, about 38 on average and 150 at most; hateful ones begin with one of 100 words."""
    source = np.random.default_rng(0)
    length = np.clip(source.lognormal(3.4, 0.7, 2000), 3, 150).astype(np.int32)
    token = source.integers(200, 50_000, (2000, length.max())).astype(np.int32)
    label = source.integers(2, size=2000).astype(np.int8)
    token[:, 0] = source.integers(100, size=2000) + 100 * label
    token[np.arange(token.shape[1]) >= length[:, None]] = 0
    path = tmp_path_factory.mktemp("tokens") / "tokens.nc"
    data = {"token": (("post", "position"), token), "length": ("post", length), "label": ("post", label)}
    write_dataset(xr.Dataset(data), path)
    return path


def played(name: str, model, posts, rounds: int, *more, **changes):
    """A run on the GPU, and the agent."""
    environment = TokenModeration((0,), inputs={"tokens": posts}, passes=1)
    agent = small.agent(name, model, environment, rounds, device="cuda", **changes)
    return simulate(environment, agent, rounds, *more), agent


@pytest.mark.parametrize("values", [RELEASED, PAPER], ids=["released", "paper"])
@pytest.mark.parametrize("name", small.AGENTS)
def test_gpt2_is_trained_in_half_precision(name, values, gpt2, posts):
    """Six runs in five minutes on one GPU: every agent by both protocols, float32 weights, finite and learning."""
    rounds = ROUNDS if values is RELEASED else ROUNDS // 4
    start = time.perf_counter()
    trajectory, agent = played(name, gpt2, posts, rounds, precision="bfloat16", **values)
    seconds = time.perf_counter() - start
    peak = torch.cuda.max_memory_allocated() / 1e9
    print(f"\n{name}: {rounds / seconds:.1f} rounds per second, {peak:.1f} GB", flush=True)
    assert seconds < SECONDS / 6
    assert {value.dtype for value in agent._models[0].parameters()} == {torch.float32}
    loss = trajectory.diagnostics["loss"][0, 0]
    assert np.isfinite(loss[-10:]).all()
    assert torch.isfinite(agent.flat).all()


def test_half_precision_is_near_the_whole(gpt2, posts):
    """Features of GPT-2's shapes, relative to the largest."""
    environment = TokenModeration((0,), inputs={"tokens": posts}, passes=1)
    features = torch.from_numpy(environment.features(np.arange(64)[None])).cuda()
    found = {}
    for precision in ("float32", "bfloat16"):
        agent = small.agent("greedy", gpt2, environment, device="cuda", precision=precision, **RELEASED)
        with torch.no_grad():
            found[precision] = agent.trunk(features)
        del agent
    error = (found["float32"] - found["bfloat16"]).abs().max() / found["float32"].abs().max()
    print(f"\nbfloat16 differs from float32 by {error:.1e} of the largest feature")
    assert error < 0.05


def test_gradient_checkpointing_gives_the_same_with_less_memory(gpt2, posts):
    """A minibatch of 128, forward and backward."""
    environment = TokenModeration((0,), inputs={"tokens": posts}, passes=1)
    features = torch.from_numpy(environment.features(np.arange(256)[None, ::2])).cuda()
    gradients, peaks = [], []
    for checkpointing in (False, True):
        agent = small.agent("greedy", gpt2, environment, device="cuda", gradient_checkpointing=checkpointing, **PAPER)
        torch.cuda.reset_peak_memory_stats()
        agent.loss_of(features, torch.ones(1, 128).cuda(), torch.empty(1, 128, 0).cuda(), 0).sum().backward()
        peaks.append(torch.cuda.max_memory_allocated())
        gradients.append(agent.flat.grad.clone())
        del agent
    torch.testing.assert_close(*gradients, rtol=1e-4, atol=1e-5)
    assert peaks[1] < peaks[0]


@pytest.mark.parametrize("name", small.AGENTS)
def test_the_same_numbers_twice_and_after_a_kill(name, tmp_path):
    """On a small model: two seeds, to the last bit; near the CPU at first."""
    model = tiny_models.make("gpt2", tmp_path / "gpt2")

    def start(device: str = "cuda"):
        environment = small.bandit(tmp_path)
        return environment, small.agent(name, model, environment, device=device)

    first, second = simulate(*start(), 40), simulate(*start(), 40)
    assert_equal(first, second)
    checkpoint = Checkpoint(tmp_path / "run.checkpoint", "key", every=0)
    with pytest.raises(Killed):
        simulate(*start(), 40, killer(2 * 24), checkpoint)
    assert_equal(first, simulate(*start(), 40, lambda rounds: None, checkpoint))
    np.testing.assert_array_equal(first.action[..., :8], simulate(*start("cpu"), 40).action[..., :8])
