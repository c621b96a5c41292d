"""`ensemblepp show`: what an agent or an environment is built with, and where each value is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensemblepp.cli import main
from ensemblepp.config.loading import read_files

ROOT = Path(__file__).resolve().parents[1]


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, list[str]]:
    """The rows that a command prints, by their first word."""
    assert main(["show", *arguments]) == 0
    return {words[0]: words[1:] for words in map(str.split, capsys.readouterr().out.splitlines()) if words}


@pytest.fixture(autouse=True)
def _in_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for library in ("OMP", "OPENBLAS", "MKL", "NUMBA", "NUMEXPR"):
        # `main` sets these for its process
        monkeypatch.setenv(f"{library}_NUM_THREADS", "1")


def test_every_value_of_an_agent_and_where_it_is_written(capsys):
    rows = shown(capsys, "agent", "ensemble++-prior0.1", "--environment", "quadratic")
    assert rows["prior_scale"] == ["0.1", "agents.ensemble++-prior0.1.per_environment.quadratic"]
    assert rows["posterior_scale"] == ["0.1", "protocols.paper.quadratic"]
    assert rows["learning_rate"] == ["0.0001", "default"]
    assert rows["class"] == ["ensemblepp.agents.neural.ensemblepp:NeuralEnsemblePlusPlus"]
    assert rows["device"][0] in ("cpu", "cuda")
    rows = shown(capsys, "agent", "lmcts", "--environment", "mushroom")
    assert rows["temperature"] == ["1e-06", "agents.lmcts.per_environment.mushroom"]
    rows = shown(capsys, "agent", "lmcts", "--environment", "quadratic")
    assert rows["temperature"] == ["0.001", "agents.lmcts"]


def test_a_pair_has_its_own_laws_and_its_agents_values(capsys):
    rows = shown(capsys, "agent", "es", "--environment", "finite-d10-100")
    assert rows["references"] == ['["coordinate"]', "agents.es"]
    assert rows["engine"] == ["linear_compiled"]


def test_every_kind_can_be_shown(capsys):
    config = read_files()
    for agent in {config.agents[name].kind: name for name in config.declared_agents}.values():
        place = "finite-d10-100" if config.plays(agent, "finite-d10-100") else "moderation-minilm-tokens"
        assert "engine" in shown(capsys, "agent", agent, "--environment", place)
    for environment in {environment.kind: name for name, environment in config.environments.items()}.values():
        assert "class" in shown(capsys, "environment", environment)


def test_an_environment(capsys):
    rows = shown(capsys, "environment", "mushroom")
    assert rows["class"] == ["ensemblepp.environments.classification:Classification"]
    assert rows["passes"] == ["2", "environments.mushroom"]
    assert rows["noise"] == ["0.1", "default"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("agent", "nobody", "--environment", "quadratic"), "error: name: found 'nobody': must be one of ts, "),
        (("agent", "ts", "--environment", "nowhere"), "error: --environment: found 'nowhere': must be one of finite-d10-100, "),
        (("environment", "nowhere"), "error: name: found 'nowhere': must be one of finite-d10-100, "),
    ],
)
def test_faults(capsys, arguments, message):
    assert main(["show", *arguments]) == 1
    assert capsys.readouterr().err.startswith(message)
