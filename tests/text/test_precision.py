"""bfloat16 where the device has instructions for it, asked once and without torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ensemblepp import devices
from ensemblepp.text import precision


@pytest.fixture(autouse=True)
def _unasked(monkeypatch):
    monkeypatch.delenv(precision.PLANNED_VARIABLE, raising=False)
    monkeypatch.delenv(devices.PLANNED_VARIABLE, raising=False)
    precision.has_bfloat16.cache_clear()
    yield
    precision.has_bfloat16.cache_clear()


def with_processor(monkeypatch, text: str) -> None:
    read = Path.read_text

    def given(self, *arguments, **options):
        return text if str(self) == "/proc/cpuinfo" else read(self, *arguments, **options)

    monkeypatch.setattr(Path, "read_text", given)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("flags\t\t: fpu sse2 avx2 avx512f amx_bf16 amx_tile", "bfloat16"),
        ("flags\t\t: fpu avx512f avx512_bf16", "bfloat16"),
        ("Features\t: fp asimd bf16 i8mm", "bfloat16"),
        ("flags\t\t: fpu sse2 avx2 fma", "float32"),
        ("flags\t\t: fpu avx512_bf16_not", "float32"),
        ("model name\t: of bf16", "float32"),
        ("", "float32"),
    ],
)
def test_what_the_processor_says(monkeypatch, line, expected):
    with_processor(monkeypatch, f"processor\t: 0\n{line}\nbugs\t: none\n")
    assert precision.resolve("auto", "cpu") == expected


def test_what_is_configured_is_taken(monkeypatch):
    with_processor(monkeypatch, "flags : amx_bf16\n")
    assert precision.resolve("float32", "cpu") == "float32"
    with_processor(monkeypatch, "flags : sse2\n")
    assert precision.resolve("bfloat16", "cpu") == "bfloat16"


def test_no_gpu_can_be_asked(monkeypatch):
    monkeypatch.setattr(devices, "cuda_devices", lambda: 0)
    assert precision.resolve("auto", "cuda") == "float32"


class Driver:
    """As much of NVIDIA's driver as is asked, with the capabilities of its devices."""

    def __init__(self, majors: list[int], fault: int = 0) -> None:
        self.majors, self.fault = majors, fault

    def cuDeviceGet(self, device, number):
        device._obj.value = number
        return 0

    def cuDeviceGetAttribute(self, value, attribute, device):
        assert attribute == 75, "of the major part"
        value._obj.value = self.majors[device.value]
        return self.fault


@pytest.mark.parametrize(
    ("majors", "fault", "expected"),
    [([9], 0, "bfloat16"), ([8, 9], 0, "bfloat16"), ([8, 7], 0, "float32"), ([6], 0, "float32"), ([9], 100, "float32")],
)
def test_what_the_gpus_say(monkeypatch, majors, fault, expected):
    monkeypatch.setattr(devices, "cuda_devices", lambda: len(majors))
    monkeypatch.setattr(precision.ctypes, "CDLL", lambda name: Driver(majors, fault))
    assert precision.resolve("auto", "cuda") == expected


def test_jobs_follow_the_plan(monkeypatch):
    """They may run on other processors."""
    with_processor(monkeypatch, "flags : sse2\n")
    monkeypatch.setenv(precision.PLANNED_VARIABLE, "bfloat16")
    assert precision.resolve("auto", "cpu") == "bfloat16"
    assert precision.resolve("float32", "cpu") == "float32"


def test_torch_is_not_imported():
    script = (
        "import sys; from ensemblepp.text import precision as p; p.resolve('auto', 'auto'); assert 'torch' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
