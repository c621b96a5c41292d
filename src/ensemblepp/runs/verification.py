"""Every file under results/: whole, as its checksum says, of the present specification and code, and finite; or what is wrong.

Files are read by what the workflow reads them with. What figures, tables and the report were made from does not stand in them:
only that they are whole can be told, and Snakemake's records (`ensemblepp why`) know the rest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr

from ensemblepp.config.resolution import Config
from ensemblepp.errors import EnsembleError, ResultError
from ensemblepp.runs import archives, crate
from ensemblepp.runs.aggregate import read_block
from ensemblepp.runs.differences import differences
from ensemblepp.runs.fingerprint import fingerprint
from ensemblepp.runs.publish import outdated
from ensemblepp.specification import Block
from ensemblepp.storage.datasets import read_dataset, read_json

#: What a file can be, beside in order: damaged; not of the present configuration or code; not what its name says; asked for by
#: no study.
FAULTS = ("broken", "stale", "foreign", "orphaned")

#: Studies' variables that are numbers for every run and NaN where nothing was run.
_CURVES = ("regret", "reward", "optimal")


class Finding(NamedTuple):
    """One file that is not in order."""

    path: Path
    fault: str  #: one of FAULTS
    reason: str


#: What stands beside a run file until it is there.
_UNFINISHED = {".checkpoint": "a checkpoint", ".lease": "a lease"}


def files(path: str | Path) -> list[Path]:
    """The files that are verified: `path` itself, or all below it, but for those of a simulation that is not finished.

    Raises:
        ResultError: there is no such file or folder.
    """
    path = Path(path)
    if not path.exists():
        raise ResultError(f"{path}: no such file or folder; results lie under results/<scale>")
    found = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [file for file in found if file.is_file() and not (file.suffix in _UNFINISHED and not _run_of(file).exists())]


def verify(config: Config, paths: Iterable[Path], on_file: Callable[[], None] = lambda: None) -> Iterator[Finding]:
    """What is wrong with files below `config.results`; nothing is changed.

    Args:
        config: the configuration, at the scale whose results they are.
        paths: from the folder that holds the Snakefile, as in `config.results`.
        on_file: called after each.
    """
    check = _Check(config)
    for path in paths:
        finding = check(path)
        if finding:
            yield Finding(path, *finding)
        on_file()


def verify_published(config: Config, paths: Iterable[Path], on_file: Callable[[], None] = lambda: None) -> Iterator[Finding]:
    """What of published files is not whole, not as the research object beside them says, or made under values changed since.

    Args:
        config: the configuration, at the scale that was published.
        paths: below `publish.FOLDER`.
        on_file: called after each.
    """
    for path in paths:
        if path.name == crate.METADATA:
            yield from (Finding(other, "broken", reason) for other, reason in crate.faults(path))
        elif reason := _damage(path):
            yield Finding(path, "broken", reason)
        elif path.suffix == ".nc" and (changed := outdated(config, [path])):
            yield Finding(path, "stale", changed[path.stem])
        on_file()


def missing(config: Config) -> dict[str, list[str]]:
    """Files that studies ask for and that do not exist, by study."""
    absent = {study: [path for path in config.files(study) if not Path(path).exists()] for study in config.active_studies()}
    return {study: paths for study, paths in absent.items() if paths}


class _Check:
    """What one file should be, by the configuration."""

    def __init__(self, config: Config) -> None:
        self._config = config
        studies = config.active_studies()
        self._blocks = {block.path: block for study in studies for block in config.blocks(study)}
        self._datasets = {f"{config.results}/datasets/{study}.nc": study for study in studies}
        self._artefacts = {path for study in studies for path in config.artefacts(study)}
        self._artefacts |= {*config.ledger_files(), f"{config.results}/report.html", config.page}

    def __call__(self, path: Path) -> tuple[str, str] | None:
        """(fault, reason) of a file that is not in order."""
        name = path.as_posix()
        if path.name.startswith("."):
            return "orphaned", "a temporary file whose writer was killed"
        if path.suffix in _UNFINISHED:
            return "orphaned", f"{_UNFINISHED[path.suffix]} of a run that is finished"
        if name in self._datasets:
            return self._dataset(path, self._datasets[name])
        if name in self._artefacts:
            reason = _damage(path)
            return ("broken", reason) if reason else None
        if name.startswith(f"{self._config.results}/runs/") and path.suffix in (".nc", ".json"):
            return self._run(path) if path.suffix == ".nc" else self._record(path)
        return "orphaned", "no study of this scale asks for it"

    def _run(self, path: Path) -> tuple[str, str] | None:
        try:
            data = read_dataset(path, finite=("regret", "reward"))
        except ResultError as error:
            return "broken", _without(path, error)
        try:
            spec, code = json.loads(data.attrs["spec"]), data.attrs["code"]
            own = Block(self._config.results, spec)
            if own.path != path.as_posix():
                return "foreign", f"holds what belongs at {own.path}"
            block = self._blocks.get(own.path) or self._asked_for(spec)
        except (KeyError, ValueError, TypeError):
            return "foreign", "no run file: it holds no specification"
        if block is None:
            return "orphaned", "its environment or agent is not in the configuration any more"
        changed = list(differences(spec, block.spec))
        if changed:
            return "stale", f"made from another specification ({'; '.join(changed)})"
        if code != fingerprint(*block.code):
            return "stale", "made by other code than the present one" if code else "made without a record of the code"
        try:
            read_block(block, code)
        except EnsembleError as error:
            return "broken", _without(path, error)
        if not path.with_suffix(".json").exists():
            return "broken", f"{path.with_suffix('.json').name}, its record, is missing"
        return None if own.path in self._blocks else ("orphaned", "no study of this scale asks for it")

    def _asked_for(self, spec: Mapping) -> Block | None:
        """The block of a run that no study names, as the configuration resolves it now."""
        names = spec["environment"]["name"], spec["agent"]["name"]
        try:
            return self._config.block(*names, spec["ensemble_size"], spec["horizon"], *spec["seeds"])
        except EnsembleError:
            return None

    def _record(self, path: Path) -> tuple[str, str] | None:
        if not _run_of(path).exists():
            return "orphaned", "the record of a run file that is not there"
        reason = _damage(path)
        return ("broken", reason) if reason else None

    def _dataset(self, path: Path, study: str) -> tuple[str, str] | None:
        try:
            data = read_dataset(path, finite=())
        except ResultError as error:
            return "broken", _without(path, error)
        try:
            specs, codes = json.loads(data.attrs["specs"]), json.loads(data.attrs["codes"])
            held = {Block(self._config.results, spec).path: spec for spec in specs}
        except (KeyError, ValueError, TypeError):
            return "foreign", "no study's dataset: it holds no specifications"
        if data.attrs.get("study") != study:
            return "foreign", f"holds the study '{data.attrs.get('study')}'"
        blocks = {block.path: block for block in self._config.blocks(study)}
        if held.keys() != blocks.keys():
            without, beyond = sorted(blocks.keys() - held.keys()), sorted(held.keys() - blocks.keys())
            return "stale", "; ".join([*(f"without {one}" for one in without[:1]), *(f"holds {one}" for one in beyond[:1])])
        for one, block in blocks.items():
            changed = list(differences(held[one], block.spec))
            if changed:
                return "stale", f"made from another specification of {one} ({'; '.join(changed)})"
            if codes.get(one) != fingerprint(*block.code):
                return "stale", f"made from runs by other code than the present one ({one})"
        holes = [name for name in _CURVES if name not in data or _has_holes(data[name])]
        return ("broken", f"variable '{holes[0]}' is missing, or not finite where something was run") if holes else None


def _has_holes(curves: xr.DataArray) -> bool:
    """Whether a combination that was run has values that are not finite: all of one are numbers, or all are NaN."""
    values = curves.transpose(..., "seed", "time").values
    finite = np.isfinite(values).reshape(-1, values.shape[-1] * values.shape[-2])
    return bool((finite.any(axis=1) & ~finite.all(axis=1)).any() or np.isinf(values).any() or not finite.any())


def _damage(path: Path) -> str | None:
    """What is damaged of a file, as far as its format shows that."""
    try:
        if path.suffix == ".nc":
            read_dataset(path)
        elif path.suffix == ".json":
            read_json(path)
        elif path.suffix == ".xz":
            archives.count(path)
        elif path.suffix == ".png":
            from PIL import Image

            with Image.open(path) as image:
                image.verify()
        elif path.suffix == ".pdf":
            content = path.read_bytes()
            if not content.startswith(b"%PDF") or not content.rstrip().endswith(b"%%EOF"):
                return "no whole PDF file"
        elif not path.read_text("utf-8").strip():
            return "empty"
    except ResultError as error:
        return _without(path, error)
    except (OSError, ValueError, SyntaxError) as error:  # pillow calls a broken PNG file a SyntaxError
        return f"damaged ({' '.join(str(error).split())})"
    return None


def _run_of(path: Path) -> Path:
    """The run file that a record, a checkpoint or a lease stands beside."""
    return path.with_suffix(".nc")


def _without(path: Path, error: Exception) -> str:
    """An error's words without the file's name, which stands before them already."""
    return str(error).removeprefix(f"{path}: ")
