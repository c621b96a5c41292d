"""A scheduler of Snakemake's looks for jobs as often as there is a reason to, and no job waits for ever."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

JOBS = 24

#: Jobs of no time, a few of which may start in a second.
SNAKEFILE = f"""
from ensemblepp.runs import pace

rule all:
    input: [f"{{number}}.done" for number in range({JOBS})]

rule one:
    output: "{{number}}.done"
    shell: "touch {{output}}"

onstart:
    if config["steady"]:
        pace.steady(workflow.scheduler)
"""

#: Runs it, and prints how often jobs were selected, and the seconds that it took.
COUNT = """
import json, sys, time
from snakemake.cli import main
from snakemake.scheduling.job_scheduler import JobScheduler

looks, started, selected = [], time.monotonic(), JobScheduler.job_selector
JobScheduler.job_selector = lambda scheduler, jobs: (looks.append(1), selected(scheduler, jobs))[1]
try:
    main(["--cores", "8", "--quiet", "all", "--scheduler", "greedy", "--max-jobs-per-timespan", "4/1s", *sys.argv[1:]])
except SystemExit as end:
    print(json.dumps([end.code, len(looks), time.monotonic() - started]))
"""


@pytest.mark.parametrize("steady", [True, False])
def test_looks_do_not_add_up(tmp_path, steady):
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    command = [sys.executable, "-c", COUNT, "--config", f"steady={steady}"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=1800)
    status, looks, seconds = json.loads(done.stdout.splitlines()[-1])
    assert status == 0
    assert len(list(tmp_path.glob("*.done"))) == JOBS
    # four start at once, four a second later, ...
    assert seconds > 5
    if steady:
        assert looks <= 1 + JOBS + seconds
    else:
        assert looks > 2 * JOBS, "Snakemake does it by itself now: `pace` can go"
