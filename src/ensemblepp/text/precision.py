"""In which numbers a language model computes: "float32", or "bfloat16" where that is faster."""

from __future__ import annotations

import ctypes
import functools
import os
import re
from pathlib import Path

from ensemblepp import devices

#: What `auto` was resolved to by the process that planned the jobs; they may run on machines with other processors.
PLANNED_VARIABLE = "ENSEMBLEPP_PLANNED_PRECISION"

#: Instructions for products of bfloat16, as Linux names them. Without them such products are several times slower than float32.
_INSTRUCTIONS = {"avx512_bf16", "amx_bf16", "bf16"}

#: The first compute capability of NVIDIA's GPUs that has them, and the driver's numbers for its two parts.
_CAPABILITY = 8
_MAJOR = 75


def resolve(precision: str, device: str) -> str:
    """The precision for a configured one; "auto" takes bfloat16 where `device` has instructions for it.

    It is asked without importing torch.
    """
    if precision != "auto":
        return precision
    return os.environ.get(PLANNED_VARIABLE) or ("bfloat16" if has_bfloat16(devices.resolve(device)) else "float32")


@functools.cache
def has_bfloat16(device: str) -> bool:
    """Whether "cpu", or every "cuda" device, has instructions for bfloat16; not, where that cannot be told."""
    return _gpus_have() if device == "cuda" else _processor_has()


def _processor_has() -> bool:
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return False
    found = re.search(r"^(flags|Features)\s*:(.*)$", text, re.MULTILINE)
    return bool(found and _INSTRUCTIONS & set(found[2].split()))


def _gpus_have() -> bool:
    count = devices.cuda_devices()
    if not count:
        return False
    driver, major = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
    for number in range(count):
        device = ctypes.c_int()
        if driver.cuDeviceGet(ctypes.byref(device), number) or driver.cuDeviceGetAttribute(ctypes.byref(major), _MAJOR, device):
            return False
        if major.value < _CAPABILITY:
            return False
    return True
