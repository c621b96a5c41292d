"""A classification table as a bandit (paper, Appendix "Additional Experiments on Nonlinear Bandit"), on files of a few rows."""

import numpy as np
import pytest
import xarray as xr

from ensemblepp.environments.classification import Classification, onehot
from ensemblepp.storage.datasets import write_dataset

CODES = np.array([[0, 2], [1, 0], [1, 1]], dtype=np.int8)
LABELS = np.array([1, 0, 2], dtype=np.int8)


@pytest.fixture
def nominal(tmp_path):
    """Two attributes with 2 and 3 letters, three rows, three classes."""
    path = tmp_path / "nominal.nc"
    cardinality = np.array([2, 3], dtype=np.int8)
    variables = {"code": (("row", "attribute"), CODES), "label": ("row", LABELS), "cardinality": ("attribute", cardinality)}
    write_dataset(xr.Dataset(variables), path)
    return path


@pytest.fixture
def numeric(tmp_path):
    path = tmp_path / "numeric.nc"
    values = np.array([[3, 4], [-6, 8], [0, 2]], dtype=np.int32)
    write_dataset(xr.Dataset({"value": (("row", "attribute"), values), "label": ("row", LABELS)}), path)
    return path


def shown(environment: Classification, rounds: int) -> dict[tuple[float, ...], list[float]]:
    """Context -> noise-free rewards of the three actions, over the rounds of the first seed."""
    found = {}
    for _ in range(rounds):
        decisions = environment.decisions()
        width = environment.dimension // 3
        context = tuple(np.round(decisions.features[0, 0, :width].astype(float), 6).tolist())
        found[context] = environment.mean_rewards()[0].tolist()
        environment.step(decisions.choose(np.zeros((len(environment.seeds), 1), dtype=int)))
    return found


def rounded(*values: float) -> tuple[float, ...]:
    return tuple(np.round(np.array(values), 6).tolist())


def test_onehot_coding_by_hand(nominal):
    """Codes (0, 2), (1, 0), (1, 1) are 10 001, 01 100, 01 010; each row has norm sqrt(2)."""
    environment = Classification((0,), inputs={"data": nominal}, coding="onehot", noise=0.1, passes=1)
    assert (environment.dimension, environment.fixed_actions) == (5 * 3, 3)
    half = 0.5**0.5
    assert shown(environment, 3) == {
        rounded(half, 0, 0, 0, half): [0, 1, 0],
        rounded(0, half, half, 0, 0): [1, 0, 0],
        rounded(0, half, 0, half, 0): [0, 0, 1],
    }


def test_ordinal_coding_by_hand(nominal):
    """The codes themselves over their norms 2, 1 and sqrt(2)."""
    environment = Classification((0,), inputs={"data": nominal}, coding="ordinal", noise=0.1, passes=1)
    assert environment.dimension == 2 * 3
    assert shown(environment, 3) == {
        rounded(0, 1): [0, 1, 0],
        rounded(1, 0): [1, 0, 0],
        rounded(0.5**0.5, 0.5**0.5): [0, 0, 1],
    }


@pytest.mark.parametrize("coding", ["onehot", "ordinal"])
def test_numeric_features_are_only_scaled_to_unit_rows(numeric, coding):
    """(3, 4) / 5, (-6, 8) / 10 and (0, 2) / 2, whatever the coding."""
    environment = Classification((0,), inputs={"data": numeric}, coding=coding, noise=0.1, passes=1)
    assert environment.dimension == 2 * 3
    assert shown(environment, 3) == {
        rounded(0.6, 0.8): [0, 1, 0],
        rounded(-0.6, 0.8): [1, 0, 0],
        rounded(0, 1): [0, 0, 1],
    }


def test_reward_is_1_for_the_right_class_and_regret_what_is_missing(numeric):
    """Every action in every round: one of three has reward 1 and regret 0, the others 0 and 1."""
    environment = Classification((0, 1), inputs={"data": numeric}, coding="onehot", noise=0.0, passes=10)
    for _ in range(30):
        outcome = environment.step(environment.decisions().choose(np.array([[0, 1, 2], [2, 1, 0]])))
        assert np.sort(outcome.reward, axis=1).tolist() == [[0, 0, 1]] * 2
        assert (outcome.regret == 1 - outcome.reward).all()


def test_onehot_by_hand():
    """An attribute with one value is a column of ones."""
    table = onehot(np.array([[0, 1, 0], [2, 0, 0]]), np.array([3, 2, 1]))
    assert table.tolist() == [[1, 0, 0, 0, 1, 1], [0, 0, 1, 1, 0, 1]]
