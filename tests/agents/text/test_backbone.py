"""Agents that train a language model: its features, its gradients, and what holds if it does not move."""

from __future__ import annotations

import itertools
import json
import shutil

import numpy as np
import pytest
import text_agents as small
import tiny_models
import tiny_posts
import torch
from killed import EveryFourth, Killed, assert_equal, killer

from ensemblepp.agents.text.backbone import passes_of
from ensemblepp.engines.choice import choose, simulate
from ensemblepp.errors import ConfigError, DataError, ResultError, TrainingError
from ensemblepp.storage.checkpoints import Checkpoint
from ensemblepp.testing import check_agent

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("text")


@pytest.fixture(scope="module", params=tiny_posts.POOLING)
def model(request, folder):
    return tiny_models.make(request.param, folder / request.param)


@pytest.fixture(scope="module")
def gpt2(folder):
    return tiny_models.make("gpt2", folder / "other" / "gpt2")


def plain(model):
    """The model as the library loads it."""
    from transformers import AutoModel

    return AutoModel.from_pretrained(model, dtype=torch.float32).eval()


def rows(environment, items) -> torch.Tensor:
    """Features (1, items, dimension) of items 2 x post + action."""
    return torch.from_numpy(environment.features(np.array([items])))


# ------------------------------------------------------------------------------------------------------------- features


def test_a_text_alone_and_in_a_mixed_batch(model, folder):
    """Padding, order and company change nothing, and the vector is that of the library's own hidden states."""
    environment = small.bandit(folder, seeds=(0,))
    agent = small.agent("greedy", model, environment)
    items = [2 * post for post in range(40)]
    with torch.no_grad():
        together = agent.trunk(rows(environment, items))[0]
        alone = torch.cat([agent.trunk(rows(environment, [item]))[0] for item in items])
        turned = agent.trunk(rows(environment, items[::-1]))[0].flip(0)
        expected = [small.hidden_state(plain(model), post, tiny_posts.POOLING[model.name]) for post in environment.table[0]]
    for found in (together, alone, turned):
        np.testing.assert_allclose(found[:, : tiny_posts.HIDDEN], torch.stack(expected), rtol=0, atol=2e-5)
        assert not found[:, tiny_posts.HIDDEN :].any(), "block 0 is of action 0"
    assert torch.stack(expected).std(dim=0).min() > 1e-3, "posts differ"


def test_an_action_has_its_own_block(gpt2, folder):
    environment = small.bandit(folder, seeds=(0,))
    with torch.no_grad():
        block, publish = small.agent("greedy", gpt2, environment).trunk(rows(environment, [6, 7]))[0]
    np.testing.assert_array_equal(block[: tiny_posts.HIDDEN], publish[tiny_posts.HIDDEN :])
    assert not block[tiny_posts.HIDDEN :].any()
    assert not publish[: tiny_posts.HIDDEN].any()
    assert block[: tiny_posts.HIDDEN].any()


def test_a_round_reads_its_post_once_and_a_minibatch_each_text_once(gpt2, folder):
    """Both actions are of one post; a minibatch that holds a post three times reads it once."""
    environment = small.bandit(folder, seeds=(0,))
    agent = small.agent("greedy", gpt2, environment)
    read = []
    agent._models[0].register_forward_hook(
        lambda module, arguments, keywords, output: read.append(keywords["input_ids"]), with_kwargs=True
    )
    agent.load(1)
    agent.choose(rows(environment, [10, 11]))
    assert [tuple(ids.shape) for ids in read] == [(1, int(environment.table[0, 5, 0]))]
    read.clear()
    agent.trunk(rows(environment, [10, 11, 10, 4, 4]))
    assert sum(len(ids) for ids in read) == 2


def test_what_is_stored_of_a_round_reads_its_post_only_after_a_step(gpt2, folder):
    """Spread and error are of the offers that the agent acted on: its hidden states, until the weights are others."""
    environment = small.bandit(folder, seeds=(0,))
    agent = small.agent("ensemble++", gpt2, environment)
    read = []
    agent._models[0].register_forward_hook(lambda *_: read.append(agent.round))
    means = np.zeros((1, 2))
    for trains in (False, False, False, False, False, True):  # the first step is after the sixth round
        decisions = environment.decisions()
        choice = agent.act(decisions)
        assert len(read) == 1
        agent.update(choice, environment.step(choice).reward)
        read.clear()
        agent.diagnostics()
        agent.prediction_error(means)
        assert len(read) == trains
        post = decisions.features[0, 0].reshape(2, -1)[0]
        with torch.no_grad():
            found = agent.trunk(agent._offered)[0, 0, : tiny_posts.HIDDEN]
            expected = small.hidden_state(agent._models[0], post, agent.pooling)
        np.testing.assert_allclose(found, expected, rtol=0, atol=2e-5)
        read.clear()


@pytest.mark.parametrize("cost", [0, 1, 5, 1000])
def test_passes_are_the_cheapest_cut(cost):
    """Against every way to cut eight texts."""
    lengths = [1, 2, 2, 3, 7, 8, 8, 30]

    def price(cuts) -> int:
        return sum((end - first) * lengths[end - 1] + cost for first, end in itertools.pairwise([0, *cuts, 8]))

    ways = [cuts for count in range(8) for cuts in itertools.combinations(range(1, 8), count)]
    found = passes_of(lengths, cost)
    assert [place for part in found for place in range(8)[part]] == list(range(8))
    assert price([part.stop for part in found[:-1]]) == min(map(price, ways))
    assert passes_of([], cost) == []


def test_no_unit_is_dropped(gpt2, folder):
    """The model's configuration has dropout, as the real ones have; with gradient checkpointing the library trains."""
    environment = small.bandit(folder, seeds=(0,))
    for checkpointing in (False, True):
        agent = small.agent("greedy", gpt2, environment, gradient_checkpointing=checkpointing)
        first, second = (agent.trunk(rows(environment, [0, 8])) for _ in range(2))
        assert first.requires_grad
        np.testing.assert_array_equal(first.detach(), second.detach())
    config = json.loads((gpt2 / "config.json").read_text())
    assert config["resid_pdrop"] > 0


# ------------------------------------------------------------------------------------------------------------- gradients


def literal_loss(name: str, agent, model: torch.nn.Module, own: dict[str, torch.Tensor], batch) -> torch.Tensor:
    """The unreduced loss of one seed, text by text and direction by direction."""
    scale, members = small.SCALES["posterior_scale"], small.MEMBERS
    losses = []
    for post, action, reward, z in batch:
        h = torch.zeros(2 * tiny_posts.HIDDEN)
        state = small.hidden_state(model, post, agent.pooling)
        h = torch.cat([state, torch.zeros_like(state)] if action == 0 else [torch.zeros_like(state), state])
        if name == "greedy":
            losses.append((reward - h @ own["base"][:, 0]).square())
        elif name == "ensemble++":
            for sign, m in itertools.product((1, -1), range(members)):
                zeta = sign * members**0.5 * torch.eye(members)[m]
                theta = (scale * own["heads"] + agent.prior[0]) @ zeta
                value = h @ own["base"][:, 0] + h.detach() @ theta
                losses.append((reward + zeta @ z - value).square() / (2 * members))
        else:
            for m in range(members):
                trained = scale * (h @ own["heads"][:, m] + own["bias"][0, m])
                value = trained + h.detach() @ agent._prior_heads[0][:, m]
                losses.append((reward + z[m] - value).square() / members)
    return torch.stack(losses).sum() / len(batch)


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("name", small.AGENTS)
def test_gradients_are_those_of_the_unreduced_loss(name, checkpointing, model, folder):
    """Of all 2M symmetrised terms, of every weight of the model and the heads; a text is in the batch twice."""
    environment = small.bandit(folder, seeds=(0,))
    agent = small.agent(name, model, environment, gradient_checkpointing=checkpointing)
    items = [0, 7, 7, 22, 41, 63]
    source = torch.Generator().manual_seed(0)
    reward, z = torch.randn(1, 6, generator=source), torch.randn(1, 6, agent.extra_width, generator=source)
    agent.flat.grad.zero_()
    loss = agent.loss_of(rows(environment, items), reward, z, 0)
    loss.sum().backward()

    other = plain(model)
    heads = {key: value for key, value in agent.parameters.items() if not key.startswith("backbone.")}
    own = {key: value.detach()[0].clone().requires_grad_() for key, value in heads.items()}
    batch = [(environment.table[0, item // 2], item % 2, reward[0, row], z[0, row]) for row, item in enumerate(items)]
    expected = literal_loss(name, agent, other, own, batch)
    expected.backward()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)
    weights = {f"backbone.{key}": value for key, value in other.named_parameters() if not key.startswith("pooler.")}
    assert agent.parameters.keys() == (own | weights).keys()
    for key, value in (own | weights).items():
        largest = max(float(value.grad.abs().max()), 1e-3)
        np.testing.assert_allclose(agent.parameters[key].grad[0], value.grad, rtol=0, atol=2e-5 * largest, err_msg=key)
    words = next(value for value in weights.values() if len(value) == tiny_posts.VOCABULARY)
    assert words.grad.abs().max() > 1e-3


def test_the_ensembles_heads_do_not_train_the_backbone(gpt2, folder):
    """Without the base head's error nothing is left for it: rewards are what the base head says."""
    environment = small.bandit(folder, seeds=(0,))
    agent = small.agent("ensemble++", gpt2, environment)
    features = rows(environment, [0, 7, 22])
    with torch.no_grad():
        reward = (agent.trunk(features) @ agent.parameters["base"])[..., 0]
    agent.flat.grad.zero_()
    agent.loss_of(features, reward, torch.ones(1, 3, small.MEMBERS), 0).sum().backward()
    heads = agent.parameters["heads"].grad.abs().max()
    rest = max(value.grad.abs().max() for key, value in agent.parameters.items() if key != "heads")
    assert heads > 1e-2
    assert rest < 1e-5 * heads


# -------------------------------------------------------------------------------------------------------------- a frozen one


@pytest.mark.parametrize("name", small.AGENTS)
def test_a_backbone_that_does_not_move_is_the_agent_on_embeddings(name, model, folder):
    """Over 60 rounds with training: the same choices, heads and losses."""
    text = small.bandit(folder)
    environment, _ = small.embedded(folder, model)
    tuned = small.agent(name, model, text, 60, backbone_learning_rate=0)
    options = small.TRAINING | small.AGENTS[name][2]
    frozen = small.AGENTS[name][1]((0, 1), dimension=environment.dimension, horizon=60, device="cpu", hidden=[], **options)
    left, right = simulate(text, tuned, 60), simulate(environment, frozen, 60, engine="neural_stacked")
    np.testing.assert_array_equal(left.action, right.action)
    np.testing.assert_array_equal(left.regret, right.regret)
    for key, values in left.diagnostics.items():
        np.testing.assert_allclose(values, right.diagnostics[key], rtol=1e-4, atol=1e-6, err_msg=key)
    for key, values in frozen.parameters.items():
        np.testing.assert_allclose(tuned.parameters[key].detach(), values.detach(), rtol=0, atol=1e-5, err_msg=key)
    assert len(np.unique(left.action)) == 2
    start = plain(model).state_dict()
    for key, value in tuned._models[1].named_parameters():
        np.testing.assert_array_equal(value.detach(), start[key])


@pytest.mark.parametrize("name", small.AGENTS)
def test_one_that_moves_learns_more_than_one_that_does_not(name, gpt2, folder):
    """A post is hateful if it begins with token 7: the last token's state says little of it until it is trained to."""
    late = {}
    for rate in (0, 3e-3):
        environment = small.bandit(folder, seeds=(0,), passes=6)
        agent = small.agent(name, gpt2, environment, 240, backbone_learning_rate=rate, learning_rate=3e-3, warm_up=8)
        optimal = simulate(environment, agent, 240).optimal[0, 0]
        late[rate] = optimal[-1] - optimal[len(optimal) // 2]
    assert late[3e-3] > late[0]


# ---------------------------------------------------------------------------------------------------------------- rounds


def test_the_engine(gpt2, folder):
    """The stacked rounds, on every device: they call the agent's own code."""
    environment = small.bandit(folder)
    agents = [small.agent(name, gpt2, environment) for name in small.AGENTS]
    assert {choose(agent, environment) for agent in agents} == {"neural_stacked"}
    # heads by action, and the parameters of the tiny GPT-2
    total = sum(value.numel() for value in plain(gpt2).parameters())
    assert [agent.parameter_counts()[1] - total for agent in agents] == [64, 64 + 64 * 3, 64 * 3 + 3]
    assert [agent.frozen_parameters() for agent in agents] == [0, 64 * 3, 64 * 3 + 3]


@pytest.mark.parametrize("name", small.AGENTS)
def test_agents_keep_their_promises(name, gpt2, folder):
    """The conformance kit: alone as in company, saved and restored, no one else's random numbers."""

    def built(seeds, *, dimension, ensemble_size, horizon, device):
        return small.agent(name, gpt2, small.bandit(folder, seeds), horizon)

    check_agent(built, lambda seeds: small.bandit(folder, seeds), ensemble_size=small.MEMBERS, rounds=16)


@pytest.mark.parametrize("engine", [None, "step_by_step"])
def test_killed_and_resumed_is_uninterrupted(engine, model, folder, tmp_path):
    """To the last bit, of everything that a run leaves and of the weights."""

    def start():
        environment = small.bandit(folder)
        return environment, small.agent("ensemble++", model, environment)

    checkpoint = EveryFourth(tmp_path / "run.checkpoint", "key")
    whole = simulate(*start(), 40, engine=engine)
    with pytest.raises(Killed):
        simulate(*start(), 40, killer(2 * 24), checkpoint, engine=engine)
    reported = []
    resumed = simulate(*start(), 40, reported.append, checkpoint, engine=engine)
    assert 2 * 16 <= reported[0] < 2 * 40
    assert_equal(whole, resumed)
    assert len(np.unique(whole.diagnostics["loss"][0, 0])) > 5


def test_a_checkpoint_holds_weights_and_moments_and_no_model(gpt2, folder, tmp_path):
    """Three numbers for each trained one, and little else."""
    environment = small.bandit(folder, seeds=(0,))
    agent = small.agent("greedy", gpt2, environment)
    checkpoint = Checkpoint(tmp_path / "run.checkpoint", "key", every=0)
    with pytest.raises(Killed):
        simulate(environment, agent, 40, killer(20), checkpoint)
    numbers = agent.flat.numel()
    size = (tmp_path / "run.checkpoint").stat().st_size
    assert 3 * 4 * numbers < size < 3 * 4 * numbers + 80_000


def test_training_that_leaves_the_numbers_names_seed_step_and_agent(gpt2, folder):
    environment = small.bandit(folder, seeds=(3, 8))
    agent = small.agent("ensemble++", gpt2, environment, learning_rate=1e30)
    with pytest.raises(TrainingError, match=r"^TextEnsemblePlusPlus: the loss of seed 3, 8 is not finite at step \d+; a"):
        simulate(environment, agent, 40)


def test_a_horizon_beyond_the_posts(gpt2, folder):
    environment = small.bandit(folder, passes=1)
    with pytest.raises(ConfigError, match=r"round 41 is beyond the data: 40 rows x 1 pass\(es\)"):
        simulate(environment, small.agent("greedy", gpt2, environment, 41), 41)


def test_half_precision_is_near_the_whole(model, folder):
    """Hidden states in bfloat16, weights and heads in float32: 8 bits of a number, of states of size one."""
    environment = small.bandit(folder, seeds=(0,))
    whole, half = (small.agent("greedy", model, environment, precision=name) for name in ("float32", "bfloat16"))
    assert (half.flat.dtype, {value.dtype for value in half._models[0].parameters()}) == (torch.float32, {torch.float32})
    items = [2 * post for post in range(40)]
    with torch.no_grad():
        exact, near = (agent.trunk(rows(environment, items)) for agent in (whole, half))
    error = (exact - near).abs().max() / exact.abs().max()
    assert 1e-5 < error < 0.03
    half.loss_of(rows(environment, items), torch.ones(1, 40), torch.empty(1, 40, 0), 0).sum().backward()
    assert torch.isfinite(half.flat.grad).all()
    assert half.flat.grad.abs().max() > 0


# ----------------------------------------------------------------------------------------------------------------- faults


def test_a_folder_that_was_touched_is_refused(gpt2, folder, tmp_path):
    environment = small.bandit(folder)
    shutil.copytree(gpt2, tmp_path / "gpt2")
    weights = tmp_path / "gpt2/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ResultError, match=r"model\.safetensors: damaged"):
        small.agent("greedy", tmp_path / "gpt2", environment)


def test_a_folder_without_a_model_is_refused(gpt2, folder, tmp_path):
    from ensemblepp.storage.datasets import read_json, write_json
    from ensemblepp.text.language_models import CHECKSUMS

    environment = small.bandit(folder)
    shutil.copytree(gpt2, tmp_path / "gpt2")
    (tmp_path / "gpt2/model.safetensors").unlink()
    known = read_json(tmp_path / "gpt2" / CHECKSUMS)
    write_json({name: digest for name, digest in known.items() if name != "model.safetensors"}, tmp_path / "gpt2" / CHECKSUMS)
    with pytest.raises(DataError, match=r"gpt2: no model can be read \(.*\); delete the folder, and see language_models"):
        small.agent("greedy", tmp_path / "gpt2", environment)
