"""How fast and how exact the linear engine is: python bench/linear.py prints rows L1 to L10, measured in one run.

CPU time of one thread, medians of `REPEATS`; only ratios travel between machines. The literal baseline is one run at a time
from the paper's formulas with an explicit inverse; the Sherman-Morrison baseline is the best that one run at a time does in
NumPy. `python bench/linear.py gpu` times the batched CUDA path instead, in seed-rounds and chain-rounds per second.
"""

import os
import sys

for library in ("OMP", "MKL", "OPENBLAS", "NUMBA"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import functools
import itertools
import statistics
import time
from collections.abc import Callable

import numpy as np

from ensemblepp.agents.linear.chains import LinearChains
from ensemblepp.agents.linear.ensemblepp import LinearEnsemblePlusPlus
from ensemblepp.agents.linear.thompson_sampling import LinearThompsonSampling
from ensemblepp.engines.choice import simulate
from ensemblepp.environments.linear_finite import LinearFinite
from ensemblepp.environments.linear_sphere import LinearSphere
from ensemblepp.randomness import distributions
from ensemblepp.randomness.distributions import LAWS
from ensemblepp.randomness.streams import GaussianRows, generator

REPEATS = 5
HORIZON = 1000
SIZES = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)

#: 25 different pairs: the normalised Gaussian perturbation is the sphere's.
PERTURBATIONS = ("raw_gaussian", "sphere", "cube", "coordinate", "sparse")
PAIRS = tuple(itertools.product(LAWS, PERTURBATIONS))

ENVIRONMENTS = [(d, actions) for d in (10, 50) for actions in (100, 1000, 10_000)] + [(d, 0) for d in (10, 50, 100)]

#: Arithmetic of the whole study without TS, in TFLOP: scores, ensembles in information form, and d x d parts.
STUDY_TFLOP = 82


def environment(dimension: int, actions: int, seeds: range):
    """The finite bandit, or the sphere for `actions` = 0."""
    if not actions:
        return LinearSphere(seeds, dimension=dimension, prior_variance=10.0, noise=1.0)
    return LinearFinite(seeds, dimension=dimension, actions=actions, feature_bound=5**-0.5, prior_variance=10.0, noise=1.0)


def ensemble(dimension: int, size: int, seeds: range, **options) -> LinearEnsemblePlusPlus:
    """The agent with 25 different pairs of laws."""
    laws = {"references": LAWS, "perturbations": PERTURBATIONS} | options
    return LinearEnsemblePlusPlus(seeds, dimension=dimension, ensemble_size=size, prior_variance=10.0, **laws)


def play(dimension: int, actions: int, agent: LinearChains) -> None:
    """One seed of a bandit, which is made anew: it is played once."""
    simulate(environment(dimension, actions, range(1)), agent, HORIZON)


def cpu_seconds(task: Callable[[], object], repeats: int = REPEATS) -> float:
    """Median CPU time of `task`."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        task()
        times.append(time.process_time() - start)
    return statistics.median(times)


def gemm_peak() -> float:
    """float32 GFLOP/s of a 1024 x 1024 matrix product."""
    matrix = np.random.default_rng(0).standard_normal((1024, 1024), dtype=np.float32)
    return 2 * 1024**3 / cpu_seconds(lambda: matrix @ matrix, 15) / 1e9


def literal(dimension: int, actions: int, size: int, pair: tuple[str, str], horizon: int, woodbury: bool) -> np.ndarray:
    """Cumulative regret (horizon,) of seed 0, one run by the formulas (or by Sherman-Morrison), on the shared streams."""
    (instance,) = environment(dimension, actions, range(1)).instances()
    references, perturbations = (GaussianRows(0, stream, size).take(horizon) for stream in ("reference", "perturbation"))
    noise = instance.reward_noise(horizon)
    covariance, precision, mean = 10.0 * np.eye(dimension), np.eye(dimension) / 10.0, np.zeros(dimension)
    factor = np.sqrt(10.0 / size) * generator(0, "agent").standard_normal((size, dimension)).T
    means = None if instance.sphere else instance.features @ instance.theta
    best = np.linalg.norm(instance.theta) if instance.sphere else means.max()
    regret = np.empty(horizon)
    for t in range(horizon):
        theta = mean + factor @ distributions.reference(pair[0], references[t])
        x = theta / np.linalg.norm(theta) if instance.sphere else instance.features[np.argmax(instance.features @ theta)]
        expected = x @ instance.theta
        z = distributions.perturbation(pair[1], perturbations[t])
        if woodbury:
            direction = covariance @ x
            gain = direction / (1.0 + x @ direction)
            mean = mean + gain * (expected + noise[t] - x @ mean)
            factor = factor + np.outer(gain, z - x @ factor)
            covariance = covariance - np.outer(gain, direction)
        else:
            updated = precision + np.outer(x, x)
            covariance = np.linalg.inv(updated)
            mean = covariance @ (precision @ mean + x * (expected + noise[t]))
            factor = covariance @ (precision @ factor + np.outer(x, z))
            precision = updated
        regret[t] = best - expected
    return regret.cumsum()


def speed(name: str, dimension: int, actions: int, size: int, must: tuple[int, int]) -> None:
    """A row of L1 to L5: the engine against one run at a time, per chain and step."""
    agent = ensemble(dimension, size, range(1))
    rounds = max(20, min(200, 400_000 // (dimension * max(actions, size))))
    slow, quick = (
        cpu_seconds(lambda form=form: literal(dimension, actions, size, ("gaussian", "sphere"), rounds, form)) / rounds
        for form in (False, True)
    )
    engine = cpu_seconds(lambda: play(dimension, actions, agent)) / HORIZON / len(PAIRS)
    case = f"d={dimension}, {f'{actions:,} actions' if actions else 'sphere'}, M={size}"
    print(
        f"{name:<4}{case:<34}{slow * 1e6:9.1f}{quick * 1e6:9.1f}{engine * 1e6:9.2f} us"
        f"{slow / engine:9.1f} x (>= {must[0]}){quick / engine:8.1f} x (>= {must[1]})"
    )


def whole_step(peak: float) -> None:
    """L6: a whole step with pruning off, for the 25 chains of one seed that a block scores together."""
    agent = ensemble(50, 8, range(1), pruning=False)
    seconds = cpu_seconds(lambda: simulate(environment(50, 10_000, range(1)), agent, 300)) / 300 / len(PAIRS)
    rate = 2 * 10_000 * 50 / seconds / 1e9
    print(f"L6  a whole step: {rate:.0f} GFLOP/s of {peak:.0f}, {rate / peak:.0%} of the GEMM peak (>= 40 %)")


def whole_study(peak: float) -> None:
    """L7: one seed of everything, times 200."""
    total = 0.0
    for dimension, actions in ENVIRONMENTS:
        agents = [ensemble(dimension, size, range(1)) for size in SIZES]
        agents.append(LinearThompsonSampling(range(1), dimension=dimension, prior_variance=10.0))
        seconds = sum(cpu_seconds(functools.partial(play, dimension, actions, agent), 1) for agent in agents)
        total += seconds
        case = f"d={dimension:<4}{f'{actions:,} actions' if actions else 'sphere':<16}"
        print(f"      {case}{seconds:7.2f} s per seed (250 chains + TS)")
    rate = STUDY_TFLOP * 1e3 / (200 * total)
    print(
        f"L7  200 seeds: {200 * total:.0f} core-s, {200 * total / 120:.1f} min on two cores; "
        f"{rate:.0f} GFLOP/s of {peak:.0f}: {rate / peak:.0%} (>= 25 %)"
    )


def pruning() -> None:
    """L8: equal traces, and the share of scores that pruning leaves."""
    equal = True
    for dimension, seed in ((10, 0), (50, 1)):
        runs = [
            simulate(
                environment(dimension, 1000, range(seed, seed + 1)),
                ensemble(dimension, 8, range(seed, seed + 1), pruning=on),
                HORIZON,
            )
            for on in (True, False)
        ]
        equal &= np.array_equal(runs[0].action, runs[1].action) and np.array_equal(runs[0].reward, runs[1].reward)
    agent = ensemble(10, 8, range(8))
    simulate(environment(10, 10_000, range(8)), agent, HORIZON)
    share = agent.scores_computed / (8 * len(PAIRS) * HORIZON * 10_000)
    print(f"L8  pruned traces {'equal' if equal else 'DIFFER'} (50 runs)")
    print(f"    {share:.1%} of the scores left at d=10, 10,000 actions, M=8 (<= 15 %)")


def exactness() -> None:
    """L9 and L10: float64 against the literal formulas, mixed precision against float64."""
    worst = 0.0
    for dimension, actions, size in ((10, 100, 8), (50, 100, 64), (10, 0, 16), (50, 0, 64)):
        agent = ensemble(dimension, size, range(1), precision="float64")
        regret = simulate(environment(dimension, actions, range(1)), agent, 300).regret[0]
        for chain, pair in enumerate(PAIRS):
            reference = literal(dimension, actions, size, pair, 300, woodbury=False)
            stored = np.searchsorted(np.arange(1, 301), simulate_times(300, len(PAIRS)))
            worst = max(worst, np.abs(regret[chain] / reference[stored] - 1).max())
    print(f"L9  float64 against the literal formulas, 100 runs: regret differs by {worst:.0e} at most, relatively (<= 1e-6)")
    same, broken, runs = 0, 0, 0
    for dimension, actions, size in itertools.product((10, 50), (100, 1000), (8, 64)):
        seeds = range(10)
        mixed, double = (
            simulate(environment(dimension, actions, seeds), ensemble(dimension, size, seeds, precision=precision), HORIZON)
            for precision in ("mixed", "float64")
        )
        same += int((mixed.action == double.action).all(axis=-1).sum())
        broken += int((~np.isfinite(mixed.regret) | (mixed.regret > 1e6)).any(axis=-1).sum())
        runs += mixed.action.shape[0] * mixed.action.shape[1]
    print(f"L10 mixed precision: {same / runs:.2%} of {runs:,} runs on the float64 path (>= 98 %), {broken} broken (0)")


def simulate_times(horizon: int, chains: int) -> np.ndarray:
    """The rounds that a simulation of so many chains stores."""
    from ensemblepp.trajectory import DENSE_ENTRIES, time_grid

    return time_grid(horizon, coarse=chains * horizon > DENSE_ENTRIES)


def gpu() -> None:
    """The batched path on CUDA: 200 seeds of 25 pairs side by side."""
    import torch

    print(torch.cuda.get_device_name())
    for dimension, actions, size in ((10, 1000, 8), (50, 1000, 64), (50, 10_000, 8), (50, 10_000, 1024), (100, 0, 64)):
        seeds = range(200)
        bandit, agent = environment(dimension, actions, seeds), ensemble(dimension, size, seeds, device="cuda")
        simulate(environment(dimension, actions, range(2)), ensemble(dimension, size, range(2), device="cuda"), 5)
        start = time.perf_counter()
        simulate(bandit, agent, 100)
        torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        rate = 200 * 100 / seconds
        print(f"  d={dimension}, {actions:,} actions, M={size}: {rate:,.0f} seed-rounds/s, {25 * rate:,.0f} chain-rounds/s")


def main() -> None:
    """Print the rows."""
    for actions, size in ((100, 2), (0, 16)):  # compile
        simulate(environment(10, actions, range(1)), ensemble(10, size, range(1)), 2)
        simulate(environment(10, actions, range(1)), ensemble(10, size, range(1), precision="float64"), 2)
        simulate(environment(10, actions, range(1)), LinearThompsonSampling(range(1), dimension=10, prior_variance=10.0), 2)
    peak = gemm_peak()
    print(f"one thread; GEMM peak {peak:.0f} GFLOP/s (float32, n = 1024)\n")
    print(f"{'':<4}{'per chain and step':<34}{'literal':>9}{'S.-M.':>9}{'engine':>12}")
    speed("L1", 50, 10_000, 8, (12, 8))
    speed("L2", 50, 100, 8, (35, 9))
    speed("L3", 50, 100, 1024, (40, 12))
    speed("L4", 10, 10_000, 8, (25, 15))
    speed("L5", 100, 0, 64, (45, 7))
    print()
    whole_step(gemm_peak())
    whole_study(gemm_peak())
    pruning()
    exactness()


if __name__ == "__main__":
    gpu() if sys.argv[1:] == ["gpu"] else main()
