"""What is published of a full run: summaries against numpy, and the whole of it on the real smoke run."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import xarray as xr

from ensemblepp.analysis.needs import Had
from ensemblepp.claims.ledger import decide
from ensemblepp.config.loading import load, read_files
from ensemblepp.errors import ResultError
from ensemblepp.runs import archives, costs, crate, ledger
from ensemblepp.runs import publish as module
from ensemblepp.runs.publish import publish
from ensemblepp.storage.datasets import read_json, write_dataset, write_json

ROOT = Path(__file__).resolve().parents[2]

#: What stands beside a run file, as far as it is published.
RECORD = {"commit": "c", "versions": {}, "python": "3", "seconds": 2.0, "cpu_seconds": 1.5, "peak_memory_mb": 300.0}
RECORD["finished"] = "2026-11-28T12:00:00+0000"


def stand_in(place: str, dataset: Path, outputs: list[Path]) -> None:
    """In the place of drawing: what would be drawn of which dataset."""
    for output in outputs:
        output.write_text(f"{place} of {dataset.name}")


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_nothing_complete_is_an_error(tmp_path, monkeypatch, request):
    settings = read_files(request.config.rootpath, scale="smoke")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ResultError, match="no study is complete; run snakemake --config scale=smoke first"):
        publish(settings, tmp_path / "published")
    assert not (tmp_path / "published").exists()


def test_studies_that_were_published_before_stay(tmp_path, monkeypatch, request):
    """`linear` was published elsewhere, `uci` is complete here; what belongs to no study any more goes."""
    settings = read_files(request.config.rootpath, scale="smoke")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "published"
    files = ["figures/linear-linear_regret.png", "tables/linear-final_regret.md", "datasets/linear.nc", "figures/old-curve.png"]
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("earlier")
    machine = {"processor": "other", "cores": 4}
    studies = {name: {"seeds": 3, "horizon": 9, "blocks": 1} for name in ("linear", "uci")}
    facts = {"studies": studies, "machine": machine, "rules": {}, "invocations": []}
    facts |= {"finished": "2026-11-27T12:00:00+0000", "commits": ["c"], "versions": {}}
    for pattern in crate.SOURCES:
        for path in request.config.rootpath.glob(pattern):
            copy = tmp_path / path.relative_to(request.config.rootpath)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    before = {"scale": "smoke", "publications": [facts], "not_run": {"tuning": "cost then", "frontier": "cost of other blocks"}}
    digests = {name: {"words": "cost then", "blocks": costs.asked(settings, name)} for name in ("tuning", "moderation", "uci")}
    digests["frontier"] = {"words": "cost of other blocks", "blocks": "0" * 16}
    write_json(before | {"costs": digests}, folder / "provenance.json")
    block = settings.blocks("uci")[0]
    for path in settings.files("uci"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("now")
        if path.endswith(".nc") and "/runs/" in path:
            write_json(RECORD, (tmp_path / path).with_suffix(".json"))
    assert block.path in settings.files("uci")
    monkeypatch.setattr(module, "read_dataset", lambda path, **_: path)
    monkeypatch.setattr(module, "summary", lambda path: path)
    monkeypatch.setattr(module, "write_dataset", lambda data, path: path.write_text(data))
    monkeypatch.setattr(module, "outdated", lambda config, paths: {"linear": f"{len(list(paths))} datasets seen"})
    monkeypatch.setattr(module, "read_study", lambda path, *_: (path.read_text(), path)[1])
    monkeypatch.setattr(module, "had", lambda path: Had({}, {}, {}, True))
    monkeypatch.setattr(module.figures, "write", stand_in)
    monkeypatch.setattr(module.writing, "save", lambda plan, outputs: [write_json(plan["absent"], path) for path in outputs])
    now = {"words": "cost of moderation", "blocks": costs.asked(settings, "moderation")}
    write_json({"moderation": now}, tmp_path / "logs/smoke/costs.json")
    # Snakemake has measured a job, one that a warm process ran for it, and one of a study that is not published now
    for job, cpu, memory in (("aggregate/uci", 3.0, 200.0), ("present/uci", 0.03, 14.0), ("aggregate/linear", 9.0, 900.0)):
        benchmark = tmp_path / f"logs/smoke/benchmarks/{job}.tsv"
        benchmark.parent.mkdir(parents=True, exist_ok=True)
        benchmark.write_text(f"s\tmax_rss\tcpu_time\n4.0\t{memory}\t{cpu}\n")
    # of one study that is complete now and of one that is not, finished runs were packed
    for name in ("uci", "frontier"):
        archives.archive(folder, name).parent.mkdir(exist_ok=True)
        archives.archive(folder, name).write_text("packed")
    monkeypatch.setattr(archives, "count", lambda path: 7)
    assert publish(settings, folder) == ["uci"]
    assert [path.name for path in (folder / "runs").iterdir()] == ["frontier.tar.xz"]
    begun = f"* {settings.studies['frontier'].title} (`frontier`): 7 of {len(settings.blocks('frontier'))} runs."
    assert begun in (folder / "README.md").read_text()
    for name in files[:3]:
        assert (folder / name).read_text() == "earlier"
    assert not (folder / files[3]).exists()
    assert (folder / "tables/uci-best_constant.md").read_text() == "now"
    for suffix in ("pdf", "png"):
        drawn = folder / f"figures/uci-nonlinear_regret.{suffix}"
        assert drawn.read_text() == "ensemblepp.figures.nonlinear_regret:draw of uci.nc"
    for suffix in ("csv", "json", "md", "tex"):
        absent = json.loads((folder / f"claims/ledger.{suffix}").read_text())
        assert absent["linear"] == "study 'linear' is published under other values (2 datasets seen)"
        assert absent["moderation"] == "study 'moderation' is not published yet"
    provenance = json.loads((folder / "provenance.json").read_text())
    assert [list(publication["studies"]) for publication in provenance["publications"]] == [["linear"], ["uci"]]
    assert provenance["publications"][0]["renewed"] == ["uci"]
    assert f"({settings.studies['linear'].title}; 1 more that were made anew since):" in (folder / "README.md").read_text()
    # measured here, or for an earlier publication
    assert provenance["not_run"]["moderation"] == "cost of moderation"
    assert provenance["not_run"]["tuning"] == "cost then"
    assert provenance["costs"] == {"moderation": now, "tuning": digests["tuning"]}
    assert "uci" not in provenance["not_run"]
    assert provenance["outdated"] == {"linear": "2 datasets seen"}
    assert provenance["not_run"]["frontier"].startswith("not measured: `python -m ensemblepp cost --study frontier")
    runs = len(settings.blocks("uci"))
    cost = {"jobs": runs, "wall_seconds": 2.0 * runs, "cpu_seconds": 1.5 * runs, "peak_memory_mb": 300.0}
    assert provenance["publications"][1]["rules"] == {
        "aggregate": {"jobs": 1, "wall_seconds": 4.0, "cpu_seconds": 3.0, "peak_memory_mb": 200.0},
        "present": {"jobs": 1, "wall_seconds": 4.0, "cpu_seconds": None, "peak_memory_mb": None},
        "simulate": cost,
    }
    assert "| present | 1 | 4 | - | - |" in (folder / "README.md").read_text()
    # what is damaged or missing is named before anything is changed
    damaged = {
        Path(block.path).with_suffix(".json"): "damaged (not JSON: ",
        folder / "provenance.json": "damaged (not JSON: ",
        Path("logs/smoke/costs.json"): "damaged (not JSON: ",
        Path("logs/smoke/invocations.jsonl"): "a line of it is no JSON; delete that line",
        Path("logs/smoke/benchmarks/aggregate/uci.tsv"): "not a benchmark of Snakemake's; delete it",
    }
    published = contents(folder)
    for path, line in damaged.items():
        before = path.read_bytes() if path.exists() else None
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("s\thalf a ")
        with pytest.raises(ResultError, match="^" + re.escape(f"{path}: {line}")):
            publish(settings, folder)
        path.unlink() if before is None else path.write_bytes(before)
        assert contents(folder) == published or path.parent == folder
    record = Path(block.path).with_suffix(".json")
    record.unlink()
    with pytest.raises(ResultError, match="^" + re.escape(f"{record}: no such file; run snakemake to make it")):
        publish(settings, folder)
    assert contents(folder) == published

    assert list(crate.faults(folder / crate.METADATA)) == []

    page = (folder / "README.md").read_text()
    assert f"{settings.studies['linear'].title} | 3 | 9 |" in page
    assert "cost of moderation." in page
    assert "on other, 4 cores" in page
    assert f"* {settings.studies['linear'].title} (`linear`): 2 datasets seen." in page


CURVES = {
    "scale": "quick",
    "environments": {"near": {"kind": "linear_finite", "title": "Near", "dimension": 3, "actions": 5, "noise": 0.5}},
    "agents": {"ts": {"kind": "linear_ts", "label": "TS"}},
    "studies": {
        "curves": {
            "title": "Curves",
            "agents": ["ts"],
            "scales": {"quick": {"environments": ["near"], "horizon": 5, "seeds": 2}},
        }
    },
}
RUN = "results/quick/runs/near/ts/M0/T5/seeds0-1.nc"


@pytest.mark.parametrize(
    ("change", "value", "reason"),
    [
        ("noise", 0.5, None),
        ("noise", 0.25, f"{RUN}: environment.options.noise: was 0.5, is 0.25"),
        ("horizon", 6, f"holds {RUN}"),
        ("seeds", 3, f"holds {RUN}"),
        ("study", "other", "scale quick has no such study"),
    ],
)
def test_a_published_study_is_outdated_where_its_values_are_no_longer_the_configured_ones(tmp_path, change, value, reason):
    specs = [block.spec for block in load(CURVES).blocks("curves")]
    # an option that came later, and one that went, are no change of value
    del specs[0]["environment"]["options"]["features"]
    specs[0]["agent"]["options"]["gone"] = 1
    dataset = tmp_path / "curves.nc"
    write_dataset(xr.Dataset(attrs={"specs": json.dumps(specs)}), dataset)
    values = json.loads(json.dumps(CURVES))
    if change == "noise":
        values["environments"]["near"]["noise"] = value
    elif change == "study":
        values["studies"] = {value: values["studies"]["curves"]}
    else:
        values["studies"]["curves"]["scales"]["quick"][change] = value
    assert module.outdated(load(values), [dataset]) == ({"curves": reason} if reason else {})


STALE = "stale: run `python -m ensemblepp config --write` in the project's folder and commit what it writes"


@pytest.mark.thorough
def test_the_published_ledger_is_what_the_published_datasets_say(monkeypatch):
    """Anyone can decide the claims again without a run; numbers repeat to four digits on other processors."""
    monkeypatch.chdir(ROOT)
    settings, folder = read_files(scale="paper"), Path(module.FOLDER)
    plan = ledger.published(settings, folder, module.outdated(settings, sorted(folder.glob("datasets/*.nc"))))
    found, expected = (json.loads(json.dumps(decide(plan))), read_json(folder / "claims/ledger.json"))
    numbers = ("effect", "low", "high", "p_holds", "p_fails", "p_holds_adjusted", "p_fails_adjusted")
    for row, published in zip(found["rows"], expected["rows"], strict=True):
        for key in (*row.keys() - {*numbers, "parts"}, "verdict"):
            assert row[key] == published[key], STALE
        for key in numbers:
            assert row[key] == (published[key] and pytest.approx(published[key], rel=1e-4, abs=1e-12)), STALE
    assert found["counts"] == expected["counts"]


def test_what_the_project_publishes_says_which_of_it_is_outdated():
    """Nobody takes published results for those of the present values."""
    settings, folder = read_files(ROOT, scale="paper"), ROOT / module.FOLDER
    found = module.outdated(settings, sorted(folder.glob("datasets/*.nc")))
    page = (folder / "README.md").read_text()
    provenance = json.loads((folder / "provenance.json").read_text())
    assert page == module.readme(settings, provenance, found, archives.begun(settings, folder)), STALE
