"""The moderation bandit: the paper's reward table (Appendix "Content Moderation"), its accuracy, and its posts."""

import numpy as np
import pytest
import xarray as xr

from ensemblepp.bandit import Choice
from ensemblepp.engines.choice import simulate
from ensemblepp.environments.moderation import BLOCK, PUBLISH, Moderation
from ensemblepp.errors import ResultError
from ensemblepp.storage.datasets import write_dataset

FREE, HATE = 0, 1

#: Embeddings of norm 5 whose first entry names the post; posts 1, 2 and 5 are hateful.
EMBEDDINGS = np.array([[k, np.sqrt(25 - k**2)] for k in range(6)], dtype=np.float32)
LABELS = np.array([FREE, HATE, HATE, FREE, FREE, HATE], dtype=np.int8)


@pytest.fixture
def embeddings(tmp_path):
    """The file of the six posts."""
    variables = {"embedding": (("post", "feature"), EMBEDDINGS), "label": ("post", LABELS)}
    write_dataset(xr.Dataset(variables), tmp_path / "posts-6.nc")
    return tmp_path / "posts-6.nc"


def build(embeddings, seeds=(0, 1), scaling="none", passes=1) -> Moderation:
    return Moderation(seeds, inputs={"embeddings": embeddings}, scaling=scaling, passes=passes)


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
