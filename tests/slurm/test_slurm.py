"""The workflow on a real one-node SLURM, through the profiles that users take, undisturbed and with faults of a cluster."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from local_slurm import LocalSlurm, SlurmUnavailable
from project import HANGS, Project, copy_project

pytestmark = [pytest.mark.faults, pytest.mark.workflow]

HERE = Path(__file__).parent
#: How snakemake is started with a profile, and looks at its jobs every second.
PROFILES = {
    "slurm": [str(HERE / "snakemake_fast_polling.py"), "--slurm-init-seconds-before-status-checks", "1"],
    "slurm-generic": ["-m", "snakemake", "--seconds-between-status-checks", "1"],
}
AGENTS = """
  slow: {kind: custom, label: Slow, class: "slow:Slow"}
"""
STUDIES = """
  slow:
    title: Slow
    agents: [slow]
    tables: [final_regret]
    scales:
      smoke: {environments: [finite-d10-100], horizon: 200, seeds: 4, seeds_per_block: 1}
"""
BLOCKS = [f"results/smoke/runs/finite-d10-100/slow/M0/T200/seeds{seed}-{seed}.nc" for seed in range(4)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalSlurm]:
    try:
        with LocalSlurm(cpus=4, gpus=2) as cluster:
            yield cluster
    except SlurmUnavailable as reason:
        pytest.skip(f"no SLURM for tests: {reason}")


@pytest.fixture(params=PROFILES)
def profile(request: pytest.FixtureRequest) -> str:
    return request.param


def command(profile: str, *arguments: str) -> list[str]:
    """Snakemake through a profile. SIGINT if it hangs: the executor then cancels its jobs."""
    start = [sys.executable, *PROFILES[profile], "--profile", f"profiles/{profile}", "--latency-wait", "10", *arguments]
    return ["timeout", "--foreground", "-s", "INT", "-k", "60", str(HANGS), *start]


def on_slurm(project: Project, cluster: LocalSlurm, profile: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(profile, *arguments),
        cwd=project.folder,
        env=project.environment | cluster.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def test_smoke_scale_on_a_real_cluster(cluster, profile, tmp_path, mirror):
    """Every result of three studies is made by SLURM jobs; the bytes of a run do not depend on where it ran."""
    project = copy_project(tmp_path, ENSEMBLEPP_MIRROR=str(mirror))
    studies = ("linear", "uci", "moderation")
    before = jobs(cluster)
    done = on_slurm(project, cluster, profile, *(f"study_{study}" for study in studies), "--config", "scale=smoke")
    assert done.returncode == 0, done.stdout
    assert {path.stem for path in (project.folder / "results/smoke/datasets").iterdir()} == set(studies)
    assert len(jobs(cluster).keys() - before.keys()) >= 20, done.stdout
    run = "results/smoke/runs/mushroom/greedy/M0/T150/seeds0-1.nc"
    remote = (project.folder / run).read_bytes()
    (project.folder / run).unlink()
    again = project.snakemake(run)
    assert again.returncode == 0, again.stdout
    assert (project.folder / run).read_bytes() == remote


@pytest.mark.parametrize(("profile", "how"), [("slurm", "gpu:1"), ("slurm-generic", "gpu:1"), ("slurm-generic", "gres:gpu:1")])
def test_gpus_are_requested_by_neural_jobs_only(cluster, profile, how, tmp_path, mirror):
    """The neural job is granted a GPU (and finds that torch sees none here); the linear one asks for none and succeeds."""
    project = copy_project(tmp_path, ENSEMBLEPP_MIRROR=str(mirror))
    if how.startswith("gres"):
        settings = project.folder / f"profiles/{profile}/config.yaml"
        assert "--gpus={resources.gpu}" in settings.read_text()
        settings.write_text(settings.read_text().replace("--gpus={resources.gpu}", "--gres=gpu:{resources.gpu}"))
    neural = "results/smoke/runs/mushroom/greedy/M0/T150/seeds0-1.nc"
    linear = "results/smoke/runs/finite-d10-100/ts/M0/T50/seeds0-1.nc"
    before = jobs(cluster)
    done = on_slurm(project, cluster, profile, "--retries", "0", "--config", "scale=smoke", "device=cuda", "--", neural, linear)
    assert done.returncode != 0
    assert "torch sees no GPU" in done.stdout
    assert (project.folder / linear).exists()
    assert not (project.folder / neural).exists()
    submitted = [facts for job, facts in jobs(cluster).items() if job not in before]
    asked = [facts.get("TresPerJob") or facts.get("TresPerNode") or "" for facts in submitted]
    assert sorted(gpus for gpus in asked if not gpus.endswith(":0")) == [""] * asked.count("") + ["gres:gpu:1"], asked


class Run:
    """A run of the four slow blocks through a profile, in the background, in a project whose results are known."""

    def __init__(self, project: Project, cluster: LocalSlurm, profile: str) -> None:
        self.project, self.cluster, self.profile = project, cluster, profile
        self.trace = project.folder / "trace"
        self.log = project.folder / "run.log"
        self.pause = 0.1  # seconds of each of 200 rounds

    def start(self, *arguments: str) -> None:
        self.launch(command(self.profile, *arguments, "--config", "scale=smoke", "--", *BLOCKS))

    def launch(self, words: list[str]) -> None:
        environment = {"TRACE": str(self.trace), "PAUSE": str(self.pause), "BALLAST_MB": "500"}
        environment["PYTHONPATH"] = str(self.project.folder / "src")
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                words,
                cwd=self.project.folder,
                env=self.project.environment | self.cluster.environment | environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill(self) -> None:
        """The processes of this machine, at once; not the jobs."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def acts(self) -> dict[int, list[tuple[str, float]]]:
        """Of every block, the SLURM job and time of each round that was played."""
        lines = self.trace.read_text().splitlines() if self.trace.exists() else []
        played: dict[int, list[tuple[str, float]]] = {}
        for block, job, at in map(json.loads, lines):
            played.setdefault(block, []).append((job, at))
        return played

    def job(self, block: int) -> str:
        """The job that plays a block, once it has a state to save: told to end in its first round, it would begin anew."""
        self.until(lambda: len(self.acts().get(block, ())) > 2)
        return self.acts()[block][-1][0]

    def until(self, happened: Callable[[], bool]) -> None:
        end = time.monotonic() + HANGS
        while not happened():
            assert time.monotonic() < end, self.log.read_text()
            time.sleep(0.2)

    def ends_well(self, local: dict[str, bytes]) -> str:
        """The run ends with the local bytes, no block was ever played twice at the same time; what the run said."""
        status = self.process.wait(timeout=HANGS)
        said = self.log.read_text()
        assert status == 0, said
        assert self.project.run_files() == local
        for block, played in self.acts().items():
            assert len(played) >= 200
            changes = sum(before != after for (before, _), (after, _) in itertools.pairwise(played))
            assert changes == len({job for job, _ in played}) - 1, f"block {block}: jobs took turns: {played}"
        left = [path.name for path in (self.project.folder / BLOCKS[0]).parent.iterdir()]
        assert sorted(left) == sorted(f"seeds{seed}-{seed}.{kind}" for seed in range(4) for kind in ("json", "nc"))
        return said


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> tuple[Project, dict[str, bytes]]:
    """A project with four slow blocks, and what they are when they run on this machine, undisturbed and fast."""
    project = copy_project(tmp_path_factory.mktemp("local"))
    shutil.copy(HERE / "slow.py", project.folder)
    for name, text in (("agents", AGENTS), ("studies", STUDIES)):
        with (project.folder / f"config/{name}.yaml").open("a") as file:
            file.write(text)
    done = project.snakemake(*BLOCKS)
    assert done.returncode == 0, done.stdout
    return project, project.run_files()


@pytest.fixture
def run(local, cluster: LocalSlurm, profile: str, tmp_path: Path) -> Iterator[Run]:
    project = Project(tmp_path / "project", local[0].environment)
    shutil.copytree(local[0].folder, project.folder, ignore=shutil.ignore_patterns(".snakemake", "logs", "smoke"))
    run = Run(project, cluster, profile)
    yield run
    if run.process.poll() is None:
        run.kill()
    ask(cluster, "scancel", "--user=root")


def test_jobs_that_slurm_ends_are_sent_again(run, local):
    """One is cancelled, one reaches its time limit, one its memory; each says so, and goes on or begins anew."""
    run.pause = 0.2  # SLURM looks at time limits every 30 seconds
    run.start("--set-resources", "simulate:mem_mb=600*attempt")
    ask(run.cluster, "scontrol", "update", f"jobid={run.job(1)}", "EndTime=now+1seconds")
    cancelled = run.job(0)
    ask(run.cluster, "scancel", cancelled)
    said = run.ends_well(local[1])
    states = ("CANCELLED", "TIMEOUT", "FAILED")
    assert [state for state in states if state not in said] == []
    if run.profile == "slurm-generic":
        assert f"SLURM job {cancelled}: CANCELLED, cancelled by a person or an administrator" in said
        assert "killed by signal 9, as happens to a job that needs more than its memory (mem_mb)" in said
    # two were told to end, and their second jobs played only what was left
    assert said.count("told to end after") == 2
    assert all(len(run.acts()[block]) == 200 for block in (0, 1)), run.acts()


def test_a_controller_that_is_away_is_waited_for(run, cluster, local):
    """It is away when jobs are to be submitted, is killed while they run, and away for a minute when they end."""
    run.pause = 0.25  # 50 seconds: time to be saved, and to end in that minute
    stop_controller(cluster, signal.SIGTERM)
    run.start()
    time.sleep(10)
    cluster.start()
    for block in range(4):
        run.job(block)
    wait_for_save(cluster)  # what it has not saved it does not know afterwards
    stop_controller(cluster, signal.SIGKILL)
    cluster.start()
    stop_controller(cluster, signal.SIGTERM)
    time.sleep(60)
    cluster.start()
    run.ends_well(local[1])
    assert {len(played) for played in run.acts().values()} == {200}, "every block was played once"


def test_snakemake_is_killed_and_resumed_without_scancel(run, cluster, local):
    """Two blocks run and two wait. Those that run are left alone and not played again, the others are not doubled."""
    before = jobs(cluster).keys()
    run.start("--set-threads", "simulate=2")
    run.until(lambda: len(run.acts()) == 2 and len(jobs(cluster).keys() - before) == 4)
    submitted = jobs(cluster).keys() - before
    first = {run.job(block) for block in run.acts()}
    run.kill()
    run.launch([sys.executable, "-m", "ensemblepp", "resume"])
    said = run.ends_well(local[1])
    assert "removing the lock of process" in said
    assert f"waiting for SLURM job {', '.join(sorted(first, key=int))} of the process that is gone" in said
    assert {len(played) for played in run.acts().values()} == {200}, "every block was played once"
    after = jobs(cluster)
    assert {job: after[job]["JobState"] for job in submitted} == {
        job: "COMPLETED" if job in first else "CANCELLED" for job in submitted
    }
    assert len(after.keys() - before - submitted) == 2, "those that waited were sent anew"


def wait_for_save(cluster: LocalSlurm, seconds: float = 25) -> None:
    """Until the controller has saved its jobs once more; for so long where all was saved before, and nothing is any more."""
    saved, begun = cluster.folder / "slurmctld-state/job_state", time.time()
    while time.time() < begun + seconds:
        time.sleep(0.2)
        # replaced by a new one, and so absent at times
        with contextlib.suppress(FileNotFoundError):
            if saved.stat().st_mtime > begun:
                return


def stop_controller(cluster: LocalSlurm, how: signal.Signals) -> None:
    pid = cluster.pid("slurmctld")
    assert pid
    os.kill(pid, how)
    while cluster.pid("slurmctld"):
        time.sleep(0.1)


def ask(cluster: LocalSlurm, *words: str) -> str:
    return subprocess.run(words, env=os.environ | cluster.environment, capture_output=True, text=True, check=True).stdout


def jobs(cluster: LocalSlurm) -> dict[str, dict[str, str]]:
    """All jobs so far, by number: what `scontrol` tells of them."""
    listed = ask(cluster, "scontrol", "show", "job", "--oneliner")
    found = [dict(field.split("=", 1) for field in line.split() if "=" in field) for line in listed.splitlines()]
    return {job["JobId"]: job for job in found if "JobId" in job}
