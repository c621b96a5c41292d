"""A copy of the project to run the real workflow in, for the tests under workflow/ and slurm/."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: What a user is told to write, page after page.
HOW_TO = "\n".join(path.read_text() for path in sorted((ROOT / "docs/how-to").glob("*.md")))

#: Seconds after which a run of snakemake hangs: ten times what one of the smoke scale takes on a slow machine.
HANGS = 3600

NOWHERE = "http://127.0.0.1:9"  # the discard port: refuses at once

#: Gives processes that have loaded what snakemake loads, but nothing of a project's: about a hundred plans are asked for.
LOADED = multiprocessing.get_context("forkserver")
LOADED.set_forkserver_preload(
    ["pytest", "pydantic", "snakemake.cli", "snakemake.report", "snakemake_logger_plugin_rich", "smart_open", "xarray"]
)


@dataclass(frozen=True)
class Project:
    """A copy of the project, and how to run snakemake in it."""

    folder: Path
    environment: dict[str, str]

    def snakemake(self, *arguments: str, timeout: int = HANGS, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run snakemake at scale smoke; standard output and error together in `stdout`."""
        command = [sys.executable, "-m", "snakemake", *arguments]
        if "--config" not in arguments:
            command += ["--config", "scale=smoke"]
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=timeout,
            check=False,
        )

    def planned(self, *arguments: str) -> dict[str, list[str]]:
        """What a run would make, by rule: outputs, but for the record that stands beside a run file."""
        if "--config" not in arguments:
            arguments += ("--config", "scale=smoke")
        shown = self.folder / ".snakemake/summary"
        shown.parent.mkdir(exist_ok=True)
        process = LOADED.Process(target=snakemake_here, args=(self, ("--summary", *arguments), shown))
        process.start()
        process.join(HANGS)
        assert process.exitcode == 0, shown.read_text()
        jobs: dict[str, list[str]] = {}
        for line in shown.read_text().splitlines():
            columns = line.split("\t")
            # other lines, such as the words at the start, have one column
            pending = columns[-1] == "update pending"
            if pending and not (columns[2] == "simulate" and columns[0].endswith(".json")):
                jobs.setdefault(columns[2], []).append(columns[0])
        return jobs

    def run_files(self) -> dict[str, bytes]:
        """The bytes of every run file; a killed writer's temporary file, whose name begins with a dot, is none."""
        files = self.folder.glob("results/smoke/runs/**/[!.]*.nc")
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in files}


def snakemake_here(project: Project, arguments: tuple[str, ...], output: Path) -> None:
    """What `python -m snakemake` does in a project, in this process; all that it says goes to a file."""
    os.environ.clear()
    os.environ.update(project.environment)
    os.chdir(project.folder)
    sys.path.insert(0, str(project.folder))
    with output.open("w") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    from snakemake.cli import main

    main(list(arguments))


def copy_project(folder: Path, *, compiled: bool = True, **environment: str) -> Project:
    """The files that a fresh clone would have, with edits that are not committed yet.

    Args:
        folder: where to.
        compiled: with what the sources have been compiled to here, which a fresh clone would compile anew.
        environment: variables that snakemake runs with.
    """
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    if compiled:
        share_compiled(ROOT, folder)
    # the threads of tests' own processes are theirs (conftest.py)
    own = {"ENSEMBLEPP_MIRROR", "PYTHONPATH", *(f"{library}_NUM_THREADS" for library in ("OMP", "MKL", "OPENBLAS", "NUMBA"))}
    clean = {key: value for key, value in os.environ.items() if key not in own}
    # what the mirror does not hold must not be looked for on the internet
    clean |= {"ENSEMBLEPP_UCI_URL": NOWHERE, "HF_ENDPOINT": NOWHERE}
    return Project(folder, clean | environment)


def share_compiled(source: Path, target: Path) -> None:
    """Give a copy of the project what another has compiled; cache files carry the digest of the sources they are made of."""
    for path in source.glob("src/**/__pycache__/*.sealed"):
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        # whoever compiles removes what older sources left
        with contextlib.suppress(FileNotFoundError):
            shutil.copyfile(path, copy)
