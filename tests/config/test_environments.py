"""Environments as the classes that play them are given them."""

from __future__ import annotations

import pytest
from small_configuration import BALL, small

from ensemblepp.config.loading import load


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
    assert inputs == {"mushroom": ["data/prepared/mushroom.nc"], "posts": ["data/embeddings/tiny/hate_speech-1200.nc"]}
