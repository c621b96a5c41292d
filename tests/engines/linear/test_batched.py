"""The batched path of the linear agents, on a CPU: the same games as the compiled kernel (tests/gpu has it on a GPU)."""

import numpy as np
import pytest
import torch
from linear_games import bandit, ensemble

from ensemblepp.agents.linear.ensemble_sampling import EnsembleSampling
from ensemblepp.agents.linear.greedy import LinearGreedy
from ensemblepp.agents.linear.rrls import RecursiveRandomizedLeastSquares
from ensemblepp.agents.linear.thompson_sampling import LinearThompsonSampling
from ensemblepp.engines.linear import batched as linear_torch
from ensemblepp.errors import TrainingError

torch.set_num_threads(1)

OPTIONS = {"dimension": 6, "prior_variance": 10.0, "precision": "float64"}

SEEDS = (0, 3, 4)
AGENTS = {
    "ensemble++": lambda **options: ensemble(SEEDS, 6, 9, **options),
    "ts": lambda **options: LinearThompsonSampling(SEEDS, **OPTIONS, **options),
    "ensemble sampling": lambda **options: EnsembleSampling(SEEDS, ensemble_size=9, **OPTIONS, **options),
    "rrls": lambda **options: RecursiveRandomizedLeastSquares(SEEDS, **OPTIONS, **options),
    "greedy": lambda **options: LinearGreedy(SEEDS, **OPTIONS, **options),
}

WORLDS = {
    "finite": {"actions": 37},
    "pruned": {"actions": 1200},
    "fresh": {"actions": 25, "varying": True},
    "sphere": {"actions": 0},
}


def both(agent, world: dict, rounds: int, **options):
    """The same games in the kernel and in the batch; the rounds that the batch has told."""
    time = np.arange(1, rounds + 1)
    compiled = agent(**options).play(bandit(SEEDS, 6, **world), rounds, time, lambda done: None)
    told = []
    batched = linear_torch.play(agent(**options), bandit(SEEDS, 6, **world).instances(), rounds, time, told.append)
    return compiled, batched, told


@pytest.mark.parametrize("inflation", [None, 0.05])
@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS.keys())
@pytest.mark.parametrize("agent", AGENTS.keys())
def test_the_batch_repeats_the_kernel(agent, world, inflation):
    """The same actions, regret within 1e-6; RRLS on the sphere is left to rounding (M = 1 < d)."""
    if agent == "rrls" and not world["actions"]:
        pytest.skip("M < d on the sphere")
    compiled, batched, told = both(AGENTS[agent], world, 80, inflation_delta=inflation)
    assert np.array_equal(compiled.action, batched.action)
    np.testing.assert_allclose(batched.regret, compiled.regret, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(batched.reward, compiled.reward, rtol=1e-6, atol=1e-5)
    assert sum(told) == 80 * len(SEEDS)


def test_exact_subspace_in_the_batch():
    def agent(**options):
        return ensemble(SEEDS, 6, 3, exact_subspace=True, **options)

    compiled, batched, _ = both(agent, {"actions": 0}, 150)
    np.testing.assert_allclose(batched.regret, compiled.regret, rtol=1e-6)


@pytest.mark.parametrize("world", WORLDS.values(), ids=WORLDS.keys())
def test_what_is_drawn_ahead_changes_nothing(monkeypatch, world):
    _, before, _ = both(AGENTS["ensemble++"], world, 60)
    monkeypatch.setattr(linear_torch, "CHUNK_BYTES", 1)
    _, after, _ = both(AGENTS["ensemble++"], world, 60)
    for name in ("action", "regret", "reward", "optimal"):
        assert np.array_equal(getattr(before, name), getattr(after, name))


@pytest.mark.parametrize("actions", [0, 20])
def test_what_is_no_number_is_an_error(actions):
    agent = ensemble((7, 8), 6, 9)
    with pytest.raises(TrainingError, match=r"^LinearEnsemblePlusPlus \(gaussian x sphere\), seed 7, step 2 or before: theta"):
        linear_torch.play(agent, bandit((7, 8), 6, actions, noise=np.nan).instances(), 5, np.arange(1, 6), lambda done: None)
