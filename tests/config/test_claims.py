"""config/claims.yaml: one line per fault, every claim and exhibit of the paper, and names that exist."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import get_args

import pytest
from small_configuration import faults, small

from ensemblepp.claims.formulas import QUANTITIES
from ensemblepp.claims.ledger import COMPUTED, ESTIMATED
from ensemblepp.claims.measures import MEASURES
from ensemblepp.config import claims
from ensemblepp.config.fields import canonical_json
from ensemblepp.config.loading import load, read_files
from ensemblepp.runs.ledger import plan

ROOT = Path(__file__).resolve().parents[2]
PAPER = ROOT.parent / "shared/paper/ensemble-plus-plus.tex"
SHIPPED = read_files(ROOT, scale="paper")

CLAIM = {
    "sentence": "Ours has less regret.",
    "place": "Section 5",
    "rule": {"statistic": "ratio", "at_most": 1},
    "contradicted_by": "surely more regret",
    "evidence": {
        "paper": {"study": "curves", "of": [{"agent": "linear"}], "against": [{"agent": "ts"}], "horizon": 20, "seeds": 3}
    },
}
WHERE = "config/claims.yaml: claims.less"
EVIDENCE = "claims/less/evidence/paper"


def claimed(**changes: object) -> dict:
    return small(claims={"less": copy.deepcopy(CLAIM)}, exhibits={}, **changes)


def test_a_claim_has_defaults():
    claim = load(claimed()).claims["less"]
    assert claim.evidence["paper"].sizes == [8]
    assert claim.rule.measure == "regret"


def test_a_study_that_is_not_there_is_no_fault():
    load(claimed(**{f"{EVIDENCE}/study": "later", f"{EVIDENCE}/environments": ["nowhere"]}))


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"claims/less/rule": {"statistic": "ratio"}}, ".rule: at_least or at_most: must be given"),
        (
            {"claims/less/rule": {"statistic": "ratio", "at_least": 2, "at_most": 1}},
            ".rule: at_least: found 2: must be below at_most, 1",
        ),
        ({"claims/less/rule/statistic": "guess"}, ".rule.statistic: found 'guess': input should be"),
        ({"claims/less/rule": {"at_most": 1}}, ".rule.statistic: field required"),
        ({"claims/less/rule/quarter": 2}, ".rule.quarter: unknown key; config/README.md lists the keys"),
        ({"claims/less/rule/at_most": "one"}, ".rule.at_most: found 'one': input should be a valid number"),
        ({f"{EVIDENCE}/against": []}, ".evidence.paper.against: field required"),
        (
            {"claims/less/rule": {"statistic": "slopes", "at_most": 1}},
            ".evidence.paper.against: 'slopes' compares with nothing",
        ),
        ({f"{EVIDENCE}/of": [{"agent": "linear", "references": ["cube"]}]}, ".evidence.paper.agent 'linear': references and"),
        (
            {f"{EVIDENCE}/of": [{"agent": "linear", "references": ["cubes"], "perturbations": ["cube"]}]},
            ".evidence.paper.references: found 'cubes': must be one of gaussian",
        ),
        ({"claims/less/evidence": {}}, ".evidence: field required: the runs that decide the claim"),
        ({"claims/less/exhibits": ["fig:none"]}, ".exhibits: found 'fig:none': must be one of exhibits:"),
        ({f"{EVIDENCE}/horizon": None}, ".evidence.paper.horizon: field required"),
        (
            {
                "claims/less/rule": {"statistic": "across", "at_most": 2},
                f"{EVIDENCE}/against": [],
                f"{EVIDENCE}/environments": ["line"],
            },
            ".evidence.paper.environments: found ['line']: must be two at least",
        ),
        (
            {"claims/less/rule": {"statistic": "constant", "quantity": "optimism"}, "claims/less/evidence": {}},
            ".rule: law: field required for quantity 'optimism'",
        ),
        (
            {"claims/less/rule": {"statistic": "constant", "quantity": "optimism", "law": "cube"}},
            ".evidence: is computed: give none",
        ),
    ],
)
def test_faults_are_one_line(changes, fault):
    values = claimed()
    for path, value in changes.items():
        *parents, last = path.split("/")
        place = values
        for parent in parents:
            place = place[parent]
        place[last] = value
        if value is None:
            del place[last]
    (found,) = faults(values)
    assert found.startswith(f"{WHERE}{fault}")


def test_an_exhibit_shows_something_or_says_why_not():
    values = small(exhibits={"fig:none": {"name": "Figure 1", "shows": "nothing"}})
    (found,) = faults(values)
    assert found.startswith("config/claims.yaml: exhibits.fig:none: names no figure or table")


# --------------------------------------------------------------------------------------------------------- as shipped


def test_the_vocabulary_is_what_is_implemented():
    kinds = {get_args(model.model_fields["statistic"].annotation)[0]: model for model in get_args(get_args(claims.Rule)[0])}
    assert kinds.keys() == ESTIMATED.keys() | COMPUTED.keys()
    assert set(get_args(claims.Constant.model_fields["quantity"].annotation)) == set(QUANTITIES)
    assert set(get_args(claims.Measure)) == set(MEASURES)


#: Claims about an agent that a study leaves out for its cost, which the ledger says.
NOT_PLAYED = {"lower-mushroom-lmcts", "lower-shuttle-lmcts"}


def test_claims_name_what_their_studies_have():
    for name, claim in SHIPPED.claims.items():
        for protocol, evidence in claim.evidence.items():
            study = SHIPPED.studies[evidence.study]
            grid = study.scales["paper"]
            arms = (*evidence.of, *evidence.against)
            lacking = {arm.agent for arm in arms} - set(study.agents)
            assert lacking == ({"lmcts-tuned"} if name in NOT_PLAYED and protocol == "tuned" else set()), name
            assert {*evidence.environments, *(arm.environment for arm in arms if arm.environment)} <= set(grid.environments), (
                name
            )
            sizes = {arm.size or size for arm in (*evidence.of, *evidence.against) for size in evidence.sizes}
            assert sizes <= set(grid.ensemble_sizes), name
            assert evidence.horizon == grid.horizon, name
            if protocol in ("released-code", "tuned"):
                assert len(grid.seed_list()) >= evidence.seeds, name


def test_every_figure_and_table_of_the_paper_has_its_target():
    """Nineteen figures and five tables, by the labels in the paper's source; in its order, so that numbers are the paper's."""
    if not PAPER.exists():
        pytest.skip("the paper's source is not there")
    text = "\n".join(line.split("%")[0] for line in PAPER.read_text().splitlines())
    labels = re.findall(r"\\label\{((?:fig|tab):[^}]+)\}", text)
    figures, tables = ([label for label in labels if label.startswith(kind)] for kind in ("fig:", "tab:"))
    assert (len(figures), len(tables)) == (19, 5)
    assert list(SHIPPED.exhibits) == [*figures, *tables]
    names = [exhibit.name for exhibit in SHIPPED.exhibits.values()]
    assert names == [*(f"Figure {place}" for place in range(1, 20)), *(f"Table {place}" for place in range(1, 6))]
    made = {kind: {f"{study}-{name}" for study, one in SHIPPED.studies.items() for name in getattr(one, kind)} for kind in MADE}
    for label, exhibit in SHIPPED.exhibits.items():
        for kind in MADE:
            assert set(getattr(exhibit, kind)) <= made[kind], label
    # graphs of what depends on what, drawn in the source itself
    drawn = [label for label, exhibit in SHIPPED.exhibits.items() if exhibit.drawing and not exhibit.figures]
    assert drawn == ["fig:dependence-graph-incre", "fig:dependence-graph-ensemble"]
    for label in drawn:
        assert "tikzpicture" in text[: text.index(f"\\label{{{label}}}")].rsplit(r"\begin{figure}", 1)[1]


MADE = ("figures", "tables")


def test_every_exhibit_that_is_measured_is_behind_a_claim():
    shown = {label for claim in SHIPPED.claims.values() for label in claim.exhibits}
    measured = {label for label, exhibit in SHIPPED.exhibits.items() if not exhibit.drawing}
    assert measured - shown == set()


def test_places_are_in_the_paper():
    """What a place quotes stands in the paper's source."""
    if not PAPER.exists():
        pytest.skip("the paper's source is not there")
    text = re.sub(r"[\\{}$~]|emph|textbf", "", PAPER.read_text()).replace("``", '"').replace("''", '"')
    text = re.sub(r"\s+", " ", text)
    quoted = {words for claim in SHIPPED.claims.values() for words in re.findall(r'"([^"]+)"', claim.place)}
    assert [words for words in sorted(quoted) if words not in text and words not in KNOWN_BY_ANOTHER_NAME] == []


#: What the source has as a cross-reference.
KNOWN_BY_ANOTHER_NAME = {"Good prediction of Theorem 4.2"}


def test_the_plan_fits_on_a_command_line():
    """Linux takes 128 KiB for one argument, and a shell's command is one."""
    assert len(canonical_json(plan(SHIPPED, {}))) < 110_000
