"""Random numbers for many rounds at once."""

import numpy as np
import pytest
from scipy import stats

from ensemblepp.randomness.draws import Normals, Uniforms


@pytest.mark.parametrize("kind", [Uniforms, Normals])
def test_draws_do_not_depend_on_how_many_rounds_are_drawn_at_once(kind):
    """7 rounds at once, or 1 + 4 + 2; seed 5 beside others or alone; U(0, 1) or N(0, 1) by Kolmogorov-Smirnov."""
    whole, pieces, alone = (kind(seeds, "minibatch", (3, 5)) for seeds in ((2, 5), (2, 5), (5,)))
    values = whole(7)
    assert values.shape == (2, 7, 3, 5)
    assert values.dtype == np.float32
    assert np.array_equal(values, np.concatenate([pieces(1), pieces(4), pieces(2)], axis=1))
    assert np.array_equal(values[1:], alone(7))
    assert not np.array_equal(values[0], values[1])
    many = whole(2000).ravel()
    assert stats.kstest(many, "uniform" if kind is Uniforms else "norm").pvalue > 1e-3
    if kind is Uniforms:
        assert 0 <= many.min() < many.max() < 1
