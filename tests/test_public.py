"""What `ensemblepp` itself offers: twelve names, loaded when they are asked for."""

from __future__ import annotations

import importlib
import subprocess
import sys

import numpy as np
import pytest

import ensemblepp
from ensemblepp import registry
from ensemblepp.runs.fingerprint import closure
from ensemblepp.testing import check_agent


def test_twelve_names_and_where_they_are():
    assert len(ensemblepp.__all__) == 12
    assert set(ensemblepp.__all__) == set(registry.PUBLIC)
    for name, module in registry.PUBLIC.items():
        assert getattr(ensemblepp, name) is getattr(importlib.import_module(module), name)
        assert getattr(ensemblepp, name).__module__ == module, "where it is defined, not where it is passed on"
    assert set(ensemblepp.__all__) <= set(dir(ensemblepp))


def test_the_package_alone_loads_nothing_heavy():
    code = "import sys, ensemblepp; print({'torch', 'numba', 'numpy', 'pandas', 'xarray', 'pydantic'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_other_names_are_none():
    with pytest.raises(AttributeError, match=r"^module 'ensemblepp' has no attribute 'Bandit'$"):
        _ = ensemblepp.Bandit


def test_a_fingerprint_follows_a_public_name_to_its_module(tmp_path, monkeypatch):
    (tmp_path / "module_of_mine.py").write_text("from ensemblepp import NeuralAgent\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = closure("module_of_mine")
    assert "ensemblepp.agents.neural.base" in found
    assert not {"ensemblepp.engines.choice", "ensemblepp.agents.linear.ensemblepp"} & found


class Derived(ensemblepp.Agent):
    """An agent that says what it is an agent of: to a type checker its base has properties, and when it runs it has none."""

    chains = (("none", "none"),)

    def __init__(self, seeds, **_):
        self.seeds = seeds

    def act(self, decisions):
        return decisions.choose(np.zeros((len(self.seeds), 1), dtype=int))

    def update(self, choice, reward):
        pass


def test_an_agent_may_be_derived_from_the_interface():
    check_agent(Derived)
