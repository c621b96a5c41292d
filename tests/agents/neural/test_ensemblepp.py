"""Neural Ensemble++: its loss and gradient against the paper's full symmetrised loss, and its score by hand."""

import itertools
import math

import numpy as np
import pytest
import torch

from ensemblepp.agents.neural.ensemblepp import MAX_DIRECTIONS, SAMPLED_DIRECTIONS, NeuralEnsemblePlusPlus
from ensemblepp.bandit import Choice, Decisions
from ensemblepp.errors import ConfigError
from ensemblepp.randomness.distributions import LAWS, update_directions
from ensemblepp.randomness.streams import StepNoise, generator

torch.set_num_threads(1)

TRAINING = {
    "horizon": 100,
    "device": "cpu",
    "learning_rate": 1e-3,
    "batch_size": 8,
    "weight_decay": 0.01,
    "buffer_capacity": 50,
    "gradient_steps": 2,
    "warm_up": 3,
}
FINITE = ["coordinate", "cube", "sparse"]
CONTINUOUS = ["gaussian", "sphere"]


def build(seeds=(0, 1), dimension=6, ensemble_size=4, hidden=(16, 16), **changes) -> NeuralEnsemblePlusPlus:
    scales = {"prior_scale": 0.7, "posterior_scale": 0.3, "perturbation_scale": 0.5}
    laws = {"references": ["sphere"], "perturbations": ["sphere"], "update": "coordinate"}
    options = TRAINING | scales | laws | changes
    return NeuralEnsemblePlusPlus(seeds, dimension=dimension, ensemble_size=ensemble_size, hidden=hidden, **options)


def minibatch(agent: NeuralEnsemblePlusPlus, dimension: int, size: int, batch: int = 9) -> tuple[torch.Tensor, ...]:
    """Features, rewards and scaled perturbations with rows of their own for every chain; rewards 0 and 1 for two logits."""
    rng = np.random.default_rng(0)
    shapes = [(agent.stack, batch, dimension), (agent.stack, batch), (agent.stack, batch, size)]
    features, reward, extra = (torch.tensor(rng.standard_normal(shape), dtype=torch.float32) for shape in shapes)
    return features, (reward > 0).float() if agent.classes == 2 else reward, extra


def loss_and_gradients(agent, batch, step: int = 0) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    losses = agent.loss_of(*batch, step)
    gradients = torch.autograd.grad(losses.sum(), list(agent.parameters.values()), materialize_grads=True)
    return losses.detach(), dict(zip(agent.parameters, gradients, strict=True))


class Reference:
    """The paper's network of one chain, unit by unit, in float64: eq. "ensemble++_with_prior"."""

    def __init__(self, agent: NeuralEnsemblePlusPlus, row: int, posterior_scale: float = 0.3) -> None:
        self.parameters = {name: value.detach()[row].double() for name, value in agent.parameters.items()}
        self.prior = agent.prior[row].double()
        for parameter in self.parameters.values():
            parameter.requires_grad_()
        self.layers, self.classes, self.posterior_scale = len(agent.hidden), agent.classes, posterior_scale

    def features(self, x: torch.Tensor) -> torch.Tensor:
        for layer in range(self.layers):
            x = torch.clamp(x @ self.parameters[f"w{layer}"] + self.parameters[f"b{layer}"][0], min=0)
        return x

    def predict(self, x: torch.Tensor, zeta: torch.Tensor) -> list[torch.Tensor]:
        """f(x, zeta) of every class, with the stop-gradient on the features of the ensemble and prior terms."""
        h = self.features(x)
        outputs = []
        for c in range(self.classes):
            base, heads = self.parameters["base"][:, c], self.parameters["heads"][:, c :: self.classes]
            prior = self.prior[:, c :: self.classes]
            outputs.append(h @ base + h.detach() @ (self.posterior_scale * heads @ zeta) + h.detach() @ (prior @ zeta))
        return outputs

    def loss(self, x: torch.Tensor, reward: torch.Tensor, extra: torch.Tensor, zeta: torch.Tensor) -> torch.Tensor:
        """Of one sample and one direction: squared error with the target y + <zeta, z>, or -log softmax of class y."""
        outputs = self.predict(x, zeta)
        if self.classes == 1:
            return (reward + zeta @ extra - outputs[0]) ** 2
        return torch.logsumexp(torch.stack(outputs), dim=0) - outputs[int(reward)]


def relative_error(found: torch.Tensor, expected: torch.Tensor) -> float:
    return float((found.double() - expected).norm() / expected.norm())


def assert_equals_symmetrised_loss(agent, directions, batch, step: int = 0) -> None:
    """Loss and every gradient of every chain, relative error below 1e-5 (the agent computes in float32).

    Args:
        agent: the agent.
        directions: (chains, directions, M), zeta as well as -zeta.
        batch: the minibatch.
        step: which of the round's gradient steps it is.
    """
    losses, gradients = loss_and_gradients(agent, batch, step)
    for row in range(agent.stack):
        features, reward, extra = (part[row].double() for part in batch)
        network = Reference(agent, row)
        total = torch.zeros((), dtype=torch.float64)
        for zeta, sample in itertools.product(torch.as_tensor(directions[row]), range(len(features))):
            total = total + network.loss(features[sample], reward[sample], extra[sample], zeta)
        loss = total / len(directions[row]) / len(features)
        assert losses[row].item() == pytest.approx(loss.item(), rel=1e-5)
        expected = torch.autograd.grad(loss, list(network.parameters.values()))
        for (name, found), wanted in zip(gradients.items(), expected, strict=True):
            assert relative_error(found[row], wanted) < 1e-5, name


def signed_axes(size: int) -> np.ndarray:
    """sqrt(M) beta e_m for every m and beta = +-1, one by one."""
    rows = [
        [beta * math.sqrt(size) if index == member else 0.0 for index in range(size)]
        for member in range(size)
        for beta in (1, -1)
    ]
    return np.array(rows)


@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
@pytest.mark.parametrize("hidden", [(16, 16), (12,), ()])
@pytest.mark.parametrize("size", [1, 4])
def test_loss_is_the_papers_symmetrised_loss(hidden, size, loss):
    """Eq. "ensemble++_loss_app", sum over m and beta = +-1 with zeta = sqrt(M) beta e_m and target y + sqrt(M) beta z_m.

    With two logits the full cross-entropy of f(x, zeta), over the same directions. Averaged over the 2M directions, every
    term is kept: nothing of the derivation that the agent relies on is used.
    """
    agent = build(hidden=hidden, ensemble_size=size, loss=loss)
    assert_equals_symmetrised_loss(agent, [signed_axes(size)] * 2, minibatch(agent, 6, size))


@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
@pytest.mark.parametrize("law", FINITE)
def test_loss_averages_over_all_directions_of_a_finite_update_law(law, loss):
    """2M = 8, 2^M = 16 and 4 M(M-1)/2 = 24 enumerated directions, each with its term."""
    agent = build(update=law, loss=loss)
    assert_equals_symmetrised_loss(agent, [update_directions(law, 4)] * 2, minibatch(agent, 6, 4))


def test_finite_update_laws_differ_with_two_logits_only():
    """The squared loss knows no more of a law than its covariance, which is I; cross-entropy does."""
    for loss, same in (("squared", True), ("cross_entropy", False)):
        losses = []
        for law in FINITE:
            agent = build(update=law, loss=loss)
            losses.append(agent.loss_of(*minibatch(agent, 6, 4), 0)[0].item())
        assert (len(set(losses)) == 1) == same


@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
@pytest.mark.parametrize("law", CONTINUOUS)
def test_loss_averages_over_sampled_directions_and_their_opposites(law, loss):
    """16 directions of the seed's own stream and their negatives, anew in every gradient step and every round."""
    agent = build(update=law, loss=loss)
    batch = minibatch(agent, 6, 4)
    shape = (2, agent.gradient_steps, SAMPLED_DIRECTIONS, 4)
    drawn = np.stack([generator(seed, "minibatch/directions").standard_normal(shape, dtype=np.float32) for seed in (0, 1)])
    if law == "sphere":
        drawn = 2 * drawn / np.linalg.norm(drawn, axis=-1, keepdims=True)
    agent.load(2)
    met = set()
    for round_ in range(2):
        for step in range(agent.gradient_steps):
            half = drawn[:, round_, step].astype(float)
            assert_equals_symmetrised_loss(agent, np.concatenate([half, -half], axis=1), batch, step)
            met.add(agent.loss_of(*batch, step)[0].item())
        agent.end_round()
    assert len(met) == 4


def test_more_directions_than_can_be_averaged_are_refused():
    """Cube at M = 12 has 2^12 = 4,096 directions, at M = 13 twice as many; the squared loss needs no list."""
    assert MAX_DIRECTIONS == 4096
    assert build(update="cube", ensemble_size=12, loss="cross_entropy")._directions.shape == (2048, 12)
    with pytest.raises(
        ConfigError, match=r"^update law 'cube' has 8.19e\+03 directions at ensemble size 13, more than 4096: .*"
    ):
        build(update="cube", ensemble_size=13, loss="cross_entropy")
    with pytest.raises(ConfigError, match=r"choose update: coordinate, or a continuous law, in config/agents.yaml$"):
        build(update="sparse", ensemble_size=46, loss="cross_entropy")
    assert build(update="cube", ensemble_size=1000, loss="squared").ensemble_size == 1000


def test_the_loss_averages_over_the_minibatch_and_adds_the_members():
    """<h, b> = 2, y = 5; members 0.3 Theta + prior against the targets, one sample, no trunk: 9 + sum of squares."""
    agent = build(seeds=(0,), dimension=1, ensemble_size=2, hidden=())
    with torch.no_grad():
        agent.parameters["base"][:] = 2.0
        agent.parameters["heads"][:] = (torch.tensor([[[1.0, -3.0]]]) - agent.prior) / 0.3
    one, targets = torch.ones(1, 1, 1), torch.tensor([[[0.5, 1.0]]])
    # (5 - 2)^2 + (1 - 0.5)^2 + (-3 - 1)^2
    assert agent.loss_of(one, torch.tensor([[5.0]]), targets, 0).item() == pytest.approx(9 + 0.25 + 16, rel=1e-5)
    # a second sample that is fitted exactly halves the mean
    samples = (torch.ones(1, 2, 1), torch.tensor([[5.0, 2.0]]), torch.tensor([[[0.5, 1.0], [1.0, -3.0]]]))
    assert agent.loss_of(*samples, 0).item() == pytest.approx(25.25 / 2, rel=1e-5)


@pytest.mark.parametrize("update", [*FINITE, *CONTINUOUS])
def test_ensemble_terms_do_not_train_the_trunk_or_the_base(update):
    """Paper, "Gradient Computations": a base head of 0 predicts rewards of 0 exactly, so only the heads have a gradient."""
    agent = build(update=update)
    agent.load(1)
    features, reward, extra = minibatch(agent, 6, 4)
    with torch.no_grad():
        agent.parameters["base"][:] = 0
    _, gradients = loss_and_gradients(agent, (features, 0 * reward, extra))
    assert {name for name, gradient in gradients.items() if gradient.any()} == {"heads"}
    assert (gradients["heads"].abs().amax(dim=(1, 2)) > 0.01).all()


def test_rewards_do_not_train_the_heads():
    """With the squared loss the heads' gradient is that of the perturbations alone."""
    agent = build()
    features, reward, extra = minibatch(agent, 6, 4)
    losses, gradients = zip(*(loss_and_gradients(agent, (features, r, extra)) for r in (reward, -9 * reward)), strict=True)
    assert losses[0][0] != losses[1][0]
    assert torch.equal(*(gradient["heads"] for gradient in gradients))


def test_two_logits_do_not_see_the_perturbations():
    """Paper, "Classification Loss Function": the randomness of the targets is replaced by that of the directions."""
    agent = build(loss="cross_entropy")
    features, reward, extra = minibatch(agent, 6, 4)
    assert torch.equal(agent.loss_of(features, reward, extra, 0), agent.loss_of(features, reward, 5 * extra, 0))


def test_seeds_do_not_share_a_gradient():
    """The gradient of one seed's loss is zero in every other seed's parameters."""
    agent = build(seeds=(0, 1, 2))
    loss = agent.loss_of(*minibatch(agent, 6, 4), 0)[1]
    for gradient in torch.autograd.grad(loss, list(agent.parameters.values())):
        assert gradient[1].abs().max() > 0
        assert gradient[[0, 2]].abs().max() == 0


def test_score_by_hand():
    """A network of 2 inputs, 2 hidden units and M = 2, coordinate reference, so that zeta is sqrt(2) times +-e_1 or +-e_2.

    W = [[1, -1], [2, 0.5]], c = (0, -1), b = (0.5, -1):
    x = (1, 1): h = relu(3, -1.5) = (3, 0), <h, b> = 1.5;  x = (-2, 4): h = relu(6, 3) = (6, 3), <h, b> = 0.
    members E = 2 Theta = [[1, 0], [-2, 4]] with prior scale 0: <h, E> = (3, 0) and (0, 12).
    Their spreads, the roots of the sums of squares, are 3 and 12.
    """
    agent = build((4,), 2, 2, (2,), references=["coordinate"], prior_scale=0.0, posterior_scale=2.0)
    with torch.no_grad():
        agent.parameters["w0"][0] = torch.tensor([[1.0, -1.0], [2.0, 0.5]])
        agent.parameters["b0"][0, 0] = torch.tensor([0.0, -1.0])
        agent.parameters["base"][0, :, 0] = torch.tensor([0.5, -1.0])
        agent.parameters["heads"][0] = torch.tensor([[0.5, 0.0], [-1.0, 2.0]])
    features = torch.tensor([[[1.0, 1.0], [-2.0, 4.0]]])
    noise = StepNoise([4], "reference", 2)
    met = set()
    agent.load(20)
    for _ in range(20):
        gaussian = noise.next()[0]
        member = 0 if abs(gaussian[0]) > abs(gaussian[1]) else 1
        sign = 1 if gaussian[member] > 0 else -1
        members = [[3, 0], [0, 12]]
        expected = [mean + sign * math.sqrt(2) * row[member] for mean, row in zip([1.5, 0.0], members, strict=True)]
        with torch.no_grad():
            value, mean = agent.score(features)
            np.testing.assert_allclose(value, [expected], rtol=1e-6)
            assert mean.tolist() == [[1.5, 0.0]]
            assert agent.spread(features).tolist() == [[3.0, 12.0]]
        met.add((member, sign))
        agent.end_round()
    assert len(met) == 4


@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
@pytest.mark.parametrize("law", LAWS)
def test_score_is_base_plus_ensemble_times_zeta(law, loss):
    """f(x, zeta) of the reference network in float64, with the zeta of the seed's reference stream; the mean has zeta = 0.

    With two logits it is the second one that acts, not the difference.
    """
    agent = build(seeds=(0, 3), references=[law], loss=loss)
    features, _, _ = minibatch(agent, 6, 4, batch=5)
    noise = StepNoise((0, 3), "reference", 4)
    agent.load(3)
    for _ in range(3):
        gaussian = noise.next()
        value, mean = agent.score(features)
        for row in range(2):
            g = gaussian[row]
            largest = np.argsort(-np.abs(g))
            zeta = {
                "gaussian": g,
                "sphere": 2 * g / np.linalg.norm(g),
                "cube": np.sign(g),
                "coordinate": np.where(np.arange(4) == largest[0], 2 * np.sign(g), 0),
                "sparse": np.where(np.isin(np.arange(4), largest[:2]), math.sqrt(2) * np.sign(g), 0),
            }[law]
            network = Reference(agent, row)
            for found, direction in ((value, zeta), (mean, 0 * zeta)):
                expected = [network.predict(x, torch.tensor(direction))[-1].item() for x in features[row].double()]
                np.testing.assert_allclose(found[row].detach(), expected, rtol=1e-4, atol=1e-6)
        agent.end_round()


@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
def test_spread_is_the_standard_deviation_of_what_is_sampled(loss):
    """20,000 vectors zeta of N(0, I) through the reference network's linear map, against `spread`: within 4 %."""
    agent = build(loss=loss)
    features, _, _ = minibatch(agent, 6, 4, batch=3)
    zeta = np.random.default_rng(1).standard_normal((20_000, 4))
    for row in range(2):
        network = Reference(agent, row)
        for place, x in enumerate(features[row].double()):
            columns = [network.predict(x, axis)[-1].item() for axis in torch.eye(4, dtype=torch.float64)]
            middle = network.predict(x, torch.zeros(4, dtype=torch.float64))[-1].item()
            sampled = zeta @ (np.array(columns) - middle)
            assert agent.spread(features)[row, place].item() == pytest.approx(sampled.std(), rel=0.04)


def test_act_takes_the_greatest_score_of_one_common_zeta():
    """One zeta per round serves all actions (Algorithm 1): a twin agent's scores name the action."""
    agent, twin = build(seeds=(0, 3)), build(seeds=(0, 3))
    decisions = Decisions(np.random.default_rng(1).standard_normal((2, 12, 6)).astype(np.float32))
    twin.load(5)
    explored = np.zeros(2, dtype=int)
    for _ in range(5):
        choice = agent.act(decisions)
        value, mean = (part.detach().numpy() for part in twin.score(torch.from_numpy(decisions.features)))
        assert choice.index.tolist() == [[int(row.argmax())] for row in value]
        assert np.array_equal(choice.features[:, 0], decisions.features[[0, 1], choice.index[:, 0]])
        explored += value.argmax(axis=1) != mean.argmax(axis=1)
        for player in (agent, twin):
            player.end_round()
    assert agent.explored.tolist() == explored.tolist()
    assert explored.sum() > 0


@pytest.mark.parametrize("law", [*LAWS, "raw_gaussian"])
def test_perturbations_are_unit_vectors_times_their_scale(law):
    """z = zeta / |zeta| from the seed's perturbation stream, times 0.5 here; raw_gaussian is g / sqrt(M) as it is."""
    agent = build(seeds=(0, 3), perturbations=[law])
    noise = StepNoise((0, 3), "perturbation", 4)
    agent.load(3)
    for _ in range(3):
        extra, gaussian = agent.extra(torch.zeros(2, 1, 6)), noise.next()
        if law == "raw_gaussian":
            np.testing.assert_allclose(extra, 0.5 * gaussian / 2, rtol=1e-6)
        else:
            np.testing.assert_allclose(np.linalg.norm(extra, axis=1), 0.5, rtol=1e-6)
        if law in ("gaussian", "sphere"):
            np.testing.assert_allclose(extra, 0.5 * gaussian / np.linalg.norm(gaussian, axis=1, keepdims=True), rtol=1e-6)
        agent.end_round()


def test_a_sample_keeps_its_perturbation():
    """What the loss is given beside a sample is the z of the round in which it was seen, however often it is drawn."""

    class Watched(NeuralEnsemblePlusPlus):
        def loss_of(self, features, reward, extra, step):
            self.__dict__.setdefault("seen", []).append((features[..., 0].clone(), extra.clone()))
            return super().loss_of(features, reward, extra, step)

    options = TRAINING | {"prior_scale": 1.0, "posterior_scale": 1.0, "perturbation_scale": 0.5, "hidden": (4,)}
    laws = {"references": ["sphere"], "perturbations": ["sphere"], "update": "coordinate"}
    agent = Watched((0, 3), dimension=1, ensemble_size=3, **options | laws | {"buffer_capacity": 5})
    noise = StepNoise((0, 3), "perturbation", 3)
    given = []
    for round_ in range(12):
        gaussian = noise.next()
        given.append(0.5 * gaussian / np.linalg.norm(gaussian, axis=1, keepdims=True))
        agent.update(Choice(np.zeros((2, 1), dtype=int), np.full((2, 1, 1), round_, dtype=np.float32)), np.zeros((2, 1)))
    assert len(agent.seen) == 2 * 9
    for features, extra in agent.seen:
        for seed in range(2):
            expected = [given[int(round_)][seed] for round_ in features[seed]]
            np.testing.assert_allclose(extra[seed], expected, rtol=1e-6)


@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
def test_chains_are_all_pairs_of_laws_and_each_plays_as_if_alone(loss):
    """2 references x 3 perturbations of 2 seeds: start, choices for 30 rounds and parameters are those of the pair alone."""
    references, perturbations = ["sphere", "cube"], ["sphere", "sparse", "raw_gaussian"]
    options = {"loss": loss, "learning_rate": 0.01, "update": "cube"}
    agent = build(references=references, perturbations=perturbations, **options)
    pairs = list(itertools.product(references, perturbations))
    assert agent.chains == tuple(pairs)
    alone = [build(references=[first], perturbations=[second], **options) for first, second in pairs]
    assert [single.chains for single in alone] == [(pair,) for pair in pairs]
    rng = np.random.default_rng(0)
    parted = False
    for _ in range(30):
        decisions = Decisions(rng.standard_normal((2, 10, 6)).astype(np.float32))
        choice = agent.act(decisions)
        reward = (choice.features.sum(axis=2) > 0).astype(float)
        agent.update(choice, reward)
        for chain, single in enumerate(alone):
            own = single.act(decisions)
            assert np.array_equal(own.index[:, 0], choice.index[:, chain])
            single.update(own, reward[:, [chain]])
        parted |= len(set(choice.index[0])) > 1
    assert parted
    for chain, single in enumerate(alone):
        for name, own in single.parameters.items():
            torch.testing.assert_close(agent.parameters[name][chain::6], own, rtol=0, atol=1e-5)


#: (d, classes, M): total and trained parameters, "code" column of the released code's counts.
COUNTS = {
    (100, 1, 2): (10_944, 10_816),
    (100, 1, 4): (11_200, 10_944),
    (100, 1, 8): (11_712, 11_200),
    (100, 1, 16): (12_736, 11_712),
    (100, 1, 32): (14_784, 12_736),
    (100, 1, 64): (18_880, 14_784),
    (100, 2, 8): (12_800, 11_776),
    (100, 2, 32): (18_944, 14_848),
    (63, 1, 8): (9_344, 8_832),
    (44, 1, 8): (8_128, 7_616),
}


@pytest.mark.parametrize(("dimension", "classes", "size"), COUNTS)
def test_parameter_counts_are_those_of_the_released_code(dimension, classes, size):
    """Trunk 2 x 64: H + (2M + 1) 64 C with H = (d + 1) 64 + 65 * 64, of which 64 M C are the frozen prior."""
    agent = build((0,), dimension, size, (64, 64), loss="cross_entropy" if classes == 2 else "squared")
    total, trained = agent.parameter_counts()
    assert (total, trained) == COUNTS[dimension, classes, size]
    assert total == (dimension + 1) * 64 + (64 + 1) * 64 + (2 * size + 1) * 64 * classes
    assert trained == sum(parameter[0].numel() for parameter in agent.parameters.values())
    assert total - trained == agent.prior[0].numel()


@pytest.mark.parametrize("loss", ["squared", "cross_entropy"])
def test_prior_heads_are_fixed_and_have_unit_rows(loss):
    """ensemble() = posterior_scale Theta + prior_scale Theta_0; rows of Theta_0 have norm 1 per class and outlive training."""
    agent = build(warm_up=0, learning_rate=0.01, loss=loss)
    classes = agent.classes

    def prior() -> torch.Tensor:
        return agent.ensemble().detach() - 0.3 * agent.parameters["heads"].detach()

    before, heads = prior(), agent.parameters["heads"].detach().clone()
    for c in range(classes):
        np.testing.assert_allclose(before[..., c::classes].norm(dim=-1), 0.7, rtol=1e-5)
    decisions = Decisions(np.random.default_rng(1).standard_normal((2, 12, 6)).astype(np.float32))
    for _ in range(20):
        agent.update(agent.act(decisions), np.ones((2, 1)))
    assert (agent.parameters["heads"] - heads).abs().max() > 0.05
    torch.testing.assert_close(prior(), before, rtol=0, atol=1e-6)
