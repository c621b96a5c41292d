"""The short fault campaign; the long one is run by hand, and its tally stands in docs/reliability.md."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.faults,
    pytest.mark.workflow,
    pytest.mark.skipif(not Path("/proc/self").exists(), reason="asks /proc which processes there are"),
]


def test_after_twenty_kills_a_plain_run_makes_what_an_undisturbed_one_does(mirror):
    script = str(Path(__file__).with_name("campaign.py"))
    command = [sys.executable, script, "--kills", "20", "--series", "20", "--seed", "1", "--mirror", str(mirror)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "20 kills, 0 faults"
