"""The moderation bandit: the paper's reward table (Appendix "Content Moderation"), its accuracy, and its posts."""

import numpy as np
import pytest
import xarray as xr

from ensemblepp.bandit import Choice
from ensemblepp.engines.choice import simulate
from ensemblepp.environments.moderation import BLOCK, PUBLISH, THRESHOLDS, Moderation, thresholds
from ensemblepp.errors import ResultError
from ensemblepp.storage.datasets import write_dataset

FREE, HATE = 0, 1
REMOVE, REVIEW = BLOCK, PUBLISH

#: Embeddings of norm 5 whose first entry names the post; posts 1, 2 and 5 are hateful.
EMBEDDINGS = np.array([[k, np.sqrt(25 - k**2)] for k in range(6)], dtype=np.float32)
LABELS = np.array([FREE, HATE, HATE, FREE, FREE, HATE], dtype=np.int8)


@pytest.fixture
def embeddings(tmp_path):
    """The file of the six posts."""
    variables = {"embedding": (("post", "feature"), EMBEDDINGS), "label": ("post", LABELS)}
    write_dataset(xr.Dataset(variables), tmp_path / "posts-6.nc")
    return tmp_path / "posts-6.nc"


def build(embeddings, seeds=(0, 1), scaling="none", passes=1, **options) -> Moderation:
    return Moderation(seeds, inputs={"embeddings": embeddings}, scaling=scaling, passes=passes, **options)


def post(decisions) -> list[int]:
    """The present post of every seed, by the first entry of its embedding."""
    return [int(features[0, 0]) for features in decisions.features]


@pytest.mark.parametrize(
    ("label", "action", "reward", "regret"),
    [(FREE, PUBLISH, 1.0, 0.0), (FREE, BLOCK, 0.5, 0.5), (HATE, PUBLISH, -0.5, 1.0), (HATE, BLOCK, 0.5, 0.0)],
)
def test_reward_table_of_the_paper(embeddings, label, action, reward, regret):
    """Publish: +1 free, -0.5 hateful; block: +0.5. Without noise, so observed exactly; regret against the better action."""
    environment = build(embeddings)
    met = 0
    for _ in range(6):
        decisions = environment.decisions()
        outcome = environment.step(decisions.choose(np.full((2, 1), action)))
        for seed, number in enumerate(post(decisions)):
            if LABELS[number] == label:
                assert (outcome.reward[seed, 0], outcome.regret[seed, 0]) == (reward, regret)
                met += 1
    assert met == 2 * 3


class Publisher:
    """Publishes posts 0, 1 and 3, blocks the others."""

    seeds = (0, 1)
    chains = (("none", "none"),)

    def act(self, decisions) -> Choice:
        return decisions.choose(np.array([[PUBLISH if number in (0, 1, 3) else BLOCK] for number in post(decisions)]))

    def update(self, choice, reward) -> None:
        pass


def test_accuracy_is_the_share_of_rounds_without_regret(embeddings):
    """Right: 0 and 3 published, 2 and 5 blocked; wrong: 1 published (regret 1), 4 blocked (0.5): 4 of 6 rounds."""
    trajectory = simulate(build(embeddings), Publisher(), 6)
    assert trajectory.optimal[:, 0, -1].tolist() == [4, 4]
    assert trajectory.regret[:, 0, -1].tolist() == [1.5, 1.5]
    # 2 x 1 for the free ones, -0.5 for the hateful one, 3 x 0.5 for the blocked ones
    assert trajectory.reward[:, 0, -1].tolist() == [3, 3]
    # always blocking misses 0.5 on each of 3 free posts, always publishing 1 on each of 3 hateful ones
    assert trajectory.constant_regret[:, :, -1].tolist() == [[1.5, 3], [1.5, 3]]


def test_every_post_is_shown_once(embeddings):
    """With its own embedding and label."""
    environment = build(embeddings, seeds=(0,))
    assert (environment.dimension, environment.fixed_actions) == (4, 2)
    shown = {}
    for _ in range(6):
        decisions = environment.decisions()
        (number,) = post(decisions)
        assert decisions.features[0, BLOCK].tolist() == [*EMBEDDINGS[number], 0, 0]
        assert decisions.features[0, PUBLISH].tolist() == [0, 0, *EMBEDDINGS[number]]
        shown[number] = environment.mean_rewards()[0, PUBLISH] < 0
        environment.step(decisions.choose(np.zeros((1, 1), dtype=int)))
    assert shown == dict(enumerate((LABELS == HATE).tolist()))


def test_unit_scaling_divides_by_the_norm(embeddings):
    features = build(embeddings, scaling="unit").decisions().features
    np.testing.assert_allclose(np.linalg.norm(features, axis=2), 1, rtol=1e-6)
    plain = build(embeddings).decisions().features
    np.testing.assert_allclose(features * 5, plain, rtol=1e-6)


def test_embeddings_that_are_not_finite_are_refused(tmp_path):
    path = tmp_path / "bad.nc"
    values = np.array([[1.0, np.nan]], dtype=np.float32)
    write_dataset(xr.Dataset({"embedding": (("post", "feature"), values), "label": ("post", np.array([0]))}), path)
    with pytest.raises(ResultError, match="variable 'embedding' holds values that are not finite"):
        build(path)


def test_standardise_by_hand(embeddings):
    """Per feature, over the posts: mean 0 and variance 1."""
    table = build(embeddings, scaling="standardise").table[0]
    expected = (EMBEDDINGS - EMBEDDINGS.mean(axis=0)) / EMBEDDINGS.std(axis=0)
    np.testing.assert_allclose(table, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("cost", [1 / 3, 0.1])
@pytest.mark.parametrize(("label", "action"), [(FREE, REVIEW), (FREE, REMOVE), (HATE, REVIEW), (HATE, REMOVE)])
def test_reward_table_with_reviews(embeddings, label, action, cost):
    """Review: 1 - c free, 0.5 - c hateful; remove: +0.5, which says nothing of the label. Regret against the better action."""
    environment = build(embeddings, actions="remove_or_review", review_cost=cost)
    rewards = {(FREE, REVIEW): 1 - cost, (HATE, REVIEW): 0.5 - cost}
    expected = rewards.get((label, action), 0.5)
    better = max(0.5, rewards[label, REVIEW])
    for _ in range(6):
        decisions = environment.decisions()
        outcome = environment.step(decisions.choose(np.full((2, 1), action)))
        for seed, number in enumerate(post(decisions)):
            if LABELS[number] == label:
                assert outcome.reward[seed, 0] == pytest.approx(expected)
                assert outcome.regret[seed, 0] == pytest.approx(better - expected)


def test_both_wordings_have_one_threshold_at_a_cost_of_one_third():
    """Action 1 is worth it above P(free) = 2/3: the rewards of both are then one half."""
    for free, hate in ((1.0, -0.5), (1 - 1 / 3, 0.5 - 1 / 3)):
        assert 2 / 3 * free + 1 / 3 * hate == pytest.approx(0.5)


def judged(path, free, labels=LABELS):
    """A file of supervised probabilities."""
    write_dataset(xr.Dataset({"free": ("post", np.array(free)), "label": ("post", labels)}), path)
    return path


#: By these, posts 0, 1 and 4 are free (post 1 is not), 2, 3 and 5 not (post 3 is); post 4 by a hair, post 3 missed by one.
FREE_BY_FIT = [0.9, 0.8, 0.1, 0.66, 0.67, 0.2]


@pytest.mark.parametrize("engine", ["step_by_step", "neural_stacked", "neural_compiled"])
@pytest.mark.parametrize(("actions", "costs"), [("publish_or_block", (0.5, 1.0)), ("remove_or_review", (1 / 6, 1 / 3))])
def test_the_ceiling_is_played_on_the_posts_that_were_shown(embeddings, tmp_path, engine, actions, costs):
    """It misses post 3, free, and post 1, hateful: at every round by whether these were shown so far."""
    inputs = {"embeddings": embeddings, "ceiling": judged(tmp_path / "ceiling.nc", FREE_BY_FIT)}
    environment = Moderation((0, 1), inputs=inputs, scaling="none", passes=1, actions=actions)
    # the third use of a stream would be an error, so the order is read from another one
    order = build(embeddings)._order_sources
    shown = np.stack([source.permutation(6) for source in order])
    trajectory = simulate(environment, network(), 6, engine=engine)
    cost = np.select([shown == 3, shown == 1], costs, 0.0)
    at = trajectory.time - 1
    np.testing.assert_allclose(trajectory.policies["ceiling_regret"], cost.cumsum(axis=1)[:, at], rtol=1e-6)
    assert np.array_equal(trajectory.policies["ceiling_optimal"], (cost == 0).cumsum(axis=1)[:, at])
    thresholds = {"threshold_regret", "threshold_optimal"} if actions == "remove_or_review" else set()
    assert set(trajectory.policies) == {"ceiling_regret", "ceiling_optimal"} | thresholds


def network():
    from ensemblepp.agents.neural.greedy import Greedy

    training = {"learning_rate": 1e-3, "batch_size": 2, "weight_decay": 0.0, "buffer_capacity": 6, "gradient_steps": 1}
    return Greedy((0, 1), dimension=4, horizon=6, device="cpu", hidden=[], warm_up=2, **training)


def test_fixed_thresholds_go_from_all_reviews_to_none(embeddings, tmp_path):
    """The first reviews every post: 1/3 lost on each of 3 hateful ones; the last none: 1/6 on each of 3 free ones."""
    inputs = {"embeddings": embeddings, "ceiling": judged(tmp_path / "ceiling.nc", FREE_BY_FIT)}
    environment = Moderation((0, 1), inputs=inputs, scaling="none", passes=1, actions="remove_or_review")
    policies = simulate(environment, Publisher(), 6).policies
    regret, optimal = policies["threshold_regret"], policies["threshold_optimal"]
    assert regret.shape == optimal.shape == (2, THRESHOLDS, 6)
    np.testing.assert_allclose(regret[:, [0, -1], -1], [[1, 0.5]] * 2, rtol=1e-6)
    reviews = [(np.array(FREE_BY_FIT) >= cut).sum() for cut in thresholds(np.array(FREE_BY_FIT))]
    assert (reviews[0], reviews[-1]) == (6, 0)
    assert np.all(np.diff(reviews) <= 0)
    assert set(reviews) == set(range(7)), "with six posts there are seven different thresholds"


def test_a_ceiling_of_other_posts_is_refused(embeddings, tmp_path):
    inputs = {"embeddings": embeddings, "ceiling": judged(tmp_path / "ceiling.nc", FREE_BY_FIT, 1 - LABELS)}
    with pytest.raises(ResultError, match=r"ceiling\.nc: of other posts than .*; delete it and run again$"):
        Moderation((0,), inputs=inputs, scaling="none", passes=1)
