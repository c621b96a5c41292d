"""How fast and how exact the neural engine is: python bench/nonlinear.py prints rows N1 to N11, measured in one run.

The task is the paper's: Quadratic, d = 100, 1,000 candidates of which 50 are offered, a 64-64 trunk, M = 8, batch 128, one
gradient step per round. CPU time of one thread, medians of `REPEATS`, but for N6, which needs two idle cores; only ratios
travel between machines. The baseline is one seed at a time in plain PyTorch (tests/plain_torch.py, with the reduced loss).
`python bench/nonlinear.py gpu` prints seed-rounds per second on a GPU instead.
"""

import os
import sys
from pathlib import Path

for library in ("OMP", "MKL", "OPENBLAS", "NUMBA"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import itertools
import multiprocessing
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from plain_torch import PlainEnsemblePlusPlus

from ensemblepp.agents.neural import columns
from ensemblepp.agents.neural.base import NeuralAgent
from ensemblepp.agents.neural.dropout import Dropout
from ensemblepp.agents.neural.ensembleplus import EnsemblePlus
from ensemblepp.agents.neural.ensemblepp import NeuralEnsemblePlusPlus
from ensemblepp.agents.neural.epinet import EpiNet
from ensemblepp.agents.neural.greedy import Greedy
from ensemblepp.agents.neural.lmcts import LMCTS, squared_error_gradient
from ensemblepp.agents.neural.lmcts_steps import langevin
from ensemblepp.agents.neural.neural_linear import NeuralLinear
from ensemblepp.agents.neural.neural_ts import NeuralTS
from ensemblepp.agents.neural.neural_ucb import NeuralUCB
from ensemblepp.engines.neural.compiled import CompiledRun
from ensemblepp.engines.neural.epinet import EpiNetRun
from ensemblepp.engines.neural.run import Run
from ensemblepp.engines.neural.single_head import SingleHeadRun
from ensemblepp.engines.neural.stacked import StackedRun
from ensemblepp.environments.candidates import Neural, Quadratic
from ensemblepp.environments.pool import Pool

REPEATS = 5
ROUNDS = 400

#: Floating-point operations of a seed-round (M = 8): forward for 50 actions and 128 samples, backward, Adam.
ROUND_MFLOP = 7.9

TRAINING = {
    "dimension": 100,
    "hidden": [64, 64],
    "learning_rate": 1e-4,
    "batch_size": 128,
    "weight_decay": 0.01,
    "buffer_capacity": 10_000,
    "gradient_steps": 1,
    "warm_up": 0,
}
SCALES = {"prior_scale": 5.0, "posterior_scale": 1.0, "perturbation_scale": 0.01}
LAWS = {"references": ["sphere"], "perturbations": ["sphere"], "update": "coordinate"}


def environment(seeds: int) -> Quadratic:
    """The paper's Quadratic bandit."""
    return Quadratic(range(seeds), scale=0.01, noise=0.1, dimension=100, candidates=1000, offered=50, features="sphere")


def ensemble(seeds: int, horizon: int, size: int = 8, device: str = "cpu", **changes) -> NeuralEnsemblePlusPlus:
    """Ensemble++ with the paper's laws."""
    options = TRAINING | SCALES | LAWS | {"ensemble_size": size, "horizon": horizon, "device": device} | changes
    return NeuralEnsemblePlusPlus(range(seeds), **options)


def classes(seeds: int) -> Neural:
    """The paper's Neural bandit, whose rewards are 0 and 1."""
    shape = {"dimension": 100, "candidates": 1000, "offered": 50, "features": "gaussian"}
    return Neural(range(seeds), hidden=[64, 64], temperature=0.1, weights="xavier", **shape)


def epinet(seeds: int) -> EpiNet:
    """EpiNet with M = 8."""
    options = TRAINING | SCALES | {"ensemble_size": 8, "index_samples": 16, "double_softmax": False}
    return EpiNet(range(seeds), horizon=10**6, device="cpu", **options)


def advance(run: Run, rounds: int) -> None:
    """Play that many rounds, of a run whose horizon is far away."""
    end = run.agent.round + rounds
    while run.agent.round < end:
        run.advance()


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


def microseconds(
    engine: type[Run], agent: NeuralAgent, seeds: int, rounds: int = ROUNDS, skip: int = 100, bandit: Pool | None = None
) -> float:
    """CPU time of a seed-round, after `skip` rounds."""
    run = engine(agent, bandit or environment(seeds), 10**6, np.arange(64, 10**6, 64))
    advance(run, skip)
    return cpu_seconds(lambda: advance(run, rounds)) / rounds / seeds * 1e6


def plain(rounds: int = 200) -> float:
    """CPU time of a round of the plain agent."""
    agent = PlainEnsemblePlusPlus(ensemble(1, 10_000), SCALES["posterior_scale"], reduced=True)
    quadratic = environment(1)
    agent.play(quadratic, 100)
    done = 100

    def task() -> None:
        nonlocal done
        agent.play(quadratic, rounds, done)
        done += rounds

    return cpu_seconds(task) / rounds * 1e6


def denormals() -> tuple[float, float, float]:
    """Microseconds of a compiled round about t = 200 and about t = 5,000, and about t = 5,000 without flushed denormals."""
    found = []
    for flush in (True, False):
        run = CompiledRun(ensemble(1, 10**6), environment(1), 10**6, np.arange(64, 10**6, 64))
        torch.set_flush_denormal(flush)
        advance(run, 192)
        if flush:
            found.append(cpu_seconds(lambda run=run: advance(run, 192)) / 192 * 1e6)
        advance(run, 4992 - run.agent.round)
        found.append(cpu_seconds(lambda run=run: advance(run, 192), 3) / 192 * 1e6)
    torch.set_flush_denormal(True)
    return tuple(found)


def gradient_error() -> float:
    """Relative difference of a compiled gradient from autograd's of the whole symmetrised loss, in float64."""
    agent = ensemble(1, 64, warm_up=63)
    literal = PlainEnsemblePlusPlus(agent, SCALES["posterior_scale"])
    run = CompiledRun(agent, environment(1), 64, np.array([64]))
    run.advance()
    # the one gradient step that was made leaves a tenth of its gradient, weight decay included, in Adam's first moment
    network, names = literal.network.double(), {"base.weight": "base", "heads.weight": "heads"}
    names |= {f"trunk.{2 * layer}.{kind}": f"{kind[0]}{layer}" for layer in range(2) for kind in ("weight", "bias")}
    parameters = {own: network.get_parameter(name) for name, own in names.items()}
    start = torch.cat([parameters[name].detach().t().flatten() for name in run._at])
    found = torch.from_numpy(run._first[0]).double() / 0.1 - TRAINING["weight_decay"] / 64 * start
    rows = (agent._draws["minibatch"][0, 63, 0] * 64).to(torch.int64).numpy()
    literal.directions = literal.directions.double()
    samples = (run.environment.table[0, run._item[0, rows]], run._rewards[0, rows], run._extra[0, rows])
    loss = literal.loss(*(torch.from_numpy(part).double() for part in samples))
    gradients = dict(zip(parameters, torch.autograd.grad(loss, list(parameters.values())), strict=True))
    expected = torch.cat([gradients[name].t().flatten() for name in run._at])
    return float((found - expected).norm() / expected.norm())


def folding(rounds: int = 10_000, items: int = 300) -> tuple[float, float]:
    """LMCTS: time of the gradient over so many rows of history over that of the folded one, and how far they differ."""
    source = np.random.default_rng(0)
    table = torch.from_numpy(source.standard_normal((items, 100), dtype=np.float32) / 10)
    chosen, rewards = source.integers(items, size=rounds), source.standard_normal(rounds, dtype=np.float32)
    options = TRAINING | {"learning_rate": 1e-3, "weight_decay": 2.0, "gradient_steps": 50}
    seconds, slopes = [], []
    for folded in (True, False):
        agent = LMCTS([0], horizon=rounds, device="cpu", temperature=0.01, decay_every=20, **options)
        for agent.round, (item, reward) in enumerate(zip(chosen, rewards, strict=True)):
            agent.observe(table[[item]], torch.tensor([reward]), torch.tensor([item]) if folded else None)
        features, count, total, _ = agent.history.rows(slice(None))
        count, total = count.float(), total.float()
        network = {name: value.detach() for name, value in agent.parameters.items() if name != "network"}
        slope = {name: torch.empty_like(value) for name, value in network.items()}
        arguments = (network, slope, features, count, total)
        seconds.append(cpu_seconds(lambda arguments=arguments: squared_error_gradient(*arguments), 15))
        slopes.append(torch.cat([value.flatten() for value in slope.values()]))
    return seconds[1] / seconds[0], float((slopes[0] - slopes[1]).norm() / slopes[1].norm())


def langevin_step(rows: int = 300) -> tuple[float, float]:
    """(microseconds, floating-point operations) of an inner step of LMCTS on so many distinct actions, its noise left out."""
    source = np.random.default_rng(0)
    widths = np.array([TRAINING["dimension"], *TRAINING["hidden"]])
    products = [int(fan_in * width) for fan_in, width in itertools.pairwise([*widths, 1])]
    entries = sum(products) + int(widths[1:].sum())
    row, features, noise = (
        source.standard_normal(shape, dtype=np.float32) / 10 for shape in (entries, (rows, widths[0]), (50, entries))
    )
    count, total, predictions = (np.ones(shape, dtype=np.float32) for shape in (rows, rows, (rows, 1)))
    factors = np.float32(1e-6), np.float32(1), np.float32(0)
    items = columns.Items(features, np.empty((rows, 0), dtype=np.int32), 1)
    spent = cpu_seconds(lambda: langevin(widths, row, items, count, total, noise, *factors, predictions), 9) / len(noise)
    # forward and by the weights, each a product of every layer; by the inputs, all but the first
    return spent * 1e6, 2 * rows * (3 * sum(products) - products[0])


def _work(rounds: int) -> None:
    torch.set_num_threads(1)
    run = CompiledRun(ensemble(1, 10**6), environment(1), 10**6, np.arange(64, 10**6, 64))
    advance(run, rounds)


def two_processes(rounds: int = 20_000) -> float:
    """Throughput of two processes over that of one, by the clock."""
    spent = []
    context = multiprocessing.get_context("fork")
    for count in (1, 2):
        processes = [context.Process(target=_work, args=(rounds,)) for _ in range(count)]
        start = time.perf_counter()
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        spent.append(time.perf_counter() - start)
    return 2 * spent[0] / spent[1]


def table() -> None:
    """Print the rows."""
    torch.set_num_threads(1)
    peak = gemm_peak()
    print(f"float32 matrix product, n = 1024: {peak:.0f} GFLOP/s on one core")
    compiled, baseline = microseconds(CompiledRun, ensemble(1, 10**6), 1), plain()
    stacked = microseconds(StackedRun, ensemble(20, 10**6, buffer_capacity=10_000), 20, 100)
    print(f"N1  compiled round, M = 8, G = 1: {compiled:.0f} us; plain torch {baseline:.0f} us: {baseline / compiled:.1f} x")
    print(f"N2  {ROUND_MFLOP} MFLOP / time against the matrix product: {ROUND_MFLOP / compiled * 1e6 / peak / 1e3:.0%}")
    print(f"N3  stacked torch, 20 seeds: {stacked:.0f} us a seed-round: {baseline / stacked:.1f} x")
    early, late, unflushed = denormals()
    print(f"N4  round at t = 5,000 against t = 200: {late / early:.2f} x; with denormals {unflushed / early:.1f} x")
    print(f"N5  compiled gradient against autograd of the whole loss in float64: {gradient_error():.1e}")
    print(f"N6  two processes against one, throughput by the clock: {two_processes():.2f} x")
    ratio, difference = folding()
    print(
        f"N7  LMCTS at t = 10,000 with 300 actions: full gradient over folded, time {ratio:.0f} x, difference {difference:.0e}"
    )
    one, theirs = epinet(1), microseconds(StackedRun, epinet(10), 10, 100)
    indexed = microseconds(EpiNetRun, one, 1)
    ratios = f"{indexed / compiled:.1f} x Ensemble++; stacked {theirs:.0f} us: {theirs / indexed:.1f} x"
    print(f"N8  EpiNet compiled: {indexed:.0f} us, {ratios}")
    squared = microseconds(CompiledRun, ensemble(1, 10**6, 32), 1)
    logits = microseconds(CompiledRun, ensemble(1, 10**6, 32, loss="cross_entropy"), 1, bandit=classes(1))
    print(f"N10 cross-entropy at M = 32: {logits:.0f} us; squared loss {squared:.0f} us: {logits / squared:.2f} x")
    spent, operations = langevin_step()
    print(f"N11 LMCTS, inner step on 300 rows: {spent:.0f} us: {spent / (operations / peak / 1e3):.2f} x its arithmetic")
    print("    us a seed-round: compiled with one seed, stacked with 10 seeds")
    for size in (8, 16, 64):
        one, ten = ensemble(1, 10**6, size), ensemble(10, 10**6, size)
        own = microseconds(CompiledRun, one, 1), microseconds(StackedRun, ten, 10, 100)
        print(f"      Ensemble++, M = {size:<4}{own[0]:9.0f}{own[1]:9.0f}")
    shared = TRAINING | {"horizon": 10**6, "device": "cpu"}
    greedy = [Greedy(range(seeds), **shared) for seeds in (1, 10)]
    plus = [EnsemblePlus(range(seeds), ensemble_size=8, equal_noise=True, **SCALES, **shared) for seeds in (1, 10)]
    for name, agents in (("Greedy", greedy), ("Ensemble+, M = 8", plus)):
        own = (microseconds(CompiledRun, agents[0], 1), microseconds(StackedRun, agents[1], 10, 100))
        print(f"      {name:<20}{own[0]:6.0f}{own[1]:9.0f}")
    print(f"      EpiNet, M = 8       {indexed:6.0f}{theirs:9.0f}")
    for name, kind, own in (
        ("NeuralUCB", NeuralUCB, {"ridge": 1.0, "exploration": 0.1}),
        ("NeuralTS", NeuralTS, {"ridge": 1.0, "exploration": 0.1}),
        ("NeuralLinear", NeuralLinear, {"prior_variance": 1.0, "noise": 0.1, "refresh": 100}),
        ("dropout", Dropout, {"rate": 0.2}),
    ):
        # NeuralLinear's regression is done anew on all that the buffer holds
        one, ten = (kind(range(seeds), **own, **shared | {"horizon": 10_000}) for seeds in (1, 10))
        spent = microseconds(SingleHeadRun, one, 1), microseconds(StackedRun, ten, 10, 100)
        print(f"      {name:<20}{spent[0]:6.0f}{spent[1]:9.0f}")


def gpu() -> None:
    """Seed-rounds per second on a GPU, whole rounds as CUDA graphs."""
    if not torch.cuda.is_available():
        sys.exit("error: torch sees no GPU here")
    print(torch.cuda.get_device_name())
    for seeds in (1, 20, 200, 1000):
        run = StackedRun(
            ensemble(seeds, 10**6, device="cuda", buffer_capacity=1000), environment(seeds), 10**6, np.arange(64, 10**6, 64)
        )
        advance(run, 200)
        torch.cuda.synchronize()
        start = time.perf_counter()
        advance(run, 1000)
        torch.cuda.synchronize()
        spent = time.perf_counter() - start
        print(f"Ensemble++, M = 8, {seeds} seeds: {seeds * 1000 / spent:,.0f} seed-rounds/s, {spent * 1000:.0f} us a round")


if __name__ == "__main__":
    gpu() if sys.argv[1:] == ["gpu"] else table()
