"""Figures of moderation: what is drawn is what was decided, post by post; nothing is cut off, and types can be read."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure
from posts_study import AGENTS, TIME, play

from ensemblepp import registry
from ensemblepp.analysis import moderation
from ensemblepp.figures import calibration, floor_to_ceiling, style

#: Figures, and the wordings that they are drawn of.
FIGURES = {
    "moderation_accuracy": ("publish_or_block", "remove_or_review"),
    "moderation_pipeline": ("publish_or_block", "remove_or_review"),
    "floor_to_ceiling": ("publish_or_block",),
    "review_workload": ("remove_or_review",),
    "calibration": ("publish_or_block",),
}
CASES = [(name, wording) for name, wordings in FIGURES.items() for wording in wordings]


def draw(name: str, wording: str, **options) -> Figure:
    style.apply()
    return registry.load(registry.presentation("figures", name))(play(wording, **options).data)


def line(axes, label: str) -> np.ndarray:
    (found,) = [one for one in axes.get_lines() if one.get_label() == label]
    return np.asarray(found.get_ydata(), dtype=float)


def texts(figure: Figure) -> list:
    found = [text for axes in figure.axes for text in axes.texts]
    found += [text for axes in figure.axes if axes.axison for text in (*axes.get_xticklabels(), *axes.get_yticklabels())]
    found += [text for one in figure.legends for text in one.get_texts()]
    return [text for text in found if text.get_text()]


@pytest.mark.parametrize(("name", "wording"), CASES)
def test_a_figure_is_as_wide_as_the_page_and_can_be_read(name, wording):
    figure = draw(name, wording)
    figure.canvas.draw()
    assert figure.get_figwidth() <= 6.75
    assert min(text.get_fontsize() for text in texts(figure)) >= 7
    renderer, page = figure.canvas.get_renderer(), figure.bbox.padded(1)
    boxes = [axes.get_window_extent(renderer) for axes in figure.axes]
    assert not [pair for pair in itertools.combinations(boxes, 2) if pair[0].overlaps(pair[1])]
    for axes in figure.axes:
        box = axes.get_tightbbox(renderer)
        assert box is None or (page.contains(box.x0, box.y0) and page.contains(box.x1, box.y1)), axes


@pytest.mark.parametrize("longest", ["Greedy", "Ensemble++, prior 0.02, rate 1e-4"])
@pytest.mark.parametrize("environments", [1, 2, 3, 4])
def test_the_label_below_a_panel_is_no_wider_than_the_panel(environments, longest):
    data = play().data
    data["label"] = data["label"].copy(data=[longest, *data["label"].values[1:]])
    one = data.sel(environment=["posts"])
    several = [one.assign_coords(environment=[f"posts-{place}"]) for place in range(environments)]
    style.apply()
    figure = floor_to_ceiling.draw(xr.concat(several, "environment", data_vars="minimal", coords="minimal"))
    figure.canvas.draw()
    for axes in figure.axes:
        label, panel = axes.xaxis.label.get_window_extent(), axes.get_window_extent()
        assert label.width <= panel.width
        assert label.y0 >= 0


@pytest.mark.parametrize(("name", "wording"), CASES)
def test_one_seed_is_drawn_too(name, wording):
    draw(name, wording, seeds=1)


def test_accuracy_has_floor_and_ceiling():
    study = play()
    left, right = draw("moderation_accuracy", "publish_or_block").axes
    later = 0.02 * TIME[-1] <= TIME
    for label, right_ones in {
        "Greedy": study.taken[2] ^ study.hateful,
        "supervised ceiling": study.ceiling ^ study.hateful,
        "always block": study.hateful,
        "always publish": ~study.hateful,
    }.items():
        share = (right_ones.cumsum(axis=1)[:, TIME - 1] / TIME).mean(axis=0)[later]
        np.testing.assert_allclose(line(left, label), share, rtol=1e-6)
    constant = study.data["constant_regret"].sel(environment="posts")
    best = constant.isel(action_index=constant.isel(time=-1, drop=True).argmin("action_index"))
    gain = (best - study.data["ceiling_regret"].sel(environment="posts")).mean("seed")
    np.testing.assert_allclose(line(right, "supervised ceiling"), gain, rtol=1e-6)


def test_workload_panels_show_reviews_and_both_baselines():
    study = play("remove_or_review")
    figure = draw("review_workload", "remove_or_review")
    for place, (axes, (label, _, size)) in enumerate(zip(figure.axes, AGENTS.values(), strict=True)):
        reviewed = study.taken[place].cumsum(axis=1)[:, TIME - 1].mean(axis=0)
        np.testing.assert_allclose(line(axes, label), reviewed, rtol=1e-6)
        missed = (~study.hateful & ~study.taken[place]).sum(axis=1)
        assert axes.get_title() == f"{label}\naccuracy {1 - missed.mean() / TIME[-1]:.1%}"
        for name, of in moderation.BASELINES.items():
            expected = of(study.data, "posts", study.data["seed"] * 0 + missed).mean("seed")
            np.testing.assert_allclose(line(axes, name), expected, rtol=1e-6)
        assert size in (0, 8)


def test_points_lie_between_floor_and_ceiling_as_the_shares_do():
    study = play()
    (axes,) = draw("floor_to_ceiling", "publish_or_block").axes
    constant = study.data["constant_regret"].sel(environment="posts").isel(time=-1).min("action_index")
    points = [float(one.get_xdata()[0]) for one in axes.get_lines() if one.get_marker() == "o"]
    for point, (agent, (_, _, size)) in zip(points, AGENTS.items(), strict=True):
        regret = study.data["regret"].sel(environment="posts", agent=agent, ensemble_size=size).isel(time=-1).squeeze()
        assert point == pytest.approx(float(moderation.share_of_the_way(study.data, "posts", regret, constant).mean()))
    assert [text.get_text() for text in axes.get_yticklabels()] == [label for label, _, _ in AGENTS.values()]


def test_what_is_far_below_the_floor_is_an_arrow_with_its_number():
    data = play().data
    data["regret"].loc[{"agent": "greedy"}] += 500
    style.apply()
    (axes,) = floor_to_ceiling.draw(data).axes
    (arrow,) = [one for one in axes.get_lines() if one.get_marker() == "<"]
    assert arrow.get_xdata()[0] == floor_to_ceiling.LOWEST
    assert axes.texts[-1].get_text().startswith("-")


def test_calibration_groups_by_hand():
    """Spreads 0.1 (1 + seed) x 2 ... 1 and errors 0.3 above them: roots of mean squares within each eighth of the rounds."""
    run = play().data.sel(environment="posts", agent="ensemble++", ensemble_size=8).squeeze(drop=True)
    spread, error = calibration.groups(run)
    values = run["spread"].transpose("seed", "time").values
    bounds = np.quantile(values, np.linspace(0, 1, calibration.BINS + 1))
    for group, (low, high) in enumerate(itertools.pairwise(bounds)):
        last = group == calibration.BINS - 1
        for seed in range(3):
            mine = [value for value in values[seed] if low <= value < high or (last and value == high)]
            if mine:
                assert spread[group, seed] == pytest.approx(np.sqrt(np.mean(np.square(mine))))
                assert error[group, seed] == pytest.approx(np.sqrt(np.mean(np.square(np.array(mine) + 0.3))))
            else:
                assert np.isnan(spread[group, seed])
    (axes,) = draw("calibration", "publish_or_block").axes
    assert [one.get_label() for one in axes.get_lines()] == ["Ensemble++", "Ensemble+", "error = spread"], (
        "Greedy has no spread"
    )


def test_the_pipeline_says_what_the_configuration_says():
    written = {text.get_text() for text in draw("moderation_pipeline", "remove_or_review").axes[0].texts}
    assert {"500 posts", "tiny", "as the model gives it", "remove or review", "remove: +0.5"} <= written
    assert "base and M = 8 directions" in written
    assert "prior 0.2, step 0.0001" in written
    assert {"review free: +0.67", "review hateful: +0.17"} <= written
    assert {"publish free: +1", "publish hateful: -0.5"} <= {
        text.get_text() for text in draw("moderation_pipeline", "publish_or_block").axes[0].texts
    }
