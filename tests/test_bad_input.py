"""Every bad input that is known: the one line that it gets, the exit status, and that nothing is left half-written."""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from ensemblepp.arguments import output
from ensemblepp.cli import main
from ensemblepp.cli.parser import make_parser
from ensemblepp.config import targets
from ensemblepp.config.checks import CONFIG_FILES, presentable
from ensemblepp.config.loading import read_files, read_yaml
from ensemblepp.errors import ResultError
from ensemblepp.runs import requirements
from ensemblepp.storage.datasets import read_dataset, write_dataset
from ensemblepp.text.language_models import acquire

ROOT = Path(__file__).resolve().parents[1]
A, C, E, S = (f"config/{name}.yaml" for name in ("agents", "config", "environments", "studies"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the shipped configuration, in which commands run; what they change of this process is taken back."""
    for name in CONFIG_FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR"):
        monkeypatch.setenv(f"{library}_NUM_THREADS", "1")
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delenv("ENSEMBLEPP_MIRROR", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files(folder: Path) -> dict[Path, int]:
    """All that is in a folder, and when each file was written."""
    found = [path for path in folder.rglob("*") if "__pycache__" not in path.parts]
    return {path: path.stat().st_mtime_ns if path.is_file() else 0 for path in found}


@pytest.fixture
def refused(folder, capsys):
    """A check that a command is refused: exit status, lines that begin alike, the files as they were."""

    def check(*arguments: object, status: int = 1) -> list[str]:
        before = files(folder)
        try:
            found = main([str(argument) for argument in arguments])
        except SystemExit as leaving:
            found = leaving.code
        out, err = capsys.readouterr()
        assert found == status, err
        assert out == ""
        # a fault in a later round comes after lines of progress
        lines = [line for line in err.splitlines() if ": step " not in line]
        assert lines
        assert all(line.startswith("error: ") for line in lines), err
        assert files(folder) == before
        return [line.removeprefix("error: ") for line in lines]

    return check


# -------------------------------------------------------------------------------------------------------- configuration

#: What a file holds -> what is said of it.
FILES = {
    "binary": (bytes(range(256)), "line 2: not text in UTF-8: found byte 0x80"),
    "NUL": (b"agents:\n  ts: \0\n", "line 2: not valid YAML: found the character 0"),
    "Latin-1": ("agents:\n  é: 1\n".encode("latin-1"), "line 2: not text in UTF-8: found byte 0xe9"),
    "UTF-16": ("agents: {}\n".encode("utf-16"), "line 1: not text in UTF-8: found byte 0xff"),
    "not closed": (b"agents:\n  a: {b\n", "line 3: not valid YAML: expected ',' or '}', but got '<stream end>'"),
    "tab": (b"agents:\n\ta: b\n", "line 2: not valid YAML: found character '\\t' that cannot start any token"),
    "two documents": (b"agents: {}\n---\nagents: {}\n", "line 2: not valid YAML: but found another document"),
    "no name for a key": (b"agents:\n  ? [a, b]\n  : 3\n", "line 2: not valid YAML: found unhashable key"),
    "code": (b"agents: !!python/name:os.system\n", "line 1: not valid YAML: could not determine a constructor"),
    "list": (b"- ts\n", "must be a mapping of keys to values"),
    "too deep": (b"agents: " + b"[" * 5000, "not valid YAML: nested too deeply"),
    "key twice": (b"agents:\n  ts: {}\n  ts: {}\n", "line 3: not valid YAML: the key 'ts' is there already, in line 2"),
    "key twice in one line": (b"laws: {a: 1, b: 2, a: 3}\n", "line 1: not valid YAML: the key 'a' is there already, in line 1"),
    "top key twice": (
        b"laws: {}\nagents: {}\nlaws: {}\n",
        "line 3: not valid YAML: the key 'laws' is there already, in line 1",
    ),
}


@pytest.mark.parametrize(("content", "message"), FILES.values(), ids=FILES)
def test_a_configuration_file(folder, refused, content, message):
    mine = folder / "mine.yaml"
    mine.write_bytes(content)
    (line,) = refused("config", mine)
    assert line.startswith(f"{mine}: {message}")
    mine.rename(folder / A)
    (line,) = refused("config")
    assert line.startswith(f"{A}: {message}")


def test_a_folder_in_place_of_a_configuration_file(folder, refused):
    (folder / A).unlink()
    (folder / A).mkdir()
    assert refused("config") == [f"{A}: cannot be read: Is a directory"]


def test_what_a_merged_mapping_says_may_be_overruled(tmp_path):
    (tmp_path / "a.yaml").write_text("one: &one {a: 1, b: 2}\ntwo: &two {<<: *one, a: 3}\nthree: {<<: *two, a: 4, b: 5}\n")
    assert read_yaml(tmp_path / "a.yaml")["three"] == {"a": 4, "b": 5}


#: What is changed in a file -> what is said.
EDITS = {
    "a scale twice": (C, ("scale: quick", "scale: quick\nscale: smoke"), "line 6: not valid YAML: the key 'scale' is there"),
    "one label for two agents": (
        A,
        ('label: "ES"', 'label: "TS"'),
        "studies.linear.agents: 'ts' and 'es' have one label, 'TS': give each its own",
        S,
    ),
    "one title for two environments": (
        E,
        ('title: "Shuttle"', 'title: "Mushroom"'),
        "'mushroom' and 'shuttle' have one title, 'Mushroom': give each its own",
        S,
    ),
    "a law twice": (
        A,
        ("references: [gaussian,", "references: [gaussian, gaussian,"),
        "agents.linear-ensemble++.references: found ['gaussian', 'gaussian', 'sphere', 'cube', 'coordinate', 'sparse']: each",
    ),
    "a law that there is not": (
        A,
        ("references: [gaussian,", "references: [gausian,"),
        "references.0: found 'gausian': must be",
    ),
    "accuracy of a data set": (
        S,
        (
            "figures: [nonlinear_regret]\n    tables: [final_regret, paired_regret, best_constant]\n    scales:\n      smoke:\n"
            "        environments: [mushroom",
            "figures: [moderation_accuracy]\n    tables: []\n    scales:\n      smoke:\n        environments: [mushroom",
        ),
        "studies.uci.figures: found 'moderation_accuracy': at scale smoke it needs environments of kind moderation: 'mushroom'",
    ),
    "best constant of what has none": (
        S,
        ("figures: [covariance_spectrum]\n    tables: [", "figures: [covariance_spectrum]\n    tables: [best_constant, "),
        "studies.theory.tables: found 'best_constant': at scale smoke it needs variable 'constant_regret': in environment",
    ),
    "training of linear agents": (
        S,
        ("figures: [linear_regret, es_regret]", "figures: [linear_regret, training]"),
        "studies.linear.figures: found 'training': at scale smoke it needs variable 'loss': in environment 'finite-d10-100'",
    ),
    "a heat-map without its yardstick": (
        S,
        (
            "agents: [ts, linear-ensemble++]\n    figures: [laws_heatmap",
            "agents: [linear-ensemble++]\n    figures: [laws_heatmap",
        ),
        "studies.laws-d10.figures: found 'laws_heatmap': at scale quick it needs agent 'ts': the study has linear-ensemble++",
    ),
    "a figure that there is not": (S, ("[linear_regret, es_regret]", "[linear_regert]"), "did you mean 'linear_regret'?"),
    "an agent that there is not": (
        S,
        ("agents: [ts, ensemble++-gaussian-sphere, es]", "agents: [tss]"),
        "found 'tss': must be",
    ),
    "an environment that there is not": (
        S,
        ("environments: [moderation-minilm]", "environments: [moderation-miniml]"),
        "did you mean 'moderation-minilm'?",
    ),
    "a billion seeds": (S, ("seeds: 4\n", "seeds: 1000000000\n"), "seeds: found 1000000000: must be at most 1000000 seeds"),
    "a seed beyond 64 bits": (S, ("seeds: 4\n", "seeds: [9223372036854775808]\n"), "none above 9223372036854775807"),
    "too many jobs": (
        S,
        ("seeds: 4\n", "seeds: 100000\n        seeds_per_block: 1\n"),
        "run blocks: at most 200,000 can be planned",
    ),
    "too many rounds": (S, ("horizon: 200\n", "horizon: 1000000000000\n"), "input should be less than or equal to 100000000"),
    "a billion actions": (
        E,
        ("dimension: 10, actions: 100}", "dimension: 10, actions: 1000000000}"),
        "environments.finite-d10-100.actions: found 1000000000: input should be less than or equal to 10000000",
    ),
    "a billion units": (
        A,
        ("kind: greedy\n", "kind: greedy\n    hidden: [1000000000]\n"),
        "agents.greedy.hidden.0: found 1000000000: input should be less than or equal to 100000",
    ),
    "a billion posts": (
        E,
        ("posts: 10000\n", "posts: 1000000000\n"),
        "found 1000000000: input should be less than or equal to",
    ),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edit_of_the_shipped_configuration(folder, refused, edit):
    path, (old, new), message, *of = edit
    text = (folder / path).read_text(encoding="utf-8")
    assert old in text
    (folder / path).write_text(text.replace(old, new, 1), encoding="utf-8")
    lines = refused("config")
    assert all(line.startswith(f"{(of or [path])[0]}: ") for line in lines)
    assert any(message in line for line in lines), lines


def test_several_faults_begin_alike(folder, refused):
    path = folder / C
    path.write_text(path.read_text().replace("device: auto", "device: tpu") + "\nspeed: 3\n")
    assert len(refused("config")) == 2


#: A figure of the user's and what its module says that it needs -> what is said.
OWN_NEEDS = {
    '{"environments": ["moderation"]}': "at scale smoke it needs environments of kind moderation: 'mushroom' is of kind",
    '{"variables": ["seconds"]}': "at scale smoke it needs variable 'seconds': in environment 'mushroom' there are",
    '{"agents": ["ts"]}': "at scale smoke it needs agent 'ts': the study has ensemble++, greedy",
    '{"agent_kinds": ["lmcts"]}': "at scale smoke it needs an agent of kind lmcts: the study has neural_ensemblepp, greedy",
    '{"kinds": ["moderation"]}': "NEEDS: found 'kinds': must be one of variables, environments, agents",
    '{"variables": "loss"}': "NEEDS: variables: found 'loss': must be a list of names",
    "dict(variables=[])": "NEEDS is no mapping of variables, environments",
}


@pytest.mark.parametrize(("needs", "message"), OWN_NEEDS.items())
def test_a_figure_of_ones_own_that_does_not_fit(folder, refused, needs, message):
    name = f"own_{abs(hash(needs))}"
    (folder / f"{name}.py").write_text(f"NEEDS = {needs}\n\n\ndef draw(dataset):\n    raise AssertionError\n")
    studies = (folder / S).read_text(encoding="utf-8")
    head, tail = studies.split("  uci:\n")
    tail = tail.replace("[nonlinear_regret]", "[mine]", 1)
    figures = f"figures:\n  mine: {{function: {name}:draw}}\n"
    (folder / S).write_text(f"{figures}{head}  uci:\n{tail}", encoding="utf-8")
    assert refused("config")[0].startswith(f"{S}: studies.uci.figures: found 'mine': {message}")


# --------------------------------------------------------------------------------------------------------- command line

SIMULATE = ("simulate", "--environment", "finite-d10-100", "--agent", "ts", "--horizon", 5, "--seeds", "0-1")
EMBED = ("embed", "--prepared", "a", "--folder", "b", "--pooling", "last", "--max-tokens", 5, "--output", "o.nc")
MODERATE = ("moderate", "x.csv", "--text-column", "text", "--label-column", "bad")
SPEC = {
    "environment": {"name": "line", "kind": "linear_sphere", "options": {"dimension": 2, "prior_variance": 1.0, "noise": 1.0}},
    "agent": {"name": "ts", "kind": "linear_ts", "options": {}},
    "engine": "linear_compiled",
    "ensemble_size": 0,
    "horizon": 5,
    "seeds": [0, 1],
    "device": "cpu",
}


def spec(**changes: object) -> tuple[str, ...]:
    """A job's command with other values; None leaves a key out."""
    changed = {key: value for key, value in (SPEC | changes).items() if value is not None}
    return ("simulate", "--spec", json.dumps(changed), "--output", "o.nc")


#: Arguments -> exit status and what is said.
COMMANDS = {
    ("fly",): (2, "argument command: found 'fly': must be one of quickstart, "),
    ("simulat",): (2, "did you mean 'simulate'?"),
    ("--threads", 0, "config"): (2, "argument --threads: found '0': must be a whole number from 1 to 1024"),
    ("--threads", -1, "config"): (2, "argument --threads: found '-1': must be a whole number from 1 to 1024"),
    ("--threads", "many", "config"): (2, "argument --threads: found 'many': must be"),
    ("--threads", 10**9, "config"): (2, "argument --threads: found '1000000000': must be"),
    (*SIMULATE, "--environment", "mushrom"): (1, "did you mean 'mushroom'?"),
    (*SIMULATE, "--agent", "gredy"): (1, "did you mean 'greedy'?"),
    ("simulate", "--agent", "ts"): (1, "--environment: must be given; it is one of finite-d10-100, "),
    ("simulate", "--environment", "neural"): (1, "--agent: must be given; it is one of ts, "),
    (*SIMULATE, "--seeds", "0-10000000"): (1, "seeds 0-10000000: must be at most 10,000, and none above"),
    (*SIMULATE, "--seeds", "-3-4"): (2, "argument --seeds: expected one argument"),
    (*SIMULATE, "--seeds=-3-4"): (1, "--seeds: found '-3-4': must be a range such as 0-9"),
    (*SIMULATE, "--seeds", f"{2**63}-{2**63}"): (1, "none above 9223372036854775807"),
    (*SIMULATE, "--horizon", "1e13"): (2, "argument --horizon: found '1e13': must be a whole number from 1"),
    (*SIMULATE, "--horizon", 10**13): (1, "horizon 10000000000000: must be at least 1 and at most 100,000,000"),
    (*SIMULATE, "--horizon", 0): (2, "argument --horizon: found '0': must be"),
    (*SIMULATE, "--ensemble-size", 1.5): (2, "argument --ensemble-size: found '1.5': must be a whole number"),
    (*SIMULATE, "--output", "x.json"): (1, "output: found 'x.json': must end in .nc"),
    (*SIMULATE, "--output", "x.xyz"): (1, "output: found 'x.xyz': must end in .nc"),
    (*SIMULATE, "--output", ""): (1, "output: found '.': must be the name of a file"),
    (*SIMULATE, "--output", "config"): (1, "output: found 'config': must end in .nc"),
    (*SIMULATE, "--output", "config/config.yaml/x.nc"): (1, "config/config.yaml: cannot be made: '"),
    (*SIMULATE, "--output", "/proc/self/x.nc"): (1, "/proc/self: cannot be written to: "),
    ("simulate", "--spec", "nonsense", "--output", "o.nc"): (2, "argument --spec: found 'nonsense': must be JSON: "),
    ("simulate", "--spec", "[1]", "--output", "o.nc"): (2, "argument --spec: found '[1]': must be a mapping as JSON"),
    ("simulate", "--spec", "[" * 9999, "--output", "o.nc"): (2, "argument --spec: found '[[["),
    ("simulate", "--spec", "{}", "--output", "o.nc"): (2, "argument --spec: specification: has no 'environment'"),
    spec(seeds=None): (2, "argument --spec: specification: has no 'seeds'"),
    spec(seeds=[3, 1]): (2, "argument --spec: seeds: found [3, 1]: must be the first and the last seed"),
    spec(seeds="0-1"): (2, "argument --spec: seeds: found 0-1: must be the first and the last seed"),
    spec(horizon="5"): (2, "argument --spec: horizon: found '5': must be a whole number from 1"),
    spec(engine="fast"): (2, "argument --spec: engine: found 'fast': must be one of step_by_step, "),
    spec(device="tpu"): (2, "argument --spec: device: found 'tpu': must be one of cpu, cuda"),
    spec(agent={}): (2, "argument --spec: agent: has no 'name'"),
    spec(agent=[]): (2, "argument --spec: agent: must be a mapping"),
    spec(agent={"name": "ts", "kind": "linear", "options": {}}): (2, "agent.kind: found 'linear': must be one of linear_ts, "),
    spec(agent={"name": "ts", "kind": "custom", "options": {}}): (2, "argument --spec: agent: has no 'class'"),
    spec()[:-2]: (1, "--spec: names no run file; give --output too"),
    ("aggregate", "--plan", "x", "--output", "o.nc"): (2, "argument --plan: found 'x': must be JSON"),
    ("aggregate", "--plan", "{}", "--output", "o.nc"): (2, "argument --plan: plan: has no 'study'"),
    ("aggregate", "--output", "o.nc"): (1, "--study: must be given; it is one of linear, "),
    ("aggregate", "--study", "linaer", "--output", "o.nc"): (1, "did you mean 'linear'?"),
    ("aggregate", "--study", "linear", "--output", "o.xlsx"): (1, "output: found 'o.xlsx': must end in .nc"),
    ("language-model", "--spec", "x", "--folder", "f"): (2, "argument --spec: found 'x': must be JSON"),
    ("language-model", "--spec", "{}", "--folder", "f"): (1, "--spec: source: field required"),
    ("check-data", "--dataset", "x", "--declared", "z", "--output", "o.json", "r"): (
        2,
        "argument --declared: found 'z': must be JSON",
    ),
    ("check-data", "--dataset", "x", "--declared", '{"a": 3}', "--output", "o.json", "r"): (
        1,
        "--declared: label: field required",
    ),
    ("check-data", "--dataset", "mushrom", "--output", "o.json", "r"): (1, "did you mean 'mushroom'?"),
    ("page", "--plan", "{}", "--output", "p.html"): (1, "plan: has no 'scale'"),
    ("page", "--folder", "nowhere"): (1, "nowhere: no study is there; run snakemake --config scale=quick first"),
    ("page", "--scale", "smoke", "--plan", "{}", "--output", "p.pdf"): (1, "output: found 'p.pdf': must end in .html"),
    ("report", "--config", "z"): (2, "argument --config: found 'z': must be JSON"),
    ("report", "--config", "[]"): (2, "argument --config: found '[]': must be a mapping as JSON"),
    (*EMBED, "--posts", 0): (2, "argument --posts: found '0': must be a whole number from 1"),
    (*EMBED, "--posts", 3, "--max-tokens", 0): (2, "argument --max-tokens: found '0': must be"),
    (*EMBED, "--posts", 3, "--device", "tpu"): (
        2,
        "argument --device: found 'tpu': must be one of auto, cpu, cuda",
    ),
    (*EMBED, "--posts", 3, "--pooling", "max"): (2, "argument --pooling: found 'max': must be one of last, mean"),
    (*EMBED, "--posts", 3): (1, "a: no such file"),
    ("figure", "--name", "training", "--dataset", "d.nc", "o.xyz"): (1, "output: found 'o.xyz': must end in .pdf or .png"),
    ("figure", "--name", "trainig", "--dataset", "d.nc", "o.png"): (1, "did you mean 'training'?"),
    ("table", "--name", "final_regret", "--dataset", "d.nc", "o.xlsx"): (1, "output: found 'o.xlsx': must end in .csv or .md"),
    ("table", "--name", "final_regret", "--dataset", "config", "o.csv"): (1, "config: cannot be read"),
    (*MODERATE, "--threshold", "nan"): (2, "argument --threshold: found 'nan': must be a finite number"),
    (*MODERATE, "--seeds", 0): (2, "argument --seeds: found '0': must be a whole number from 1"),
    (*MODERATE, "--actions", "delete"): (2, "argument --actions: found 'delete': must be one of publish_or_block, "),
    ("list", "agent"): (2, "argument what: found 'agent': must be one of studies, agents"),
    ("cost", "--study", "linaer"): (1, "did you mean 'linear'?"),
    ("show", "agent", "gredy", "--environment", "mushroom"): (1, "did you mean 'greedy'?"),
    ("show", "environment", "mushrom"): (1, "did you mean 'mushroom'?"),
}


@pytest.mark.parametrize(("arguments", "said"), COMMANDS.items(), ids=map(str, range(len(COMMANDS))))
def test_a_command(refused, arguments, said):
    status, message = said
    (line, *_) = refused(*arguments, status=status)
    assert message in line
    assert line.startswith("argument " if status == 2 else "")


MANY = "text,bad\n" + "".join(f"words {place},{place % 2}\n" for place in range(20))

#: Files of posts: name, content, more of the command line, and what is said.
POSTS = {
    "missing file": ("none.csv", None, [], "none.csv: no such file"),
    "missing column": ("mine.csv", MANY.replace("text,", "txt,"), [], "line 1: no column 'text' (found txt, bad)"),
    "constant label": ("mine.csv", MANY.replace(",1\n", ",0\n"), [], "column 'bad': one class only (expected posts to block"),
    "one class by the threshold": ("mine.csv", MANY, ["--threshold", 1], "column 'bad': one class only"),
    "one class once duplicates are one": ("mine.csv", "text,bad\n" + "same,1\nsame,0\n" * 9, [], "one class only"),
    "few of one class": ("mine.csv", "text,bad\na,1\nb,0\n", [], "1 different posts of the rarer class: too few"),
    "not a label": ("mine.csv", "text,bad\na,0.7\nb,0\n", [], "line 2, column 'bad': not a label"),
    "not a score": ("mine.csv", "text,bad\na,high\n", ["--threshold", 0.5], "line 2, column 'bad': not a score"),
    "empty text": ("mine.csv", "text,bad\na,1\n,0\n", [], "line 3, column 'text': an empty text"),
    "no rows": ("mine.csv", "text,bad\n", [], "no rows"),
    "non-UTF-8": ("mine.csv", b"text,bad\na\xff,1\n", [], "line 2: not text (expected UTF-8, found byte 0xff)"),
    "unknown format": ("mine.xlsx", MANY, [], "mine.xlsx: must end in .csv, .csv.gz, .parquet, .jsonl"),
    "broken JSON line": ("mine.jsonl", '{"text": "a", "bad": 1}\n{"text": "b", "bad"\n', [], "mine.jsonl, line 2: not JSON ("),
    "no Parquet": ("mine.parquet", MANY, [], "mine.parquet: "),
    "unknown model": ("mine.csv", MANY, ["--language-model", "minilmm"], "language_model: found 'minilmm': must be one of"),
    "unknown agent": ("mine.csv", MANY, ["--agents", "greedy-txt"], "did you mean 'greedy-text'?"),
    "agent that is linear": ("mine.csv", MANY, ["--agents", "ts"], "agents: found 'ts': must be one of"),
    "agent without a formula": ("mine.csv", MANY, ["--agents", "epinet"], "agents: found 'epinet': must be one of"),
    "agent of many laws": ("mine.csv", MANY, ["--agents", "ensemble++-laws"], "agents: 'ensemble++-laws' has several pairs"),
    "file for a folder": ("mine.csv", MANY, ["--output", "mine.csv"], "mine.csv: cannot be made: "),
}


@pytest.mark.parametrize("case", POSTS.values(), ids=POSTS)
def test_posts_of_ones_own(folder, refused, monkeypatch, case):
    """Before a language model is brought; a post of 5,000 tokens is no fault (tests/runs/test_moderate.py)."""
    name, content, options, message = case
    monkeypatch.setattr("ensemblepp.runs.own_posts.acquire", lambda *_: pytest.fail("too late"))
    if content is not None:
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    (line,) = refused("moderate", name, "--text-column", "text", "--label-column", "bad", *options)
    assert message in line


def test_the_next_output_is_tried_before_any_is_written(folder, refused):
    write_dataset(study("uci"), folder / "d.nc")
    assert refused("figure", "--name", "training", "--dataset", "d.nc", "a.png", "a.xyz") == [
        "output: found 'a.xyz': must end in .pdf or .png"
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give itself up for a while")
def test_a_folder_of_another_user(tmp_path):
    """What a user meets who is not root, which may write anywhere."""
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        os.seteuid(65534)
        try:
            with pytest.raises(ResultError) as error:
                output(f"{place}/results/o.nc", [".nc"])
        finally:
            os.seteuid(0)
    assert str(error.value) == f"{place}/results: cannot be written to: Permission denied ('{place}')"


def test_a_full_folder(folder, refused):
    """A limit on the size of files stands for a disk that takes no more."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        (line,) = refused(*SIMULATE)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert line.startswith("results/quick/runs/finite-d10-100/ts/M0/T5: cannot be written to: File too large")


def test_more_memory_than_there_is(refused, monkeypatch):
    monkeypatch.setattr("ensemblepp.runs.requirements.available", lambda: 10**6)
    (line,) = refused("simulate", "--environment", "quadratic", "--agent", "greedy", "--horizon", 5, "--seeds", "0-9")
    assert line == (
        "greedy in quadratic needs at least 0.0 GB of memory, of which 0.0 GB for candidate actions; there are 0.0 GB here"
    )


# --------------------------------------------------------------------------------------------------------- foreign code


def played(agent: str, environment: str, engine: str, **options: object) -> dict[str, object]:
    """A block of classes in `foreign.py`, or of ours where a name is a kind."""
    kinds = {"greedy": GREEDY, "linear_greedy": {"prior_variance": 1.0}}
    described = {"name": "mine", "kind": agent, "options": kinds.get(agent, options)}
    if agent not in kinds:
        described |= {"kind": "custom", "class": f"foreign:{agent}"}
    place = {"name": "there", "kind": "custom", "class": f"foreign:{environment}", "options": {}}
    return SPEC | {"agent": described, "environment": place, "engine": engine, "seeds": [0, 2], "horizon": 20}


GREEDY = {
    "hidden": [3],
    "learning_rate": 0.01,
    "batch_size": 4,
    "weight_decay": 0.0,
    "buffer_capacity": 20,
    "gradient_steps": 1,
    "update_every": 1,
    "warm_up": 4,
    "timed": False,
    "loss": "squared",
}
BY_ENGINES = {"neural_stacked": ("Lists", GREEDY), "step_by_step": ("Bandit", {})}

#: Class of an agent -> what is said of it.
AGENTS = {
    "OneSeed": "OneSeed.act: round 1: index has the wrong shape (expected (3, 1), found (1, 1))",
    "Last": "Last.act: round 1: index outside the decision set at place 0, chain 0 (expected 0 to 6, found -1)",
    "LaterLast": "LaterLast.act: round 9: index outside the decision set at place 0, chain 0 (expected 0 to 6, found -1)",
    "Beyond": "Beyond.act: round 1: index outside the decision set at place 0, chain 0 (expected 0 to 6, found 7)",
    "Fractions": "Fractions.act: round 1: index has the wrong type (expected a numpy integer type, found float64)",
    "NoArrays": "NoArrays.act: round 1: index is no array (expected a numpy array of shape (3, 1), found list)",
    "Nothing": "Nothing.act: round 1: not a Choice (expected decisions.choose(index) or decisions.maximise(theta), found",
    "OtherFeatures": "OtherFeatures.act: round 1: features are not those of the action at index, at place 0, chain 0 (expected",
    "NoAct": "NoAct.act: there is no such method",
    "NoUpdate": "NoUpdate.update: there is no such method",
    "OtherSeeds": "OtherSeeds.seeds: not the seeds that it was built with (expected (0, 1, 2), found (0, 1, 2, 3))",
    "NoChains": "NoChains.chains: not pairs of texts (expected one pair of law names a chain, ",
    "ChainTwice": "ChainTwice.chains: not every reference with every perturbation, once, references first (expected [(",
    "ChainsOfTexts": "ChainsOfTexts.chains: not pairs of texts (expected one pair of law names a chain, such as ",
    "HalfOfThePairs": "HalfOfThePairs.chains: not every reference with every perturbation, once, references first (expected ",
    "ReservedName": "ReservedName.diagnostics: 'regret' is the name of something else in a run file (expected none of action, ",
    "OneValue": "OneValue.diagnostics: 'loss' has the wrong shape (expected (3, 1), found (1,))",
    "NewName": "NewName.diagnostics: other names than before (expected ['loss0'], found ['loss1'])",
    "StackedOneChain": "StackedOneChain.choose: round 1: position has the wrong shape (expected (3,), found (1,))",
    "StackedBeyond": "StackedBeyond.choose: round 1: position outside the decision set at chain 0 (expected 0 to 4, found 50)",
    "StackedLast": "StackedLast.choose: round 1: position outside the decision set at chain 0 (expected 0 to 4, found -1)",
}


@pytest.mark.parametrize(("name", "message"), AGENTS.items())
def test_an_agent_of_ones_own(refused, name, message):
    environment, options = BY_ENGINES["neural_stacked" if name.startswith("Stacked") else "step_by_step"]
    engine = "neural_stacked" if options else "step_by_step"
    spec_ = played(name, environment, engine, **options)
    (line,) = refused("simulate", "--spec", json.dumps(spec_), "--output", "o.nc")
    assert line.startswith(f"agent 'mine' in environment 'there': {message}")


#: Class of an environment -> its engine, an agent, and what is said.
ENVIRONMENTS = {
    "NoStep": ("step_by_step", "Sound", "NoStep.step: there is no such method"),
    "NoDimension": ("step_by_step", "Sound", "NoDimension.dimension: not a number of things (expected a whole number from 1, "),
    "FlatFeatures": (
        "step_by_step",
        "Sound",
        "FlatFeatures.decisions: round 1: no features (expected an array of shape (seeds, ",
    ),
    "WrongWidth": (
        "step_by_step",
        "Sound",
        "WrongWidth.decisions: round 1: features has the wrong shape (expected (3, 7, 4), f",
    ),
    "FewerActions": (
        "step_by_step",
        "Sound",
        "FewerActions.decisions: round 1: not fixed_actions actions (expected 8, found 7)",
    ),
    "MeansOfOneSeed": (
        "step_by_step",
        "Sound",
        "MeansOfOneSeed.mean_rewards: round 1: means has the wrong shape (expected (3, 7)",
    ),
    "RegretOfOneSeed": (
        "step_by_step",
        "Sound",
        "RegretOfOneSeed.step: round 1: regret has the wrong shape (expected (3, 1), f",
    ),
    "LaterRegretOfOneSeed": (
        "step_by_step",
        "Sound",
        "LaterRegretOfOneSeed.step: round 9: regret has the wrong shape (expected",
    ),
    "RewardOnly": (
        "step_by_step",
        "Sound",
        "RewardOnly.step: round 1: not an Outcome (expected bandit.Outcome(reward, regret), f",
    ),
    "RegretNotANumber": (
        "step_by_step",
        "Sound",
        "Sound in RegretNotANumber, seed 0, chain 0: regret is not finite in round 9 or",
    ),
    "OfferBeyond": ("neural_compiled", "greedy", "OfferBeyond.draw: offers an item that there is not (expected 0 to 9, found "),
    "OfferBefore": (
        "neural_stacked",
        "greedy",
        "OfferBefore.draw: offers an item that there is not (expected 0 to 9, found -1 to",
    ),
    "NoiseOfOneSeed": (
        "neural_compiled",
        "greedy",
        "NoiseOfOneSeed.draw: noise has the wrong shape (expected (3, 20), found (1",
    ),
    "TooManyRounds": ("neural_compiled", "greedy", "TooManyRounds.draw: 21 rounds where 20 were asked for (expected 1 to 20)"),
    "MeansMissing": (
        "neural_compiled",
        "greedy",
        "MeansMissing.means: of the pool has the wrong shape (expected (3, 10), found (3",
    ),
    "DoubleTable": (
        "neural_compiled",
        "greedy",
        "DoubleTable.table: wrong type (expected float32 (seeds or 1, rows, width), fo",
    ),
    "OneInstance": (
        "linear_compiled",
        "linear_greedy",
        "OneInstance.instances: not one for every seed, in order (expected (0, 1, ",
    ),
    "Backwards": (
        "linear_compiled",
        "linear_greedy",
        "Backwards.instances: not one for every seed, in order (expected (0, 1, 2), ",
    ),
    "ShortTheta": (
        "linear_compiled",
        "linear_greedy",
        "ShortTheta.instances: seed 0: theta has the wrong shape (expected (4,), fo",
    ),
    "ShortNoise": (
        "linear_compiled",
        "linear_greedy",
        "ShortNoise.instances: seed 0: reward_noise(20) has the wrong shape (expect",
    ),
    "NoNumber": (
        "linear_batched",
        "linear_greedy",
        "NoNumber.instances: seed 0: features is not finite (expected finite numbers, ",
    ),
}


@pytest.mark.parametrize(("name", "said"), ENVIRONMENTS.items())
def test_an_environment_of_ones_own(refused, name, said):
    engine, agent, message = said
    (line,) = refused("simulate", "--spec", json.dumps(played(agent, name, engine)), "--output", "o.nc")
    assert line.startswith(f"agent 'mine' in environment 'there': {message}")


@pytest.mark.parametrize(
    ("agent", "environment", "engine"),
    [
        ("Sound", "Bandit", "step_by_step"),
        ("Stacked", "Lists", "neural_stacked"),
        ("greedy", "Lists", "neural_compiled"),
        ("linear_greedy", "Whole", "linear_compiled"),
        ("linear_greedy", "Whole", "linear_batched"),
    ],
)
def test_sound_ones_are_played(folder, agent, environment, engine):
    options = GREEDY if agent == "Stacked" else {}
    spec_ = played(agent, environment, engine, **options)
    assert main(["simulate", "--spec", json.dumps(spec_), "--output", "o.nc"]) == 0
    assert read_dataset("o.nc")["regret"].sizes == {"reference": 1, "perturbation": 1, "seed": 3, "time": 20}
    assert sorted(path.name for path in folder.iterdir()) == ["config", "o.json", "o.nc"]


# ------------------------------------------------------------------------------------------------------------- datasets

#: How a study's dataset is spoilt -> what every figure and table says of it.
SPOILT = {
    "no label": (
        lambda data: data.drop_vars("label"),
        "not a study's dataset (it has no 'label'); `ensemblepp aggregate` makes",
    ),
    "no title": (lambda data: data.drop_vars("title"), "not a study's dataset (it has no 'title')"),
    "no regret": (lambda data: data.drop_vars("regret"), "not a study's dataset (it has no 'regret')"),
    "no attributes": (lambda data: data.drop_attrs(), "not a study's dataset (it has no 'study')"),
    "all NaN": (lambda data: data.where(False), "environment 'mushroom' has no run; make the dataset anew"),
    "a run file": (lambda data: data.assign_attrs(spec="{}"), "a run file: "),
}
MADE = [(kind, name) for kind in ("figures", "tables") for name in presentable(kind)]


def study(name: str) -> xr.Dataset:
    """A dataset as `aggregate` makes it, of numbers that do not matter: of UCI data, or of Thompson sampling alone."""
    kinds = {"mushroom": "classification"} if name == "uci" else {"finite-d50-10000": "linear_finite"}
    agents = {"ensemble++": "neural_ensemblepp", "greedy": "greedy"} if name == "uci" else {"ts": "linear_ts"}
    coordinates = {
        "environment": list(kinds),
        "agent": list(agents),
        "reference": ["none"],
        "perturbation": ["none"],
        "ensemble_size": [0, 8] if name == "uci" else [0],
        "seed": [0, 1],
        "time": [1, 2, 3],
    }
    shape = [len(values) for values in coordinates.values()]
    names = ("regret", "reward", "optimal", *(("loss", "spread", "explored") if name == "uci" else ()))
    numbers = np.random.default_rng(0).random(shape).cumsum(axis=-1)
    variables = {variable: (tuple(coordinates), numbers) for variable in names}
    if name == "uci":
        coordinates["action_index"] = [0, 1]
        variables["constant_regret"] = (("environment", "action_index", "seed", "time"), numbers[:, :, 0, 0, 0] + 1)
    coordinates |= {"title": ("environment", list(kinds)), "label": ("agent", list(agents))}
    specs = [
        {"environment": {"name": place, "kind": kind, "options": {}}, "agent": {"name": agent, "kind": agents[agent]}}
        for place, kind in kinds.items()
        for agent in agents
    ]
    told = {"study": name, "study_title": name, "scale": "smoke", "horizon": 3, "seeds": 2}
    return xr.Dataset(variables, coordinates, told | {"specs": json.dumps(specs), "codes": "{}"})


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory) -> Path:
    place = tmp_path_factory.mktemp("spoilt")
    for name, (spoil, _) in SPOILT.items():
        write_dataset(spoil(study("uci")), place / f"{name}.nc")
    write_dataset(study("uci"), place / "uci.nc")
    write_dataset(study("linear"), place / "one agent.nc")
    return place


@pytest.mark.parametrize(("kind", "name"), MADE, ids=[f"{kind}-{name}" for kind, name in MADE])
def test_a_spoilt_dataset(spoilt, refused, kind, name):
    output_ = "o.png" if kind == "figures" else "o.csv"
    for case, (_, message) in SPOILT.items():
        path = spoilt / f"{case}.nc"
        (line,) = refused(kind[:-1], "--name", name, "--dataset", path, output_)
        assert line.startswith(f"{path}: {message}"), case


#: Figures and tables -> what they say of the UCI study, and of linear bandits played by one agent without an ensemble.
UNFIT = {
    "uci": {
        "covariance_spectrum": "needs environments of kind linear_finite or linear_sphere: 'mushroom' is of kind",
        "es_regret": "needs agent 'es': the study has ensemble++, greedy",
        "laws_heatmap": "needs agent 'ts': the study has",
        "minimum_size": "needs environments of kind linear_finite or linear_sphere",
        "excess_by_size": "needs environments of kind linear_finite or linear_sphere",
        "moderation_accuracy": "needs environments of kind moderation: 'mushroom' is of kind classification",
        "parameter_frontier": "needs environments of kind quadratic or vector_quadratic or neural",
        "scalability": "needs environments of kind quadratic or vector_quadratic or neural",
        "step_time": "needs variable 'seconds': in environment 'mushroom' there are constant_regret, explored, loss, optimal,",
        "parameter_counts": "needs environments of kind quadratic or vector_quadratic or neural",
        "regret_bounds": "needs environments of kind linear_finite or linear_sphere",
        "sequential_dependence": "needs environments of kind linear_finite or linear_sphere",
    },
    "one agent": {
        "covariance_spectrum": "needs variable 'tracking_low': in environment 'finite-d50-10000' there are optimal, regret,",
        "laws_ablation": "needs an agent of kind neural_ensemblepp: the study has linear_ts",
        "linear_baselines": "needs an agent with an ensemble: the study has ts",
        "linear_regret": "needs an agent with an ensemble: the study has ts",
        "regret_by_size": "needs an agent with an ensemble: the study has ts",
        "minimum_size": "needs an agent with an ensemble: the study has ts",
        "excess_by_size": "needs an agent with an ensemble: the study has ts",
        "training": "needs variable 'loss'",
        "best_constant": "needs variable 'constant_regret'",
        "paired_regret": "needs two agents to compare: the study has ts",
    },
}


@pytest.mark.parametrize(("of", "name"), [(of, name) for of, said in UNFIT.items() for name in said])
def test_a_dataset_that_does_not_fit(spoilt, refused, of, name):
    path = spoilt / f"{of}.nc"
    for kind in [kind for kind, one in MADE if one == name]:
        output_ = "o.png" if kind == "figures" else "o.csv"
        (line,) = refused(kind[:-1], "--name", name, "--dataset", path, output_)
        assert line.startswith(f"{path}: {kind[:-1]} '{name}' {UNFIT[of][name]}")


# ------------------------------------------------------------------------------------------------------ language models

POSTS = {"text": ("post", ["one post", "another"]), "label": ("post", [0, 1])}

#: What is done to a model's folder -> what is said when it is brought, or when it is to embed.
MODELS = {
    "no configuration": (lambda folder: (folder / "config.json").unlink(), "language-model", "has no config.json; it must be"),
    "no weights": (
        lambda folder: (folder / "model.safetensors").unlink(),
        "language-model",
        "has no *.safetensors; it must be",
    ),
    "no tokenizer": (
        lambda folder: (folder / "tokenizer.json").unlink(),
        "language-model",
        "has no tokenizer.json or tokenizer.",
    ),
    "cut weights": (lambda folder: cut(folder / "model.safetensors"), "embed", "model.safetensors: damaged"),
    "weights of 0 bytes": (
        lambda folder: (folder / "model.safetensors").write_bytes(b""),
        "embed",
        "model.safetensors: damaged",
    ),
    "a cut tokenizer": (lambda folder: cut(folder / "tokenizer.json"), "embed", "tokenizer.json: damaged"),
    "a configuration that is none": (lambda folder: (folder / "config.json").write_text("{"), "embed", "config.json: damaged"),
}


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """A small BERT with random weights, whole."""
    from transformers import BertConfig, BertModel, BertTokenizerFast

    place = tmp_path_factory.mktemp("model")
    (place / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "one", "post"]))
    BertTokenizerFast(str(place / "vocab.txt")).save_pretrained(place)
    (place / "vocab.txt").unlink()
    BertModel(
        BertConfig(vocab_size=7, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8)
    ).save_pretrained(place)
    return place


@pytest.mark.parametrize("case", MODELS)
def test_a_language_model(folder, refused, model, case):
    spoil, command, message = MODELS[case]
    shutil.copytree(model, folder / "model")
    if command == "embed":
        acquire({"source": "folder", "location": "model", "revision": "main"}, folder / "brought")
        shutil.rmtree(folder / "model")
        (folder / "brought").rename(folder / "model")
    spoil(folder / "model")
    if command == "language-model":
        spec_ = {"source": "folder", "location": "model", "pooling": "mean"}
        (folder / "data").mkdir()
        (line,) = refused(command, "--spec", json.dumps(spec_), "--folder", "data/mine")
        assert line.startswith(f"language model model: {message}")
        return
    write_dataset(xr.Dataset(POSTS), folder / "posts.nc")
    options = ("--prepared", "posts.nc", "--folder", "model", "--pooling", "mean", "--max-tokens", 5, "--output", "o.nc")
    (line,) = refused("embed", "--posts", 2, *options)
    assert line.startswith(f"model/{message}")


def test_a_model_that_was_never_whole(folder, refused, model):
    """What was brought as it is, with checksums of its own, and cannot be read all the same."""
    shutil.copytree(model, folder / "model")
    cut(folder / "model/model.safetensors")
    acquire({"source": "folder", "location": "model", "revision": "main"}, folder / "brought")
    write_dataset(xr.Dataset(POSTS), folder / "posts.nc")
    options = ("--prepared", "posts.nc", "--folder", "brought", "--pooling", "mean", "--max-tokens", 5, "--output", "o.nc")
    (line,) = refused("embed", "--posts", 2, *options)
    assert line.startswith("brought: no model can be read (")


# -------------------------------------------------------------------------------------------------------------- targets

#: Targets of Snakemake's command line -> what is said.
TARGETS = {
    "study_linaer": "no rule and no file of that name; studies at scale smoke: study_linear, ",
    "linear": "did you mean 'study_linear'?",
    "uci": "did you mean 'study_uci'?",
    "results/smoke/figures/uci-nonlinear.pdf": "did you mean 'results/smoke/figures/uci-nonlinear_regret.pdf'?",
    "results/quick/datasets/uci.nc": "the scale is 'smoke'; add --config scale=quick",
}
#: Wildcards of a target that a rule would make -> what is said.
WILDCARDS = {
    ("study", "uic"): "study: found 'uic': must be one of linear, ",
    ("dataset", "mushrom"): "did you mean 'mushroom'?",
    ("model", "smollm"): "model: found 'smollm': must be one of ",
    ("environment", "mars"): "environment: found 'mars': must be one of ",
    ("agent", "gredy"): "did you mean 'greedy'?",
    ("ensemble_size", "4"): "ensemble size 4: agent 'greedy' takes 0, since it has no ensemble",
    ("horizon", "0"): "horizon 0: must be at least 1",
    ("horizon", "500000"): "found 500000: environment 'mushroom' supports at most 16248 (8124 rows x 2 pass(es)); lower",
    ("last", "99999999"): "seeds 0-99999999: must be at most 10,000",
}
RUN_FILE = {"environment": "mushroom", "agent": "greedy", "ensemble_size": "0", "horizon": "50", "first": "0", "last": "1"}


@pytest.mark.parametrize(("target", "message"), TARGETS.items())
def test_a_target_that_there_is_not(target, message):
    config = read_files(ROOT, scale="smoke")
    assert message in targets.unknown(config, target, ["all", *(f"study_{name}" for name in ("linear", "uci"))])


@pytest.mark.parametrize(("place", "message"), WILDCARDS.items())
def test_a_target_that_names_what_there_is_not(place, message):
    key, value = place
    wildcards = {key: value} if key not in RUN_FILE else RUN_FILE | {key: value}
    (fault,) = targets.faults_of_wildcards(read_files(ROOT, scale="smoke"), "it", wildcards)
    assert fault.startswith("target 'it': ")
    assert message in fault
    assert not list(targets.faults_of_wildcards(read_files(ROOT, scale="smoke"), "it", RUN_FILE))


# ------------------------------------------------------------------------------------------------------- whole processes


def test_ctrl_c_is_one_line(folder):
    command = [sys.executable, "-m", "ensemblepp", *map(str, SIMULATE[:-4]), "--horizon", "20000000", "--seeds", "0-1"]
    pipes = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    # a shell lets what it runs in the background ignore this signal, and children with it
    with subprocess.Popen(command, **pipes, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as process:
        # what it will take is said just before it starts
        first = process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate()
    assert "of one core" in first
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "error: interrupted"
    assert "Traceback" not in err
    assert not list(folder.rglob("*.nc"))


def test_a_home_that_cannot_be_written_changes_nothing(folder):
    environment = os.environ | {"HOME": "/proc/none", "XDG_CACHE_HOME": "/proc/none", "XDG_CONFIG_HOME": "/proc/none"}
    write_dataset(study("uci"), folder / "d.nc")
    figure = ("figure", "--name", "nonlinear_regret", "--dataset", "d.nc", "o.png")
    for arguments in (SIMULATE, figure):
        command = [sys.executable, "-m", "ensemblepp", *map(str, arguments)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
    assert (folder / "o.png").stat().st_size


def test_the_names_that_there_are(folder, capsys):
    assert main(["list"]) == 0
    shown = capsys.readouterr().out
    assert {"studies", "agents", "environments", "datasets", "laws", "figures", "tables"} <= set(shown.splitlines())
    assert main(["list", "agents"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "agents"
    assert {line.split()[0] for line in lines[1:]} == set(read_files(folder).named_agents)


def test_the_version(capsys):
    with pytest.raises(SystemExit) as leaving:
        main(["--version"])
    assert leaving.value.code == 0
    assert capsys.readouterr().out == f"ensemblepp {version('ensemblepp')}\n"


def test_every_option_is_explained():
    parsers = [make_parser(print)]
    for parser in parsers:
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                parsers += action.choices.values()
            else:
                assert action.help, f"{parser.prog}: {action.dest}"
    assert len(parsers) > 15


def test_a_long_run_says_what_it_will_take(folder, monkeypatch, capsys):
    monkeypatch.setattr(requirements, "LONG", 2000)
    assert main([*map(str, SIMULATE[:-4]), "--horizon", "1000", "--seeds", "0-1"]) == 0
    first = capsys.readouterr().err.splitlines()[0]
    assert re.fullmatch(
        r"finite-d10-100 ts M=0 seeds 0-1: about [\d.]+ minutes of one core, and 0.0 GB of memory at least", first
    )
