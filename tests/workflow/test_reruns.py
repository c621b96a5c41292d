"""What a finished workflow does again, and what not."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from moves import move, sort_imports
from project import HANGS, ROOT, Project, copy_project

from ensemblepp.config.loading import read_files
from ensemblepp.config.resolution import Config
from ensemblepp.config.studies import Study
from ensemblepp.runs import ledger
from ensemblepp.storage.datasets import read_json
from ensemblepp.storage.leftovers import prefix

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


@contextlib.contextmanager
def added(path: Path, line: str) -> Iterator[None]:
    """`path` with a line more at its end."""
    text = path.read_text()
    path.write_text(f"{text.rstrip()}\n{line}\n")
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
    studies |= {"four-panels", "versus-lmcts", "more-baselines", "tuning", "frontier", "step-time"}
    assert {path.stem for path in results.glob("datasets/*.nc")} == studies
    report = (results / "report.html").read_text()
    assert "Nothing was left out" in report
    assert "laws-sphere-laws_heatmap.png" in report
    page = (results / "index.html").read_text()
    assert "Figure 2a" in page
    assert 'href="report.html"' in page
    assert smoke.planned() == {}
    done = smoke.snakemake()
    assert done.returncode == 0
    assert "Nothing to be done" in done.stdout


def test_the_screen_holds_a_line_per_job_and_the_reports_path_last(smoke):
    lines = (smoke.folder / "first-run.log").read_text().splitlines()
    jobs = [line for line in lines if re.match(r"\[\d\d:\d\d:\d\d\] .+ \(\d+ of \d+ done(, about .+ left)?\)$", line)]
    total = int(re.search(r"of (\d+) done", jobs[-1])[1])
    assert len(jobs) == total
    assert len(lines) < total + 60
    assert max(map(len, lines)) < 400, "no list of inputs"
    assert [line for line in lines if "report.html" in line] == lines[-2:-1]
    assert re.fullmatch(r"How it was made: /.+/results/smoke/report\.html", lines[-2])
    assert re.fullmatch(r"Report: /.+/results/smoke/index\.html", lines[-1])


@pytest.mark.parametrize("name", ["index", "report"])
def test_the_report_stands_alone(smoke, name):
    report = (smoke.folder / f"results/smoke/{name}.html").read_text()
    assert not re.search(r'(src|href)="https?://[^"]+\.(js|css)"', report)


def test_touching_every_file_plans_nothing(smoke):
    for path in smoke.folder.rglob("*"):
        if path.is_file() and ".snakemake" not in path.parts:
            path.touch()
    assert smoke.planned() == {}


# ------------------------------------------------------------------------------------------ what an edit plans, exactly


def asked(project: Project) -> dict[str, bytes]:
    """The bytes of the run files that the configuration asks for; other tests leave those of their agents."""
    return {path: content for path, content in project.run_files().items() if path in BLOCKS}


@dataclass(frozen=True)
class Jobs:
    """What is planned: run files by their paths, studies that are aggregated and presented, other outputs, and the ledger.

    The page follows from each of these; `page` is the page alone.
    """

    simulate: frozenset[str] = frozenset()
    aggregate: frozenset[str] = frozenset()
    present: frozenset[str] = frozenset()
    other: frozenset[str] = frozenset()
    ledger: bool = False
    page: bool = False

    def __or__(self, other: Jobs) -> Jobs:
        names = ("simulate", "aggregate", "present", "other", "ledger", "page")
        return Jobs(*(getattr(self, name) | getattr(other, name) for name in names))


NOTHING = Jobs()


def planned(project: Project, *arguments: str) -> Jobs:
    jobs = project.planned(*arguments)
    page = bool(jobs.pop("page", None))
    assert page or not jobs, "whatever is made anew, the page shows it"
    alone = page and not jobs
    return Jobs(
        frozenset(jobs.pop("simulate", ())),
        frozenset(Path(path).stem for path in jobs.pop("aggregate", ())),
        frozenset(name for name in STUDIES if jobs.pop(f"present_{name.replace('-', '_')}", None)),
        page=alone,
        # what is left when the ledger is taken out
        ledger=bool(jobs.pop("ledger", None)),
        other=frozenset(path for paths in jobs.values() for path in paths),
    )


CONFIG = read_files(ROOT, scale="smoke")
STUDIES = CONFIG.active_studies()
BLOCKS = {block.path: block for name in STUDIES for block in CONFIG.blocks(name)}
#: Studies that claims are decided by.
CLAIMED = ledger.datasets(CONFIG, {}).keys()


def follow(paths: Iterable[str], config: Config = CONFIG, studies: Iterable[str] = ()) -> Jobs:
    """Runs, the studies that hold one of them or are named, and what is presented of those."""
    paths = frozenset(paths)
    aggregated = {name for name in STUDIES if paths & {block.path for block in config.blocks(name)}} | set(studies)
    presented = {name for name in aggregated if STUDIES[name].figures or STUDIES[name].tables}
    return Jobs(paths, frozenset(aggregated), frozenset(presented), ledger=bool(aggregated & CLAIMED))


def blocks(accept: Callable[[dict], bool]) -> Jobs:
    """All blocks whose specification is accepted, and what follows."""
    return follow(path for path, block in BLOCKS.items() if accept(block.spec))


def engines(*names: str) -> Jobs:
    return blocks(lambda spec: spec["engine"] in names)


def agents(*kinds: str) -> Jobs:
    return blocks(lambda spec: spec["agent"]["kind"] in kinds)


def environments(*kinds: str) -> Jobs:
    return blocks(lambda spec: spec["environment"]["kind"] in kinds)


def made_from(*outputs: str) -> Jobs:
    """Prepared data or embeddings are made anew, with all before them that is named, and the runs that read them."""
    return Jobs(other=frozenset(outputs)) | follow(path for path, block in BLOCKS.items() if set(block.inputs) & set(outputs))


def shown(accept: Callable[[Study], bool]) -> Jobs:
    """The studies that are accepted are aggregated anew, from the same runs."""
    return follow((), studies=[name for name, study in STUDIES.items() if accept(study)])


def drawn(accept: Callable[[Study], bool]) -> Jobs:
    """The studies that are accepted are presented anew, from the same datasets."""
    return Jobs(present=frozenset(name for name, study in STUDIES.items() if accept(study)))


def changed(edited: Config) -> Jobs:
    """The blocks that are new or have another specification, and what follows; studies of other blocks are aggregated."""
    paths, studies = set(), set()
    for name in STUDIES:
        asked = {block.path: block for block in edited.blocks(name)}
        paths |= {path for path, block in asked.items() if path not in BLOCKS or BLOCKS[path] != block}
        studies |= {name} if {block.path for block in CONFIG.blocks(name)} != asked.keys() else set()
    return follow(paths, edited, studies)


LINEAR = ("linear_ts", "linear_ensemblepp", "ensemble_sampling", "rrls", "linear_greedy")
HEADS = ("greedy", "epsilon_greedy", "neural_ensemblepp", "ensembleplus", "bootstrap")
NEURAL = (*HEADS, "epinet", "lmcts", "neural_ucb", "neural_ts", "neural_linear", "dropout")
DATA = ("classification", "moderation")
LISTS = ("quadratic", "vector_quadratic", "neural")
EVERYTHING = follow(BLOCKS)

INPUTS = {path for block in BLOCKS.values() for path in block.inputs}
EMBEDDINGS = [path for path in INPUTS if path.startswith("data/embeddings/")]
CEILINGS = [path for path in INPUTS if path.startswith("data/ceilings/")]
DATASETS = {"hate_speech"} | {Path(path).stem for path in INPUTS if path.startswith("data/prepared/")}
PREPARED = [f"data/prepared/{name}.nc" for name in DATASETS]
CHECKED = [f"data/checked/{name}.json" for name in DATASETS]

#: Files of the package in which a statement is added -> what that plans.
CODE: dict[str, Jobs] = {
    # engines
    "engines/step_by_step": engines("step_by_step"),
    "engines/linear/compiled": engines("linear_compiled"),
    "engines/linear/kernel": engines("linear_compiled"),
    "engines/neural/compiled": engines("neural_compiled"),
    "engines/neural/kernel": engines("neural_compiled"),
    # which plays more rounds than there are here
    "engines/neural/epinet": engines("epinet_compiled"),
    "engines/neural/epinet_kernel": engines("epinet_compiled"),
    "engines/neural/single_head engines/neural/single_head_kernel": engines("single_head_compiled"),
    "engines/neural/network": engines("neural_compiled", "epinet_compiled", "single_head_compiled"),
    "engines/neural/rows": engines("neural_compiled", "epinet_compiled", "single_head_compiled"),
    "engines/neural/stacked": engines("neural_stacked"),
    "engines/neural/run": engines("neural_compiled", "epinet_compiled", "single_head_compiled", "neural_stacked"),
    # agents: what some share, those that others are derived from, and all others in two halves
    "agents/linear/chains": agents(*LINEAR),
    "agents/linear/posterior": agents(*LINEAR, "linear_ucb"),
    "agents/linear/ensemble_sampling": agents("ensemble_sampling", "rrls"),
    "agents/neural/base": agents(*NEURAL),
    # products by columns
    "agents/neural/columns": agents("lmcts") | engines("neural_compiled", "epinet_compiled", "single_head_compiled"),
    "agents/neural/lmcts_steps": agents("lmcts"),
    "agents/neural/linear_heads": agents(*HEADS),
    "agents/neural/member_heads": agents("ensembleplus", "bootstrap"),
    "agents/neural/greedy": agents("greedy", "epsilon_greedy"),
    "agents/neural/neural_ucb": agents("neural_ucb", "neural_ts"),
    "agents/neural/single_head": agents("neural_ucb", "neural_ts", "neural_linear", "dropout"),
    "agents/linear/thompson_sampling agents/linear/rrls agents/linear/ucb agents/neural/epsilon_greedy "
    "agents/neural/ensembleplus agents/neural/lmcts agents/neural/neural_ts": agents(
        "linear_ts", "rrls", "linear_ucb", "epsilon_greedy", "ensembleplus", "lmcts", "neural_ts"
    ),
    "agents/linear/ensemblepp agents/linear/greedy agents/neural/ensemblepp agents/neural/bootstrap agents/neural/epinet "
    "agents/neural/neural_linear agents/neural/dropout": agents(
        "linear_ensemblepp", "linear_greedy", "neural_ensemblepp", "bootstrap", "epinet", "neural_linear", "dropout"
    ),
    # environments
    "environments/linear_finite": environments("linear_finite"),
    "environments/linear_sphere": environments("linear_sphere"),
    "environments/candidates": environments(*LISTS),
    "environments/contextual": environments(*DATA),
    "environments/classification": environments("classification"),
    "environments/moderation": environments("moderation"),
    # the engines of neural agents know what they play
    "environments/pool": environments(*LISTS, *DATA),
    # data
    "data/mushroom": made_from("data/checked/mushroom.json", "data/prepared/mushroom.nc"),
    "environments/ceiling": made_from(*CEILINGS),
    "environments/scaling": made_from(*CEILINGS) | environments(*DATA),
    "text/embedding": made_from(*EMBEDDINGS, *CEILINGS),
    "text/forward": made_from(*EMBEDDINGS, *CEILINGS),
    "text/language_models": made_from("data/models/minilm/config.json", *EMBEDDINGS, *CEILINGS),
    # what runs and gathers
    "runs/block": EVERYTHING,
    "runs/aggregate": shown(lambda study: True),
    "specification": shown(lambda study: True),
    "storage/datasets": made_from(*CHECKED, *PREPARED, "data/models/minilm/config.json", *EMBEDDINGS, *CEILINGS) | EVERYTHING,
    # what is presented
    "figures/style": drawn(lambda study: study.figures),
    "figures/laws_heatmap": drawn(lambda study: "laws_heatmap" in study.figures),
    "tables/__init__": drawn(lambda study: study.tables),
    "tables/best_constant": drawn(lambda study: "best_constant" in study.tables),
    # what is claimed
    "claims/comparisons": Jobs(ledger=True),
    "analysis/estimates": Jobs(ledger=True),
    # what all of it is shown by
    "report/page": Jobs(page=True),
    "report/curves": Jobs(page=True),
}

#: A change of the configuration -> what that plans; None: the blocks that are new or have another specification.
VALUES: dict[str, tuple[str, str, str, Jobs | None]] = {
    "title of an environment": (
        "environments",
        '"Mushroom"',
        '"UCI Mushroom"',
        shown(lambda study: "mushroom" in study.scales["smoke"].environments),
    ),
    "label of an agent": ("agents", 'label: "EpiNet"', 'label: "Epistemic"', shown(lambda study: "epinet" in study.agents)),
    "title of a study": (
        "studies",
        'title: "Theory beside experiment"',
        'title: "Theory and experiment"',
        shown(lambda study: study.title == "Theory beside experiment"),
    ),
    "value of a protocol": ("agents", "&driver {prior_scale: 0.1", "&driver {prior_scale: 0.2", None),
    "value of an agent": ("agents", "kind: linear_ts\n", "kind: linear_ts\n    prior_variance: 2.0\n", None),
    "value of an environment": ("environments", "dataset: shuttle", "dataset: shuttle\n    noise: 0.2", None),
    "one more seed": ("studies", "horizon: 150\n        seeds: 2", "horizon: 150\n        seeds: 3", None),
    "one more block of seeds": ("studies", "horizon: 150\n        seeds: 2", "horizon: 150\n        seeds: [0, 1, 10]", None),
    "one more ensemble size": ("studies", "ensemble_sizes: [2, 64]", "ensemble_sizes: [2, 64, 3]", None),
    "smaller blocks of seeds": (
        "studies",
        "[moderation-minilm]\n        horizon: 200\n        seeds: 2",
        "[moderation-minilm]\n        horizon: 200\n        seeds: 2\n        seeds_per_block: 1",
        None,
    ),
    "one more agent": ("studies", "[ensemble++, lmcts, greedy]", "[ensemble++, lmcts, greedy, ensemble+-released]", None),
    "one more agent that another study has run": (
        "studies",
        "[ensemble++, lmcts, greedy]",
        "[ensemble++, lmcts, greedy, neural-ts]",
        None,
    ),
    "one agent less": ("studies", "[ensemble++, lmcts, greedy]", "[ensemble++, lmcts]", None),
    "bound of a claim": ("claims", "at_most: 1.1}", "at_most: 1.2}", Jobs(ledger=True)),
    "words of a claim": ("claims", "With M = 8, linear", "With an M of 8, linear", Jobs(ledger=True)),
    "seeds that decide": ("claims", "minimum_seeds: 5", "minimum_seeds: 2", Jobs(ledger=True)),
    "another order of agents": (
        "studies",
        "[ensemble++, lmcts, greedy]",
        "[lmcts, ensemble++, greedy]",
        shown(lambda study: study.agents == ["ensemble++", "lmcts", "greedy"]),
    ),
}

#: What is no reason to make anything again: file, what is replaced (None: at the end), and by what.
REPLACEMENTS: dict[str, tuple[str, str | None, str]] = {
    "engine that plays nothing here": ("src/ensemblepp/engines/linear/batched.py", None, "EDITED = 1"),
    "choice of engines": ("src/ensemblepp/engines/choice.py", None, "EDITED = 1"),
    "planning": ("src/ensemblepp/runs/plan.py", None, "EDITED = 1"),
    "fingerprints": ("src/ensemblepp/runs/fingerprint.py", None, "EDITED = 1"),
    "report": ("src/ensemblepp/runs/report.py", None, "EDITED = 1"),
    "availability": ("src/ensemblepp/runs/availability.py", None, "EDITED = 1"),
    "command line": ("src/ensemblepp/cli/__init__.py", None, "EDITED = 1"),
    "checks of the configuration": ("src/ensemblepp/config/checks.py", None, "EDITED = 1"),
    "resolution of the configuration": ("src/ensemblepp/config/resolution.py", None, "EDITED = 1"),
    "description of a field": ("src/ensemblepp/config/neural_agents.py", "Adam's step size", "the step size of Adam"),
    "registry": ("src/ensemblepp/registry.py", None, 'AGENTS["another"] = "ensemblepp.agents.another:Another"'),
    "version": ("src/ensemblepp/__init__.py", '__version__ = "', '__version__ = "9.'),
    "packages": ("environment.yml", None, "# edited"),
    "dependencies of the environment": ("environment.yml", "dependencies:", "dependencies:\n  - make"),
    "resources of a rule": ("workflow/rules/simulate.smk", "mem_mb=memory_of", "mem_mb=2001"),
    "message of a rule": ("workflow/rules/aggregate.smk", "aggregate study {", "bring together study {"),
    "profile": ("profiles/default/config.yaml", "keep-going: true", "keep-going: true\nset-resources: {simulate: {mem_mb: 1}}"),
    "agent that no study names": ("config/agents.yaml", None, "  idle: {kind: greedy, label: Idle}"),
    "environment that no study names": (
        "config/environments.yaml",
        "environments:\n",
        'environments:\n  idle: {kind: linear_sphere, title: "Idle", dimension: 3}\n',
    ),
    "protocol where no study plays": (
        "config/agents.yaml",
        "  released-code:\n",
        "  released-code:\n    classification: {batch_size: 3}\n",
    ),
    "another scale": ("config/studies.yaml", "horizon: 1000\n        seeds: 20", "horizon: 999\n        seeds: 21"),
    "comment in the configuration": ("config/studies.yaml", None, "# edited"),
    "settings": ("config/config.yaml", "on_unreachable: auto", "on_unreachable: fail"),
}


@pytest.mark.thorough
@pytest.mark.parametrize("files", CODE)
def test_an_edit_of_the_code_plans_what_it_touches_and_nothing_else(smoke, files):
    with contextlib.ExitStack() as edits:
        for name in files.split():
            edits.enter_context(added(smoke.folder / f"src/ensemblepp/{name}.py", "EDITED = 1"))
        assert planned(smoke) == CODE[files]


@pytest.mark.thorough
@pytest.mark.parametrize("file", ["workflow/report/linear_regret.rst", "src/ensemblepp/report/files/page.css"])
def test_an_edit_of_words_and_style_makes_the_page_alone(smoke, file):
    with added(smoke.folder / file, ".edited { color: red; }"):
        assert planned(smoke) == Jobs(page=True)


@pytest.mark.thorough
@pytest.mark.parametrize("what", VALUES)
def test_a_change_of_the_configuration_plans_what_it_touches_and_nothing_else(smoke, what):
    file, old, new, expected = VALUES[what]
    with edited(smoke.folder / f"config/{file}.yaml", old, new):
        found = planned(smoke)
        assert found == (changed(read_files(smoke.folder, scale="smoke")) if expected is None else expected)
    assert found != NOTHING


def test_what_is_no_reason_to_make_anything_again(smoke):
    """All of it at once; if it is one, each by itself, to name those that are."""

    def plans(names: Iterable[str], *arguments: str) -> bool:
        with contextlib.ExitStack() as edits:
            for name in names:
                file, old, new = REPLACEMENTS[name]
                path = smoke.folder / file
                edits.enter_context(added(path, new) if old is None else edited(path, old, new))
            return planned(smoke, *arguments) != NOTHING

    threads = ("--set-threads", "simulate=2", "--config", "scale=smoke")
    if plans(REPLACEMENTS, *threads):
        assert not plans((), *threads), "threads"
        assert [name for name in REPLACEMENTS if plans([name])] == []
        pytest.fail("only all together plan something")


def test_comments_and_docstrings_plan_nothing(smoke):
    sources = list((smoke.folder / "src").rglob("*.py"))
    with contextlib.ExitStack() as edits:
        for path in sources:
            # a longer module docstring, and a comment at the end
            if '"""' in path.read_text():
                edits.enter_context(edited(path, '"""', '"""Edited. '))
            edits.enter_context(added(path, "# edited"))
        assert planned(smoke) == NOTHING


def test_modules_that_move_plan_nothing(smoke, tmp_path):
    """Of every kind: renamed, and moved to another folder, with the registry and every import rewritten and sorted anew."""
    package = smoke.folder / "src/ensemblepp"
    shutil.copytree(package, tmp_path / "kept")
    try:
        for old, new in {
            "engines.linear.kernel": "engines.linear.zigzag",
            "engines.step_by_step": "engines.slow.rounds",
            "agents.neural.greedy": "agents.eager",
            "agents.neural.mlp": "agents.neural.a_network",
            "environments.pool": "environments.shared.pools",
            "environments.linear_finite": "environments.finite",
            "storage.datasets": "keeping.files",
            "trajectory": "zeta",
        }.items():
            move(package, old, new)
        sort_imports(package)
        assert planned(smoke) == NOTHING
    finally:
        shutil.rmtree(package)
        shutil.copytree(tmp_path / "kept", package)
    assert planned(smoke) == NOTHING


def test_a_fresh_clone_with_copied_results_plans_nothing(smoke, tmp_path):
    """Snakemake's own records stay behind; times are kept, as `cp -a` and `rsync -a` do."""
    clone = copy_project(tmp_path / "clone", ENSEMBLEPP_MIRROR=smoke.environment["ENSEMBLEPP_MIRROR"])
    for name in ("results/smoke", "data"):
        shutil.copytree(smoke.folder / name, clone.folder / name, dirs_exist_ok=True)
    # other tests have touched files since
    for name, time_ns in json.loads((smoke.folder / "first-run.times").read_text()).items():
        os.utime(clone.folder / name, ns=(time_ns, time_ns))
    assert not (clone.folder / ".snakemake").exists()
    assert planned(clone) == NOTHING


def test_a_deleted_run_file_and_one_without_its_json_come_back_bit_by_bit(smoke):
    """A hidden file of a process that is gone lies in the same folder."""
    before = asked(smoke)
    victim = "results/smoke/runs/shuttle/greedy/M0/T150/seeds0-1.nc"
    alone = "results/smoke/runs/mushroom/greedy/M0/T150/seeds0-1.nc"
    record = (smoke.folder / alone).with_suffix(".json")
    left = record.with_name(f"{prefix('seeds0-1')}abc.nc".replace(f"-{os.getpid()}-", f"-{2**22 + 1}-"))
    (smoke.folder / victim).unlink()
    record.unlink()
    left.touch()
    jobs = smoke.planned()
    assert jobs.pop("simulate") == sorted([victim, alone])
    assert jobs.pop("aggregate") == ["results/smoke/datasets/uci.nc"]
    assert jobs.pop("page") == ["results/smoke/index.html"]
    # nothing is claimed of the study that holds them
    assert all(Path(path).name.startswith("uci-") for paths in jobs.values() for path in paths)
    dataset = (smoke.folder / "results/smoke/datasets/uci.nc").read_bytes()
    done = smoke.snakemake()
    assert done.returncode == 0, done.stdout
    assert read_json(record)["seconds"] > 0
    assert not left.exists()
    assert asked(smoke) == before
    assert (smoke.folder / "results/smoke/datasets/uci.nc").read_bytes() == dataset
    assert smoke.planned() == {}


@pytest.mark.faults
def test_a_killed_workflow_resumes_with_the_same_bytes(smoke):
    before = asked(smoke)
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
    deadline = time.monotonic() + HANGS
    while not any((smoke.folder / path).exists() for path in victims) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    assert any(not (smoke.folder / path).exists() for path in victims)
    assert smoke.snakemake("--unlock").returncode == 0
    done = smoke.snakemake()
    assert done.returncode == 0, done.stdout
    assert asked(smoke) == before


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
        again = smoke.snakemake("data/prepared/mushroom.nc")
        assert again.returncode != 0, "a second run must not take the faulty file for done"
    finally:
        raw.write_bytes(good)
    done = smoke.snakemake()
    assert done.returncode == 0, done.stdout
    assert smoke.planned() == {}


def test_a_failing_job_shows_its_log_and_stops_no_other(smoke_copy):
    """A NaN in training names agent, seed and step; the other blocks are made."""
    agents = smoke_copy.folder / "config/agents.yaml"
    victim = smoke_copy.folder / "results/smoke/runs/finite-d10-100/ts/M0/T200/seeds0-3.nc"
    before = victim.read_bytes()
    greedy = 'label: "Greedy"\n    protocol: paper\n'
    text = agents.read_text()
    assert greedy in text
    agents.write_text(text.replace(greedy, greedy + "    per_environment: {mushroom: {learning_rate: 1.0e+38}}\n", 1))
    victim.unlink()
    done = smoke_copy.snakemake()
    assert done.returncode != 0
    assert re.search(r"Greedy: the loss of seed 0(, 1)? is not finite at step \d+", done.stdout)
    assert victim.read_bytes() == before
