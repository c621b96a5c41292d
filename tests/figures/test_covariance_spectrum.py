"""The covariance spectrum: exactly the dataset's eigenvalues, against the lemma's interval and the lemma's ensemble size."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection

from ensemblepp.figures import covariance_spectrum

TIME = np.array([1, 10, 50, 100])
SIZES = (2, 64, 1024)

#: Largest and smallest eigenvalue of the middle seed at the last round, by ensemble size.
HIGH, LOW = (25.0, 3.5, 1.4), (0.0, 0.02, 0.6)

#: Eq. "M-bound" for d = 10 and 50, T = 100, prior variance 10 and delta = 0.05: 37,459 and 178,453.
LEMMA = tuple(320 * (d * np.log((2 + 96 * np.sqrt(1001)) / 0.05) + np.log(1001)) for d in (10, 50))


def study(seeds: int = 5) -> xr.Dataset:
    """Tracked runs with one pair of laws in two environments, beside TS, whose runs have no factor.

    Seeds differ in the fifth part of the values at most: the median seed has them exactly. Over time the largest eigenvalue
    falls from twice its last value, and the smallest grows from half of it.
    """
    environments = ["finite-d10-100", "finite-d50-1000"]
    spread = np.linspace(0.8, 1.2, seeds) if seeds > 1 else np.ones(1)
    approach = np.array([1.0, 0.5, 0.1, 0.0])
    shape = (2, 2, 2, 2, len(SIZES) + 1, seeds, len(TIME))
    names = ("regret", "tracking_low", "tracking_high")
    values = {name: np.full(shape, np.nan, np.float32) for name in names}
    values["regret"][:, 0, 1, 1, 0] = 1.0  # TS: no laws, ensemble size 0
    values["regret"][:, 1, 0, 0, 1:] = 1.0
    for place, (high, low) in enumerate(zip(HIGH, LOW, strict=True), 1):
        values["tracking_high"][:, 1, 0, 0, place] = high * spread[:, None] * (1 + approach)
        values["tracking_low"][:, 1, 0, 0, place] = low * spread[:, None] * (1 - approach / 2)
    values["tracking_low"][:, 1, 0, 0, 1] -= 1e-7  # singular up to rounding
    dims = ("environment", "agent", "reference", "perturbation", "ensemble_size", "seed", "time")
    specs = []
    for environment, d in zip(environments, (10, 50), strict=True):
        for agent, sizes in (("ts", (0,)), ("tracked", SIZES)):
            specs += [
                {
                    "environment": {
                        "name": environment,
                        "kind": "linear_finite",
                        "options": {"dimension": d, "prior_variance": 10.0},
                    },
                    "agent": {"name": agent, "kind": "linear_ensemblepp", "options": {"prior_variance": 10.0}},
                    "ensemble_size": size,
                }
                for size in sizes
            ]
    return xr.Dataset(
        {name: (dims, array) for name, array in values.items()},
        {
            "environment": environments,
            "title": ("environment", ["d = 10, 100 actions", "d = 50, 1,000 actions"]),
            "agent": ["ts", "tracked"],
            "label": ("agent", ["TS", "Ensemble++"]),
            "reference": ["gaussian", "none"],
            "perturbation": ["sphere", "none"],
            "ensemble_size": [0, *SIZES],
            "seed": range(seeds),
            "time": TIME,
        },
        {"study": "small", "scale": "smoke", "seeds": 3, "horizon": 100, "specs": json.dumps(specs)},
    )


def draw(seeds: int = 5) -> np.ndarray:
    """The panels: two rows (over time, by ensemble size), a column for each environment."""
    axes = covariance_spectrum.draw(study(seeds)).axes
    assert len(axes) == 4
    return np.array(axes).reshape(2, 2)


def curves(axes: Axes, places: np.ndarray) -> list[np.ndarray]:
    """The values of all lines over `places`, in the order drawn."""
    found = [line for line in axes.get_lines() if len(line.get_xdata()) == len(places)]
    for line in found:
        np.testing.assert_array_equal(line.get_xdata(), places)
    return [np.asarray(line.get_ydata()) for line in found]


def ends(area: PolyCollection, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper end of a band at `places`."""
    points = area.get_paths()[0].vertices
    values = [[y for x, y in points if x == place] for place in places]
    return np.array([min(found) for found in values]), np.array([max(found) for found in values])


def test_curves_are_medians_and_bands_the_middle_of_the_seeds():
    approach = np.array([1.0, 0.5, 0.1, 0.0])
    for above in draw()[0]:
        drawn = curves(above, TIME)
        bands = [area for area in above.collections if isinstance(area, PolyCollection)]
        assert len(drawn) == len(bands) == 2 * len(SIZES)
        for place, (high, low) in enumerate(zip(HIGH, LOW, strict=True)):
            for curve, area, expected in (
                (drawn[2 * place], bands[2 * place], high * (1 + approach)),
                (drawn[2 * place + 1], bands[2 * place + 1], low * (1 - approach / 2)),
            ):
                np.testing.assert_allclose(curve, expected, rtol=1e-5, atol=1e-9)
                # seeds at 0.8, 0.9, 1, 1.1 and 1.2: the 2.5 % quantile is 0.1 of the way from the first to the second
                lower, upper = ends(area, TIME)
                np.testing.assert_allclose(lower, 0.81 * expected, rtol=1e-5, atol=1e-9)
                np.testing.assert_allclose(upper, 1.19 * expected, rtol=1e-5, atol=1e-9)


def test_below_is_how_far_the_eigenvalues_went():
    for below in draw()[1]:
        largest, smallest = curves(below, np.array(SIZES))
        np.testing.assert_allclose(largest, 2 * np.array(HIGH), rtol=1e-5)
        np.testing.assert_allclose(smallest, np.array(LOW) / 2, rtol=1e-5, atol=1e-9)


def test_the_lemmas_ensemble_size_stands_in_the_figure():
    for below, asked, text in zip(draw()[1], LEMMA, ("lemma: M = 37.5k", "lemma: M = 178k"), strict=True):
        (line,) = [line for line in below.get_lines() if line.get_label() == "M of the lemma"]
        assert line.get_xdata()[0] == pytest.approx(asked, rel=1e-9)
        assert [note.get_text() for note in below.texts] == [text]
        assert below.get_xlim()[0] < SIZES[0]
        assert below.get_xlim()[1] > asked


def test_dotted_lines_are_the_edges_for_independent_columns():
    for below, d in zip(draw()[1], (10, 50), strict=True):
        largest, smallest = (line for line in below.get_lines() if line.get_linestyle() == ":")
        sizes = largest.get_xdata()
        np.testing.assert_allclose(largest.get_ydata(), (1 + np.sqrt(d / sizes)) ** 2)
        np.testing.assert_allclose(smallest.get_ydata(), np.maximum(0, 1 - np.sqrt(d / sizes)) ** 2)


def test_the_lemmas_interval_is_shaded_in_every_panel():
    for axes in draw().flat:
        (area,) = [patch for patch in axes.patches if patch.get_label() == "lemma's interval"]
        box = area.get_extents().transformed(axes.transData.inverted())
        assert (box.y0, box.y1) == pytest.approx((0.5, 1.5))


def test_everything_lies_within_its_panel_and_zero_is_shown():
    for axes in draw().flat:
        lower, upper = axes.get_ylim()
        assert lower < 0
        for line in axes.get_lines():
            values = np.asarray(line.get_ydata(), dtype=float)
            assert values.min() >= 0, line.get_label()
            assert values.max() <= upper, line.get_label()
        # equal steps near 0, and no jump of the slope at 1
        heights = axes.transData.transform([(1, y) for y in (0, 0.5, 1, 1.001, 10, 100)])[:, 1]
        steps = np.diff(heights)
        assert steps[0] == pytest.approx(steps[1])
        assert steps[2] / 0.001 == pytest.approx(steps[1] / 0.5, rel=0.01)
        assert steps[4] == pytest.approx(steps[3] + steps[2])


def test_labels():
    (above, right), (below, _) = draw()
    assert [axes.get_title() for axes in (above, right)] == ["d = 10, 100 actions", "d = 50, 1,000 actions"]
    assert (above.get_xlabel(), above.get_ylabel()) == ("round", "eigenvalue")
    assert (below.get_xlabel(), below.get_ylabel()) == ("ensemble size M", "eigenvalue")
    texts = [text.get_text() for text in right.get_legend().get_texts()]
    assert texts == ["M = 2", "M = 64", "M = 1024", "lemma's interval"]


def test_nothing_is_cut_off_or_drawn_over_another_panel():
    panels = draw()
    figure = panels[0, 0].figure
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    page = figure.bbox.padded(1)
    for axes in panels.flat:
        box = axes.get_tightbbox(renderer)
        assert page.containsx(box.x0)
        assert page.containsx(box.x1)
        assert page.containsy(box.y0)
        assert page.containsy(box.y1)
    boxes = [axes.get_window_extent(renderer) for axes in panels.flat]
    assert not [pair for pair in itertools.combinations(boxes, 2) if pair[0].overlaps(pair[1])]
    for axes in panels[1]:
        ticks = [text.get_window_extent(renderer) for text in axes.get_xticklabels() if text.get_text()]
        inside = [box for box in ticks if axes.bbox.x0 - 1 <= (box.x0 + box.x1) / 2 <= axes.bbox.x1 + 1]
        assert len(inside) >= 4
        assert not [pair for pair in itertools.combinations(inside, 2) if pair[0].overlaps(pair[1])]


def test_one_seed_has_no_band():
    for axes in draw(seeds=1).flat:
        assert not [area for area in axes.collections if isinstance(area, PolyCollection)]
