"""How two specifications differ, in words."""

from __future__ import annotations

from ensemblepp.runs.differences import differences


def test_every_value_that_changed_and_no_other():
    before = {"agent": {"name": "ts", "options": {"noise": 0.1, "laws": ["cube", "sphere"], "old": None}}, "horizon": 9}
    now = {"agent": {"name": "ts", "options": {"noise": 0.2, "laws": ["cube", "sparse"], "new": True}}, "horizon": 9}
    assert list(differences(before, now)) == [
        "agent.options.noise: was 0.1, is 0.2",
        'agent.options.laws.1: was "sphere", is "sparse"',
        "agent.options.old: was null, is not there any more",
        "agent.options.new: is true, was not there",
    ]
    assert list(differences(before, before)) == []


def test_lists_of_other_lengths_and_other_types_are_shown_whole_but_not_at_length():
    assert list(differences({"seeds": [0, 1]}, {"seeds": [0]})) == ["seeds: was [0, 1], is [0]"]
    (line,) = differences({"seeds": list(range(100))}, {"seeds": {"first": 0}})
    assert line.startswith("seeds: was [0, 1, 2, ")
    assert line.endswith('..., is {"first": 0}')
    assert len(line) < 120
