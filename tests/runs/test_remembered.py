"""What one process found out about sources, and the next one takes from it."""

import json
import os
import subprocess
import sys

import pytest

FINGERPRINT = """
import ast, sys
from pathlib import Path
from ensemblepp.runs import remembered
from ensemblepp.runs.fingerprint import fingerprint
place = Path(sys.argv[2]) / remembered.path().name
remembered.path = lambda: place
parsed, parse = [], ast.parse
ast.parse = lambda *arguments: parsed.append(1) or parse(*arguments)
sys.path.insert(0, sys.argv[1])
print(fingerprint("mine"), fingerprint("ensemblepp.agents.linear.thompson_sampling"), len(parsed))
"""


@pytest.fixture
def ask(tmp_path):
    """Ask a new process for the fingerprints of a module of the user's and of one of the package's; and how much it parsed."""
    module = tmp_path / "code" / "mine.py"
    module.parent.mkdir()
    module.write_text("import beside\n\n\ndef f():\n    return beside.g()\n")
    module.with_name("beside.py").write_text("def g():\n    return 1\n")

    def process(*switches: str) -> tuple[str, str, int]:
        command = [sys.executable, *switches, "-c", FINGERPRINT, str(module.parent), str(tmp_path / "cache")]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        found = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert found.returncode == 0, found.stderr
        mine, package, parsed = found.stdout.split()
        return mine, package, int(parsed)

    process.folder, process.cache = module.parent, tmp_path / "cache"
    return process


def kept(ask):
    (path,) = ask.cache.rglob("remembered.*.json")
    return path


def test_the_next_process_parses_nothing_and_finds_the_same(ask):
    *first, parsed = ask()
    assert parsed > 2
    assert ask() == (*first, 0)


def test_an_edited_module_is_parsed_again_and_the_others_are_not(ask):
    mine, package, _ = ask()
    beside = ask.folder / "beside.py"
    beside.write_text(beside.read_text().replace("1", "2"))
    edited, same, parsed = ask()
    assert edited != mine
    assert (same, parsed) == (package, 1)
    beside.write_text(beside.read_text().replace("2", "1"))
    assert ask() == (mine, package, 0)


def test_an_edit_that_makes_an_import_followed_counts(ask):
    mine, _, _ = ask()
    beside = ask.folder / "beside.py"
    beside.rename(ask.folder / "elsewhere.py")
    alone, _, parsed = ask()
    assert alone != mine
    assert parsed == 1, "the module is asked for what it is with its import"
    (ask.folder / "elsewhere.py").rename(beside)
    assert ask()[0] == mine


@pytest.mark.parametrize("damage", ["flip", "cut", "empty"])
def test_what_is_damaged_is_found_out_again(ask, damage):
    *first, parsed = ask()
    path = kept(ask)
    content = bytearray(path.read_bytes())
    if damage == "flip":
        # a digit of a digest, which would pass as another fingerprint
        place = content.index(b'"without ') + content[content.index(b'"without ') :].index(b'":"') + 4
        content[place] = ord("0") if content[place] != ord("0") else ord("1")
        json.loads(bytes(content).partition(b"\n")[2])
    path.write_bytes({"flip": content, "cut": content[: len(content) // 2], "empty": b""}[damage])
    assert ask() == (*first, parsed)
    assert ask() == (*first, 0)


def test_nothing_is_left_of_other_code_or_half_written(ask):
    ask()
    path = kept(ask)
    other = path.with_name(path.name.replace(path.suffixes[-2], ".0123456789abcdef"))
    path.rename(other)
    ask()
    assert kept(ask) == path
    assert [file.name for file in path.parent.iterdir() if file.name.startswith(".")] == []


def test_a_cache_that_cannot_be_written_costs_nothing_but_time(ask):
    first = ask()
    kept(ask).unlink()
    ask.cache.rmdir()
    # a file in the folder's place: no user, not even root, writes into that
    ask.cache.write_text("")
    assert ask() == first


def test_nothing_is_kept_where_python_keeps_no_bytecode(ask):
    ask("-B")
    assert not ask.cache.exists()
