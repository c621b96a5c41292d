"""Finished runs of studies that are not complete, packed to go on with them on another machine or another day.

A study of ten CPU hours need not be one machine's. An archive is <study>.tar.xz, with every finished run and its record under
the names that they have below the scale's results; equal runs give equal bytes.
"""

from __future__ import annotations

import io
import lzma
import tarfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ensemblepp.config.resolution import Config
from ensemblepp.errors import ResultError
from ensemblepp.runs.aggregate import read_block
from ensemblepp.runs.crate import instant
from ensemblepp.runs.fingerprint import fingerprint
from ensemblepp.specification import Block
from ensemblepp.storage.datasets import atomic_path, read_json
from ensemblepp.storage.leftovers import temporary_folder

FOLDER = "runs"
SUFFIX = ".tar.xz"


class Unpacked(NamedTuple):
    """What has come of a study's archive."""

    study: str
    restored: int  #: runs that were put back
    present: int  #: runs that were there already
    refused: list[str]  #: why others were not put back, a line for each


def archive(folder: str | Path, study: str) -> Path:
    """Where a study's runs are packed, below what is published."""
    return Path(folder, FOLDER, f"{study}{SUFFIX}")


def pack(config: Config, study: str, folder: str | Path) -> int:
    """Pack the finished runs of a study at the configured scale; how many there were.

    Args:
        folder: what is published; the archive goes to runs/ there.

    Raises:
        ResultError: no run is finished, or one is damaged or of another specification or other code; nothing is written then.
    """
    blocks = [block for block in config.blocks(study) if all(path.exists() for path in _files(block))]
    if not blocks:
        raise ResultError(f"{config.results}: no run of study '{study}' is finished")
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:xz", preset=9) as tar:
        for block in sorted(blocks, key=lambda block: block.path):
            read_block(block, fingerprint(*block.code))
            finished = read_json(_files(block)[1])["finished"]
            for path in _files(block):
                member = tarfile.TarInfo(path.relative_to(config.results).as_posix())
                member.size, member.mtime = path.stat().st_size, int(instant(finished).timestamp())
                tar.addfile(member, io.BytesIO(path.read_bytes()))
    with atomic_path(archive(folder, study)) as path:
        path.write_bytes(content.getvalue())
    return len(blocks)


def unpack(config: Config, folder: str | Path, studies: Iterable[str] = ()) -> Iterator[Unpacked]:
    """Put packed runs where the workflow looks for them. A run that is there already stays.

    Put back is only what the workflow would take: a run that is whole, of the present specification and code, whose input files
    exist, since files that are made later count as changes of it.

    Args:
        config: the configuration, at the scale that was packed.
        folder: what is published.
        studies: whose runs; none: those of every archive.

    Raises:
        ResultError: there is no such archive, or it is damaged.
    """
    packed = sorted(path.name.removesuffix(SUFFIX) for path in Path(folder, FOLDER).glob(f"*{SUFFIX}"))
    for study in studies or packed:
        path = archive(folder, study)
        if study not in packed:
            raise ResultError(f"{path}: no such file; packed are: {', '.join(packed) or 'none'}")
        if study not in config.active_studies():
            yield Unpacked(study, 0, 0, [f"{path}: scale {config.scale} has no such study any more"])
            continue
        held = _read(path)
        restored, present, refused = 0, 0, []
        for block in config.blocks(study):
            names = [file.relative_to(config.results).as_posix() for file in _files(block)]
            if any(name not in held for name in names):
                continue
            if all(file.exists() for file in _files(block)):
                present += 1
                continue
            reason = _put(config, block, [held[name] for name in names])
            restored += not reason
            refused += [reason] if reason else []
        yield Unpacked(study, restored, present, refused)


def count(path: Path) -> int:
    """Runs in an archive.

    Raises:
        ResultError: it is damaged.
    """
    return sum(name.endswith(".nc") for name in _read(path))


def begun(config: Config, folder: str | Path) -> dict[str, int]:
    """Runs that are packed, by study of the configured scale.

    Raises:
        ResultError: an archive is damaged.
    """
    paths = {study: archive(folder, study) for study in config.active_studies()}
    return {study: count(path) for study, path in paths.items() if path.exists()}


def _files(block: Block) -> tuple[Path, Path]:
    """A run file and its record."""
    return Path(block.path), Path(block.path).with_suffix(".json")


def _read(path: Path) -> dict[str, bytes]:
    """The files of an archive by their names."""
    try:
        # to its end, where the checksum is
        with tarfile.open(fileobj=io.BytesIO(lzma.decompress(path.read_bytes()))) as tar:
            files = {member.name: tar.extractfile(member) for member in tar if member.isfile()}
            return {name: file.read() for name, file in files.items() if file}
    except (OSError, EOFError, tarfile.TarError, lzma.LZMAError) as error:
        raise ResultError(f"{path}: damaged ({error}); take it from git again") from error


def _put(config: Config, block: Block, contents: list[bytes]) -> str | None:
    """Put a run in its place, or say why it is not put there."""
    for path in block.inputs:
        if not Path(path).exists():
            command = f"snakemake {path} --config scale={config.scale}"
            return f"{block.path}: needs {path}; make it first ({command}), then unpack again"
    Path(config.results).mkdir(parents=True, exist_ok=True)
    # on the same file system, so that what is looked through there is moved in one step
    with temporary_folder(config.results, "unpacked") as temporary:
        looked = Block(str(temporary), block.spec)
        for path, content in zip(_files(looked), contents, strict=True):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        try:
            read_block(looked, fingerprint(*block.code))
        except ResultError as error:
            reason = str(error).removeprefix(f"{looked.path}: ").removesuffix("; delete it and run again")
            return f"{block.path}: {reason}"
        for source, target in zip(_files(looked), _files(block), strict=True):
            target.parent.mkdir(parents=True, exist_ok=True)
            source.replace(target)
    return None
