"""Captions become text and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensemblepp.errors import ResultError
from ensemblepp.report import captions

#: All but what stands at the head of Snakemake's report, and what texts of a user's stand in.
CAPTIONS = [
    path for path in sorted(Path(__file__).parents[2].glob("workflow/report/*.rst")) if path.stem not in ("workflow", "own")
]


def written(tmp_path: Path, text: str) -> str:
    (tmp_path / "one.rst").write_text(text)
    return captions.html(str(tmp_path / "one.rst"), {"seeds": 3, "own": {}})


def test_fields_and_stress(tmp_path):
    assert written(tmp_path, "Over {{ snakemake.params.seeds }} seeds, *ours*.") == "<p>Over 3 seeds, <em>ours</em>.</p>"


def test_what_is_not_known_or_not_allowed_is_left_empty(tmp_path):
    assert written(tmp_path, "A{{ snakemake.wildcards.study }}b{{ ''.__class__.__mro__ }}c") == "<p>Abc</p>"


def test_a_text_is_taken_as_it_is():
    assert captions.html("*less* <b> {{ 7*7 }}", {}) == "<p>*less* &lt;b&gt; {{ 7*7 }}</p>"


@pytest.mark.parametrize(
    "text",
    [
        ".. image:: https://example.com/a.png",
        ".. raw:: html\n\n   <script>1</script>",
        ".. include:: /etc/hostname",
        "`here <https://example.com>`_",
        "`here <javascript:alert(1)>`_",
        "https://example.com",
        "*unfinished",
        ".. _place:\n\nText of place_.",
    ],
)
def test_nothing_but_text_comes_through(tmp_path, text):
    html = written(tmp_path, f"Before.\n\n{text}\n\nAfter.")
    assert html.startswith("<p>Before.</p>")
    assert html.endswith("<p>After.</p>")
    for part in ("<a", "<img", "<script", "href", "src=", "javascript", "system-message"):
        assert part not in html


def test_no_class_or_id_of_the_pages_own(tmp_path):
    assert written(tmp_path, ".. class:: explore\n\nText.\n\nHead\n====\n\nMore.").count("class=") == 0


@pytest.mark.parametrize("text", ["{{ snakemake.params.seeds", "{% bad %}"])
def test_a_template_that_is_none_is_named(tmp_path, text):
    with pytest.raises(ResultError, match=r"one\.rst: not a caption"):
        written(tmp_path, text)


def test_a_missing_file_is_named():
    with pytest.raises(ResultError, match=r"nowhere\.rst: not a caption"):
        captions.html("nowhere.rst", {})


@pytest.mark.parametrize("path", CAPTIONS, ids=lambda path: path.stem)
def test_every_caption_of_the_workflow(path):
    params = {"seeds": 3, "horizon": 10, "own": {}}
    assert captions.html(str(path), params).startswith("<p>")
