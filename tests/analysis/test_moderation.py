"""Counts of decisions from sums of regret, against the decisions themselves; reviews of others at equal accuracy."""

from __future__ import annotations

import numpy as np
import pytest
from posts_study import AGENTS, TIME, Study, play

from ensemblepp.analysis import moderation
from ensemblepp.analysis.selection import agent_runs

WORDINGS = [("publish_or_block", 1 / 3), ("remove_or_review", 1 / 3), ("remove_or_review", 0.1), ("remove_or_review", 0.45)]


def run_of(study: Study, agent: str):
    return agent_runs(study.data, agent).sel(environment="posts", ensemble_size=AGENTS[agent][2])


def so_far(values: np.ndarray) -> np.ndarray:
    return values.cumsum(axis=-1)[..., TIME - 1]


@pytest.mark.parametrize(("actions", "cost"), WORDINGS)
def test_both_mistakes_are_known_from_regret_and_right_rounds(actions, cost):
    study = play(actions, cost)
    for place, agent in enumerate(AGENTS):
        run = run_of(study, agent)
        found = moderation.decisions(study.data, "posts", run["regret"], run["optimal"])
        taken = study.taken[place]
        for values, expected in (
            (found.free, ~study.hateful),
            (found.missed, ~study.hateful & ~taken),
            (found.let_through, study.hateful & taken),
            (found.taken, taken),
        ):
            assert np.array_equal(values.transpose("seed", "time").values, so_far(expected))


def test_accuracy_in_both_wordings():
    """Publish or block: right rounds. With reviews: all but free posts that were removed."""
    for actions in ("publish_or_block", "remove_or_review"):
        study = play(actions)
        run = run_of(study, "greedy")
        right = study.taken[2] ^ study.hateful if actions == "publish_or_block" else study.taken[2] | study.hateful
        found = moderation.accuracy(study.data, "posts", run["regret"], run["optimal"]).transpose("seed", "time")
        np.testing.assert_allclose(found.values, so_far(right) / TIME, rtol=1e-12)
        right = study.ceiling ^ study.hateful if actions == "publish_or_block" else study.ceiling | study.hateful
        found = moderation.ceiling_accuracy(study.data, "posts").transpose("seed", "time")
        np.testing.assert_allclose(found.values, so_far(right) / TIME, rtol=1e-12)
        for action, acts in ((0, False), (1, True)):
            right = ~study.hateful if acts else study.hateful
            right = np.ones_like(right) if acts and actions == "remove_or_review" else right
            found = moderation.constant_accuracy(study.data, "posts", action).transpose("seed", "time")
            np.testing.assert_allclose(found.values, so_far(right) / TIME, rtol=1e-12)


def test_the_share_of_the_way_by_hand():
    """The constant action loses 20, the ceiling 10: an agent that loses 15 is half way, one that loses 25 as far below."""
    data = play(seeds=3).data
    data["ceiling_regret"][:] = 10.0
    regret = data["seed"] * 5.0 + 15
    share = moderation.share_of_the_way(data, "posts", regret, 0 * regret + 20)
    assert share.values.tolist() == [0.5, 0, -0.5]
    assert moderation.share_of_the_way(data, "posts", regret, 0 * regret + 10).isnull().all(), "no way to go"


def test_a_fixed_threshold_at_equal_accuracy():
    """As many misses as a known threshold: its reviews. Between two: both mixed, so that the misses agree."""
    study = play("remove_or_review")
    data = study.data
    known = moderation.decisions(
        data, "posts", *(data[f"threshold_{what}"].sel(environment="posts") for what in ("regret", "optimal"))
    )
    misses = known.missed.isel(time=-1).transpose("seed", "threshold").values
    reviews = known.taken.transpose("seed", "threshold", "time").values
    for place in (0, 7, 20):
        wanted = data["seed"] * 0 + misses[:, place]
        found = moderation.fixed_threshold_reviews(data, "posts", wanted).values
        # thresholds that miss as many review as many or fewer: the last of them counts
        last = [np.flatnonzero(row == row[place])[-1] for row in misses]
        assert np.array_equal(found, np.stack([reviews[seed, at] for seed, at in enumerate(last)]))
    first, second = (
        int(np.flatnonzero(misses[0] == value)[edge]) for value, edge in zip(np.unique(misses[0])[3:5], (-1, 0), strict=True)
    )
    gap = misses[0, second] - misses[0, first]
    wanted = misses[0, first] + gap / 4
    found = moderation.fixed_threshold_reviews(data, "posts", data["seed"] * 0 + wanted).values[0]
    np.testing.assert_allclose(found, 0.75 * reviews[0, first] + 0.25 * reviews[0, second])


def test_random_review_at_equal_accuracy():
    """Played out: each post reviewed with the closed form's probability misses as many free posts as wanted, on average."""
    study = play("remove_or_review")
    free = (~study.hateful).sum(axis=1)
    wanted = free / 5
    found = moderation.random_reviews(study.data, "posts", study.data["seed"] * 0 + wanted).transpose("seed", "time").values
    np.testing.assert_allclose(found, np.broadcast_to(0.8 * TIME, found.shape))
    source = np.random.default_rng(1)
    reviewed = source.random((4000, *study.hateful.shape)) < 0.8
    misses = (~study.hateful & ~reviewed).sum(axis=-1).mean(axis=0)
    np.testing.assert_allclose(misses, wanted, rtol=0.02)
    np.testing.assert_allclose(reviewed.sum(axis=-1).mean(axis=0), found[:, -1], rtol=0.01)
