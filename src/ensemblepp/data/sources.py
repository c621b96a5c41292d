"""Raw files: where each may be had, how it is brought here whole, and whether it can be had at all.

A raw file is taken from the mirror folder if that holds it, else from the first of its sources that gives the right
content. This module is imported while the workflow is parsed, so what is slow to import is imported inside functions.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import logging
import os
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from ensemblepp.errors import DataError, UnreachableError

MIRROR_VARIABLE = "ENSEMBLEPP_MIRROR"
HOSTS = {
    "uci": ("ENSEMBLEPP_UCI_URL", "https://archive.ics.uci.edu"),
    "hub": ("HF_ENDPOINT", "https://huggingface.co"),
    "github": ("ENSEMBLEPP_GITHUB_URL", "https://raw.githubusercontent.com"),
}

RETRIES = 2
"""How often a failed download is tried again (waiting 1 s, then 2 s) before the next source's turn."""
DOWNLOAD_TIMEOUT = (10, 60)
"""Seconds to connect, and between two packets of a download."""
PROBE_TIMEOUT = 3
"""Seconds to connect, and again to answer, when `reachable_all` asks whether a file is there."""
PROBE_DEADLINE = 8
"""Seconds after which `reachable_all` stops waiting: name look-up and redirects know no timeout of their own."""


@dataclass(frozen=True)
class Source:
    """One address of a raw file.

    Attributes:
        url: the address, starting with `{uci}`, `{hub}` or `{github}`, which stand for the base URLs of `HOSTS`.
        member: the name of the file inside, where the address is that of a zip archive.

    A file (or member) whose name ends in `.Z` is unpacked (LZW, as Unix `compress` wrote it).
    """

    url: str
    member: str | None = None

    @property
    def address(self) -> str:
        """The full URL. The base comes from the environment at the time of the call."""
        bases = {host: os.environ.get(variable) or default for host, (variable, default) in HOSTS.items()}
        return self.url.format(**{host: base.rstrip("/") for host, base in bases.items()})


@dataclass(frozen=True)
class RawFile:
    """One file of a data set, as its publisher gave it out.

    Attributes:
        name: where it is kept, relative to the folder of raw data.
        sources: its addresses, in the order in which they are tried.
        mirror_paths: where it is looked for in a mirror folder, in this order; one that has the file's own name and `.gz` is
            unpacked.
        sha256: of the file as kept (unpacked); None where the publisher states none, and then `check` decides alone.
        check: reads the file and raises `DataError` naming the first faulty line.
    """

    name: str
    sources: tuple[Source, ...]
    mirror_paths: tuple[str, ...]
    sha256: str | None = None
    check: Callable[[Path], object] | None = None


@dataclass(frozen=True)
class Reachability:
    """Whether a raw file can be had.

    Attributes:
        ok: the mirror holds it or a source answered for it.
        where: that mirror file or URL; empty if there is none.
        tried: "place: reason" for each place that does not have it, in the order of preference.
    """

    ok: bool
    where: str
    tried: tuple[str, ...]


def find_in_mirror(raw_file: RawFile, mirror: str | Path | None) -> Path | None:
    """The file of the folder `mirror` that stands for `raw_file`, or None."""
    if not mirror:
        return None
    return next((path for name in raw_file.mirror_paths if (path := Path(mirror, name)).is_file()), None)


def retrieve(raw_file: RawFile, destination: str | Path, mirror: str | Path | None = None) -> str:
    """Bring `raw_file` to `destination` and return where it came from (a path of the mirror, or a URL).

    The content is verified first and moved to `destination` in one step, so nothing half-written is ever there.

    Args:
        raw_file: what to bring.
        destination: the path to write.
        mirror: a folder that may hold the file; if it does, no source is asked.

    Raises:
        DataError: the mirror holds the file, with the wrong content.
        UnreachableError: the mirror does not hold the file and no source gave the right content.
    """
    if copy := find_in_mirror(raw_file, mirror):
        _copy(raw_file, copy, destination)
        return str(copy)
    tried = _absent_from_mirror(raw_file, mirror)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / PurePosixPath(raw_file.name).name
        for source in raw_file.sources:
            try:
                file.write_bytes(_unpack(source, _download(source.address)))
                _verify(raw_file, file)
            except (DataError, OSError) as error:  # what requests raises is an OSError
                tried.append(f"{source.address}: {_reason(error).replace(f'{folder}{os.sep}', '')}")
            else:
                _install(file, destination)
                return source.address
    raise UnreachableError(
        f"{raw_file.name}: no source gave this file; tried {'; '.join(tried)}. Set 'mirror' in config/config.yaml, or "
        f"{MIRROR_VARIABLE}, to a folder that holds it as {' or '.join(raw_file.mirror_paths)}"
    )


def reachable(raw_file: RawFile, mirror: str | Path | None = None) -> Reachability:
    """Whether `raw_file` can be had now; `reachable_all` asks for several at once."""
    return reachable_all((raw_file,), mirror)[raw_file.name]


def reachable_all(files: Iterable[RawFile], mirror: str | Path | None = None) -> dict[str, Reachability]:
    """Whether each of `files` can be had now, by name.

    A file in the mirror is taken to be right; for the others every source is asked at the same time, without retries.
    Takes at most about `PROBE_DEADLINE` seconds. A source that answers may still fail later: `retrieve` then says so.
    """
    files = tuple(files)
    copies = {file.name: find_in_mirror(file, mirror) for file in files}
    addresses = {source.address for file in files if not copies[file.name] for source in file.sources}
    failures = probe_all(addresses)
    return {file.name: _judge(file, copies[file.name], mirror, failures) for file in files}


def _judge(file: RawFile, copy: Path | None, mirror: str | Path | None, failures: dict[str, str | None]) -> Reachability:
    if copy:
        return Reachability(True, str(copy), ())
    tried = _absent_from_mirror(file, mirror)
    for source in file.sources:
        failure = failures[source.address]
        if failure is None:
            return Reachability(True, source.address, tuple(tried))
        tried.append(f"{source.address}: {failure}")
    return Reachability(False, "", tuple(tried))


def probe_all(addresses: set[str]) -> dict[str, str | None]:
    """For each address why it does not answer for its file, or None if it does."""
    if not addresses:
        return {}
    pool = ThreadPoolExecutor(max_workers=len(addresses))
    futures = {address: pool.submit(_probe, address) for address in sorted(addresses)}
    done, _ = wait(futures.values(), timeout=PROBE_DEADLINE)
    pool.shutdown(wait=False, cancel_futures=True)
    return {
        address: future.result() if future in done else f"no answer within {PROBE_DEADLINE} s"
        for address, future in futures.items()
    }


def _probe(address: str) -> str | None:
    import requests

    try:
        response = requests.head(address, allow_redirects=True, timeout=PROBE_TIMEOUT)
        if response.status_code in (403, 405, 501):  # some servers and caches refuse HEAD and nothing else
            with requests.get(address, stream=True, timeout=PROBE_TIMEOUT) as response:
                pass
        response.raise_for_status()
    except requests.RequestException as error:
        return _reason(error)
    return None


def _download(address: str) -> bytes:
    import pooch

    pooch.get_logger().setLevel(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        fetcher = pooch.create(
            folder, base_url="", registry={"download": None}, urls={"download": address}, retry_if_failed=RETRIES
        )
        return Path(fetcher.fetch("download", downloader=pooch.HTTPDownloader(timeout=DOWNLOAD_TIMEOUT))).read_bytes()


def _copy(raw_file: RawFile, copy: Path, destination: str | Path) -> None:
    """Verify and install the file that a mirror folder holds."""
    name = PurePosixPath(raw_file.name).name
    if copy.name != f"{name}.gz":
        _verify(raw_file, copy)
        _install(copy, destination)
        return
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, name)
        try:
            file.write_bytes(gzip.decompress(copy.read_bytes()))
            _verify(raw_file, file)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{copy}: cannot be unpacked ({error})") from error
        except DataError as error:
            raise DataError(str(error).replace(str(file), str(copy))) from error
        _install(file, destination)


def _unpack(source: Source, content: bytes) -> bytes:
    name = source.url
    try:
        if source.member:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                content = archive.read(source.member)
            name = source.member
        if name.endswith(".Z"):
            import unlzw3

            content = unlzw3.unlzw(content)
    except (zipfile.BadZipFile, zlib.error, EOFError, KeyError, ValueError, IndexError) as error:
        reason = error.args[0] if isinstance(error, KeyError) else error
        raise DataError(f"{PurePosixPath(name).name} cannot be unpacked ({reason})") from error
    return content


def _verify(raw_file: RawFile, path: Path) -> None:
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found == raw_file.sha256:
        return
    if raw_file.sha256 is None:
        if raw_file.check:
            raw_file.check(path)
        return
    detail = ""
    if raw_file.check:
        try:
            raw_file.check(path)
        except DataError as error:
            detail = f"; {error}"
    raise DataError(f"{path}: wrong content (sha256 expected {raw_file.sha256}, found {found}){detail}")


def _install(file: Path, destination: str | Path) -> None:
    from ensemblepp.storage.datasets import atomic_path

    with atomic_path(destination) as temporary:
        temporary.write_bytes(file.read_bytes())


def _absent_from_mirror(raw_file: RawFile, mirror: str | Path | None) -> list[str]:
    if not mirror:
        return []
    if not Path(mirror).is_dir():
        return [f"mirror {mirror}: no such folder"]
    return [f"mirror {mirror}: holds none of {', '.join(raw_file.mirror_paths)}"]


def _reason(error: Exception) -> str:
    """Why a request failed, without the address, which the caller names."""
    import requests

    if isinstance(error, requests.HTTPError):
        return f"HTTP {error.response.status_code} {error.response.reason}"
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    if isinstance(error, requests.ConnectionError):  # urllib3 nests the system's words at the end of its own
        return "no connection: " + str(error).rsplit(": ", 1)[-1].removesuffix('"))')
    return str(error)
