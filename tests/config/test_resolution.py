"""Studies resolve to exactly the blocks that they declare, and agents to the values that hold in each environment."""

from __future__ import annotations

import itertools

import pytest
import yaml
from small_configuration import small, with_pairs

from ensemblepp.config.checks import CONFIG_FILES
from ensemblepp.config.loading import load, read_files
from ensemblepp.config.resolution import Config
from ensemblepp.errors import ConfigError


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
            "kind": "linear_finite",
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
            "kind": "linear_ensemblepp",
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
        "engine": "linear_compiled",
        "ensemble_size": 2,
        "horizon": 20,
        "seeds": [2, 2],
        "device": "cpu",
    }


def test_studies_share_the_runs_that_both_ask_for():
    values = small()
    values["studies"]["again"] = values["studies"]["curves"] | {"title": "Again", "agents": ["linear"], "figures": []}
    config = load(values)
    again = config.blocks("again")
    assert again
    assert [block for block in config.blocks("curves") if block.spec["agent"]["name"] == "linear"] == again


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


def test_a_pair_by_hand_is_its_agent_with_one_law_in_each_role():
    spec = load(with_pairs()).block("line", "cubed", 4, 20, 0, 1).spec
    assert spec["agent"]["name"] == "cubed"
    assert spec["agent"]["kind"] == "linear_ensemblepp"
    assert spec["agent"]["options"]["references"] == ["gaussian"]
    assert spec["agent"]["options"]["perturbations"] == ["cube"]


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
        ({"horizon": 0}, "horizon 0: must be at least 1 and at most 100,000,000"),
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


# ------------------------------------------------------------------------------------------------------- precedence

#: A value for each layer, from weak to strong: where it stands and what is said of where it comes from.
OVERRIDES = "agents.neural.per_environment"
LAYERS = {
    "protocol kind": ("protocols/mine/quadratic/prior_scale", 2.0, "protocols.mine.quadratic"),
    "protocol name": ("protocols/mine/second/prior_scale", 3.0, "protocols.mine.second"),
    "own": ("agents/neural/prior_scale", 0.0, "agents.neural"),
    "per_environment kind": (
        "agents/neural/per_environment/quadratic/prior_scale",
        5.0,
        f"{OVERRIDES}.quadratic",
    ),
    "per_environment name": ("agents/neural/per_environment/second/prior_scale", 6.0, f"{OVERRIDES}.second"),
}
COMBINATIONS = [combination for count in range(len(LAYERS) + 1) for combination in itertools.combinations(LAYERS, count)]


def layered(*layers: str, **changes: object) -> dict:
    """SMALL with two quadratic environments, `first` and `second`, and values of the neural agent in some layers."""
    values = small(**{f"environments/{name}": {"kind": "quadratic", "title": name} for name in ("first", "second")})
    values["protocols"] = {"mine": {"quadratic": {"batch_size": 7}, "second": {}}, "other": {"first": {"prior_scale": 9.0}}}
    values["agents"]["neural"] = {
        "kind": "neural_ensemblepp",
        "label": "Ensemble++",
        "protocol": "mine",
        "per_environment": {"quadratic": {}, "second": {}},
    }
    for path, value in [(LAYERS[name][0], LAYERS[name][1]) for name in layers] + list(changes.items()):
        *parents, last = path.split("/")
        place = values
        for parent in parents:
            place = place[parent]
        place[last] = value
    return values


@pytest.mark.parametrize(
    "present", [*itertools.chain(*(itertools.combinations(LAYERS, count) for count in range(len(LAYERS) + 1)))]
)
def test_from_weak_to_strong_default_protocol_own_value_per_environment(present):
    """All 32 combinations of layers: the strongest that is present holds, and is named as the origin."""
    config = load(layered(*present))
    for environment, reach in (("second", present), ("first", [name for name in present if not name.endswith("name")])):
        value, origin = LAYERS[[name for name in LAYERS if name in reach][-1]][1:] if reach else (1.0, "default")
        resolved = config.agent_for("neural", environment)
        assert (resolved.model.prior_scale, resolved.origins["prior_scale"]) == (value, origin)
        assert (resolved.model.batch_size, resolved.origins["batch_size"]) == (7, "protocols.mine.quadratic")
        assert resolved.origins["hidden"] == "default"
        assert config.block(environment, "neural", 8, 5, 0, 0).spec["agent"]["options"]["prior_scale"] == value


def test_an_agents_own_zero_is_stronger_than_the_shipped_protocol(request):
    """As one writes an ablation: `{kind: neural_ensemblepp, protocol: paper, prior_scale: 0.0}`."""
    values = {}
    for name in CONFIG_FILES:
        values |= yaml.safe_load((request.config.rootpath / name).read_text())
    values["agents"]["flat"] = {"kind": "neural_ensemblepp", "label": "Flat", "protocol": "paper", "prior_scale": 0.0}
    config = load(values)
    flat, plain = (config.agent_for(name, "quadratic") for name in ("flat", "ensemble++"))
    assert (flat.model.prior_scale, plain.model.prior_scale) == (0.0, 0.1)
    assert (flat.origins["prior_scale"], plain.origins["prior_scale"]) == ("agents.flat", "protocols.paper.quadratic")
    # what it does not say itself is the protocol's
    assert flat.model.posterior_scale == plain.model.posterior_scale == 0.1
    assert flat.origins["posterior_scale"] == "protocols.paper.quadratic"


def test_a_value_that_is_stated_as_the_default_is_stated():
    """1.0 is also what an agent that says nothing has."""
    config = load(layered("protocol kind", **{"agents/neural/prior_scale": 1.0}))
    resolved = config.agent_for("neural", "first")
    assert (resolved.model.prior_scale, resolved.origins["prior_scale"]) == (1.0, "agents.neural")


def test_an_agent_takes_of_its_protocol_what_it_has():
    """Greedy has no prior; nothing of a protocol's name reaches a class; elsewhere the defaults hold."""
    config = load(layered("protocol kind", **{"agents/greedy/protocol": "mine"}))
    greedy = config.agent_for("greedy", "first")
    assert greedy.model.batch_size == 7
    assert not hasattr(greedy.model, "prior_scale")
    assert "prior_scale" not in greedy.origins
    assert config.agent_for("greedy", "mushroom").model.batch_size == 128
    options = config.block("first", "greedy", 0, 10, 0, 0).spec["agent"]["options"]
    assert not {"protocol", "per_environment", "label", "kind"} & set(options)
    assert set(options) == set(greedy.origins)


def test_every_option_has_an_origin_in_every_environment(request):
    config = read_files(request.config.rootpath, scale="paper")
    for study in config.active_studies():
        for environment in config.studies[study].scales["paper"].environments:
            for agent in config.studies[study].agents:
                resolved = config.agent_for(agent, environment)
                assert set(resolved.origins) == set(resolved.model.options()), (agent, environment)


def test_a_pair_has_the_values_and_origins_of_its_agent_but_for_its_laws():
    config = load(with_pairs(**{"agents/linear/per_environment": {"line": {"prior_variance": 3.0}}}))
    pair, whole = config.agent_for("cubed", "line"), config.agent_for("linear", "line")
    assert (pair.model.prior_variance, pair.origins["prior_variance"]) == (3.0, "agents.linear.per_environment.line")
    assert (pair.model.references, pair.model.perturbations) == (["gaussian"], ["cube"])
    laws = dict.fromkeys(("references", "perturbations"), "agents.cubed")
    assert pair.origins == whole.origins | laws
    assert whole.origins["references"] == "agents.linear"


# ----------------------------------------------------------------------------------- precedence of agents of one's own

OWN = """
raise RuntimeError("the configuration must be checked without importing anything")


class Named:
    def __init__(self, seeds, *, dimension, ensemble_size, horizon, device, step=0.1, batch_size=1, prior_scale=0.0):
        pass


class HandsOn:
    def __init__(self, seeds, *, step=0.1, **training):
        self.training = training


class Derived(HandsOn):
    pass
"""


def own(tmp_path, monkeypatch, name: str, **fields: object) -> Config:
    """The configuration with `mine`, a class of the user's, under protocol `mine` and with values per environment."""
    (tmp_path / "own_agent.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    mine = {
        "kind": "custom",
        "label": "Mine",
        "class": f"own_agent:{name}",
        "protocol": "mine",
        "hyperparameters": {"step": 0.5},
        "per_environment": {"quadratic": {"step": 0.6}, "second": {"step": 0.7}},
    }
    protocol = {"quadratic": {"batch_size": 7, "prior_scale": 2.0, "warm_up": 3}, "second": {"batch_size": 8}}
    return load(layered(**{"agents/mine": mine | fields, "protocols/mine": protocol}))


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("Named", {"batch_size": 7, "prior_scale": 2.0}, {"batch_size": 8, "prior_scale": 2.0}),
        ("HandsOn", {"batch_size": 7, "warm_up": 3}, {"batch_size": 8, "warm_up": 3}),
        ("Derived", {"batch_size": 7, "warm_up": 3}, {"batch_size": 8, "warm_up": 3}),
    ],
)
def test_a_protocol_reaches_a_class_of_ones_own_that_takes_its_keys(tmp_path, monkeypatch, name, first, second):
    """It names them, or hands on what it does not name and all neural agents have; other keys are left out, without a fault."""
    config = own(tmp_path, monkeypatch, name)
    options = {place: config.block(place, "mine", 0, 5, 0, 0).spec["agent"]["options"] for place in ("first", "second", "line")}
    assert options == {"first": first | {"step": 0.6}, "second": second | {"step": 0.7}, "line": {"step": 0.5}}
    assert config.agent_for("mine", "second").origins == {
        "step": "agents.mine.per_environment.second",
        "batch_size": "protocols.mine.second",
        ("prior_scale" if name == "Named" else "warm_up"): "protocols.mine.quadratic",
    }
    assert config.agent_for("mine", "line").origins == {"step": "agents.mine"}


def test_hyperparameters_of_ones_own_class_are_stronger_than_its_protocol(tmp_path, monkeypatch):
    config = own(tmp_path, monkeypatch, "Named", hyperparameters={"prior_scale": 0.0})
    resolved = config.agent_for("mine", "first")
    assert (resolved.model.options()["prior_scale"], resolved.origins["prior_scale"]) == (0.0, "agents.mine")
