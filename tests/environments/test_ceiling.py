"""The supervised ceiling: folds by hand, out of fold in truth, and against a fit written out."""

import numpy as np
import pytest
import xarray as xr
from scipy.optimize import minimize

from ensemblepp.environments import ceiling
from ensemblepp.errors import DataError
from ensemblepp.storage.datasets import read_dataset, write_dataset


def made(posts: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Features of very different sizes, of which two tell something of the label."""
    source = np.random.default_rng(seed)
    features = source.standard_normal((posts, 6)) * [1, 100, 0.01, 5, 1, 1] + [0, 40, 0, -3, 0, 0]
    chance = 1 / (1 + np.exp(-(1.5 * features[:, 0] + 100 * features[:, 2])))
    return features, source.random(posts) < chance


def test_folds_share_out_both_classes_and_never_part_a_group():
    group = np.array([0, 0, 0, *range(1, 40), 5, 5])
    hate = np.arange(len(group)) % 4 == 0
    hate[group == 0], hate[group == 5] = True, False
    fold = ceiling.folds(group, hate, 5, np.random.default_rng(0))
    for one in set(group.tolist()):
        assert len(set(fold[group == one].tolist())) == 1
    first = np.unique(group, return_index=True)[1]
    for label in (True, False):
        counts = np.bincount(fold[first][hate[first] == label], minlength=5)
        assert counts.max() - counts.min() <= 1


def test_no_post_is_judged_by_a_fit_that_has_seen_its_label():
    """A flipped label leaves the probabilities of its own fold as they are, unless the folds are others."""
    features, hate = made()
    before = ceiling.out_of_fold(features, hate, np.random.default_rng(0))
    fold = before.fold
    flipped = hate.copy()
    # two of one fold, one of each class: the folds stay as they are dealt
    mine = np.flatnonzero(fold == 2)
    one, other = mine[hate[mine]][0], mine[~hate[mine]][0]
    flipped[[one, other]] = flipped[[other, one]]
    monkey = pytest.MonkeyPatch()
    dealt = iter([fold, *[None] * 10])
    real = ceiling.folds
    with monkey.context() as patch:
        patch.setattr(ceiling, "folds", lambda *args: found if (found := next(dealt)) is not None else real(*args))
        after = ceiling.out_of_fold(features, flipped, np.random.default_rng(0))
        dealt = iter([fold, *[None] * 10])
        again = ceiling.out_of_fold(features, hate, np.random.default_rng(0))
    assert np.array_equal(after.free[fold == 2], again.free[fold == 2])
    assert not np.allclose(after.free[fold != 2], again.free[fold != 2])


def test_against_a_fit_written_out():
    """The penalised log loss of one fold's training posts, minimised by another method."""
    features, hate = made()
    found = ceiling.out_of_fold(features, hate, np.random.default_rng(0))
    known = found.fold != 1
    ready = (features - features[known].mean(axis=0)) / features[known].std(axis=0)

    def loss(weights: np.ndarray) -> float:
        score = ready[known] @ weights[:-1] + weights[-1]
        return np.logaddexp(0, np.where(hate[known], -score, score)).sum() + weights[:-1] @ weights[:-1] / (
            2 * found.strengths[1]
        )

    weights = minimize(loss, np.zeros(7), method="BFGS", options={"gtol": 1e-6}).x
    expected = 1 / (1 + np.exp(ready[~known] @ weights[:-1] + weights[-1]))
    np.testing.assert_allclose(found.free[~known], expected, atol=2e-3)


def test_scales_of_features_do_not_matter():
    features, hate = made()
    one = ceiling.out_of_fold(features, hate, np.random.default_rng(0)).free
    other = ceiling.out_of_fold(features * [1e4, 1, 1, 1e-4, 1, 1], hate, np.random.default_rng(0)).free
    np.testing.assert_allclose(one, other, atol=1e-4)


def test_noise_has_nothing_to_learn():
    """Labels that are independent of the features: the best fit is the strongest penalty, and no better than their share."""
    source = np.random.default_rng(1)
    features, hate = source.standard_normal((300, 20)), source.random(300) < 0.3
    found = ceiling.out_of_fold(features, hate, np.random.default_rng(0))
    share = hate.mean()
    entropy = -share * np.log(share) - (1 - share) * np.log(1 - share)
    assert ceiling._log_loss(found.free, hate) > entropy - 0.02
    assert found.free.std() < 0.1


def test_the_file_repeats_to_the_bit_and_says_how_good_the_fit_is(tmp_path):
    features, hate = made()
    embedded = xr.Dataset(
        {"embedding": (("post", "feature"), features.astype(np.float32)), "label": ("post", hate.astype(np.int8))},
        attrs={"language_model": "tiny", "source": "made"},
    )
    write_dataset(embedded, tmp_path / "posts.nc")
    for name in ("a.nc", "b.nc"):
        ceiling.write(tmp_path / "posts.nc", tmp_path / name, "none")
    assert (tmp_path / "a.nc").read_bytes() == (tmp_path / "b.nc").read_bytes()
    found = read_dataset(tmp_path / "a.nc")
    assert found.attrs["accuracy"] == pytest.approx(((found["free"].values < 0.5) == hate).mean())
    assert found.attrs["language_model"] == "tiny"
    assert np.array_equal(found["label"].values, hate)


def test_too_few_posts_of_a_class(tmp_path):
    features, hate = made(30)
    hate[:] = np.arange(30) < 4
    with pytest.raises(
        DataError, match=r"^4 different posts of the rarer class: too few for a supervised ceiling \(expected 5"
    ):
        ceiling.out_of_fold(features, hate, np.random.default_rng(0))
