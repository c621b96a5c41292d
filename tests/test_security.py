"""docs/security.md names every place of the package that could run what it reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src/ensemblepp"

#: Modules that make objects of any class from a file, and functions that run what they are given.
LOADERS = {"pickle", "marshal", "shelve", "dill", "joblib", "cloudpickle"}
CALLS = {
    "eval",
    "exec",
    "compile",
    "torch.load",
    "np.load",
    "numpy.load",
    "yaml.load",
    "yaml.unsafe_load",
    "os.system",
    "os.popen",
}


def dangers(path: Path) -> Iterator[str]:
    """What a module uses of the above; a shell, too."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.partition(".")[0] in LOADERS)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in LOADERS:
            yield node.module
        elif isinstance(node, ast.Call):
            if ast.unparse(node.func) in CALLS:
                yield ast.unparse(node.func)
            yield from ("a shell" for word in node.keywords if word.arg == "shell" and ast.unparse(word.value) != "False")


def test_what_may_run_code_is_named():
    found = {str(path.relative_to(PACKAGE)): set(dangers(path)) for path in PACKAGE.rglob("*.py")}
    dangerous = {name for name, uses in found.items() if uses}
    assert "compilation/sealing.py" in dangerous, "the search finds what is known"
    text = (ROOT / "docs/security.md").read_text()
    assert [name for name in dangerous if f"`{name}`" not in text] == []


def test_every_module_that_is_named_exists():
    words = (ROOT / "docs/security.md").read_text().split("`")[1::2]
    named = [word for word in words if word.endswith(".py") and "*" not in word]
    assert named
    assert [word for word in named if not (PACKAGE / word).exists()] == []
