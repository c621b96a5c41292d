"""The compiled loop of the linear agents: all rounds of one seed's chains in one call (numba).

Per round and chain: theta = mean + beta * covariance (B zeta), the best action for theta, its reward, and rank-one updates of
covariance, mean and B; O(d^2 + dM) beside the scores. Two things set the pace, and both are laid out for them:

* Scores. Actions are stored in panels of `width` actions, feature by feature, so that one vector register holds one feature
  of a panel; a tile of five chains by five panels stays in registers over all features. Every score is the same sequence of
  fused multiply-adds whatever its place in the tile, so neither the other chains, nor pruning, nor padding can change a bit.
* State. The rank-one updates of the last round are applied while the next round reads the same memory, so B is passed over
  once a round and the covariance twice. A caller chooses how many chains share a call, so that their state stays in the cache.

covariance and mean are float64; B and the scores have the dtype of `information` (float32 or float64).

Exact pruning: with the actions sorted by <x, theta*>, and theta = a theta* + p with p orthogonal to theta*, no action from
position i on scores more than a <x_i, theta*> + max_{j >= i} |x_j perp| |p|; once the best score found exceeds that (with room
for rounding), the rest needs no scores.
"""

from __future__ import annotations

import math

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

#: Laws as the kernel knows them. NONE: theta = mean; MEMBER: sqrt(M) e_m without a sign; RAW: N(0, I/M), not normalised;
#: EXACT: a draw from the posterior itself, by Cholesky.
NONE, GAUSSIAN, SPHERE, CUBE, COORDINATE, SPARSE, MEMBER, RAW, EXACT = range(9)
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

_AVX512 = bool(llvmlite.binding.get_host_cpu_features().get("avx512f"))
_REGISTER_BYTES = 64 if _AVX512 else 32

#: Chains and panels of a tile, and panels of a single chain's: as many sums as registers hold.
_CHAINS, _PANELS, _SINGLE = (5, 5, 8) if _AVX512 else (5, 2, 4)

#: Chains that are scored together; calls with a multiple of it waste nothing.
TILE = _CHAINS

#: Panels scored for every tile before the next ones are read: they stay in the first-level cache.
_BLOCK = 2 * _PANELS

#: State vectors are padded with zeros to a multiple of this: whole registers of float32.
_PAD = _REGISTER_BYTES // 4


def width(dtype: np.dtype | type) -> int:
    """Actions in a panel: entries of one vector register."""
    return _REGISTER_BYTES // np.dtype(dtype).itemsize


def padded(dimension: int) -> int:
    """Length of a padded state vector."""
    return -(-dimension // _PAD) * _PAD


# --------------------------------------------------------------------------------------- words for the code emitted


def _splat(builder, value, vector):
    """`value` in every lane."""
    undefined, lanes = ir.Constant(vector, ir.Undefined), vector.count
    filled = builder.insert_element(undefined, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(filled, undefined, ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes))


def _fma(builder, lanes, size):
    """The fused multiply-add of vectors: a b + c, rounded once."""
    vector = ir.VectorType(ir.DoubleType() if size == 8 else ir.FloatType(), lanes)
    kind = ir.FunctionType(vector, [vector] * 3)
    return cgutils.get_or_insert_function(builder.module, kind, f"llvm.fma.v{lanes}f{8 * size}")


# ------------------------------------------------------------------------------------------------------ scores


def _tile(chains: int, panels: int):
    """A function that scores groups of `panels` panels for `chains` chains and keeps, lane by lane, the best and its panel."""

    @intrinsic
    def tile(typing_context, arms, first, groups, dimension, theta, best, where):
        """arms[(panel * dimension + feature) * width + lane], theta[feature, chain], best and where [chain, lane]."""
        signature = types.void(arms, types.intp, types.intp, types.intp, theta, best, where)
        double = arms.dtype == types.float64
        size = 8 if double else 4
        lanes = _REGISTER_BYTES // size
        real = ir.DoubleType() if double else ir.FloatType()
        whole = ir.IntType(32)
        vector, integers = ir.VectorType(real, lanes), ir.VectorType(whole, lanes)

        def codegen(context, builder, signature, values):
            def data(position):
                return context.make_array(signature.args[position])(context, builder, values[position]).data

            index = context.get_value_type(types.intp)
            number = lambda value: ir.Constant(index, value)
            _, first, groups, dimension = values[:4]
            fma = _fma(builder, lanes, size)
            table = builder.bitcast(data(0), vector.as_pointer())
            parameters = data(4)
            best_rows = builder.bitcast(data(5), vector.as_pointer())
            where_rows = builder.bitcast(data(6), integers.as_pointer())
            zero = ir.Constant(vector, [0.0] * lanes)

            with cgutils.for_range(builder, groups, intp=index) as loop:
                panel = builder.add(first, builder.mul(loop.index, number(panels)))
                bases = [builder.mul(builder.add(panel, number(j)), dimension) for j in range(panels)]
                entry = builder.block
                body, done = (builder.append_basic_block(name) for name in ("features", "scored"))
                builder.branch(body)
                builder.position_at_end(body)
                feature = builder.phi(index)
                feature.add_incoming(number(0), entry)
                sums = [builder.phi(vector) for _ in range(chains * panels)]
                for value in sums:
                    value.add_incoming(zero, entry)
                loaded = [builder.load(builder.gep(table, [builder.add(base, feature)]), align=size) for base in bases]
                row = builder.mul(feature, number(chains))
                scores = []
                for chain in range(chains):
                    factor = _splat(builder, builder.load(builder.gep(parameters, [builder.add(row, number(chain))])), vector)
                    for j in range(panels):
                        scores.append(builder.call(fma, [loaded[j], factor, sums[chain * panels + j]]))
                following = builder.add(feature, number(1))
                feature.add_incoming(following, body)
                for value, score in zip(sums, scores, strict=True):
                    value.add_incoming(score, body)
                builder.cbranch(builder.icmp_signed("<", following, dimension), body, done)
                builder.position_at_end(done)
                for chain in range(chains):
                    best_row = builder.gep(best_rows, [number(chain)])
                    where_row = builder.gep(where_rows, [number(chain)])
                    best = builder.load(best_row, align=size)
                    where = builder.load(where_row, align=4)
                    for j in range(panels):
                        score = scores[chain * panels + j]
                        better = builder.fcmp_ordered(">", score, best)
                        best = builder.select(better, score, best)
                        position = builder.trunc(builder.add(panel, number(j)), whole)
                        where = builder.select(better, _splat(builder, position, integers), where)
                    builder.store(best, best_row, align=size)
                    builder.store(where, where_row, align=4)
            return context.get_dummy_value()

        return signature, codegen

    return tile


_tile_wide = _tile(_CHAINS, _PANELS)
_tile_narrow = _tile(_CHAINS, 1)
_single_wide = _tile(1, _SINGLE)
_single_narrow = _tile(1, 1)


@njit(cache=True)
def pack(features, lanes, out):
    """Action features (actions, d) into panels: out[(panel * d + feature) * lanes + lane]; the last action fills the rest."""
    actions, dimension = features.shape
    panels = -(-actions // lanes)
    for panel in range(panels):
        for lane in range(lanes):
            action = min(panel * lanes + lane, actions - 1)
            for feature in range(dimension):
                out[(panel * dimension + feature) * lanes + lane] = features[action, feature]


@njit(cache=True)
def _score(arms, first, end, dimension, theta, best, where):
    """Score the panels first..end-1 for one tile; theta (d, chains of the tile)."""
    chains = theta.shape[1]
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


@njit(cache=True)
def _winner(best, where, lanes, actions):
    """The action with the best score of one chain, the lowest on ties; -1 if no score is a number."""
    score, action = -np.inf, -1
    for lane in range(lanes):
        if best[lane] >= score and best[lane] > -np.inf:
            position = min(where[lane] * lanes + lane, actions - 1)
            if best[lane] > score or position < action:
                score, action = best[lane], position
    return action


@njit(cache=True)
def _prefix(chain_bound, scores, perpendicular, lanes, panels, first):
    """Panels that may hold an action above the score found: `chain_bound` is (found, along, across, slack)."""
    found, along, across, slack = chain_bound
    if not along > 0.0:
        return panels
    low, high = first, panels
    while low < high:
        middle = (low + high) // 2
        # bound on every action from the start of panel `middle` on
        if along * scores[middle * lanes] + across * perpendicular[middle * lanes] + slack < found:
            high = middle
        else:
            low = middle + 1
    return low


# ------------------------------------------------------------------------------------------------------- state


def _pass(vectors: int, update: bool, product: bool):
    """A function that passes once over `vectors` registers' worth of columns of a matrix, row by row.

    update: rows[m] += steps[m] * along; product: out = sum_m factors[m] * rows[m], of the updated rows.
    """

    @intrinsic
    def one_pass(typing_context, rows, count, length, first, steps, along, factors, out):
        """rows (count, length); the columns from `first` on; steps and factors (count,), along and out (length,)."""
        signature = types.void(rows, types.intp, types.intp, types.intp, steps, along, factors, out)
        double = rows.dtype == types.float64
        size = 8 if double else 4
        lanes = _REGISTER_BYTES // size
        real = ir.DoubleType() if double else ir.FloatType()
        vector = ir.VectorType(real, lanes)

        def codegen(context, builder, signature, values):
            def data(position):
                return context.make_array(signature.args[position])(context, builder, values[position]).data

            def columns(pointer):
                """Pointers to the registers' worth of columns that start at `pointer`."""
                start = builder.bitcast(pointer, vector.as_pointer())
                return [builder.gep(start, [number(j)]) for j in range(vectors)]

            index = context.get_value_type(types.intp)
            number = lambda value: ir.Constant(index, value)
            _, count, length, first = values[:4]
            fma = _fma(builder, lanes, size)
            zero = ir.Constant(vector, [0.0] * lanes)
            pushed = [builder.load(place, align=size) for place in columns(builder.gep(data(5), [first]))] if update else []
            matrix, steps, factors = data(0), data(4), data(6)
            entry = builder.block
            head, body, done = (builder.append_basic_block(name) for name in ("rows", "row", "passed"))
            builder.branch(head)
            builder.position_at_end(head)
            row = builder.phi(index)
            row.add_incoming(number(0), entry)
            sums = [builder.phi(vector) for _ in range(vectors)] if product else []
            for value in sums:
                value.add_incoming(zero, entry)
            builder.cbranch(builder.icmp_signed("<", row, count), body, done)
            builder.position_at_end(body)
            places = columns(builder.gep(matrix, [builder.add(builder.mul(row, length), first)]))
            loaded = [builder.load(place, align=size) for place in places]
            if update:
                step = _splat(builder, builder.load(builder.gep(steps, [row])), vector)
                loaded = [builder.call(fma, [step, one, value]) for one, value in zip(pushed, loaded, strict=True)]
                for value, place in zip(loaded, places, strict=True):
                    builder.store(value, place, align=size)
            if product:
                factor = _splat(builder, builder.load(builder.gep(factors, [row])), vector)
                for value, total in zip(loaded, sums, strict=True):
                    total.add_incoming(builder.call(fma, [factor, value, total]), body)
            row.add_incoming(builder.add(row, number(1)), body)
            builder.branch(head)
            builder.position_at_end(done)
            if product:
                for total, place in zip(sums, columns(builder.gep(data(7), [first])), strict=True):
                    builder.store(total, place, align=size)
            return context.get_dummy_value()

        return signature, codegen

    return one_pass


def _passes(update: bool, product: bool):
    """`_pass` over all columns, in blocks of 4, 2 and 1 registers."""
    four, two, one = (_pass(vectors, update, product) for vectors in (4, 2, 1))

    @njit(cache=True)
    def passes(rows, steps, along, factors, out):
        count, length = rows.shape
        lanes = _REGISTER_BYTES // rows.itemsize
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


#: rows += steps (x) along; out = rows^T factors; or both in one pass over the rows. All shapes are `_pass`'s.
_push = _passes(update=True, product=False)
_product = _passes(update=False, product=True)
_pull = _passes(update=True, product=True)


@njit(cache=True)
def _add_row(row, factor, vector):
    for j in range(row.shape[0]):
        row[j] += factor * vector[j]


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def _dot(left, right):
    total = 0.0
    for j in range(left.shape[0]):
        total += left[j] * right[j]
    return total


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
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


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def _back_substitute(factor, right, out):
    """Solve factor out = right for an upper triangular factor."""
    dimension = right.shape[0]
    for i in range(dimension - 1, -1, -1):
        row = factor[i]
        total = right[i]
        for j in range(i + 1, dimension):
            total -= row[j] * out[j]
        out[i] = total / row[i]


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
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


@njit(cache=True)
def play(
    sphere,
    arms,
    features,
    means,
    best_means,
    theta_star,
    noise,
    scores,
    perpendicular,
    reach,
    fallback,
    references,
    perturbations,
    acting,
    disturbing,
    prior_precision,
    log_delta,
    covariance,
    mean,
    information,
    factor,
    pending,
    totals,
    stored,
    regret,
    reward,
    optimal,
    chosen,
):
    """Play `len(noise)` rounds with every chain of one seed; everything that changes is an argument, so calls can be resumed.

    Args:
        sphere: whether the decision set is the unit sphere (then `arms`, `features`, `means`, `best_means` are not read).
        arms: (sets, panels * d * width) packed features, one set per round or one for all.
        features: (sets, actions, padded d) float64.
        means, best_means: (sets, actions) and (sets,) noise-free rewards and the best of them.
        theta_star: (padded d,).
        noise: (rounds,) reward noise.
        scores, perpendicular: (actions,) <x, theta*> in decreasing order and max over later actions of |x perp theta*|;
            empty: no pruning.
        reach: largest |x|.
        fallback: the action taken where theta is zero and all scores tie; on the sphere it is the first axis.
        references, perturbations: (chains,) codes of laws.
        acting, disturbing: (gaussian (rounds, M), norms, signs, largest) of the streams "reference" and "perturbation";
            for EXACT, the acting gaussian has d columns and float64 is advised.
        prior_precision, log_delta: lambda and log(1/delta) of the inflation beta_t; log_delta < 0: none.
        covariance (chains, d, padded d), mean (chains, padded d), information (chains, M, padded d), factor (chains, d, d):
            the state; `factor` is the upper Cholesky factor of the precision and only used by EXACT.
        pending: (chains, 3, padded d): last gain, last features, (1/variance, log det of precision over prior's, 0, ...).
        totals: (chains, 3) regret, reward and optimal rounds so far.
        stored: (rounds,) column of the outputs to write after a round, or -1.
        regret, reward, optimal: (chains, times) outputs.
        chosen: (chains, rounds) indices, or of size 0.

    Returns:
        (round, chain, scores computed): (-1, -1, n), or where theta was not a number.
    """
    chains, dimension, length = covariance.shape
    gaussian, norms, signs, largest = acting
    gaussian2, norms2, signs2, largest2 = disturbing
    size = information.shape[1]
    root = math.sqrt(size) if size else 1.0
    actions = means.shape[1]
    lanes = _REGISTER_BYTES // arms.itemsize
    panels = -(-actions // lanes)
    tiles = -(-chains // _CHAINS)
    computed = 0

    thetas = np.zeros((chains, length))
    pulled = np.zeros(length, information.dtype)
    wide, gains = np.zeros(length), np.zeros(length)
    scaled = np.zeros(length, information.dtype)
    layout = np.zeros((tiles, dimension, _CHAINS), arms.dtype)
    alone = np.zeros((dimension, 1), arms.dtype)
    best = np.zeros((tiles * _CHAINS, lanes), arms.dtype)
    where = np.zeros((tiles * _CHAINS, lanes), np.int32)
    order = np.arange(tiles * _CHAINS)
    ends = np.zeros(tiles * _CHAINS, np.int64)
    bounds = np.zeros((tiles * _CHAINS, 4))
    winners = np.zeros(chains, np.int64)
    own = np.zeros(length)
    inflate = log_delta >= 0.0
    prune = len(scores) > 0 and panels > _BLOCK

    for t in range(len(noise)):
        # ---- theta
        for c in range(chains):
            law, disturbance = references[c], perturbations[c]
            gain, last, inverse = pending[c, 0], pending[c, 1], pending[c, 2, 0]
            rows = information[c]
            delta = thetas[c]
            for j in range(length):
                gains[j] = -inverse * gain[j]
            if law == NONE or law == EXACT:
                _push(covariance[c], gains, gain, gains, delta)
                if law == EXACT:
                    for j in range(dimension):
                        own[j] = gaussian[t, j]
                    _back_substitute(factor[c], own[:dimension], delta[:dimension])
                else:
                    delta[:] = 0.0
            else:
                # ---- B += x z^T of the round before (row t of `disturbing` belongs to it), y = B zeta
                dense = disturbance == GAUSSIAN or disturbance == SPHERE or disturbance == CUBE or disturbance == RAW
                if dense:
                    scale = 1.0 / norms2[t] if disturbance == GAUSSIAN or disturbance == SPHERE else 1.0 / root
                    for j in range(length):
                        scaled[j] = last[j] * scale
                else:
                    kept = 1 if disturbance == COORDINATE or size == 1 else 2
                    for j in range(length):
                        scaled[j] = last[j] / math.sqrt(kept)
                    for i in range(kept):
                        m = largest2[t, i]
                        _add_row(rows[m], signs2[t, m], scaled)
                steps = signs2[t] if disturbance == CUBE else gaussian2[t]
                if law == GAUSSIAN or law == SPHERE or law == CUBE:
                    vector = signs[t] if law == CUBE else gaussian[t]
                    if dense:
                        _pull(rows, steps, scaled, vector, pulled)
                    else:
                        _product(rows, vector, scaled, vector, pulled)
                    scale = root / norms[t] if law == SPHERE else 1.0
                    for j in range(length):
                        wide[j] = pulled[j] * scale
                else:
                    if dense:
                        _push(rows, steps, scaled, steps, pulled)
                    kept = 2 if law == SPARSE and size > 1 else 1
                    for j in range(length):
                        wide[j] = 0.0
                    for i in range(kept):
                        m = largest[t, i]
                        sign = 1.0 if law == MEMBER else signs[t, m]
                        _add_row(wide, sign * math.sqrt(size / kept), rows[m])
                _pull(covariance[c], gains, gain, wide, delta)
            if inflate:
                beta = math.sqrt(prior_precision) + math.sqrt(2.0 * log_delta + pending[c, 2, 1])
                for j in range(length):
                    delta[j] = mean[c, j] + beta * delta[j]
            else:
                for j in range(length):
                    delta[j] += mean[c, j]
            total = _dot(delta, delta)
            if not total < np.inf:
                return t, c, computed

        # ---- the best action
        s = t if features.shape[0] > 1 else 0
        if not sphere:
            table = arms[s]
            for c in range(chains):
                q, r = c // _CHAINS, c % _CHAINS
                order[c] = c
                for k in range(dimension):
                    layout[q, k, r] = thetas[c, k]
            lonely = chains % _CHAINS == 1
            full = tiles - 1 if lonely else tiles
            if lonely:
                for k in range(dimension):
                    alone[k, 0] = thetas[chains - 1, k]
            for c in range(tiles * _CHAINS):
                for lane in range(lanes):
                    best[c, lane] = -np.inf
                    where[c, lane] = 0
            first = min(_BLOCK, panels)
            for q in range(full):
                _score(table, 0, first, dimension, layout[q], best[q * _CHAINS :], where[q * _CHAINS :])
            if lonely:
                _score(table, 0, first, dimension, alone, best[chains - 1 :], where[chains - 1 :])
            computed += first * lanes * chains
            if prune:
                norm_star = _dot(theta_star, theta_star)
                for c in range(chains):
                    top = -np.inf
                    for lane in range(lanes):
                        top = max(top, best[c, lane])
                    along = _dot(thetas[c], theta_star) / norm_star
                    own_norm = _dot(thetas[c], thetas[c])
                    across = math.sqrt(max(0.0, own_norm - along * along * norm_star))
                    unit = 2.0**-24 if arms.itemsize == 4 else 2.0**-53
                    bounds[c, 0] = top
                    bounds[c, 1] = along
                    bounds[c, 2] = across
                    bounds[c, 3] = 4.0 * (dimension + 4) * unit * reach * math.sqrt(own_norm)
                    limits = (bounds[c, 0], bounds[c, 1], bounds[c, 2], bounds[c, 3])
                    ends[c] = _prefix(limits, scores, perpendicular, lanes, panels, first)
                # tiles of chains that need about as many panels; a lonely last chain stays by itself
                count = chains - 1 if lonely else chains
                for i in range(1, count):
                    j = i
                    while j > 0 and ends[order[j - 1]] < ends[order[j]]:
                        order[j - 1], order[j] = order[j], order[j - 1]
                        j -= 1
                for i in range(count):
                    q, r = i // _CHAINS, i % _CHAINS
                    for k in range(dimension):
                        layout[q, k, r] = thetas[order[i], k]
                _reorder(best, where, order, count, lanes)
                for block in range(first, panels, _BLOCK):
                    stop = min(block + _BLOCK, panels)
                    for q in range(full):
                        end = min(stop, ends[order[q * _CHAINS]])
                        if end > block:
                            _score(table, block, end, dimension, layout[q], best[q * _CHAINS :], where[q * _CHAINS :])
                            computed += (end - block) * lanes * min(_CHAINS, count - q * _CHAINS)
                    if full and ends[order[0]] <= stop:
                        break
                if lonely:
                    end = ends[chains - 1]
                    _score(table, first, end, dimension, alone, best[chains - 1 :], where[chains - 1 :])
                    computed += (end - first) * lanes
            else:
                for block in range(first, panels, _BLOCK):
                    stop = min(block + _BLOCK, panels)
                    for q in range(full):
                        _score(table, block, stop, dimension, layout[q], best[q * _CHAINS :], where[q * _CHAINS :])
                if lonely:
                    _score(table, first, panels, dimension, alone, best[chains - 1 :], where[chains - 1 :])
                computed += (panels - first) * lanes * chains
            for i in range(chains):
                c = order[i]
                zero = _dot(thetas[c], thetas[c]) == 0.0
                winners[c] = fallback if zero else _winner(best[i], where[i], lanes, actions)

        # ---- reward and update
        for c in range(chains):
            if sphere:
                norm = math.sqrt(_dot(thetas[c], thetas[c]))
                for j in range(length):
                    own[j] = thetas[c, j] / norm if norm > 0.0 else 0.0
                if norm == 0.0:
                    own[0] = 1.0
                expected = _dot(own, theta_star)
                loss = best_means[0] - expected
            else:
                action = winners[c]
                if action < 0:
                    return t, c, computed
                for j in range(length):
                    own[j] = features[s, action, j]
                expected = means[s, action]
                loss = best_means[s] - expected
                if chosen.size:
                    chosen[c, t] = action
            observed = expected + noise[t]
            totals[c, 0] += loss
            totals[c, 1] += observed
            if loss == 0.0:
                totals[c, 2] += 1.0
            if stored[t] >= 0:
                regret[c, stored[t]] = totals[c, 0]
                reward[c, stored[t]] = totals[c, 1]
                optimal[c, stored[t]] = totals[c, 2]
            gain, last = pending[c, 0], pending[c, 1]
            _product(covariance[c], gains, own, own, gain)
            variance = 1.0 + _dot(own, gain)
            inverse = 1.0 / variance
            surprise = (observed - _dot(own, mean[c])) * inverse
            for j in range(length):
                mean[c, j] += gain[j] * surprise
                last[j] = own[j]
            pending[c, 2, 0] = inverse
            pending[c, 2, 1] += math.log(variance)
            if references[c] == EXACT:
                _cholesky_update(factor[c], own[:dimension])
    return -1, -1, computed


@njit(cache=True)
def _reorder(best, where, order, count, lanes):
    """Rows of `best` and `where` into the order of the first `count` chains."""
    kept_best, kept_where = best[:count].copy(), where[:count].copy()
    for i in range(count):
        for lane in range(lanes):
            best[i, lane] = kept_best[order[i], lane]
            where[i, lane] = kept_where[order[i], lane]
