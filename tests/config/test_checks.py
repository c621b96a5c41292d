"""Every fault is one line before any job exists: file, key, value and what is allowed."""

from __future__ import annotations

import json

import pytest
from small_configuration import AGENTS, BALL, ENVIRONMENTS, LINUCB, STUDIES, faults, small

from ensemblepp.config.checks import presentable
from ensemblepp.config.loading import load
from ensemblepp.errors import ConfigError

LAWS = "gaussian, sphere, cube, coordinate, sparse, sparse-3, sparse-4, ..."
PERTURBATIONS = f"{LAWS}, raw_gaussian"
SEEDS = "must be a number of at least 1, or a list of whole numbers, each only once"
QUICK = f"{STUDIES}.curves.scales.quick"


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        ("horizont", 3, "config/config.yaml: horizont: unknown key; config/README.md lists the keys"),
        ("scale", "huge", "config/config.yaml: scale: found 'huge': input should be 'smoke', 'quick' or 'paper'"),
        ("device", "tpu", "config/config.yaml: device: found 'tpu': input should be 'auto', 'cpu' or 'cuda'"),
        ("linear_device", "auto", "config/config.yaml: linear_device: found 'auto': input should be 'cpu' or 'cuda'"),
        ("mirror", "nowhere", "config/config.yaml: mirror: found 'nowhere': not a folder"),
        ("agents", [], "config/agents.yaml: agents: found []: input should be a valid dictionary"),
        # environments
        (
            "environments/line/colour",
            "red",
            f"{ENVIRONMENTS}.line.colour: unknown key; config/README.md lists the keys",
        ),
        (
            "environments/line/kind",
            "round",
            f"{ENVIRONMENTS}.line.kind: found 'round': input should be 'linear_finite', 'linear_sphere', 'quadratic', "
            "'vector_quadratic', 'neural', 'classification', 'moderation', 'moderation_tokens', 'custom'",
        ),
        ("environments/line/kind", None, f"{ENVIRONMENTS}.line.kind: field required"),
        ("environments/line/actions", None, f"{ENVIRONMENTS}.line.actions: field required"),
        (
            "environments/line/dimension",
            1025,
            f"{ENVIRONMENTS}.line.dimension: found 1025: input should be less than or equal to 1024",
        ),
        ("environments/line/noise", -0.5, f"{ENVIRONMENTS}.line.noise: found -0.5: input should be greater than or equal to 0"),
        ("environments/line/noise", float("inf"), f"{ENVIRONMENTS}.line.noise: found inf: input should be a finite number"),
        (
            "environments/line/features",
            "ball",
            f"{ENVIRONMENTS}.line.features: found 'ball': input should be 'cube' or 'sphere'",
        ),
        (
            "environments/ball",
            {"kind": "linear_sphere", "title": "Ball", "dimension": 4, "actions": 5},
            f"{ENVIRONMENTS}.ball.actions: unknown key; config/README.md lists the keys",
        ),
        (
            "environments/posts/language_model",
            "bert",
            f"{ENVIRONMENTS}.posts.language_model: found 'bert': must be one of language_models: tiny",
        ),
        (
            "language_models/tiny/source",
            "web",
            "config/environments.yaml: language_models.tiny.source: found 'web': input should be 'hub', 'package' or 'folder'",
        ),
        # agents
        ("agents/ts/depth", 2, f"{AGENTS}.ts.depth: unknown key; config/README.md lists the keys"),
        (
            "agents/ts/kind",
            "ucb",
            f"{AGENTS}.ts.kind: found 'ucb': input should be "
            "'linear_ts', 'linear_ensemblepp', 'pair', 'ensemble_sampling', 'rrls', 'linear_greedy', 'linear_ucb', 'greedy', "
            "'epsilon_greedy', 'neural_ensemblepp', 'ensembleplus', 'bootstrap', 'epinet', 'lmcts', 'neural_ucb', 'neural_ts', "
            "'neural_linear', 'dropout', 'text_greedy', 'text_ensemblepp', 'text_ensembleplus', 'custom'",
        ),
        (
            "agents/linear/references",
            ["gaussian", "cauchy"],
            f"{AGENTS}.linear.references.1: found 'cauchy': must be one of {LAWS}",
        ),
        (
            "agents/linear/perturbations",
            [],
            f"{AGENTS}.linear.perturbations: found []: list should have at least 1 item after validation, not 0",
        ),
        (
            "agents/linear/references",
            ["raw_gaussian"],
            f"{AGENTS}.linear.references.0: found 'raw_gaussian': must be one of {LAWS}",
        ),
        (
            "agents/linear/perturbations",
            ["cauchy"],
            f"{AGENTS}.linear.perturbations.0: found 'cauchy': must be one of {PERTURBATIONS}",
        ),
        ("agents/ts/inflation_delta", 1.0, f"{AGENTS}.ts.inflation_delta: found 1.0: input should be less than 1"),
        ("agents/ts/inflation_delta", 0, f"{AGENTS}.ts.inflation_delta: found 0: input should be greater than 0"),
        ("agents/ts/prior_variance", 0, f"{AGENTS}.ts.prior_variance: found 0: input should be greater than 0"),
        (
            "agents/ts/precision",
            "half",
            f"{AGENTS}.ts.precision: found 'half': input should be 'auto', 'mixed' or 'float64'",
        ),
        (
            "agents/ts/exact_subspace",
            True,
            f"{AGENTS}.ts.exact_subspace: unknown key; config/README.md lists the keys",
        ),
        (
            "agents/ucb",
            {"kind": "linear_ucb", "label": "LinUCB", "width": 0},
            f"{AGENTS}.ucb.width: found 0: input should be greater than 0",
        ),
        # pairs
        (
            "agents/es",
            {"kind": "pair", "label": "ES", "of": "lineal", "reference": "gaussian", "perturbation": "cube"},
            f"{AGENTS}.es.of: found 'lineal': must be an agent of kind linear_ensemblepp: linear",
        ),
        (
            "agents/es",
            {"kind": "pair", "label": "ES", "of": "ts", "reference": "gaussian", "perturbation": "cube"},
            f"{AGENTS}.es.of: found 'ts': must be an agent of kind linear_ensemblepp: linear",
        ),
        (
            "agents/es",
            {"kind": "pair", "label": "ES", "of": "es", "reference": "gaussian", "perturbation": "cube"},
            f"{AGENTS}.es.of: found 'es': must be an agent of kind linear_ensemblepp: linear",
        ),
        (
            "agents/es",
            {"kind": "pair", "label": "ES", "of": "linear", "reference": "coordinate", "perturbation": "cube"},
            f"{AGENTS}.es.reference: found 'coordinate': agent 'linear' runs gaussian",
        ),
        (
            "agents/es",
            {"kind": "pair", "label": "ES", "of": "linear", "reference": "gaussian", "perturbation": "sparse"},
            f"{AGENTS}.es.perturbation: found 'sparse': agent 'linear' runs sphere, cube",
        ),
        (
            "agents/es",
            {"kind": "pair", "label": "ES", "of": "linear", "reference": "gaussian", "perturbation": "cauchy"},
            f"{AGENTS}.es.perturbation: found 'cauchy': agent 'linear' runs sphere, cube",
        ),
        (
            "agents/es",
            {"kind": "pair", "label": "ES", "reference": "gaussian", "perturbation": "cube"},
            f"{AGENTS}.es.of: field required",
        ),
        ("agents/neural/references", ["cauchy"], f"{AGENTS}.neural.references.0: found 'cauchy': must be one of {LAWS}"),
        ("agents/neural/update", "cauchy", f"{AGENTS}.neural.update: found 'cauchy': must be one of {LAWS}"),
        ("agents/greedy/hidden", [64, 0], f"{AGENTS}.greedy.hidden.1: found 0: input should be greater than or equal to 1"),
        (
            "agents/neural/per_environment/mars",
            {"warm_up": 1},
            f"{AGENTS}.neural.per_environment: found 'mars': must be the name or kind of an environment",
        ),
        (
            "agents/neural/per_environment/mushroom/gradient_steps",
            0,
            f"{AGENTS}.neural.per_environment.mushroom.gradient_steps: found 0: input should be greater than or equal to 1",
        ),
        (
            "agents/neural/per_environment/mushroom/steps",
            3,
            f"{AGENTS}.neural.per_environment.mushroom.steps: unknown key; config/README.md lists the keys",
        ),
        # studies
        ("studies/curves/colour", "red", f"{STUDIES}.curves.colour: unknown key; config/README.md lists the keys"),
        (
            "studies/curves/agents",
            ["ts", "ucb"],
            f"{STUDIES}.curves.agents: found 'ucb': must be one of ts, linear, neural, greedy",
        ),
        ("studies/curves/agents", ["ts", "ts"], f"{STUDIES}.curves.agents: found ['ts', 'ts']: each name only once"),
        (
            "studies/curves/agents",
            [],
            f"{STUDIES}.curves.agents: found []: list should have at least 1 item after validation, not 0",
        ),
        (
            "studies/curves/figures",
            ["pie"],
            f"{STUDIES}.curves.figures: found 'pie': must be one of {', '.join(presentable('figures'))}",
        ),
        (
            "studies/curves/figures",
            ["style"],
            f"{STUDIES}.curves.figures: found 'style': must be one of {', '.join(presentable('figures'))}",
        ),
        (
            "studies/curves/tables",
            ["a.b"],
            f"{STUDIES}.curves.tables: found 'a.b': must be one of {', '.join(presentable('tables'))}",
        ),
        (
            "studies/curves/scales/huge",
            {"environments": ["line"], "horizon": 5, "seeds": 1},
            f"{STUDIES}.curves.scales.huge: found 'huge': input should be 'smoke', 'quick' or 'paper'",
        ),
        ("studies/curves/scales/quick/rounds", 3, f"{QUICK}.rounds: unknown key; config/README.md lists the keys"),
        ("studies/curves/scales/quick/horizon", None, f"{QUICK}.horizon: field required"),
        ("studies/curves/scales/quick/horizon", 0, f"{QUICK}.horizon: found 0: input should be greater than or equal to 1"),
        (
            "studies/curves/scales/quick/environments",
            ["mars"],
            f"{QUICK}.environments: found 'mars': must be one of line, mushroom, posts",
        ),
        (
            "studies/curves/scales/smoke/environments",
            ["mars"],
            f"{STUDIES}.curves.scales.smoke.environments: found 'mars': must be one of line, mushroom, posts",
        ),
        (
            "studies/curves/scales/quick/ensemble_sizes",
            [2, 0],
            f"{QUICK}.ensemble_sizes.1: found 0: input should be greater than or equal to 1",
        ),
        (
            "studies/curves/scales/quick/ensemble_sizes",
            [1025],
            f"{QUICK}.ensemble_sizes.0: found 1025: input should be less than or equal to 1024",
        ),
        (
            "studies/curves/scales/quick/ensemble_sizes",
            [2, 2],
            f"{QUICK}.ensemble_sizes: found [2, 2]: each size only once",
        ),
        (
            "studies/curves/scales/quick/seeds_per_block",
            0,
            f"{QUICK}.seeds_per_block: found 0: input should be greater than or equal to 1",
        ),
        *[
            ("studies/curves/scales/quick/seeds", seeds, f"{QUICK}.seeds: found {seeds!r}: {SEEDS}")
            for seeds in (0, -1, [], [1, 1], [-1, 0], [0.5], "ten", True)
        ],
    ],
)
def test_a_fault_is_one_line_naming_file_key_value_and_what_is_allowed(path, value, line):
    assert faults(small(**{path: value})) == [line]


@pytest.mark.parametrize(
    ("key", "file"),
    [
        ("environments", "environments"),
        ("language_models", "environments"),
        ("agents", "agents"),
        ("studies", "studies"),
    ],
)
@pytest.mark.parametrize("name", ["Bad", "two words", "a_b", "a/b", "-a", ""])
def test_a_name_that_no_path_can_hold(key, file, name):
    values = small()
    values[key][name] = next(iter(values[key].values()))
    allowed = "a name has lower-case letters, digits, '+', '-' and '.' only"
    assert faults(values) == [f"config/{file}.yaml: {key}.{name}: {allowed}"]


def test_several_faults_are_several_lines():
    assert faults(small(device="tpu", **{"agents/ts/depth": 2, "studies/curves/scales/quick/seeds": 0})) == [
        "config/config.yaml: device: found 'tpu': input should be 'auto', 'cpu' or 'cuda'",
        f"{AGENTS}.ts.depth: unknown key; config/README.md lists the keys",
        f"{QUICK}.seeds: found 0: {SEEDS}",
    ]
    assert faults(
        small(mirror="nowhere", **{"studies/curves/agents": ["ucb"], "environments/posts/language_model": "bert"})
    ) == [
        f"{ENVIRONMENTS}.posts.language_model: found 'bert': must be one of language_models: tiny",
        f"{STUDIES}.curves.agents: found 'ucb': must be one of ts, linear, neural, greedy",
        "config/config.yaml: mirror: found 'nowhere': not a folder",
    ]


def test_the_variable_is_named_where_it_is_at_fault(monkeypatch, tmp_path):
    monkeypatch.setenv("ENSEMBLEPP_MIRROR", "/nowhere")
    assert faults(small(mirror=str(tmp_path))) == ["ENSEMBLEPP_MIRROR: found '/nowhere': not a folder"]


# --------------------------------------------------------------------------------------------- horizons and data


def test_mushroom_shows_8124_rows_per_pass():
    horizon = "studies/deep/scales/quick/horizon"
    only_mushroom = {"studies/deep/scales/quick/environments": ["mushroom"]}
    assert faults(small(**only_mushroom, **{horizon: 10_000})) == [
        f"{STUDIES}.deep.scales.quick.horizon: found 10000: environment 'mushroom' supports at most 8124 "
        "(8124 rows x 1 pass(es)); lower the horizon or raise environments.mushroom.passes"
    ]
    load(small(**only_mushroom, **{horizon: 8124}))
    load(small(**only_mushroom, **{horizon: 10_000, "environments/mushroom/passes": 2}))


def test_a_horizon_beyond_the_posts_of_the_stream():
    horizon = "studies/deep/scales/quick/horizon"
    load(small(**{horizon: 1200}))
    assert faults(small(**{horizon: 1201})) == [
        f"{STUDIES}.deep.scales.quick.horizon: found 1201: environment 'posts' supports at most 1200 "
        "(1200 rows x 1 pass(es)); lower the horizon or raise environments.posts.passes"
    ]
    load(small(**{horizon: 2400, "environments/posts/passes": 2}))


@pytest.mark.parametrize(
    ("file", "content", "posts"),
    [
        (None, b"", 39_565),
        ("hatespeech/measuring-hate-speech.parquet", b"PAR1", 39_565),
        ("mhs_unique_comments.csv.gz", b"\x1f\x8b", 15_628),
    ],
)
def test_more_posts_than_the_source_has(tmp_path, monkeypatch, file, content, posts):
    if file:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_bytes(content)
    monkeypatch.setenv("ENSEMBLEPP_MIRROR", str(tmp_path))
    load(small(**{"environments/posts/posts": posts}))
    assert faults(small(**{"environments/posts/posts": posts + 1})) == [
        f"{ENVIRONMENTS}.posts.posts: found {posts + 1}: the source that serves this data set has {posts} posts"
    ]


def test_horizons_are_checked_at_the_present_scale_only():
    grid = {"environments": ["mushroom"], "horizon": 10_000, "seeds": 1}
    values = small(**{"studies/deep/scales/paper": grid})
    load(values)
    assert len(faults(values | {"scale": "paper"})) == 1


@pytest.mark.parametrize("scale", ["smoke", "quick", "paper"])
def test_linucb_on_a_sphere_is_a_fault_at_every_scale(scale):
    changes = {"agents/bound": LINUCB, "environments/ball": BALL, "studies/curves/agents": ["ts", "bound"]}
    values = small(**changes, **{"studies/curves/figures": []})
    load(values)
    values["studies"]["curves"]["scales"][scale] = {"environments": ["line", "ball"], "horizon": 5, "seeds": 1}
    place = f"{STUDIES}.curves.scales.{scale}.environments"
    assert faults(values) == [f"{place}: found 'ball': agent 'bound' needs a finite decision set"]
    load(values | {"studies": values["studies"] | {"curves": values["studies"]["curves"] | {"agents": ["ts"]}}})


def test_more_actions_on_offer_than_there_are_is_a_fault():
    values = small(**{"environments/line": {"kind": "quadratic", "title": "Q", "candidates": 20, "offered": 21}})
    with pytest.raises(ConfigError, match=r"environments\.line: offered is 21: cannot be more than the 20 candidates"):
        load(values)


# --------------------------------------------------------------------------------------------------------- protocols

PROTOCOLS = {
    "paper": {
        "classification": {"gradient_steps": 5, "prior_scale": 0.5, "batch_size": 64},
        "mushroom": {"batch_size": 32},
    }
}


def with_protocol() -> dict:
    values = small(**{"agents/neural/protocol": "paper", "agents/greedy/protocol": "paper"})
    return values | {"protocols": json.loads(json.dumps(PROTOCOLS))}


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        ("agents/neural/protocol", "mine", "agents.neural.protocol: found 'mine': must be one of protocols: paper"),
        ("protocols/paper/moon", {}, "protocols.paper: found 'moon': must be the name or kind of an environment"),
        ("protocols/paper/mushroom/speed", 3, "protocols.paper.mushroom.speed: unknown key; agents have "),
        (
            "protocols/paper/mushroom/batch_size",
            0,
            "protocols.paper.mushroom.batch_size: found 0: input should be",
        ),
        (
            "protocols/paper/mushroom/loss",
            "hinge",
            "protocols.paper.mushroom.loss: found 'hinge': input should be 'squared'",
        ),
    ],
)
def test_a_fault_of_a_protocol_is_one_line(path, value, line):
    values = with_protocol()
    *parents, last = path.split("/")
    place = values
    for parent in parents:
        place = place[parent]
    place[last] = value
    with pytest.raises(ConfigError) as caught:
        load(values)
    lines = str(caught.value).splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(f"config/agents.yaml: {line}")
