"""The Langevin steps of a round of LMCTS (`agents.neural.lmcts`), compiled for one CPU core."""

from __future__ import annotations

import numpy as np

from ensemblepp.agents.neural import columns
from ensemblepp.compilation.arithmetic import OPTIONS, inner
from ensemblepp.compilation.compiled import compiled

#: Rows that a gradient takes at once, so that what it keeps of them stays in a core's own cache.
ROWS = 512


@inner
def _forward(widths, begin, place, row, items, work):
    """Outputs of every hidden layer for all items, into `work`."""
    rows = len(items.table)
    for layer in range(len(widths) - 1):
        fan_in, wide = widths[layer], widths[layer + 1]
        end = begin[layer] + fan_in * wide
        weight, bias = row[begin[layer] : end].reshape(fan_in, wide), row[end : end + wide]
        outputs = work[place[layer] : place[layer] + rows * wide].reshape(rows, wide)
        if layer > 0:
            np.dot(work[place[layer - 1] : place[layer - 1] + rows * fan_in].reshape(rows, fan_in), weight, outputs)
        elif items.columns.shape[1] > 0:
            columns.product(items, np.arange(rows), weight, False, outputs)
        else:
            np.dot(items.table, weight, outputs)
        for i in range(rows):
            for j in range(wide):
                value = outputs[i, j] + bias[j]
                # not max, which may lose what is no number
                outputs[i, j] = np.float32(0) if value <= np.float32(0) else value


@inner
def _back(widths, begin, place, row, items, work, slopes, change):
    """Derivatives by the parameters of every hidden layer into `change`, from those by the last one's outputs in `slopes`."""
    rows = len(items.table)
    for layer in range(len(widths) - 2, -1, -1):
        fan_in, wide = widths[layer], widths[layer + 1]
        end = begin[layer] + fan_in * wide
        outputs = work[place[layer] : place[layer] + rows * wide].reshape(rows, wide)
        above = slopes[place[layer] : place[layer] + rows * wide].reshape(rows, wide)
        by_weight, by_bias = change[begin[layer] : end].reshape(fan_in, wide), change[end : end + wide]
        for j in range(wide):
            by_bias[j] = np.float32(0)
        for i in range(rows):
            for j in range(wide):
                above[i, j] = np.float32(0) if outputs[i, j] <= np.float32(0) else above[i, j]
                by_bias[j] += above[i, j]
        if layer > 0:
            inputs = work[place[layer - 1] : place[layer - 1] + rows * fan_in].reshape(rows, fan_in)
            below = slopes[place[layer - 1] : place[layer - 1] + rows * fan_in].reshape(rows, fan_in)
            np.dot(inputs.T, above, by_weight)
            np.dot(above, row[begin[layer] : end].reshape(fan_in, wide).T, below)
        elif items.columns.shape[1] > 0:
            columns.product_back(items, np.arange(rows), above, by_weight)
        else:
            np.dot(items.table.T, above, by_weight)


@compiled(**OPTIONS)
def langevin(widths, row, items, count, total, noise, rate, keep, noise_rate, predictions):
    """w <- keep w - rate grad + noise_rate xi, once for every xi, with the gradient of sum_i n_i f(x_i)^2 - 2 s_i f(x_i).

    Args:
        widths: (layers + 1,) entries of the input and of every hidden layer.
        row: (P,) w, one chain's parameters, changed: weights and biases of every layer, and the head's weights.
        items: `columns.Items`, x, (rows, d) float32.
        count: n, (rows,) float32.
        total: s, (rows,) float32.
        noise: xi, (steps, P) float32.
        rate: float32.
        keep: float32.
        noise_rate: float32.
        predictions: (rows, 1) float32; becomes f(x) at the last gradient's parameters.
    """
    layers, width, most = len(widths) - 1, widths[-1], min(ROWS, len(count))
    # where each layer's parameters begin, and its outputs in `work`
    begin, place = np.zeros(layers + 1, dtype=np.int64), np.zeros(layers + 1, dtype=np.int64)
    for layer in range(layers):
        begin[layer + 1] = begin[layer] + (widths[layer] + 1) * widths[layer + 1]
        place[layer + 1] = place[layer] + most * widths[layer + 1]
    work, slopes = np.empty(place[layers], dtype=np.float32), np.empty(place[layers], dtype=np.float32)
    change, part = np.empty_like(row), np.empty_like(row)
    delta = np.empty((most, 1), dtype=np.float32)
    head = row[begin[layers] :].reshape(width, 1)
    for step in range(len(noise)):
        for first in range(0, len(count), ROWS):
            few = columns.Items(items.table[first : first + ROWS], items.columns[first : first + ROWS], 1)
            rows, own = len(few.table), change if first == 0 else part
            _forward(widths, begin, place, row, few, work)
            hidden = few.table
            if layers > 0:
                hidden = work[place[layers - 1] : place[layers - 1] + rows * width].reshape(rows, width)
            found, gap = predictions[first : first + rows], delta[:rows]
            np.dot(hidden, head, found)
            for i in range(rows):
                gap[i, 0] = np.float32(2) * (count[first + i] * found[i, 0] - total[first + i])
            np.dot(hidden.T, gap, own[begin[layers] :].reshape(width, 1))
            if layers > 0:
                upper = slopes[place[layers - 1] : place[layers - 1] + rows * width].reshape(rows, width)
                for i in range(rows):
                    for j in range(width):
                        upper[i, j] = gap[i, 0] * head[j, 0]
                _back(widths, begin, place, row, few, work, slopes, own)
            if first > 0:
                for p in range(len(change)):
                    change[p] += part[p]
        for p in range(len(row)):
            row[p] = keep * row[p] - rate * change[p] + noise_rate * noise[step, p]
