"""Figures of the nonlinear studies: exactly the numbers of the dataset, agents told apart, one legend, nothing cut off."""

from __future__ import annotations

import importlib
import itertools
import json
from collections.abc import Callable, Mapping

import matplotlib as mpl
import numpy as np
import pytest
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.figure import Figure
from scipy import stats

from ensemblepp.figures import style
from ensemblepp.randomness.distributions import LAWS

FACTORS = ("environment", "agent", "reference", "perturbation", "ensemble_size")
Key = tuple[str, str, str, str, int]

TIME = np.array([1, 2, 4, 10, 40, 70, 100])

#: What a seed's regret is multiplied by.
SEEDS = np.array([0.8, 0.9, 1.0, 1.3])

LABELS = {
    "ensemble++": "Ensemble++",
    "ensemble+": "Ensemble+",
    "epinet": "EpiNet",
    "greedy": "Greedy",
    "lmcts": "LMCTS",
    "epsilon-greedy": "ε-greedy",
    "bootstrap": "Bootstrap",
    "dropout": "MC dropout",
    "neural-linear": "NeuralLinear",
    "neural-ucb": "NeuralUCB",
    "neural-ts": "NeuralTS",
    "released": "Ensemble+ (released)",
    "repaired": "Ensemble+ (repaired)",
    "c500": "C = 500",
    "c1000": "C = 1,000",
    "c10000": "C = 10,000",
    "mine": "Mine",
} | {f"update-{law}": f"Ensemble++ ({law} update)" for law in LAWS}
KINDS = {"ensemble++": "neural_ensemblepp", "ensemble+": "ensembleplus", "epinet": "epinet", "greedy": "greedy"}


def study(rates: Mapping[Key, float], seeds: int = 4, together: int = 1) -> xr.Dataset:
    """A dataset of 100 rounds in which a run's regret grows by its rate every round, times `SEEDS`.

    Of the rounds, half as many as the regret are no optimal ones. With `together` seeds in a block.
    """
    coordinates = {name: list(dict.fromkeys(key[place] for key in rates)) for place, name in enumerate(FACTORS)}
    coordinates["ensemble_size"].sort()
    shape = (*(len(values) for values in coordinates.values()), seeds, len(TIME))
    regret = np.full(shape, np.nan, np.float32)
    for key, rate in rates.items():
        regret[tuple(coordinates[name].index(value) for name, value in zip(FACTORS, key, strict=True))] = (
            rate * SEEDS[:seeds, None] * TIME
        )
    specs = [
        {
            "environment": {"name": environment, **_environment(environment)},
            "agent": {"name": agent, **_agent(agent, environment)},
            "ensemble_size": size,
            "seeds": [first, first + together - 1],
        }
        for (environment, agent, size) in dict.fromkeys((key[0], key[1], key[4]) for key in rates)
        for first in range(0, seeds, together)
    ]
    dims = (*FACTORS, "seed", "time")
    return xr.Dataset(
        {"regret": (dims, regret), "optimal": (dims, TIME - regret / 2)},
        coordinates
        | {
            "seed": range(seeds),
            "time": TIME,
            "title": ("environment", [name.capitalize() for name in coordinates["environment"]]),
            "label": ("agent", [LABELS[name] for name in coordinates["agent"]]),
        },
        {"study": "small", "scale": "smoke", "horizon": 100, "seeds": seeds, "specs": json.dumps(specs)},
    )


def _environment(name: str) -> dict[str, object]:
    kind, _, count = name.partition("-x")
    kind = "moderation" if name.startswith("moderation") else kind.replace("-", "_")
    return {"kind": kind, "options": {"dimension": 100, "candidates": int(count or 1000)}}


def _agent(name: str, environment: str) -> dict[str, object]:
    loss = "cross_entropy" if environment.startswith("neural") else "squared"
    update = {"update": name.removeprefix("update-") if name.startswith("update-") else "coordinate"}
    options = {"hidden": [64, 64], "loss": loss} | (update if name.startswith(("ensemble++", "update-")) else {})
    return {"kind": KINDS.get(name, "lmcts"), "options": options}


def with_constants(dataset: xr.Dataset, rates: Mapping[str, list[float]]) -> xr.Dataset:
    """`dataset` with the regret per round of two constant actions in some of its environments."""
    regret = np.full((dataset.sizes["environment"], 2, dataset.sizes["seed"], len(TIME)), np.nan, np.float32)
    for environment, values in rates.items():
        regret[list(dataset["environment"].values).index(environment)] = np.multiply.outer(values, TIME)[:, None]
    return dataset.assign(constant_regret=(("environment", "action_index", "seed", "time"), regret)).assign_coords(
        action_index=range(2)
    )


def curves(
    environments: tuple[str, ...] = ("quadratic", "neural", "shuttle", "moderation-gpt2"),
    agents: tuple[str, ...] = ("ensemble++", "ensemble+", "epinet", "greedy"),
    seeds: int = 4,
) -> xr.Dataset:
    """Agents in environments: agent number a has rate 0.1 (a + 1). EpiNet does not moderate."""
    rates = {
        (environment, agent, "sphere" if agent == "ensemble++" else "none", "none", 0 if agent == "greedy" else 8): 0.1 * place
        for environment in environments
        for place, agent in enumerate(agents, 1)
        if not (agent == "epinet" and environment.startswith("moderation"))
    }
    # blocking loses 0.5 on the 60 % free posts, publishing 1 on the others
    constants = {"shuttle": [0.9, 0.22], "moderation-gpt2": [0.6 * 0.5, 0.4 * 1.0]}
    found = {environment: rates for environment, rates in constants.items() if environment in environments}
    return with_constants(study(rates, seeds), found)


def many(seeds: int = 4) -> xr.Dataset:
    """Every agent with a colour of its own for nonlinear bandits but Ensemble+ and EpiNet, in five environments."""
    others = ("greedy", "lmcts", "epsilon-greedy", "bootstrap", "dropout", "neural-linear", "neural-ucb", "neural-ts")
    return curves(("quadratic", "vector-quadratic", "neural", "mushroom", "shuttle"), ("ensemble++", *others), seeds)


def diagnosed(seeds: int = 4) -> xr.Dataset:
    """With diagnostics: Greedy has a loss only, epsilon-greedy explores every tenth round, Mine says nothing of itself."""
    agents = ("ensemble++", "greedy", "epsilon-greedy", "mine")
    dataset = curves(("quadratic", "neural"), agents, seeds)
    empty = xr.full_like(dataset["regret"], np.nan)
    told = {"loss": empty.copy(), "spread": empty.copy(), "explored": empty.copy()}
    values = {"ensemble++": (8 / TIME, 3 + 0 * TIME, 0.8 * TIME), "greedy": (2 / TIME, 0 * TIME, 0 * TIME)}
    values["epsilon-greedy"] = (4 / TIME, 0 * TIME, 0.1 * TIME)
    for agent, of_agent in values.items():
        for (name, array), curve in zip(told.items(), of_agent, strict=True):
            if name == "loss":
                curve = np.where(TIME > 2, curve, np.nan)  # training starts later
            factor = SEEDS[:seeds, None] if name != "explored" else np.ones((seeds, 1))
            run = dataset["regret"].sel(agent=agent).notnull()
            array.loc[{"agent": agent}] = xr.where(run, xr.DataArray(factor * curve, dims=("seed", "time")), np.nan)
    return dataset.assign(told)


def frontier(seeds: int = 4) -> xr.Dataset:
    """Three ensembles at three sizes, Greedy, and an agent whose parameters nobody counts."""
    rates = {("quadratic", agent, "none", "none", size): 1 + place + 1 / size for place, agent, size in SIZED}
    rates |= {("neural", *key[1:]): 2 * rate for key, rate in rates.items()}
    singles = {(environment, agent, "none", "none", 0): 5.0 for environment in ("quadratic", "neural") for agent in SINGLES}
    return study(rates | singles, seeds)


SIZED = [(place, agent, size) for place, agent in enumerate(("ensemble++", "ensemble+", "epinet")) for size in (2, 8, 32)]
SINGLES = ("greedy", "lmcts")


def lists(seeds: int = 4) -> xr.Dataset:
    """Ensemble++ at three sizes and Greedy on lists of three lengths, of two kinds, in no order."""
    names = [f"{kind}{suffix}" for kind in ("quadratic", "neural") for suffix in ("-x10000", "", "-x100")]
    rates = {(name, "ensemble++", "none", "none", size): _list_rate(name, size) for name in names for size in (2, 8, 32)}
    return study(rates | {(name, "greedy", "none", "none", 0): _list_rate(name, 1) for name in names}, seeds)


def _list_rate(name: str, size: int) -> float:
    kind, _, count = name.partition("-x")
    return (1 if kind == "quadratic" else 3) * (1 + int(count or 1000) / 10_000 + 1 / size)


def ablation(seeds: int = 4) -> xr.Dataset:
    """All pairs of laws and four more update laws; finite update laws are one function, and so are all perturbations."""
    pairs = itertools.product(LAWS, LAWS)
    rates = {("quadratic", "ensemble++", *pair, 8): 1.0 + 0.2 * list(LAWS).index(pair[0]) for pair in pairs}
    coordinate = rates["quadratic", "ensemble++", "sphere", "sphere", 8]
    for law, rate in {"cube": coordinate, "sparse": coordinate, "gaussian": 2.0, "sphere": 2.5}.items():
        rates["quadratic", f"update-{law}", "sphere", "sphere", 8] = rate
    return study(rates, seeds)


def timed(seeds: int = 4, together: int = 1) -> xr.Dataset:
    """Ensemble++ takes a hundredth of a second a round, LMCTS t hundredths in round t; Greedy has no clock."""
    rates = {
        ("quadratic", agent, "none", "none", size): 1.0 for agent, size in {"ensemble++": 8, "lmcts": 0, "greedy": 0}.items()
    }
    dataset = study(rates, seeds, together)
    clocks = {"ensemble++": 0.01 * TIME, "lmcts": 0.01 * TIME * (TIME + 1) / 2, "greedy": np.nan * TIME}
    of_block = SEEDS[np.arange(seeds) // together * together]
    seconds = xr.DataArray(
        np.stack([np.multiply.outer(of_block, clock) for clock in clocks.values()]),
        {"agent": list(clocks), "seed": range(seeds), "time": TIME},
    )
    return dataset.assign(seconds=xr.where(dataset["regret"].notnull(), seconds, np.nan).transpose(*dataset["regret"].dims))


#: A suitable dataset for each figure, and "x label | y label | title" of its panels.
FIGURES: dict[str, tuple[Callable[..., xr.Dataset], list[str]]] = {
    "nonlinear_regret": (
        curves,
        [
            " | cumulative regret | Quadratic",
            " |  | Neural",
            "round | cumulative regret | Shuttle",
            "round | accuracy so far | Moderation-gpt2",
        ],
    ),
    "training": (
        diagnosed,
        [
            " | training loss | Quadratic",
            " |  | Neural",
            " | spread of the\nsampled values | ",
            " |  | ",
            "round | share of rounds\nthat explored | ",
            "round |  | ",
        ],
    ),
    "parameter_frontier": (
        frontier,
        [
            " | Quadratic\nfinal regret | ",
            " |  | ",
            "all parameters | Neural\nfinal regret\nminus Greedy's | ",
            "trainable parameters |  | ",
        ],
    ),
    "scalability": (
        lists,
        [
            " | Quadratic\nfinal regret | ",
            " |  | ",
            "actions in the list |X| | Neural\nfinal regret | ",
            "ensemble size M |  | ",
        ],
    ),
    "laws_ablation": (
        ablation,
        [
            " |  | update law",
            "final regret minus that of update coordinate, reference and perturbation sphere |  | reference law",
            " |  | perturbation law",
        ],
    ),
    "step_time": (timed, ["round | time per round | Quadratic"]),
}

#: Other datasets that must fit the page.
WIDE = {
    "nonlinear_regret, nine agents in five environments": ("nonlinear_regret", many),
    "nonlinear_regret, one environment": ("nonlinear_regret", lambda: curves(("neural",))),
    "nonlinear_regret, three environments": ("nonlinear_regret", lambda: curves(("quadratic", "neural", "shuttle"))),
    "training, one environment": ("training", lambda: diagnosed().isel(environment=[1])),
    "scalability, one kind": ("scalability", lambda: lists().isel(environment=slice(3))),
}


def draw(name: str, dataset: xr.Dataset) -> Figure:
    return importlib.import_module(f"ensemblepp.figures.{name}").draw(dataset)


def line(axes: Axes, label: str) -> mpl.lines.Line2D:
    (found,) = [line for line in axes.get_lines() if line.get_label() == label]
    return found


def labels(axes: Axes) -> list[str]:
    return axes.get_legend_handles_labels()[1]


def legend(figure: Figure) -> list[str]:
    """The texts of the one legend, which is the figure's or that of a panel without axes."""
    (found,) = [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]
    return [text.get_text() for text in found.get_texts()]


def bars(axes: Axes, label: str) -> np.ndarray:
    """Rows (place, lower end, upper end) of the vertical bars with the colour of a line."""
    colour = mpl.colors.to_rgb(line(axes, label).get_color())
    (found,) = [
        drawn
        for drawn in axes.collections
        if isinstance(drawn, LineCollection) and mpl.colors.to_rgb(drawn.get_color()[0]) == pytest.approx(colour)
    ]
    return np.array([(path[0, 0], path[0, 1], path[1, 1]) for path in found.get_segments()])


def interval(values: np.ndarray) -> tuple[float, float]:
    """scipy's t interval of a mean."""
    return stats.t.interval(0.95, len(values) - 1, loc=values.mean(), scale=stats.sem(values))


#: Mean, and the ends of the t interval, of numbers that are proportional to `SEEDS`.
MEAN, (LOWER, UPPER) = SEEDS.mean(), interval(SEEDS)


# ------------------------------------------------------------------------------------------------------- all figures


@pytest.mark.parametrize("name", FIGURES)
def test_axes_have_labels(name):
    make, expected = FIGURES[name]
    found = [f"{axes.get_xlabel()} | {axes.get_ylabel()} | {axes.get_title()}" for axes in draw(name, make()).axes]
    assert found == expected


@pytest.mark.parametrize("case", [*FIGURES, *WIDE])
def test_nothing_is_cut_off_or_drawn_over_another_panel(case):
    name, make = WIDE[case] if case in WIDE else (case, FIGURES[case][0])
    dataset = make()
    figure = draw(name, dataset)
    style.sign(figure, dataset)
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    page = figure.bbox.padded(1)
    for drawn in (*figure.axes, *figure.legends):
        box = drawn.get_tightbbox(renderer)
        assert page.containsx(box.x0), drawn
        assert page.containsx(box.x1), drawn
        assert page.containsy(box.y0), drawn
        assert page.containsy(box.y1), drawn
    # a legend has a place of its own: that of the figure, of a free panel, or above a panel
    boxes = [axes.get_window_extent(renderer) for axes in figure.axes if axes.axison]
    legends = [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]
    # what touches does not overlap
    boxes += [drawn.get_window_extent(renderer).padded(-2) for drawn in legends]
    assert not [pair for pair in itertools.combinations(boxes, 2) if pair[0].overlaps(pair[1])]


@pytest.mark.parametrize("name", [name for name in FIGURES if name != "step_time"])
def test_one_seed_has_no_interval(name):
    for axes in draw(name, FIGURES[name][0](seeds=1)).axes:
        assert not [found for found in axes.collections if isinstance(found, PolyCollection | LineCollection)]


@pytest.mark.parametrize("name", FIGURES)
def test_every_line_lies_within_its_panel(name):
    for axes in draw(name, FIGURES[name][0]()).axes:
        lower, upper = sorted(axes.get_ylim())
        for drawn in axes.get_lines():
            values = np.asarray(drawn.get_ydata(), dtype=float)
            assert lower <= np.nanmin(values), drawn.get_label()
            assert np.nanmax(values) <= upper, drawn.get_label()


# ---------------------------------------------------------------------------------------------------- regret over time


def test_regret_and_accuracy_are_means_over_seeds():
    figure = draw("nonlinear_regret", curves())
    quadratic, neural, shuttle, moderation = figure.axes
    rates = {"Ensemble++": 0.1, "Ensemble+": 0.2, "EpiNet": 0.3, "Greedy": 0.4}
    for axes in (quadratic, neural, shuttle):
        for label, rate in rates.items():
            np.testing.assert_allclose(line(axes, label).get_ydata(), rate * MEAN * TIME, rtol=1e-6)
            np.testing.assert_array_equal(line(axes, label).get_xdata(), TIME)
    assert labels(quadratic) == labels(neural) == list(rates)
    np.testing.assert_allclose(line(shuttle, "best constant action").get_ydata(), 0.22 * TIME, rtol=1e-6)
    # the share of rounds without regret, from round 2 on
    for label in ("Ensemble++", "Ensemble+", "Greedy"):
        np.testing.assert_allclose(line(moderation, label).get_ydata(), [1 - rates[label] / 2 * MEAN] * 6, rtol=1e-6)
        np.testing.assert_array_equal(line(moderation, label).get_xdata(), TIME[1:])
    # always blocking costs less, but always publishing is right on the 60 % free posts
    np.testing.assert_allclose(line(moderation, "best constant action").get_ydata(), [0.6] * 6, rtol=1e-6)
    assert labels(moderation) == ["Ensemble++", "Ensemble+", "Greedy", "best constant action"], "EpiNet did not run there"
    assert legend(figure) == [*rates, "best constant action"]


def test_the_best_constant_action_does_not_press_the_agents_flat():
    dataset = curves()
    dataset["constant_regret"] = 100 * dataset["constant_regret"]
    axes = draw("nonlinear_regret", dataset).axes[2]
    highest = max(line(axes, label).get_ydata().max() for label in ("Ensemble++", "Ensemble+", "EpiNet", "Greedy"))
    assert axes.get_ylim()[1] == pytest.approx(3 * highest)


def test_bands_are_t_intervals_over_seeds():
    axes = draw("nonlinear_regret", curves(("quadratic",), ("ensemble++",))).axes[0]
    (area,) = axes.collections
    points = area.get_paths()[0].vertices
    for time in TIME:
        ends = [y for x, y in points if x == time]
        assert (min(ends), max(ends)) == pytest.approx((0.1 * LOWER * time, 0.1 * UPPER * time), rel=1e-5)


@pytest.mark.parametrize(("count", "columns"), [(1, 1), (2, 2), (3, 3), (4, 2), (5, 3), (6, 3)])
def test_panels_wrap_into_rows_of_three(count, columns):
    names = tuple(f"quadratic-x{number}" for number in range(1, count + 1))
    figure = draw("nonlinear_regret", curves(names))
    grid = figure.axes[0].get_gridspec()
    assert (grid.nrows, grid.ncols) == (-(-count // columns), columns)
    assert sum(axes.axison for axes in figure.axes) == count
    assert legend(figure) == ["Ensemble++", "Ensemble+", "EpiNet", "Greedy"]
    # every column ends with an axis that says what it is
    for place, axes in enumerate(figure.axes[:count]):
        assert (axes.get_xlabel() == "round") == (place + columns >= count)


def test_several_ensemble_sizes_have_a_line_each():
    rates = {("quadratic", "ensemble++", "none", "none", size): 1 / size for size in (2, 8)}
    axes = draw("nonlinear_regret", study(rates | {("quadratic", "greedy", "none", "none", 0): 2.0})).axes[0]
    assert labels(axes) == ["Ensemble++, M = 2", "Ensemble++, M = 8", "Greedy"]
    np.testing.assert_allclose(line(axes, "Ensemble++, M = 8").get_ydata(), MEAN * TIME / 8, rtol=1e-6)


def test_wide_intervals_leave_room_for_the_lines():
    """Of two seeds of which one has no regret, the interval is 13 times as wide as the mean."""
    dataset = curves(("neural",), seeds=2)
    dataset["regret"].loc[{"seed": 0}] *= 0
    axes = draw("nonlinear_regret", dataset).axes[0]
    assert axes.get_ylim() == pytest.approx((0, 2 * 0.4 * 0.45 * 100))


# ------------------------------------------------------------------------------------------------- how agents look


def test_nine_agents_have_a_look_each():
    axes = draw("nonlinear_regret", many()).axes[0]
    looks = {(drawn.get_color(), str(drawn.get_linestyle())) for drawn in axes.get_lines()}
    colours = {drawn.get_color() for drawn in axes.get_lines()}
    assert len(axes.get_lines()) == len(looks) == len(colours) == 9


def test_an_agent_under_several_values_has_a_look_for_each():
    labels = [f"Ensemble++, prior {prior}, rate {rate}" for rate in ("1e-4", "1e-3") for prior in (0, 0.02, 0.2)]
    looks = style.looks([*labels, "Greedy, rate 1e-4", "Greedy, rate 1e-3", "Ensemble+"])
    assert len({(look["colour"], str(look["linestyle"])) for look in looks.values()}) == len(looks)
    # the last of the shades is the agent's own, and the last value has the line
    assert [looks[label]["colour"] for label in labels[2::3]] == [style.COLOURS["Ensemble++"]] * 2
    assert [looks[label]["linestyle"] for label in labels[::3]] == ["-", "--"]
    assert looks["Greedy, rate 1e-4"]["colour"] == style.COLOURS["Greedy"]
    plain = style.looks(["Greedy", "Greedy, rate 1e-4"])
    assert plain["Greedy"] != plain["Greedy, rate 1e-4"]


def test_variants_have_the_colour_of_their_agent():
    looks = style.looks(["Ensemble+", "Ensemble+ (released)", "Ensemble+ (repaired)", "Greedy (released)"])
    assert {look["colour"] for look in looks.values()} == {style.COLOURS["Ensemble+"], style.COLOURS["Greedy"]}
    assert len({str(looks[label]["linestyle"]) for label in list(looks)[:3]}) == 3
    assert looks["Ensemble+ (released)"]["linestyle"] == looks["Greedy (released)"]["linestyle"]
    # and its line, where nothing is to be told apart
    alone = style.looks(["Ensemble+ (tuned)", "NeuralUCB (tuned)"])
    agents = style.looks(["Ensemble+", "NeuralUCB"])
    assert list(alone.values()) == list(agents.values())
    assert alone != style.looks(["Ensemble+ (tuned)", "NeuralUCB (tuned)", "Greedy"])
    # what is told apart by something else is an agent of its own
    assert style.looks(["Ensemble++ (inflated)"])["Ensemble++ (inflated)"]["colour"] != style.COLOURS["Ensemble++"]


def test_labels_with_a_number_share_a_scale():
    looks = style.looks(["C = 10,000", "C = 500", "Greedy", "C = 1,000"])
    lightness = [sum(looks[label]["colour"]) for label in ("C = 500", "C = 1,000", "C = 10,000")]
    assert lightness == sorted(lightness, reverse=True)
    assert len(set(lightness)) == 3
    assert looks["Greedy"]["colour"] == style.COLOURS["Greedy"]
    assert list(looks) == ["C = 10,000", "C = 500", "Greedy", "C = 1,000"]
    scales = style.looks(["prior scale 5", "prior scale 0", "prior scale 0.1"])
    assert sum(scales["prior scale 0"]["colour"]) > sum(scales["prior scale 0.1"]["colour"])
    assert sum(scales["prior scale 0.1"]["colour"]) > sum(scales["prior scale 5"]["colour"])


def test_agents_of_the_users_own_have_free_colours():
    looks = style.looks(["Ensemble++", "Mine", "Greedy", "Yours", "Mine (repaired)"])
    assert looks["Mine"]["colour"] == looks["Mine (repaired)"]["colour"] != looks["Yours"]["colour"]
    assert not {looks["Mine"]["colour"], looks["Yours"]["colour"]} & set(style.COLOURS.values())


# ------------------------------------------------------------------------------------------------------------ training


def test_diagnostics_over_time():
    figure = draw("training", diagnosed())
    panels = np.array(figure.axes).reshape(3, 2)
    for loss, spread, explored in panels.T:
        assert labels(loss) == ["Ensemble++", "Greedy", "ε-greedy"]
        np.testing.assert_allclose(line(loss, "Greedy").get_ydata(), np.where(TIME > 2, 2 * MEAN / TIME, np.nan), rtol=1e-6)
        assert labels(spread) == ["Ensemble++"], "Greedy and epsilon-greedy sample nothing"
        np.testing.assert_allclose(line(spread, "Ensemble++").get_ydata(), 3 * MEAN, rtol=1e-6)
        assert labels(explored) == ["Ensemble++", "ε-greedy"], "Greedy never explores"
        for label, share in {"Ensemble++": 0.8, "ε-greedy": 0.1}.items():
            np.testing.assert_allclose(line(explored, label).get_ydata(), share, rtol=1e-5)
        # in the middle of the intervals that end at the stored rounds
        ends = np.array([0, 4, 10, 40, 70, 100])
        np.testing.assert_allclose(line(explored, "ε-greedy").get_xdata(), (ends[1:] + ends[:-1]) / 2)
        assert (loss.get_yscale(), spread.get_yscale(), explored.get_yscale()) == ("log", "log", "linear")
        assert explored.get_ylim() == (0, pytest.approx(0.8, abs=0.1))
    assert legend(figure) == ["Ensemble++", "Greedy", "ε-greedy"]


def test_shares_follow_the_increase_of_the_count():
    """Ensemble++ explores in all of the first 40 rounds and in none after them."""
    dataset = diagnosed()
    dataset["explored"].loc[{"agent": "ensemble++", "ensemble_size": 8}] = np.minimum(TIME, 40)
    dataset["explored"] = dataset["explored"].where(dataset["regret"].notnull())
    explored = draw("training", dataset).axes[4]
    np.testing.assert_allclose(line(explored, "Ensemble++").get_ydata(), [1, 1, 1, 0, 0], atol=1e-6)
    assert explored.get_ylim()[1] <= 1.05


def test_rows_that_nobody_has_are_left_out():
    figure = draw("training", diagnosed().sel(agent=["greedy", "mine"]).drop_vars("explored"))
    assert [axes.get_ylabel() for axes in figure.axes] == ["training loss", ""]


# ---------------------------------------------------------------------------------------------------------- parameters

#: Reference counts (all, trainable) at d = 100 and M = 2, 8, 32 by number of outputs; those at (2, M = 2) by hand.
COUNTS = {
    1: {
        "Ensemble++": [(10944, 10816), (11712, 11200), (14784, 12736)],
        "Ensemble+": [(21508, 10754), (22288, 11144), (25408, 12704)],
        "EpiNet": [(14548, 13466), (17980, 13652), (31708, 14396)],
        "Greedy": [(10688, 10688)],
    },
    2: {
        "Ensemble++": [(11264, 11008), (12800, 11776), (18944, 14848)],
        "Ensemble+": [(21768, 10884), (23328, 11664), (29568, 14784)],
        "EpiNet": [(14657, 13563), (18221, 13845), (32477, 14973)],
        "Greedy": [(10752, 10752)],
    },
}


def test_regret_stands_at_the_counts_of_parameters():
    dataset = frontier()
    figure = draw("parameter_frontier", dataset)
    for row, (environment, classes) in enumerate({"quadratic": 1, "neural": 2}.items()):
        for column, axes in enumerate(figure.axes[2 * row : 2 * row + 2]):
            for label, counts in COUNTS[classes].items():
                assert line(axes, label).get_xdata().tolist() == [pair[column] for pair in counts]
                agent = next(name for name, text in LABELS.items() if text == label)
                sizes = [0] if label == "Greedy" else [2, 8, 32]
                final = dataset["regret"].sel(environment=environment, agent=agent, ensemble_size=sizes).isel(time=-1)
                final = final.squeeze(["reference", "perturbation"]).transpose("seed", ...).values
                if environment == "neural":  # of which the difference to Greedy is shown, by seed
                    final = final - 100 * 5.0 * SEEDS[:, None]
                np.testing.assert_allclose(line(axes, label).get_ydata(), final.mean(axis=0), rtol=1e-5, atol=1e-3)
                places = line(axes, label).get_xdata()
                # of Greedy less itself there is no spread
                ends = [interval(values) if values.any() else (0, 0) for values in final.T]
                expected = [(place, *end) for place, end in zip(places, ends, strict=True)]
                np.testing.assert_allclose(bars(axes, label), expected, rtol=1e-4, atol=1e-3)
            assert axes.get_xscale() == "log"
    assert legend(figure) == ["Ensemble++", "Ensemble+", "EpiNet", "Greedy"], "nobody counts the parameters of LMCTS"


def test_every_point_of_an_ensemble_names_its_size_and_no_two_names_overlap():
    dataset = frontier()
    # all agents at one height, where names would stand on one another
    dataset["regret"] = dataset["regret"] * 0 + xr.DataArray(TIME, dims="time")
    figure = draw("parameter_frontier", dataset)
    for axes in figure.axes:
        found = [text.get_text() for text in axes.texts]
        assert [found.count(size) for size in ("2", "8", "32")] == [3, 3, 3]
        boxes = [text.get_window_extent(figure.canvas.get_renderer()) for text in axes.texts]
        assert not [pair for pair in itertools.combinations(boxes, 2) if pair[0].overlaps(pair[1])]
        colours = {mpl.colors.to_rgb(text.get_color()) for text in axes.texts}
        assert colours == {style.dark(style.COLOURS[label]) for label in ("Ensemble++", "Ensemble+", "EpiNet")}


def test_environments_whose_data_decide_the_dimension_are_left_out():
    dataset = frontier()
    specs = json.loads(dataset.attrs["specs"])
    for spec in specs:
        if spec["environment"]["name"] == "neural":
            spec["environment"]["options"] = {"inputs": {"data": "rows.nc"}}
    figure = draw("parameter_frontier", dataset.assign_attrs(specs=json.dumps(specs)))
    assert [axes.get_ylabel() for axes in figure.axes] == ["Quadratic\nfinal regret", ""]


# --------------------------------------------------------------------------------------------------------- scalability


def test_regret_against_the_list_and_against_the_ensemble():
    figure = draw("scalability", lists())
    for kind, (left, right) in zip(("quadratic", "neural"), np.array(figure.axes).reshape(2, 2), strict=True):
        names = [f"{kind}-x100", kind, f"{kind}-x10000"]
        for size, label in {2: "M = 2", 8: "M = 8", 32: "M = 32", 1: "Greedy"}.items():
            expected = np.array([100 * _list_rate(name, size) for name in names])
            np.testing.assert_allclose(line(left, label).get_ydata(), MEAN * expected, rtol=1e-6)
            np.testing.assert_allclose(line(left, label).get_xdata(), [100, 1000, 10_000], rtol=0.1)
            np.testing.assert_allclose(bars(left, label)[:, 1:], np.outer(expected, [LOWER, UPPER]), rtol=1e-5)
        for name, label in zip(names, ("|X| = 100", "|X| = 1,000", "|X| = 10,000"), strict=True):
            expected = np.array([100 * _list_rate(name, size) for size in (2, 8, 32)])
            np.testing.assert_allclose(line(right, label).get_ydata(), MEAN * expected, rtol=1e-6)
            np.testing.assert_allclose(line(right, label).get_xdata(), [2, 8, 32], rtol=0.1)
            np.testing.assert_allclose(bars(right, label)[:, 1:], np.outer(expected, [LOWER, UPPER]), rtol=1e-5)
            (level,) = [
                drawn.get_ydata()[0]
                for drawn in right.get_lines()
                if drawn.get_linestyle() == "--" and drawn.get_color() == line(right, label).get_color()
            ]
            assert level == pytest.approx(100 * MEAN * _list_rate(name, 1)), "Greedy's dashes have the colour of the list"
        scales = {(axes.get_xscale(), axes.get_yscale()) for axes in (left, right)}
        assert scales == {("log", "log")}
    assert [text.get_text() for text in figure.axes[2].get_xticklabels()] == ["100", "1,000", "10,000"]
    assert [text.get_text() for text in figure.axes[3].get_xticklabels()] == ["2", "8", "32"]
    legends = [[text.get_text() for text in axes.get_legend().get_texts()] for axes in figure.axes[:2]]
    assert legends == [["M = 2", "M = 8", "M = 32", "Greedy"], ["|X| = 100", "|X| = 1,000", "|X| = 10,000", "dashed: Greedy"]]


def test_one_kind_needs_no_name():
    figure = draw("scalability", lists().isel(environment=slice(3)))
    assert [axes.get_ylabel() for axes in figure.axes] == ["final regret", ""]


# ---------------------------------------------------------------------------------------------------------------- laws


def test_one_law_is_varied_in_each_panel():
    updates, references, perturbations = draw("laws_ablation", ablation()).axes
    by_reference = {law: 0.2 * (place - list(LAWS).index("sphere")) for place, law in enumerate(LAWS)}
    fixed = 1.0 + 0.2 * list(LAWS).index("sphere")
    expected = {
        updates: {"coordinate": 0, "cube": 0, "sparse": 0, "gaussian": 2.0 - fixed, "sphere": 2.5 - fixed},
        references: by_reference,
        perturbations: dict.fromkeys(LAWS, 0),
    }
    for axes, rates in expected.items():
        assert labels(axes) == [text.get_text() for text in axes.get_yticklabels()] == list(LAWS)
        for row, law in enumerate(LAWS):
            (place,) = line(axes, law).get_xdata()
            assert place == pytest.approx(100 * rates[law] * MEAN, abs=1e-4)
            assert list(line(axes, law).get_ydata()) == [row]
            assert line(axes, law).get_color() == style.LAWS[law][0]
            (bar,) = [found for found in axes.collections if found.get_segments()[0][0, 1] == row]
            ends = sorted(100 * rates[law] * np.array([LOWER, UPPER]))
            assert bar.get_segments()[0][:, 0] == pytest.approx(ends, abs=1e-3)


def test_laws_that_did_not_run_are_left_out():
    dataset = ablation().sel(
        agent=["ensemble++", "update-gaussian"], reference=["sphere", "cube"], perturbation=["sphere", "sparse"]
    )
    figure = draw("laws_ablation", dataset)
    assert [labels(axes) for axes in figure.axes] == [["gaussian", "coordinate"], ["sphere", "cube"], ["sphere", "sparse"]]


# ---------------------------------------------------------------------------------------------------------------- time


def test_seconds_per_round_between_stored_rounds():
    figure = draw("step_time", timed())
    (axes,) = figure.axes
    middles = np.sqrt(TIME[1:] * TIME[:-1])
    # rounds s + 1 to t of LMCTS take (s + 1 + ... + t) / (t - s) = (s + t + 1) / 2 on average
    expected = {"Ensemble++": np.full(6, 0.01), "LMCTS": 0.01 * (TIME[1:] + TIME[:-1] + 1) / 2}
    for label, seconds in expected.items():
        np.testing.assert_allclose(line(axes, label).get_xdata(), middles)
        np.testing.assert_allclose(line(axes, label).get_ydata(), MEAN * seconds, rtol=1e-6)
    assert labels(axes) == legend(figure) == ["Ensemble++", "LMCTS"], "Greedy has no clock"
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    # from the fastest to the slowest run
    for area, seconds in zip(axes.collections, expected.values(), strict=True):
        points = area.get_paths()[0].vertices
        for middle, second in zip(middles, seconds, strict=True):
            ends = [y for x, y in points if x == pytest.approx(middle)]
            assert (min(ends), max(ends)) == pytest.approx((0.8 * second, 1.3 * second), rel=1e-5)


def test_seeds_with_one_clock_count_once():
    """Two blocks of two seeds: the clocks of seeds 0 and 2."""
    (axes,) = draw("step_time", timed(together=2)).axes
    np.testing.assert_allclose(line(axes, "Ensemble++").get_ydata(), 0.01 * (0.8 + 1.0) / 2, rtol=1e-6)
    assert axes.get_ylabel() == "time per round of 2 seeds"
