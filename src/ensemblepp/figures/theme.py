"""What every figure takes from seaborn: its theme "ticks" in its context "paper", and its palettes, to the last bit.

Loading seaborn takes longer than drawing most figures, so only those import it that draw with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.colors import LinearSegmentedColormap, to_rgb

#: The palette "colorblind".
COLORBLIND = [
    to_rgb(code)
    for code in (
        *("#0173B2", "#DE8F05", "#029E73", "#D55E00", "#CC78BC"),
        *("#CA9161", "#FBAFE4", "#949494", "#ECE133", "#56B4E9"),
    )
]

_DARK, _LIGHT = ".15", ".8"

#: What is scaled by 0.8 for the context "paper".
_SIZES = {
    "font.size": 12,
    "axes.labelsize": 12,
    "axes.titlesize": 12,
    "xtick.labelsize": 11,
    "ytick.labelsize": 11,
    "legend.fontsize": 11,
    "legend.title_fontsize": 12,
    "axes.linewidth": 1.25,
    "grid.linewidth": 1,
    "lines.linewidth": 1.5,
    "lines.markersize": 6,
    "patch.linewidth": 1,
    "xtick.major.width": 1.25,
    "ytick.major.width": 1.25,
    "xtick.minor.width": 1,
    "ytick.minor.width": 1,
    "xtick.major.size": 6,
    "ytick.major.size": 6,
    "xtick.minor.size": 4,
    "ytick.minor.size": 4,
}

#: Matplotlib's settings. The colour map of seaborn's that goes with them, which no figure of ours needs, stays out.
SETTINGS = {
    **{name: 0.8 * size for name, size in _SIZES.items()},
    "figure.facecolor": "white",
    "text.color": _DARK,
    "font.family": "sans-serif",
    "font.sans-serif": ["Arial", "DejaVu Sans", "Liberation Sans", "Bitstream Vera Sans", "sans-serif"],
    "axes.axisbelow": True,
    "axes.edgecolor": _DARK,
    "axes.facecolor": "white",
    "axes.grid": False,
    "axes.labelcolor": _DARK,
    **{f"axes.spines.{side}": True for side in ("left", "bottom", "right", "top")},
    "axes.prop_cycle": mpl.cycler("color", COLORBLIND),
    "grid.color": _LIGHT,
    "grid.linestyle": "-",
    "lines.solid_capstyle": "round",
    "patch.edgecolor": "w",
    "patch.force_edgecolor": True,
    "xtick.bottom": True,
    "xtick.color": _DARK,
    "xtick.direction": "out",
    "xtick.top": False,
    "ytick.color": _DARK,
    "ytick.direction": "out",
    "ytick.left": True,
    "ytick.right": False,
}

#: What colours of one letter mean.
LETTERS = dict(zip("bgrmyck", [*(COLORBLIND[place] for place in (0, 2, 3, 4, 8, 9)), (0.1, 0.1, 0.1)], strict=True))


def apply() -> None:
    """Set matplotlib's defaults."""
    mpl.rcParams.update(SETTINGS)
    mpl.colors.get_named_colors_mapping().update(LETTERS)


def viridis(count: int) -> list[tuple[float, ...]]:
    """As many colours of the map "viridis", the dark ones last."""
    return _rows(mpl.colormaps["viridis_r"](np.linspace(0, 1, count + 2)[1:-1]))


def shades(colour: tuple[float, ...], count: int) -> list[tuple[float, ...]]:
    """As many shades from a light grey with a touch of `colour` to `colour` itself."""
    between = LinearSegmentedColormap.from_list("shades", [_light_grey(colour), colour])
    return _rows(between(np.linspace(0, 1, count)))


def _rows(colours: np.ndarray) -> list[tuple[float, ...]]:
    return [tuple(row) for row in colours[:, :3]]


# ----------------------------------------------------------------------------- the light grey, by CIELUV's hue and lightness

#: sRGB of XYZ and back, with as few digits as seaborn has.
_TO_RGB = ((3.2406, -1.5372, -0.4986), (-0.9689, 1.8758, 0.0415), (0.0557, -0.2040, 1.0570))
_TO_XYZ = ((0.4124, 0.3576, 0.1805), (0.2126, 0.7152, 0.0722), (0.0193, 0.1192, 0.9505))

#: CIELUV's u' and v' of white.
_WHITE_U, _WHITE_V = 0.19784, 0.46834

#: Lightness of the grey in per cent, and its saturation as a share of the colour's.
_LIGHTNESS, _SATURATION = 95, 0.15


def _light_grey(colour: tuple[float, ...]) -> tuple[float, ...]:
    """The grey with the hue of `colour`."""
    lightness, chroma, hue = _cylinder(colour)
    saturation = chroma / _most_chroma(lightness, hue) * 100.0 if 1e-8 <= lightness <= 99.9999999 else 0.0
    chroma = _most_chroma(_LIGHTNESS, hue) / 100.0 * (_SATURATION * saturation)
    turn, scale = math.radians(hue), 13.0 * _LIGHTNESS
    u, v = math.cos(turn) * chroma / scale + _WHITE_U, math.sin(turn) * chroma / scale + _WHITE_V
    y = math.pow((_LIGHTNESS + 16.0) / 116.0, 3.0)
    x = 0.0 - (9.0 * y * u) / ((u - 4.0) * v - u * v)
    z = (9.0 * y - (15.0 * v * y) - (v * x)) / (3.0 * v)
    linear = _product(_TO_RGB, (x, y, z))
    encoded = (12.92 * part if part <= 0.0031308 else 1.055 * math.pow(part, 1.0 / 2.4) - 0.055 for part in linear)
    return tuple(min(max(part, 0.0), 1.0) for part in encoded)


def _cylinder(colour: tuple[float, ...]) -> tuple[float, float, float]:
    """CIELUV's lightness, chroma and hue in degrees."""
    x, y, z = _product(_TO_XYZ, [math.pow((part + 0.055) / 1.055, 2.4) if part > 0.04045 else part / 12.92 for part in colour])
    lightness = 116.0 * (math.pow(y, 1.0 / 3.0) if y > 0.008856 else 7.787 * y + 16.0 / 116.0) - 16.0
    if x == y == z == 0.0:
        return 0.0, 0.0, 0.0
    u = 13.0 * lightness * ((4.0 * x) / (x + (15.0 * y) + (3.0 * z)) - _WHITE_U)
    v = 13.0 * lightness * ((9.0 * y) / (x + (15.0 * y) + (3.0 * z)) - _WHITE_V)
    hue = math.degrees(math.atan2(v, u))
    return lightness, math.pow(math.pow(u, 2) + math.pow(v, 2), 0.5), 360.0 + hue if hue < 0.0 else hue


def _most_chroma(lightness: float, hue: float) -> float:
    """The chroma at which a colour of this lightness and hue leaves sRGB."""
    sine, cosine = math.sin(math.radians(hue)), math.cos(math.radians(hue))
    cube = math.pow(lightness + 16, 3.0) / 1560896.0
    y = cube if cube > 0.008856 else lightness / 903.3
    ends = []
    for first, second, third in _TO_RGB:
        top = (0.99915 * first + 1.05122 * second + 1.14460 * third) * y
        bottom = ((0.86330 * third - 0.17266 * second) * sine + (0.12949 * third - 0.38848 * first) * cosine) * y
        ends += [lightness * (top - 1.05122 * end) / (bottom + 0.17266 * sine * end) for end in (0.0, 1.0)]
    return min(end for end in ends if end > 0.0)


def _product(matrix: Sequence[Sequence[float]], vector: Sequence[float]) -> list[float]:
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]
