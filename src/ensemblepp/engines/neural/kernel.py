"""The rounds of agents made of linear heads (`agents.neural.linear_heads`), compiled for one CPU core.

Everything of a round happens in one loop without allocation: offered rows are gathered from the pool's table, the network is
evaluated by matrix products, a minibatch is gathered by item numbers, gradients are written out by hand and Adam is one pass
over a flat vector.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensemblepp.compilation import arithmetic
from ensemblepp.compilation.compiled import compiled
from ensemblepp.engines.neural import network


class Shape(NamedTuple):
    """What the network is, and how it is trained."""

    widths: np.ndarray  #: (layers + 1,) entries of the input and of every hidden layer
    weights: np.ndarray  #: (layers,) where every weight matrix begins in a row of parameters
    biases: np.ndarray  #: (layers,) the same of the biases
    base: int  #: where the base head begins; -1: there is none
    heads: int  #: where the members' heads begin; -1: there are none
    bias: int  #: where the members' biases begin; -1: they have none
    classes: int
    members: int
    posterior_scale: np.float32
    weighted: bool
    offsets: bool
    any_class: bool
    epsilon: np.float32  #: probability of a random action, -1 for none
    prior: np.ndarray  #: (chains, width, M classes) float32, added to the scaled heads
    learning_rate: float
    weight_decay: float
    warm_up: int
    update_every: int


class Draws(NamedTuple):
    """Random numbers of the rounds to play; chains first, then rounds."""

    offers: np.ndarray  #: (seeds, rounds, actions) int32
    noise: np.ndarray  #: (seeds, rounds) float64
    seed: np.ndarray  #: (chains,) which row of the two above is whose
    minibatch: np.ndarray  #: (chains, rounds, gradient steps, batch) float32
    mixing: np.ndarray  #: (chains, rounds, M): zeta, or the member that acts
    extra: np.ndarray  #: (chains, rounds, M): perturbations or weights
    directions: np.ndarray  #: (chains or 1, rounds or 1, gradient steps or 1, K, M); K = 0: any isotropic list
    offsets: np.ndarray  #: (chains, rounds, actions, M classes), or empty
    wander: np.ndarray  #: (chains, rounds, 2), or empty


@arithmetic.inner
def _head_matrix(shape, row, prior, matrix):
    """Base head and scaled heads with their priors side by side, (width, columns)."""
    width = matrix.shape[0]
    first = 0
    if shape.base >= 0:
        first = shape.classes
        for i in range(width):
            for c in range(shape.classes):
                matrix[i, c] = row[shape.base + i * shape.classes + c]
    columns = shape.members * shape.classes
    for i in range(width):
        for j in range(columns):
            matrix[i, first + j] = shape.posterior_scale * row[shape.heads + i * columns + j] + prior[i, j]


@arithmetic.inner
def _add_bias(shape, row, outputs):
    """The members' biases, for agents without a base head."""
    if shape.bias >= 0:
        for i in range(outputs.shape[0]):
            for j in range(outputs.shape[1]):
                outputs[i, j] += shape.posterior_scale * row[shape.bias + j]


@arithmetic.inner
def _based_logits_gradient(outputs, reward, directions, gradient):
    """`_based_gradient` of two logits."""
    rows, (count, members) = len(outputs), directions.shape
    share = np.float32(1) / np.float32(rows)
    errors = np.empty((rows, members), dtype=np.float32)
    for i in range(rows):
        for m in range(members):
            errors[i, m] = outputs[i, 3 + 2 * m] - outputs[i, 2 + 2 * m]
    swings = np.empty((rows, count), dtype=np.float32)
    if members > 0:
        np.dot(errors, directions.T, swings)
    # what is added is kept apart by direction, so that loops over them are vector code
    slopes, losses = np.empty(count, dtype=np.float32), np.zeros(count, dtype=np.float32)
    weight = np.float32(0.5) / np.float32(count)
    loss = np.float32(0)
    for i in range(rows):
        gap = outputs[i, 1] - outputs[i, 0]
        slope = np.float32(0)
        if members == 0:
            slope = network.sigmoid(gap)
            loss += network.softplus(gap)
        for k in range(count):
            swing = swings[i, k]
            up, down = network.sigmoid(gap + swing), network.sigmoid(gap - swing)
            slopes[k] = weight * (up + down)
            losses[k] += weight * (network.softplus(gap + swing) + network.softplus(gap - swing))
            swings[i, k] = share * weight * (up - down)
        for k in range(count):
            slope += slopes[k]
        loss -= reward[i] * gap
        gradient[i, 1] = share * (slope - reward[i])
        gradient[i, 0] = -gradient[i, 1]
    for k in range(count):
        loss += losses[k]
    if members > 0:
        np.dot(swings, directions, errors)
    for i in range(rows):
        for m in range(members):
            gradient[i, 3 + 2 * m] = errors[i, m]
            gradient[i, 2 + 2 * m] = -errors[i, m]
    return loss * share


@arithmetic.inner
def _based_gradient(shape, outputs, reward, extra, directions, gradient):
    """Derivatives of the mean loss by the outputs of base head and members (`agents.neural.ensemblepp`); returns that loss."""
    rows, members, count = outputs.shape[0], shape.members, directions.shape[0]
    if shape.classes == 2:
        return _based_logits_gradient(outputs, reward, directions, gradient)
    share = np.float32(1) / np.float32(rows)
    loss = np.float32(0)
    error = np.empty(members, dtype=np.float32)
    for i in range(rows):
        gap = outputs[i, 0] - reward[i]
        gradient[i, 0] = np.float32(2) * share * gap
        loss += gap * gap
        if count == 0:
            for m in range(members):
                off = outputs[i, 1 + m] - extra[i, m]
                gradient[i, 1 + m] = np.float32(2) * share * off
                loss += off * off
        else:
            for m in range(members):
                error[m] = outputs[i, 1 + m] - extra[i, m]
                gradient[i, 1 + m] = np.float32(0)
            for k in range(count):
                swing = np.float32(0)
                for m in range(members):
                    swing += directions[k, m] * error[m]
                loss += swing * swing / np.float32(count)
                factor = np.float32(2) * share * swing / np.float32(count)
                for m in range(members):
                    gradient[i, 1 + m] += factor * directions[k, m]
    return loss * share


@arithmetic.inner
def _members_gradient(shape, outputs, reward, extra, gradient):
    """The same for members that are fitted to the rewards (`agents.neural.member_heads`)."""
    rows, members = outputs.shape[0], shape.members
    share = np.float32(1) / np.float32(rows * members)
    # apart by member, so that the loop over them is vector code
    losses = np.zeros(members, dtype=np.float32)
    for i in range(rows):
        for m in range(members):
            weight = extra[i, m] if shape.weighted else np.float32(1)
            if shape.classes == 1:
                off = outputs[i, m] - reward[i]
                if not shape.weighted:
                    off -= extra[i, m]
                gradient[i, m] = np.float32(2) * share * weight * off
                losses[m] += weight * off * off
            else:
                gap = outputs[i, 2 * m + 1] - outputs[i, 2 * m]
                gradient[i, 2 * m + 1] = share * weight * (network.sigmoid(gap) - reward[i])
                gradient[i, 2 * m] = -gradient[i, 2 * m + 1]
                losses[m] += weight * (network.softplus(gap) - reward[i] * gap)
    loss = np.float32(0)
    for m in range(members):
        loss += losses[m]
    return loss * share


@arithmetic.inner
def _back(shape, row, work, places, items, picked, matrix, gradient, delta, other, change):
    """Write the loss's derivatives by all parameters to `change`, from those by the outputs; `delta` and `other` are room."""
    layers, width, rows = len(shape.weights), shape.widths[-1], len(picked)
    columns = gradient.shape[1]
    hidden = work[places[layers] : places[layers] + rows * width].reshape(rows, width)
    by_head = np.dot(hidden.T, gradient)
    first = shape.classes if shape.base >= 0 else 0
    for i in range(width):
        for c in range(first):
            change[shape.base + i * first + c] = by_head[i, c]
        for j in range(columns - first):
            change[shape.heads + i * (columns - first) + j] = shape.posterior_scale * by_head[i, first + j]
    if shape.bias >= 0:
        for j in range(columns):
            total = np.float32(0)
            for i in range(rows):
                total += gradient[i, j]
            change[shape.bias + j] = shape.posterior_scale * total
    if layers == 0:
        return
    # members beside a base head do not train the trunk
    upper = delta[: rows * width].reshape(rows, width)
    if shape.base >= 0:
        for i in range(rows):
            for j in range(width):
                upper[i, j] = gradient[i, 0] * matrix[j, 0]
            for c in range(1, first):
                for j in range(width):
                    upper[i, j] += gradient[i, c] * matrix[j, c]
    else:
        np.dot(gradient, matrix.T, upper)
    network.trunk_back(shape, row, work, places, items, picked, delta, other, change)


@arithmetic.inner
def _choose(shape, outputs, mixing, wander):
    """(chosen action, whether it is not the best by the mean)."""
    actions, classes, members = outputs.shape[0], shape.classes, shape.members
    best, best_mean = 0, 0
    top, top_mean = np.float32(-np.inf), np.float32(-np.inf)
    for i in range(actions):
        if shape.base >= 0:
            mean = outputs[i, classes - 1]
            value = mean
            for m in range(members):
                value += mixing[m] * outputs[i, classes + m * classes + classes - 1]
        else:
            mean, value = np.float32(0), np.float32(0)
            for m in range(members):
                own = outputs[i, m * classes + classes - 1]
                if shape.any_class:
                    own = max(own, outputs[i, m * classes])
                mean += own
                value += mixing[m] * own
        if value > top:
            top, best = value, i
        if mean > top_mean:
            top_mean, best_mean = mean, i
    if shape.epsilon >= np.float32(0) and wander[0] < shape.epsilon:
        best = int(wander[1] * np.float32(actions))
    return best, best != best_mean


@compiled(**arithmetic.OPTIONS)
def play(shape, environment, draws, state, done):
    """Play all rounds of `draws` for every chain, after `done` earlier ones."""
    chains, rounds, steps, batch = draws.minibatch.shape
    actions = draws.offers.shape[2]
    layers = len(shape.weights)
    width = shape.widths[-1]
    capacity = state.item.shape[1]
    columns = shape.members * shape.classes + (shape.classes if shape.base >= 0 else 0)
    places, work, delta, other = network.room(shape, max(batch, actions))
    matrix = np.empty((width, columns), dtype=np.float32)
    change = np.zeros(state.flat.shape[1], dtype=np.float32)
    scores = np.empty((actions, columns), dtype=np.float32)
    outputs, gradient = np.empty((batch, columns), dtype=np.float32), np.empty((batch, columns), dtype=np.float32)
    rewards, extras = np.empty(batch, dtype=np.float32), np.empty((batch, state.extra.shape[2]), dtype=np.float32)
    means, picked = np.empty(actions), np.empty(batch, dtype=np.int32)
    for chain in range(chains):
        row, seed = state.flat[chain], draws.seed[chain]
        items, mean_of = network.items_of(environment, chain), environment.means[environment.means_of[chain]]
        _head_matrix(shape, row, shape.prior[chain], matrix)
        for place in range(rounds):
            clock = done + place
            offers = draws.offers[seed, place]
            best = network.offer(mean_of, offers, means)
            network.gather_all(items, offers, work)
            network.forward(shape, row, work, places, items, offers)
            hidden = work[places[layers] : places[layers] + actions * width].reshape(actions, width)
            np.dot(hidden, matrix, scores)
            _add_bias(shape, row, scores)
            if shape.offsets:
                for i in range(actions):
                    for j in range(columns):
                        scores[i, j] += draws.offsets[chain, place, i, j]
            chosen, explores = _choose(shape, scores, draws.mixing[chain, place], draws.wander[chain, place])
            noise = draws.noise[seed, place]
            slot = network.answer(environment, state, chain, clock, offers, chosen, means, best, noise, explores)
            for m in range(shape.members):
                state.extra[chain, slot, m] = draws.extra[chain, place, m]
            if shape.offsets:
                for j in range(columns):
                    state.extra[chain, slot, shape.members + j] = draws.offsets[chain, place, chosen, j]
            if clock + 1 <= shape.warm_up or (clock + 1) % shape.update_every != 0:
                continue
            stored = min(clock + 1, capacity)
            for step in range(steps):
                drawn = draws.minibatch[chain, place, step]
                network.minibatch(state, chain, drawn, stored, picked, rewards, extras)
                network.gather_all(items, picked, work)
                network.forward(shape, row, work, places, items, picked)
                hidden = work[places[layers] : places[layers] + batch * width].reshape(batch, width)
                np.dot(hidden, matrix, outputs)
                _add_bias(shape, row, outputs)
                if shape.offsets:
                    for i in range(batch):
                        for j in range(columns):
                            outputs[i, j] += extras[i, shape.members + j]
                if shape.base >= 0:
                    of = draws.directions[
                        chain % draws.directions.shape[0], place % draws.directions.shape[1], step % draws.directions.shape[2]
                    ]
                    state.loss[chain] = _based_gradient(shape, outputs, rewards, extras, of, gradient)
                else:
                    state.loss[chain] = _members_gradient(shape, outputs, rewards, extras, gradient)
                _back(shape, row, work, places, items, picked, matrix, gradient, delta, other, change)
                state.steps[chain] += 1
                network.adam(
                    row,
                    state.first[chain],
                    state.second[chain],
                    change,
                    shape.learning_rate,
                    shape.weight_decay / stored,
                    state.steps[chain],
                )
                _head_matrix(shape, row, shape.prior[chain], matrix)
