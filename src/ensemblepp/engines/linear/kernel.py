"""The compiled loop of the linear agents: all rounds of one seed's chains in one call (numba).

Per round and chain: theta = mean + beta * covariance (B zeta), the best action for theta, its reward, and rank-one updates of
covariance, mean and B; O(d^2 + dM) beside the scores. Two things set the pace, and both are laid out for them:

* Scores. Actions are stored in panels of `width` actions, feature by feature, so that one vector register holds one feature
  of a panel; a tile of five chains by five panels stays in registers over all features. Every score is the same sequence of
  fused multiply-adds whatever its place in the tile, so neither the other chains, nor pruning, nor padding can change a bit.
* Chains. The rank-one updates of the last round are applied while the next round reads the same memory, so B is passed over
  once a round and the covariance twice. A caller chooses how many chains share a call, so that their state stays in the cache.

covariance and mean are float64; B and the scores have the dtype of `information` (float32 or float64).

Exact pruning: with the actions sorted by <x, theta*>, and theta = a theta* + p with p orthogonal to theta*, no action from
position i on scores more than a <x_i, theta*> + max_{j >= i} |x_j perp| |p|; once the best score found exceeds that (with room
for rounding), the rest needs no scores.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from ensemblepp.compilation.compiled import compiled
from ensemblepp.engines.linear.vector_code import REGISTER_BYTES, REGISTERS, one_pass, tile

#: Laws as the kernel knows them. NONE: theta = mean; MEMBER: sqrt(M) e_m without a sign; RAW: N(0, I/M), not normalised;
#: EXACT: a draw from the posterior itself, by Cholesky. Any other law is OWN and those above it: place OWN + i has the vectors
#: that `Noise.own[i]` lists, round by round.
NONE, GAUSSIAN, SPHERE, CUBE, COORDINATE, SPARSE, MEMBER, RAW, EXACT, OWN = range(10)
CODES = {
    "none": NONE,
    "gaussian": GAUSSIAN,
    "sphere": SPHERE,
    "cube": CUBE,
    "coordinate": COORDINATE,
    "sparse": SPARSE,
    "member": MEMBER,
    "raw_gaussian": RAW,
    "exact": EXACT,
}

#: Chains and panels of a tile, and panels of a single chain's: as many sums as registers hold.
_CHAINS, _PANELS, _SINGLE = (5, 5, 8) if REGISTERS == 32 else (5, 2, 4)

#: Chains that are scored together; calls with a multiple of it waste nothing.
TILE = _CHAINS

#: Panels scored for every tile before the next ones are read: they stay in the first-level cache.
_BLOCK = 2 * _PANELS

#: For functions that allocate nothing: no reference counts, which would cost more than the arithmetic at d = 10.
_counted_by_caller = njit(no_cfunc_wrapper=True, error_model="numpy", _nrt=False)

#: The same, and sums may be reordered to use vector registers.
_REORDERED = {"no_cfunc_wrapper": True, "error_model": "numpy", "_nrt": False, "fastmath": {"reassoc", "contract", "nsz"}}
_reordered = njit(**_REORDERED)

#: Chains vectors are padded with zeros to a multiple of this: whole registers of float32.
_PAD = REGISTER_BYTES // 4


def width(dtype: np.dtype | type) -> int:
    """Actions in a panel: entries of one vector register."""
    return REGISTER_BYTES // np.dtype(dtype).itemsize


def padded(dimension: int) -> int:
    """Length of a padded state vector."""
    return -(-dimension // _PAD) * _PAD


# ------------------------------------------------------------------------------------------------------ scores


_tile_wide = tile(_CHAINS, _PANELS)
_tile_narrow = tile(_CHAINS, 1)
_single_wide = tile(1, _SINGLE)
_single_narrow = tile(1, 1)


@compiled(no_cfunc_wrapper=True)
def pack(features, lanes, out):
    """Action features (actions, d) into panels: out[(panel * d + feature) * lanes + lane]; the last action fills the rest."""
    actions, dimension = features.shape
    panels = -(-actions // lanes)
    for panel in range(panels):
        for lane in range(lanes):
            action = min(panel * lanes + lane, actions - 1)
            for feature in range(dimension):
                out[(panel * dimension + feature) * lanes + lane] = features[action, feature]


@_counted_by_caller
def _score(arms, first, end, theta, best, where):
    """Score the panels first..end-1 for one tile; theta (d, chains of the tile)."""
    dimension, chains = theta.shape
    if chains == 1:
        groups = (end - first) // _SINGLE
        _single_wide(arms, first, groups, dimension, theta, best, where)
        first += groups * _SINGLE
        _single_narrow(arms, first, end - first, dimension, theta, best, where)
    else:
        groups = (end - first) // _PANELS
        _tile_wide(arms, first, groups, dimension, theta, best, where)
        first += groups * _PANELS
        _tile_narrow(arms, first, end - first, dimension, theta, best, where)


@_counted_by_caller
def _winner(best, where, lanes, actions):
    """The action with the best score of one chain, the lowest on ties; -1 if that is no finite number."""
    score, action = -np.inf, -1
    for lane in range(lanes):
        if best[lane] >= score and best[lane] > -np.inf:
            position = min(where[lane] * lanes + lane, actions - 1)
            if best[lane] > score or position < action:
                score, action = best[lane], position
    return action if score < np.inf else -1


# ------------------------------------------------------------------------------------------------------- state


def _passes(update: bool, product: bool):
    """`one_pass` over all columns, in blocks of 4, 2 and 1 registers."""
    four, two, one = (one_pass(vectors, update, product) for vectors in (4, 2, 1))

    @_counted_by_caller
    def passes(rows, steps, along, factors, out):
        count, length = rows.shape
        lanes = REGISTER_BYTES // rows.itemsize
        first = 0
        while first + 4 * lanes <= length:
            four(rows, count, length, first, steps, along, factors, out)
            first += 4 * lanes
        if first + 2 * lanes <= length:
            two(rows, count, length, first, steps, along, factors, out)
            first += 2 * lanes
        if first < length:
            one(rows, count, length, first, steps, along, factors, out)

    return passes


#: rows += steps (x) along; out = rows^T factors; or both in one pass over the rows. All shapes are `one_pass`'s.
_push = _passes(update=True, product=False)
_product = _passes(update=False, product=True)
_pull = _passes(update=True, product=True)


@njit(no_cfunc_wrapper=True)
def _add_row(row, factor, vector):
    for j in range(row.shape[0]):
        row[j] += factor * vector[j]


@_reordered
def _dot(left, right):
    total = 0.0
    for j in range(left.shape[0]):
        total += left[j] * right[j]
    return total


@_reordered
def _cholesky_update(factor, vector):
    """factor^T factor += vector vector^T for an upper triangular factor; `vector` is overwritten."""
    dimension = vector.shape[0]
    for i in range(dimension):
        row = factor[i]
        diagonal = math.sqrt(row[i] * row[i] + vector[i] * vector[i])
        cosine, sine = diagonal / row[i], vector[i] / row[i]
        row[i] = diagonal
        inverse = 1.0 / cosine
        for j in range(i + 1, dimension):
            value = (row[j] + sine * vector[j]) * inverse
            row[j] = value
            vector[j] = cosine * vector[j] - sine * value


@_reordered
def _back_substitute(factor, right, out):
    """Solve factor out = right for an upper triangular factor."""
    dimension = right.shape[0]
    for i in range(dimension - 1, -1, -1):
        row = factor[i]
        total = right[i]
        for j in range(i + 1, dimension):
            total -= row[j] * out[j]
        out[i] = total / row[i]


@compiled(**_REORDERED)
def noise_tables(gaussian, norms, signs, largest):
    """From Gaussian rows (steps, M): their norms, signs, and the positions of the two largest entries by magnitude."""
    steps, size = gaussian.shape
    for t in range(steps):
        total = 0.0
        for m in range(size):
            total += np.float64(gaussian[t, m]) * np.float64(gaussian[t, m])
        norms[t] = math.sqrt(total)
        first, second = -1.0, -1.0
        for m in range(size):
            value = gaussian[t, m]
            signs[t, m] = -1.0 if value < 0 else 1.0
            value = abs(value)
            if value > second:
                if value > first:
                    second, largest[t, 1] = first, largest[t, 0]
                    first, largest[t, 0] = value, m
                else:
                    second, largest[t, 1] = value, m


# -------------------------------------------------------------------------------------------------------- rounds


class Actions(NamedTuple):
    """A linear bandit as the kernel plays it; vectors of length d are padded to `length` (`padded`)."""

    sphere: bool  #: whether the decision set is the unit sphere; then only `best` and `theta` are read
    arms: np.ndarray  #: (sets, panels * d * width) packed features (`pack`), one set per round or one for all
    features: np.ndarray  #: (sets, actions, length) float64
    means: np.ndarray  #: (sets, actions) noise-free rewards
    best: np.ndarray  #: (sets,) the best of them
    theta: np.ndarray  #: (length,) theta*
    scores: np.ndarray  #: (actions,) <x, theta*>, decreasing; empty: no pruning
    perpendicular: np.ndarray  #: (actions,) max over this and later actions of |x perp theta*|; empty: no pruning
    reach: float  #: largest |x|
    fallback: int  #: the action taken where theta is zero and all scores tie; on the sphere it is the first axis


class Noise(NamedTuple):
    """One Gaussian stream and what the laws need of it (`noise_tables`)."""

    gaussian: np.ndarray  #: (rounds, M)
    exact: np.ndarray  #: (rounds, d) float64 where a chain draws from the posterior itself, else of size 0
    norms: np.ndarray  #: (rounds,)
    signs: np.ndarray  #: (rounds, M)
    largest: np.ndarray  #: (rounds, 2) positions of the two largest entries by magnitude
    own: np.ndarray  #: (laws, rounds, M) vectors of the laws that have no code, as they act or disturb


class Chains(NamedTuple):
    """The chains, and what they carry from round to round."""

    references: np.ndarray  #: (chains,) codes of laws, `CODES` or OWN + place in `Noise.own`
    perturbations: np.ndarray  #: (chains,)
    covariance: np.ndarray  #: (chains, d, length), without the last round's update
    mean: np.ndarray  #: (chains, length)
    information: np.ndarray  #: (chains, M, length) B^T, without the last round's update
    factor: np.ndarray  #: (chains, d, d) upper Cholesky factor of the precision; of size 0 without EXACT chains
    gain: np.ndarray  #: (chains, length) last round's covariance x
    last: np.ndarray  #: (chains, length) last round's x
    scale: np.ndarray  #: (chains, 2) 1 / (1 + x^T covariance x) of the last round; log det of the precision over the prior's
    totals: np.ndarray  #: (chains, 3) regret, reward and optimal rounds so far


class Outputs(NamedTuple):
    """What is written, per chain."""

    stored: np.ndarray  #: (rounds,) column to write after a round, or -1
    regret: np.ndarray  #: (chains, times)
    reward: np.ndarray
    optimal: np.ndarray
    chosen: np.ndarray  #: (chains, rounds) indices; of size 0: not wanted


class Work(NamedTuple):
    """Working memory, with room for whole tiles. numpy allocates it (`working_memory`): an allocation takes long to compile."""

    thetas: np.ndarray  #: (chains, length) parameters that the chains act by
    layout: np.ndarray  #: (tiles, d, chains of a tile) the same, feature by feature
    alone: np.ndarray  #: (d, 1) those of a last chain that fills no tile
    best: np.ndarray  #: (tiles * chains of a tile, width) best scores, lane by lane
    where: np.ndarray  #: the panels they are in
    kept_best: np.ndarray  #: room to reorder the two
    kept_where: np.ndarray
    order: np.ndarray  #: (tiles * chains of a tile,) which chain a row belongs to
    ends: np.ndarray  #: (tiles * chains of a tile,) panels that a chain needs
    winners: np.ndarray  #: (chains,) the best actions
    own: np.ndarray  #: (length,) features of one chain's action
    wide: np.ndarray  #: (length,) B zeta of one chain
    gains: np.ndarray  #: (length,) the step of its covariance
    scaled: np.ndarray  #: (length,) the step of its B
    pulled: np.ndarray  #: (length,) B zeta in the type of B


def working_memory(chains: int, dimension: int, dtype: np.dtype) -> Work:
    """What `play` works in, for so many chains."""
    rows, length, lanes = -(-chains // _CHAINS) * _CHAINS, padded(dimension), width(dtype)
    scores, places = (np.zeros((2, rows, lanes), kind) for kind in (dtype, np.int32))
    return Work(
        np.zeros((chains, length)),
        np.zeros((rows // _CHAINS, dimension, _CHAINS), dtype),
        np.zeros((dimension, 1), dtype),
        scores[0],
        places[0],
        scores[1],
        places[1],
        *np.zeros((2, rows), np.int64),
        np.zeros(chains, np.int64),
        *np.zeros((3, length)),
        *np.zeros((2, length), dtype),
    )


@compiled(error_model="numpy", no_cfunc_wrapper=True)
def play(actions, reference, perturbation, noise, state, outputs, work, prior_precision, log_delta):
    """Play `len(noise)` rounds with every chain of one seed; what changes is in `state`, so calls can follow each other.

    Args:
        actions: the bandit.
        reference, perturbation: `Noise` of the streams of these names; row t of the latter is the z of round t - 1.
        noise: (rounds,) reward noise.
        state: `Chains`, updated.
        outputs: `Outputs`, written.
        work: `Work` for these chains.
        prior_precision, log_delta: lambda and log(1/delta) of the inflation beta_t; log_delta < 0: none.

    Returns:
        (round, chain, scores computed): (-1, -1, n), or where theta was not a number.
    """
    chains, _, length = state.covariance.shape
    thetas, own = work.thetas, work.own
    computed = 0
    for t in range(len(noise)):
        for c in range(chains):
            theta = thetas[c]
            _deviate(state, c, reference, perturbation, t, work, theta)
            beta = 1.0
            if log_delta >= 0.0:
                beta = math.sqrt(prior_precision) + math.sqrt(2.0 * log_delta + state.scale[c, 1])
            for j in range(length):
                theta[j] = state.mean[c, j] + beta * theta[j]
            if not _dot(theta, theta) < np.inf:
                return t, c, computed
        one_set = t if actions.features.shape[0] > 1 else 0
        if not actions.sphere:
            computed += _choose(actions, one_set, work)
        for c in range(chains):
            if actions.sphere:
                norm = math.sqrt(_dot(thetas[c], thetas[c]))
                for j in range(length):
                    own[j] = thetas[c, j] / norm if norm > 0.0 else 0.0
                if norm == 0.0:
                    own[0] = 1.0
                expected = _dot(own, actions.theta)
            else:
                action = work.winners[c]
                if action < 0:
                    return t, c, computed
                for j in range(length):  # not own[:] = ..., whose check of shapes is a sixth of all compile time
                    own[j] = actions.features[one_set, action, j]
                expected = actions.means[one_set, action]
                if outputs.chosen.size:
                    outputs.chosen[c, t] = action
            totals = state.totals[c]
            loss = actions.best[one_set] - expected
            totals[0] += loss
            totals[1] += expected + noise[t]
            totals[2] += 1.0 if loss == 0.0 else 0.0
            column = outputs.stored[t]
            if column >= 0:
                outputs.regret[c, column] = totals[0]
                outputs.reward[c, column] = totals[1]
                outputs.optimal[c, column] = totals[2]
            _learn(state, c, own, expected + noise[t], work.gains)
    return -1, -1, computed


@_counted_by_caller
def _deviate(state, c, reference, perturbation, t, work, out):
    """The last round's updates of covariance and B, and out = A zeta (or an exact draw) for chain c in round t."""
    law, perturbation_law = state.references[c], state.perturbations[c]
    covariance, rows, last = state.covariance[c], state.information[c], state.last[c]
    gains, scaled, pulled, wide = work.gains, work.scaled, work.pulled, work.wide
    dimension, length = covariance.shape
    size = rows.shape[0]
    for j in range(length):
        gains[j] = -state.scale[c, 0] * state.gain[c, j]
    if law in (NONE, EXACT):
        _push(covariance, gains, state.gain[c], gains, out)
        for j in range(length):
            out[j] = 0.0
        if law == EXACT:
            for j in range(dimension):
                wide[j] = reference.exact[t, j]
            _back_substitute(state.factor[c], wide[:dimension], out[:dimension])
        return
    # z has `kept` entries of either sign, or is dense: `steps` times a factor that goes to x instead
    dense = perturbation_law in (GAUSSIAN, SPHERE, CUBE, RAW) or perturbation_law >= OWN
    kept = size if dense else 1 if perturbation_law == COORDINATE or size == 1 else 2
    normalised = perturbation_law in (GAUSSIAN, SPHERE)
    factor = 1.0 / perturbation.norms[t] if normalised else 1.0 / math.sqrt(kept)
    if perturbation_law >= OWN:
        factor = 1.0
    for j in range(length):
        scaled[j] = last[j] * factor
    steps = perturbation.signs[t] if perturbation_law == CUBE else perturbation.gaussian[t]
    if perturbation_law >= OWN:
        steps = perturbation.own[perturbation_law - OWN, t]
    if not dense:
        for i in range(kept):
            m = perturbation.largest[t, i]
            _add_row(rows[m], perturbation.signs[t, m], scaled)
    if law in (GAUSSIAN, SPHERE, CUBE) or law >= OWN:
        zeta = reference.signs[t] if law == CUBE else reference.gaussian[t]
        if law >= OWN:
            zeta = reference.own[law - OWN, t]
        if dense:
            _pull(rows, steps, scaled, zeta, pulled)
        else:
            _product(rows, steps, scaled, zeta, pulled)
        factor = math.sqrt(size) / reference.norms[t] if law == SPHERE else 1.0
        for j in range(length):
            wide[j] = pulled[j] * factor
    else:
        if dense:
            _push(rows, steps, scaled, steps, pulled)
        kept = 2 if law == SPARSE and size > 1 else 1
        for j in range(length):
            wide[j] = 0.0
        for i in range(kept):
            m = reference.largest[t, i]
            sign = 1.0 if law == MEMBER else reference.signs[t, m]
            _add_row(wide, sign * math.sqrt(size / kept), rows[m])
    _pull(covariance, gains, state.gain[c], wide, out)


@_counted_by_caller
def _learn(state, c, x, observed, gains):
    """Condition the mean on one observation of chain c, and leave the other updates for the next round."""
    gain = state.gain[c]
    _product(state.covariance[c], gains, x, x, gain)
    variance = 1.0 + _dot(x, gain)
    surprise = (observed - _dot(x, state.mean[c])) / variance
    for j in range(len(x)):
        state.mean[c, j] += gain[j] * surprise
        state.last[c, j] = x[j]
    state.scale[c, 0] = 1.0 / variance
    state.scale[c, 1] += math.log(variance)
    if state.references[c] == EXACT:
        _cholesky_update(state.factor[c], x[: state.factor.shape[1]])  # spoils x, which is not needed any more


@_counted_by_caller
def _choose(actions, one_set, work):
    """The best action of every chain into `work.winners`; returns how many scores were computed."""
    thetas = work.thetas
    chains = thetas.shape[0]
    arms, count = actions.arms[one_set], actions.means.shape[1]
    lanes = work.best.shape[1]
    panels = -(-count // lanes)
    lonely = chains % _CHAINS == 1
    tiled = chains - 1 if lonely else chains
    tiles = -(-tiled // _CHAINS)
    first = min(_BLOCK, panels)
    for i in range(work.best.shape[0]):
        work.order[i] = i
        for lane in range(lanes):
            work.best[i, lane] = -np.inf
            work.where[i, lane] = 0
    _lay_out(thetas, work, tiled, lonely)
    for q in range(tiles):
        rows = slice(q * _CHAINS, (q + 1) * _CHAINS)
        _score(arms, 0, first, work.layout[q], work.best[rows], work.where[rows])
    if lonely:
        _score(arms, 0, first, work.alone, work.best[tiled:], work.where[tiled:])
    computed = first * chains
    for i in range(work.ends.shape[0]):
        work.ends[i] = panels if i < chains else 0
    if len(actions.scores) and panels > first:
        _prune(actions, thetas, work, first, panels)
        # tiles of chains that need about as many panels; insertion sort, a lonely chain stays by itself
        for i in range(1, tiled):
            j = i
            while j > 0 and work.ends[work.order[j - 1]] < work.ends[work.order[j]]:
                work.order[j - 1], work.order[j] = work.order[j], work.order[j - 1]
                j -= 1
        _lay_out(thetas, work, tiled, lonely)
        for i in range(tiled):
            for lane in range(lanes):
                work.kept_best[i, lane] = work.best[i, lane]
                work.kept_where[i, lane] = work.where[i, lane]
        for i in range(tiled):
            for lane in range(lanes):
                work.best[i, lane] = work.kept_best[work.order[i], lane]
                work.where[i, lane] = work.kept_where[work.order[i], lane]
    for block in range(first, panels, _BLOCK):
        stop, busy = min(block + _BLOCK, panels), False
        for q in range(tiles):
            end = min(stop, work.ends[work.order[q * _CHAINS]])
            if end > block:
                rows = slice(q * _CHAINS, (q + 1) * _CHAINS)
                _score(arms, block, end, work.layout[q], work.best[rows], work.where[rows])
                computed += (end - block) * min(_CHAINS, tiled - q * _CHAINS)
                busy = True
        if not busy:
            break
    if lonely:
        end = work.ends[tiled]
        _score(arms, first, end, work.alone, work.best[tiled:], work.where[tiled:])
        computed += end - first
    for i in range(chains):
        c = work.order[i]
        zero = _dot(thetas[c], thetas[c]) == 0.0
        work.winners[c] = actions.fallback if zero else _winner(work.best[i], work.where[i], lanes, count)
    return computed * lanes


@_counted_by_caller
def _lay_out(thetas, work, tiled, lonely):
    """Parameters of the chains, in their present order, feature by feature."""
    dimension = work.layout.shape[1]
    for i in range(tiled):
        for k in range(dimension):
            work.layout[i // _CHAINS, k, i % _CHAINS] = thetas[work.order[i], k]
    if lonely:
        for k in range(dimension):
            work.alone[k, 0] = thetas[tiled, k]


@_counted_by_caller
def _prune(actions, thetas, work, first, panels):
    """How many panels every chain needs, after the first ones have been scored (module docstring)."""
    star = _dot(actions.theta, actions.theta)
    lanes = work.best.shape[1]
    unit = 2.0**-24 if work.best.itemsize == 4 else 2.0**-53
    for c in range(thetas.shape[0]):
        found = -np.inf
        for lane in range(lanes):
            found = max(found, work.best[c, lane])
        squared = _dot(thetas[c], thetas[c])
        along = _dot(thetas[c], actions.theta) / star
        # not |theta|^2 - along^2 |theta*|^2, which cancels
        across = 0.0
        for j in range(thetas.shape[1]):
            across += (thetas[c, j] - along * actions.theta[j]) ** 2
        across = math.sqrt(across)
        # scores and bounds are rounded: an inner product of d terms errs by less than this
        slack = 4.0 * (work.layout.shape[1] + 4) * unit * actions.reach * math.sqrt(squared)
        if not along > 0.0:
            continue
        low, high = first, panels
        while low < high:
            middle = (low + high) // 2
            position = middle * lanes
            if along * actions.scores[position] + across * actions.perpendicular[position] + slack < found:
                high = middle
            else:
                low = middle + 1
        work.ends[c] = low
