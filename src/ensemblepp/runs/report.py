"""The report: Snakemake's self-contained HTML page over everything that was presented."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from ensemblepp.config.resolution import ARTEFACTS, Config
from ensemblepp.errors import ResultError
from ensemblepp.runs.availability import left_out
from ensemblepp.storage.leftovers import temporary_folder
from ensemblepp.storage.seals import add_seal, check_seal


def make(config: Config) -> Path:
    """Make `results/<scale>/report.html` unless it is whole and newer than everything in it; returns its absolute path.

    Raises:
        ResultError: something to be reported does not exist yet, or Snakemake cannot make the report.
    """
    report = Path(config.results, "report.html")
    missing = left_out(config)
    artefacts = [Path(path) for study in config.active_studies() if study not in missing for path in config.artefacts(study)]
    absent = [path for path in artefacts if not path.exists()]
    if absent:
        raise ResultError(f"{absent[0]}: not made yet ({len(absent)} of {len(artefacts)} results); run snakemake first")
    captions = list(Path("workflow/report").glob("*.rst"))
    captions += [Path(own.caption_file) for kind in ARTEFACTS for own in getattr(config, kind).values() if own.caption_file]
    newest = max(path.stat().st_mtime for path in [*artefacts, *captions])
    if not report.exists() or report.stat().st_mtime < newest or not _is_whole(report):
        _render(config, report)
    return report.absolute()


def render(settings: Path, page: Path) -> None:
    """Be the Snakemake that makes the page, and end as it does; a process of its own, which may have a warm start."""
    from snakemake.cli import main

    # the workflow that calls this at its end still holds the lock, and reads nothing that the report writes
    arguments = ["--report", str(page), "--configfile", str(settings), "--nolock", "--quiet", "all"]
    sys.argv = ["snakemake", *arguments]
    main(arguments)


def _is_whole(report: Path) -> bool:
    """Whether the page is as it was written; it ends with its checksum, behind what browsers show."""
    try:
        check_seal(report, "make it again")
    except ResultError:
        return False
    return True


def _render(config: Config, report: Path) -> None:
    report.parent.mkdir(parents=True, exist_ok=True)
    with temporary_folder(report.parent, "report") as folder:
        settings = Path(folder, "config.json")
        settings.write_text(json.dumps(config.model_dump(by_alias=True, exclude_unset=True)), encoding="utf-8")
        page = Path(folder, "report.html")
        command = [sys.executable, "-m", "ensemblepp", "render", "--settings", str(settings), "--output", str(page)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode or not page.exists():
            raise ResultError(f"{report}: snakemake could not make the report:\n{done.stdout}{done.stderr}")
        with page.open("a", encoding="utf-8") as file:
            # browsers take what follows for a comment, up to the end
            file.write("<!-- the checksum of this page:")
        add_seal(page)
        page.replace(report)
