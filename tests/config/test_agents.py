"""Agents as the classes that play them are given them, and where they run."""

from __future__ import annotations

import pytest
from small_configuration import LINUCB, small, with_pairs

from ensemblepp import devices
from ensemblepp.config.loading import load

#: Agents of linear bandits beside TS and Ensemble++, and whether they have an ensemble.
OTHERS = {
    "members": ({"kind": "ensemble_sampling", "label": "ES"}, True),
    "recursive": ({"kind": "rrls", "label": "RRLS"}, False),
    "ridge": ({"kind": "linear_greedy", "label": "Greedy"}, False),
    "bound": (LINUCB, False),
}

#: A class and its keyword arguments, as a user would name one of their own.
UCB = "ensemblepp.agents.linear.ucb:LinearUCB", {"prior_variance": 1.0, "width": None, "delta": 0.1}


@pytest.mark.parametrize("name", OTHERS)
def test_the_other_linear_agents(name):
    """Kind, and whether they have an ensemble size."""
    model, ensemble = OTHERS[name]
    changes = {f"agents/{name}": model, "studies/curves/agents": [name], "studies/curves/figures": []}
    blocks = load(small(**changes)).blocks("curves")
    assert {block.spec["agent"]["kind"] for block in blocks} == {model["kind"]}
    assert [block.spec["ensemble_size"] for block in blocks] == ([2, 2, 4, 4] if ensemble else [0, 0])


@pytest.mark.parametrize("device", ["auto", "cpu", "cuda"])
@pytest.mark.parametrize("seen", ["cpu", "cuda"])
def test_neural_agents_follow_the_device_that_auto_is_resolved_to_when_planning(monkeypatch, device, seen):
    monkeypatch.setenv(devices.PLANNED_VARIABLE, seen)
    config = load(small(device=device))
    taken = seen if device == "auto" else device
    assert {block.spec["device"] for block in config.blocks("curves")} == {"cpu"}
    assert {block.spec["device"] for block in config.blocks("deep")} == {taken}
    engines = {"cpu": "neural_compiled", "cuda": "neural_stacked"}
    assert {block.spec["engine"] for block in config.blocks("deep")} == {engines[taken]}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("linear", ["cpu", "cuda"])
def test_linear_agents_follow_the_linear_device(device, linear):
    """LinUCB, which plays step by step, and agents of one's own stay on the CPU."""
    own = {"kind": "custom", "label": "Own", "class": UCB[0], "hyperparameters": UCB[1]}
    changes = {f"agents/{name}": model for name, (model, _) in OTHERS.items()}
    names = ["ts", "cubed", *OTHERS, "own"]
    config = load(
        with_pairs(device=device, linear_device=linear, **changes, **{"agents/own": own, "studies/curves/agents": names})
    )
    specs = {agent: block.spec for (_, agent, _, _), block in config.runs("curves").items()}
    placed = {agent: spec["device"] for agent, spec in specs.items()}
    assert placed == dict.fromkeys(names, linear) | {"bound": "cpu", "own": "cpu"}
    fast = "linear_compiled" if linear == "cpu" else "linear_batched"
    alone = dict.fromkeys(("bound", "own"), "step_by_step")
    assert {agent: spec["engine"] for agent, spec in specs.items()} == dict.fromkeys(names, fast) | alone
    assert {block.spec["device"] for block in config.blocks("deep")} == {device}


def test_an_agent_that_records_diagnostics_is_played_round_by_round():
    config = load(small(**{"agents/linear/track_covariance": True}))
    assert {block.spec["engine"] for block in config.blocks("curves")} == {"linear_compiled", "step_by_step"}


@pytest.mark.parametrize(
    ("plays_as", "engines"),
    [
        (None, {"line": "step_by_step", "mushroom": "step_by_step"}),
        ("any", {"line": "step_by_step", "mushroom": "step_by_step"}),
        ("linear", {"line": "linear_compiled", "mushroom": "step_by_step"}),
        ("neural", {"line": "step_by_step", "mushroom": "neural_stacked"}),
        ("linear_heads", {"line": "step_by_step", "mushroom": "neural_compiled"}),
        # these are too few rounds for their kernels
        ("single_head", {"line": "step_by_step", "mushroom": "neural_stacked"}),
        ("epinet", {"line": "step_by_step", "mushroom": "neural_stacked"}),
    ],
)
@pytest.mark.parametrize("gpu", [False, True])
def test_the_family_of_an_agent_of_ones_own_decides_on_its_engine(plays_as, engines, gpu):
    """On a GPU, linear ones follow `linear_device`, which is the CPU here."""
    own = {"kind": "custom", "label": "Own", "class": UCB[0], "hyperparameters": UCB[1], "uses_gpu": gpu}
    own |= {"plays_as": plays_as} if plays_as else {}
    config = load(small(device="cuda", **{"agents/own": own}))
    for environment, engine in engines.items():
        spec = config.block(environment, "own", 0, 5, 0, 1).spec
        on_gpu = gpu and plays_as != "linear"
        assert spec["device"] == ("cuda" if on_gpu else "cpu")
        assert spec["engine"] == (engine.replace("compiled", "stacked") if on_gpu else engine)
    assert "plays_as" not in spec["agent"]["options"]
