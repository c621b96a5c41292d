"""Figures draw exactly the numbers of the dataset, with a label on every axis, and give the same bytes each time."""

from __future__ import annotations

import importlib
import itertools
import json
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection, QuadMesh
from matplotlib.figure import Figure

from ensemblepp.config.checks import presentable
from ensemblepp.figures import style
from ensemblepp.randomness.distributions import LAWS

FACTORS = ("environment", "agent", "reference", "perturbation", "ensemble_size")
LABELS = {"ts": "TS", "es": "ES", "linear": "Ensemble++", "neural": "Ensemble++", "greedy": "Greedy"}
TIME = np.array([1, 2, 5, 10, 50, 100])

#: Half-width of the 95 % interval of a mean of three numbers, per standard deviation: t in closed form for 2 degrees of
#: freedom, over sqrt(3).
HALF = 0.95 / np.sqrt(2 * 0.975 * 0.025) / np.sqrt(3)


def study(rates: dict[tuple[str, str, str, str, int], float], seeds: int = 3) -> xr.Dataset:
    """A dataset in which a run's regret grows by its rate every round: by 90 % of it at seed 0, 100 % at seed 1, ...

    With three seeds, a curve's mean is rate * time and its standard deviation rate * time / 10. Of 100 rounds, a run with
    rate r has 100 - 50 r without regret.
    """
    coordinates = {name: list(dict.fromkeys(key[place] for key in rates)) for place, name in enumerate(FACTORS)}
    coordinates["ensemble_size"].sort()
    shape = (*(len(values) for values in coordinates.values()), seeds, len(TIME))
    spread = np.arange(seeds)[:, None] / 10 + (0.9 if seeds > 1 else 1.0)
    regret, optimal = np.full(shape, np.nan, np.float32), np.full(shape, np.nan, np.float32)
    for key, rate in rates.items():
        place = tuple(coordinates[name].index(value) for name, value in zip(FACTORS, key, strict=True))
        regret[place] = rate * spread * TIME
        optimal[place] = TIME - rate * spread * TIME / 2
    specs = [
        {
            "environment": {"name": name, "kind": "moderation" if name == "posts" else name},
            "agent": {"name": agent, "kind": "greedy"},
        }
        for name in coordinates["environment"]
        for agent in coordinates["agent"]
    ]
    return xr.Dataset(
        {"regret": ((*FACTORS, "seed", "time"), regret), "optimal": ((*FACTORS, "seed", "time"), optimal)},
        coordinates
        | {
            "seed": range(seeds),
            "time": TIME,
            "title": ("environment", [f"Title of {name}" for name in coordinates["environment"]]),
            "label": ("agent", [LABELS[name] for name in coordinates["agent"]]),
        },
        {"study": "small", "scale": "smoke", "horizon": 100, "seeds": seeds, "specs": json.dumps(specs)},
    )


def with_constants(dataset: xr.Dataset, rates: dict[str, list[float]]) -> xr.Dataset:
    """`dataset` with the regret per round of constant actions, by environment; equal for all seeds."""
    actions = max(map(len, rates.values()))
    regret = np.full((len(rates), actions, dataset.sizes["seed"], len(TIME)), np.nan, np.float32)
    for row, environment in enumerate(dataset["environment"].values):
        for action, rate in enumerate(rates[environment]):
            regret[row, action] = rate * TIME
    dims = ("environment", "action_index", "seed", "time")
    return dataset.assign(constant_regret=(dims, regret)).assign_coords(action_index=range(actions))


def linear(seeds: int = 3) -> xr.Dataset:
    """TS, ES, and linear Ensemble++ with all laws, in two environments at two ensemble sizes."""
    rates: dict[tuple[str, str, str, str, int], float] = {}
    for scale, environment in ((1, "near"), (2, "far")):
        rates[environment, "ts", "none", "none", 0] = 0.5 * scale
        for size in (2, 8):
            rates[environment, "es", "coordinate", "sphere", size] = 4 * scale / size
            for (row, reference), (column, perturbation) in itertools.product(enumerate(LAWS), enumerate(LAWS)):
                rates[environment, "linear", reference, perturbation, size] = (1 + row + 0.1 * column) * scale / size
    return study(rates, seeds)


def classification(seeds: int = 3) -> xr.Dataset:
    """Ensemble++ at two sizes and Greedy on two data sets with two and three actions."""
    rates = {
        ("mushroom", "neural", "sphere", "sphere", 4): 0.2,
        ("mushroom", "neural", "sphere", "sphere", 8): 0.1,
        ("mushroom", "greedy", "none", "none", 0): 0.3,
        ("shuttle", "neural", "sphere", "sphere", 4): 0.6,
        ("shuttle", "neural", "sphere", "sphere", 8): 0.5,
        ("shuttle", "greedy", "none", "none", 0): 0.4,
    }
    return with_constants(study(rates, seeds), {"mushroom": [0.5, 0.48], "shuttle": [0.9, 0.22, 0.8]})


def moderation(seeds: int = 3) -> xr.Dataset:
    """Ensemble++ and Greedy on a stream with 60 % free posts: always block loses 0.3 a round, always publish 0.4."""
    rates = {("posts", "neural", "sphere", "sphere", 8): 0.2, ("posts", "greedy", "none", "none", 0): 0.25}
    return with_constants(study(rates, seeds), {"posts": [0.6 * 0.5, 0.4 * 1.0]})


#: A suitable dataset for each figure, and "x label | y label | title" of its panels, row by row.
FIGURES = {
    "linear_regret": (
        linear,
        [
            " | ES\ncumulative regret | Title of near",
            " |  | Title of far",
            "round | Ensemble++\ncumulative regret | ",
            "round |  | ",
        ],
    ),
    "laws_heatmap": (
        linear,
        [
            " | Title of near | M = 2",
            " |  | M = 8",
            "perturbation | Title of far | ",
            "perturbation |  | ",
            "mean final regret / TS |  | ",
        ],
    ),
    "nonlinear_regret": (classification, ["round | cumulative regret | Title of mushroom", "round |  | Title of shuttle"]),
    "moderation_accuracy": (
        moderation,
        ["round | accuracy so far | Title of posts", "round | reward over best constant | Title of posts"],
    ),
}


def draw(name: str, dataset: xr.Dataset) -> Figure:
    return importlib.import_module(f"ensemblepp.figures.{name}").draw(dataset)


def curve(axes: Axes, label: str, time: np.ndarray = TIME) -> np.ndarray:
    """The values of the one line with this label."""
    (line,) = [line for line in axes.get_lines() if line.get_label() == label]
    np.testing.assert_array_equal(line.get_xdata(), time)
    return np.asarray(line.get_ydata())


def band(axes: Axes, label: str) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper end of the interval around the one line with this label."""
    (line,) = [line for line in axes.get_lines() if line.get_label() == label]
    colour = mpl.colors.to_rgb(line.get_color())
    (area,) = [area for area in axes.collections if mpl.colors.to_rgb(area.get_facecolor()[0]) == pytest.approx(colour)]
    points = area.get_paths()[0].vertices
    ends = [[y for x, y in points if x == time] for time in TIME]
    return np.array([min(values) for values in ends]), np.array([max(values) for values in ends])


def ends(axes: Axes) -> list[str]:
    """What stands beside the ends of the lines, from below."""
    return [text.get_text() for text in sorted(axes.texts, key=lambda text: text.xy[1])]


# ------------------------------------------------------------------------------------------------------- all figures


def test_every_figure_is_tested():
    """Here, or in a file of its own that draws it."""
    others = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py") if path != Path(__file__))
    assert not [name for name in presentable("figures") if name not in FIGURES and name not in others]


def test_a_figure_says_what_it_was_made_from(tmp_path):
    make, _ = FIGURES["linear_regret"]
    figure = draw("linear_regret", make())
    style.sign(figure, make())
    assert figure.texts[-1].get_text() == "study small, scale smoke: 3 seeds, 100 rounds"


@pytest.mark.parametrize("name", FIGURES)
def test_axes_have_labels(name):
    make, labels = FIGURES[name]
    figure = draw(name, make())
    found = [f"{axes.get_xlabel()} | {axes.get_ylabel()} | {axes.get_title()}" for axes in figure.axes]
    assert found == labels


@pytest.mark.parametrize("name", ["nonlinear_regret", "moderation_accuracy"])
def test_every_curve_lies_within_its_panel(name):
    make, _ = FIGURES[name]
    for axes in draw(name, make()).axes:
        lower, upper = axes.get_ylim()
        for line in axes.get_lines():
            values = np.asarray(line.get_ydata(), dtype=float)
            assert lower <= values.min(), line.get_label()
            assert values.max() <= upper, line.get_label()


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_is_cut_off_or_drawn_over_another_panel(name):
    make, _ = FIGURES[name]
    figure = draw(name, make())
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    page = figure.bbox.padded(1)
    boxes = []
    for axes in figure.axes:
        box = axes.get_tightbbox(renderer)
        assert page.containsx(box.x0), axes
        assert page.containsx(box.x1), axes
        assert page.containsy(box.y0), axes
        assert page.containsy(box.y1), axes
        boxes.append(axes.get_window_extent(renderer))
    assert not [pair for pair in itertools.combinations(boxes, 2) if pair[0].overlaps(pair[1])]


@pytest.mark.parametrize("name", FIGURES)
def test_one_seed_has_no_band(name):
    make, _ = FIGURES[name]
    figure = draw(name, make(seeds=1))
    drawn = [collection for axes in figure.axes for collection in axes.collections]
    assert not [collection for collection in drawn if isinstance(collection, PolyCollection)]


# ----------------------------------------------------------------------------------------------------- linear bandits


def test_linear_curves_are_means_over_seeds():
    panels = np.array(draw("linear_regret", linear()).axes).reshape(2, 2)
    for column, scale in enumerate((1, 2)):
        es, ensemble = panels[:, column]
        for axes in (es, ensemble):
            np.testing.assert_allclose(curve(axes, "TS"), 0.5 * scale * TIME, rtol=1e-6)
        for size in (2, 8):
            np.testing.assert_allclose(curve(es, f"ES, M = {size}"), 4 * scale / size * TIME, rtol=1e-6)
            # of the 25 pairs of laws the paper's: gaussian (row 0) and sphere (column 1)
            np.testing.assert_allclose(curve(ensemble, f"Ensemble++, M = {size}"), 1.1 * scale / size * TIME, rtol=1e-6)
    for axes in panels.flat:
        # the ends of the lines say what they are, the greatest regret uppermost
        assert set(ends(axes)) == {"TS", "M = 8", "M = 2"}
        assert ends(axes)[-1] == "M = 2"


def test_bands_are_t_intervals_over_seeds():
    axes = draw("linear_regret", linear()).axes[0]
    for label, rate in (("ES, M = 2", 2.0), ("ES, M = 8", 0.5), ("TS", 0.5)):
        lower, upper = band(axes, label)
        np.testing.assert_allclose(lower, rate * TIME * (1 - 0.1 * HALF), rtol=1e-5)
        np.testing.assert_allclose(upper, rate * TIME * (1 + 0.1 * HALF), rtol=1e-5)


def test_heat_map_cells_are_ratios_to_ts():
    figure = draw("laws_heatmap", linear())
    panels = figure.axes[:4]
    for axes, size in zip(panels, (2, 8, 2, 8), strict=True):
        # rates over TS's rate; the environments' scale cancels. Rows are references, columns perturbations
        expected = (1 + np.arange(5)[:, None] + 0.1 * np.arange(5)) / size / 0.5
        (mesh,) = [collection for collection in axes.collections if isinstance(collection, QuadMesh)]
        np.testing.assert_allclose(mesh.get_array().reshape(5, 5), expected, rtol=1e-6)
        assert [float(text.get_text()) for text in axes.texts] == pytest.approx(expected.ravel(), abs=0.05 + 1e-6)
        assert (mesh.norm.vmin, mesh.norm.vmax) == pytest.approx((1 / 8, 8)), "one scale of colours for all figures"
    assert [text.get_text() for text in panels[2].get_xticklabels()] == list(LAWS)
    assert [text.get_text() for text in panels[2].get_yticklabels()] == list(LAWS)


def test_heat_map_of_an_agent_that_ran_some_laws_only():
    pairs = {("sphere", "cube"): 2.0, ("sphere", "gaussian"): 4.0, ("cube", "cube"): 6.0, ("cube", "gaussian"): 8.0}
    rates = {("near", "linear", *pair, 2): rate for pair, rate in pairs.items()}
    others = {("near", "ts", "none", "none", 0): 2.0, ("near", "es", "coordinate", "sphere", 2): 5.0}
    axes = draw("laws_heatmap", study(others | rates)).axes[0]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["sphere", "cube"]
    assert [text.get_text() for text in axes.get_xticklabels()] == ["gaussian", "cube"]
    assert [text.get_text() for text in axes.texts] == ["2.0", "1.0", "4.0", "3.0"]


# --------------------------------------------------------------------------------------------- nonlinear bandits


def test_regret_on_data_sets_beside_the_best_constant_action():
    mushroom, shuttle = draw("nonlinear_regret", classification()).axes
    expected = {
        mushroom: {"Ensemble++, M = 4": 0.2, "Ensemble++, M = 8": 0.1, "Greedy": 0.3, "best constant action": 0.48},
        shuttle: {"Ensemble++, M = 4": 0.6, "Ensemble++, M = 8": 0.5, "Greedy": 0.4, "best constant action": 0.22},
    }
    for axes, rates in expected.items():
        for label, rate in rates.items():
            np.testing.assert_allclose(curve(axes, label), rate * TIME, rtol=1e-6)
    (shared,) = shuttle.figure.legends
    assert [text.get_text() for text in shared.get_texts()] == list(expected[shuttle])


def test_accuracy_is_the_share_of_right_decisions():
    accuracy, gain = draw("moderation_accuracy", moderation()).axes
    # wrong decisions per round are half the regret's rate here; always block is wrong on 60 % of posts
    expected = {"Ensemble++": 0.9, "Greedy": 0.875, "always block": 0.4, "always publish": 0.6}
    later = TIME[0.02 * TIME[-1] <= TIME]
    assert len(later) < len(TIME)
    for label, share in expected.items():
        np.testing.assert_allclose(curve(accuracy, label, later), np.full(len(later), share), rtol=1e-6)
    # the best constant action, always block, loses 0.3 a round
    for label, rate in {"Ensemble++": 0.2, "Greedy": 0.25}.items():
        np.testing.assert_allclose(curve(gain, label), (0.3 - rate) * TIME, rtol=1e-5)
    (shared,) = gain.figure.legends
    names = ["Ensemble++", "Greedy", "always block", "always publish", "best constant action"]
    assert [text.get_text() for text in shared.get_texts()] == names
    lower, upper = accuracy.get_ylim()
    assert lower <= 0.4
    assert upper >= 0.9


# ---------------------------------------------------------------------------------------------------------------- style


def test_agents_keep_their_colours_and_others_get_free_ones():
    own = {label: style.colour(label) for label in style.COLOURS}
    assert len(set(own.values())) == len(own)
    others = [style.colour("Mine", position) for position in range(len(style.FREE))]
    assert len(set(others)) == len(style.FREE)
    assert not set(others) & set(own.values())


def test_shades_grow_darker_with_the_ensemble_size():
    sizes, texts, shades = zip(*style.by_size("ES", [2, 4, 8, 16, 32]), strict=True)
    lightness = [sum(shade[:3]) for shade in shades]
    assert sizes == (2, 4, 8, 16, 32)
    assert texts[0] == "ES, M = 2"
    assert lightness == sorted(lightness, reverse=True)
    assert shades[-1][:3] == pytest.approx(style.colour("ES"))
    assert style.by_size("ES", [8]) == [(8, "ES", style.colour("ES"))], "one size needs no mention"
