"""A user's own posts: the example of docs/moderation.md by the real MiniLM, and every fault before anything takes long."""

from __future__ import annotations

import csv
import importlib.util
import json
import math
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ensemblepp import cli, moderate
from ensemblepp.analysis import outcome
from ensemblepp.cli import moderating
from ensemblepp.environments.moderation import Moderation
from ensemblepp.runs import comparison, decisions, moderation_page, own_posts
from ensemblepp.runs.block import build
from ensemblepp.runs.moderate import AGENTS, PAGE, TABLE
from ensemblepp.specification import Block
from ensemblepp.storage.datasets import read_dataset

DOCS = Path(__file__).resolve().parents[2] / "docs"
MESSAGES = DOCS / "messages.csv"
COLUMNS = {"text": "message", "label": "advertising"}
WORDS = ("block", "publish")


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def found(folder):
    return moderate(MESSAGES, **COLUMNS, folder=folder, seeds=2, progress=False, device="cpu", workers=1)


@pytest.fixture(scope="module")
def block(found, folder) -> Block:
    (spec,) = [spec for spec in specs(found) if spec["agent"]["name"] == "ensemble++-text"]
    return Block(folder.as_posix(), spec)


def specs(found) -> list[dict]:
    return json.loads(found.dataset.attrs["specs"])


def rows() -> list[dict[str, str]]:
    with MESSAGES.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_example_is_what_its_script_makes(tmp_path):
    loaded = importlib.util.spec_from_file_location("messages_of_docs", DOCS / "messages.py")
    module = importlib.util.module_from_spec(loaded)
    loaded.loader.exec_module(module)
    module.write(tmp_path / "messages.csv")
    assert (tmp_path / "messages.csv").read_bytes() == MESSAGES.read_bytes()


def test_every_post_is_decided_once_for_each_agent_and_order(found):
    given = rows()
    for _, mine in found.decisions.groupby(["agent", "seed"]):
        assert sorted(mine["row"]) == list(range(len(given)))
        assert list(mine["round"]) == list(range(1, len(given) + 1))
    labels = [int(given[row]["advertising"] == "yes") for row in found.decisions["row"]]
    assert list(found.decisions["label"]) == labels
    assert found.texts == {row: entry["message"] for row, entry in enumerate(given)}
    assert not found.decisions.query("seed == 0")["row"].head(20).equals(found.decisions.query("seed == 1")["row"].head(20))


def test_agents_play_by_the_protocol_of_moderation(found):
    for spec in specs(found):
        assert spec["agent"]["options"]["learning_rate"] == 3e-4
        assert spec["agent"]["options"]["hidden"] == []
        assert spec["engine"] == "neural_compiled"


def test_the_summary_counts_the_decisions(found):
    """Sums of regret against a count of the rows, by another way."""
    for _, row in found.summary.iterrows():
        mine = found.decisions[found.decisions["agent"] == row["who"]]
        if mine.empty:
            continue
        published, bad = mine["decision"] == "publish", mine["label"] == 1
        assert row["accuracy"] == pytest.approx((published != bad).mean(), abs=1e-6)
        late = mine[mine["round"] > found.after]
        assert row["accuracy, second half"] == pytest.approx(
            ((late["decision"] == "publish") != (late["label"] == 1)).mean(), abs=1e-6
        )
        assert row["published"] == pytest.approx(published.sum() / 2, abs=1e-3)
        assert row["blocked by mistake"] == pytest.approx((~published & ~bad).sum() / 2, abs=1e-3)
        assert row["published by mistake"] == pytest.approx((published & bad).sum() / 2, abs=1e-3)
    accuracy = found.summary.set_index("who")["accuracy"]
    assert accuracy["best constant action"] == pytest.approx(0.5)
    assert accuracy["supervised fit"] > 0.95


def test_what_an_agent_thought_is_by_its_formula(found, block):
    """Values <x, b>; the spread of their difference |A^T x_1 - A^T x_0|; its doubt by 40,000 vectors zeta on the sphere.

    From the parameters of an agent that is played by hand.
    """
    zeta = np.random.default_rng(1).standard_normal((40_000, 8))
    zeta *= math.sqrt(8) / np.linalg.norm(zeta, axis=1, keepdims=True)
    environment, agent = build(block.spec)
    mine = found.decisions[found.decisions["agent"] == "Ensemble++ (tuned)"].set_index(["seed", "round"])
    chosen = read_dataset(block.path)["action"].isel(reference=0, perturbation=0).values
    for round_ in range(1, 161):
        offered = environment.decisions()
        if round_ in (1, 24, 160):
            base = agent.parameters["base"].detach().double().numpy()[..., -1]
            members = agent.ensemble().detach().double().numpy()
            for seed in range(2):
                row, x = mine.loc[seed, round_], offered.features[seed].astype(float)
                values, rows = x @ base[seed], x @ members[seed]
                assert row["block value"] == pytest.approx(values[0], abs=1e-4)
                assert row["publish value"] == pytest.approx(values[1], abs=1e-4)
                assert row["spread"] == pytest.approx(np.linalg.norm(rows[1] - rows[0]), rel=1e-3)
                action = chosen[seed, round_ - 1]
                sampled = (values + zeta @ rows.T) @ (np.eye(2)[1 - action] - np.eye(2)[action])
                assert row["doubt"] == pytest.approx((sampled > 0).mean(), abs=0.012)
                assert row["decision"] == WORDS[action]
                assert row["row"] == found_row(environment, seed, found)
        choice = agent.act(offered)
        np.testing.assert_array_equal(choice.index[:, 0], chosen[:, round_ - 1])
        agent.update(choice, environment.step(choice).reward)


def found_row(environment: Moderation, seed: int, found) -> int:
    """The row of the post that a round shows: posts lie in the order of their data set."""
    post = int(environment.offers()[seed, 0]) // 2
    ordered = own_posts.read(MESSAGES, threshold=None, **COLUMNS)
    return rows().index(next(entry for entry in rows() if entry["message"] == ordered.text[post]))


def test_greedy_has_no_doubt(found, tmp_path):
    """It says so: in the table by a word that pandas reads as missing, on the page by a sentence."""
    mine = found.decisions["agent"] == "Greedy (tuned)"
    assert found.decisions[mine][["spread", "doubt"]].isna().all(axis=None)
    assert found.decisions[~mine][["spread", "doubt"]].notna().all(axis=None)
    found.write(tmp_path)
    lines = (tmp_path / TABLE).read_text().splitlines()
    assert [line.endswith(",None,None") for line in lines[1:]] == list(mine)
    assert pd.read_csv(tmp_path / TABLE)["doubt"].isna().equals(mine)
    page = (tmp_path / PAGE).read_text()
    assert "Of Greedy (tuned) there is no doubt to tell, as it draws nothing" in page
    alone = moderation_page.page(found.about, found.summary, found.handed_over, found.decisions[mine], found.texts, found.words)
    posts = alone[alone.index("most uncertain posts</h2>") :]
    assert "There is no doubt to tell" in posts
    assert "doubt 0" not in posts
    assert "nan" not in posts


def test_a_short_stream_begins_to_learn_after_a_tenth(found):
    """240 posts: after 24, not after the protocol's 128; and it is said whether that was enough."""
    assert [spec["agent"]["options"]["warm_up"] for spec in specs(found)] == [24, 24]
    late = found.summary.set_index("who")["regret, second half"]
    assert late["Ensemble++ (tuned)"] < late["best constant action"]
    assert late["Greedy (tuned)"] < late["best constant action"]
    assert found.about["learning"] == (
        "agents begin after 24 posts; Ensemble++ (tuned) and Greedy (tuned) did better than the best constant action in the "
        "second half"
    )


def test_a_stream_that_teaches_nothing_is_said_to_be_short():
    rows = [("A", 5.0), ("B", 7.0), (outcome.FLOOR, 6.0), (outcome.CEILING, 1.0)]
    summary = pd.DataFrame(rows, columns=["who", "regret, second half"])
    assert outcome.learnt(summary) == (
        "A did better than the best constant action in the second half; B did no better than the best constant action in the "
        "second half: the stream may be too short to learn from"
    )


def test_a_person_who_decides_all_is_always_right(found):
    late = found.decisions[found.decisions["round"] > found.after]
    for _, row in found.handed_over.iterrows():
        mine = late[late["agent"] == row["agent"]]
        shares = row.drop("agent").astype(float)
        assert shares["0%"] == pytest.approx(mine["right"].mean())
        assert (np.diff(shares) >= 0).all()
    closest = late[late["agent"] == "Ensemble++ (tuned)"].copy()
    closest["far"] = (closest["doubt"] - 0.5).abs()
    rest = closest.sort_values("far", kind="stable").iloc[round(0.1 * len(closest)) :]
    expected = 1 - (~rest["right"]).sum() / len(closest)
    assert found.handed_over.set_index("agent").loc["Ensemble++ (tuned)", "10%"] == pytest.approx(expected)


def test_a_second_call_makes_nothing_and_says_the_same(found, folder, monkeypatch):
    for module, name in ((own_posts, "acquire"), (own_posts, "embed_posts"), (comparison, "_job"), (decisions, "build")):
        monkeypatch.setattr(module, name, refuse)
    again = moderate(MESSAGES, **COLUMNS, folder=folder, seeds=2, progress=False, device="cpu")
    pd.testing.assert_frame_equal(again.decisions, found.decisions)
    pd.testing.assert_frame_equal(again.summary, found.summary)


def refuse(*_: object, **__: object) -> None:
    raise AssertionError("made again")


def test_an_interrupted_call_goes_on(found, folder, monkeypatch):
    """Another order of the posts, killed between its runs and its decisions."""
    monkeypatch.setattr(own_posts, "embed_posts", refuse)
    with monkeypatch.context() as patched:
        patched.setattr(decisions, "build", interrupt)
        with pytest.raises(KeyboardInterrupt):
            moderate(MESSAGES, **COLUMNS, folder=folder, seeds=[7], agents=["greedy-text"], progress=False, device="cpu")
    monkeypatch.setattr(comparison, "_job", refuse)
    again = moderate(MESSAGES, **COLUMNS, folder=folder, seeds=[7], agents=["greedy-text"], progress=False, device="cpu")
    assert set(again.decisions["seed"]) == {7}


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_reviews(folder, found):
    review = moderate(
        MESSAGES, **COLUMNS, folder=folder, actions="remove_or_review", agents=["greedy-text"], progress=False, device="cpu"
    )
    greedy = review.summary.iloc[0]
    reviewed = review.decisions["decision"] == "review"
    assert greedy["reviewed"] == pytest.approx(reviewed.sum(), abs=1e-3)
    assert greedy["accuracy"] == pytest.approx((reviewed | (review.decisions["label"] == 1)).mean(), abs=1e-6)
    assert greedy["accuracy"] == pytest.approx(review.decisions["right"].mean(), abs=1e-6)


# ------------------------------------------------------------------------------------------------------------ the page


def test_the_page_hides_and_escapes_posts(found):
    hostile = '<script>alert(1)</script> & "quoted" </blockquote> https://example.org/a.png'
    texts = dict.fromkeys(found.texts, hostile)
    page = moderation_page.page(
        {"file": "<b>mine</b>.csv"}, found.summary, found.handed_over, found.decisions, texts, found.words
    )
    assert "<script" not in page
    assert "<b>mine" not in page
    assert page.count("&lt;script&gt;") == moderation_page.SHOWN
    outside = re.sub(r"<details>.*?</details>", "", page, flags=re.DOTALL)
    assert "alert" not in outside
    assert "<details open" not in page
    assert not re.search(r"(src|href)=|url\(|@import", outside)
    assert "default-src 'none'" in page


def test_counts_are_no_shares():
    table = pd.DataFrame([{"who": "x", "accuracy": 0.5, "published": 1.0, "blocked by mistake": -4e-6, "10%": 1.0}])
    assert re.findall(r"<td>(.*?)</td>", moderation_page._table(table)) == ["x", "50.0%", "1", "0", "100.0%"]


# ---------------------------------------------------------------------------------------------------- the command line


def test_the_command_of_the_page_writes_what_python_does(found, folder, tmp_path, capsys, monkeypatch):
    """As it stands on the page, on embeddings that are there; one order of the posts, which is the first of two."""
    (code,) = re.findall(r"^```bash\n(.*?)^```", (DOCS / "moderation.md").read_text(), re.MULTILINE | re.DOTALL)
    python, *arguments = shlex.split(code)
    assert (python, *arguments[:3]) == ("python", "-m", "ensemblepp", "moderate")
    made = tmp_path / "messages-moderation"
    shutil.copytree(folder, made / "work", ignore=lambda *_: ["runs"])
    (tmp_path / "docs").symlink_to(DOCS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(own_posts, "embed_posts", refuse)
    assert cli.main(arguments[2:]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[1].startswith("Ensemble++ (tuned)")
    assert printed[-3].startswith("agents begin after 24 posts; ")
    assert printed[-2:] == [f"messages-moderation/{TABLE}", f"messages-moderation/{PAGE}"]
    written, first = pd.read_csv(made / TABLE), found.decisions[found.decisions["seed"] == 0].reset_index(drop=True)
    assert list(written.columns) == list(first.columns)
    assert written["decision"].equals(first["decision"])
    np.testing.assert_allclose(written["doubt"], first["doubt"], rtol=1e-4, atol=1e-5)
    assert len(re.findall("<details>", (made / PAGE).read_text())) == moderation_page.SHOWN
    assert cli.main(arguments[2:]) == 1
    assert re.fullmatch(r"error: --output: '.*decisions.csv' exists: .*\n", capsys.readouterr().err)


def test_what_is_odd_but_no_fault_is_played(folder, tmp_path):
    """JSON lines with scores: a text of 5,000 words, one that is there four times under both labels, line breaks, emoji."""
    texts = [f"message {place} about {'rakes' if place % 2 else 'loans'}" for place in range(20)]
    entries = [
        *((text, place % 2) for place, text in enumerate(texts)),
        (" ".join(["rake"] * 5000), 0.9),
        ("a\nb \U0001f600", 0.1),
    ]
    entries += [("the same", score) for score in (0.9, 0.8, 0.7, 0.0)]
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps({"text": text, "score": score}) + "\n" for text, score in entries))
    odd = moderate(
        path, text="text", label="score", threshold=0.5, agents=["greedy-text"], folder=folder, progress=False, device="cpu"
    )
    assert sorted(odd.decisions["row"]) == list(range(23))
    assert odd.decisions.set_index("row").loc[[20, 21, 22], "label"].tolist() == [1, 0, 1]
    assert odd.about["posts"].startswith("23, 12 of them to be blocked; 3 rows left out")
    assert odd.about["posts"].endswith("; 1 posts had both labels")
    assert np.isfinite(odd.decisions[["block value", "publish value"]]).all(axis=None)
    assert odd.about["learning"].startswith("agents begin after 2 posts; ")


def test_the_command_and_python_compare_the_same_agents():
    assert moderating.AGENTS == AGENTS
