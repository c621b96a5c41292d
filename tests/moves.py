"""A module is moved, and everything that imports it is told so, as an editor does it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def move(package: Path, old: str, new: str) -> None:
    """Move module `old` of the package to `new`, and say so everywhere, as an editor does."""
    source, target = (package.joinpath(*name.split(".")).with_suffix(".py") for name in (old, new))
    target.parent.mkdir(parents=True, exist_ok=True)
    source.rename(target)
    for part in target.parents:
        if part == package:
            break
        (part / "__init__.py").touch()
    (old_package, _, old_name), (new_package, _, new_name) = (f"ensemblepp.{name}".rpartition(".") for name in (old, new))
    # a module that is imported by its own name keeps that name
    kept = f"{new_name} as {old_name}" if new_name != old_name else new_name

    def rewritten(found: re.Match) -> str:
        indent, names = found[1], [name.strip() for name in found[2].split(",")]
        if old_name not in names:
            return found[0]
        names.remove(old_name)
        others = f"\n{indent}from {old_package} import {', '.join(names)}" if names else ""
        return f"{indent}from {new_package} import {kept}{others}"

    for path in package.rglob("*.py"):
        before = path.read_text()
        if old_name not in before:
            continue
        text = re.sub(rf"\bensemblepp\.{re.escape(old)}(?![\w.])", f"ensemblepp.{new}", before)
        text = re.sub(rf"^( *)from {re.escape(old_package)} import ([\w, ]+)$", rewritten, text, flags=re.MULTILINE)
        if text != before:
            path.write_text(text)


def sort_imports(package: Path) -> None:
    command = [sys.executable, "-m", "ruff", "check", "--quiet", "--isolated", "--select", "I", "--fix", str(package)]
    subprocess.run(command, check=True)
    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", "--isolated", str(package)], check=True)
