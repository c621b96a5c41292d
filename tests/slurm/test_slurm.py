"""The smoke scale on a real one-node SLURM, through the profile that users take."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from local_slurm import LocalSlurm, SlurmUnavailable
from project import HANGS, Project, copy_project

pytestmark = [pytest.mark.slurm, pytest.mark.workflow]
FAST_POLLING = str(Path(__file__).with_name("snakemake_fast_polling.py"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalSlurm]:
    try:
        with LocalSlurm(cpus=4, gpus=2) as cluster:
            yield cluster
    except SlurmUnavailable as reason:
        pytest.skip(f"no SLURM for tests: {reason}")


def on_slurm(project: Project, cluster: LocalSlurm, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the workflow through profiles/slurm, asking for the jobs' states every second."""
    waits = ["--slurm-init-seconds-before-status-checks", "1", "--latency-wait", "10"]
    command = [sys.executable, FAST_POLLING, "--profile", "profiles/slurm", *waits, *arguments]
    # SIGINT if it hangs: the executor then cancels its jobs
    return subprocess.run(
        ["timeout", "-s", "INT", "-k", "60", str(HANGS), *command],
        cwd=project.folder,
        env=project.environment | cluster.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def test_smoke_scale_on_a_real_cluster(cluster, tmp_path, mirror):
    """Every result of three studies is made by SLURM jobs; the bytes of a run do not depend on where it ran."""
    project = copy_project(tmp_path, ENSEMBLEPP_MIRROR=str(mirror))
    studies = ("linear", "uci", "moderation")
    done = on_slurm(project, cluster, *(f"study_{study}" for study in studies), "--config", "scale=smoke")
    assert done.returncode == 0, done.stdout
    assert {path.stem for path in (project.folder / "results/smoke/datasets").iterdir()} == set(studies)
    jobs = done.stdout.count("has been submitted with SLURM jobid")
    assert jobs >= 20, done.stdout
    run = "results/smoke/runs/mushroom/greedy/M0/T150/seeds0-1.nc"
    remote = (project.folder / run).read_bytes()
    (project.folder / run).unlink()
    again = project.snakemake(run)
    assert again.returncode == 0, again.stdout
    assert (project.folder / run).read_bytes() == remote


def test_gpus_are_requested_by_neural_jobs_only(cluster, tmp_path, mirror):
    """The neural job is granted a GPU (and finds that torch sees none here); the linear one asks for none and succeeds."""
    project = copy_project(tmp_path, ENSEMBLEPP_MIRROR=str(mirror))
    neural = "results/smoke/runs/mushroom/greedy/M0/T150/seeds0-1.nc"
    linear = "results/smoke/runs/finite-d10-100/ts/M0/T50/seeds0-1.nc"
    before = jobs_and_gpus(cluster)
    done = on_slurm(project, cluster, "--retries", "0", "--config", "scale=smoke", "device=cuda", "--", neural, linear)
    assert done.returncode != 0
    assert "torch sees no GPU" in done.stdout
    assert (project.folder / linear).exists()
    assert not (project.folder / neural).exists()
    asked = [gpus for job, gpus in jobs_and_gpus(cluster).items() if job not in before]
    assert sorted("gpu" in gpus for gpus in asked) == [False] * (len(asked) - 1) + [True], asked


def jobs_and_gpus(cluster: LocalSlurm) -> dict[str, str]:
    """What `--gpus` every job so far was submitted with ("" for none), by job number."""
    listed = subprocess.run(
        ["scontrol", "show", "job", "--oneliner"],
        env=os.environ | cluster.environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    jobs = [dict(field.split("=", 1) for field in line.split() if "=" in field) for line in listed.splitlines()]
    return {job["JobId"]: job.get("TresPerJob", "") for job in jobs if "JobId" in job}
