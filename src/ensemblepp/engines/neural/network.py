"""What the compiled rounds of all neural agents share: offers and answers, the ReLU trunk, Adam and the logistic functions."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ensemblepp.agents.neural import columns
from ensemblepp.compilation.arithmetic import inner

_FARTHEST, _LOG2_E, _ROUNDING = np.float32(-88), np.float32(1 / math.log(2)), np.float32(1.5 * 2**23)
#: ln 2 as one of few digits, whose small multiples are exact, and the rest.
_LN2_HEAD, _LN2_TAIL = np.float32(0.693359375), np.float32(math.log(2) - 0.693359375)
_EXP = tuple(np.float32(1 / math.factorial(degree)) for degree in range(8))
_ARTANH = tuple(np.float32(1 / (2 * degree + 1)) for degree in range(8))

_BETA1, _BETA2, _EPSILON = 0.9, 0.999, 1e-8


class Environment(NamedTuple):
    """The environment."""

    table: np.ndarray  #: (tables, rows, width) float32
    columns: np.ndarray  #: (tables, rows, K) int32: where a row is not 0, then -1; K = 0: rows are multiplied whole
    blocks: int  #: item i is row i // blocks, in block i % blocks of the features
    means: np.ndarray  #: (tables, items) float64
    table_of: np.ndarray  #: (chains,) which table is whose
    means_of: np.ndarray  #: (chains,) the same of the means
    bernoulli: bool


class Progress(NamedTuple):
    """What changes."""

    flat: np.ndarray  #: (chains, parameters) float32
    first: np.ndarray  #: Adam's moments, like `flat`
    second: np.ndarray
    steps: np.ndarray  #: (chains,) gradient steps so far
    item: np.ndarray  #: (chains, capacity) int32: the buffer
    reward: np.ndarray  #: (chains, capacity) float32
    extra: np.ndarray  #: (chains, capacity, extra width) float32
    regret_sum: np.ndarray  #: (chains,) float64
    reward_sum: np.ndarray
    optimal: np.ndarray  #: (chains,) int64
    explored: np.ndarray  #: (chains,) int64
    loss: np.ndarray  #: (chains,) float32
    action: np.ndarray  #: (chains, horizon) int32, or empty


@inner
def items_of(environment, chain):
    of = environment.table_of[chain]
    return columns.Items(environment.table[of], environment.columns[of], environment.blocks)


@inner
def gather(items, item, features):
    """Write the features of an item, (d,)."""
    width = items.table.shape[1]
    first, row = item % items.blocks * width, items.table[item // items.blocks]
    if items.blocks > 1:
        for j in range(len(features)):
            features[j] = np.float32(0)
    # not by a slice, whose check of shapes costs more to compile than a loop
    for j in range(width):
        features[first + j] = row[j]


@inner
def gather_all(items, rows, work):
    """Write the features of so many items to the beginning of `work`, unless the first layer takes their columns alone."""
    dimension = items.table.shape[1] * items.blocks
    if items.columns.shape[1] == 0:
        for i in range(len(rows)):
            gather(items, rows[i], work[i * dimension : (i + 1) * dimension])


@inner
def offer(mean_of, offers, means):
    """Write the means of the offered items to `means`; returns the best."""
    best = -np.inf  # not means.max(), which takes a tenth of all compile time
    for i in range(len(offers)):
        means[i] = mean_of[offers[i]]
        best = max(best, means[i])
    return best


@inner
def answer(environment, state, chain, clock, offers, chosen, means, best, noise, explores):
    """Reward and regret of the choice, into the sums and the buffer; returns its place in the buffer."""
    reward = means[chosen] + noise
    if environment.bernoulli:
        reward = 1.0 if noise < means[chosen] else 0.0
    regret = best - means[chosen]
    state.regret_sum[chain] += regret
    state.reward_sum[chain] += reward
    state.optimal[chain] += regret == 0
    state.explored[chain] += explores
    if state.action.shape[0] > 0:
        state.action[chain, clock] = chosen
    slot = clock % state.item.shape[1]
    state.item[chain, slot] = offers[chosen]
    state.reward[chain, slot] = reward
    return slot


@inner
def minibatch(state, chain, drawn, stored, picked, rewards, extras):
    """Look up what of the buffer `drawn`, (batch,) uniform in [0, 1), chooses of the first `stored`.

    Items go to `picked`, rewards to `rewards`, and to `extras` as many extra numbers as it has columns.
    """
    for i in range(len(drawn)):
        slot = int(drawn[i] * np.float32(stored))
        picked[i] = state.item[chain, slot]
        rewards[i] = state.reward[chain, slot]
        for m in range(extras.shape[1]):
            extras[i, m] = state.extra[chain, slot, m]


@inner
def room(shape, rows):
    """(where each layer's inputs begin in `work`, `work`, two rooms for derivatives by a layer's outputs), for so many rows."""
    layers, width = len(shape.weights), shape.widths[-1]
    places = np.zeros(layers + 1, dtype=np.int64)
    widest = width
    for layer in range(layers):
        places[layer + 1] = places[layer] + rows * shape.widths[layer]
        widest = max(widest, shape.widths[layer])
    work = np.empty(places[layers] + rows * width, dtype=np.float32)
    return places, work, np.empty(rows * widest, dtype=np.float32), np.empty(rows * widest, dtype=np.float32)


@inner
def forward(shape, row, work, places, items, picked):
    """Activations of all layers for the items `picked`, whose features lie at places[0] of `work` unless they are taken by
    their columns; ReLU after every layer."""
    rows = len(picked)
    for layer in range(len(shape.weights)):
        fan_in, width = shape.widths[layer], shape.widths[layer + 1]
        weight = row[shape.weights[layer] : shape.weights[layer] + fan_in * width].reshape(fan_in, width)
        bias = row[shape.biases[layer] : shape.biases[layer] + width]
        inputs = work[places[layer] : places[layer] + rows * fan_in].reshape(rows, fan_in)
        outputs = work[places[layer + 1] : places[layer + 1] + rows * width].reshape(rows, width)
        if layer == 0 and items.columns.shape[1] > 0:
            columns.product(items, picked, weight, False, outputs)
        else:
            np.dot(inputs, weight, outputs)
        for i in range(rows):
            for j in range(width):
                outputs[i, j] = max(outputs[i, j] + bias[j], np.float32(0))


@inner
def trunk_back(shape, row, work, places, items, picked, delta, other, change):
    """Write derivatives by the trunk's parameters to `change`, from those by its outputs, in `delta`; `other` is room."""
    rows = len(picked)
    for layer in range(len(shape.weights) - 1, -1, -1):
        fan_in, wide = shape.widths[layer], shape.widths[layer + 1]
        inputs = work[places[layer] : places[layer] + rows * fan_in].reshape(rows, fan_in)
        outputs = work[places[layer + 1] : places[layer + 1] + rows * wide].reshape(rows, wide)
        above = delta[: rows * wide].reshape(rows, wide)
        bias = change[shape.biases[layer] : shape.biases[layer] + wide]
        bias[:] = np.float32(0)
        for i in range(rows):
            for j in range(wide):
                above[i, j] = above[i, j] if outputs[i, j] > np.float32(0) else np.float32(0)
                bias[j] += above[i, j]
        into = change[shape.weights[layer] : shape.weights[layer] + fan_in * wide].reshape(fan_in, wide)
        if layer == 0 and items.columns.shape[1] > 0:
            columns.product_back(items, picked, above, into)
        else:
            np.dot(inputs.T, above, into)
        if layer > 0:
            weight = row[shape.weights[layer] : shape.weights[layer] + fan_in * wide].reshape(fan_in, wide)
            below = other[: rows * fan_in].reshape(rows, fan_in)
            np.dot(above, weight.T, below)
            delta, other = other, delta


@inner
def adam(row, first, second, change, learning_rate, decay, step):
    """One step of Adam with coupled weight decay, as torch's."""
    keep1, take1 = np.float32(_BETA1), np.float32(1 - _BETA1)
    keep2, take2 = np.float32(_BETA2), np.float32(1 - _BETA2)
    size = np.float32(learning_rate / (1 - _BETA1**step))
    correction = np.float32(1 / math.sqrt(1 - _BETA2**step))
    epsilon, decay = np.float32(_EPSILON), np.float32(decay)
    for p in range(len(row)):
        slope = change[p] + decay * row[p]
        first[p] = keep1 * first[p] + take1 * slope
        second[p] = keep2 * second[p] + take2 * slope * slope
        row[p] -= size * first[p] / (np.sqrt(second[p]) * correction + epsilon)


@inner
def fading(x):
    """exp(-|x|) in float32 to two units of the last place, by arithmetic alone, so that loops over it become vector code.

    2^n exp(r) with |r| <= ln(2) / 2, and Taylor's polynomial of degree 7. Below exp(-88) it is 0.
    """
    away = -abs(x)
    # not max, which may lose what is no number
    away = _FARTHEST if away < _FARTHEST else away
    # what is added is so great that the sum is a whole number
    whole = (away * _LOG2_E + _ROUNDING) - _ROUNDING
    rest = (away - whole * _LN2_HEAD) - whole * _LN2_TAIL
    power = (_EXP[7] * rest + _EXP[6]) * rest + _EXP[5]
    power = ((power * rest + _EXP[4]) * rest + _EXP[3]) * rest + _EXP[2]
    power = (power * rest + _EXP[1]) * rest + _EXP[0]
    return power * np.int32((np.int32(whole) + 127) << 23).view(np.float32)


@inner
def sigmoid(x):
    """1 / (1 + exp(-x))."""
    tail = fading(x)
    return (np.float32(1) if x >= np.float32(0) else tail) / (np.float32(1) + tail)


@inner
def softplus(x):
    """log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)), by log(1 + y) = 2 artanh(y / (2 + y)), a series of 8 terms."""
    tail = fading(x)
    ratio = tail / (np.float32(2) + tail)
    square = ratio * ratio
    series = (_ARTANH[7] * square + _ARTANH[6]) * square + _ARTANH[5]
    series = ((series * square + _ARTANH[4]) * square + _ARTANH[3]) * square + _ARTANH[2]
    series = (series * square + _ARTANH[1]) * square + _ARTANH[0]
    return (x if x > np.float32(0) else np.float32(0)) + np.float32(2) * ratio * series
