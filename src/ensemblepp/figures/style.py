"""The one style of all figures: colour-blind-safe colours, bands for 95 % intervals, the same agent in the same colour."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, MaxNLocator, NullFormatter, NullLocator

from ensemblepp.analysis.selection import agent_runs, ensemble_sizes
from ensemblepp.analysis.statistics import mean_interval
from ensemblepp.figures import theme

#: Widths in inches: of the text of a conference's page, and of a page that is used to its edges. Nothing is wider.
COLUMN, PAGE = 5.5, 6.75

#: Points of the smallest type.
SMALLEST = 7

#: No interval reaches out of what is possible: regret is never negative, a share of rounds is between 0 and 1.
REGRET, SHARE, ANY = (0.0, np.inf), (0.0, 1.0), (-np.inf, np.inf)

#: Up to so many curves in a panel have bands; of more, intervals stand side by side behind the last round.
BANDS = 4

#: How far apart these are, as a share of the rounds.
BESIDE = 0.025

#: Agents that several figures share keep their colour everywhere; others take the free ones in order. With those of the laws
#: and the free ones these are one palette, of which every pair is told apart, with a deuteranope's eyes too (tested).
COLOURS = {
    label: to_rgb(code)
    for label, code in {
        "TS": "#1A1A1A",
        "TS (inflated)": "#5B8080",
        "Ensemble++": "#0173B2",
        "Ensemble++ (inflated)": "#6DA4ED",
        "Ensemble++ (exact subspace)": "#2400B6",
        "ES": "#DE8F05",
        "ES (independent members)": "#DB4900",
        "RRLS": "#806D5B",
        "LinUCB": "#49A492",
        "Greedy": "#CC78BC",
        "Ensemble+": "#B61200",
        "EpiNet": "#126D5B",
        "LMCTS": "#49B65B",
        "ε-greedy": "#A41280",
        "Bootstrap": "#EDC824",
        "MC dropout": "#24DBFF",
        "NeuralLinear": "#493700",
        "NeuralUCB": "#B68080",
        "NeuralTS": "#FFB692",
    }.items()
}
#: For agents of the user's.
FREE = [to_rgb(code) for code in ("#6D1237", "#374992", "#49375B", "#C8C8DB")]

#: Agents of the paper have solid lines. Dashes tell apart what it leaves out, as many at once as colours alone do not.
_LINES = {
    "ε-greedy": "--",
    "Bootstrap": "-.",
    "MC dropout": (0, (6, 1.5)),
    "NeuralLinear": "--",
    "NeuralUCB": "-.",
    "NeuralTS": (0, (6, 1.5)),
}

#: Variants of an agent, in parentheses after its label, have its colour and a line style of their own.
_VARIANTS = {" (released)": "--", " (repaired)": "-.", " (tuned)": (0, (5, 1.2))}

#: Labels that differ in a number only, such as "C = 500" and "prior scale 0.1".
_NUMBERED = re.compile(r".* ([\d,.]+)")

#: Laws, with the marker that tells them apart in print: (colour, marker). None has the colour of an agent.
LAWS = {
    "gaussian": (to_rgb("#3737FF"), "o"),
    "sphere": (to_rgb("#1292B6"), "s"),
    "cube": (to_rgb("#92DBB6"), "^"),
    "coordinate": (to_rgb("#DB0049"), "D"),
    "sparse": (to_rgb("#6D4937"), "v"),
    "raw_gaussian": (to_rgb("#A45BFF"), "P"),
}

#: Markers of other laws, in order; their colours are the free ones.
_MARKERS = ("X", "*", "<", ">", "p", "h")

#: What a law is called where its name in the configuration says too little.
LAW_LABELS = {"raw_gaussian": "N(0, I/M)"}


def apply() -> None:
    """Set matplotlib's defaults, whatever a matplotlibrc of the user's says."""
    mpl.rcdefaults()
    theme.apply()
    _own_fonts()
    mpl.rcParams.update(
        {
            "figure.constrained_layout.use": True,
            "savefig.dpi": 160,
            "axes.spines.top": False,
            "axes.spines.right": False,
            # at the width of the page that they are drawn for
            "axes.titlesize": 8,
            "axes.labelsize": 8,
            "figure.titlesize": 8,
            "figure.labelsize": 8,
            "font.sans-serif": ["DejaVu Sans"],
            "font.size": SMALLEST,
            "xtick.labelsize": SMALLEST,
            "ytick.labelsize": SMALLEST,
            "legend.fontsize": SMALLEST,
            "legend.title_fontsize": SMALLEST,
            "legend.frameon": False,
            "axes.linewidth": 0.8,
            **{f"{axis}tick.{kind}.width": 0.8 for axis in "xy" for kind in ("major", "minor")},
            **{f"{axis}tick.{kind}.size": size for axis in "xy" for kind, size in (("major", 3.5), ("minor", 2))},
            "svg.hashsalt": "ensemblepp",
            "pdf.fonttype": 42,
        }
    )


def _own_fonts() -> None:
    """Let the files that come with matplotlib be found before those of the same name that a machine may have.

    Which of them its list of fonts names first, or at all, depends on when and by which matplotlib that was made.
    """
    known = font_manager.fontManager.ttflist
    paths = [str(Path(mpl.get_data_path(), "fonts", "ttf", name)) for name in ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf")]
    if known[0].fname != paths[0]:
        before = len(known)
        for path in paths:
            # forgets what was found before, too
            font_manager.fontManager.addfont(path)
        known[:] = known[before:] + known[:before]


def colour(label: str, position: int = 0) -> tuple[float, ...]:
    """The colour of an agent by its label; `position` chooses among the free colours for agents without their own."""
    return COLOURS.get(_base(label), FREE[position % len(FREE)])


#: Line styles of one agent under several values.
_BY_VALUE = ("-", "--", ":", "-.")


def looks(labels: Sequence[str]) -> dict[str, dict[str, object]]:
    """`colour` and `linestyle` of every agent of a figure, by label.

    Agents without a colour of their own take the free ones in order; labels that differ in a number only ("C = 500") share a
    scale, darker for larger numbers. A variant has a line style where others stand beside it. Of one agent with several
    values after commas, the last value has a line style, and what stands before it a shade.
    """
    numbered = sorted((label for label in labels if _NUMBERED.fullmatch(label)), key=_number)
    shades = dict(zip(numbered, sequence(len(numbered)), strict=True))
    free = list(dict.fromkeys(_base(label) for label in labels if _base(label) not in COLOURS))
    several = len({label.removeprefix(_base(label)) for label in labels}) > 1
    found = {
        label: {
            "colour": shades.get(label) or colour(label, free.index(_base(label)) if _base(label) in free else 0),
            "linestyle": (several and _VARIANTS.get(label.removeprefix(_base(label)))) or _LINES.get(_base(label), "-"),
        }
        for label in labels
    }
    for agent in dict.fromkeys(_base(label) for label in labels):
        valued = {label: label.rpartition(", ") for label in labels if label.startswith(f"{agent}, ")}
        before, last = (list(dict.fromkeys(parts[at] for parts in valued.values())) for at in (0, 2))
        darker = theme.shades(found[next(iter(valued))]["colour"], len(before) + 2)[2:] if len(before) > 1 else []
        for label, (first, _, value) in valued.items():
            # the agent without values has the first
            found[label]["linestyle"] = _BY_VALUE[(last.index(value) + (agent in labels)) % len(_BY_VALUE)]
            if darker:
                found[label]["colour"] = darker[before.index(first)]
    return found


def law_looks(laws: Sequence[str]) -> dict[str, tuple[tuple[float, ...], str]]:
    """Colour and marker of laws by name; those without their own take the free ones in order."""
    free = [law for law in laws if law not in LAWS]
    others = {law: (FREE[at % len(FREE)], _MARKERS[at % len(_MARKERS)]) for at, law in enumerate(free)}
    return {law: LAWS[law] if law in LAWS else others[law] for law in laws}


def dark(colour: tuple[float, ...]) -> tuple[float, ...]:
    """The colour, dark enough for type on white."""
    lightness = sum(weight * part for weight, part in zip((0.299, 0.587, 0.114), colour, strict=False))
    return tuple(part * min(1.0, 0.55 / max(lightness, 0.01)) for part in colour[:3])


def sequence(count: int) -> list[tuple[float, ...]]:
    """A colour for each value of a number other than the ensemble size, darker for larger ones."""
    return theme.viridis(count + 1)[1:]


def _base(label: str) -> str:
    """The label without a variant in parentheses, and of an agent with a colour without the values after a comma."""
    agent = label.partition(", ")[0]
    whole = agent if agent in COLOURS else label
    return next((whole.removesuffix(variant) for variant in _VARIANTS if whole.endswith(variant)), whole)


def _number(label: str) -> float:
    return float(_NUMBERED.fullmatch(label)[1].replace(",", ""))


def by_size(
    label: str, sizes: Sequence[int], position: int = 0, full: tuple[float, ...] | None = None
) -> list[tuple[int, str, tuple[float, ...]]]:
    """(ensemble size, text for the legend, colour) for an agent's curves: lighter is smaller; one size needs no mention.

    The largest size has the colour `full`, of itself the agent's.
    """
    full = full or colour(label, position)
    if len(sizes) == 1:
        return [(sizes[0], label, full)]
    shades = theme.shades(full, len(sizes) + 2)[2:]
    return [(size, f"{label}, M = {size}", shade) for size, shade in zip(sizes, shades, strict=True)]


def curves(dataset: xr.Dataset) -> Iterator[tuple[xr.Dataset, dict[str, object]]]:
    """Every agent at each of its ensemble sizes: its runs (environment, seed, time), and colour, line style and label."""
    labels = [str(label) for label in dataset["label"].values]
    looked = looks(labels)
    for name, label in zip(dataset["agent"].values, labels, strict=True):
        runs = agent_runs(dataset, name)
        for size, text, shade in by_size(label, ensemble_sizes(runs), full=looked[label]["colour"]):
            yield runs.sel(ensemble_size=size), looked[label] | {"colour": shade, "label": text}


def band(
    axes: Axes,
    curve: xr.DataArray,
    *,
    colour: tuple[float, ...],
    label: str,
    possible: tuple[float, float] = REGRET,
    **line,
) -> None:
    """Mean over seeds and its 95 % interval, as far as it is possible, against time; `curve` is (seed, time) in any order."""
    mean, *ends = mean_interval(curve.transpose("seed", "time").values, axis=0)
    lower, upper = np.clip(ends, *possible)
    time = curve["time"].values
    axes.plot(time, mean, color=colour, label=label, **{"linewidth": 1.6, **line})
    if np.isfinite(lower).any():
        axes.fill_between(time, lower, upper, color=colour, alpha=0.18, linewidth=0)


def interval_line(
    axes: Axes,
    places: Sequence[float],
    values: xr.DataArray,
    *,
    colour: tuple[float, ...],
    label: str,
    possible: tuple[float, float] = REGRET,
    **line,
) -> None:
    """Mean over seeds and its 95 % interval, as bars, at each of `places`; `values` has the dimension seed and one more."""
    mean, *ends = mean_interval(values.transpose("seed", ...).values, axis=0)
    lower, upper = np.clip(ends, *possible)
    axes.plot(places, mean, color=colour, label=label, **{"linewidth": 1.4, "marker": "o", "markersize": 4} | line)
    if np.isfinite(lower).any():
        axes.vlines(places, lower, upper, color=colour, linewidth=1)


def level(axes: Axes, values: xr.DataArray, *, colour: tuple[float, ...], label: str, **line) -> None:
    """Mean over seeds and its 95 % interval as a horizontal line and band, for an agent without an ensemble size."""
    mean, *ends = mean_interval(values.values)
    lower, upper = np.clip(ends, *REGRET)
    axes.axhline(mean, color=colour, label=label, **{"linewidth": 1.4} | line)
    if np.isfinite(lower):
        axes.axhspan(lower, upper, color=colour, alpha=0.18, linewidth=0)


def curve(
    axes: Axes,
    values: xr.DataArray,
    *,
    crowded: bool,
    colour: tuple[float, ...],
    label: str,
    possible: tuple[float, float] = REGRET,
    **line,
) -> None:
    """Mean over seeds against time, and its interval: a band, or in a crowded panel a bar behind the last round."""
    if not crowded:
        band(axes, values, colour=colour, label=label, possible=possible, **line)
        return
    axes.plot(values["time"], values.mean("seed"), color=colour, label=label, **{"linewidth": 1.6, **line})
    interval_at_end(axes, values, colour=colour, possible=possible)


def interval_at_end(
    axes: Axes, values: xr.DataArray, *, colour: tuple[float, ...], possible: tuple[float, float] = REGRET, **line
) -> None:
    """The last mean's 95 % interval over `seed` as a bar behind the last round, beside those that stand there."""
    _, *ends = mean_interval(values.isel(time=-1).values)
    lower, upper = np.clip(ends, *possible)
    place = float(values["time"][-1]) * beside(axes, len(axes.collections) + 1)
    if np.isfinite(lower):
        axes.vlines(place, lower, upper, color=colour, **{"linewidth": 1.4} | line)


def beside(axes: Axes, count: int) -> float:
    """Where the bar `count` behind the last round stands, as a multiple of that round."""
    return (1 + 3 * BESIDE) ** count if axes.get_xscale() == "log" else 1 + BESIDE * count


def legend(figure: Figure, axes: Axes | None = None, *, first: Sequence[str] = (), **options) -> int:
    """One legend for all panels: in `axes`, a panel that is free for it, or above all of them; returns its rows above them.

    What `first` names comes first, in its order.
    """
    drawn = {text: handle for panel in figure.axes for handle, text in zip(*panel.get_legend_handles_labels(), strict=True)}
    drawn = {text: drawn[text] for text in (*first, *drawn) if text in drawn}
    rows = 0
    if axes is None:
        place = {"loc": "outside upper center"} | options
        for rows in range(1, len(drawn) + 1):
            # as few columns as make so many rows
            box = figure.legend(drawn.values(), drawn.keys(), ncols=-(-len(drawn) // rows), **place)
            if rows == len(drawn) or box.get_window_extent().width < 0.98 * figure.bbox.width:
                break
            box.remove()
    else:
        axes.set_axis_off()
        axes.legend(drawn.values(), drawn.keys(), loc="center left", **options)
    return rows


def few(sizes: Sequence[int]) -> list[int]:
    """Four of the ensemble sizes, evenly over all of them, where there is no room for more."""
    return list(sizes) if len(sizes) <= 4 else [sizes[round(place)] for place in np.linspace(0, len(sizes) - 1, 4)]


def ends(axes: Axes, named: Sequence[tuple[float, str, tuple[float, ...]]]) -> None:
    """Write (value, text, colour) beside the ends of lines, moved apart where they are close; when the axis is as it stays."""
    places = sorted((axes.transAxes.inverted().transform(axes.transData.transform((0, value)))[1], *of) for value, *of in named)
    # a line of type, in heights of a panel
    rows = axes.get_subplotspec().get_gridspec().nrows
    panel = 72 * (axes.figure.get_figheight() / rows - 0.55)
    gap = 1.1 * SMALLEST / panel
    heights = np.array([place for place, *_ in places])
    for _ in range(200):
        for place in range(len(heights) - 1):
            if (short := gap - (heights[place + 1] - heights[place])) > 0:
                heights[place : place + 2] += -short / 2, short / 2
    heights -= min(0, heights[0])
    for height, (place, text, colour) in zip(heights, places, strict=True):
        # from the end of the line to its text
        axes.annotate(
            text,
            (1, place),
            (9, (height - place) * panel),
            "axes fraction",
            "offset points",
            color=colour,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": colour, "linewidth": 0.6, "shrinkA": 1, "shrinkB": 1, "relpos": (0, 0.5)},
        )


def size_axis(axes: Axes, sizes: Sequence[int]) -> None:
    """A logarithmic axis of ensemble sizes with their numbers; of many sizes, every other or third power of two."""
    axes.set_xscale("log", base=2)
    axes.set_xlim(min(sizes) / 2**0.4, max(sizes) * 2**0.4)
    narrow = axes.get_subplotspec().get_gridspec().ncols > 3
    shown = list(sizes) if len(sizes) <= 6 else [size for size in sizes if size & (size - 1) == 0][:: 3 if narrow else 2]
    axes.set_xticks(shown, labels=[str(size) for size in shown])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("ensemble size M")


def regret_axis(axes: Axes) -> None:
    """A logarithmic axis of regret with plain numbers, the more of them the less it spans; to be called when all is drawn.

    It ends a factor 3 below the lowest line: an interval that reaches down to zero has no end on it.
    """
    axes.set_yscale("log")
    lower, upper = axes.get_ylim()
    lines = [line for beside in axes.get_shared_y_axes().get_siblings(axes) for line in beside.get_lines()]
    lower = max(lower, min(float(np.min(line.get_ydata())) for line in lines) / 3)
    axes.set_ylim(lower, upper)
    named = (1, 2, 5) if upper > 6 * lower else (1, 1.5, 2, 3, 4, 5, 7) if upper > 2.5 * lower else (1, 1.5, *range(2, 10))
    axes.yaxis.set_major_locator(LogLocator(base=10, subs=named, numticks=20))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0f}" if value >= 10 else f"{value:g}"))
    axes.yaxis.set_minor_locator(LogLocator(base=10, subs=range(1, 10), numticks=100))
    axes.yaxis.set_minor_formatter(NullFormatter())


def log_axis(axes: Axes) -> None:
    """A logarithmic axis as far as the lines go, whose intervals may reach down to zero; to be called when all is drawn."""
    shown = np.concatenate([line.get_ydata() for line in axes.get_lines()])
    shown = shown[shown > 0]
    axes.set_yscale("log")
    axes.set_ylim(shown.min() / 1.4, shown.max() * 1.4)
    # at every power of ten, and between them where there are few of these
    spans = np.log10(shown.max() / shown.min())
    axes.yaxis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5) if spans < 1.5 else (1, 3) if spans < 3 else (1,)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())


def linear_axis(axes: Axes, *, zero: bool = True) -> None:
    """An axis of nothing below zero, and of twice the highest line at most: intervals of two seeds would leave nothing else.

    It starts at zero, or with `zero` false where the data do.
    """
    lower, upper = axes.get_ylim()
    lines = [line for beside in axes.get_shared_y_axes().get_siblings(axes) for line in beside.get_lines()]
    axes.set_ylim(0 if zero else max(0, lower), min(upper, 2 * max(float(np.nanmax(line.get_ydata())) for line in lines)))


def round_axis(axes: Axes, horizon: int, behind: int = 0) -> None:
    """A time axis with short numbers (2k for 2,000), and room for as many bars `behind` the last round."""
    axes.set_xlim(0, horizon)
    columns = axes.get_subplotspec().get_gridspec().ncols
    axes.xaxis.set_major_locator(MaxNLocator(5 if columns < 3 else 4 if columns < 4 else 2, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_xlabel("round")
    if behind:
        axes.set_xticks([tick for tick in axes.get_xticks() if tick <= horizon])
        axes.set_xlim(0, horizon * (1 + BESIDE * (behind + 1)))


def sign(figure: Figure, dataset: xr.Dataset) -> None:
    """Say below a figure what it was made from, for whoever meets it without its caption."""
    facts = dataset.attrs
    text = f"study {facts['study']}, scale {facts['scale']}: {facts['seeds']} seeds, {facts['horizon']:,} rounds"
    strip = 0.18 / figure.get_figheight()
    engine = figure.get_layout_engine()
    # a figure of the user's may have another one, or none
    if isinstance(engine, ConstrainedLayoutEngine):
        engine.set(rect=(0, strip, 1, 1 - strip))
    figure.text(0.995, 0.25 * strip, text, ha="right", va="bottom", fontsize=7, color=(0.45, 0.45, 0.45))


def settle(figure: Figure) -> None:
    """Fix the layout, rounded: the solver's last digits differ from one time to the next, and with them a file's bytes."""
    if isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine):
        # as large as it is saved: text has other sizes, relatively, at other resolutions
        figure.set_dpi(mpl.rcParams["savefig.dpi"])
        figure.draw_without_rendering()
        figure.set_layout_engine("none")
        # coarse enough that the solver's noise next to never crosses from one rounded number to the next
        for axes in figure.axes:
            axes.set_position(np.round(axes.get_position().bounds, 4))
        for text in figure.texts:
            text.set_position(np.round(text.get_position(), 4))
