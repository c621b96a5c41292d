"""What a study would cost, in words: data that are not here, and short runs carried on."""

from __future__ import annotations

from pathlib import Path

import pytest

from ensemblepp.config.loading import read_files
from ensemblepp.runs import costs
from ensemblepp.runs.machine import machine


def settings(request, **changes):
    return read_files(request.config.rootpath, **changes)


def test_absent_data_are_named_and_nothing_is_run(request, tmp_path, monkeypatch):
    read = settings(request, scale="smoke")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(costs, "block_seconds", lambda block: pytest.fail("played a bandit without its data"))
    needs = "needs `data/prepared/mushroom.nc` and 1 more files"
    assert costs.estimate(read, "uci") == costs.measured(read, "uci")["words"] == needs


@pytest.mark.parametrize(
    ("study", "needs"),
    [
        ("moderation", "needs the language model openai-community/gpt2"),
        ("frozen-or-finetuned", "needs the language models openai-community/gpt2 and EleutherAI/pythia-14m"),
        # in a package, so only its files are missing
        ("frozen-or-finetuned-minilm", "needs `data/ceilings/minilm/hate_speech-7500-none.nc` and 3 more files"),
    ],
)
def test_absent_language_models_are_named(request, tmp_path, monkeypatch, study, needs):
    read = settings(request, scale="paper")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(costs, "block_seconds", lambda block: pytest.fail("played a bandit without its posts"))
    assert costs.estimate(read, study) == needs


def test_missing_blocks_add_up_and_finished_ones_do_not_count(request, tmp_path, monkeypatch):
    """Half an hour for every block; blocks of the same size are measured once; what was said is kept for publishing."""
    read = settings(request, scale="paper")
    monkeypatch.chdir(tmp_path)
    blocks, measured = read.blocks("versus-lmcts"), []
    monkeypatch.setattr(costs, "block_seconds", lambda block: measured.append(block.path) or 1800.0)
    assert costs.measured(read, "versus-lmcts") is None
    here = f"measured on {machine()['processor']}"
    words = f"about {len(blocks) / 2:.1f} CPU hours for {len(blocks)} run blocks, {here}"
    assert costs.estimate(read, "versus-lmcts") == costs.measured(read, "versus-lmcts")["words"] == words
    # two blocks of five seeds each
    assert len(measured) == len(blocks) / 2
    for block in blocks:
        (tmp_path / block.path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / block.path).touch()
    assert costs.estimate(read, "versus-lmcts") == "its figures and tables are missing"


def test_what_was_measured_of_other_blocks_is_forgotten(request, tmp_path, monkeypatch):
    """Here as where it was published; of the same ones what was measured here comes first."""
    read = settings(request, scale="paper")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(costs, "block_seconds", lambda block: 36.0)
    costs.estimate(read, "tuning-uci")
    record = costs.measured(read, "tuning-uci")
    earlier = record | {"words": "earlier"}
    assert costs.measured(read, "tuning-uci", {"tuning-uci": earlier}) == record
    Path("more.yaml").write_text("environments: {mushroom: {noise: 0.25}}")
    changed = settings(request, scale="paper", merged=["more.yaml"])
    assert costs.measured(changed, "tuning-uci", {"tuning-uci": earlier}) is None
    assert costs.measured(read, "versus-lmcts", {"versus-lmcts": earlier}) is None
    Path("logs/paper/costs.json").unlink()
    assert costs.measured(read, "tuning-uci", {"tuning-uci": earlier}) == earlier


@pytest.mark.parametrize(
    ("environment", "agent", "expected"),
    [("quadratic", "greedy", 101.0), ("quadratic-x10000", "lmcts", 10_101.0), ("quadratic", "lmcts", 111 + 9000 * 0.21)],
)
def test_short_runs_are_carried_on(request, monkeypatch, environment, agent, expected):
    """1 + t / 100 is carried on as a line; with (t / 100)^2 more, as a parabola to the last new action, then as its tangent."""
    block = settings(request).block(environment, agent, 0, 10_000, 0, 4)
    degree = 2 if agent == "lmcts" else 1
    monkeypatch.setattr(costs, "_seconds", lambda block, rounds: sum((rounds / 100) ** power for power in range(degree + 1)))
    assert costs.block_seconds(block) == pytest.approx(expected, rel=1e-6)


def test_noise_that_bends_down_is_no_gain(request, monkeypatch):
    """Rounds that get longer took -183 s by a parabola through 4.1, 7.6 and 9.4 s; 2,000 of them took 210 s."""
    block = settings(request).block("quadratic-x10000", "lmcts", 0, 2000, 0, 1)
    noisy = dict(zip((10, *costs.LONGER), (0.8, 4.1, 9.4, 16.0), strict=True))
    monkeypatch.setattr(costs, "_seconds", lambda block, rounds: noisy[rounds])
    assert costs.block_seconds(block) == pytest.approx(16.0 * 2000 / 800, rel=0.1)


def test_a_short_block_is_simply_measured(request):
    seconds = costs.block_seconds(settings(request).block("quadratic", "greedy", 0, 40, 0, 1))
    assert 0 < seconds < 20


def test_settings_that_cost_the_same_are_measured_once(request, tmp_path, monkeypatch):
    """Of 331 agents that tuning plays, one for each kind and number of gradient steps."""
    read = settings(request, scale="paper")
    monkeypatch.chdir(tmp_path)
    blocks, measured = read.blocks("tuning-vector-quadratic"), []
    monkeypatch.setattr(costs, "block_seconds", lambda block: measured.append(block.spec["agent"]) or 36.0)
    words = f"about {len(blocks) / 100:.1f} CPU hours for {len(blocks)} run blocks, measured on "
    assert costs.estimate(read, "tuning-vector-quadratic").startswith(words)
    steps = [(agent["kind"], agent["options"]["gradient_steps"]) for agent in measured]
    assert len(steps) == len(set(steps)) == 11 * 3
    assert len(blocks) == 11 + 10 * 32 + 8
