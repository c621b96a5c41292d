"""Environments as the classes that play them are given them."""

from __future__ import annotations

import pytest
from small_configuration import BALL, faults, small

from ensemblepp.config.loading import load

#: What the small configuration's posts are read from.
POSTS = ["data/embeddings/tiny/hate_speech-1200.nc", "data/ceilings/tiny/hate_speech-1200-none.nc"]


@pytest.mark.parametrize(("written", "bound"), [("1/sqrt(5)", 0.4472135954999579), ("1/sqrt(d)", 0.22360679774997896)])
def test_the_two_feature_bounds_of_the_paper(written, bound):
    options = load(small(**{"environments/line/feature_bound": written})).environments["line"].options()
    assert options["feature_bound"] == pytest.approx(bound, rel=1e-15)


def test_options_of_the_linear_environments():
    values = small(**{"environments/ball": BALL | {"noise": 0.5}, "environments/line/varying": True})
    environments = load(values).environments
    assert environments["ball"].options() == {"dimension": 4, "prior_variance": 10.0, "noise": 0.5}
    assert environments["line"].options()["varying"] is True
    assert environments["ball"].kind == "linear_sphere"


def test_a_block_names_its_input_files():
    inputs = {block.spec["environment"]["name"]: block.inputs for block in load(small()).blocks("deep")}
    assert inputs == {"mushroom": ["data/prepared/mushroom.nc"], "posts": POSTS}


@pytest.mark.parametrize("scaling", ["none", "unit", "standardise"])
def test_a_ceiling_belongs_to_a_scaling(scaling):
    options = load(small(**{"environments/posts/scaling": scaling})).environments["posts"].options()
    assert options["inputs"]["ceiling"] == f"data/ceilings/tiny/hate_speech-1200-{scaling}.nc"
    assert (options["scaling"], options["actions"]) == (scaling, "publish_or_block")


def test_reviews_have_a_cost():
    """At 1/3 both wordings have one threshold; at 1/4 no run file could tell the two mistakes apart."""
    reviewed = {"environments/posts/actions": "remove_or_review"}
    options = load(small(**reviewed)).environments["posts"].options()
    assert options["review_cost"] == pytest.approx(1 / 3)
    where = "config/environments.yaml: environments.posts"
    for cost, words in (
        (0.25, "must not be 1/4, where both mistakes"),
        (0.5, "input should be less than 0.5"),
        (0, "input should"),
    ):
        (fault,) = faults(small(**reviewed, **{"environments/posts/review_cost": cost}))
        assert fault.startswith(f"{where}.review_cost: found {cost}: {words}")
    (fault,) = faults(small(**{"environments/posts/review_cost": 0.3}))
    assert fault == f"{where}: review_cost: there is no review where actions is publish_or_block"
