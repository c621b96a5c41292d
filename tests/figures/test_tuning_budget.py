"""Regret by the number of settings tried: the curves of the analysis, and agents as they come beside them."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from synthetic_studies import study

from ensemblepp.analysis import tuning
from ensemblepp.errors import ResultError
from ensemblepp.figures import style, tuning_budget

#: Setting -> final regret of four seeds; the others' are drawn.
SETTINGS, SEEDS = 5, 4


def played(without: tuple[str, str] | None = None):
    """Two agents with five settings each, in two environments; `without` is an (environment, agent) that was not played."""
    source = np.random.default_rng(0)
    names = [(agent, f"{agent}-setting-0{place}") for agent in ("ours", "theirs") for place in range(SETTINGS)]
    names += [(agent, agent) for agent in ("ours", "theirs")]
    curves = {(place, name, 8): source.gamma(5, size=SEEDS) for place in ("near", "far") for _, name in names}
    dataset = study(curves)
    if without:
        environment, agent = without
        left_out = [name for base, name in names if base == agent]
        dataset["regret"].loc[{"environment": environment, "agent": left_out}] = np.nan
    return dataset


def test_lines_are_the_expected_best_of_k_and_diamonds_the_agents_as_they_come():
    dataset = played()
    style.apply()
    figure = tuning_budget.draw(dataset)
    for axes, environment in zip(figure.axes, ("near", "far"), strict=True):
        lines = axes.get_lines()
        assert len(lines) == 4
        for agent, line, diamond in zip(("ours", "theirs"), lines[::2], lines[1::2], strict=True):
            curve = tuning.budget_curve(dataset, tuning.settings(dataset)[agent], environment)
            np.testing.assert_allclose(line.get_xydata(), np.column_stack([curve["time"], curve.mean("seed")]))
            untuned = dataset["regret"].sel(environment=environment, agent=agent).isel(time=-1).mean()
            assert diamond.get_xydata() == pytest.approx(np.array([[tuning_budget.UNTUNED, float(untuned)]]))
            assert line.get_label() == agent.upper()
            assert line.get_color() == diamond.get_color()
        assert axes.get_xlabel()
        figure.draw_without_rendering()
        assert [text.get_text() for text in axes.get_xticklabels()] == ["as is", "1", "2", "4"]
    plt.close(figure)


def test_an_agent_that_was_left_out_of_an_environment_has_no_curve_there():
    figure = tuning_budget.draw(played(without=("far", "theirs")))
    assert [len(axes.get_lines()) for axes in figure.axes] == [4, 2]
    plt.close(figure)


def test_a_study_without_settings_is_refused():
    with pytest.raises(ResultError, match="its grid has `settings`"):
        tuning_budget.draw(study({("near", "ours", 8): np.ones(3)}))
