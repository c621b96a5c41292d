"""Equal tuning in the configuration: settings, the agents that play them, seeds of their own, and what was chosen."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_configuration import faults, small

from ensemblepp.config import documentation
from ensemblepp.config.loading import load, read_files
from ensemblepp.config.targets import unknown
from ensemblepp.config.tuning import Knob, Space, points
from ensemblepp.errors import ConfigError
from ensemblepp.runs.ledger import plan

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = read_files(ROOT, scale="paper")

SPACE = {"space": {"learning_rate": {"least": 1e-4, "most": 1e-2}, "gradient_steps": {"values": [1, 2]}}, "settings": 2}
SETTINGS = [{"learning_rate": 0.001, "gradient_steps": 2}, {"learning_rate": 0.005, "gradient_steps": 1}]
CHOSEN = {
    "setting": 1,
    "values": SETTINGS[1],
    "regret": 3.5,
    "of": 2,
    "study": "settings",
    "scale": "quick",
    "horizon": 30,
    "seeds": [70, 71],
    "commit": "unknown",
}


def tuned(**changes: object) -> dict:
    """SMALL with a study that plays settings of `neural` and `greedy`, and one that plays what was chosen for `greedy`."""
    grid = {"environments": ["mushroom"], "horizon": 30}
    studies = {
        "settings": {
            "title": "Settings",
            "agents": ["neural", "greedy"],
            "scales": {"quick": grid | {"seeds": [70, 71], "settings": 5}},
        },
        "best": {"title": "Best", "agents": ["greedy-tuned"], "scales": {"quick": grid | {"seeds": 2}}},
    }
    extra = {f"studies/{name}": study for name, study in studies.items()}
    extra |= {"tuning": {"neural": SPACE, "greedy": SPACE}, "settings": {"neural": SETTINGS, "greedy": SETTINGS}, "tuned": {}}
    return small(**extra | changes)


# ------------------------------------------------------------------------------------------------------------ settings


def test_what_follows_from_tuning_follows_once():
    """The report's process is given the configuration as it was resolved."""
    config = load(tuned())
    again = load(config.model_dump(by_alias=True, exclude_unset=True))
    assert again.studies == config.studies
    assert again.agents.keys() == config.agents.keys()


def test_settings_are_points_of_their_space_and_fewer_are_the_first_of_more():
    space = Space.model_validate(SPACE | {"settings": 32})
    (settings,) = points({"any": space}).values()
    assert len({tuple(setting.items()) for setting in settings}) == 32
    assert all(1e-4 <= setting["learning_rate"] <= 1e-2 for setting in settings)
    # Sobol points: every eighth of the range, by its logarithm, holds as many as any other
    for eighth in range(8):
        low, high = (1e-4 * 100 ** (end / 8) for end in (eighth, eighth + 1))
        assert sum(low * 0.99 <= setting["learning_rate"] < high * 0.99 for setting in settings) == pytest.approx(4, abs=1)
    assert sum(setting["gradient_steps"] == 1 for setting in settings) == 16
    for fewer in (1, 5, 8):
        assert points({"any": space.model_copy(update={"settings": fewer})})["any"] == settings[:fewer]


@pytest.mark.parametrize(
    "fault", [{"least": 1}, {"least": 2, "most": 1}, {}, {"least": 1, "most": 2, "values": [3]}, {"values": []}]
)
def test_a_knob_is_a_range_or_a_list(fault):
    with pytest.raises(ValueError, match=r"must (both )?be"):
        Knob.model_validate(fault)


def test_the_shipped_settings_are_those_of_the_shipped_spaces():
    written = (ROOT / documentation.SETTINGS_OF_AGENTS).read_text()
    assert written == documentation.settings_of_agents(SHIPPED.tuning), (
        "stale: run `python -m ensemblepp config --write` in the project's folder and commit what it writes"
    )


def test_every_agent_gets_the_same_number_of_settings_but_for_the_one_that_costs_too_much():
    assert {name: space.settings for name, space in SHIPPED.tuning.items() if space.settings != 32} == {"lmcts": 8}
    played = {agent for study in SHIPPED.studies.values() if study.scales.get("paper") for agent in study.agents}
    assert {f"{name}-tuned" for name in SHIPPED.tuning} <= played


# ------------------------------------------------------------------------------------------- agents that play settings


def test_a_setting_is_an_agent_whose_values_are_stronger_than_those_of_any_environment():
    config = load(tuned())
    assert config.studies["settings"].agents == [
        "neural",
        "greedy",
        *(f"{agent}-setting-0{place}" for agent in ("neural", "greedy") for place in (0, 1)),
    ]
    plain, setting = (config.block("mushroom", name, 8, 30, 70, 71).spec["agent"] for name in ("neural", "neural-setting-00"))
    assert plain["options"]["gradient_steps"] == 7
    assert setting["options"] == plain["options"] | SETTINGS[0]
    assert config.agents["neural-setting-01"].label == "Ensemble++, setting 1"
    assert config.declared_agents == ("ts", "linear", "neural", "greedy")


def test_a_scale_says_how_many_settings_are_played_from_the_first():
    for count, expected in ((0, []), (1, ["neural-setting-00", "greedy-setting-00"])):
        config = load(tuned(**{"studies/settings/scales/quick/settings": count}))
        assert config.studies["settings"].agents == ["neural", "greedy", *expected]


def test_an_agent_that_is_left_out_of_an_environment_is_not_played_there_nor_are_its_settings():
    config = load(tuned(**{"studies/settings/scales/quick/without": {"mushroom": ["neural"]}}))
    assert {agent for _, agent, _, _ in config.runs("settings")} == {"greedy", "greedy-setting-00", "greedy-setting-01"}


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        (
            {"studies/settings/scales/quick/seeds": [5, 70]},
            "config/studies.yaml: studies.settings.scales.quick.seeds: 5 is a seed of studies.deep.scales.quick: tuning takes",
        ),
        (
            {"studies/settings/scales/quick/seeds": [70]},
            "config/studies.yaml: studies.settings.scales.quick.seeds: tuning takes two seeds at least",
        ),
        (
            {"studies/settings/agents": ["neural", "greedy", "greedy-tuned"], "tuned": {"mushroom": {"greedy": CHOSEN}}},
            "config/studies.yaml: studies.settings.scales.quick.settings: agent 'greedy-tuned' has no space in",
        ),
        (
            {"studies/settings/scales/quick/without": {"moon": ["greedy"], "mushroom": ["nobody"]}},
            "config/studies.yaml: studies.settings.scales.quick.without: found 'moon': must be one of mushroom",
        ),
        (
            {"tuning": {"nobody": SPACE}, "settings": {"nobody": SETTINGS}},
            "config/tuning.yaml: tuning.nobody: must be one of agents: ts, linear, neural, greedy",
        ),
        (
            {"tuning/greedy": SPACE | {"space": {"speed": {"values": [1]}}}, "settings/greedy": [{"speed": 1}] * 2},
            "config/tuning.yaml: tuning.greedy.space.speed: found 1.0: not what agent 'greedy' takes",
        ),
        (
            {"settings/greedy": SETTINGS[:1]},
            "config/settings.yaml: settings.greedy: not those of config/tuning.yaml; run `python -m ensemblepp config --write`",
        ),
        (
            {"tuned": {"mushroom": {"greedy": CHOSEN | {"values": SETTINGS[0]}}}},
            "config/tuned.yaml: tuned.mushroom.greedy: not the values of setting 1 in config/settings.yaml; run",
        ),
    ],
)
def test_faults_are_lines(changes, line):
    found = faults(tuned(**changes))
    assert any(fault.startswith(line) for fault in found), found


# ------------------------------------------------------------------------------------------------------ what was chosen


def test_until_something_is_chosen_nothing_is_played_and_the_reason_is_said():
    config = load(tuned())
    reason = (
        "no values are chosen yet for agent 'greedy-tuned' in environment 'mushroom': make study 'settings' at scale quick, "
        "then `python -m ensemblepp tune --study settings --scale quick`"
    )
    assert "best" not in config.active_studies()
    assert config.awaiting().keys() == {"best"}
    assert config.awaiting()["best"].startswith(reason)
    with pytest.raises(ConfigError, match=reason):
        config.block("mushroom", "greedy-tuned", 0, 30, 0, 1)
    assert unknown(config, "study_best", []).startswith(f"target 'study_best': {reason}")


def test_choices_of_what_is_not_configured_are_left_alone():
    """A user's own environments or agents stand in place of the shipped ones, and config/tuned.yaml is as it is shipped."""
    wrong = CHOSEN | {"values": SETTINGS[0]}
    config = load(tuned(tuned={"moon": {"greedy": wrong}, "mushroom": {"nobody": wrong}}))
    assert config.awaiting().keys() == {"best"}


def test_what_was_chosen_is_played_where_it_was_chosen():
    config = load(tuned(tuned={"mushroom": {"greedy": CHOSEN}}))
    assert config.awaiting() == {}
    (block,) = config.blocks("best")
    assert {key: block.spec["agent"]["options"][key] for key in SETTINGS[1]} == SETTINGS[1]
    assert config.agent_for("greedy-tuned", "mushroom").origins["learning_rate"].endswith("per_environment.mushroom")
    with pytest.raises(ConfigError, match="in environment 'posts': no study plays its settings there"):
        config.block("posts", "greedy-tuned", 0, 30, 0, 1)


@pytest.mark.parametrize(("scale", "played"), [("paper", True), ("quick", True), ("smoke", False)])
def test_what_a_smaller_scale_chose_is_not_played_at_another(scale, played):
    config = load(tuned(tuned={"mushroom": {"greedy": CHOSEN | {"scale": scale}}}))
    assert ("best" in config.active_studies()) == played


def test_the_ledger_says_that_tuned_claims_wait():
    absent = plan(SHIPPED, {})["absent"]
    for study in ("tuned", "tuned-vector-quadratic", "tuned-uci"):
        waits = study not in SHIPPED.active_studies()
        assert waits == absent.get(study, "").startswith("no values are chosen yet")
        assert waits == any(
            SHIPPED.untuned(agent, environment)
            for agent in SHIPPED.studies[study].agents
            for environment in SHIPPED.studies[study].scales["paper"].environments
        )


# ------------------------------------------------------------------------------------------------------------ protocols


@pytest.mark.parametrize(
    ("environment", "steps"), [("quadratic", 1), ("vector-quadratic", 1), ("neural", 1), ("mushroom", 50), ("shuttle", 100)]
)
def test_the_papers_protocol_is_its_text_and_the_drivers_defaults(environment, steps):
    """G is the text's; of the scales the text says nothing, and the driver that is given none takes 0.1 for both."""
    for agent in ("ensemble++", "ensemble+", "epinet"):
        options = SHIPPED.agent_for(agent, environment).model.options()
        assert (options["gradient_steps"], options["prior_scale"], options["posterior_scale"]) == (steps, 0.1, 0.1)
        shared = ("learning_rate", "batch_size", "weight_decay", "buffer_capacity", "update_every", "hidden")
        assert [options[key] for key in shared] == [1e-4, 128, 0.01, 10_000, 1, [64, 64]]
    assert SHIPPED.agent_for("greedy", environment).model.options()["gradient_steps"] == steps


@pytest.mark.parametrize(
    ("environment", "block"),
    [
        ("quadratic", (4, 1, 5.0, 1.0)),
        ("vector-quadratic", (20, 1, 5.0, 1.0)),
        ("neural", (1, 10, 0.1, 0.1)),
        ("mushroom-noisy", (50, 1, 1.0, 0.1)),
        ("shuttle", (50, 1, 0.2, 0.1)),
    ],
)
def test_the_released_codes_protocol_is_its_blocks_and_its_horizons(environment, block):
    options = SHIPPED.agent_for("ensemble++-released", environment).model.options()
    keys = ("gradient_steps", "update_every", "prior_scale", "posterior_scale")
    assert tuple(options[key] for key in keys) == block
    study = "released-code-uci" if environment in ("mushroom-noisy", "shuttle") else "released-code"
    grid = SHIPPED.studies[study].scales["paper"]
    assert environment in grid.environments
    assert grid.horizon == (10_000 if study.endswith("uci") else 100_000)


def test_the_papers_agents_are_played_for_ten_and_for_a_hundred_thousand_rounds():
    synthetic = {"quadratic", "vector-quadratic", "neural"}
    played = {horizon: set() for horizon in (10_000, 100_000)}
    for name in ("versus-ensembleplus", "versus-epinet", "versus-lmcts", "long-run", "long-run-lmcts"):
        grid = SHIPPED.studies[name].scales["paper"]
        assert synthetic <= set(grid.environments)
        played[grid.horizon] |= set(SHIPPED.studies[name].agents)
    assert played[10_000] == played[100_000] == {"ensemble++", "ensemble+", "epinet", "lmcts", "greedy"}
