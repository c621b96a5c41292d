"""Where numbers are computed: "cpu" or "cuda"."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import re
from pathlib import Path

from ensemblepp.errors import ConfigError

#: What `auto` was resolved to by the process that planned the jobs; they may run on machines that see other devices.
PLANNED_VARIABLE = "ENSEMBLEPP_PLANNED_DEVICE"


def resolve(device: str) -> str:
    """The device for a configured one: "auto" takes a GPU where there is one that torch can use. torch is not imported."""
    if device != "auto":
        return device
    return os.environ.get(PLANNED_VARIABLE) or ("cuda" if cuda_devices() else "cpu")


def require(device: str) -> str:
    """`resolve`, for the process that computes.

    Raises:
        ConfigError: "cuda" is asked for, and torch sees no GPU.
    """
    device = resolve(device)
    if device == "cuda":
        import torch  # only here: linear agents on a CPU do without

        if not torch.cuda.is_available():
            where = "config/config.yaml: device (linear_device for linear agents)"
            raise ConfigError(f"{where}: found 'cuda': torch sees no GPU here; use cpu")
    return device


@functools.cache
def cuda_devices() -> int:
    """How many CUDA devices torch would see; 0 with a build of torch for CPUs only."""
    found = importlib.util.find_spec("torch")
    version = Path(found.origin).with_name("version.py") if found and found.origin else None
    if (
        version is None
        or not version.exists()
        or not re.search(r"^cuda\b.*=\s*['\"]", version.read_text("utf-8"), re.MULTILINE)
    ):
        return 0
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int()
    # 0 is CUDA_SUCCESS
    return count.value if driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0 else 0
