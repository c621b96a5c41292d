"""A small page of two studies whose every word tries to be HTML that runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from synthetic_studies import evidence, rule, study

from ensemblepp.claims import writing
from ensemblepp.report.page import save
from ensemblepp.storage.datasets import write_dataset

#: What would change the page's title, or call for a file, if any of it were taken for HTML.
HOSTILE = (
    """"'><img src=x onerror="document.title='run'"><script>document.title='run'</script>"""
    "</script></style>{{ 7*7 }}&amp;"
)

#: A caption that asks for files, addresses and raw HTML, with one field that is Snakemake's.
CAPTION = """Of {{ snakemake.params.seeds }} seeds, *stressed*, by `a link <https://example.com/>`_
and `another <javascript:alert(1)>`_.

.. image:: https://example.com/picture.png

.. include:: /etc/hostname

.. raw:: html

   <script>document.title='run'</script>

.. class:: explore

A paragraph with <b>markup</b>.
"""


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], tuple[dict, Path]]:
    """Make a folder with results; returns the plan of their page and the path where it belongs."""

    def make() -> tuple[dict, Path]:
        folder = tmp_path_factory.mktemp("results")
        grown = np.random.default_rng(0).gamma(50, 1, (3, 25))
        curves = {
            (place, agent, size): (at + 1) * grown[at]
            for place in ("bowl", "hill")
            for at, (agent, size) in enumerate([("ours", 8), ("ours", 32), ("theirs", 0)])
        }
        dataset = study(curves, seeds="0-24", scale="smoke")
        dataset = dataset.assign_coords(title=("environment", [HOSTILE, "Hill"]), label=("agent", ["Ensemble++", HOSTILE]))
        for name in ("small", "second"):
            write_dataset(dataset, folder / f"datasets/{name}.nc")
        caption = folder / "one.rst"
        caption.write_text(CAPTION)
        stems = {"figures": ["small-one", "second-one", "second-more"], "tables": ["small-two"]}
        for kind, suffixes in {"figures": ("png", "pdf"), "tables": ("csv", "md", "tex")}.items():
            for stem in stems[kind]:
                for suffix in suffixes:
                    path = folder / kind / f"{stem}.{suffix}"
                    path.parent.mkdir(exist_ok=True)
                    if suffix == "png":
                        Image.new("RGB", (60, 40), "red").save(path)
                    else:
                        path.write_text(
                            f"name,value,rounds\nb,1234.5678,10\n{HOSTILE!r},,9\na,0.000123,1000\n".replace('"', "")
                        )
        stated = rule("ratio", at_most=1.0)
        words = {"sentence": f"Ours has less regret. {HOSTILE}", "place": "Section 5", "contradicted_by": HOSTILE}
        arms = {"of": ["ours"], "against": ["theirs"], "environments": ["bowl"]}
        ledger = {
            "scale": "smoke",
            "level": 0.05,
            "minimum_seeds": 5,
            "datasets": {"small": str(folder / "datasets/small.nc")},
            "absent": {"later": f"it is not run {HOSTILE}"},
            "exhibits": {"fig:two": {"name": "Figure 2", "files": [f"{folder}/figures/small-one.png"]}},
            "claims": {
                "computed": words
                | {
                    "rule": rule("constant", quantity="sequential_factor", law=None, sizes=[8], printed=320, epsilon=0.25),
                    "evidence": {},
                    "exhibits": [],
                },
                "lower": words
                | {
                    "rule": stated,
                    "exhibits": ["fig:two"],
                    "evidence": {
                        "paper": evidence(**arms),
                        "tuned": evidence(**arms, study="later"),
                    },
                },
            },
        }
        writing.save(ledger, [folder / "claims/ledger.json"])
        (folder / "report.html").write_text("<!doctype html><title>Snakemake's</title>")
        exhibits = [
            exhibit("Figure 2", figures=["small-one", "later-one"], panels=["a", "b"], tables=["small-two"], shows=HOSTILE),
            exhibit("Figure 5", drawing=True),
            exhibit("Figure 21", figures=["second-one"]),
            exhibit("Table 1", tables=["small-two"]),
        ]
        told = {"title": HOSTILE, "seeds": 25, "horizon": 100}
        plan = {
            "scale": "smoke",
            "results": str(folder),
            "ledger": str(folder / "claims/ledger.json"),
            "report": str(folder / "report.html"),
            "exhibits": exhibits,
            "studies": [
                told
                | {"name": "small", "dataset": f"{folder}/datasets/small.nc"}
                | {"figures": [["one", str(caption)]], "tables": [["two", HOSTILE]]},
                told
                | {"name": "second", "dataset": f"{folder}/datasets/second.nc"}
                | {"figures": [["one", HOSTILE], ["more", HOSTILE]], "tables": []},
            ],
            "absent": {"later": f"not run {HOSTILE}", "also": "not made yet"},
        }
        # as a job gets it
        return json.loads(json.dumps(plan, sort_keys=True)), folder / "index.html"

    return make


@pytest.fixture(scope="session")
def page(made) -> Path:
    plan, path = made()
    save(plan, path)
    return path


def exhibit(name: str, **others: object) -> dict:
    return {"name": name, "shows": "what", "figures": [], "tables": [], "panels": [], "drawing": False} | others
