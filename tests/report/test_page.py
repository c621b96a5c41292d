"""The page as a file: names, links, numbers, escaping, equal bytes, and errors that name what is wrong."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ensemblepp.cli import main
from ensemblepp.errors import ResultError
from ensemblepp.report import FILES, digest
from ensemblepp.report.page import anchor, number, save


class Parsed(HTMLParser):
    """All elements with their attributes, and the text of each heading."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.text = ""
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if re.fullmatch("h[1-6]", tag):
            self.text += "\n# "

    def handle_data(self, data):
        self.text += data

    def all(self, tag: str) -> list[dict]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def parsed(page) -> Parsed:
    return Parsed(page)


def test_every_exhibit_stands_under_its_own_name(parsed):
    heads = re.findall(r"\n# (Figure \w+|Table \w+)", parsed.text)
    assert heads[:2] == ["Figure 2", "Figure 2a"]
    assert [head for head in heads if head not in ("Figure 2", "Figure 2a")] == ["Figure 5", "Figure 21", "Table 1"]
    assert "Not here: Figure 2b (later-one): not run" in parsed.text
    assert "A drawing in the paper" in parsed.text


def test_a_figure_is_embedded_once(parsed):
    assert len(parsed.all("img")) == 3
    assert all(image["src"].startswith("data:image/png;base64,") and image["alt"] for image in parsed.all("img"))


def test_every_link_leads_somewhere(page, parsed):
    ids = [attributes["id"] for _, attributes in parsed.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    targets = [link["href"] for link in parsed.all("a")]
    assert {"figures/small-one.pdf", "datasets/small.nc", "tables/small-two.csv", "report.html"} <= set(targets)
    for target in targets:
        assert target[1:] in ids if target.startswith("#") else (page.parent / target).is_file(), target


def test_the_ledger_comes_first_with_a_jump_to_its_figure(parsed):
    assert parsed.text.index("# Claims") < parsed.text.index("# Figures and tables")
    assert {"href": f"#{anchor('small-one')}"} in parsed.all("a")
    rows = [attributes["id"] for attributes in parsed.all("tr") if "id" in attributes]
    # what a figure shows, in the paper's order, before what none does
    assert rows == [anchor("claim-lower"), anchor("claim-computed")]
    text = re.sub(r"\s+", " ", parsed.text)
    assert re.search(r"rule and evidence .+ holds 0\.3\d\d \[0\.\d+, 0\.\d+\] 25 seeds not run", text)
    assert "protocol tuned: 1 not run" in text


def test_nothing_of_a_users_is_html(page, parsed):
    assert [attributes for attributes in parsed.all("script") if attributes] == [{"type": "application/json", "id": "curves"}]
    assert len(parsed.all("script")) == 2
    assert not any(name.startswith("on") for _, attributes in parsed.elements for name in attributes)
    assert "{{ 7*7 }}" in parsed.text
    assert page.read_text("utf-8").count("<title>") == 1


def test_nothing_is_loaded(page, parsed):
    text = page.read_text("utf-8")
    assert not re.search(r"(src|href)\s*=\s*[\"']?(https?:)?//", text)
    assert not re.search(r"@import|url\(", "".join(re.findall(r"<style>(.*?)</style>", text, re.S)))
    (policy,) = [meta["content"] for meta in parsed.all("meta") if meta.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; img-src data:;")
    assert "unsafe" not in policy


def test_cells_are_for_reading(page):
    rows = re.findall(r"<tr><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td></tr>", page.read_text("utf-8"))
    assert [row[1:] for row in rows] == [("1235", "10"), ("-", "9"), ("0.000123", "1000")]
    assert rows[0][0] == "b"


def test_equal_files_give_equal_bytes(made, page):
    """Whatever the order of keys, which a command line sorts."""
    plan, path = made()
    save(dict(reversed(plan.items())) | {"absent": dict(reversed(plan["absent"].items()))}, path)
    again = path.read_text("utf-8").replace(str(path.parent), str(page.parent))
    assert again == page.read_text("utf-8")


@pytest.mark.parametrize(
    ("value", "shown"), [(None, "-"), (float("nan"), "-"), (0.12345, "0.123"), (12.0, "12"), (1234.5, "1,234"), (-0.5, "-0.5")]
)
def test_numbers(value, shown):
    assert number(value) == shown


@pytest.mark.parametrize(
    ("lost", "message"),
    [
        ("figures/small-one.png", "cannot be read as a picture"),
        ("tables/small-two.csv", "cannot be read as a table"),
        ("datasets/small.nc", "small.nc"),
        ("claims/ledger.json", "ledger.json"),
        ("one.rst", "not a caption"),
    ],
)
@pytest.mark.parametrize("damage", ["missing", "damaged"])
def test_what_is_missing_or_damaged_is_named_and_no_page_is_left(made, lost, message, damage):
    plan, path = made()
    file = path.parent / lost
    file.unlink() if damage == "missing" else file.write_bytes(b"\xff\xfe{% bad")
    with pytest.raises(ResultError, match=re.escape(message)):
        save(plan, path)
    assert not path.exists()


def test_without_claims_and_report(made):
    plan, path = made()
    save(plan | {"ledger": None, "report": None}, path)
    text = Parsed(path).text
    assert "There is no ledger of claims" in text
    assert "Snakemake's report" not in text


def test_the_command_is_the_same(made):
    plan, path = made()
    save(plan, path)
    assert main(["page", "--plan", json.dumps(plan), "--output", str(path.with_name("other.html"))]) == 0
    assert path.with_name("other.html").read_bytes() == path.read_bytes()


def test_the_digest_sees_every_file_that_is_no_python(tmp_path, monkeypatch):
    before = digest()
    assert {path.name for path in FILES.iterdir()} >= {"page.html", "page.css", "page.js", "uPlot.LICENSE"}
    caption = tmp_path / "one.rst"
    caption.write_text("a")
    with_caption = digest([caption])
    caption.write_text("b")
    assert len({before, with_caption, digest([caption])}) == 3
