"""What all models share."""

from __future__ import annotations

from ensemblepp.config.fields import canonical_json


def test_canonical_json_is_equal_for_equal_values():
    assert canonical_json({"b": [1, 2.5], "a": None}) == canonical_json({"a": None, "b": [1, 2.5]}) == '{"a":null,"b":[1,2.5]}'
