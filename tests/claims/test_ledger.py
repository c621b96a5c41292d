"""The ledger: a row for each claim and protocol, reasons for what was not run, equal bytes, and four formats."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from synthetic_studies import evidence, rule, study

from ensemblepp.analysis import published
from ensemblepp.claims import writing
from ensemblepp.claims.ledger import COMPUTED, ESTIMATED, decide, in_words
from ensemblepp.cli import main
from ensemblepp.errors import ResultError
from ensemblepp.runs.fingerprint import closure
from ensemblepp.storage.datasets import read_json, write_dataset

NOISE = np.random.default_rng(0).normal(0, 1, (3, 12))


def claim(stated: dict, protocols: dict, **others: object) -> dict:
    words = {
        "sentence": "Ours has less regret.",
        "place": "Section 5",
        "contradicted_by": "more regret",
        "exhibits": ["fig:one"],
    }
    return words | {"rule": stated, "evidence": protocols} | others


@pytest.fixture
def plan(tmp_path) -> dict:
    """Four claims: one that holds, one that fails with fewer seeds than asked for, one not run, one computed."""
    runs = {("bowl", "ours", 8): 50 + NOISE[0], ("bowl", "theirs", 8): 100 + NOISE[1]}
    write_dataset(study(runs), tmp_path / "small.nc")
    at_most = rule("ratio", at_most=1.0)
    return {
        "scale": "smoke",
        "level": 0.05,
        "minimum_seeds": 5,
        "datasets": {"small": str(tmp_path / "small.nc")},
        "absent": {"later": "there is no study 'later' in config/studies.yaml yet"},
        "exhibits": {"fig:one": {"name": "Figure 1", "files": ["results/smoke/figures/small-one.png"]}},
        "claims": {
            "lower": claim(
                at_most, {"paper": evidence(["ours"], ["theirs"]), "tuned": evidence(["ours"], ["theirs"], study="later")}
            ),
            "higher": claim(at_most, {"paper": evidence(["theirs"], ["ours"], seeds=200, horizon=1000)}),
            "elsewhere": claim(at_most, {"paper": evidence(["ours"], ["third"])}),
            "factor": claim(
                rule("constant", quantity="sequential_factor", law=None, sizes=[8], printed=320, epsilon=0.25), {}, exhibits=[]
            ),
        },
    }


def test_rows_by_hand(plan):
    ledger = decide(plan)
    rows = {(row["claim"], row["protocol"]): row for row in ledger["rows"]}
    assert {key: row["verdict"] for key, row in rows.items()} == {
        ("lower", "paper"): "holds",
        ("lower", "tuned"): "not run",
        ("higher", "paper"): "fails",
        ("elsewhere", "paper"): "not run",
        ("factor", "any"): "holds",
    }
    lower = rows["lower", "paper"]
    assert lower["effect"] == pytest.approx(0.5, abs=0.01)
    assert lower["low"] < lower["effect"] < lower["high"] < 1
    assert (lower["seeds"], lower["horizon"], lower["as_declared"]) == (12, 100, True)
    # three claims of this protocol, of which one was not run, each twice
    assert lower["p_holds_adjusted"] == pytest.approx(6 * lower["p_holds"])
    assert lower["p_fails"] == 1
    assert lower["files"] == ["results/smoke/figures/small-one.png"]
    assert lower["parts"][0]["seeds_below"] == 12
    higher = rows["higher", "paper"]
    assert higher["short"] == ["100 rounds, not 1,000", "12 seeds, not 200"]
    assert not higher["as_declared"]
    assert rows["lower", "tuned"]["reason"] == "there is no study 'later' in config/studies.yaml yet"
    assert rows["elsewhere", "paper"]["reason"] == "study 'small' has no agent 'third' at this scale"
    for row in (rows["lower", "tuned"], rows["elsewhere", "paper"]):
        assert [row[key] for key in ("effect", "low", "high", "seeds", "p_holds", "p_holds_adjusted")] == [None] * 6
    assert rows["factor", "any"]["effect"] == 320
    assert ledger["counts"]["paper"] == {"holds": 1, "fails": 1, "undecided": 0, "not run": 1}


def test_fewer_seeds_than_the_least_decide_nothing(plan):
    rows = decide(plan | {"minimum_seeds": 13})["rows"]
    assert rows[0]["verdict"] == "undecided"
    assert rows[0]["reason"] == "12 seeds: nothing is decided by fewer than 13"
    assert rows[0]["p_holds"] is None
    assert rows[0]["effect"] == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("small", [0, published.SMALL])
def test_a_published_study_decides_what_its_runs_decide(tmp_path, monkeypatch, plan, small):
    """But for slopes where no single seeds are published: their stand-ins have the right mean and error, and no more."""
    monkeypatch.setattr(published, "SMALL", small)
    runs = {("bowl", "ours", 8): 50 + NOISE[0], ("bowl", "theirs", 8): 100 + NOISE[1]}
    full = study(runs, study_title="Small", scale="smoke", seeds=12, codes="{}")
    write_dataset(full, tmp_path / "small.nc")
    write_dataset(published.summary(full), tmp_path / "published.nc")
    growth = claim(rule("slopes", at_most=0.9), {"paper": evidence(["ours"])})
    plan["claims"] |= {"growth": growth}
    rows, found = (
        {(row["claim"], row["protocol"]): row for row in decide(plan | {"datasets": {"small": str(tmp_path / name)}})["rows"]}
        for name in ("small.nc", "published.nc")
    )
    sloped = ("growth", "paper")
    if small:
        assert found == rows
    assert rows[sloped]["verdict"] == "fails"
    if not small:
        assert found[sloped]["reason"] == "study 'small' is published without single seeds before the end"
        for name in ("lower", "higher"):
            for key in ("verdict", "effect", "low", "high", "p_holds", "p_fails", "seeds", "horizon"):
                assert found[name, "paper"][key] == rows[name, "paper"][key]


def test_a_file_without_regret_is_of_another_kind(plan, tmp_path):
    write_dataset(study({("bowl", "ours", 8): 50 + NOISE[0]}).drop_vars("regret"), tmp_path / "small.nc")
    with pytest.raises(ResultError, match=r"small\.nc: a file of another kind \(there is no 'regret' in it\)"):
        decide(plan)


def test_a_damaged_dataset_is_no_missing_one(plan, tmp_path):
    content = bytearray((tmp_path / "small.nc").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "small.nc").write_bytes(content)
    with pytest.raises(ResultError, match=r"small\.nc: "):
        decide(plan)


def test_four_formats_say_the_same_and_equal_plans_give_equal_bytes(plan, tmp_path):
    for folder in ("first", "second"):
        writing.save(plan, [tmp_path / folder / f"ledger.{suffix}" for suffix in writing.SUFFIXES])
    files = {suffix: (tmp_path / "first" / f"ledger.{suffix}").read_text() for suffix in writing.SUFFIXES}
    for suffix, text in files.items():
        assert (tmp_path / "second" / f"ledger.{suffix}").read_text() == text
    ledger = read_json(tmp_path / "first/ledger.json")
    assert ledger == json.loads(json.dumps(decide(plan)))
    table = pd.read_csv(tmp_path / "first/ledger.csv")
    assert table["verdict"].tolist() == [row["verdict"] for row in ledger["rows"]]
    assert table["effect"].dropna().tolist() == [row["effect"] for row in ledger["rows"] if row["effect"] is not None]
    assert "| higher | paper | fails * | " in files["md"]
    assert "* protocol paper: 1 holds, 1 fails, 1 not run" in files["md"]
    assert "* Not run: there is no study 'later' in config/studies.yaml yet." in files["md"]
    assert "Short of the rule: 100 rounds, not 1,000; 12 seeds, not 200." in files["md"]
    assert files["tex"].count("toprule") == 1
    assert files["tex"].count(r"\\") == 6


def test_links_are_relative_to_the_page(plan):
    ledger = decide(plan)
    assert "[small-one.png](../figures/small-one.png)" in writing.markdown(ledger, "results/smoke/claims")


def test_every_statistic_is_told_in_words():
    for statistic in (*ESTIMATED, *COMPUTED):
        stated = rule(statistic, at_least=0.5, growing="dimension", size_rule="two-sided", quantity="optimism")
        assert in_words(stated).endswith("at least 0.5") == (statistic in ESTIMATED)


def test_the_command_of_the_rule_writes_what_the_function_writes(plan, tmp_path, capsys):
    outputs = [str(tmp_path / f"ledger.{suffix}") for suffix in writing.SUFFIXES]
    assert main(["claims", "--plan", json.dumps(plan), "--output", *outputs]) == 0
    writing.save(plan, [tmp_path / f"again.{suffix}" for suffix in writing.SUFFIXES])
    for suffix in ("csv", "json", "tex"):
        assert (tmp_path / f"ledger.{suffix}").read_bytes() == (tmp_path / f"again.{suffix}").read_bytes()
    assert main(["claims", "--plan", json.dumps(plan)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split() == ["claim", "protocol", "verdict", "effect", "rule", "seeds", "adjusted", "p"]
    assert printed[-1] == "protocol any: 1 holds"


def test_the_ledgers_code_is_all_that_decides_and_no_configuration():
    modules = closure(*writing.CODE)
    assert {"ensemblepp.claims.verdicts", "ensemblepp.claims.frontier", "ensemblepp.analysis.estimates"} <= modules
    assert not [module for module in modules if module.startswith(("ensemblepp.config", "ensemblepp.runs"))]
