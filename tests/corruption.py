"""Corruption campaign: files of every kind that the pipeline writes, damaged at random, and read as the pipeline reads them.

    python tests/corruption.py --damages 1000 --seed 0

A damage is a flipped bit (two of three) or a cut at a random length. It is *refused* if one line names the file, *made anew*
where the pipeline replaces a damaged file by itself, and *harmless* if what is read is what was written. Anything else is a
fault: *accepted* with other content, or a *raw* error. A read that does not end within two minutes ends the campaign with a
traceback. Files that nothing reads back (figures, tables, `data/checked`, logs) are not damaged here.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import io
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

#: Seconds that no read of a small file takes.
PATIENCE = 120

OUTCOMES = ("refused", "made anew", "harmless", "accepted", "raw")


class Kind(NamedTuple):
    """A kind of file: those that exist of it, and what the pipeline reads in one; None if it makes it anew."""

    files: list[Path]
    read: Callable[[Path], Any]


def kinds(folder: Path) -> dict[str, Kind]:
    """Files of every kind, written to `folder` by the pipeline's own functions."""
    import xarray as xr
    from every_kind import agent_entry, environment_entry

    from ensemblepp import tables
    from ensemblepp.compilation.sealing import SealedCache
    from ensemblepp.config.loading import load
    from ensemblepp.data import load as load_data
    from ensemblepp.data.sources import retrieve
    from ensemblepp.engines.linear import kernel
    from ensemblepp.environments.classification import Classification
    from ensemblepp.environments.moderation import Moderation
    from ensemblepp.runs import block as blocks
    from ensemblepp.runs.aggregate import aggregate
    from ensemblepp.runs.fingerprint import fingerprint
    from ensemblepp.runs.plan import plan
    from ensemblepp.runs.report import _is_whole
    from ensemblepp.storage.checkpoints import Checkpoint
    from ensemblepp.storage.datasets import read_dataset, read_json, write_json
    from ensemblepp.storage.seals import add_seal
    from ensemblepp.storage.vectors import VectorStore
    from ensemblepp.text.language_models import CHECKSUMS, acquire, verify

    grid = {"environments": ["rows"], "horizon": 30, "seeds": 3, "ensemble_sizes": [2]}
    config = load(
        {
            "device": "cpu",
            "environments": {"rows": environment_entry("classification", folder)},
            "agents": {"agent": agent_entry("epsilon_greedy")},
            "studies": {"small": {"title": "Small", "agents": ["agent"], "scales": {"quick": grid}}},
        }
    )
    (block,) = config.blocks("small")
    run = Path(block.path)
    blocks.run(block.spec, run, code=fingerprint(*block.code))
    study, dataset = plan(config, "small"), Path("small.nc")
    aggregate(study, dataset)

    def aggregated(_: Path) -> xr.Dataset:
        aggregate(study, "again.nc")
        return read_dataset("again.nc")

    def tabulated(path: Path) -> bytes:
        tables.save("final_regret", path, [Path("table.csv")])
        return Path("table.csv").read_bytes()

    prepared = Path("data/prepared/shuttle.nc")
    inputs = block.spec["environment"]["options"] | {"inputs": {"data": str(prepared)}}
    environment_entry("moderation", folder)
    (embeddings,), (ceiling,) = (list(Path(f"data/{kind}").rglob("*.nc")) for kind in ("embeddings", "ceilings"))

    simulation, checkpoint = blocks.build(block.spec), Checkpoint("run.checkpoint", "key", every=0)
    fresh = list(simulation)
    checkpoint.resume(fresh)
    checkpoint.offer(fresh)

    def resumed(_: Path) -> Any:
        with contextlib.redirect_stderr(io.StringIO()) as said:
            found = checkpoint.resume(fresh)
        if found is not None:
            return found[0].table.tobytes(), {name: value.tolist() for name, value in found[1].parameters.items()}
        line = said.getvalue()
        assert line.startswith("run.checkpoint: "), line
        assert line.count("\n") == 1, line
        return None

    checked = Path("data/checked/mushroom.json")
    write_json({"agaricus-lepiota.data": "0" * 64}, checked)

    report = Path("report.html")
    report.write_text("<html><body>" + "A report. " * 1000 + "</body></html>\n<!-- the checksum of this page:")
    add_seal(report)

    published = Path("published")
    published.mkdir()
    source = np.random.default_rng(0)
    (published / "config.json").write_text('{"model_type": "bert"}')
    (published / "tokenizer.json").write_text('{"version": "1.0"}')
    (published / "model.safetensors").write_bytes(source.bytes(5000))
    acquire({"source": "folder", "location": str(published)}, Path("model"))

    def verified(_: Path) -> dict[str, bytes]:
        verify("model")
        return {path.name: path.read_bytes() for path in Path("model").iterdir() if path.name != CHECKSUMS}

    keys, vectors = [bytes([number]) * 32 for number in range(20)], np.arange(60, dtype=np.float32).reshape(20, 3)
    VectorStore("store").add(keys, vectors)
    (kept,) = Path("store").iterdir()

    def taken(path: Path) -> np.ndarray | None:
        with contextlib.redirect_stderr(io.StringIO()) as said:
            store = VectorStore("store")
        if all(key in store for key in keys):
            return store.take(keys)
        line = said.getvalue()
        assert line.startswith(f"{path}: "), line
        assert line.count("\n") == 1, line
        assert not path.exists()
        return None

    arguments = np.ones((2, 3)), np.empty(2), np.empty((2, 3), np.float32), np.zeros((2, 2), np.int32)
    kernel.noise_tables(*arguments)
    (signature,) = kernel.noise_tables.signatures
    (sealed,) = Path(os.environ["NUMBA_CACHE_DIR"]).rglob("*noise_tables*.sealed")
    compiled = kernel.noise_tables._cache
    assert isinstance(compiled, SealedCache)

    def loaded(_: Path) -> str | None:
        found = compiled.load_overload(signature, kernel.noise_tables.targetctx)
        return found and str(found.signature)

    found = {
        "run file": Kind([run], aggregated),
        "JSON beside a run file": Kind([run.with_suffix(".json")], read_json),
        "dataset of a study": Kind([dataset], tabulated),
        "prepared data": Kind([prepared], lambda _: Classification((0,), **inputs).features(np.arange(40)[None])),
        "embeddings": Kind(
            [embeddings],
            lambda path: Moderation((0,), inputs={"embeddings": path}, scaling="unit", passes=1).table,
        ),
        "vectors that are kept": Kind([kept], taken),
        "supervised ceiling": Kind(
            [ceiling],
            lambda path: Moderation((0,), inputs={"embeddings": embeddings, "ceiling": path}, scaling="unit", passes=1).table,
        ),
        "JSON of checked data": Kind([checked], read_json),
        "checkpoint": Kind([Path("run.checkpoint")], resumed),
        "language model": Kind(sorted(Path("model").iterdir()), verified),
        "report": Kind([report], lambda path: path.read_bytes() if _is_whole(path) else None),
        "compiled code": Kind([sealed], loaded),
    }
    mirror = os.environ.get("ENSEMBLEPP_MIRROR")
    if mirror:
        mushroom = load_data("mushroom")
        raw = Path("data/raw", mushroom.RAW[0].name)
        retrieve(mushroom.RAW[0], raw, mirror)

        def prepared_again(path: Path) -> xr.Dataset:
            mushroom.prepare([path], Path("mushroom.nc"))
            return read_dataset("mushroom.nc")

        found["raw data"] = Kind([raw], prepared_again)
    return found


def damages(content: bytes, source: np.random.Generator) -> Iterator[bytes]:
    """Copies of `content` with a bit flipped or the end cut off, without end."""
    while True:
        if source.random() < 2 / 3:
            place = int(source.integers(8 * len(content)))
            flipped = bytearray(content)
            flipped[place // 8] ^= 1 << (place % 8)
            yield bytes(flipped)
        else:
            yield content[: int(source.integers(len(content)))]


def outcome(kind: Kind, path: Path, expected: Any) -> tuple[str, str]:
    """How the damaged file at `path` is met, and what was said."""
    from ensemblepp.errors import EnsembleError

    try:
        found = kind.read(path)
    except EnsembleError as error:
        line = str(error)
        return ("refused" if path.name in line and "\n" not in line else "raw"), line
    except Exception as error:
        return "raw", f"{type(error).__name__}: {error}"
    if found is None:
        return "made anew", ""
    return ("harmless" if alike(found, expected) else "accepted"), ""


def alike(one: Any, other: Any) -> bool:
    if hasattr(one, "identical"):
        return one.identical(other)
    return np.array_equal(one, other) if isinstance(one, np.ndarray) else one == other


def campaign(count: int, seed: int, show: Callable[[str], None] = print) -> dict[str, Counter]:
    """Damage `count` files of every kind, in the present folder; the outcomes of each kind."""
    tally: dict[str, Counter] = {}
    for name, kind in kinds(Path.cwd()).items():
        source = np.random.default_rng([seed, *name.encode()])
        whole = {path: path.read_bytes() for path in kind.files}
        expected = {path: kind.read(path) for path in kind.files}
        endless = {path: damages(content, source) for path, content in whole.items()}
        # larger files more often, small ones too
        weights = np.array([len(content) for content in whole.values()], float) ** 0.5
        tally[name] = Counter()
        for _ in range(count):
            path = kind.files[source.choice(len(kind.files), p=weights / weights.sum())]
            path.write_bytes(next(endless[path]))
            faulthandler.dump_traceback_later(PATIENCE, exit=True)
            result, said = outcome(kind, path, expected[path])
            faulthandler.cancel_dump_traceback_later()
            path.write_bytes(whole[path])
            tally[name][result] += 1
            if result in ("accepted", "raw"):
                show(f"{name}: {result}: {path}: {said}")
    return tally


def table(tally: dict[str, Counter]) -> str:
    """The tally as Markdown."""
    rows = [["kind of file", *OUTCOMES], ["---"] * (1 + len(OUTCOMES))]
    rows += [[name, *(f"{counts[outcome]:,}" for outcome in OUTCOMES)] for name, counts in tally.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--damages", type=int, default=1000, help="of every kind of file")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="corruption-") as folder:
        # before numba is loaded: compiled code goes where it may be damaged
        os.environ["NUMBA_CACHE_DIR"] = folder
        os.chdir(folder)
        tally = campaign(options.damages, options.seed)
    print(table(tally))
    return int(any(counts["accepted"] + counts["raw"] for counts in tally.values()))


if __name__ == "__main__":
    sys.exit(main())
