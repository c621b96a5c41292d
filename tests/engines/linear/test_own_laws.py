"""Laws that the engines have no code for: every engine plays them as the agent does round by round."""

from __future__ import annotations

import numpy as np
import pytest

from ensemblepp.agents.linear.ensemblepp import LinearEnsemblePlusPlus
from ensemblepp.engines.choice import simulate
from ensemblepp.environments.linear_finite import LinearFinite
from ensemblepp.environments.linear_sphere import LinearSphere
from ensemblepp.randomness.distributions import Law, reference
from ensemblepp.trajectory import Trajectory

SEEDS = (2, 0)


def uniform(gaussian: np.ndarray) -> np.ndarray:
    """Zeta on the sphere, made in another way than the table's."""
    return gaussian / np.sqrt(np.mean(gaussian**2, axis=-1, keepdims=True))


def flat_where_equal(gaussian: np.ndarray) -> np.ndarray:
    """The sphere's again, and no number for a vector whose entries are equal, which no Gaussian vector is."""
    with np.errstate(invalid="ignore"):
        return uniform(gaussian) + 0.0 / np.ptp(gaussian, axis=-1, keepdims=True)


UNIFORM, PICKY = Law("uniform", uniform), Law("picky", flat_where_equal)


def play(engine: str, references: list, perturbations: list, *, sphere: bool = False, size: int = 12) -> Trajectory:
    if sphere:
        environment = LinearSphere(SEEDS, dimension=6, prior_variance=10.0, noise=1.0)
    else:
        environment = LinearFinite(SEEDS, dimension=6, actions=30, feature_bound=0.5, prior_variance=10.0, noise=1.0)
    laws = {"references": references, "perturbations": perturbations, "prior_variance": 10.0, "precision": "float64"}
    return simulate(environment, LinearEnsemblePlusPlus(SEEDS, dimension=6, ensemble_size=size, **laws), 60, engine=engine)


@pytest.mark.parametrize("sphere", [False, True])
@pytest.mark.parametrize("engine", ["linear_compiled", "linear_batched"])
def test_engines_agree_with_the_rounds_step_by_step(engine, sphere):
    laws = [["gaussian", "sparse-4", UNIFORM, "sparse"], ["sphere", "sparse-5", UNIFORM, "coordinate", "raw_gaussian"]]
    found, expected = (play(name, *laws, sphere=sphere) for name in (engine, "step_by_step"))
    assert found.regret == pytest.approx(expected.regret, rel=1e-4, abs=1e-4)
    if not sphere:
        assert np.array_equal(found.action, expected.action)


@pytest.mark.parametrize("engine", ["linear_compiled", "linear_batched", "step_by_step"])
def test_a_law_is_the_same_under_another_name(engine):
    found = play(engine, ["sphere", UNIFORM], ["sphere", UNIFORM])
    pairs = found.regret.reshape(len(SEEDS), 2, 2, -1)
    for reference_, perturbation in ((0, 1), (1, 0), (1, 1)):
        assert pairs[:, reference_, perturbation] == pytest.approx(pairs[:, 0, 0], rel=1e-5)


@pytest.mark.parametrize("rounds", [1, 7])
def test_the_rounds_per_call_change_nothing(monkeypatch, rounds):
    """The z of the last round of a call is used in the next call."""
    from ensemblepp.engines.linear import compiled

    whole = play("linear_compiled", ["gaussian", UNIFORM], [UNIFORM, "sparse-4"])
    monkeypatch.setattr(compiled, "ROUNDS", rounds)
    parts = play("linear_compiled", ["gaussian", UNIFORM], [UNIFORM, "sparse-4"])
    assert np.array_equal(whole.regret, parts.regret)


@pytest.mark.parametrize("engine", ["linear_compiled", "linear_batched"])
def test_no_vector_but_a_drawn_one_is_given_to_a_law(engine):
    assert np.isfinite(play(engine, [PICKY], [PICKY]).regret).all()


def test_a_pair_of_the_tables_laws_does_not_notice_others_beside_it():
    alone = play("linear_compiled", ["gaussian"], ["sparse"])
    beside = play("linear_compiled", ["gaussian", UNIFORM], ["sparse", "sparse-3"])
    assert np.array_equal(alone.regret[:, 0], beside.regret[:, 0])


def test_chains_have_the_names_of_their_laws():
    agent = LinearEnsemblePlusPlus(
        SEEDS, dimension=3, ensemble_size=4, references=[UNIFORM, "cube"], perturbations=["sparse-3"], prior_variance=1.0
    )
    assert agent.chains == (("uniform", "sparse-3"), ("cube", "sparse-3"))
    gaussian = np.random.default_rng(0).standard_normal((5, 4))
    assert np.array_equal(agent.reference("uniform", gaussian), uniform(gaussian))
    assert np.array_equal(agent.perturbation("sparse-3", gaussian), reference("sparse-3", gaussian) / 2)
