"""The configuration: every fault is one line before any job exists; studies resolve to exactly the blocks they declare."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ensemblepp.config.checks import CONFIG_FILES, presentable
from ensemblepp.config.fields import canonical_json
from ensemblepp.config.loading import load, read_files
from ensemblepp.config.resolution import Config
from ensemblepp.config.studies import SCALES, Grid
from ensemblepp.errors import ConfigError

ROOT = Path(__file__).resolve().parents[1]

SMALL = """
scale: quick
environments:
  line: {kind: linear_finite, title: Line, dimension: 20, actions: 5}
  mushroom: {kind: classification, title: Mushroom, dataset: mushroom}
  posts: {kind: moderation, title: Posts, language_model: tiny, posts: 1200}
language_models:
  tiny: {source: folder, location: models/tiny, pooling: last}
agents:
  ts: {kind: linear_ts, label: TS}
  linear: {kind: linear_ensemblepp, label: Ensemble++, references: [gaussian], perturbations: [sphere, cube]}
  neural:
    kind: neural_ensemblepp
    label: Ensemble++
    per_environment:
      classification: {gradient_steps: 50, hidden: [8]}
      mushroom: {gradient_steps: 7}
  greedy: {kind: greedy, label: Greedy}
studies:
  curves:
    title: Curves
    agents: [ts, linear]
    figures: [linear_regret]
    tables: [final_regret]
    scales:
      smoke: {environments: [line], horizon: 5, seeds: 1}
      quick: {environments: [line], horizon: 20, seeds: 3, ensemble_sizes: [2, 4], seeds_per_block: 2}
  deep:
    title: Deep
    agents: [neural, greedy]
    scales:
      quick: {environments: [mushroom, posts], horizon: 30, seeds: [0, 5]}
"""


@pytest.fixture(autouse=True)
def _no_mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ENSEMBLEPP_MIRROR", raising=False)


def small(**changes: object) -> dict:
    """SMALL with other values; a key is the path to a value, with `/` between its parts, and None removes it."""
    values = yaml.safe_load(SMALL)
    for path, value in changes.items():
        *parents, last = path.split("/")
        place = values
        for parent in parents:
            place = place[parent]
        if value is None:
            del place[last]
        else:
            place[last] = value
    return values


def faults(values: dict) -> list[str]:
    """The lines of the message with which `values` are refused."""
    with pytest.raises(ConfigError) as error:
        load(values)
    return str(error.value).splitlines()


# ---------------------------------------------------------------------------------------------- the shipped files


@pytest.mark.parametrize("scale", SCALES)
def test_the_shipped_files_load_at_every_scale_and_no_two_runs_share_a_file(scale):
    config = read_files(ROOT, scale=scale)
    assert config.scale == scale
    specs: dict[str, dict] = {}
    for study in config.active_studies():
        blocks = config.blocks(study)
        assert blocks
        assert len({block.path for block in blocks}) == len(blocks)
        for block in blocks:
            assert specs.setdefault(block.path, block.spec) == block.spec


@pytest.mark.parametrize("scale", SCALES)
def test_a_part_resolves_to_the_blocks_of_its_study(scale):
    config = read_files(ROOT, scale=scale)
    for study in config.active_studies():
        part = json.loads(canonical_json(config.part(study)))
        alone = load(part)
        assert alone.blocks(study) == config.blocks(study)
        assert list(alone.studies) == [study]
        assert alone.part(study) == config.part(study)


def test_a_part_changes_only_with_what_its_study_resolves_to():
    part = load(small()).part("curves")
    elsewhere = {
        "agents/greedy/label": "Other",
        "environments/mushroom/passes": 3,
        "studies/curves/scales/smoke/seeds": 9,
        "studies/curves/figures": ["laws_heatmap"],
        "on_unreachable": "fail",
    }
    assert load(small(**elsewhere)).part("curves") == part
    for change in ({"agents/ts/label": "Exact TS"}, {"environments/line/noise": 2.0}, {"studies/curves/title": "Other"}):
        assert load(small(**change)).part("curves") != part


def test_a_part_holds_overrides_for_its_own_environments_only():
    config = load(small(**{"studies/deep/scales/quick/environments": ["posts"]}))
    assert config.part("deep")["agents"]["neural"]["per_environment"] == {}
    assert config.part("deep")["language_models"].keys() == {"tiny"}


def test_parsing_loads_no_heavy_library():
    script = (
        "import sys\n"
        "from ensemblepp.config import read_files\n"
        "config = read_files()\n"
        "blocks = [config.blocks(study) for study in config.active_studies()]\n"
        "print(*sorted(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "ensemblepp.config" in loaded
    heavy = {"torch", "xarray", "transformers", "pandas", "seaborn", "matplotlib", "scipy", "netCDF4", "datasets"}
    assert loaded & heavy == set()


# --------------------------------------------------------------------------------------------------- single faults

LAWS = "'gaussian', 'sphere', 'cube', 'coordinate' or 'sparse'"
PERTURBATIONS = "'gaussian', 'sphere', 'cube', 'coordinate', 'sparse' or 'raw_gaussian'"
SEEDS = "must be a number of at least 1, or a list of whole numbers, each only once"
ENVIRONMENTS, AGENTS, STUDIES = (f"config/{name}.yaml: {name}" for name in ("environments", "agents", "studies"))
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
            f"{ENVIRONMENTS}.line.kind: found 'round': input should be "
            "'linear_finite', 'linear_sphere', 'quadratic', 'vector_quadratic', 'neural', 'classification', 'moderation'",
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
            "'neural_linear', 'dropout', 'custom'",
        ),
        (
            "agents/linear/references",
            ["gaussian", "cauchy"],
            f"{AGENTS}.linear.references.1: found 'cauchy': input should be {LAWS}",
        ),
        (
            "agents/linear/perturbations",
            [],
            f"{AGENTS}.linear.perturbations: found []: list should have at least 1 item after validation, not 0",
        ),
        (
            "agents/linear/references",
            ["raw_gaussian"],
            f"{AGENTS}.linear.references.0: found 'raw_gaussian': input should be {LAWS}",
        ),
        (
            "agents/linear/perturbations",
            ["cauchy"],
            f"{AGENTS}.linear.perturbations.0: found 'cauchy': input should be {PERTURBATIONS}",
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
            f"{AGENTS}.es.perturbation: found 'cauchy': input should be {PERTURBATIONS}",
        ),
        (
            "agents/es",
            {"kind": "pair", "label": "ES", "reference": "gaussian", "perturbation": "cube"},
            f"{AGENTS}.es.of: field required",
        ),
        ("agents/neural/references", ["cauchy"], f"{AGENTS}.neural.references.0: found 'cauchy': input should be {LAWS}"),
        ("agents/neural/update", "cauchy", f"{AGENTS}.neural.update: found 'cauchy': input should be {LAWS}"),
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("agents:\n  ts: {kind: [\n", "line 3: not valid YAML: expected the node content, but found '<stream end>'"),
        ("- ts\n- es\n", "must be a mapping of keys to values"),
        ("only words\n", "must be a mapping of keys to values"),
    ],
)
def test_a_file_that_is_no_mapping(tmp_path, text, message):
    copy_config(tmp_path)
    path = tmp_path / "config/agents.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        read_files(tmp_path)
    assert str(error.value) == f"{path}: {message}"


def test_a_missing_file(tmp_path):
    copy_config(tmp_path)
    (tmp_path / "config/studies.yaml").unlink()
    with pytest.raises(ConfigError) as error:
        read_files(tmp_path)
    assert str(error.value) == f"{tmp_path}/config/studies.yaml: no such file; run from the folder that holds the Snakefile"


def copy_config(folder: Path) -> None:
    (folder / "config").mkdir()
    for name in CONFIG_FILES:
        (folder / name).write_text((ROOT / name).read_text())


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


# ------------------------------------------------------------------------------------------------ seeds and blocks


def grid(**fields: object) -> Grid:
    return Grid.model_validate({"environments": ["line"], "horizon": 1} | fields)


@pytest.mark.parametrize(
    ("seeds", "seeds_per_block", "blocks"),
    [
        (25, 10, [(0, 9), (10, 19), (20, 24)]),
        (3, 10, [(0, 2)]),
        (3, 1, [(0, 0), (1, 1), (2, 2)]),
        ([12, 3, 4, 5, 9, 10], 10, [(3, 5), (9, 9), (10, 10), (12, 12)]),
        ([7], 4, [(7, 7)]),
        ([5, 6, 7, 8, 9], 4, [(5, 7), (8, 9)]),
    ],
)
def test_blocks_are_consecutive_seeds_cut_at_multiples(seeds, seeds_per_block, blocks):
    assert list(grid(seeds=seeds, seeds_per_block=seeds_per_block).seed_blocks()) == blocks


def test_adding_seeds_keeps_every_block_that_was_full():
    for size in (1, 3, 10):
        longest = list(grid(seeds=47, seeds_per_block=size).seed_blocks())
        for count in range(1, 47):
            full = count // size
            assert list(grid(seeds=count, seeds_per_block=size).seed_blocks())[:full] == longest[:full]


def test_blocks_cover_each_seed_once():
    seeds = [seed for seed in range(60) if seed % 7 and seed % 11 != 3]
    covered = [seed for first, last in grid(seeds=seeds, seeds_per_block=6).seed_blocks() for seed in range(first, last + 1)]
    assert covered == seeds


def test_a_study_resolves_to_environments_by_agents_by_sizes_by_seeds():
    blocks = load(small()).blocks("curves")
    runs = "results/quick/runs/line"
    assert [block.path for block in blocks] == [
        f"{runs}/ts/M0/T20/seeds0-1.nc",
        f"{runs}/ts/M0/T20/seeds2-2.nc",
        f"{runs}/linear/M2/T20/seeds0-1.nc",
        f"{runs}/linear/M2/T20/seeds2-2.nc",
        f"{runs}/linear/M4/T20/seeds0-1.nc",
        f"{runs}/linear/M4/T20/seeds2-2.nc",
    ]
    assert blocks[3].spec == {
        "environment": {
            "name": "line",
            "class": "ensemblepp.environments.linear_finite:LinearFinite",
            "options": {
                "dimension": 20,
                "actions": 5,
                "features": "cube",
                "varying": False,
                "feature_bound": 5**-0.5,
                "prior_variance": 10.0,
                "noise": 1.0,
            },
        },
        "agent": {
            "name": "linear",
            "class": "ensemblepp.agents.linear.ensemblepp:LinearEnsemblePlusPlus",
            "options": {
                "references": ["gaussian"],
                "perturbations": ["sphere", "cube"],
                "prior_variance": 10.0,
                "inflation_delta": None,
                "precision": "auto",
                "pruning": True,
                "exact_subspace": False,
                "track_covariance": False,
            },
        },
        "ensemble_size": 2,
        "horizon": 20,
        "seeds": [2, 2],
        "device": "cpu",
    }
    assert blocks[3].modules == [
        "ensemblepp.environments.linear_finite",
        "ensemblepp.agents.linear.ensemblepp",
        "ensemblepp.runs.block",
    ]


@pytest.mark.parametrize(("written", "bound"), [("1/sqrt(5)", 0.4472135954999579), ("1/sqrt(d)", 0.22360679774997896)])
def test_the_two_feature_bounds_of_the_paper(written, bound):
    options = load(small(**{"environments/line/feature_bound": written})).environments["line"].options()
    assert options["feature_bound"] == pytest.approx(bound, rel=1e-15)


def test_a_block_names_its_input_files_and_posts_come_in_shards_of_500():
    inputs = {block.spec["environment"]["name"]: block.inputs for block in load(small()).blocks("deep")}
    shards = [f"data/embeddings/tiny/hate_speech-{first}.nc" for first in ("0-499", "500-999", "1000-1199")]
    assert inputs == {"mushroom": ["data/prepared/mushroom.nc"], "posts": shards}
    more = load(small(**{"environments/posts/posts": 1501})).environments["posts"].shards()
    assert more[:2] == shards[:2]
    assert more[2:] == [f"data/embeddings/tiny/hate_speech-{first}.nc" for first in ("1000-1499", "1500-1500")]


def test_studies_share_the_runs_that_both_ask_for():
    values = small()
    values["studies"]["again"] = values["studies"]["curves"] | {"title": "Again", "agents": ["linear"], "figures": []}
    config = load(values)
    again = config.blocks("again")
    assert again
    assert [block for block in config.blocks("curves") if block.spec["agent"]["name"] == "linear"] == again


# ---------------------------------------------------------------------------------------- spheres, pairs, and devices

PAIR = {"kind": "pair", "label": "Pair", "of": "linear"}


def with_pairs(**changes: object) -> dict:
    """SMALL with two pairs of `linear` in place of it in the curves."""
    pairs = {
        "agents/cubed": PAIR | {"reference": "gaussian", "perturbation": "cube"},
        "agents/round": PAIR | {"reference": "gaussian", "perturbation": "sphere"},
        "studies/curves/agents": ["ts", "cubed", "round"],
    }
    return small(**pairs | changes)


def test_pairs_lie_in_the_blocks_of_their_agent_and_nothing_is_run_twice():
    alone = load(small()).blocks("curves")
    for agents in (["ts", "cubed", "round"], ["ts", "linear", "cubed", "round"], ["ts", "round", "linear"]):
        config = load(with_pairs(**{"studies/curves/agents": agents}))
        assert config.blocks("curves") == alone
        runs = config.runs("curves")
        for size, first in itertools.product((2, 4), (0, 2)):
            own = {runs["line", agent, size, first].path for agent in agents if agent != "ts"}
            assert own == {f"results/quick/runs/line/linear/M{size}/T20/seeds{'0-1' if first == 0 else '2-2'}.nc"}
        assert {agent for _, agent, _, _ in runs} == set(agents)
    for block in alone:
        assert block.spec["agent"]["options"].get("perturbations", ["sphere", "cube"]) == ["sphere", "cube"]


def test_the_part_of_a_study_of_pairs_holds_their_agent():
    config = load(with_pairs())
    part = yaml.safe_load(canonical_json(config.part("curves")))
    assert set(part["agents"]) == {"ts", "cubed", "round", "linear"}
    assert load(part).blocks("curves") == config.blocks("curves")
    assert load(part).part("curves") == config.part("curves")
    other = with_pairs(**{"agents/cubed/perturbation": "sphere"})
    assert load(other).part("curves") != config.part("curves"), "another chain is aggregated"
    assert load(other).blocks("curves") == config.blocks("curves"), "of the same runs"


def test_a_pair_by_hand_is_its_agent_with_one_law_in_each_role():
    spec = load(with_pairs()).block("line", "cubed", 4, 20, 0, 1).spec
    assert spec["agent"]["name"] == "cubed"
    assert spec["agent"]["class"] == "ensemblepp.agents.linear.ensemblepp:LinearEnsemblePlusPlus"
    assert spec["agent"]["options"]["references"] == ["gaussian"]
    assert spec["agent"]["options"]["perturbations"] == ["cube"]


LINUCB = {"kind": "linear_ucb", "label": "LinUCB"}
BALL = {"kind": "linear_sphere", "title": "Ball", "dimension": 4}


@pytest.mark.parametrize("scale", ["smoke", "quick", "paper"])
def test_linucb_on_a_sphere_is_a_fault_at_every_scale(scale):
    values = small(**{"agents/bound": LINUCB, "environments/ball": BALL, "studies/curves/agents": ["ts", "bound"]})
    load(values)
    values["studies"]["curves"]["scales"][scale] = {"environments": ["line", "ball"], "horizon": 5, "seeds": 1}
    place = f"{STUDIES}.curves.scales.{scale}.environments"
    assert faults(values) == [f"{place}: found 'ball': agent 'bound' needs a finite decision set"]
    load(values | {"studies": values["studies"] | {"curves": values["studies"]["curves"] | {"agents": ["ts"]}}})


def test_options_of_the_linear_environments():
    values = small(**{"environments/ball": BALL | {"noise": 0.5}, "environments/line/varying": True})
    environments = load(values).environments
    assert environments["ball"].options() == {"dimension": 4, "prior_variance": 10.0, "noise": 0.5}
    assert environments["line"].options()["varying"] is True
    assert environments["ball"].class_path == "ensemblepp.environments.linear_sphere:LinearSphere"


OTHERS = {
    "members": ({"kind": "ensemble_sampling", "label": "ES"}, "linear_ensemble_sampling:EnsembleSampling", True),
    "recursive": ({"kind": "rrls", "label": "RRLS"}, "linear_ensemble_sampling:RecursiveRandomizedLeastSquares", False),
    "ridge": ({"kind": "linear_greedy", "label": "Greedy"}, "linear_greedy:LinearGreedy", False),
    "bound": (LINUCB, "linear_ucb:LinearUCB", False),
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_other_linear_agents(name):
    """Class, and whether they have an ensemble size."""
    model, class_path, ensemble = OTHERS[name]
    blocks = load(small(**{f"agents/{name}": model, "studies/curves/agents": [name]})).blocks("curves")
    assert {block.spec["agent"]["class"] for block in blocks} == {f"ensemblepp.agents.{class_path}"}
    assert [block.spec["ensemble_size"] for block in blocks] == ([2, 2, 4, 4] if ensemble else [0, 0])


@pytest.mark.parametrize("device", ["auto", "cpu", "cuda"])
@pytest.mark.parametrize("linear", ["cpu", "cuda"])
def test_linear_agents_follow_the_linear_device_and_neural_agents_the_device(device, linear):
    """LinUCB, which plays step by step, and agents of one's own stay on the CPU."""
    own = {"kind": "custom", "label": "Own", "class": "ensemblepp.agents.linear.ucb:LinearUCB"}
    changes = {f"agents/{name}": model for name, (model, _, _) in OTHERS.items()}
    names = ["ts", "cubed", *OTHERS, "own"]
    config = load(
        with_pairs(device=device, linear_device=linear, **changes, **{"agents/own": own, "studies/curves/agents": names})
    )
    devices = {agent: block.spec["device"] for (_, agent, _, _), block in config.runs("curves").items()}
    assert devices == dict.fromkeys(names, linear) | {"bound": "cpu", "own": "cpu"}
    assert {block.spec["device"] for block in config.blocks("deep")} == {device}
    assert load(config.part("curves")).blocks("curves") == config.blocks("curves")


@pytest.mark.parametrize("device", ["auto", "cpu", "cuda"])
def test_only_neural_agents_follow_the_device(device):
    config = load(small(device=device))
    assert {block.spec["device"] for block in config.blocks("curves")} == {"cpu"}
    assert {block.spec["device"] for block in config.blocks("deep")} == {device}


def test_values_per_environment_hold_by_kind_and_the_name_wins():
    config = load(small())
    options = {
        (block.spec["agent"]["name"], block.spec["environment"]["name"]): block.spec["agent"]["options"]
        for block in config.blocks("deep")
    }
    assert (options["neural", "mushroom"]["gradient_steps"], options["neural", "mushroom"]["hidden"]) == (7, [8])
    assert (options["neural", "posts"]["gradient_steps"], options["neural", "posts"]["hidden"]) == (1, [64, 64])
    assert options["greedy", "mushroom"] == options["greedy", "posts"]
    assert all("per_environment" not in values and "label" not in values for values in options.values())


def test_a_scale_left_out_skips_the_study():
    config = load(small(scale="smoke"))
    assert list(config.active_studies()) == ["curves"]
    assert [block.path for block in config.blocks("curves")] == [
        "results/smoke/runs/line/ts/M0/T5/seeds0-0.nc",
        "results/smoke/runs/line/linear/M8/T5/seeds0-0.nc",
    ]


def test_artefacts_of_a_study():
    assert load(small()).artefacts("curves") == [
        "results/quick/figures/curves-linear_regret.pdf",
        "results/quick/figures/curves-linear_regret.png",
        "results/quick/tables/curves-final_regret.csv",
        "results/quick/tables/curves-final_regret.md",
        "results/quick/tables/curves-final_regret.tex",
        "results/quick/tables/curves-final_regret.html",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"environment": "mars"}, "found 'mars': must be one of environments: line, mushroom, posts"),
        ({"agent": "ucb"}, "found 'ucb': must be one of agents: ts, linear, neural, greedy"),
        ({"ensemble_size": 3}, "ensemble size 3: agent 'ts' takes 0, since it has no ensemble"),
        ({"agent": "linear"}, "ensemble size 0: agent 'linear' takes 1 to 1024"),
        ({"agent": "linear", "ensemble_size": 1025}, "ensemble size 1025: agent 'linear' takes 1 to 1024"),
        ({"horizon": 0}, "horizon 0: must be at least 1"),
        ({"first": 4}, "seeds 4-1: the last must not be below the first"),
    ],
)
def test_a_single_block_that_cannot_be(change, message):
    asked = {"environment": "line", "agent": "ts", "ensemble_size": 0, "horizon": 9, "first": 0, "last": 1}
    assert load(small()).block(**asked).path == "results/quick/runs/line/ts/M0/T9/seeds0-1.nc"
    with pytest.raises(ConfigError) as error:
        load(small()).block(**asked | change)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("setting", "scale", "skips"),
    [("auto", "quick", True), ("auto", "paper", False), ("skip", "paper", True), ("fail", "smoke", False)],
)
def test_when_unreachable_data_are_skipped(setting, scale, skips):
    assert load(small(on_unreachable=setting, scale=scale)).skips_unreachable is skips


# --------------------------------------------------------------------------------------------------- custom agents

MINE = """
raise RuntimeError("the configuration must be checked without importing anything")


class Fixed:
    def __init__(self, seeds, *, dimension, ensemble_size, horizon, device, step: float, depth=2):
        pass


class Open:
    def __init__(self, seeds, *, dimension, **options):
        pass


class Inherited(Fixed):
    pass
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module of the user's own, beside a package with another one."""
    (tmp_path / "own_agents").mkdir()
    (tmp_path / "own_agents/__init__.py").touch()
    (tmp_path / "own_agents/first.py").write_text(MINE)
    (tmp_path / "own_agent.py").write_text(MINE)
    (tmp_path / "own_broken.py").write_text("x = 1\nclass Broken(:\n")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def with_custom(class_path: str, **fields: object) -> dict:
    agent = {"kind": "custom", "label": "Mine", "class": class_path} | fields
    return small(**{"agents/mine": agent, "studies/curves/agents": ["mine"]})


@pytest.mark.parametrize("module", ["own_agent", "own_agents.first"])
@pytest.mark.parametrize(
    ("name", "hyperparameters"),
    [("Fixed", {"step": 0.5}), ("Fixed", {"step": 0.5, "depth": 1}), ("Open", {"any": [1]}), ("Inherited", {"step": 0.5})],
)
def test_a_class_of_ones_own_is_found_without_importing_it(mine, module, name, hyperparameters):
    values = with_custom(f"{module}:{name}", hyperparameters=hyperparameters)
    config = load(values)
    assert module not in sys.modules
    block = config.blocks("curves")[0]
    assert block.path == "results/quick/runs/line/mine/M0/T20/seeds0-1.nc"
    assert block.spec["agent"] == {"name": "mine", "class": f"{module}:{name}", "options": hyperparameters}
    assert block.spec["device"] == "cpu"
    assert block.modules == ["ensemblepp.environments.linear_finite", module, "ensemblepp.runs.block"]
    assert load(config.part("curves")).blocks("curves") == config.blocks("curves")


def test_a_class_of_ones_own_may_have_an_ensemble_and_use_a_gpu(mine):
    config = load(with_custom("own_agent:Open", uses_ensemble=True, uses_gpu=True) | {"device": "cuda"})
    blocks = config.blocks("curves")
    assert [block.spec["ensemble_size"] for block in blocks] == [2, 2, 4, 4]
    assert {block.spec["device"] for block in blocks} == {"cuda"}
    assert load(config.part("curves")).blocks("curves") == blocks


@pytest.mark.parametrize(
    ("class_path", "hyperparameters", "line"),
    [
        (
            "own_agents.second:Fixed",
            {},
            ".class: found 'own_agents.second:Fixed': no module 'own_agents.second' can be imported",
        ),
        ("nowhere.at_all:Fixed", {}, ".class: found 'nowhere.at_all:Fixed': no module 'nowhere.at_all' can be imported"),
        ("own_agent:Other", {}, ".class: found 'own_agent:Other': {folder}/own_agent.py defines no class 'Other'"),
        ("own_broken:Broken", {}, ".class: found 'own_broken:Broken': {folder}/own_broken.py, line 2: invalid syntax"),
        ("own_agent", {}, r".class: found 'own_agent': string should match pattern '^[\w.]+:\w+$'"),
        ("own_agent:Fixed", {"stp": 0.5}, ".hyperparameters.stp: unknown key; Fixed takes depth, step"),
        ("own_agent:Fixed", {"horizon": 5}, ".hyperparameters.horizon: unknown key; Fixed takes depth, step"),
    ],
)
def test_a_fault_in_an_agent_of_ones_own(mine, class_path, hyperparameters, line):
    found = faults(with_custom(class_path, hyperparameters=hyperparameters))
    assert found == [f"{AGENTS}.mine{line.replace('{folder}', str(mine))}"]


def test_canonical_json_is_equal_for_equal_values():
    assert canonical_json({"b": [1, 2.5], "a": None}) == canonical_json({"a": None, "b": [1, 2.5]}) == '{"a":null,"b":[1,2.5]}'


def test_the_configuration_cannot_be_changed_after_its_check():
    config = load(small())
    assert isinstance(config, Config)
    with pytest.raises(ValueError, match="frozen"):
        config.scale = "paper"


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


def test_a_protocol_gives_agents_what_they_have_and_an_agents_own_values_are_stronger():
    """The set's name is stronger than its kind; the agent's per_environment than both; greedy has no prior."""
    config = load(with_protocol())
    neural, greedy = config.agent_for("neural", "mushroom"), config.agent_for("greedy", "mushroom")
    assert (neural.gradient_steps, neural.prior_scale, neural.batch_size) == (7, 0.5, 32)
    assert (greedy.gradient_steps, greedy.batch_size) == (5, 32)
    assert not hasattr(greedy, "prior_scale")
    # elsewhere the defaults hold, and no agent's class is told of the protocol
    assert (config.agent_for("neural", "posts").batch_size, config.agent_for("greedy", "posts").gradient_steps) == (128, 1)
    assert "protocol" not in config.block("mushroom", "neural", 8, 10, 0, 0).spec["agent"]["options"]


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


def test_a_part_changes_only_with_its_own_places_of_a_protocol():
    config = load(with_protocol())
    values = with_protocol()
    values["protocols"] = {"paper": PROTOCOLS["paper"] | {"linear_finite": {"batch_size": 3}}, "other": {}}
    assert load(values).part("deep") == config.part("deep")
    values["protocols"] = {"paper": {"classification": {"batch_size": 3}}}
    assert load(values).part("deep") != config.part("deep")


def test_more_actions_on_offer_than_there_are_is_a_fault():
    values = small(**{"environments/line": {"kind": "quadratic", "title": "Q", "candidates": 20, "offered": 21}})
    with pytest.raises(ConfigError, match=r"environments\.line: offered is 21: cannot be more than the 20 candidates"):
        load(values)
