"""What the site shows from outside docs/: published figures, and the help of every command."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]

#: Where pages find results/paper-scale/figures.
FIGURES = "figures"

#: In reference/commands.md, what the commands say of themselves.
COMMANDS = "<!-- commands -->"


def on_files(files: Files, config) -> Files:
    for path in sorted((ROOT / "results/paper-scale/figures").glob("*.png")):
        files.append(File.generated(config, f"{FIGURES}/{path.name}", abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, **_) -> str:
    return markdown.replace(COMMANDS, commands()) if COMMANDS in markdown else markdown


def commands() -> str:
    """A heading and a block for every command."""
    names = re.search(r"\{([\w,-]+)\}|^  command\n((?:    \S.*\n|      .*\n)+)", told(), re.MULTILINE)
    listed = names[1].split(",") if names[1] else re.findall(r"^    ([\w-]+)", names[2], re.MULTILINE)
    return "\n".join(f"## {name}\n\n```text\n{told(name)}```\n" for name in listed)


def told(*command: str) -> str:
    own = os.environ | {"PYTHONPATH": str(ROOT / "src"), "COLUMNS": "100"}
    arguments = [sys.executable, "-m", "ensemblepp", *command, "--help"]
    return subprocess.run(arguments, env=own, capture_output=True, text=True, check=True).stdout
