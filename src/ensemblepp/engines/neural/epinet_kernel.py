"""The rounds of EpiNet (`agents.neural.epinet`), compiled for one CPU core.

Trunk, offers and Adam are those of all compiled rounds (`engines.neural.network`). The epinet is evaluated and
differentiated index by index, on all rows of a minibatch side by side: what it needs for one index stays in the nearest cache.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensemblepp.compilation import arithmetic
from ensemblepp.compilation.compiled import compiled
from ensemblepp.engines.neural import network


class Shape(NamedTuple):
    """What the network is, and how it is trained; parameters by the places at which they begin in a row of them."""

    widths: np.ndarray  #: (layers + 1,) entries of the input and of every hidden layer
    weights: np.ndarray  #: (layers,) weight matrices of the trunk
    biases: np.ndarray  #: (layers,) the same of the biases
    base: int
    bias: int
    from_features: int
    from_hidden: int
    from_index: int
    in_bias: int
    middle: int  #: the biases of this layer follow it
    out: int
    out_bias: int
    classes: int
    members: int  #: M
    units: int  #: U, the width of both hidden layers of the epinet
    posterior_scale: np.float32
    double_softmax: bool
    learning_rate: float
    weight_decay: float
    warm_up: int
    update_every: int


class Draws(NamedTuple):
    """Random numbers of the rounds that are drawn ahead; chains first, then rounds."""

    offers: np.ndarray  #: (seeds, rounds, actions) int32
    noise: np.ndarray  #: (seeds, rounds) float64
    seed: np.ndarray  #: (chains,) which row of the two above is whose
    minibatch: np.ndarray  #: (chains, rounds, gradient steps, batch) float32
    reference: np.ndarray  #: (chains, rounds, M) zeta
    perturbation: np.ndarray  #: (chains, rounds, M), or empty
    indices: np.ndarray  #: (chains, rounds, gradient steps, M, indices, batch)
    offsets: np.ndarray  #: (chains, rounds from the first that is played, actions, M classes): the prior


@arithmetic.inner
def _read(shape, acting, values, j):
    """Number j of what acts, or of what is fitted, where `values` has all classes: `EpiNet._acting` and `EpiNet._fitted`."""
    if shape.classes == 1:
        return values[j]
    if acting and not shape.double_softmax:
        return values[2 * j + 1]
    return values[2 * j + 1] - values[2 * j]


@arithmetic.inner
def _write(shape, change, j, slope):
    """The derivative by number j of what is fitted, as those of all classes."""
    if shape.classes == 1:
        change[j] = slope
    else:
        change[2 * j + 1] = slope
        change[2 * j] = -slope


@arithmetic.inner
def _rowwise(shape, row, acting, features, hidden):
    """What does not depend on the index, (rows, U + 1): the epinet's first layer, and the base network's output."""
    dimension, width, units = features.shape[1], hidden.shape[1], shape.units
    heads = np.empty((width, units + 1), dtype=np.float32)
    base = row[shape.base : shape.base + width * shape.classes]
    for i in range(width):
        for u in range(units):
            heads[i, u] = row[shape.from_hidden + i * units + u]
        heads[i, units] = _read(shape, acting, base, i)
    of_features = row[shape.from_features : shape.from_features + dimension * units].reshape(dimension, units)
    found, first = np.dot(hidden, heads), np.dot(features, of_features)
    bias = _read(shape, acting, row[shape.bias : shape.bias + shape.classes], 0)
    for i in range(len(found)):
        for u in range(units):
            found[i, u] += first[i, u] + row[shape.in_bias + u]
        found[i, units] += bias
    return found


@arithmetic.inner
def _choose(shape, row, features, hidden, zeta, offsets):
    """(chosen action, whether it is not the best by the base network)."""
    units, members, scale = shape.units, shape.members, shape.posterior_scale
    found = _rowwise(shape, row, True, features, hidden)
    space = np.empty((3, units), dtype=np.float32)
    shift, last, second = space[0], space[1], space[2]
    out = row[shape.out : shape.out_bias]
    for u in range(units):
        shift[u] = last[u] = np.float32(0)
        for m in range(members):
            shift[u] += row[shape.from_index + m * units + u] * zeta[m]
            last[u] += scale * _read(shape, True, out, u * members + m) * zeta[m]
    out_bias = row[shape.out_bias : shape.out_bias + members * shape.classes]
    best, best_mean = 0, 0
    top, top_mean = np.float32(-np.inf), np.float32(-np.inf)
    for i in range(len(found)):
        for v in range(units):
            second[v] = row[shape.middle + units * units + v]
        for u in range(units):
            first = max(found[i, u] + shift[u], np.float32(0))
            for v in range(units):
                second[v] += first * row[shape.middle + u * units + v]
        mean = found[i, units]
        value = mean
        for v in range(units):
            value += max(second[v], np.float32(0)) * last[v]
        for m in range(members):
            value += zeta[m] * (_read(shape, True, offsets[i], m) + scale * _read(shape, True, out_bias, m))
        if value > top:
            top, best = value, i
        if mean > top_mean:
            top_mean, best_mean = mean, i
    return best, best != best_mean


@arithmetic.inner
def _clear(values):
    for i in range(values.shape[0]):
        for n in range(values.shape[1]):
            values[i, n] = np.float32(0)


@arithmetic.inner
def _combine(weights, inputs, outputs):
    """outputs[j] += sum_k weights[k, j] inputs[k] of rows, four k at a time."""
    count = len(weights)
    for j in range(weights.shape[1]):
        out = outputs[j]
        for k in range(0, count - 3, 4):
            a, b, c, d = weights[k, j], weights[k + 1, j], weights[k + 2, j], weights[k + 3, j]
            p, q, r, s = inputs[k], inputs[k + 1], inputs[k + 2], inputs[k + 3]
            for n in range(len(out)):
                out[n] = out[n] + a * p[n] + b * q[n] + c * r[n] + d * s[n]
        for k in range(count // 4 * 4, count):
            a, p = weights[k, j], inputs[k]
            for n in range(len(out)):
                out[n] += a * p[n]


@arithmetic.reordered
def _correlate(left, right, sums):
    """sums[k, j] += <left[k], right[j]> of rows, four j at a time."""
    count = len(right)
    for k in range(len(left)):
        p = left[k]
        for j in range(0, count - 3, 4):
            q, r, s, t = right[j], right[j + 1], right[j + 2], right[j + 3]
            a = b = c = d = np.float32(0)
            for n in range(len(p)):
                a += p[n] * q[n]
                b += p[n] * r[n]
                c += p[n] * s[n]
                d += p[n] * t[n]
            sums[k, j] += a
            sums[k, j + 1] += b
            sums[k, j + 2] += c
            sums[k, j + 3] += d
        for j in range(count // 4 * 4, count):
            q = right[j]
            a = np.float32(0)
            for n in range(len(p)):
                a += p[n] * q[n]
            sums[k, j] += a


@arithmetic.inner
def _loss(shape, value, reward, share, losses, slope):
    """Add every row's loss to `losses`, and write the derivatives of the mean by `value` to `slope`."""
    if shape.classes == 1:
        for n in range(len(value)):
            gap = value[n] - reward[n]
            losses[n] += gap * gap
            slope[n] = np.float32(2) * share * gap
        return
    for n in range(len(value)):
        logit, inward = value[n], np.float32(1)
        if shape.double_softmax:
            # the difference of the two probabilities: tanh(value / 2)
            logit = np.float32(2) * network.sigmoid(value[n]) - np.float32(1)
            inward = np.float32(0.5) * (np.float32(1) - logit * logit)
        losses[n] += network.softplus(logit) - reward[n] * logit
        slope[n] = share * inward * (network.sigmoid(logit) - reward[n])


@arithmetic.inner
def _gradient(shape, row, features, hidden, zeta, extra, reward, change, delta):
    """Write derivatives of a minibatch's mean loss to `change`, those by the trunk's outputs to `delta`; returns that loss.

    zeta (M, indices, rows); extra (rows, M) as `EpiNet.extra`.
    """
    units, members, scale = shape.units, shape.members, shape.posterior_scale
    _, count, rows = zeta.shape
    dimension, width = features.shape[1], hidden.shape[1]
    share = np.float32(1) / np.float32(count * rows)
    found = _rowwise(shape, row, False, features, hidden)
    index = row[shape.from_index : shape.from_index + members * units].reshape(members, units)
    middle = row[shape.middle : shape.middle + (units + 1) * units].reshape(units + 1, units)
    turned = np.empty((units, units), dtype=np.float32)
    out = np.empty((members, units), dtype=np.float32)
    flat_out = row[shape.out : shape.out_bias]
    out_bias = row[shape.out_bias : shape.out_bias + members * shape.classes]
    for u in range(units):
        for v in range(units):
            turned[v, u] = middle[u, v]
        for m in range(members):
            out[m, u] = scale * _read(shape, False, flat_out, u * members + m)
    by_row = np.empty((units + 1, rows), dtype=np.float32)
    constant = np.empty((members, rows), dtype=np.float32)
    for n in range(rows):
        for u in range(units + 1):
            by_row[u, n] = found[n, u]
        for m in range(members):
            constant[m, n] = extra[n, m] + scale * _read(shape, False, out_bias, m)
    own = np.empty((members, rows), dtype=np.float32)
    # a last row of ones meets the biases of the layer
    first = np.ones((units + 1, rows), dtype=np.float32)
    second, last = np.empty((units, rows), dtype=np.float32), np.empty((units, rows), dtype=np.float32)
    value, losses = np.empty(rows, dtype=np.float32), np.zeros(rows, dtype=np.float32)
    # by the first layer, by `last`, and by the value
    slopes, by_second = np.empty((2 * units + 1, rows), dtype=np.float32), np.empty((units, rows), dtype=np.float32)
    row_slopes = np.zeros((units + 1, rows), dtype=np.float32)
    by_index = np.zeros((members, 2 * units + 1), dtype=np.float32)
    by_middle = np.zeros((units + 1, units), dtype=np.float32)
    slope = slopes[2 * units]
    for i in range(count):
        for u in range(units):
            for n in range(rows):
                first[u, n] = by_row[u, n]
        _clear(second)
        _clear(last)
        _clear(slopes[:units])
        for n in range(rows):
            value[n] = by_row[units, n]
        for m in range(members):
            for n in range(rows):
                own[m, n] = zeta[m, i, n]
                value[n] += own[m, n] * constant[m, n]
        _combine(index, own, first)
        for u in range(units):
            for n in range(rows):
                first[u, n] = max(first[u, n], np.float32(0))
        _combine(middle, first, second)
        _combine(out, own, last)
        for v in range(units):
            for n in range(rows):
                second[v, n] = max(second[v, n], np.float32(0))
                value[n] += second[v, n] * last[v, n]
        _loss(shape, value, reward, share, losses, slope)
        for v in range(units):
            for n in range(rows):
                slopes[units + v, n] = slope[n] * second[v, n]
                by_second[v, n] = slope[n] * last[v, n] if second[v, n] > np.float32(0) else np.float32(0)
        _combine(turned, by_second, slopes)
        for u in range(units):
            for n in range(rows):
                slopes[u, n] = slopes[u, n] if first[u, n] > np.float32(0) else np.float32(0)
                row_slopes[u, n] += slopes[u, n]
        for n in range(rows):
            row_slopes[units, n] += slope[n]
        _correlate(own, slopes, by_index)
        _correlate(first, by_second, by_middle)
    for m in range(members):
        for u in range(units):
            change[shape.from_index + m * units + u] = by_index[m, u]
            _write(shape, change[shape.out :], u * members + m, scale * by_index[m, units + u])
        _write(shape, change[shape.out_bias :], m, scale * by_index[m, 2 * units])
    for u in range(units + 1):
        for v in range(units):
            change[shape.middle + u * units + v] = by_middle[u, v]
    by_features, by_hidden = np.dot(features.T, row_slopes.T), np.dot(hidden.T, row_slopes.T)
    for i in range(dimension):
        for u in range(units):
            change[shape.from_features + i * units + u] = by_features[i, u]
    for i in range(width):
        for u in range(units):
            change[shape.from_hidden + i * units + u] = by_hidden[i, u]
        _write(shape, change[shape.base :], i, by_hidden[i, units])
    loss = np.float32(0)
    for n in range(rows):
        loss += losses[n]
    for u in range(units + 1):
        sum_ = np.float32(0)
        for n in range(rows):
            sum_ += row_slopes[u, n]
        if u < units:
            change[shape.in_bias + u] = sum_
        else:
            _write(shape, change[shape.bias :], 0, sum_)
    # read before, or the loop over them is no vector code
    head = np.empty(width, dtype=np.float32)
    base = row[shape.base : shape.base + width * shape.classes]
    for j in range(width):
        head[j] = _read(shape, False, base, j)
    for n in range(rows):
        by_value, by_outputs = row_slopes[units, n], delta[n * width : (n + 1) * width]
        for j in range(width):
            by_outputs[j] = by_value * head[j]
    return loss * share


@compiled(**arithmetic.OPTIONS)
def play(shape, environment, draws, state, done, start):
    """Play for every chain the rounds of `draws` from `start` to the last of its `offsets`, after `done` earlier ones."""
    chains, _, steps, batch = draws.minibatch.shape
    rounds, actions = draws.offsets.shape[1:3]
    layers, members = len(shape.weights), shape.members
    dimension, width = shape.widths[0], shape.widths[-1]
    places, work, delta, other = network.room(shape, max(batch, actions))
    change = np.zeros(state.flat.shape[1], dtype=np.float32)
    rewards, extras = np.empty(batch, dtype=np.float32), np.empty((batch, members), dtype=np.float32)
    means, picked = np.empty(actions), np.empty(batch, dtype=np.int32)
    for chain in range(chains):
        row, seed = state.flat[chain], draws.seed[chain]
        items, mean_of = network.items_of(environment, chain), environment.means[environment.means_of[chain]]
        for place in range(start, start + rounds):
            clock = done + place - start
            offers, offsets = draws.offers[seed, place], draws.offsets[chain, place - start]
            best = network.offer(mean_of, offers, means)
            network.gather_all(items, offers, work)
            network.forward(shape, row, work, places, items, offers)
            features = work[: actions * dimension].reshape(actions, dimension)
            hidden = work[places[layers] : places[layers] + actions * width].reshape(actions, width)
            chosen, explores = _choose(shape, row, features, hidden, draws.reference[chain, place], offsets)
            noise = draws.noise[seed, place]
            slot = network.answer(environment, state, chain, clock, offers, chosen, means, best, noise, explores)
            for m in range(members):
                extra = _read(shape, False, offsets[chosen], m)
                if shape.classes == 1:
                    extra -= draws.perturbation[chain, place, m]
                state.extra[chain, slot, m] = extra
            if clock + 1 <= shape.warm_up or (clock + 1) % shape.update_every != 0:
                continue
            stored = min(clock + 1, state.item.shape[1])
            for step in range(steps):
                drawn = draws.minibatch[chain, place, step]
                network.minibatch(state, chain, drawn, stored, picked, rewards, extras)
                network.gather_all(items, picked, work)
                network.forward(shape, row, work, places, items, picked)
                features = work[: batch * dimension].reshape(batch, dimension)
                hidden = work[places[layers] : places[layers] + batch * width].reshape(batch, width)
                zeta = draws.indices[chain, place, step]
                state.loss[chain] = _gradient(shape, row, features, hidden, zeta, extras, rewards, change, delta)
                network.trunk_back(shape, row, work, places, items, picked, delta, other, change)
                state.steps[chain] += 1
                moments, decay = (state.first[chain], state.second[chain]), shape.weight_decay / stored
                network.adam(row, moments[0], moments[1], change, shape.learning_rate, decay, state.steps[chain])
