"""Linear bandits played whole on a GPU: every seed and chain of a block side by side in PyTorch, round by round.

The same rounds as `compiled` from the same streams; nothing is copied from the device before the end. It also runs on a
CPU, where tests hold it against the compiled kernel.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from ensemblepp.agents.linear.chains import LinearChains
from ensemblepp.bandit import LinearEnvironment, LinearInstance
from ensemblepp.engines import contract
from ensemblepp.errors import TrainingError
from ensemblepp.randomness.streams import GaussianRows
from ensemblepp.storage.checkpoints import Checkpoint
from ensemblepp.trajectory import Trajectory, stores_actions

#: Bytes of noise, and of fresh decision sets, that are drawn ahead.
CHUNK_BYTES = 1 << 28

#: Laws that `_reference` and `_perturbation` make on the device.
FORMULAS = frozenset({"gaussian", "sphere", "cube", "coordinate", "sparse", "member", "raw_gaussian", "exact"})


def play(
    agent: LinearChains,
    environment: LinearEnvironment,
    horizon: int,
    time: np.ndarray,
    on_step: Callable[[int], None],
    checkpoint: Checkpoint | None = None,
) -> Trajectory:
    """Play `horizon` rounds of every seed; outputs at the rounds `time`; `on_step` hears of rounds done.

    A block takes a minute or two, so there are no checkpoints.

    Raises:
        TrainingError: theta is not a number.
    """
    run = BatchedRun(agent, list(contract.instances(environment)))
    seeds, chains = len(agent.seeds), len(agent.laws)
    shape = (seeds, chains, len(time))
    regret, reward, optimal = (torch.zeros(shape, dtype=torch.float64, device=agent.device) for _ in range(3))
    small = stores_actions(seeds, len(agent.chains), horizon)
    action = torch.zeros((seeds, chains, horizon), dtype=torch.int32, device=agent.device) if small else None
    column = 0
    for step in range(horizon):
        chosen = run.round(min(run.chunk, horizon - step))
        if small and chosen is not None:
            action[:, :, step] = chosen
        if step + 1 == time[column]:
            regret[:, :, column], reward[:, :, column], optimal[:, :, column] = run.regret, run.reward, run.optimal
            column += 1
        on_step(seeds)
    regret = regret.cpu().numpy()
    if not np.isfinite(regret).all():
        seed, chain, column = np.argwhere(~np.isfinite(regret))[0]
        raise TrainingError(
            f"{type(agent).__name__} ({' x '.join(agent.laws[chain])}), seed {agent.seeds[seed]}, step {time[column]} or "
            "before: theta is not a number; check prior_variance and noise"
        )
    place = agent.place
    return Trajectory(
        time,
        regret[:, place].astype(np.float32),
        reward.cpu().numpy()[:, place].astype(np.float32),
        optimal.cpu().numpy()[:, place].astype(np.int32),
        action.cpu().numpy()[:, place] if small else None,
        None,
    )


class BatchedRun:
    """All seeds (axis 0) and chains (axis 1) of a block on one device."""

    def __init__(self, agent: LinearChains, instances: list[LinearInstance]) -> None:
        self.agent, self.instances = agent, instances
        self.sphere, self.fresh = instances[0].sphere, instances[0].fresh is not None
        double = agent.precision == "float64" or (agent.precision == "auto" and self.sphere)
        self.dtype = torch.float64 if double else torch.float32
        seeds, chains, size = len(instances), len(agent.laws), agent.ensemble_size
        thetas = [instance.theta for instance in instances]
        starts = [agent.initial_information(instance.seed) for instance in instances]
        self.best = self._put(np.array([np.linalg.norm(theta) for theta in thetas])[:, None])
        if self.sphere and agent.exact_subspace and 0 < size < agent.dimension:
            bases = [np.linalg.qr(start.T)[0] for start in starts]
            thetas = [basis.T @ theta for basis, theta in zip(bases, thetas, strict=True)]
            starts = [start @ basis for basis, start in zip(bases, starts, strict=True)]
        self.dimension = dimension = len(thetas[0])
        self.theta = self._put(np.stack(thetas))
        if not self.sphere and not self.fresh:
            self._set_actions(self._put(np.stack([instance.features for instance in instances])))
        eye = torch.eye(dimension, dtype=torch.float64, device=agent.device)
        self.covariance = (agent.prior_variance * eye).expand(seeds, chains, -1, -1).clone()
        self.exact = any(reference == "exact" for reference, _ in agent.laws)
        self.precision = (eye / agent.prior_variance).expand(seeds, chains, -1, -1).clone() if self.exact else None
        self.mean = torch.zeros((seeds, chains, dimension), dtype=torch.float64, device=agent.device)
        start = self._put(np.stack(starts)).to(self.dtype).transpose(1, 2)  # (seeds, d, M)
        self.information = start[:, None].repeat(1, chains, 1, 1)
        zeros = torch.zeros((seeds, chains), dtype=torch.float64, device=agent.device)
        self.log_determinant, self.regret, self.reward, self.optimal = (zeros.clone() for _ in range(4))
        width = dimension if self.exact else max(size, 1)
        self.rows = [
            [GaussianRows(instance.seed, stream, width) for instance in instances] for stream in ("reference", "perturbation")
        ]
        entries = max(width, instances[0].actions * dimension if self.fresh else 0)
        self.chunk = max(1, min(256, CHUNK_BYTES // (8 * seeds * entries)))
        self.tables: list[torch.Tensor] = []
        # laws without a formula here come as tables; by role, the laws, and law -> (seeds, rounds, M)
        laws = agent.laws if size else ()
        self.unknown = [list(dict.fromkeys(pair[role] for pair in laws if pair[role] not in FORMULAS)) for role in range(2)]
        self.own: list[dict[str, torch.Tensor]] = [{}, {}]
        self.position = self.filled = 0

    def _put(self, values: np.ndarray) -> torch.Tensor:
        return torch.as_tensor(values, device=self.agent.device)

    def _set_actions(self, features: torch.Tensor) -> None:
        """features (seeds, actions, d) float64."""
        self.features = features
        self.scored = features.to(self.dtype).transpose(1, 2).contiguous()
        self.means = torch.matmul(features, self.theta[:, :, None])[..., 0]
        self.best = self.means.max(dim=1, keepdim=True).values

    def _draw(self, rounds: int) -> None:
        """The next rounds' noise: reference and perturbation (seeds, rounds, width), reward noise (seeds, rounds)."""
        drawn = [np.stack([row.take(rounds) for row in rows]) for rows in self.rows]
        vectors = (self.agent.reference, self.agent.perturbation)
        self.own = [
            {law: self._put(of(law, table)) for law in laws}
            for laws, of, table in zip(self.unknown, vectors, drawn, strict=True)
        ]
        drawn.append(np.stack([instance.reward_noise(rounds) for instance in self.instances]))
        self.tables = [self._put(table) for table in drawn]
        if self.fresh:
            self.sets = self._put(np.stack([instance.fresh(rounds) for instance in self.instances]))
        self.position, self.filled = 0, rounds

    def round(self, rounds: int) -> torch.Tensor | None:
        """Play one round; `rounds` rounds are drawn when none are left.

        Returns:
            The chosen indices (seeds, chains), or None on the sphere.
        """
        if self.position == self.filled:
            self._draw(rounds)
        reference, perturbation, noise = (table[:, self.position] for table in self.tables)
        own = [{law: table[:, self.position] for law, table in tables.items()} for tables in self.own]
        if self.fresh:
            self._set_actions(self.sets[:, self.position])
        self.position += 1
        theta = self.mean + self._inflation() * self._deviation(reference, own[0])
        chosen, x, expected = self._choose(theta)
        reward = expected + noise[:, None]
        loss = self.best - expected
        self.regret += loss
        self.reward += reward
        self.optimal += loss == 0
        direction = torch.matmul(self.covariance, x[..., None])[..., 0]
        variance = 1.0 + (x * direction).sum(-1)
        gain = direction / variance[..., None]
        self.mean += gain * (reward - (x * self.mean).sum(-1))[..., None]
        self.covariance -= gain[..., :, None] * direction[..., None, :]
        self.log_determinant += torch.log(variance)
        if self.exact:
            self.precision += x[..., :, None] * x[..., None, :]
        if self.agent.ensemble_size:
            z = [own[1][law] if law in own[1] else _perturbation(law, perturbation) for _, law in self.agent.laws]
            z = torch.stack(z, dim=1)
            self.information += (x.to(self.dtype)[..., :, None]) * z.to(self.dtype)[..., None, :]
        return chosen

    def _choose(self, theta: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor, torch.Tensor]:
        """Indices, features (seeds, chains, d) and mean rewards of the best actions for theta."""
        if self.sphere:
            norm = theta.norm(dim=-1, keepdim=True)
            axis = torch.zeros_like(theta)
            axis[..., 0] = 1.0
            x = torch.where(norm > 0, theta / norm.clamp(min=torch.finfo(norm.dtype).tiny), axis)
            x = torch.where(norm.isnan(), norm, x)  # a theta that is no number must not become an action
            return None, x, torch.matmul(x, self.theta[:, :, None])[..., 0]
        chosen = torch.matmul(theta.to(self.dtype), self.scored).argmax(dim=-1)
        rows = torch.arange(len(chosen), device=chosen.device)[:, None]
        broken = torch.where(theta.sum(-1).isfinite(), 0.0, torch.nan)
        return chosen, self.features[rows, chosen], self.means[rows, chosen] + broken

    def _inflation(self) -> torch.Tensor | float:
        delta = self.agent.inflation_delta
        if delta is None:
            return 1.0
        return (self.agent.prior_variance**-0.5 + torch.sqrt(2 * np.log(1 / delta) + self.log_determinant))[..., None]

    def _deviation(self, gaussian: torch.Tensor, own: dict[str, torch.Tensor]) -> torch.Tensor | float:
        """A zeta, or a draw from N(0, covariance); (seeds, chains, d)."""
        if self.exact:
            upper = torch.linalg.cholesky(self.precision, upper=True)
            right = gaussian[:, None, :, None].expand(*upper.shape[:-1], 1)
            return torch.linalg.solve_triangular(upper, right, upper=True)[..., 0]
        if not self.agent.ensemble_size:
            return 0.0
        zeta = [own[law] if law in own else _reference(law, gaussian) for law, _ in self.agent.laws]
        zeta = torch.stack(zeta, dim=1).to(self.dtype)
        pulled = torch.matmul(self.information, zeta[..., None])
        return torch.matmul(self.covariance, pulled.double())[..., 0]


def _reference(law: str, gaussian: torch.Tensor) -> torch.Tensor:
    """`distributions.reference` for (seeds, M), and the law "member"."""
    size = gaussian.shape[-1]
    if law == "gaussian":
        return gaussian
    if law == "sphere":
        return size**0.5 * gaussian / gaussian.norm(dim=-1, keepdim=True)
    signs = torch.where(gaussian < 0, -1.0, 1.0).to(gaussian.dtype)
    if law == "cube":
        return signs
    if law == "member":
        signs = signs.abs()
    kept = min(2 if law == "sparse" else 1, size)
    largest = gaussian.abs().topk(kept, dim=-1).indices
    return torch.zeros_like(gaussian).scatter(-1, largest, (size / kept) ** 0.5 * signs.gather(-1, largest))


def _perturbation(law: str, gaussian: torch.Tensor) -> torch.Tensor:
    """`distributions.perturbation` for (seeds, M)."""
    if law == "raw_gaussian":
        return gaussian / gaussian.shape[-1] ** 0.5
    return _reference("sphere" if law == "gaussian" else law, gaussian) / gaussian.shape[-1] ** 0.5
