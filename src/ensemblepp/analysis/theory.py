"""Constants and bounds of the paper's theory: as claimed, and as they are, computed by another route.

Notation: d dimension, T horizon, M ensemble size, K = |X| actions, delta the probability with which a statement may fail.
Two numbers describe a reference law P of zeta in the regret theorem (Table "zeta_properties", Appendix "Sampling, Isotropy,
Concentration and Anti-concentration"):

    p(P)    least probability, over unit vectors v, that <zeta, v> reaches a threshold: optimism
    rho(P)  what |<zeta, v>| exceeds with probability delta at most, over all actions at once: concentration

Nothing here is simulated: every value is a closed form, a count, or a one-dimensional integral. At the end stand the numbers of
parameters of the neural agents, as printed and as built.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy import special

#: delta where a number is wanted; the paper leaves it open.
DELTA = 0.05

#: Lemma "incre-uncertainty": all eigenvalues of Sigma^(-1/2) A A^T Sigma^(-1/2) stay in here, at all times.
TRACKING_INTERVAL = (0.5, 1.5)

#: The square of what <zeta, v> has to reach: 1 in the paper's tables, 2 in its proof of optimism (Proposition
#: "Ensemble++-optimism"), which divides by the sqrt(2) that the lower end of `TRACKING_INTERVAL` costs.
SquaredThreshold = Literal[1, 2]

# ---------------------------------------------------------------------------------------------------------- optimism


def optimism_claimed(law: str, size: int) -> float:
    """p(P) as Table "zeta" (appendix) states it, for threshold 1; NaN for "sparse", for which the paper claims nothing.

    The Gaussian's 1 / (4 sqrt(e pi)) is 0.0855 and the sphere's 1/2 - e^(1/12) / sqrt(2 pi) is 0.0664; the paper prints 0.0856
    and 0.0668.
    """
    return {
        "gaussian": 1 / (4 * math.sqrt(math.e * math.pi)),
        "sphere": 0.5 - math.exp(1 / 12) / math.sqrt(2 * math.pi),
        "cube": 7 / 32,
        "coordinate": 1 / (2 * size),
        "sparse": math.nan,
    }[law]


def optimism(law: str, size: int, squared_threshold: SquaredThreshold) -> float:
    """p(P): the least P(<zeta, v> >= sqrt(squared_threshold)) over all unit vectors v in R^M, exactly.

    gaussian: the normal tail, for every v.
    sphere: <zeta, v> = sqrt(M) (2 Beta((M-1)/2, (M-1)/2) - 1), for every v.
    cube: threshold 1 is least at equal weights on up to six entries, where a count over signs meets the lower bound of
        Hollom and Portier (the paper's source: P(|<zeta, v>| >= 1) >= 7/32, so 7/64 for one side, and a multiple of 2^-M).
        Threshold sqrt(2) is never reached by v = e_1.
    coordinate: some |v_j| is at least 1/sqrt(M), and there need be no more than one; v = (1, ..., 1)/sqrt(M) never
        reaches sqrt(2).
    sparse (s = 2): see `_sparse_count`.
    """
    if law == "gaussian":
        return float(special.ndtr(-math.sqrt(squared_threshold)))
    if law == "sphere":
        return float(cosine_tail(size, math.sqrt(squared_threshold / size)))
    if law == "cube":
        return min(_equal_weights(count) for count in range(1, min(size, 6) + 1)) if squared_threshold == 1 else 0.0
    if law == "coordinate":
        return 1 / (2 * size) if squared_threshold == 1 else 0.0
    if size == 1:  # one entry only: zeta = +-1
        return 0.5 if squared_threshold == 1 else 0.0
    return _sparse_count(size, squared_threshold) / (4 * math.comb(size, 2))


def cosine_tail(size: int, cosine: float | np.ndarray) -> np.ndarray:
    """P(u_1 >= cosine) for u uniform on the unit sphere of R^M and 0 < cosine: half a Beta tail."""
    if size == 1:
        return np.where(np.asarray(cosine) <= 1, 0.5, 0.0)
    return 0.5 * special.betainc((size - 1) / 2, 0.5, np.clip(1 - np.square(cosine), 0, 1))


def _equal_weights(count: int) -> float:
    """P(sum of `count` signs >= sqrt(count)), compared in whole numbers."""
    reached = (pluses for pluses in range(count + 1) if 2 * pluses >= count and (2 * pluses - count) ** 2 >= count)
    return sum(math.comb(count, pluses) for pluses in reached) / 2**count


def _sparse_count(size: int, squared_threshold: int) -> int:
    """Of the 4 M(M-1)/2 vectors of the sparse law with s = 2, the fewest that reach the threshold c, over unit v; M >= 2.

    Put w = sqrt(M/2) |v| / c, so that |w|^2 = M / (2 c^2). A pair of entries gives one vector if w_i + w_j >= 1, and a second
    if |w_i - w_j| >= 1. Fix which of these hold: the others, w_i + w_j < 1 and |w_i - w_j| < 1, survive shrinking w, so some w
    of the right length exists if and only if their closure, a polytope, reaches beyond M / (2 c^2). It does so at a vertex, all
    of whose entries are multiples of 1/2 (two unknowns with factors +-1 in every constraint), unless it is unbounded: with one
    entry far above all others, or with all of them large and alike. An entry of 2 or more in a vertex saves nothing over that.
    What remains to be tried are numbers of entries 0, 1/2, 1 and 3/2.
    """
    fewest = min(2 * (size - 1), math.comb(size, 2))
    needed = 2 * size // squared_threshold + 1  # 4 |w|^2, a whole number above 2M / c^2
    for high in range(1, size + 1):
        if math.comb(high, 2) >= fewest:
            break
        for three_halves in range(high + 1):
            ones = high - three_halves
            least = max(0, needed - 4 * ones - 9 * three_halves)
            # linear in the number of halves: only its ends matter
            for halves in (least, size - high):
                if least <= halves <= size - high:
                    zeros = size - high - halves
                    fewest = min(fewest, math.comb(high, 2) + high * halves + 2 * zeros * three_halves)
    return fewest


# ----------------------------------------------------------------------------------------------------- concentration


def concentration_claimed(law: str, size: int, actions: int | None, delta: float = DELTA) -> float:
    """rho(P) of Table "zeta" with the constants of the appendix; `actions` None is a compact set.

    rho_1 = sqrt(2 M log(2M/delta)) bounds the Gaussian's norm, rho_2 = sqrt(M) that of all other laws (exactly), and
    rho_3 = sqrt(log(2K/delta)) all actions of a finite set, for gaussian, sphere and cube. The logarithm of rho_1 is missing
    in Table "zeta_properties" and in the regret for compact sets; the true quantile of the norm has none.
    """
    norm = math.sqrt(2 * size * math.log(2 * size / delta)) if law == "gaussian" else math.sqrt(size)
    if actions is None or law in ("coordinate", "sparse"):
        return norm
    return min(norm, math.sqrt(math.log(2 * actions / delta)))


def concentration_corrected(law: str, size: int, actions: int | None, delta: float = DELTA) -> float:
    """rho(P) that a union bound over tails exp(-x^2/2) does give: sqrt(2 log(2K/delta)) in place of rho_3.

    For one round, as in the paper's proof. Its definition of reasonableness asks for all rounds together, hence delta / T, and
    so log(K T) in the regret where the paper has log K.
    """
    norm = concentration_claimed(law, size, None, delta)
    if actions is None or law in ("coordinate", "sparse"):
        return norm
    return min(norm, math.sqrt(2 * math.log(2 * actions / delta)))


def violation(law: str, size: int, actions: int | None, bound: float) -> float:
    """P(|<zeta, v_a>| > bound for some of K actions), for independent v_a that are uniform on the unit sphere of R^M.

    With `actions` None, a compact set, P(|zeta| > bound). Against uniform directions all vectors of norm sqrt(M) are alike, so
    this is one number for all laws but the Gaussian, whose norm is averaged over its chi distribution.
    """
    if actions is None:
        return float(special.chdtrc(size, bound**2)) if law == "gaussian" else float(bound < math.sqrt(size))

    def kept(norm: np.ndarray) -> np.ndarray:
        """P(none of K does), given |zeta| = norm > bound."""
        return (1 - 2 * cosine_tail(size, bound / norm)) ** actions

    if law != "gaussian":
        return float(1 - kept(np.sqrt(size))) if bound < math.sqrt(size) else 0.0
    # a chi distribution is no wider than a normal one: nothing is left 9 away from its mode
    mode = math.sqrt(size - 1)
    low, high = max(bound, mode - 9), max(bound, mode) + 9
    if size > 1 and actions > 40:  # where each exceeds the bound with probability 40/K, less than e^-40 is kept
        high = min(high, bound / math.sqrt(1 - special.betaincinv((size - 1) / 2, 0.5, 40 / actions)))
    # Gauss-Legendre, quadratically closer towards `low`, where `kept` may have the slope of a square root
    nodes, weights = _gauss_legendre(400)
    nodes, width = (nodes + 1) / 2, max(0.0, high - low)
    norm = low + width * nodes**2
    log_density = (1 - size / 2) * math.log(2) - math.lgamma(size / 2) + (size - 1) * np.log(norm) - norm**2 / 2
    within = width * np.sum(weights * nodes * kept(norm) * np.exp(log_density))
    return float(special.chdtrc(size, bound**2) - within)


@functools.cache
def _gauss_legendre(count: int) -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(count)


def gaussian_violation(actions: int, bound: float, sides: Literal[1, 2] = 2) -> float:
    """The same for the Gaussian law and orthogonal directions (which takes M >= K), where the K projections are independent.

    No other directions have more (Sidak's and Slepian's inequalities).

    `sides` 1: <zeta, v_a> > bound, as the appendix writes it; 2: with absolute values, as the proof of reasonableness needs.
    """
    return -math.expm1(actions * math.log1p(-sides * float(special.ndtr(-bound))))


def concentration_needed(law: str, size: int, actions: int | None, delta: float = DELTA) -> float:
    """The least rho with `violation` of at most delta; for a compact set (`actions` None) the 1 - delta quantile of |zeta|."""
    if law == "gaussian":
        norm = math.sqrt(special.chdtri(size, delta))
        if actions is None:
            return norm
        from scipy import optimize  # only here: it takes longer to load than the rest together

        # the quantile of |zeta| is the limit of infinitely many actions
        return float(optimize.brentq(lambda bound: violation(law, size, actions, bound) - delta, 1e-6, 1.01 * norm, xtol=1e-9))
    if actions is None or size == 1:
        return math.sqrt(size)
    each = -math.expm1(math.log1p(-delta) / actions)
    return math.sqrt(size * (1 - special.betaincinv((size - 1) / 2, 0.5, each)))


# ------------------------------------------------------------------------------------------------ covariance tracking


def tracking_size(
    dimension: int, horizon: int, prior_variance: float, delta: float = DELTA, feature_norm: float = 1.0
) -> float:
    """The ensemble size M that Lemma "incre-uncertainty" asks for, eq. "M-bound".

    320 (d log((2 + 96 sqrt(s_max^2 + T) / s_min) / delta) + log(1 + T / s_min^2)), with s_min = s_max = s and
    s^2 = 1 / prior_variance for Sigma_0 = prior_variance I.

    Args:
        dimension: d.
        horizon: T.
        prior_variance: of Sigma_0 = prior_variance I.
        delta: probability of failure.
        feature_norm: largest |x|. The lemma assumes 1; other values are scaled to it, which multiplies Sigma_0 by their square.
    """
    smallest = 1 / (prior_variance * feature_norm**2)
    net = (2 + 96 * math.sqrt((smallest + horizon) / smallest)) / delta
    return sequential_factor(0.25) * (dimension * math.log(net) + math.log1p(horizon / smallest))


def sequential_factor(epsilon: float) -> float:
    """16 (1 + epsilon) / epsilon^2 of the sequential Johnson-Lindenstrauss theorem (c_0 = 1); 320 at the proof's 1/4."""
    return 16 * (1 + epsilon) / epsilon**2


def prior_size(dimension: int, delta: float = DELTA, epsilon: float = 0.5) -> float:
    """M_1(epsilon, delta / 2) = 256 (d log 9 + log(4/delta)) / epsilon^2: what the start A_0 asks for (eq. "M-dist-jl").

    The proof writes M_1(1/4, .) and prints the factor 1024, which is that of 1/2. And 1/2 is what it needs: M_1(epsilon, .)
    gives the event at precision epsilon / 2.
    """
    return 256 / epsilon**2 * (dimension * math.log(9) + math.log(4 / delta))


def independent_edges(dimension: int, size: int) -> tuple[float, float]:
    """Where the extreme eigenvalues of A A^T against Sigma lie if A had independent columns: (1 -+ sqrt(d/M))^2.

    The edges of the Marchenko-Pastur law, not of the paper: what M directions can do at best. The smallest is 0 for M <= d.
    They lie in `TRACKING_INTERVAL` from M = 20 d on.
    """
    spread = math.sqrt(dimension / size)
    return max(0.0, 1 - spread) ** 2, (1 + spread) ** 2


def update_cost(dimension: int, size: int) -> int:
    """Multiplications that an update of Sigma and of B = Sigma^(-1) A takes in the information form, 2 d^2 + d M.

    Sigma x, and the rank-one update of Sigma, d^2 each; x z^T, d M. The paper's form has a product of Sigma with d x M, d^2 M.
    """
    return 2 * dimension**2 + dimension * size


# --------------------------------------------------------------------------------------------------------- regret


@dataclass(frozen=True)
class RegretBound:
    """A row of Table "regret_comparison_main_analysis": orders as a text with K for |X|, and as functions with constant one.

    `regret_order` and `size_order` take (d, T, K), with K NaN where there is none; `size_order` is None without an ensemble.
    """

    method: str
    setting: str
    regret: str
    ensemble_size: str
    regret_order: Callable[[int, int, float], float]
    size_order: Callable[[int, int, float], float] | None = None


def _d_log(d: int, horizon: int, _: float) -> float:
    return d * math.log(horizon)


def _ts_compact(d: int, horizon: int, _: float) -> float:
    return d**1.5 * math.sqrt(horizon) * math.log(horizon)


def _ts_finite(d: int, horizon: int, actions: float) -> float:
    return d * math.sqrt(horizon * math.log(actions)) * math.log(horizon)


def _power_three_halves(d: int, horizon: int, _: float) -> float:
    return (d * math.log(horizon)) ** 1.5 * math.sqrt(horizon)


def _power_five_halves(d: int, horizon: int, _: float) -> float:
    return (d * math.log(horizon)) ** 2.5 * math.sqrt(horizon)


#: The paper's table, with invariant and varying contexts in one row ("any") where they agree. Added are, first, what needs no
#: theory (the theorem's mean rewards lie in [-1, 1]), and last, Ensemble++ with the coordinate reference, the paper's ES, which
#: is in the theorem's proof only.
REGRET_BOUNDS = (
    RegretBound("any policy", "any", "2 T", "-", lambda d, horizon, actions: 2 * horizon),
    RegretBound("Linear TS", "any, compact", "d^(3/2) sqrt(T) log T", "-", _ts_compact),
    RegretBound("Linear TS", "any, finite", "d sqrt(T log K) log T", "-", _ts_finite),
    RegretBound(
        "Qin et al. 2022",
        "invariant, finite",
        "sqrt(d T log K) log(K T / d)",
        "Omega(K T)",
        lambda d, horizon, actions: math.sqrt(d * horizon * math.log(actions)) * math.log(actions * horizon / d),
        lambda d, horizon, actions: actions * horizon,
    ),
    RegretBound("Janz et al. 2024", "any, compact", "(d log T)^(5/2) sqrt(T)", "Theta(d log T)", _power_five_halves, _d_log),
    RegretBound(
        "Lee and Oh 2024",
        "invariant, finite",
        "(d log T)^(3/2) sqrt(T)",
        "Omega(K log T)",
        _power_three_halves,
        lambda d, horizon, actions: actions * math.log(horizon),
    ),
    RegretBound("Ensemble++", "any, compact", "(d log T)^(3/2) sqrt(T)", "Theta(d log T)", _power_three_halves, _d_log),
    RegretBound("Ensemble++", "any, finite", "d sqrt(T log K) log T", "Theta(d log T)", _ts_finite, _d_log),
    RegretBound("Ensemble++, coordinate", "any", "(d log T)^(5/2) sqrt(T)", "Theta(d log T)", _power_five_halves, _d_log),
)


# ------------------------------------------------------------------------------------------------------ parameter counts

#: Agents whose parameters are counted, by their kind.
NETWORKS = {"neural_ensemblepp": "ensemble++", "ensembleplus": "ensemble+", "epinet": "epinet", "greedy": "greedy"}

Network = Literal["ensemble++", "ensemble+", "epinet", "greedy"]

#: Widths of EpiNet's two-layer networks: the trained one, and each of the M frozen ones.
EPINET_WIDTH, EPINET_PRIOR_WIDTH = 15, 5


def network_of(spec: Mapping[str, Any]) -> tuple[Network, dict[str, Any]] | None:
    """The network of a run block's specification and its `dimension`, `classes` and `hidden`, as `parameter_counts` takes them.

    None for agents that are not counted, and for environments whose data decide the dimension.
    """
    agent, environment = spec["agent"], spec["environment"]["options"]
    if agent["kind"] not in NETWORKS or "dimension" not in environment:
        return None
    classes = 2 if agent["options"]["loss"] == "cross_entropy" else 1
    shape = {"dimension": environment["dimension"], "classes": classes, "hidden": tuple(agent["options"]["hidden"])}
    return NETWORKS[agent["kind"]], shape


def parameter_counts(
    agent: Network, *, dimension: int, classes: int, ensemble_size: int, hidden: Sequence[int]
) -> tuple[int, int]:
    """(all, trainable) parameters of an agent as it is built here, which is as the released code builds it.

    With D features from a trunk of H parameters, C classes and M members. Ensemble++: a base head D C without bias, M heads D C
    and as many frozen ones. Ensemble+: M heads (D + 1) C, and all of it once more, frozen, trunk included. EpiNet: a base head
    (D + 1) C, an MLP of widths 15, 15 from x, trunk features and index to M C outputs, and M frozen MLPs of widths 5, 5 from x
    to C outputs. Greedy: trunk and base head of Ensemble++.
    """
    trunk, width = _trunk(dimension, hidden)
    base, heads = trunk + width * classes, ensemble_size * width * classes
    if agent == "greedy":
        return base, base
    if agent == "ensemble++":
        return base + 2 * heads, base + heads
    if agent == "ensemble+":
        members = trunk + heads + ensemble_size * classes
        return 2 * members, members
    widths = [dimension + width + ensemble_size, EPINET_WIDTH, EPINET_WIDTH, ensemble_size * classes]
    trained = base + classes + _layers(widths)
    return trained + ensemble_size * _layers([dimension, EPINET_PRIOR_WIDTH, EPINET_PRIOR_WIDTH, classes]), trained


def paper_parameter_count(agent: Network, *, dimension: int, classes: int, ensemble_size: int, hidden: Sequence[int]) -> float:
    """The formula of Appendix "Detailed Comparison with EpiNet and Ensemble+", paragraph "Parameter Counts"; NaN for Greedy.

    Against `parameter_counts`, Ensemble++ has a bias in its base head, C parameters more. EpiNet's MLP has M + C outputs where
    the text beside it, and the product with the index, need M C; and its base head is not counted.
    """
    trunk, width = _trunk(dimension, hidden)
    d, size = dimension, ensemble_size
    return {
        "ensemble++": trunk + (2 * size + 1) * width * classes + classes,
        "ensemble+": 2 * trunk + 2 * size * width * classes + 2 * size * classes,
        "epinet": trunk + (15 * d + 15 * width + 31 * size + 255 + 16 * classes) + size * (5 * d + 35 + 6 * classes),
        "greedy": math.nan,
    }[agent]


def _trunk(dimension: int, hidden: Sequence[int]) -> tuple[int, int]:
    """Parameters of the trunk, and the features that it gives: H and D."""
    widths = [dimension, *hidden]
    return _layers(widths), widths[-1]


def _layers(widths: Sequence[int]) -> int:
    """Weights and biases of an MLP."""
    return sum((fan_in + 1) * width for fan_in, width in itertools.pairwise(widths))
