"""What a finished workflow does again, and what not."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.workflow


@contextlib.contextmanager
def edited(path: Path, change: str, replacement: str) -> Iterator[None]:
    """`path` with the first `change` replaced, and put back afterwards."""
    text = path.read_text()
    assert change in text
    path.write_text(text.replace(change, replacement, 1))
    try:
        yield
    finally:
        path.write_text(text)


def test_a_run_makes_everything_and_a_second_one_nothing(smoke):
    results = smoke.folder / "results/smoke"
    figures = {path.name for path in (results / "figures").iterdir()}
    assert {"linear-linear_regret.png", "uci-nonlinear_regret.pdf", "moderation-moderation_accuracy.png"} <= figures
    assert (results / "tables/uci-best_constant.tex").read_text().count("toprule") == 1
    studies = {"linear", "laws-sphere", "baselines", "varying", "theory", "uci", "moderation"}
    studies |= {"four-panels", "versus-lmcts", "more-baselines", "frontier", "step-time"}
    assert {path.stem for path in results.glob("datasets/*.nc")} == studies
    report = (results / "report.html").read_text()
    assert "Nothing was left out" in report
    assert "laws-sphere-laws_heatmap.png" in report
    assert smoke.planned() == {}
    done = smoke.snakemake()
    assert done.returncode == 0
    assert "Nothing to be done" in done.stdout


def test_the_report_stands_alone(smoke):
    report = (smoke.folder / "results/smoke/report.html").read_text()
    assert not re.search(r'(src|href)="https?://[^"]+\.(js|css)"', report)


def test_touching_every_file_plans_nothing(smoke):
    for path in smoke.folder.rglob("*"):
        if path.is_file() and ".snakemake" not in path.parts:
            path.touch()
    assert smoke.planned() == {}


def test_comments_and_docstrings_plan_nothing(smoke):
    sources = list((smoke.folder / "src").rglob("*.py"))
    texts = {path: path.read_text() for path in sources}
    try:
        for path, text in texts.items():
            # a longer module docstring, and a comment at the end
            path.write_text(text.replace('"""', '"""Edited. ', 1) + "\n# edited\n")
        assert smoke.planned() == {}
    finally:
        for path, text in texts.items():
            path.write_text(text)


def test_editing_greedy_plans_its_blocks_and_what_follows(smoke):
    source = smoke.folder / "src/ensemblepp/agents/greedy.py"
    with edited(source, "reward).mean(dim=1)", "reward).mean(dim=1) * 1.0"):
        jobs = smoke.planned()
    # one file, two agents
    assert {path.split("/")[4] for path in jobs.pop("simulate")} == {"greedy", "epsilon-greedy"}
    studies = {"four-panels", "frontier", "moderation", "more-baselines", "uci", "versus-lmcts"}
    assert {Path(path).stem for path in jobs.pop("aggregate")} == studies
    made = [path for paths in jobs.values() for path in paths]
    assert made
    assert all(Path(path).name.startswith(tuple(f"{study}-" for study in studies)) for path in made)
    assert smoke.planned() == {}


@pytest.mark.parametrize(
    ("source", "change", "replacement", "rules"),
    [
        ("figures/style.py", '"savefig.dpi": 160', '"savefig.dpi": 161', {"figure_linear_regret", "figure_laws_heatmap"}),
        ("tables/best_constant.py", '"margin per round": mean', '"margin per round": 1 * mean', {"table_best_constant"}),
        ("aggregate.py", "dtype=np.float32", "dtype=np.float64", {"aggregate", "figure_linear_regret"}),
        ("agents/linear_ts.py", "np.linalg.cholesky(", "1.0 * np.linalg.cholesky(", {"simulate", "aggregate"}),
        ("availability.py", "return {", "return 0 or {", set()),
        ("report.py", '"--nolock"', '"--nolock" ""', set()),
    ],
)
def test_an_edit_plans_what_depends_on_it(smoke, source, change, replacement, rules):
    path = smoke.folder / "src/ensemblepp" / source
    with edited(path, change, replacement):
        jobs = smoke.planned()
    assert rules <= set(jobs)
    if not rules:
        assert jobs == {}
    if not source.startswith("agents/"):
        assert "simulate" not in jobs


def test_a_title_is_no_reason_to_simulate(smoke):
    with edited(smoke.folder / "config/environments.yaml", '"Mushroom"', '"UCI Mushroom"'):
        jobs = smoke.planned()
    assert jobs.pop("aggregate") == ["results/smoke/datasets/uci.nc"]
    assert "simulate" not in jobs


def test_a_hyper_parameter_plans_the_blocks_that_use_it(smoke):
    with edited(smoke.folder / "config/agents.yaml", "prior_scale: 1.0", "prior_scale: 2.0"):
        jobs = smoke.planned()
    assert jobs["simulate"] == ["results/smoke/runs/mushroom/ensemble++/M8/T150/seeds0-1.nc"]


def test_one_more_seed_block_runs_alone(smoke):
    studies = smoke.folder / "config/studies.yaml"
    with edited(studies, "horizon: 150\n        seeds: 2", "horizon: 150\n        seeds: [0, 1, 10]"):
        jobs = smoke.planned()
    assert {Path(path).name for path in jobs["simulate"]} == {"seeds10-10.nc"}
    assert len(jobs["simulate"]) == 4


def test_a_deleted_run_file_comes_back_bit_by_bit(smoke):
    before = smoke.run_files()
    victim = "results/smoke/runs/shuttle/greedy/M0/T150/seeds0-1.nc"
    (smoke.folder / victim).unlink()
    jobs = smoke.planned()
    assert jobs.pop("simulate") == [victim]
    assert jobs.pop("aggregate") == ["results/smoke/datasets/uci.nc"]
    assert all(Path(path).name.startswith("uci-") for paths in jobs.values() for path in paths)
    dataset = (smoke.folder / "results/smoke/datasets/uci.nc").read_bytes()
    done = smoke.snakemake()
    assert done.returncode == 0, done.stdout
    assert smoke.run_files() == before
    assert (smoke.folder / "results/smoke/datasets/uci.nc").read_bytes() == dataset
    assert smoke.planned() == {}


def test_a_killed_workflow_resumes_with_the_same_bytes(smoke):
    before = smoke.run_files()
    victims = [path for path in before if "/finite-d10-100/" in path or "/mushroom/" in path]
    for path in victims:
        (smoke.folder / path).unlink()
    command = [sys.executable, "-m", "snakemake", "--config", "scale=smoke"]
    running = subprocess.Popen(
        command,
        cwd=smoke.folder,
        env=smoke.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    deadline = time.monotonic() + 60
    while not any((smoke.folder / path).exists() for path in victims) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    assert any(not (smoke.folder / path).exists() for path in victims)
    assert smoke.snakemake("--unlock").returncode == 0
    done = smoke.snakemake()
    assert done.returncode == 0, done.stdout
    assert smoke.run_files() == before


def test_a_faulty_raw_file_is_refused_and_the_prepared_data_stays(smoke):
    raw = smoke.folder / "data/raw/uci/agaricus-lepiota.data"
    prepared = smoke.folder / "data/prepared/mushroom.nc"
    good, before = raw.read_bytes(), prepared.read_bytes()
    lines = good.splitlines(keepends=True)
    lines[4], lines[5] = lines[5], lines[4]
    try:
        raw.write_bytes(b"".join(lines))
        done = smoke.snakemake()
        assert done.returncode != 0
        assert "agaricus-lepiota.data, lines 1-100" in done.stdout
        assert prepared.read_bytes() == before
        again = smoke.snakemake()
        assert again.returncode != 0, "a second run must not take the faulty file for done"
    finally:
        raw.write_bytes(good)
    done = smoke.snakemake()
    assert done.returncode == 0, done.stdout
    assert smoke.planned() == {}


def test_a_failing_job_shows_its_log_and_stops_no_other(smoke):
    """A NaN in training names agent, seed and step; the other blocks are made."""
    agents = smoke.folder / "config/agents.yaml"
    victim = smoke.folder / "results/smoke/runs/finite-d10-100/ts/M0/T200/seeds0-3.nc"
    before = victim.read_bytes()
    greedy = 'label: "Greedy"\n    protocol: paper\n'
    with edited(agents, greedy, greedy + "    per_environment: {mushroom: {learning_rate: 1.0e+38}}\n"):
        victim.unlink()
        done = smoke.snakemake()
        assert done.returncode != 0
        assert re.search(r"Greedy: the loss of seed 0(, 1)? is not finite at step \d+", done.stdout)
        assert victim.read_bytes() == before
    done = smoke.snakemake()
    assert done.returncode == 0, done.stdout
