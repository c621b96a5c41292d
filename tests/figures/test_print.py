"""All figures at once: as wide as a column or a page, type that can be read there, nothing cut off; one palette for all."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import finetuned_study
import matplotlib.pyplot as plt
import numpy as np
import pytest
import xarray as xr
from figure_cases import CASES
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text

from ensemblepp import registry
from ensemblepp.config.checks import presentable
from ensemblepp.figures import style


def draw(case: str) -> Figure:
    """As it is saved."""
    dataset = CASES[case]()
    figure = registry.load(registry.presentation("figures", case.partition(",")[0]))(dataset)
    style.sign(figure, dataset)
    style.settle(figure)
    figure.canvas.draw()
    return figure


def written(figure: Figure) -> Iterator[Text]:
    """All text that is seen."""
    for axes in figure.axes:
        on_axes = [axes.title, axes.xaxis.label, axes.yaxis.label, *axes.get_xticklabels(), *axes.get_yticklabels()]
        yield from (text for text in (*axes.texts, *(on_axes if axes.axison else ())) if text.get_text() and text.get_visible())
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]
    yield from (text for legend in legends for text in (*legend.get_texts(), legend.get_title()) if text.get_text())
    yield from figure.texts
    yield from (text for text in (figure._supxlabel, figure._supylabel, figure._suptitle) if text is not None)


def test_every_figure_is_here():
    assert sorted({case.partition(",")[0] for case in CASES}) == sorted(presentable("figures"))


@pytest.mark.parametrize("case", CASES)
def test_a_figure_can_be_printed(case):
    """And agents and laws have the colours that they have everywhere."""
    figure = draw(case)
    assert figure.get_figwidth() in (5.5, 6.75)
    assert min(text.get_fontsize() for text in written(figure)) >= 7
    page = np.asarray(figure.canvas.buffer_rgba())[..., :3]
    for edge in (page[:1], page[-1:], page[:, :1], page[:, -1:]):
        assert (edge == 255).all(), "nothing but white touches the edge"
    boxes = [axes.get_window_extent() for axes in figure.axes if axes.axison]
    assert not [pair for pair in itertools.combinations(boxes, 2) if pair[0].overlaps(pair[1])]
    known = style.COLOURS | {law: colour for law, (colour, _) in style.LAWS.items()}
    lines = {line.get_label(): to_rgb(line.get_color()) for axes in figure.axes for line in axes.get_lines()}
    assert {label: colour for label, colour in lines.items() if known.get(label, colour) != pytest.approx(colour)} == {}
    named = [axes.yaxis.label.get_window_extent() for axes in figure.axes if axes.axison and axes.get_ylabel()]
    assert not [pair for pair in itertools.combinations(named, 2) if pair[0].overlaps(pair[1])]


@pytest.mark.parametrize("possible", [style.REGRET, style.SHARE, style.ANY])
def test_intervals_end_with_what_is_possible(possible):
    """Of 0.1 and 3.9: a mean of 2 and, with t = 12.7 for one degree of freedom, an interval of 24 to either side."""
    values = xr.DataArray([[0.1, 0.1], [3.9, 3.9]], {"time": [1, 2]}, ("seed", "time"))
    axes = plt.figure().subplots()
    style.band(axes, values, colour=(0, 0, 0), label="band", possible=possible)
    style.interval_line(axes, [1, 2], values, colour=(0, 0, 0), label="bars", possible=possible)
    area, bars = axes.collections
    for drawn in (area.get_paths()[0].vertices[:, 1], np.ravel([path[:, 1] for path in bars.get_segments()])):
        expected = np.clip([-22.14, 26.14], *possible)
        assert (drawn.min(), drawn.max()) == pytest.approx(tuple(expected), abs=0.01)


def test_reviews_are_named_by_agents_first_then_random_review_then_the_threshold():
    (legend,) = draw("review_workload").legends
    assert [text.get_text() for text in legend.get_texts()] == [
        *("Ensemble++", "Ensemble+", "Greedy"),
        *("random review", "fixed threshold"),
    ]


def test_intervals_of_frozen_and_finetuned_models_stand_apart_behind_the_last_round():
    dataset = finetuned_study.dataset()
    for axes in draw("frozen_or_finetuned").axes:
        bars = [found.get_segments()[0] for found in axes.collections]
        places = [float(bar[0, 0]) for bar in bars]
        assert len(set(places)) == len(places) >= 3
        assert dataset.attrs["horizon"] < min(places) < max(places) < axes.get_xlim()[1]
        assert all(0 <= bar[:, 1].min() <= bar[:, 1].max() <= 1 for bar in bars)


# --------------------------------------------------------------------------------------------------------- the palette

#: Every two colours are at least as far apart, in CIEDE2000, as a deuteranope sees them. A just visible difference is about 1.
APART = 10

#: How a deuteranope sees linear sRGB (Machado, Oliveira and Fernandes, 2009, severity 1).
DEUTERANOPE = np.array([[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]])
TO_XYZ = np.array([[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]])


def lab(colour: tuple[float, ...], seen: np.ndarray) -> np.ndarray:
    """CIELAB of an sRGB colour as it is seen, under D65."""
    encoded = np.asarray(colour)
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    x = TO_XYZ @ np.clip(seen @ linear, 0, 1) / [0.95047, 1, 1.08883]
    f = np.where(x > (6 / 29) ** 3, np.cbrt(x), x / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def difference(one: np.ndarray, other: np.ndarray) -> float:
    """CIEDE2000 (Sharma, Wu and Dalal, 2005)."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    g = 0.5 * (1 - np.sqrt(mean**7 / (mean**7 + 25**7)))
    a1, a2 = (1 + g) * a1, (1 + g) * a2
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = np.degrees(np.arctan2(b1, a1)) % 360, np.degrees(np.arctan2(b2, a2)) % 360
    turn = 0.0 if c1 * c2 == 0 else (h2 - h1 + 180) % 360 - 180
    hue = h1 + h2 if c1 * c2 == 0 else (h1 + turn / 2) % 360
    lightness, chroma = (l1 + l2) / 2, (c1 + c2) / 2
    t = 1 + sum(
        weight * np.cos(np.radians(times * hue + shift))
        for weight, times, shift in ((-0.17, 1, -30), (0.24, 2, 0), (0.32, 3, 6), (-0.20, 4, -63))
    )
    parts = (
        (l2 - l1) / (1 + 0.015 * (lightness - 50) ** 2 / np.sqrt(20 + (lightness - 50) ** 2)),
        (c2 - c1) / (1 + 0.045 * chroma),
        2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2)) / (1 + 0.015 * chroma * t),
    )
    angle = 60 * np.exp(-(((hue - 275) / 25) ** 2))
    rotation = -2 * np.sqrt(chroma**7 / (chroma**7 + 25**7)) * np.sin(np.radians(angle))
    return float(np.sqrt(sum(part**2 for part in parts) + rotation * parts[1] * parts[2]))


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, -1, 2), (50, 0, 0), 2.3669),
        ((50, 2.49, -0.001), (50, -2.49, 0.0011), 7.2195),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((50, 2.5, 0), (58, 24, 15), 19.4535),
        ((22.7233, 20.0904, -46.6940), (23.0331, 14.9730, -42.5619), 2.0373),
        ((90.8027, -2.0831, 1.4410), (91.1528, -1.6435, 0.0447), 1.4441),
    ],
)
def test_the_measure_has_the_published_values(one, other, expected):
    """Of the table that comes with CIEDE2000's definition."""
    assert difference(np.array(one), np.array(other)) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize("seen", [np.eye(3), DEUTERANOPE], ids=["all eyes", "deuteranope"])
def test_every_two_colours_are_told_apart(seen):
    colours = style.COLOURS | {law: colour for law, (colour, _) in style.LAWS.items()} | dict(enumerate(style.FREE))
    assert len(colours) == len(style.COLOURS) + len(style.LAWS) + len(style.FREE)
    places = {name: lab(colour, seen) for name, colour in colours.items()}
    near = {
        pair: found
        for pair in itertools.combinations(places, 2)
        if (found := difference(places[pair[0]], places[pair[1]])) < APART
    }
    assert not near
