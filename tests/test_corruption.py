"""The short corruption campaign; the long one is run by hand, and its tally stands in docs/reliability.md."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.thorough
def test_no_damage_goes_unnoticed(mirror):
    """Twelve damages of every kind of file: each is refused by name, made anew or harmless, and the files whole are read."""
    command = [sys.executable, str(Path(__file__).with_name("corruption.py")), "--damages", "12", "--seed", "1"]
    variables = os.environ | {"ENSEMBLEPP_MIRROR": str(mirror)}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines()[2:]]
    assert len(rows) == 13
    for _, refused, made_anew, harmless, accepted, raw in rows:
        assert int(refused) + int(made_anew) + int(harmless) == 12
        assert (accepted, raw) == ("0", "0")
