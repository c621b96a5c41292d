"""Tables of the user's in the configuration: what they resolve to, and the line that every fault gives."""

from __future__ import annotations

import pytest
from small_configuration import faults, small

from ensemblepp.config.loading import load
from ensemblepp.runs.availability import left_out

DATASETS = "config/environments.yaml: datasets"
WINE = {"kind": "classification", "title": "Wine", "dataset": "wine"}


@pytest.fixture(autouse=True)
def _table(tmp_path, monkeypatch):
    """wine.csv in the working directory: 40 rows."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wine.csv").write_text("acid,colour,kind\n" + "1,red,a\n2,white,b\n" * 20)


def with_wine(table: dict | None = None, **changes: object) -> dict:
    """The small configuration with a table, and a study that plays it for 40 rounds at scale quick."""
    declared = {"file": "wine.csv", "label": "kind"} | (table or {})
    study = {"environments": ["wine"], "horizon": 40, "seeds": 1}
    values = {"datasets": {"wine": declared}, "environments/wine": dict(WINE), "studies/deep/scales/quick": study}
    return small(**values | changes)


def test_an_environment_plays_the_prepared_table():
    config = load(with_wine({"nominal": ["acid"], "missing": "category"}, **{"environments/wine/scaling": "standardise"}))
    (block,) = {tuple(block.inputs): block for block in config.blocks("deep")}.values()
    assert block.inputs == ["data/prepared/wine.nc"]
    assert block.spec["environment"]["options"]["scaling"] == "standardise"
    declared = {"label": "kind", "features": None, "nominal": ["acid"], "missing": "category"}
    assert config.datasets["wine"].declared() == declared


def test_a_table_is_never_looked_for_elsewhere():
    assert left_out(load(with_wine())) == {}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"file": "wine.txt"}, "wine.file: found 'wine.txt': must end in .csv, .csv.gz, .parquet, .jsonl, .jsonl.gz"),
        ({"file": "vine.csv"}, "wine: vine.csv: no such file"),
        ({"label": "sort"}, "wine: wine.csv, line 1: no column 'sort' (found acid, colour, kind)"),
        ({"features": ["acid", "age"]}, "wine: wine.csv, line 1: no column 'age' (found acid, colour, kind)"),
        ({"features": ["acid", "kind"]}, "wine: features: must not list 'kind', which is the label"),
        ({"nominal": ["acid", "acid"]}, "wine: nominal: each name only once"),
        ({"features": ["acid"], "nominal": ["colour"]}, "wine: nominal: 'colour' is not one of the features"),
        ({"missing": "drop"}, "wine.missing: found 'drop': input should be 'error' or 'category'"),
        ({"colour": "red"}, "wine.colour: unknown key; config/README.md lists the keys"),
    ],
)
def test_a_fault_is_one_exact_line(table, words):
    assert faults(with_wine(table)) == [f"{DATASETS}.{words}"]


def test_a_table_has_a_name_of_its_own():
    values = with_wine(
        datasets={"mushroom": {"file": "wine.csv", "label": "kind"}}, **{"environments/wine/dataset": "mushroom"}
    )
    assert faults(values) == [f"{DATASETS}.mushroom: there is a data set of this name already"]


@pytest.mark.parametrize("name", ["vine", "hate_speech"])
def test_an_environment_names_a_data_set_that_there_is(name):
    where = "config/environments.yaml: environments.wine.dataset"
    meant = "; did you mean 'wine'?" if name == "vine" else ""
    assert faults(with_wine(**{"environments/wine/dataset": name})) == [
        f"{where}: found '{name}': must be one of mushroom, shuttle, wine{meant}"
    ]


def test_a_horizon_beyond_the_rows_is_refused():
    (fault,) = faults(with_wine(**{"studies/deep/scales/quick/horizon": 41}))
    assert fault.startswith(
        "config/studies.yaml: studies.deep.scales.quick.horizon: found 41: environment 'wine' supports at most 40"
    )


# ----------------------------------------------------------------------------------------------------------------- posts

POSTS = {"kind": "posts", "file": "posts.csv", "text": "body", "label": "bad"}


def with_posts(**changes: object) -> dict:
    """The small configuration with posts of the user's, and a study that plays them."""
    place = {"kind": "moderation", "title": "Mine", "dataset": "mine", "language_model": "tiny", "posts": 30}
    study = {"environments": ["own"], "horizon": 30, "seeds": 1}
    values = {"datasets": {"mine": dict(POSTS)}, "environments/own": place, "studies/deep/scales/quick": study}
    return small(**values | changes)


@pytest.fixture
def _posts(tmp_path):
    (tmp_path / "posts.csv").write_text("body,bad\n" + "x,yes\ny,no\n" * 20)


@pytest.mark.usefixtures("_posts")
def test_an_environment_plays_posts_of_ones_own():
    config = load(with_posts())
    (block,) = {tuple(block.inputs): block for block in config.blocks("deep")}.values()
    assert block.inputs == ["data/embeddings/tiny/mine-30.nc", "data/ceilings/tiny/mine-30-none.nc"]
    declared = {"text": "body", "label": "bad", "threshold": None, "duplicates": "merge"}
    assert config.datasets["mine"].declared() == declared
    assert config.published("mine") is None


@pytest.mark.usefixtures("_posts")
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"datasets/mine/label": "worse"}, f"{DATASETS}.mine: posts.csv, line 1: no column 'worse' (found body, bad)"),
        ({"datasets/mine/label": "body"}, f"{DATASETS}.mine: label: found 'body', which is the column of the texts"),
        ({"datasets/mine/duplicates": "drop"}, f"{DATASETS}.mine.duplicates: found 'drop': input should be 'merge' or 'keep'"),
        (
            {"datasets/mine/kind": "post"},
            f"{DATASETS}.mine.kind: found 'post': input should be 'table', 'posts', 'hate_speech'",
        ),
        (
            {"environments/own/dataset": "mime"},
            "config/environments.yaml: environments.own.dataset: found 'mime': must be one of hate_speech, davidson, "
            "hatecheck, mine; did you mean 'mine'?",
        ),
        (
            {"environments/mushroom/dataset": "mine"},
            "config/environments.yaml: environments.mushroom.dataset: found 'mine': must be one of mushroom, shuttle",
        ),
        (
            {"environments/own/posts": 41},
            "config/environments.yaml: environments.own.posts: found 41: the source that serves this data set has 40 posts",
        ),
    ],
)
def test_a_fault_of_posts_is_one_exact_line(changes, words):
    assert faults(with_posts(**changes)) == [words]


def test_measuring_hate_speech_read_in_another_way(monkeypatch):
    """Its raw files are those of the published one, and all annotations are more than the posts."""
    monkeypatch.delenv("ENSEMBLEPP_MIRROR", raising=False)
    values = with_posts(
        datasets={"mine": {"kind": "hate_speech", "posts": "annotations"}}, **{"environments/own/posts": 100_000}
    )
    config = load(values)
    assert config.published("mine") == "hate_speech"
    assert config.datasets["mine"].declared() == {"posts": "annotations", "threshold": None}
    (fault,) = faults(values | {"datasets": {"mine": {"kind": "hate_speech"}}})
    assert fault.endswith("posts: found 100000: the source that serves this data set has 39565 posts")
