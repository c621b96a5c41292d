"""The figure of frozen and fine-tuned language models: what is drawn is what was run, and can be read in print."""

from __future__ import annotations

import numpy as np
from finetuned_study import RATES, TIME, dataset

from ensemblepp.figures import frozen_or_finetuned as figure


def test_a_panel_for_each_language_model():
    """Frozen lines dashed, fine-tuned ones solid, an agent in its colour, and the best constant action."""
    panels = figure.draw(dataset()).axes
    assert [axes.get_title() for axes in panels] == ["MiniLM", "GPT-2"]
    for axes, place in zip(panels, ("small", "large"), strict=True):
        lines = {line.get_label(): line for line in axes.get_lines()}
        for label, agent in (("Ensemble++", "ensemble++"), ("Greedy", "greedy")):
            frozen, tuned = (lines[f"{label}, {word}"] for word in ("frozen", "fine-tuned"))
            assert (frozen.get_linestyle(), tuned.get_linestyle()) == ("--", "-")
            assert frozen.get_color() == tuned.get_color()
            expected = 1 - np.mean(RATES[f"{place}-frozen", agent])
            np.testing.assert_allclose(frozen.get_ydata(), np.full(3, expected), rtol=1e-5)
            expected = 1 - np.mean(RATES[f"{place}-tuned", f"{agent}-tuned"])
            np.testing.assert_allclose(tuned.get_ydata(), np.full(3, expected), rtol=1e-5)
        np.testing.assert_allclose(lines["best constant action"].get_ydata(), np.full(3, 0.6), rtol=1e-5)
        np.testing.assert_array_equal(lines["best constant action"].get_xdata(), TIME[1:])
        np.testing.assert_allclose(lines["supervised ceiling"].get_ydata(), np.full(3, 0.8), rtol=1e-5)


def test_without_a_ceiling():
    drawn = figure.draw(dataset().drop_vars(["ceiling_regret", "ceiling_optimal"]))
    assert "supervised ceiling" not in [text.get_text() for text in drawn.legends[0].get_texts()]
    assert "best constant action" in [text.get_text() for text in drawn.legends[0].get_texts()]


def test_width_and_type():
    """6.75 inches, and no word below 7 points."""
    drawn = figure.draw(dataset())
    assert drawn.get_figwidth() == 6.75
    texts = [text for axes in drawn.axes for text in (axes.title, axes.xaxis.label, *axes.get_xticklabels())]
    texts += [text for legend in drawn.legends for text in legend.get_texts()]
    assert min(text.get_fontsize() for text in texts) >= 7
