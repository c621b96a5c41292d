"""The report: Snakemake's self-contained HTML page over everything that was presented."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from ensemblepp.config.resolution import ARTEFACTS, Config
from ensemblepp.errors import ResultError
from ensemblepp.runs.availability import left_out


def make(config: Config) -> Path:
    """Make `results/<scale>/report.html` unless it is newer than everything in it; returns its absolute path.

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
    # an empty one is what a full disk leaves
    if not report.is_file() or not report.stat().st_size or report.stat().st_mtime < newest:
        _render(config, report)
    return report.absolute()


def _render(config: Config, report: Path) -> None:
    report.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=report.parent, prefix=".report.") as folder:
        settings = Path(folder, "config.json")
        settings.write_text(json.dumps(config.model_dump(by_alias=True, exclude_unset=True)), encoding="utf-8")
        page = Path(folder, "report.html")
        command = [sys.executable, "-m", "snakemake", "--report", str(page), "--configfile", str(settings)]
        # the workflow that calls this at its end still holds the lock, and reads nothing that the report writes
        done = subprocess.run([*command, "--nolock", "--quiet", "all"], capture_output=True, text=True, check=False)
        if done.returncode or not page.exists():
            raise ResultError(f"{report}: snakemake could not make the report:\n{done.stdout}{done.stderr}")
        page.replace(report)
