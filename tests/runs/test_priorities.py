"""One block of each compiled kernel goes first, and the others of it last."""

from __future__ import annotations

from ensemblepp.runs.priorities import ANY, FIRST, LAST, Priorities
from ensemblepp.specification import Block


def block(engine: str, environment: str, agent: str, **options: object) -> Block:
    spec = {
        "environment": {"name": environment, "kind": environment, "options": options},
        "agent": {"name": agent, "kind": agent, "options": {}},
        "engine": engine,
        "ensemble_size": 0,
        "horizon": 10,
        "seeds": [0, 1],
        "device": "cpu",
    }
    return Block("results/smoke", spec)


def test_each_kernel_is_compiled_by_one_block_that_waits_for_nothing():
    data = block("neural_compiled", "classification", "greedy", inputs={"prepared": "data/prepared/mushroom.nc"})
    expected = [
        (data, LAST),
        (block("neural_compiled", "quadratic", "greedy"), FIRST),
        (block("neural_compiled", "neural", "greedy"), LAST),
        (block("linear_compiled", "linear_finite", "linear_ts"), FIRST),
        (block("linear_compiled", "linear_finite", "linear_greedy"), LAST),
        (block("linear_compiled", "linear_sphere", "linear_ts"), FIRST),
        (block("linear_compiled", "linear_sphere", "linear_greedy"), LAST),
        (block("neural_stacked", "quadratic", "dropout"), ANY),
        (block("step_by_step", "quadratic", "linear_ucb"), ANY),
    ]
    priorities = Priorities()
    # Snakemake asks again after every change of its plan
    for _ in range(2):
        assert [priorities(one) for one, _ in expected] == [priority for _, priority in expected]
