"""Where numbers are computed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from ensemblepp import devices
from ensemblepp.errors import ConfigError


@pytest.fixture(autouse=True)
def _nothing_planned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(devices.PLANNED_VARIABLE, raising=False)


@pytest.mark.parametrize(
    ("seen", "asked", "found"),
    [(1, "auto", "cuda"), (4, "auto", "cuda"), (0, "auto", "cpu"), (0, "cuda", "cuda"), (0, "cpu", "cpu"), (1, "cpu", "cpu")],
)
def test_auto_takes_a_gpu_where_there_is_one(monkeypatch, seen, asked, found):
    monkeypatch.setattr(devices, "cuda_devices", lambda: seen)
    assert devices.resolve(asked) == found


@pytest.mark.parametrize("planned", ["cpu", "cuda"])
@pytest.mark.parametrize("seen", [0, 1])
def test_auto_is_what_it_was_when_the_jobs_were_planned(monkeypatch, planned, seen):
    """A job may run on a machine that sees other devices; what is asked for by name stays."""
    monkeypatch.setenv(devices.PLANNED_VARIABLE, planned)
    monkeypatch.setattr(devices, "cuda_devices", lambda: seen)
    assert {asked: devices.resolve(asked) for asked in ("auto", "cpu", "cuda")} == {
        "auto": planned,
        "cpu": "cpu",
        "cuda": "cuda",
    }


@pytest.mark.parametrize("asked", ["cuda", "auto"])
def test_a_gpu_that_is_not_there_is_an_error_and_not_a_slow_run(monkeypatch, asked):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv(devices.PLANNED_VARIABLE, "cuda")
    message = r"^config/config.yaml: device \(.*\): found 'cuda': torch sees no GPU here; use cpu$"
    with pytest.raises(ConfigError, match=message):
        devices.require(asked)


def test_a_gpu_that_is_there(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert devices.require("cuda") == "cuda"


def test_linear_jobs_do_not_import_torch(monkeypatch):
    """On "cpu" torch need not even be there."""
    monkeypatch.setitem(sys.modules, "torch", None)
    assert devices.require("cpu") == "cpu"


def test_as_many_devices_as_torch_sees_without_importing_it():
    script = (
        "import sys\nfrom ensemblepp import devices\nfound = devices.cuda_devices()\nassert 'torch' not in sys.modules\n"
        "import torch\nprint(found, torch.cuda.device_count())\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    found, seen = done.stdout.split()
    assert found == seen


@pytest.mark.parametrize(
    ("version", "driver", "expected"),
    [
        ("cuda: Optional[str] = None\n", 2, 0),
        ("cuda: Optional[str] = '12.8'\n", 2, 2),
        ("cuda = '12.8'\n", 2, 2),
        ("cuda: Optional[str] = '12.8'\n", None, 0),
        ("__version__ = '2.13.0'\n", 2, 0),
        (None, 2, 0),
    ],
)
def test_devices_count_only_for_a_build_of_torch_that_can_use_them(tmp_path, monkeypatch, version, driver, expected):
    """By torch's own file about its build, and by the driver's answer; None: there is none."""
    (tmp_path / "__init__.py").touch()
    if version is not None:
        (tmp_path / "version.py").write_text(version)
    found = type("Spec", (), {"origin": str(tmp_path / "__init__.py")})()
    monkeypatch.setattr(devices.importlib.util, "find_spec", lambda name: found)

    class Driver:
        def cuInit(self, flags: int) -> int:
            return 0

        def cuDeviceGetCount(self, count: object) -> int:
            count._obj.value = driver
            return 0

    def load(name: str) -> Driver:
        if driver is None:
            raise OSError(f"{name}: cannot open shared object file")
        return Driver()

    monkeypatch.setattr(devices.ctypes, "CDLL", load)
    assert devices.cuda_devices.__wrapped__() == expected
