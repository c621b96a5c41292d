"""Figures of the linear studies: exactly the means, intervals and medians of the dataset, complete legends, nothing cut off."""

from __future__ import annotations

import importlib
import itertools
import json
from collections.abc import Mapping

import matplotlib as mpl
import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection, QuadMesh
from matplotlib.figure import Figure
from scipy import stats

from ensemblepp.figures import style
from ensemblepp.randomness.distributions import LAWS

FACTORS = ("environment", "agent", "reference", "perturbation", "ensemble_size")
PERTURBATIONS = (*LAWS, "raw_gaussian")
TIME = np.array([10, 50, 100])
LABELS = {
    "ts": "TS",
    "es": "ES",
    "linear": "Ensemble++",
    "ours": "Ensemble++",
    "members": "ES (independent members)",
    "linucb": "LinUCB",
    "greedy": "Greedy",
    "mine": "Mine",
}
TITLES = {
    "d10-100": "d = 10, 100 actions",
    "d10-1000": "d = 10, 1,000 actions",
    "d40-100": "d = 40, 100 actions",
    "d40-1000": "d = 40, 1,000 actions",
    "narrow": "d = 40, 1,000 actions, features to 1/√d",
}
OPTIONS = {
    name: {"dimension": int(title.split()[2].rstrip(",")), "actions": int(title.split()[3].replace(",", ""))}
    for name, title in TITLES.items()
}

Key = tuple[str, str, str, str, int]


def study(final: Mapping[Key, np.ndarray]) -> xr.Dataset:
    """A dataset of horizon 100 from the regret at the horizon of every run, one number per seed; regret grows linearly."""
    coordinates = {name: list(dict.fromkeys(key[place] for key in final)) for place, name in enumerate(FACTORS)}
    coordinates["ensemble_size"].sort()
    seeds = len(next(iter(final.values())))
    regret = np.full((*(len(values) for values in coordinates.values()), seeds, len(TIME)), np.nan)
    for key, values in final.items():
        place = tuple(coordinates[name].index(value) for name, value in zip(FACTORS, key, strict=True))
        regret[place] = np.asarray(values)[:, None] * TIME / TIME[-1]
    environments = coordinates["environment"]
    return xr.Dataset(
        {"regret": ((*FACTORS, "seed", "time"), regret)},
        coordinates
        | {
            "seed": range(seeds),
            "time": TIME,
            "title": ("environment", [TITLES[name] for name in environments]),
            "label": ("agent", [LABELS[name] for name in coordinates["agent"]]),
        },
        {
            "study": "linear",
            "scale": "quick",
            "seeds": seeds,
            "horizon": 100,
            "specs": json.dumps(
                [
                    {
                        "environment": {"name": name, "kind": "linear_finite", "options": OPTIONS[name]},
                        "agent": {"name": "ts", "kind": "linear_ts"},
                    }
                    for name in environments
                ]
            ),
        },
    )


def regrets(*keys: Key, seeds: int = 5) -> dict[Key, np.ndarray]:
    """Random regrets, as heavy-tailed as the real ones; a Gaussian perturbation has the numbers of the sphere's."""
    found = {}
    for key in keys:
        source = np.random.default_rng([len(found), 1])
        found[key] = np.exp(source.normal(4, 1, seeds))
    for key in keys:
        if key[3] == "gaussian":
            found[key] = found[(*key[:3], "sphere", key[4])]
    return found


def laws(
    seeds: int = 5, sizes: tuple[int, ...] = (2, 8), environments: tuple[str, ...] = ("d10-100", "d40-1000")
) -> xr.Dataset:
    """TS and all pairs of laws."""
    keys = [
        (environment, "linear", reference, perturbation, size)
        for environment, reference, perturbation, size in itertools.product(environments, LAWS, PERTURBATIONS, sizes)
    ]
    return study(regrets(*((environment, "ts", "none", "none", 0) for environment in environments), *keys, seeds=seeds))


def ensembles(seeds: int = 5, sizes: tuple[int, ...] = (2, 8, 128, 1024)) -> xr.Dataset:
    """TS, Ensemble++ and ES at several sizes in two environments."""
    keys: list[Key] = []
    for environment in ("d10-100", "d40-1000"):
        keys.append((environment, "ts", "none", "none", 0))
        keys += [(environment, agent, "none", "none", size) for agent in ("ours", "es") for size in sizes]
    return study(regrets(*keys, seeds=seeds))


def baselines(seeds: int = 5) -> xr.Dataset:
    """Three agents without and two with an ensemble, and one of the user's own."""
    keys: list[Key] = []
    for environment in ("d10-100", "narrow"):
        keys += [(environment, agent, "none", "none", 0) for agent in ("ts", "linucb", "greedy", "mine")]
        keys += [(environment, "members", "none", "none", size) for size in (4, 16, 64)]
        keys += [(environment, "ours", "gaussian", "sphere", size) for size in (4, 16, 64)]
    return study(regrets(*keys, seeds=seeds))


#: Excess per round by (environment, M): what the rules make of it is known.
EXCESS = {
    "d10-100": {2: 0.5, 4: 0.02, 8: 0.01, 16: 0.0},  # both: 4
    "d10-1000": {2: 0.015, 4: 0.5, 8: -0.3, 16: 0.01},  # two-sided: 2, by luck; one-sided: 8
    "d40-100": {2: 0.5, 4: -0.5, 8: -0.5, 16: -0.5},  # two-sided: none, better is a failure too; one-sided: 4
    "d40-1000": {2: 0.5, 4: 0.5, 8: 0.01, 16: 0.3},  # two-sided: 8; one-sided: none
}
CHOSEN = {"two-sided": {"d10-100": 4, "d10-1000": 2, "d40-100": None, "d40-1000": 8}}
CHOSEN["one-sided"] = {"d10-100": 4, "d10-1000": 8, "d40-100": 4, "d40-1000": None}


def minimum(seeds: int = 5, noise: float = 0.0) -> xr.Dataset:
    """TS and Ensemble++, whose excess over it is `EXCESS`, equal for all seeds up to noise of mean zero."""
    source = np.random.default_rng(5)
    final: dict[Key, np.ndarray] = {}
    for environment, excess in EXCESS.items():
        final[environment, "ts", "none", "none", 0] = yardstick = source.uniform(100, 200, seeds)
        for size, value in excess.items():
            disturbed = source.normal(0, noise, seeds)
            final[environment, "ours", "gaussian", "sphere", size] = yardstick + 100 * (value + disturbed - disturbed.mean())
    return study(final)


#: A suitable dataset for each figure, and "x label | y label | title" of its panels.
FIGURES = {
    "regret_by_size": (
        laws,
        [
            " | d = 10,\n100 actions\nfinal regret | gaussian, sphere",
            *[f" |  | {title}" for title in ("cube", "coordinate", "sparse", "N(0, I/M)")],
            "ensemble size M | d = 40,\n1,000 actions\nfinal regret | ",
            *["ensemble size M |  | "] * 4,
        ],
    ),
    "es_regret": (
        ensembles,
        [
            text
            for title in ("d = 10, 100 actions", "d = 40, 1,000 actions")
            for text in (f"round | cumulative regret | {title}", f"ensemble size M | final regret | {title}")
        ],
    ),
    "linear_baselines": (
        baselines,
        [
            "ensemble size M | final regret | d = 10, 100 actions",
            "ensemble size M |  | d = 40, 1,000 actions,\nfeatures to 1/√d",
        ],
    ),
    "minimum_size": (
        minimum,
        [
            "dimension d | M at which Ensemble++\nmatches TS | paper's rule: first M with |excess| ≤ 0.02",
            "dimension d |  | one-sided rule: excess ≤ 0.02 from M on",
        ],
    ),
    "excess_by_size": (
        minimum,
        [
            " |  | d = 10,\n100 actions",
            " |  | d = 40,\n100 actions",
            "ensemble size M |  | d = 10,\n1,000 actions",
            "ensemble size M |  | d = 40,\n1,000 actions",
        ],
    ),
}


def draw(name: str, dataset: xr.Dataset) -> Figure:
    return importlib.import_module(f"ensemblepp.figures.{name}").draw(dataset)


def interval(values: np.ndarray, *, possible: float = 0.0) -> tuple[float, float]:
    """scipy's t interval of a mean, from the least value that is possible on."""
    lower, upper = stats.t.interval(0.95, len(values) - 1, loc=values.mean(), scale=stats.sem(values))
    return max(lower, possible), upper


def runs(dataset: xr.Dataset, *key: str | int) -> np.ndarray:
    """Regret at the horizon of one run, by seed."""
    return dataset["regret"].sel(dict(zip(FACTORS, key, strict=True))).isel(time=-1).values


def line(axes: Axes, label: str) -> mpl.lines.Line2D:
    (found,) = [line for line in axes.get_lines() if line.get_label() == label]
    return found


def bars(axes: Axes) -> dict[tuple[float, ...], np.ndarray]:
    """The vertical bars of a panel by colour: rows (place, lower end, upper end)."""
    found = {}
    for collection in axes.collections:
        if isinstance(collection, LineCollection):
            ends = [(path[0, 0], path[0, 1], path[1, 1]) for path in collection.get_segments()]
            found[tuple(collection.get_color()[0][:3])] = np.array(ends)
    return found


def level_bands(axes: Axes) -> list[tuple[float, float]]:
    """Lower and upper end of the horizontal bands of a panel."""
    return [(patch.get_y(), patch.get_y() + patch.get_height()) for patch in axes.patches]


def legend(figure: Figure) -> list[str]:
    """The texts of the one legend, which is the figure's or that of a panel without axes."""
    (found,) = [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]
    return [text.get_text() for text in found.get_texts()]


def check_line(axes: Axes, label: str, sizes: list[int], values: list[np.ndarray]) -> None:
    """The line is the mean of `values` at `sizes`, up to a shift that leaves no doubt which; its bars are the t intervals."""
    drawn = line(axes, label)
    np.testing.assert_allclose(drawn.get_ydata(), [of.mean() for of in values], rtol=1e-6)
    assert (np.abs(np.log2(np.asarray(drawn.get_xdata()) / sizes)) < 0.3).all()
    ends = bars(axes)[mpl.colors.to_rgb(drawn.get_color())]
    np.testing.assert_allclose(ends[:, 0], drawn.get_xdata())
    np.testing.assert_allclose(ends[:, 1:], [interval(of) for of in values], rtol=1e-6)


# ------------------------------------------------------------------------------------------------------- all figures


@pytest.mark.parametrize("name", FIGURES)
def test_axes_have_labels(name):
    make, labels = FIGURES[name]
    found = [f"{axes.get_xlabel()} | {axes.get_ylabel()} | {axes.get_title()}" for axes in draw(name, make()).axes]
    assert found == labels


@pytest.mark.parametrize("name", [*FIGURES, "laws_heatmap", "linear_regret"])
def test_nothing_is_cut_off_or_drawn_over_another_panel(name):
    """At the paper's ensemble sizes too, where the heat-map has ten columns of panels."""
    ten = tuple(2**power for power in range(1, 11))
    wide = {
        "regret_by_size": lambda: laws(sizes=ten, environments=("d10-100", "d10-1000", "d40-1000")),
        "laws_heatmap": lambda: laws(sizes=ten),
        "es_regret": lambda: ensembles(sizes=ten),
        "linear_regret": lambda: ensembles(sizes=ten).isel(environment=[1]),
    }
    figure = draw(name, wide[name]() if name in wide else FIGURES[name][0]())
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    page = figure.bbox.padded(1)
    for drawn in (*figure.axes, *figure.legends):
        box = drawn.get_tightbbox(renderer)
        assert page.containsx(box.x0), drawn
        assert page.containsx(box.x1), drawn
        assert page.containsy(box.y0), drawn
        assert page.containsy(box.y1), drawn
    boxes = [axes.get_window_extent(renderer) for axes in figure.axes]
    assert not [pair for pair in itertools.combinations(boxes, 2) if pair[0].overlaps(pair[1])]
    labels = [axes.yaxis.label.get_window_extent(renderer) for axes in figure.axes if axes.get_ylabel()]
    assert not [pair for pair in itertools.combinations(labels, 2) if pair[0].overlaps(pair[1])]


@pytest.mark.parametrize("name", FIGURES)
def test_one_seed_has_no_interval_of_its_mean(name):
    make, _ = FIGURES[name]
    panels = draw(name, make(seeds=1)).axes
    if name == "minimum_size":  # bootstrap intervals, all of length zero
        for axes in panels:
            assert all((ends[:, 1] == ends[:, 2]).all() for ends in bars(axes).values())
        return
    for axes in panels:
        assert not [found for found in axes.collections if isinstance(found, PolyCollection | LineCollection)]


# ------------------------------------------------------------------------------------------------- laws against M


def test_a_line_for_every_reference_and_a_column_for_every_perturbation():
    dataset = laws()
    panels = np.array(draw("regret_by_size", dataset).axes).reshape(2, 5)
    for row, environment in zip(panels, ("d10-100", "d40-1000"), strict=True):
        for axes, perturbation in zip(row, ("sphere", "cube", "coordinate", "sparse", "raw_gaussian"), strict=True):
            for reference in LAWS:
                values = [runs(dataset, environment, "linear", reference, perturbation, size) for size in (2, 8)]
                check_line(axes, reference, [2, 8], values)
            yardstick = runs(dataset, environment, "ts", "none", "none", 0)
            assert line(axes, "TS").get_ydata()[0] == pytest.approx(yardstick.mean())
            assert level_bands(axes) == [pytest.approx(interval(yardstick))]
            assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert legend(panels[0, 0].figure) == [*LAWS, "TS"]
    assert len({style.LAWS[law][0] for law in LAWS} | {style.colour("TS")}) == len(LAWS) + 1


def test_perturbations_share_a_column_only_if_all_their_runs_are_equal():
    dataset = laws()
    place = {"environment": "d40-1000", "agent": "linear", "reference": "cube", "perturbation": "gaussian", "ensemble_size": 8}
    dataset["regret"].loc[place | {"seed": 3}] += 1e-3
    titles = [axes.get_title() for axes in draw("regret_by_size", dataset).axes]
    assert titles[:6] == ["gaussian", "sphere", "cube", "coordinate", "sparse", "N(0, I/M)"]


def test_laws_without_thompson_sampling_have_no_line_of_it():
    figure = draw("regret_by_size", laws().drop_sel(agent="ts").dropna("reference", how="all"))
    assert legend(figure) == list(LAWS)


# ---------------------------------------------------------------------------------------------- heat-map at paper scale


def test_heat_map_of_many_ensemble_sizes_shows_four():
    ten = tuple(2**power for power in range(1, 11))
    dataset = laws(sizes=ten, environments=("d40-1000",))
    four = (2, 16, 128, 1024)
    panels = draw("laws_heatmap", dataset).axes[:4]
    yardstick = runs(dataset, "d40-1000", "ts", "none", "none", 0).mean()
    for axes, size in zip(panels, four, strict=True):
        expected = [
            [runs(dataset, "d40-1000", "linear", row, column, size).mean() / yardstick for column in PERTURBATIONS]
            for row in LAWS
        ]
        (mesh,) = [found for found in axes.collections if isinstance(found, QuadMesh)]
        np.testing.assert_allclose(mesh.get_array().reshape(5, 6), expected, rtol=1e-6)
        shown = [f"{value:.1f}" if value < 9.95 else f"{value:.0f}" for value in np.ravel(expected)]
        assert [text.get_text() for text in axes.texts] == shown
    assert [axes.get_title() for axes in panels] == [f"M = {size}" for size in four]
    assert [text.get_text() for text in panels[0].get_xticklabels()] == [*LAWS, "N(0, I/M)"]
    assert [text.get_text() for text in panels[0].get_yticklabels()] == list(LAWS)


@pytest.mark.parametrize("environments", [1, 2])
@pytest.mark.parametrize("sizes", [1, 2, 10])
def test_heat_map_of_any_grid_is_whole_as_it_is_saved(sizes, environments):
    """Signed and settled, nothing but white touches the edge of the page."""
    dataset = laws(sizes=tuple(2**power for power in range(1, sizes + 1)), environments=tuple(TITLES)[:environments])
    figure = draw("laws_heatmap", dataset)
    style.sign(figure, dataset)
    style.settle(figure)
    figure.canvas.draw()
    page = np.asarray(figure.canvas.buffer_rgba())[..., :3]
    for edge in (page[:3], page[-3:], page[:, :3], page[:, -3:]):
        assert (edge == 255).all()


# ------------------------------------------------------------------------------------------------ ES by M and over time


def test_ensemble_sampling_over_time_at_moderate_sizes():
    dataset = ensembles()
    figure = draw("es_regret", dataset)
    for axes, environment in zip(figure.axes[::2], ("d10-100", "d40-1000"), strict=True):
        assert [line.get_label() for line in axes.get_lines()] == ["TS", "ES, M = 8", "ES, M = 128"]
        for label, agent, size in (("TS", "ts", 0), ("ES, M = 8", "es", 8), ("ES, M = 128", "es", 128)):
            mean = runs(dataset, environment, agent, "none", "none", size).mean()
            np.testing.assert_allclose(line(axes, label).get_ydata(), mean * TIME / 100, rtol=1e-6)
        assert axes.get_ylim()[0] == 0
    medians = ["Ensemble++", "Ensemble++, median", "ES", "ES, median"]
    assert legend(figure) == ["TS", "ES, M = 8", "ES, M = 128", *medians]


def test_without_a_moderate_size_all_are_shown():
    axes = draw("es_regret", ensembles(sizes=(2, 4))).axes[0]
    assert [line.get_label() for line in axes.get_lines()] == ["TS", "ES, M = 2", "ES, M = 4"]


def test_a_lone_moderate_size_is_named():
    figure = draw("es_regret", ensembles(sizes=(2, 8)))
    assert [line.get_label() for line in figure.axes[0].get_lines()] == ["TS", "ES, M = 8"]
    assert legend(figure) == ["TS", "ES, M = 8", "Ensemble++", "Ensemble++, median", "ES", "ES, median"]


def test_final_regret_of_ensembles_has_means_intervals_and_medians():
    dataset, sizes = ensembles(), [2, 8, 128, 1024]
    for axes, environment in zip(draw("es_regret", dataset).axes[1::2], ("d10-100", "d40-1000"), strict=True):
        for agent, label in (("ours", "Ensemble++"), ("es", "ES")):
            values = [runs(dataset, environment, agent, "none", "none", size) for size in sizes]
            check_line(axes, label, sizes, values)
            np.testing.assert_allclose(line(axes, f"{label}, median").get_ydata(), [sorted(of)[2] for of in values], rtol=1e-6)
        yardstick = runs(dataset, environment, "ts", "none", "none", 0)
        assert line(axes, "TS").get_ydata()[0] == pytest.approx(yardstick.mean())
        assert level_bands(axes) == [pytest.approx(interval(yardstick))]


# ------------------------------------------------------------------------------------------------------- baselines


def test_agents_with_an_ensemble_are_lines_and_the_others_levels():
    dataset = baselines()
    figure = draw("linear_baselines", dataset)
    single = {"ts": "TS", "linucb": "LinUCB", "greedy": "Greedy", "mine": "Mine"}
    for axes, environment in zip(figure.axes, ("d10-100", "narrow"), strict=True):
        for agent, laws in (("members", ("none", "none")), ("ours", ("gaussian", "sphere"))):
            values = [runs(dataset, environment, agent, *laws, size) for size in (4, 16, 64)]
            check_line(axes, LABELS[agent], [4, 16, 64], values)
        bands = level_bands(axes)
        for place, (agent, label) in enumerate(single.items()):
            values = runs(dataset, environment, agent, "none", "none", 0)
            assert line(axes, label).get_ydata()[0] == pytest.approx(values.mean())
            assert bands[place] == pytest.approx(interval(values))
    assert legend(figure) == [*single.values(), "ES (independent members)", "Ensemble++"]
    drawn = [line(figure.axes[0], label) for label in legend(figure)]
    assert len({mpl.colors.to_rgb(found.get_color()) for found in drawn}) == len(drawn), "no two agents share a colour"


# ---------------------------------------------------------------------------------------------------- minimum size


def test_minimum_sizes_are_those_of_the_rules_and_none_stands_above_the_grid():
    figure = draw("minimum_size", minimum())
    for axes, rule in zip(figure.axes[:2], CHOSEN, strict=True):
        for actions in (100, 1000):
            expected = [CHOSEN[rule][f"d{d}-{actions}"] for d in (10, 40)]
            found = line(axes, f"{actions:,} actions")
            assert list(found.get_ydata()) == [size or 32 for size in expected]
            assert (np.abs(np.log2(np.asarray(found.get_xdata()) / [10, 40])) < 0.1).all()
            # without noise every bootstrap sample is the sample
            ends = bars(axes)[mpl.colors.to_rgb(found.get_color())]
            assert ends[:, 1].tolist() == ends[:, 2].tolist() == list(found.get_ydata())
        hollow = [list(line.get_ydata()) for line in axes.get_lines() if line.get_color() == "white"]
        assert list(itertools.chain(*hollow)) == [32] * list(CHOSEN[rule].values()).count(None)
        assert (axes.get_ylim()[0] < 2) & (axes.get_ylim()[1] > 32)
    ticks = {text.get_position()[1]: text.get_text() for text in figure.axes[0].get_yticklabels()}
    assert ticks == {2: "2", 4: "4", 8: "8", 16: "16", 32: "> 16"}
    assert legend(figure) == ["100 actions", "1,000 actions", "M = d"]


def test_minimum_sizes_have_the_bootstrap_interval_over_seeds():
    """Exactly, by a loop over the samples of the module's own generator: a sample holds every seed as often as drawn."""
    dataset = minimum(seeds=6, noise=0.3)
    axes = draw("minimum_size", dataset).axes[1]
    counts = np.random.default_rng(0).multinomial(6, [1 / 6] * 6, size=10_000)
    lengths = []
    for actions in (100, 1000):
        found = line(axes, f"{actions:,} actions")
        for place, d in enumerate((10, 40)):
            environment = f"d{d}-{actions}"
            yardstick = runs(dataset, environment, "ts", "none", "none", 0)
            excess = [
                runs(dataset, environment, "ours", "gaussian", "sphere", size) - yardstick for size in EXCESS[environment]
            ]
            sizes = []
            for count in counts:
                means = [np.repeat(values, count).mean() / 100 for values in excess]
                passing = [all(mean <= 0.02 for mean in means[start:]) for start in range(4)]
                sizes.append([2, 4, 8, 16, 32][passing.index(True) if True in passing else 4])
            lower, upper = sorted(sizes)[250 - 1], sorted(sizes)[9750 - 1]
            ends = bars(axes)[mpl.colors.to_rgb(found.get_color())][place]
            assert tuple(ends[1:]) == (lower, upper)
            lengths.append(upper - lower)
    assert np.count_nonzero(lengths) >= 2, "intervals that say something"


def test_excess_per_round_with_interval_tolerance_and_the_rules_sizes():
    dataset = minimum(noise=0.05)
    figure = draw("excess_by_size", dataset)
    for axes, environment in zip(figure.axes, ("d10-100", "d40-100", "d10-1000", "d40-1000"), strict=True):
        yardstick = runs(dataset, environment, "ts", "none", "none", 0)
        values = [(runs(dataset, environment, "ours", "gaussian", "sphere", size) - yardstick) / 100 for size in (2, 4, 8, 16)]
        np.testing.assert_allclose([of.mean() for of in values], list(EXCESS[environment].values()), atol=1e-9)
        drawn = line(axes, "Ensemble++")
        np.testing.assert_allclose(drawn.get_ydata(), [of.mean() for of in values], atol=1e-9)
        np.testing.assert_allclose(
            bars(axes)[mpl.colors.to_rgb(drawn.get_color())][:, 1:],
            [interval(of, possible=-np.inf) for of in values],
            rtol=1e-5,
            atol=1e-9,
        )
        assert level_bands(axes) == [pytest.approx((-0.02, 0.02))]


def test_rings_stand_at_the_sizes_that_the_rules_give():
    figure = draw("excess_by_size", minimum())
    for axes, environment in zip(figure.axes, ("d10-100", "d40-100", "d10-1000", "d40-1000"), strict=True):
        for rule, label in (("two-sided", "M, paper's rule"), ("one-sided", "M, one-sided rule")):
            rings = [line for line in axes.get_lines() if line.get_label() == label]
            size = CHOSEN[rule][environment]
            assert [ring.get_xdata()[0] for ring in rings] == ([size] if size else [])
            assert [ring.get_ydata()[0] for ring in rings] == pytest.approx([EXCESS[environment][size]] if size else [])
    assert sorted(legend(figure)) == ["Ensemble++", "M, one-sided rule", "M, paper's rule", "± 0.02"]


# ------------------------------------------------------------------------------------------------------------- axes


@pytest.mark.parametrize(
    ("values", "shown"), [((3, 4000), [5, 10, 20, 50, 100, 200, 500, 1000, 2000]), ((60, 110), range(60, 101, 10))]
)
def test_regret_axis_has_plain_numbers_however_little_it_spans(values, shown):
    axes = mpl.pyplot.figure().subplots()
    axes.plot([0, 1], values)
    style.regret_axis(axes)
    axes.figure.canvas.draw()
    lower, upper = axes.get_ylim()
    found = [text.get_text() for text in axes.get_yticklabels() if lower <= text.get_position()[1] <= upper]
    assert set(map(str, shown)) <= set(found)
    assert all("e" not in text for text in found)


def test_regret_axis_ends_below_the_lowest_mean_and_not_with_an_interval_that_nears_zero():
    figure = mpl.pyplot.figure()
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, mean in ((left, 30.0), (right, 60.0)):
        axes.plot([0, 1], [mean, 90])
        axes.vlines([0, 1], [1e-6, 1e-3], [mean + 5, 100])
    style.regret_axis(left)
    assert left.get_ylim() == right.get_ylim()
    assert left.get_ylim()[0] == pytest.approx(10)
    assert left.get_ylim()[1] > 100


def test_size_axis_names_every_size_or_every_other_power_of_two():
    axes = mpl.pyplot.figure().subplots()
    style.size_axis(axes, [2, 3, 6])
    assert [text.get_text() for text in axes.get_xticklabels()] == ["2", "3", "6"]
    style.size_axis(axes, [2, 3, 4, 6, 8, 12, 16, 32])
    assert [text.get_text() for text in axes.get_xticklabels()] == ["2", "8", "32"]
