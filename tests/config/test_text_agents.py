"""Agents that train a language model, in the configuration: what they are given, and where they play."""

from __future__ import annotations

import pytest
from small_configuration import faults, small

from ensemblepp.config.loading import load
from ensemblepp.errors import ConfigError
from ensemblepp.runs import requirements
from ensemblepp.runs.plan import plan
from ensemblepp.text import precision

TUNED = {"kind": "text_ensemblepp", "label": "Ensemble++ (fine-tuned)"}
TOKENS = {"kind": "moderation_tokens", "title": "Posts, fine-tuned", "language_model": "tiny", "posts": 1200}


def mixed(**changes: object) -> dict:
    """A study of agents on embeddings and of one on tokens."""
    values = {"agents/tuned": TUNED, "environments/tokens": TOKENS, "studies/deep/agents": ["neural", "greedy", "tuned"]}
    values["studies/deep/scales/quick"] = {"environments": ["posts", "tokens"], "horizon": 30, "seeds": 2}
    return small(**values | changes)


def test_an_agent_plays_what_it_reads():
    """Of two environments and three agents, three pairs; the plan has the same."""
    config = load(mixed())
    pairs = {(environment, agent) for environment, agent, _, _ in config.runs("deep")}
    assert pairs == {("posts", "neural"), ("posts", "greedy"), ("tokens", "tuned")}
    planned = plan(config, "deep")["runs"]
    assert {(run["spec"]["environment"]["name"], name) for run in planned for name in run["agents"]} == pairs
    with pytest.raises(ConfigError, match=r"^agent 'greedy' reads features: environment 'tokens' gives tokens$"):
        config.block("tokens", "greedy", 0, 5, 0, 0)
    with pytest.raises(ConfigError, match=r"^agent 'tuned' reads tokens: environment 'posts' gives features$"):
        config.block("posts", "tuned", 4, 5, 0, 0)


def test_a_block_of_a_fine_tuned_agent():
    """Its tokens and the model are input files, and the environment's language model is the agent's."""
    (block,) = (block for block in load(mixed(device="cpu")).blocks("deep") if block.spec["agent"]["name"] == "tuned")
    assert block.inputs == ["data/tokens/tiny/hate_speech-1200.nc", "data/models/tiny/config.json"]
    options = block.spec["agent"]["options"]
    assert {key: options[key] for key in ("folder", "pooling", "actions", "precision")} == {
        "folder": "data/models/tiny",
        "pooling": "last",
        "actions": 2,
        "precision": "float32",
    }
    assert block.spec["engine"] == "neural_stacked"


def test_half_precision_where_the_gpu_has_it(monkeypatch):
    monkeypatch.setenv(precision.PLANNED_VARIABLE, "bfloat16")
    found = {
        (device, stated): load(mixed(device=device, **{"agents/tuned": TUNED | {"precision": stated}}))
        .block("tokens", "tuned", 4, 5, 0, 0)
        .spec["agent"]["options"]["precision"]
        for device in ("cpu", "cuda")
        for stated in ("auto", "float32", "bfloat16")
    }
    assert found[("cpu", "auto")] == "float32"
    assert found[("cuda", "auto")] == "bfloat16"
    assert all(found[device, stated] == stated for device in ("cpu", "cuda") for stated in ("float32", "bfloat16"))


def test_an_agent_or_an_environment_without_a_partner():
    place = "config/studies.yaml: studies.deep.scales.quick.environments"
    grid = {"environments": ["posts"], "horizon": 30, "seeds": 2}
    assert faults(mixed(**{"studies/deep/scales/quick": grid})) == [
        f"{place}: agent 'tuned' plays in none of posts: it needs tokens"
    ]
    assert faults(mixed(**{"studies/deep/agents": ["greedy"]})) == [
        f"{place}: found 'tokens': it gives tokens, which none of the agents reads"
    ]


def test_more_posts_and_rounds_than_there_are(monkeypatch, mirror):
    monkeypatch.setenv("ENSEMBLEPP_MIRROR", str(mirror))
    (line,) = faults(mixed(**{"environments/tokens": TOKENS | {"posts": 10}}))
    assert line.startswith("config/studies.yaml: studies.deep.scales.quick.horizon: found 30: environment 'tokens' supports at")
    (line,) = faults(mixed(**{"environments/tokens": TOKENS | {"posts": 50_000}}))
    assert line.startswith("config/environments.yaml: environments.tokens.posts: found 50000: the source that serves")


def test_the_values_of_the_released_code_are_a_protocol():
    """M is the grid's; the rest is under protocols, by the kind of the environment."""
    shared = {"update_every": 10, "warm_up": 20, "batch_size": 32, "weight_decay": 0.1}
    changes = {"protocols": {"code": {"moderation_tokens": shared}}, "agents/tuned": TUNED | {"protocol": "code"}}
    options = load(mixed(**changes)).block("tokens", "tuned", 4, 5, 0, 0).spec["agent"]["options"]
    assert {key: options[key] for key in shared} == shared
    changes = {"protocols": {"code": {"moderation_tokens": {"hidden": [3], "rounds": 3}}}}
    assert [line.partition(":")[2].split(":")[0] for line in faults(mixed(**changes))] == [
        " protocols.code.moderation_tokens.rounds"
    ]


def test_memory_for_the_model_its_gradient_and_adams_moments(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    spec = load(mixed()).block("tokens", "tuned", 4, 5, 0, 2).spec
    assert requirements.least(spec)["the agent's language models"] == 0, "not there yet"
    (tmp_path / "data/models/tiny").mkdir(parents=True)
    (tmp_path / "data/models/tiny/model.safetensors").write_bytes(bytes(1000))
    assert requirements.least(spec)["the agent's language models"] == 3 * 4 * 1000
    monkeypatch.setattr(requirements, "available", lambda: 10_000)
    with pytest.raises(ConfigError, match=r"^tuned in tokens needs at least .*, of which .* for the agent's language models"):
        requirements.require(spec)
