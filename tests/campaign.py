"""Fault campaign: the workflow is killed at random, in every way there is, and then run once more as if nothing had happened.

    python tests/campaign.py --kills 1000 --seed 0
    python tests/campaign.py --kills 200 --seed 0 --late

Three small studies are made of real downloads, embeddings, runs, datasets, figures and tables. While they are made, the process
of Snakemake, all processes of it, one job, one that is writing, a download, an embedding or a presentation is sent SIGKILL,
SIGTERM or SIGINT, and Snakemake is started again wherever it has ended. After every `--series` kills one plain run must make
the rest; what it leaves must be, to the byte, what a run that nobody disturbed leaves: no file more, none less, no process, no
lock.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import itertools
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from project import Project, copy_project

STUDIES = ("study_baselines", "study_uci", "study_moderation")
ARGUMENTS = ("--cores", "2", "--config", "scale=smoke", "--", *STUDIES)
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)

#: Mean seconds between two kills.
BETWEEN = 0.8

#: Of so many starts of Snakemake one may be killed before it has a job; to start takes longer than the mean above.
EARLY = 5

#: What is published at this address of UCI's; the other raw files come from the mirror.
DOWNLOADED = ("/ml/machine-learning-databases/mushroom/agaricus-lepiota.data", "uci/agaricus-lepiota.data")

#: What is there before anything has run.
TRACKED = ("results/paper-scale", "data/README.md")

#: What a series begins without: all that is made, or what comes late, which few series that are killed come to.
EVERYTHING = ("results/*", "data/*", "logs/*", ".snakemake/*")
PRESENTATIONS = ("results/smoke/figures", "results/smoke/tables")
LATE = ((*PRESENTATIONS, "results/smoke/datasets", "results/smoke/runs/moderation*", "data/embeddings"), PRESENTATIONS)

#: What differs from run to run, by design: the records beside run files, and what is said of the run.
_VARIES = re.compile(r"results/\w+/(runs/.*\.json|report\.html)$|data/models/")

#: What jobs that are killed leave to others, in files of any number.
_KEPT = re.compile(r"data/embeddings/[^/]+/store/[^/]+/[^./][^/]*\.vectors$")

#: The process that writes a temporary file, in its name (`storage.leftovers`).
_WRITER = re.compile(r"\..+\.[0-9a-f]{8}-(\d+)-\d+\.")


# ------------------------------------------------------------------------------------------------------- the workflow


@contextlib.contextmanager
def slow_server(mirror: Path) -> Iterator[str]:
    """A server that stands for UCI and takes a second for its file, so that a download can be met on its way."""
    path, name = DOWNLOADED
    content = (mirror / name).read_bytes()

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.head()

        def do_GET(self) -> None:
            if self.head():
                # whoever asked may be gone
                with contextlib.suppress(OSError):
                    for start in range(0, len(content), len(content) // 10):
                        self.wfile.write(content[start : start + len(content) // 10])
                        time.sleep(0.1)

        def head(self) -> bool:
            found = self.path == path
            self.send_response(200 if found else 404)
            self.send_header("Content-Length", str(len(content) if found else 0))
            self.end_headers()
            return found

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def copied(folder: Path, mirror: Path, address: str) -> Project:
    """A copy of the project that finds all but one raw file in a mirror."""
    others = folder.with_name(f"{folder.name}-mirror")
    shutil.copytree(mirror, others, ignore=shutil.ignore_patterns(Path(DOWNLOADED[1]).name))
    return copy_project(folder, ENSEMBLEPP_MIRROR=str(others), ENSEMBLEPP_UCI_URL=address, NO_PROXY="*")


def content(folder: Path) -> dict[str, str]:
    """The digest of every file that a run leaves; empty for those that differ from run to run."""
    files = [path for name in ("results", "data") for path in (folder / name).rglob("*") if path.is_file()]
    names = {path.relative_to(folder).as_posix(): path for path in files}
    return {
        name: "" if _VARIES.match(name) else hashlib.sha256(path.read_bytes()).hexdigest()
        for name, path in sorted(names.items())
        if not name.startswith(TRACKED) and not _KEPT.match(name)
    }


def remove_results(folder: Path, stages: Sequence[str] = EVERYTHING) -> None:
    """Take what some stages have made from the copy: all, but for compiled code, or less."""
    for path in [path for stage in stages for path in folder.glob(stage)]:
        if path.relative_to(folder).as_posix() not in TRACKED:
            shutil.rmtree(path) if path.is_dir() else path.unlink()


# ------------------------------------------------------------------------------------------------------------ killing


def processes(folder: Path) -> dict[int, list[str]]:
    """Processes that work in a folder, and their command lines; zombies are none."""
    found = {}
    for place in Path("/proc").glob("[0-9]*"):
        # a process may end while it is looked at
        with contextlib.suppress(OSError):
            if (place / "cwd").resolve() == folder and "\nState:\tZ" not in (place / "status").read_text():
                found[int(place.name)] = (place / "cmdline").read_bytes().decode().split("\0")
    return found


def targets(project: Project, controller: int) -> dict[str, list[int]]:
    """What can be killed now: the way it is called in the tally, and the processes."""
    folder = project.folder
    alive = processes(folder)

    def running(*commands: str) -> list[int]:
        return [pid for pid, words in alive.items() if "ensemblepp" in words and set(commands) & set(words)]

    hidden = [name for top in ("results", "data") for name in (folder / top).rglob(".*") if _WRITER.match(name.name)]
    writers = {int(_WRITER.match(path.name)[1]) for path in hidden}
    found = {
        "all processes": [-controller],
        "Snakemake": [controller],
        "a job": running("simulate", "aggregate", "prepare", "check-data"),
        # forked by the process that has loaded the libraries, whose command line they have
        "a job's process": [pid for pid in running("serve") if _parent(pid) in running("serve")],
        "a writer": [pid for pid in writers if pid in alive],
        "a download": running("retrieve", "language-model"),
        "an embedding": running("embed"),
        "a presentation": running("present"),
    }
    return {way: pids for way, pids in found.items() if pids}


def _parent(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def start(project: Project) -> subprocess.Popen:
    """Snakemake at work, in a session of its own."""
    command = [sys.executable, "-m", "snakemake", "--keep-going", *ARGUMENTS]
    log = (project.folder / "campaign.log").open("ab")
    return subprocess.Popen(
        command,
        cwd=project.folder,
        env=project.environment,
        stdout=log,
        stderr=log,
        start_new_session=True,
        # a shell makes background jobs ignore interrupts
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def begin(project: Project, source: random.Random) -> subprocess.Popen:
    """Snakemake at work, most often with a job."""
    process = start(project)
    if source.randrange(EARLY):
        while process.poll() is None and targets(project, process.pid).keys() <= {"all processes", "Snakemake"}:
            # to look for them takes a while, too
            time.sleep(0.2)
    return process


def kill_at_random(project: Project, count: int, source: random.Random, tally: Counter) -> None:
    """Start Snakemake as often as it takes to send so many signals, and leave it killed."""
    process, done = begin(project, source), 0
    while done < count:
        time.sleep(source.expovariate(1 / BETWEEN))
        if process.poll() is not None:
            process = begin(project, source)
            continue
        choices = targets(project, process.pid)
        way = source.choice(sorted(choices))
        sent, pid = source.choice(SIGNALS), source.choice(sorted(choices[way]))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(-pid, sent) if pid < 0 else os.kill(pid, sent)
            tally[way, sent.name] += 1
            done += 1
    with contextlib.suppress(ProcessLookupError):
        process.kill()
    process.wait()


# ----------------------------------------------------------------------------------------------------------- comparing


def faults(project: Project, expected: dict[str, str]) -> list[str]:
    """One plain run, and what is not as it is where nobody disturbed it."""
    done = project.snakemake(*ARGUMENTS)
    found = [] if done.returncode == 0 else [f"the plain run ended with {done.returncode}: {done.stdout[-3000:]}"]
    made = content(project.folder)
    found += [f"missing: {name}" for name in sorted(expected.keys() - made.keys())]
    found += [f"left over: {name}" for name in sorted(made.keys() - expected.keys())]
    found += [f"other bytes: {name}" for name in sorted(expected.keys() & made.keys()) if expected[name] != made[name]]
    found += [f"a lock: {path.name}" for path in (project.folder / ".snakemake/locks").glob("*")]
    end = time.monotonic() + 60
    while (left := processes(project.folder)) and time.monotonic() < end:
        time.sleep(0.2)
    found += [f"a process: {' '.join(words)}" for words in left.values()]
    return found


def campaign(
    kills: int, seed: int, mirror: Path, *, series: int, late: bool = False, show: Callable[[str], None] = print
) -> tuple[Counter, list[str]]:
    """Kill so often; how often in each way, and all faults.

    Args:
        kills: signals sent.
        seed: of what is killed, when and by which signal; what is going on at that time is the machine's.
        mirror: a folder of raw data.
        series: signals between two plain runs.
        late: a series begins with its runs made, by turns but for those of moderation, and meets what is left.
        show: is told of progress.
    """
    source, tally, found = random.Random(seed), Counter(), []
    beginnings = itertools.cycle(LATE if late else (EVERYTHING,))
    with tempfile.TemporaryDirectory() as top, slow_server(mirror) as address:
        project = copied(Path(top, "project").resolve(), mirror, address)
        undisturbed = project.snakemake(*ARGUMENTS)
        assert undisturbed.returncode == 0, undisturbed.stdout
        expected = content(project.folder)
        while (left := kills - tally.total()) > 0:
            remove_results(project.folder, next(beginnings))
            kill_at_random(project, min(series, left), source, tally)
            new = faults(project, expected)
            found += new
            show(f"{tally.total()} kills, {len(found)} faults")
            for fault in new:
                show(f"  {fault}")
    return tally, found


def table(tally: Counter) -> str:
    """How often each kind of process was sent each signal, in Markdown."""
    ways = sorted({way for way, _ in tally})
    names = [sent.name for sent in SIGNALS]
    lines = [f"| what was killed | {' | '.join(names)} |", f"| --- |{' --- |' * len(names)}"]
    lines += [f"| {way} | {' | '.join(str(tally[way, name]) for name in names)} |" for way in ways]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--series", type=int, default=40, help="kills between two plain runs")
    parser.add_argument("--late", action="store_true", help="begin with runs made: embeddings, presentations")
    parser.add_argument("--mirror", type=Path, default=os.environ.get("ENSEMBLEPP_MIRROR"), help="a folder of raw data")
    options = parser.parse_args()
    counts, all_faults = campaign(options.kills, options.seed, options.mirror, series=options.series, late=options.late)
    print(table(counts))
    print(f"{counts.total()} kills, {len(all_faults)} faults")
    sys.exit(bool(all_faults))
