"""What policies that learn nothing would have cost in the rounds that a run met: fixed actions, and the environment's own.

All engines keep their sums here, so that an agent is measured against the very posts or rows that it was shown.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ensemblepp.bandit import Environment


class FixedPolicies:
    """Sums so far, and what is stored of them.

    Args:
        environment: one whose `fixed_actions` may be zero; there are no fixed policies then.
    """

    def __init__(self, environment: Environment) -> None:
        seeds, actions = len(environment.seeds), environment.fixed_actions
        self._sums: dict[str, np.ndarray] = {"constant_regret": np.zeros((seeds, actions))} if actions else {}
        self._stored: dict[str, list[np.ndarray]] = {name: [] for name in self._sums}

    def __bool__(self) -> bool:
        return bool(self._sums)

    def add(self, means: np.ndarray, choices: Mapping[str, np.ndarray]) -> None:
        """Count some rounds.

        Args:
            means: (seeds, rounds, actions) noise-free rewards of the fixed actions.
            choices: name -> (seeds, rounds, policies) what the environment's own policies choose (`Pool.fixed_choices`).
        """
        best = means.max(axis=2, keepdims=True)
        self._sums["constant_regret"] += (best - means).sum(axis=1)
        for name, chosen in choices.items():
            regret = best - np.take_along_axis(means, chosen, axis=2)
            for what, sums in (("regret", regret.sum(axis=1)), ("optimal", (regret == 0).sum(axis=1))):
                key = f"{name}_{what}"
                self._sums[key] = self._sums.get(key, 0) + sums
                self._stored.setdefault(key, [])

    def record(self) -> None:
        """Store the present sums."""
        for name, values in self._stored.items():
            values.append(self._sums[name].copy())

    def curves(self) -> tuple[np.ndarray | None, dict[str, np.ndarray]]:
        """(regret of the fixed actions (seeds, actions, times), name -> the same of the environment's policies).

        The latter are `..._regret`, and `..._optimal` for rounds without regret; (seeds, times) where a name stands for one
        policy, else (seeds, policies, times).
        """
        found = {
            name: np.stack(values, axis=-1).astype(np.int32 if name.endswith("_optimal") else np.float32)
            for name, values in self._stored.items()
        }
        constant = found.pop("constant_regret", None)
        return constant, {name: values[:, 0] if values.shape[1] == 1 else values for name, values in found.items()}
