"""The page: what a plan names, gathered from files and written as one HTML file."""

from __future__ import annotations

import base64
import csv
import gc
import hashlib
import io
import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from PIL import Image, UnidentifiedImageError

from ensemblepp.analysis.selection import LARGE
from ensemblepp.claims.verdicts import VERDICTS
from ensemblepp.errors import ConfigError, ResultError
from ensemblepp.report import FILES, captions, curves
from ensemblepp.storage.datasets import atomic_path, read_json

#: Rows of a table above which it is folded.
ROWS = 15

#: The library that draws curves.
_LIBRARY = "uPlot-1.6.32.min"

#: What a plan holds.
_PLAN = ("scale", "results", "ledger", "report", "exhibits", "studies", "absent")


def save(plan: Mapping[str, Any], output: str | Path) -> None:
    """Write the page of a plan.

    Args:
        plan: plain values:

            scale, results   the scale and the folder of its results; all that the page links lies in that folder
            ledger           path of the ledger's JSON file; null where nothing is claimed
            report           path of Snakemake's report; null: no link
            exhibits         the paper's figures and tables, in its order: name, shows, drawing, panels, figures, tables
            studies          name, title, seeds, horizon, dataset (its path), and figures and tables: pairs of name and caption
            absent           study -> why it is not shown
        output: the HTML file; equal files give equal bytes.

    Raises:
        ConfigError: the plan does not hold all of it.
        ResultError: a file that the plan names is missing or damaged.
    """
    for key in _PLAN:
        if key not in plan:
            raise ConfigError(f"plan: has no '{key}'; leave it out to have it made of the configuration")
    output = Path(output)
    content = _Content(plan, output.parent)
    environment = Environment(
        loader=FileSystemLoader(FILES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"anchor": anchor, "number": number}
    shown = content.shown()
    script, style = (Markup("".join(_own(f"{name}.{kind}") for name in (_LIBRARY, "page"))) for kind in ("js", "css"))
    script = Markup("/*\n") + Markup(_own("uPlot.LICENSE")) + Markup("*/\n") + script
    text = environment.get_template("page.html").render(
        script=script,
        style=style,
        policy=f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'",
        data=_json(content.curves()),
        **shown,
    )
    with atomic_path(output) as temporary:
        temporary.write_text(text, encoding="utf-8")


class _Content:
    """What the template shows, gathered once."""

    def __init__(self, plan: Mapping[str, Any], folder: Path) -> None:
        self._plan, self._folder = plan, folder
        self._studies = {
            study["name"]: study | {kind: dict(study[kind]) for kind in ("figures", "tables")} for study in plan["studies"]
        }
        self._ledger = read_json(plan["ledger"], "run snakemake again") if plan["ledger"] else {"rows": [], "counts": {}}
        #: file's stem -> the name under which the paper has it, in the paper's order; the first that shows it counts
        self._names: dict[str, str] = {}
        self._explored: set[str] = set()

    def shown(self) -> dict[str, Any]:
        plan = self._plan
        exhibits = [self._exhibit(exhibit) for exhibit in plan["exhibits"]]
        protocols = list(self._ledger["counts"])
        return {
            "plan": plan,
            "exhibits": exhibits,
            "others": list(self._others()),
            # computed claims hold or fail under every protocol
            "protocols": [name for name in protocols if name != "any"] or protocols,
            "ledger": self._ledger,
            "claims": list(self._claims()),
            "verdicts": VERDICTS,
            "report": self._link(plan["report"]) if plan["report"] else None,
            "most_times": curves.TIMES,
            "most_seeds": curves.SEEDS,
        }

    def curves(self) -> dict[str, Any]:
        """Study -> its curves, of every study that has a figure."""
        found = {}
        for name in sorted(self._explored):
            path = Path(self._studies[name]["dataset"])
            found[name] = curves.study(path)
            # a dataset of the paper's scale fills much of a small machine's memory: one at a time
            if path.stat().st_size > LARGE:
                gc.collect()
        return found

    def _claims(self) -> Iterator[dict[str, Any]]:
        """One entry for each claim: its rows by protocol, and the exhibits that show it with their links within the page."""
        by_name: dict[str, list[dict[str, Any]]] = {}
        for row in self._ledger["rows"]:
            by_name.setdefault(row["claim"], []).append(row)
        order = {exhibit["name"]: place for place, exhibit in enumerate(self._plan["exhibits"])}
        # as the paper comes to them; what no figure or table shows is last
        in_order = sorted(
            by_name.items(), key=lambda one: min((order[name] for name in one[1][0]["exhibits"]), default=len(order))
        )
        for name, rows in in_order:
            links = [(exhibit, f"#{anchor(exhibit)}") for exhibit in rows[0]["exhibits"]]
            stems = [Path(path).stem for path in rows[0]["files"]]
            links += [(self._names[stem], f"#{anchor(stem)}") for stem in stems if stem in self._names]
            yield {
                "name": name,
                "first": rows[0],
                "rows": {row["protocol"]: row for row in rows},
                "links": [(text, target) for at, (text, target) in enumerate(links) if text not in dict(links[:at])],
            }

    def _exhibit(self, exhibit: Mapping[str, Any]) -> dict[str, Any]:
        letters = exhibit["panels"] or [""] * len(exhibit["figures"])
        wanted = [
            ("figures", stem, f"{exhibit['name']}{letter}") for stem, letter in zip(exhibit["figures"], letters, strict=True)
        ]
        wanted += [("tables", stem, _of_table(exhibit["name"], stem)) for stem in exhibit["tables"]]
        made, elsewhere, waiting = [], [], []
        for kind, stem, name in wanted:
            study = self._owner(kind, stem)
            if stem in self._names:
                elsewhere.append({"name": self._names[stem], "stem": stem, "kind": kind})
            elif study:
                self._names[stem] = name
                made.append(self._item(kind, study, stem, name))
            else:
                waiting.append(f"{name} ({stem}): {self._reason(stem)}")
        return {"name": exhibit["name"], "shows": exhibit["shows"], "drawing": exhibit["drawing"]} | {
            "made": made,
            "elsewhere": elsewhere,
            "waiting": waiting,
        }

    def _others(self) -> Iterator[dict[str, Any]]:
        """Studies with figures and tables that the paper does not have."""
        for name, study in self._studies.items():
            items = [
                self._item(kind, name, stem, f"{study['title']}: {artefact.replace('_', ' ')}")
                for kind in ("figures", "tables")
                for artefact in study[kind]
                for stem in [f"{name}-{artefact}"]
                if stem not in self._names
            ]
            if items:
                yield {"name": name, "title": study["title"], "made": items}

    def _item(self, kind: str, study: str, stem: str, name: str) -> dict[str, Any]:
        declared, results = self._studies[study], self._plan["results"]
        params = {"seeds": declared["seeds"], "horizon": declared["horizon"], "scale": self._plan["scale"], "own": {}}
        picture, formats = ("png", ("pdf", "png")) if kind == "figures" else ("csv", ("csv", "md", "tex"))
        path = Path(results, kind, f"{stem}.{picture}")
        item = {
            "kind": kind,
            "name": name,
            "stem": stem,
            "study": study,
            "title": declared["title"],
            "caption": captions.html(declared[kind][stem.removeprefix(f"{study}-")], params),
            "links": [(form.upper(), self._link(f"{results}/{kind}/{stem}.{form}")) for form in formats],
            "data": self._link(declared["dataset"]),
            "command": f"snakemake {path} --config scale={self._plan['scale']}",
            "explore": kind == "figures" and study not in self._explored,
        }
        if item["explore"]:
            self._explored.add(study)
        return item | (_picture(path) if kind == "figures" else _table(path))

    def _owner(self, kind: str, stem: str) -> str | None:
        """The study of which a figure or table is made here."""
        return next(
            (name for name, study in self._studies.items() for artefact in study[kind] if f"{name}-{artefact}" == stem),
            None,
        )

    def _reason(self, stem: str) -> str:
        """Why a figure or table is not there; of studies whose names begin each other's, the longest counts."""
        names = [name for name in self._plan["absent"] if stem.startswith(f"{name}-")]
        return self._plan["absent"][max(names, key=len)] if names else "no study makes it yet"

    def _link(self, path: str) -> str:
        return Path(os.path.relpath(path, self._folder)).as_posix()


def anchor(name: str) -> str:
    """The id of a place in the page: letters, digits and hyphens alone."""
    return "at-" + "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name.lower())


def number(value: float | None, digits: int = 3) -> str:
    """A number for reading; a dash for what there is not."""
    if value is None or math.isnan(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 10**digits else f"{value:.{digits}g}"


def _of_table(name: str, stem: str) -> str:
    """The name of a table: the paper's own, or what it says about a figure of the paper's."""
    return name if name.startswith("Table") else f"{name}, table {stem.rpartition('-')[2].replace('_', ' ')}"


def _picture(path: Path) -> dict[str, Any]:
    """A figure as a data URI of at most 256 colours, which is a third of its bytes and looks the same."""
    try:
        with Image.open(path) as image:
            small, size = io.BytesIO(), image.size
            image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(small, "PNG")
    except (OSError, UnidentifiedImageError) as error:
        raise ResultError(f"{path}: cannot be read as a picture ({error}); delete it and run snakemake again") from error
    return {
        "source": f"data:image/png;base64,{base64.b64encode(small.getvalue()).decode()}",
        "width": size[0],
        "height": size[1],
    }


def _table(path: Path) -> dict[str, Any]:
    """A table's head and rows as they are shown, and whether it is folded."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            head, *rows = csv.reader(file)
    except (OSError, ValueError) as error:
        raise ResultError(f"{path}: cannot be read as a table ({error}); delete it and run snakemake again") from error
    shown = [[_cell(cell) for cell in row] for row in rows]
    return {"head": head, "rows": shown, "folded": len(rows) > ROWS}


def _cell(text: str) -> str:
    """A cell for reading, as `ensemblepp.tables` writes them: four digits, a dash for what there is not."""
    if text == "":
        return "-"
    try:
        value = float(text)
    except ValueError:
        return text
    return text if value.is_integer() and "e" not in text.lower() and "." not in text else number(value, 4)


def _own(name: str) -> str:
    return (FILES / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """A script or style as the page's policy names it: nothing else runs."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _json(value: Any) -> Markup:
    """JSON that is safe within a script element."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
