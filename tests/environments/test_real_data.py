"""The real UCI files as bandits, and the real agent on one of them; skipped where the raw files are not at hand."""

import numpy as np
import pytest
import torch

from ensemblepp import registry
from ensemblepp.analysis.statistics import mean_interval
from ensemblepp.config.loading import read_files
from ensemblepp.data import mushroom, shuttle
from ensemblepp.engines.choice import simulate
from ensemblepp.environments.classification import Classification

torch.set_num_threads(1)

MUSHROOM = (4208, 3916)
SHUTTLE = (45586, 50, 171, 8903, 3267, 10, 13)


@pytest.fixture(scope="module")
def mushroom_file(mirror, tmp_path_factory):
    path = tmp_path_factory.mktemp("prepared") / "mushroom.nc"
    mushroom.prepare([mirror / "uci" / "agaricus-lepiota.data"], path)
    return path


@pytest.fixture(scope="module")
def shuttle_file(mirror, tmp_path_factory):
    path = tmp_path_factory.mktemp("prepared") / "shuttle.nc"
    shuttle.prepare([mirror / "uci" / "shuttle.trn", mirror / "uci" / "shuttle.tst"], path)
    return path


def build(path, coding="onehot", seeds=(0,)) -> Classification:
    return Classification(seeds, inputs={"data": path}, coding=coding, noise=0.1, passes=1)


class Constant:
    """Always the same action."""

    chains = (("none", "none"),)

    def __init__(self, seeds, action: int) -> None:
        self.seeds, self.action = seeds, action

    def act(self, decisions):
        return decisions.choose(np.full((len(self.seeds), 1), self.action))

    def update(self, choice, reward) -> None:
        pass


@pytest.mark.parametrize(("coding", "width"), [("onehot", 117), ("ordinal", 22)])
def test_mushroom_dimensions(mushroom_file, coding, width):
    """117 letters occur in 22 attributes; a one-hot row has 22 entries of 1/sqrt(22)."""
    environment = build(mushroom_file, coding)
    assert (environment.dimension, environment.fixed_actions) == (width * 2, 2)
    features = environment.decisions().features[0]
    assert np.linalg.norm(features, axis=1) == pytest.approx([1, 1], rel=1e-6)
    if coding == "onehot":
        assert np.count_nonzero(features[0]) == 22
        assert features[0][features[0] > 0] == pytest.approx(22**-0.5, rel=1e-6)
    assert not features[0, width:].any()
    assert not features[1, :width].any()


def test_shuttle_dimensions(shuttle_file):
    """9 numbers, 7 classes."""
    environment = build(shuttle_file)
    assert (environment.dimension, environment.fixed_actions) == (9 * 7, 7)


@pytest.mark.parametrize(("name", "counts"), [("mushroom", MUSHROOM), ("shuttle", SHUTTLE)])
def test_constant_actions_cost_what_the_class_shares_say(name, counts, request):
    """One pass over every row: always class c is wrong in all rows but the counts[c] of its own.

    Best constant: 3,916 wrong of 8,124 (48.2 %) on Mushroom, 12,414 of 58,000 (21.4 %) on Shuttle.
    """
    environment = build(request.getfixturevalue(f"{name}_file"))
    rows, best = sum(counts), int(np.argmax(counts))
    trajectory = simulate(environment, Constant((0,), best), rows)
    assert trajectory.time[-1] == rows == {"mushroom": 8124, "shuttle": 58000}[name]
    constant = trajectory.constant_regret[0, :, -1]
    assert constant.tolist() == [rows - count for count in counts]
    assert trajectory.regret[0, 0, -1] == constant.min() == {"mushroom": 3916, "shuttle": 12414}[name]
    assert trajectory.optimal[0, 0, -1] == counts[best]
    # the observed reward is the right rounds plus noise of standard deviation 0.1 per round
    assert abs(trajectory.reward[0, 0, -1] - counts[best]) < 5 * 0.1 * rows**0.5


def test_configured_ensemblepp_learns_mushroom(mushroom_file, request):
    """The real agent with the project's own hyper-parameters beats the best constant action of the same rounds.

    3 seeds, 300 rounds; the margin is the regret per round, over rounds 201 to 300, that the best constant action of
    these rounds (chosen in hindsight, for each seed) has above the agent. Its 95 % interval must lie above 0.
    """
    seeds, rounds, later = range(3), 300, 100
    spec = read_files(request.config.rootpath).block("mushroom", "ensemble++", 8, rounds, 0, 2).spec
    options = spec["environment"]["options"] | {"inputs": {"data": mushroom_file}}
    environment = registry.load(registry.environment_path(spec))(seeds, **options)
    agent = registry.load(registry.agent_path(spec))(
        seeds, dimension=environment.dimension, ensemble_size=8, horizon=rounds, device="cpu", **spec["agent"]["options"]
    )
    trajectory = simulate(environment, agent, rounds)
    # the stored rounds are a grid
    start = int(np.searchsorted(trajectory.time, rounds - later))
    later = rounds - int(trajectory.time[start])
    own = (trajectory.regret[:, 0, -1] - trajectory.regret[:, 0, start]) / later
    constant = (trajectory.constant_regret[..., -1] - trajectory.constant_regret[..., start]).min(axis=1) / later
    mean, lower, upper = mean_interval(constant - own)
    print(
        f"regret per round {rounds - later + 1}-{rounds}: Ensemble++ {own.mean():.3f}, best constant action "
        f"{constant.mean():.3f}; margin {mean:.3f}, 95 % interval {lower:.3f} to {upper:.3f}, {len(seeds)} seeds"
    )
    assert lower > 0
