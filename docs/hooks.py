"""What the site shows from outside docs/: published results, the claims, and the help of every command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import published
from mkdocs.structure.files import File, Files

ROOT = published.ROOT

#: Where pages find results/paper-scale, whose own page is paper-scale.md.
OVERVIEW = "paper-scale.md"


def on_files(files: Files, config) -> Files:
    for path in sorted((ROOT / "results/paper-scale/figures").glob("*.p[dn][fg]")):
        files.append(File.generated(config, f"figures/{path.name}", abs_src_path=str(path)))
    for path in sorted((ROOT / "results/paper-scale/tables").glob("*.md")):
        files.append(
            File.generated(config, f"tables/{path.name}", content=f"# {path.stem}\n\n{path.read_text(encoding='utf-8')}")
        )
    files.append(File.generated(config, OVERVIEW, content=(ROOT / "results/paper-scale/README.md").read_text(encoding="utf-8")))
    return files


def on_post_build(config) -> None:
    # a page that is opened from disk asks for it, and shows no search all the same
    Path(config.site_dir, "search/search_index.js").write_text("var __index\n", encoding="utf-8")


def on_page_markdown(markdown: str, **_) -> str:
    markdown = markdown.replace("../results/paper-scale/README.md", OVERVIEW).replace("../results/paper-scale/", "")
    for mark, made in MADE.items():
        if mark in markdown:
            markdown = markdown.replace(mark, made())
    return markdown


def commands() -> str:
    """A heading and a block for every command."""
    names = re.search(r"\{([\w,-]+)\}|^  command\n((?:    \S.*\n|      .*\n)+)", told(), re.MULTILINE)
    listed = names[1].split(",") if names[1] else re.findall(r"^    ([\w-]+)", names[2], re.MULTILINE)
    return "\n".join(f"## {name}\n\n```text\n{told(name)}```\n" for name in listed)


def told(*command: str) -> str:
    own = os.environ | {"PYTHONPATH": str(ROOT / "src"), "COLUMNS": "100"}
    arguments = [sys.executable, "-m", "ensemblepp", *command, "--help"]
    return subprocess.run(arguments, env=own, capture_output=True, text=True, check=True).stdout


#: What stands on a page -> what is put there.
MADE = {
    "<!-- commands -->": commands,
    "<!-- answer -->": published.answer,
    "<!-- claims -->": published.claims,
    "<!-- ledger -->": published.ledger,
}
