"""Seeds played together are seeds alone, to the last bit, on this processor and on others that it can stand for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import llvmlite.binding
import pytest

TESTS = Path(__file__).parents[1]

#: Name -> (what a processor must be able to do, variables that hold the libraries to it). MKL reads its own on Intel's alone.
PROCESSORS: dict[str, tuple[tuple[str, ...], dict[str, str]]] = {
    "this one": ((), {}),
    "SSE 4.2": (
        ("sse4.2",),
        {"MKL_ENABLE_INSTRUCTIONS": "SSE4_2", "ATEN_CPU_CAPABILITY": "default", "OPENBLAS_CORETYPE": "Nehalem"},
    ),
    "AVX": (("avx",), {"MKL_CBWR": "COMPATIBLE", "ATEN_CPU_CAPABILITY": "default", "OPENBLAS_CORETYPE": "Sandybridge"}),
    "AVX2": (
        ("avx2", "fma"),
        {"MKL_ENABLE_INSTRUCTIONS": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "OPENBLAS_CORETYPE": "Haswell"},
    ),
    "AVX-512": (
        ("avx512f", "avx512bw", "avx512dq", "avx512vl"),
        {"MKL_ENABLE_INSTRUCTIONS": "AVX512", "ATEN_CPU_CAPABILITY": "avx512", "OPENBLAS_CORETYPE": "SkylakeX"},
    ),
}


@pytest.mark.thorough
@pytest.mark.parametrize("processor", PROCESSORS)
def test_seeds_together_are_seeds_alone_to_the_last_bit(processor):
    """All agents, engines, laws and losses; trunks of odd widths, of none and of one member (`tests/stacks.py`)."""
    needs, variables = PROCESSORS[processor]
    features = llvmlite.binding.get_host_cpu_features()
    if not all(features.get(need) for need in needs):
        pytest.skip(f"this processor has no {processor}")
    threads = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS", "NUMBA")}
    done = subprocess.run(
        [sys.executable, str(TESTS / "stacks.py"), "torch", "compiled", "linear"],
        env=os.environ | threads | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
