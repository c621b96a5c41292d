"""Rounds are played with one thread of OpenBLAS, whatever it has outside, and afterwards it has as many as before."""

import json
import os
import subprocess
import sys

import pytest

from ensemblepp.engines.threads import one_thread

#: Engines that multiply matrices.
ENGINES = ("neural_compiled", "neural_stacked", "step_by_step")

#: Plays Greedy by each, and tells how many threads the copies of OpenBLAS have before, meanwhile and after, and the regret.
PLAY = """
import json, sys
import scipy.linalg.cython_blas
from threadpoolctl import threadpool_info
from ensemblepp.agents.neural.greedy import Greedy
from ensemblepp.engines.choice import simulate
from ensemblepp.environments.candidates import Quadratic

def threads():
    return sorted({library["num_threads"] for library in threadpool_info() if library["internal_api"] == "openblas"})

def play(engine):
    environment = Quadratic(range(2), scale=0.01, noise=0.1, dimension=40, candidates=300, offered=50, features="sphere")
    agent = Greedy(
        range(2), dimension=40, hidden=[64, 64], horizon=20, learning_rate=1e-3, batch_size=128, weight_decay=0.01,
        buffer_capacity=20, gradient_steps=1, warm_up=0, device="cpu",
    )
    seen, before = [], threads()
    played = simulate(environment, agent, 20, lambda rounds: seen.append(threads()), engine=engine)
    return {"before": before, "seen": seen, "after": threads(), "regret": played.regret.tolist()}

print(json.dumps({engine: play(engine) for engine in sys.argv[1:]}))
"""


def play(threads: int) -> dict[str, dict]:
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    settings = os.environ | dict.fromkeys(names, str(threads))
    found = subprocess.run([sys.executable, "-c", PLAY, *ENGINES], env=settings, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    return json.loads(found.stdout)


def test_rounds_have_one_thread_of_openblas():
    with_one, with_many = play(1), play(2)
    for engine in ENGINES:
        one, many = with_one[engine], with_many[engine]
        assert one["before"] == [1], engine
        assert many["before"] == many["after"], f"{engine}: nothing is changed for whoever plays"
        assert many["before"] == [2] or os.cpu_count() == 1, "there is nothing to see"
        assert many["seen"], engine
        assert all(threads == [1] for threads in many["seen"]), engine
        assert many["regret"] == one["regret"], engine


def test_threads_come_back_after_an_error():
    from threadpoolctl import threadpool_info

    before = threadpool_info()
    with pytest.raises(RuntimeError, match="diverged"), one_thread():
        raise RuntimeError("diverged")
    # what was loaded meanwhile is there too
    assert [library for library in threadpool_info() if library in before] == before
