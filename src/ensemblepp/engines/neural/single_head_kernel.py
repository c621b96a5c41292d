"""The rounds of agents of one trunk with one linear head (`agents.neural.single_head`), compiled for one CPU core.

Trunk, offers, minibatches and Adam are those of all compiled rounds (`engines.neural.network`). Here is what these agents
explore by: the widths of NeuralUCB and NeuralTS, the regression of NeuralLinear, and the units that dropout leaves out.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ensemblepp.agents.neural import columns
from ensemblepp.compilation import arithmetic
from ensemblepp.compilation.compiled import compiled
from ensemblepp.engines.neural import network


class Shape(NamedTuple):
    """What the network is, and how it is trained; parameters by the places at which they begin in a row of them."""

    widths: np.ndarray  #: (layers + 1,) entries of the input and of every hidden layer
    weights: np.ndarray  #: (layers,) weight matrices of the trunk
    biases: np.ndarray  #: (layers,) the same of the biases
    base: int
    classes: int
    learning_rate: float
    weight_decay: float
    warm_up: int
    update_every: int


class Layer(NamedTuple):
    """One layer of the network, as a network of one layer: what `network.forward` asks of a `Shape`."""

    widths: np.ndarray
    weights: np.ndarray
    biases: np.ndarray


class Exploring(NamedTuple):
    """What decides beside the network's prediction. Of an agent that does without one, arrays are empty and numbers 0."""

    matrix: np.ndarray  #: (chains, parameters) float32: the diagonal of U
    ridge: np.float32
    exploration: np.float32  #: nu
    precision: np.ndarray  #: (chains, width, width) float64
    moment: np.ndarray  #: (chains, width) float64
    prior: float  #: inverse variance of the regression's weights
    weight: float  #: inverse variance of its noise
    refresh: int
    rate: np.float32  #: share of the units that is dropped


class Draws(NamedTuple):
    """Random numbers of the rounds that are drawn ahead; chains first, then rounds. What an agent does without is empty."""

    offers: np.ndarray  #: (seeds, rounds, actions) int32
    noise: np.ndarray  #: (seeds, rounds) float64
    seed: np.ndarray  #: (chains,) which row of the two above is whose
    minibatch: np.ndarray  #: (chains, rounds, gradient steps, batch) float32
    reference: np.ndarray  #: (chains, rounds, n) float32: normals of actions or of weights, or uniforms of units
    dropped: np.ndarray  #: (chains, rounds, gradient steps, batch, units) float32 uniforms


# ------------------------------------------------------------------------------------------------------------- gradients


@arithmetic.inner
def _slopes(shape, row, work, places, rows, slopes):
    """Derivatives of f by the outputs of every layer before its ReLU, into `slopes`, which is laid out as `work` is."""
    layers = len(shape.weights)
    for layer in range(layers - 1, -1, -1):
        width = shape.widths[layer + 1]
        outputs = work[places[layer + 1] : places[layer + 1] + rows * width].reshape(rows, width)
        own = slopes[places[layer + 1] : places[layer + 1] + rows * width].reshape(rows, width)
        if layer == layers - 1:
            head = row[shape.base : shape.base + width]
            for i in range(rows):
                for j in range(width):
                    own[i, j] = head[j]
        else:
            above = shape.widths[layer + 2]
            weight = row[shape.weights[layer + 1] : shape.weights[layer + 1] + width * above].reshape(width, above)
            np.dot(slopes[places[layer + 2] : places[layer + 2] + rows * above].reshape(rows, above), weight.T, own)
        for i in range(rows):
            for j in range(width):
                own[i, j] = own[i, j] if outputs[i, j] > np.float32(0) else np.float32(0)


@arithmetic.reordered
def _add_squares(values, weights, sums):
    """sums[i] += sum_j weights[i, j] values[i, j]^2; one row of weights is every row's."""
    for i in range(len(values)):
        own, by = values[i], weights[i] if len(weights) > 1 else weights[0]
        total = np.float32(0)
        for j in range(len(own)):
            total += by[j] * (own[j] * own[j])
        sums[i] += total


@arithmetic.inner
def _deviations(shape, row, matrix, work, places, items, picked, slopes, inverse, room, other, found):
    """g^T U^-1 g of every item of `picked`, whose activations lie in `work`: `NeuralUCB.judge`. `room` and `other` are room."""
    rows, layers, last = len(picked), len(shape.weights), shape.widths[-1]
    _slopes(shape, row, work, places, rows, slopes)
    for p in range(len(matrix)):
        inverse[p] = np.float32(1) / matrix[p]
    hidden = work[places[layers] : places[layers] + rows * last].reshape(rows, last)
    for i in range(rows):
        found[i] = np.float32(0)
    _add_squares(hidden, inverse[shape.base : shape.base + last].reshape(1, last), found)
    for layer in range(layers):
        fan_in, width = shape.widths[layer], shape.widths[layer + 1]
        by_weight = inverse[shape.weights[layer] : shape.weights[layer] + fan_in * width].reshape(fan_in, width)
        inner = room[: rows * width].reshape(rows, width)
        if layer == 0 and items.columns.shape[1] > 0:
            columns.product(items, picked, by_weight, True, inner)
        else:
            inputs, squares = work[places[layer] : places[layer] + rows * fan_in], other[: rows * fan_in]
            for p in range(rows * fan_in):
                squares[p] = inputs[p] * inputs[p]
            np.dot(squares.reshape(rows, fan_in), by_weight, inner)
        own = slopes[places[layer + 1] : places[layer + 1] + rows * width].reshape(rows, width)
        by_bias = inverse[shape.biases[layer] : shape.biases[layer] + width]
        for i in range(rows):
            for j in range(width):
                inner[i, j] += by_bias[j]
        _add_squares(own, inner, found)


@arithmetic.inner
def _see(shape, matrix, work, places, items, item, place, slopes, features):
    """Add to U the gradient of the item that was chosen, number `place` of those in `work`: `NeuralUCB.observe`."""
    layers, last = len(shape.weights), shape.widths[-1]
    share = np.float32(1) / np.float32(last)
    network.gather(items, item, features)
    inputs = features
    for layer in range(layers + 1):
        fan_in = shape.widths[layer]
        if layer > 0:
            inputs = work[places[layer] + place * fan_in : places[layer] + (place + 1) * fan_in]
        if layer == layers:
            for j in range(last):
                matrix[shape.base + j] += share * (inputs[j] * inputs[j])
            break
        width = shape.widths[layer + 1]
        own = slopes[places[layer + 1] + place * width : places[layer + 1] + (place + 1) * width]
        for j in range(width):
            matrix[shape.biases[layer] + j] += share * (own[j] * own[j])
        for k in range(fan_in):
            square = inputs[k] * inputs[k]
            if square > np.float32(0):
                into = matrix[shape.weights[layer] + k * width : shape.weights[layer] + (k + 1) * width]
                for j in range(width):
                    into[j] += share * (square * (own[j] * own[j]))


# ------------------------------------------------------------------------------------------------------------ regression


@arithmetic.inner
def _forget(exploring, chain):
    """Go back to the prior."""
    precision, moment = exploring.precision[chain], exploring.moment[chain]
    for i in range(len(moment)):
        moment[i] = 0.0
        for j in range(len(moment)):
            precision[i, j] = exploring.prior if i == j else 0.0


@arithmetic.inner
def _add(exploring, chain, hidden, rewards):
    """Add samples, (rows, width) and (rows,), to the regression."""
    precision, moment = exploring.precision[chain], exploring.moment[chain]
    rows, width = hidden.shape
    features = np.empty((rows, width))
    for i in range(rows):
        for j in range(width):
            features[i, j] = hidden[i, j]
    products = np.dot(features.T, features)
    for i in range(width):
        for j in range(width):
            precision[i, j] += exploring.weight * products[i, j]
    sums = np.zeros(width)
    for i in range(rows):
        for j in range(width):
            sums[j] += features[i, j] * rewards[i]
    for j in range(width):
        moment[j] += exploring.weight * sums[j]


@arithmetic.inner
def _regress(exploring, chain, normals, factor, sampled, mean):
    """The mean of the regression's weights, and a sample of them, float32 each: `NeuralLinear.score`.

    With the precision U^T U, U upper triangular, the mean is U^-1 U^-T m, and U^-1 z has its inverse for a covariance.
    """
    precision, moment = exploring.precision[chain], exploring.moment[chain]
    width = len(moment)
    white, solved = np.empty(width), np.empty((2, width))
    for i in range(width):
        white[i] = moment[i]
        for j in range(i, width):
            factor[i, j] = precision[i, j]
    # whole rows at a time, so that no sum depends on the width of a register
    for k in range(width):
        root = math.sqrt(factor[k, k])
        for j in range(k, width):
            factor[k, j] /= root
        white[k] /= factor[k, k]
        for j in range(k + 1, width):
            white[j] -= white[k] * factor[k, j]
        for i in range(k + 1, width):
            share = factor[k, i]
            for j in range(i, width):
                factor[i, j] -= share * factor[k, j]
    for i in range(width - 1, -1, -1):
        for place in range(2):
            value = white[i]
            if place == 0:
                value += normals[i]
            for j in range(i + 1, width):
                value -= factor[i, j] * solved[place, j]
            solved[place, i] = value / factor[i, i]
        sampled[i], mean[i] = solved[0, i], solved[1, i]


@arithmetic.inner
def _refresh(shape, row, exploring, chain, state, stored, work, places, items, most):
    """Do the regression anew, on the buffer, with the present features: `NeuralLinear.end_round`."""
    layers, width = len(shape.weights), shape.widths[-1]
    _forget(exploring, chain)
    for first in range(0, stored, most):
        picked = state.item[chain, first : min(first + most, stored)]
        rows = len(picked)
        network.gather_all(items, picked, work)
        network.forward(shape, row, work, places, items, picked)
        hidden = work[places[layers] : places[layers] + rows * width].reshape(rows, width)
        _add(exploring, chain, hidden, state.reward[chain, first : first + rows])


# --------------------------------------------------------------------------------------------------------------- dropout


@arithmetic.inner
def _thin(values, uniforms, rate, scale):
    """Leave out the units whose number is below `rate`: of (rows, width), by (rows or 1, width)."""
    for i in range(len(values)):
        of = uniforms[i] if len(uniforms) > 1 else uniforms[0]
        for j in range(values.shape[1]):
            values[i, j] = values[i, j] * scale if of[j] >= rate else np.float32(0)


@arithmetic.inner
def _thinned(shape, row, work, places, items, picked, uniforms, rate):
    """`network.forward` without some of the units; the numbers of all layers stand side by side in `uniforms`."""
    rows, layers = len(picked), len(shape.weights)
    scale, first = np.float32(1) / (np.float32(1) - rate), 0
    whole = columns.Items(items.table, np.empty((0, 0), dtype=np.int32), items.blocks)
    if layers == 0:
        fan_in = shape.widths[0]
        _thin(work[: rows * fan_in].reshape(rows, fan_in), uniforms, rate, scale)
    for layer in range(layers):
        alone = Layer(shape.widths[layer : layer + 2], shape.weights[layer : layer + 1], shape.biases[layer : layer + 1])
        network.forward(alone, row, work, places[layer : layer + 2], items if layer == 0 else whole, picked)
        width = shape.widths[layer + 1]
        values = work[places[layer + 1] : places[layer + 1] + rows * width].reshape(rows, width)
        _thin(values, uniforms[:, first : first + width], rate, scale)
        first += width


@arithmetic.inner
def _stretch(shape, rate, change):
    """Multiply the trunk's derivatives by the factors of the units that stayed, one for every layer above."""
    scale, factor = np.float32(1) / (np.float32(1) - rate), np.float32(1)
    for layer in range(len(shape.weights) - 1, -1, -1):
        factor *= scale
        fan_in, width = shape.widths[layer], shape.widths[layer + 1]
        for p in range(shape.weights[layer], shape.weights[layer] + fan_in * width):
            change[p] *= factor
        for p in range(shape.biases[layer], shape.biases[layer] + width):
            change[p] *= factor


# ------------------------------------------------------------------------------------------------------------- the round


@arithmetic.inner
def _slope(outputs, reward, gradient):
    """Derivatives of the mean loss by the outputs, (rows, classes); returns that loss."""
    rows = len(outputs)
    share, loss = np.float32(1) / np.float32(rows), np.float32(0)
    for i in range(rows):
        if outputs.shape[1] == 1:
            gap = outputs[i, 0] - reward[i]
            gradient[i, 0] = np.float32(2) * share * gap
            loss += gap * gap
        else:
            gap = outputs[i, 1] - outputs[i, 0]
            gradient[i, 1] = share * (network.sigmoid(gap) - reward[i])
            gradient[i, 0] = -gradient[i, 1]
            loss += network.softplus(gap) - reward[i] * gap
    return loss * share


@arithmetic.inner
def _best(values):
    """Where the first of the greatest values is."""
    best = 0
    for i in range(1, len(values)):
        if values[i] > values[best]:
            best = i
    return best


@compiled(**arithmetic.OPTIONS)
def play(shape, environment, draws, state, exploring, done, start, stop):
    """Play for every chain the rounds of `draws` from `start` to before `stop`, after `done` earlier ones."""
    chains, _, steps, batch = draws.minibatch.shape
    actions, capacity = draws.offers.shape[2], state.item.shape[1]
    layers, width, classes, parameters = len(shape.weights), shape.widths[-1], shape.classes, state.flat.shape[1]
    widened, regressed = exploring.matrix.shape[1] > 0, exploring.moment.shape[1] > 0
    dropping, sampled = exploring.rate > np.float32(0), draws.reference.shape[2] > 0
    most = max(batch, actions)
    places, work, delta, other = network.room(shape, most)
    slopes, inverse = np.empty(len(work) if widened else 0, np.float32), np.empty(exploring.matrix.shape[1], np.float32)
    factor, theta = np.empty((exploring.moment.shape[1], exploring.moment.shape[1])), np.empty((width, 2), dtype=np.float32)
    change, features = np.zeros(parameters, dtype=np.float32), np.empty(shape.widths[0], dtype=np.float32)
    means, picked = np.empty(actions), np.empty(batch, dtype=np.int32)
    value, mean = np.empty(actions, dtype=np.float32), np.empty(actions, dtype=np.float32)
    deviation = np.empty(actions, dtype=np.float32)
    outputs, gradient = np.empty((batch, classes), dtype=np.float32), np.empty((batch, classes), dtype=np.float32)
    rewards, extras = np.empty(batch, dtype=np.float32), np.empty((batch, 0), dtype=np.float32)
    for chain in range(chains):
        row, seed = state.flat[chain], draws.seed[chain]
        items, mean_of = network.items_of(environment, chain), environment.means[environment.means_of[chain]]
        base = row[shape.base : shape.base + width * classes].reshape(width, classes)
        for place in range(start, stop):
            clock = done + place - start
            offers = draws.offers[seed, place]
            best = network.offer(mean_of, offers, means)
            network.gather_all(items, offers, work)
            network.forward(shape, row, work, places, items, offers)
            hidden = work[places[layers] : places[layers] + actions * width].reshape(actions, width)
            if regressed:
                _regress(exploring, chain, draws.reference[chain, place], factor, theta[:, 0], theta[:, 1])
            else:
                for j in range(width):
                    theta[j, 0] = theta[j, 1] = base[j, classes - 1]
            scores = np.dot(hidden, theta)
            for i in range(actions):
                value[i], mean[i] = scores[i, 0], scores[i, 1 if regressed else 0]
            if widened:
                matrix = exploring.matrix[chain]
                _deviations(shape, row, matrix, work, places, items, offers, slopes, inverse, delta, other, deviation)
                scale = exploring.ridge / np.float32(width)
                for i in range(actions):
                    wide = exploring.exploration * np.sqrt(scale * deviation[i])
                    value[i] += wide * draws.reference[chain, place, i] if sampled else wide
            if dropping:
                # once more, without those units; the features still lie there
                units = draws.reference[chain, place].reshape(1, draws.reference.shape[2])
                _thinned(shape, row, work, places, items, offers, units, exploring.rate)
                scores = np.dot(hidden, theta)
                for i in range(actions):
                    value[i] = scores[i, 0]
            chosen, noise = _best(value), draws.noise[seed, place]
            explores = chosen != _best(mean)
            slot = network.answer(environment, state, chain, clock, offers, chosen, means, best, noise, explores)
            if widened:
                _see(shape, exploring.matrix[chain], work, places, items, offers[chosen], chosen, slopes, features)
            if regressed:
                _add(exploring, chain, hidden[chosen : chosen + 1], state.reward[chain, slot : slot + 1])
            stored = min(clock + 1, capacity)
            trains = clock + 1 > shape.warm_up and (clock + 1) % shape.update_every == 0
            for step in range(steps if trains else 0):
                network.minibatch(state, chain, draws.minibatch[chain, place, step], stored, picked, rewards, extras)
                network.gather_all(items, picked, work)
                if dropping:
                    _thinned(shape, row, work, places, items, picked, draws.dropped[chain, place, step], exploring.rate)
                else:
                    network.forward(shape, row, work, places, items, picked)
                inputs = work[places[layers] : places[layers] + batch * width].reshape(batch, width)
                np.dot(inputs, base, outputs)
                state.loss[chain] = _slope(outputs, rewards, gradient)
                np.dot(inputs.T, gradient, change[shape.base : shape.base + width * classes].reshape(width, classes))
                if layers > 0:
                    np.dot(gradient, base.T, delta[: batch * width].reshape(batch, width))
                    network.trunk_back(shape, row, work, places, items, picked, delta, other, change)
                    if dropping:
                        _stretch(shape, exploring.rate, change)
                state.steps[chain] += 1
                moments, decay = (state.first[chain], state.second[chain]), shape.weight_decay / stored
                network.adam(row, moments[0], moments[1], change, shape.learning_rate, decay, state.steps[chain])
            if regressed and (clock + 1) % exploring.refresh == 0:
                _refresh(shape, row, exploring, chain, state, stored, work, places, items, most)
