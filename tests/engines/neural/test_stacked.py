"""The stacked rounds against an agent's own `act` and `update`."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from neural_pools import SEEDS, build, pool

from ensemblepp.engines.choice import simulate

torch.set_num_threads(1)


@pytest.mark.parametrize("kind", ["quadratic", "neural", "contextual"])
@pytest.mark.parametrize(
    "name", ["greedy", "epsilon-greedy", "ensemble++ sphere", "ensemble++ chains", "ensemble+", "bootstrap"]
)
def test_stacked_rounds_are_act_and_update(name, kind):
    """130 rounds, three chunks of draws, with two logits where rewards are 0 and 1: everything but float64 sums to the bit."""
    loss = "cross_entropy" if kind == "neural" else "squared"
    settings = {"loss": loss, "gradient_steps": 2, "update_every": 2, "hidden": [8]}
    whole, single = (build(name, pool(kind, SEEDS), 130, **settings) for _ in range(2))
    played = simulate(pool(kind, SEEDS), whole, 130, engine="neural_stacked")
    stepped = simulate(pool(kind, SEEDS), single, 130, engine="step_by_step")
    assert np.array_equal(played.action, stepped.action)
    assert np.array_equal(played.time, stepped.time)
    assert np.array_equal(played.optimal, stepped.optimal)
    for field in ("regret", "reward"):
        np.testing.assert_allclose(getattr(played, field), getattr(stepped, field), rtol=1e-6, atol=1e-6)
    if kind == "contextual":
        np.testing.assert_allclose(played.constant_regret, stepped.constant_regret, rtol=1e-6)
    assert played.diagnostics.keys() == {"loss", "spread", "explored", "error"}
    for field, values in stepped.diagnostics.items():
        assert np.array_equal(played.diagnostics[field], values, equal_nan=True), field
    assert torch.equal(whole.flat, single.flat)
    assert np.isnan(played.diagnostics["loss"][..., :10]).all()
    assert len(np.unique(played.diagnostics["loss"][0, 0])) > 20
