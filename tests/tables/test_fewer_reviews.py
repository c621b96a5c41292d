"""Reviews that an agent saves, against the decisions themselves."""

import numpy as np
import pytest
from posts_study import play

from ensemblepp.tables import fewer_reviews

#: Half-width of the 95 % interval of a mean of three numbers, per standard deviation.
HALF = 0.95 / np.sqrt(2 * 0.975 * 0.025) / np.sqrt(3)


def test_fewer_reviews_are_paired_by_seed():
    """Against the decisions themselves; one agent at a time, one row for each baseline."""
    played = play("remove_or_review")
    table = fewer_reviews.build(played.data).set_index(["agent", "baseline"])
    for place, name in enumerate(("Ensemble++", "Ensemble+", "Greedy")):
        reviews = played.taken[place].sum(axis=1)
        missed = (~played.hateful & ~played.taken[place]).sum(axis=1)
        free = (~played.hateful).sum(axis=1)
        row = table.loc[name, "random review"]
        fewer = 1 - reviews / ((1 - missed / free) * 200)
        assert row["fewer reviews"] == pytest.approx(fewer.mean())
        assert row["95 % high"] == pytest.approx(fewer.mean() + HALF * fewer.std(ddof=1))
        assert (row["accuracy"], row["reviewed"]) == pytest.approx((1 - missed.mean() / 200, reviews.mean() / 200))
        assert row["seeds"] == 3
    # a look at the posts saves reviews against none, and less against a supervised one
    assert (table["fewer reviews"].xs("random review", level=1) > 0).all()
    better = table["fewer reviews"].unstack()
    assert (better["random review"] > better["fixed threshold"]).all()
