"""The batched rounds of the linear agents, on a CPU: the same runs as the compiled ones (tests/gpu has them on a GPU)."""

import numpy as np
import pytest
import torch
from linear_bandits import bandit, ensemble

from ensemblepp.agents.linear.ensemble_sampling import EnsembleSampling
from ensemblepp.agents.linear.greedy import LinearGreedy
from ensemblepp.agents.linear.rrls import RecursiveRandomizedLeastSquares
from ensemblepp.agents.linear.thompson_sampling import LinearThompsonSampling
from ensemblepp.engines.linear import batched, compiled
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

ENVIRONMENTS = {
    "finite": {"actions": 37},
    "pruned": {"actions": 1200},
    "fresh": {"actions": 25, "varying": True},
    "sphere": {"actions": 0},
}


def both(agent, environment: dict, rounds: int, **options):
    """The same rounds compiled and in the batch, and the progress that the batch reports."""
    time = np.arange(1, rounds + 1)
    one_by_one = compiled.play(agent(**options), bandit(SEEDS, 6, **environment), rounds, time, lambda done: None)
    reported = []
    together = batched.play(agent(**options), bandit(SEEDS, 6, **environment), rounds, time, reported.append)
    return one_by_one, together, reported


@pytest.mark.parametrize("inflation", [None, 0.05])
@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS.keys())
@pytest.mark.parametrize("agent", AGENTS.keys())
def test_the_batch_repeats_the_compiled_rounds(agent, environment, inflation):
    """The same actions, regret within 1e-6; RRLS on the sphere is left to rounding (M = 1 < d)."""
    if agent == "rrls" and not environment["actions"]:
        pytest.skip("M < d on the sphere")
    one_by_one, together, reported = both(AGENTS[agent], environment, 80, inflation_delta=inflation)
    assert np.array_equal(one_by_one.action, together.action)
    np.testing.assert_allclose(together.regret, one_by_one.regret, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(together.reward, one_by_one.reward, rtol=1e-6, atol=1e-5)
    assert sum(reported) == 80 * len(SEEDS)


def test_exact_subspace_in_the_batch():
    def agent(**options):
        return ensemble(SEEDS, 6, 3, exact_subspace=True, **options)

    one_by_one, together, _ = both(agent, {"actions": 0}, 150)
    np.testing.assert_allclose(together.regret, one_by_one.regret, rtol=1e-6)


@pytest.mark.parametrize("environment", ENVIRONMENTS.values(), ids=ENVIRONMENTS.keys())
def test_how_many_rounds_are_drawn_at_once_changes_nothing(monkeypatch, environment):
    _, before, _ = both(AGENTS["ensemble++"], environment, 60)
    monkeypatch.setattr(batched, "CHUNK_BYTES", 1)
    _, after, _ = both(AGENTS["ensemble++"], environment, 60)
    for name in ("action", "regret", "reward", "optimal"):
        assert np.array_equal(getattr(before, name), getattr(after, name))


@pytest.mark.parametrize("actions", [0, 20])
def test_what_is_no_number_is_an_error(actions, monkeypatch):
    # a reward that is none is refused as it is drawn; whatever else may spoil a parameter, its run is
    monkeypatch.setattr(batched.contract, "instances", lambda environment: environment.instances())
    agent = ensemble((7, 8), 6, 9)
    with pytest.raises(TrainingError, match=r"^LinearEnsemblePlusPlus \(gaussian x sphere\), seed 7, step 2 or before: theta"):
        batched.play(agent, bandit((7, 8), 6, actions, noise=np.nan), 5, np.arange(1, 6), lambda done: None)
