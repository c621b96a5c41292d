"""Ensemble+: its frozen prior, its noise and its size; all else of its members is in test_member_heads.py."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from member_agents import LOSSES, bootstrap, minibatch, plus

from ensemblepp.bandit import Decisions
from ensemblepp.randomness.streams import GaussianRows

torch.set_num_threads(1)


#: Standard errors that a Monte Carlo mean may be off; 5 are exceeded by chance once in 1.7 million comparisons.
Z = 5.0


def test_forward_by_hand():
    """2 inputs, 2 hidden units, 2 members of one class, posterior scale 2, prior scale 3, member by member.

    W = [[1, -1], [2, 0.5]], c = (0, -1): h(1, 1) = (3, 0), h(-2, 4) = (6, 3). Heads (1, 2) and (0, -1), biases 0.5 and 0:
    trained 2 * (3 + 0.5) = 7 and 0; 2 * (6 + 6 + 0.5) = 25 and -6.
    The prior's trunk is the identity without bias: h0 = (1, 1), (0, 4). Its heads (1, 0), (1, 1): 3 * 1, 3 * 2; 0, 12.
    """
    agent = plus((4,), 2, 2, (2,), posterior_scale=2.0)
    with torch.no_grad():
        agent.parameters["w0"][0] = torch.tensor([[1.0, -1.0], [2.0, 0.5]])
        agent.parameters["b0"][0, 0] = torch.tensor([0.0, -1.0])
        agent.parameters["heads"][0] = torch.tensor([[1.0, 0.0], [2.0, -1.0]])
        agent.parameters["bias"][0, 0] = torch.tensor([0.5, 0.0])
    agent._prior_layers = [(torch.eye(2)[None], torch.zeros(1, 1, 2))]
    agent._prior_heads = 3 * torch.tensor([[[1.0, 1.0], [0.0, 1.0]]])
    features = torch.tensor([[[1.0, 1.0], [-2.0, 4.0]]])
    expected = np.array([[10.0, 6.0], [25.0, 6.0]])
    met = set()
    agent.load(20)
    with torch.no_grad():
        assert agent.outputs(features).tolist() == [[[7, 0], [25, -6]]]
        assert agent.offsets(features).tolist() == [[[3, 6], [0, 12]]]
        # spread over members: half of their distance; the mean of both is what would be chosen without exploring
        assert agent.spread(features).tolist() == [[2, 9.5]]
        for _ in range(20):
            member = int(agent.now("reference").argmax())
            value, mean = agent.score(features)
            assert value.tolist() == [expected[:, member].tolist()]
            assert mean.tolist() == [[8, 15.5]]
            met.add(member)
            agent.end_round()
    assert met == {0, 1}


@pytest.mark.parametrize("loss", LOSSES)
def test_priors_are_frozen(loss):
    """40 rounds of training move trunk, heads and biases, and no output of the prior, however the trunk's features change."""
    agent = plus(loss=loss)
    features = minibatch(agent)[0]
    before, start = agent.offsets(features).clone(), agent.flat.clone()
    rng = np.random.default_rng(0)
    for _ in range(40):
        choice = agent.act(Decisions(rng.standard_normal((2, 5, 6)).astype(np.float32)))
        agent.update(choice, (choice.features.sum(axis=2) > 0).astype(float))
    assert torch.equal(agent.offsets(features), before)
    assert (agent.flat - start).abs().max() > 0.1
    assert not before.requires_grad
    assert before.std() > 0.05


def test_trained_part_starts_apart_from_the_prior():
    """Streams of their own: the frozen trunk is not the trained one; members differ; biases start at 0."""
    agent = plus()
    weight, _ = agent._prior_layers[0]
    assert not torch.isclose(weight, agent.parameters["w0"]).any()
    assert not torch.isclose(agent._prior_heads, agent.parameters["heads"]).any()
    assert not agent.parameters["bias"].any()
    heads = agent.parameters["heads"].detach()
    assert not torch.isclose(heads[..., :1], heads[..., 1:]).any()


@pytest.mark.parametrize("size", [2, 8])
@pytest.mark.parametrize("equal", [True, False])
def test_perturbations_have_the_standard_deviation_that_is_asked_for(equal, size):
    """Of one member: 0.5 with equal noise, the length of all of them being 0.5 sqrt(M); 0.5 / sqrt(M) and normal without.

    2 seeds x 20,000 rounds; with equal noise the vector is that of Ensemble++ times sqrt(M).
    """
    agent = plus(ensemble_size=size, equal_noise=equal)
    drawn = agent.sources["perturbation"](20_000).astype(float)
    assert drawn.shape == (2, 20_000, size)
    expected = 0.5 if equal else 0.5 / math.sqrt(size)
    error = np.sqrt(np.square(drawn).var(axis=1)) / math.sqrt(20_000)
    assert (np.abs(np.square(drawn).mean(axis=1) - expected**2) < Z * error).all()
    gaussian = np.stack([GaussianRows(seed, "perturbation", size).take(20_000) for seed in (0, 1)])
    if equal:
        np.testing.assert_allclose(np.linalg.norm(drawn, axis=2), 0.5 * math.sqrt(size), rtol=1e-6)
        unit = gaussian / np.linalg.norm(gaussian, axis=2, keepdims=True)
        np.testing.assert_allclose(drawn, 0.5 * math.sqrt(size) * unit, rtol=1e-5, atol=1e-7)
    else:
        np.testing.assert_allclose(drawn, 0.5 * gaussian / math.sqrt(size), rtol=1e-5, atol=1e-7)


#: (d, classes, M): total and trained parameters of Ensemble+, 2 H + 2 M (D + 1) C in paper and released code.
COUNTS = {
    (100, 1, 2): (21_508, 10_754),
    (100, 1, 4): (21_768, 10_884),
    (100, 1, 8): (22_288, 11_144),
    (100, 1, 16): (23_328, 11_664),
    (100, 1, 32): (25_408, 12_704),
    (100, 1, 64): (29_568, 14_784),
    (100, 2, 8): (23_328, 11_664),
    (100, 2, 32): (29_568, 14_784),
    (63, 1, 8): (17_552, 8_776),
    (44, 1, 8): (15_120, 7_560),
}


@pytest.mark.parametrize(("dimension", "classes", "size"), COUNTS)
def test_parameter_counts_are_those_of_the_paper(dimension, classes, size):
    """Trunk 2 x 64: half of all parameters are the frozen prior, biases of its heads included; bootstrap has no such half."""
    loss = LOSSES[classes - 1]
    agent = plus((0,), dimension, size, (64, 64), loss=loss)
    assert agent.parameter_counts() == COUNTS[dimension, classes, size]
    trained = COUNTS[dimension, classes, size][1]
    assert trained == (dimension + 1) * 64 + 65 * 64 + size * 65 * classes
    assert sum(parameter[0].numel() for parameter in agent.parameters.values()) == trained
    assert bootstrap((0,), dimension, size, (64, 64), loss=loss).parameter_counts() == (trained, trained)
