"""Who draws from which stream: every environment and agent opens exactly its own, each once a seed, whichever engine plays."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
import torch
from every_kind import ROUNDS, agent_entry, built, environment_entry, family_of

from ensemblepp import registry
from ensemblepp.engines.choice import choose, simulate
from ensemblepp.randomness import streams

torch.set_num_threads(1)

#: What an environment draws from.
ENVIRONMENTS = {
    "linear_finite": {"environment", "reward_noise"},
    "linear_sphere": {"environment", "reward_noise"},
    "quadratic": {"environment", "environment/offers", "reward_noise"},
    "vector_quadratic": {"environment", "environment/offers", "reward_noise"},
    "neural": {"environment", "environment/offers", "reward_noise"},
    "classification": {"environment", "reward_noise"},
    "moderation": {"environment", "reward_noise"},
    "moderation_tokens": {"environment", "reward_noise"},
}

NETWORK = {"agent", "minibatch"}

#: What an agent draws from.
AGENTS = {
    "linear_ts": {"reference"},
    "linear_ensemblepp": {"agent", "reference", "perturbation"},
    "ensemble_sampling": {"agent", "reference", "perturbation"},
    "rrls": {"agent", "reference", "perturbation"},
    "linear_greedy": set(),
    "linear_ucb": set(),
    "greedy": NETWORK,
    "epsilon_greedy": NETWORK | {"reference/wander"},
    "neural_ensemblepp": NETWORK | {"agent/prior", "reference", "perturbation"},
    "ensembleplus": NETWORK | {"agent/prior", "reference/member", "perturbation"},
    "bootstrap": NETWORK | {"reference/member", "perturbation/coins"},
    "epinet": NETWORK | {"agent/prior", "agent/probes", "reference", "perturbation", "minibatch/indices"},
    "lmcts": NETWORK | {"agent/langevin"},
    "neural_ucb": NETWORK,
    "neural_ts": NETWORK | {"reference/actions"},
    "neural_linear": NETWORK | {"reference"},
    "dropout": NETWORK | {"agent/probes", "reference/units", "minibatch/units"},
    "text_greedy": NETWORK,
    "text_ensemblepp": NETWORK | {"agent/prior", "reference", "perturbation"},
    "text_ensembleplus": NETWORK | {"agent/prior", "reference/member", "perturbation"},
}

#: Update laws that are not enumerated draw their directions.
SAMPLED = {"update": "gaussian"}


@pytest.fixture
def opened(monkeypatch) -> Counter:
    """How often every (seed, stream) was opened."""
    found: Counter = Counter()
    original = streams._open

    def recorded(seed: int, stream: str) -> np.random.Generator:
        found[seed, stream] += 1
        return original(seed, stream)

    monkeypatch.setattr(streams, "_open", recorded)
    return found


def streams_of(opened: Counter) -> set[str]:
    """The named streams; the tails of wide Gaussian vectors ("reference/16") belong to theirs."""
    return {name for _, name in opened if name in streams.STREAMS}


@pytest.mark.parametrize("whole", [True, False], ids=["whole", "round by round"])
@pytest.mark.parametrize("kind", registry.ENVIRONMENTS)
def test_an_environment_opens_its_streams_once(kind, whole, opened, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    players = {"linear_finite": "linear_greedy", "linear_sphere": "linear_greedy", "moderation_tokens": "text_greedy"}
    entry = agent_entry(players.get(kind, "lmcts"))
    environment, agent, _ = built(environment_entry(kind, tmp_path), entry)
    before = set(opened)
    simulate(environment, agent, ROUNDS, engine=None if whole else "step_by_step")
    assert before
    assert streams_of(opened) - AGENTS[entry["kind"]] - {"agent", "reference", "perturbation"} == ENVIRONMENTS[kind]
    assert max(opened.values()) == 1, opened
    assert {seed for seed, _ in opened} == {0, 1}


@pytest.mark.parametrize("engine", ["own", "step_by_step", "neural_stacked", "linear_batched"])
@pytest.mark.parametrize("changes", [{}, SAMPLED], ids=["plain", "sampled directions"])
@pytest.mark.parametrize("kind", registry.AGENTS)
def test_an_agent_opens_its_streams_once(kind, changes, engine, opened, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    neural = family_of(kind) != "linear"
    if changes and kind not in ("neural_ensemblepp", "text_ensemblepp"):
        pytest.skip("has no update law")
    places = {"linear": "linear_finite", "neural": "quadratic", "text": "moderation_tokens"}
    place = environment_entry(places[family_of(kind)], tmp_path)
    environment, agent, own = built(place, agent_entry(kind, **changes))
    if (
        engine in ("neural_stacked", "linear_batched")
        and choose(agent, environment, ROUNDS).split("_")[0] != engine.split("_")[0]
    ):
        pytest.skip("another family")
    opened_first = Counter(opened)
    simulate(environment, agent, ROUNDS, engine=own if engine == "own" else engine)
    assert opened_first
    expected = AGENTS[kind] | ({"minibatch/directions"} if changes else set())
    found = streams_of(opened) - ENVIRONMENTS[place["kind"]]
    # the linear engines open the Gaussian streams whether or not a law needs them
    allowed = expected if neural or engine == "step_by_step" else expected | {"agent", "reference", "perturbation"}
    assert expected <= found <= allowed
    assert max(opened.values()) == 1, opened


def test_every_stream_of_the_table_is_used():
    used = set.union(*ENVIRONMENTS.values(), *AGENTS.values()) | {"minibatch/directions"}
    assert used == set(streams.STREAMS)


@pytest.mark.parametrize("name", ["", "agents", "environment/offer", "reward-noise", "reference/16", "own"])
def test_an_unknown_name_is_an_error(name):
    with pytest.raises(ValueError, match=r"^unknown stream '.*': one of environment, .* begins with 'own/'$"):
        streams.generator(0, name)


def test_names_of_ones_own():
    first, second = (streams.generator(0, f"own/{name}").random() for name in ("first", "second"))
    assert first != second
    assert streams.GaussianRows(0, "own/first", 20).take(3).shape == (3, 20)
