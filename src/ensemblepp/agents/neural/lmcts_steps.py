"""The Langevin steps of a round of LMCTS (`agents.neural.lmcts`), compiled for one CPU core."""

from __future__ import annotations

import numpy as np

from ensemblepp.compilation.compiled import compiled


@compiled(no_cfunc_wrapper=True, nogil=True, error_model="numpy", fastmath={"contract"})
def langevin(widths, row, features, count, total, noise, rate, keep, noise_rate, predictions):
    """w <- keep w - rate grad + noise_rate xi, once for every xi, with the gradient of sum_i n_i f(x_i)^2 - 2 s_i f(x_i).

    Args:
        widths: (layers + 1,) entries of the input and of every hidden layer.
        row: (P,) w, one chain's parameters, changed: weights and biases of every layer, and the head's weights.
        features: x, (rows, d) float32.
        count: n, (rows,) float32.
        total: s, (rows,) float32.
        noise: xi, (steps, P) float32.
        rate: float32.
        keep: float32.
        noise_rate: float32.
        predictions: (rows, 1) float32; becomes f(x) at the last gradient's parameters.
    """
    layers, rows, width = len(widths) - 1, len(features), widths[-1]
    # where each layer's parameters begin, and its outputs in `work`
    begin, place = np.zeros(layers + 1, dtype=np.int64), np.zeros(layers + 1, dtype=np.int64)
    for layer in range(layers):
        begin[layer + 1] = begin[layer] + (widths[layer] + 1) * widths[layer + 1]
        place[layer + 1] = place[layer] + rows * widths[layer + 1]
    work, slopes = np.empty(place[layers], dtype=np.float32), np.empty(place[layers], dtype=np.float32)
    change = np.empty_like(row)
    delta = np.empty((rows, 1), dtype=np.float32)
    head = row[begin[layers] :].reshape(width, 1)
    by_head = change[begin[layers] :].reshape(width, 1)
    for step in range(len(noise)):
        hidden = features
        for layer in range(layers):
            fan_in, wide = widths[layer], widths[layer + 1]
            end = begin[layer] + fan_in * wide
            outputs = work[place[layer] : place[layer + 1]].reshape(rows, wide)
            np.dot(hidden, row[begin[layer] : end].reshape(fan_in, wide), outputs)
            for i in range(rows):
                for j in range(wide):
                    value = outputs[i, j] + row[end + j]
                    # not max, which may lose what is no number
                    outputs[i, j] = np.float32(0) if value <= np.float32(0) else value
            hidden = outputs
        np.dot(hidden, head, predictions)
        for i in range(rows):
            delta[i, 0] = np.float32(2) * (count[i] * predictions[i, 0] - total[i])
        np.dot(hidden.T, delta, by_head)
        if layers > 0:
            upper = slopes[place[layers - 1] : place[layers]].reshape(rows, width)
            for i in range(rows):
                for j in range(width):
                    upper[i, j] = delta[i, 0] * head[j, 0]
        for layer in range(layers - 1, -1, -1):
            fan_in, wide = widths[layer], widths[layer + 1]
            end = begin[layer] + fan_in * wide
            outputs = work[place[layer] : place[layer + 1]].reshape(rows, wide)
            above = slopes[place[layer] : place[layer + 1]].reshape(rows, wide)
            for j in range(wide):
                change[end + j] = np.float32(0)
            for i in range(rows):
                for j in range(wide):
                    above[i, j] = np.float32(0) if outputs[i, j] <= np.float32(0) else above[i, j]
                    change[end + j] += above[i, j]
            inputs = features
            if layer > 0:
                inputs = work[place[layer - 1] : place[layer]].reshape(rows, fan_in)
                below = slopes[place[layer - 1] : place[layer]].reshape(rows, fan_in)
                np.dot(above, row[begin[layer] : end].reshape(fan_in, wide).T, below)
            np.dot(inputs.T, above, change[begin[layer] : end].reshape(fan_in, wide))
        for p in range(len(row)):
            row[p] = keep * row[p] - rate * change[p] + noise_rate * noise[step, p]
