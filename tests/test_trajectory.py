"""Which steps of a run are stored."""

import numpy as np
import pytest

from ensemblepp.trajectory import thin, time_grid


@pytest.mark.parametrize("horizon", [1, 2, 150, 2000])
def test_every_step_is_stored_up_to_2000(horizon):
    assert time_grid(horizon).tolist() == list(range(1, horizon + 1))


@pytest.mark.parametrize("horizon", [2001, 2500, 10_000, 99_999, 1_000_000])
def test_long_horizons_are_thinned(horizon):
    """Increasing whole steps from 1 to the horizon, dense at the start, no gap above 1/400 of the horizon."""
    grid = time_grid(horizon)
    assert grid.dtype.kind == "i"
    assert grid[0] == 1
    assert grid[-1] == horizon
    assert (np.diff(grid) > 0).all()
    assert 500 < len(grid) <= 601
    assert set(range(1, 11)) <= set(grid.tolist())
    assert np.diff(grid).max() <= horizon / 400 + 1


@pytest.mark.parametrize("horizon", [1, 2, 60, 120, 150, 1000, 2000, 2001, 10_000, 1_000_000])
def test_a_coarse_grid_is_what_curves_need(horizon):
    """Stored steps only, both ends, at most 120, half of them evenly spaced and half dense at the start."""
    grid, whole = time_grid(horizon, coarse=True), time_grid(horizon)
    assert grid.tolist() == thin(whole).tolist()
    assert (grid[0], grid[-1]) == (1, horizon)
    assert (np.diff(grid) > 0).all()
    assert set(grid) <= set(whole)
    assert len(grid) <= 120
    assert np.diff(grid, prepend=1).max() <= (horizon - 1) / 59 + horizon / 400 + 1
    if horizon >= 1000:
        assert len(grid) > 80
        assert grid[:5].tolist() == list(range(1, 6))
    if horizon <= 60:
        assert grid.tolist() == list(range(1, horizon + 1))


@pytest.mark.parametrize("horizon", [1, 90, 600, 2000, 5000, 100_000])
def test_thinning_what_is_thin_changes_nothing(horizon):
    once = time_grid(horizon, coarse=True)
    assert np.array_equal(thin(once), once)
