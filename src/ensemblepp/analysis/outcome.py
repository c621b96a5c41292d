"""What a stream of labelled posts came to, for those who would use it: decisions, a summary of them, and what a person gains.

The summary is of the study's dataset, the rest of single decisions. The second half of a stream is told apart: in the first,
agents have seen too little to be judged by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import xarray as xr

from ensemblepp.analysis import moderation
from ensemblepp.analysis.selection import agent_runs, best_constant, ensemble_sizes

if TYPE_CHECKING:
    import pandas as pd

#: Shares of the posts that are handed to a person, the most doubtful first.
HANDED = (0.0, 0.05, 0.1, 0.2, 0.3)

FLOOR, CEILING = "best constant action", "supervised fit"


class Stream(NamedTuple):
    """What was shown.

    Attributes:
        words: the two actions'.
        reviews: whether the second one is a human review, which is never wrong.
        label: (post,) 1 for a post that is to be blocked.
        row: (post,) where in the file it stands.
    """

    words: tuple[str, str]
    reviews: bool
    label: np.ndarray
    row: np.ndarray


def decided(found: xr.Dataset, stream: Stream, agent: str) -> pd.DataFrame:
    """A row for every decision of an agent, in the order of seeds and rounds.

    Columns: agent, seed, round (from 1), row (of the file, from 0), label (1: to be blocked), decision, right, the value that
    was expected of both actions, spread: the standard deviation of their difference as the agent draws it, and doubt: the
    chance that the agent would have decided otherwise with other draws, which by its belief is the chance that the other action
    gains more. Spread and doubt are NaN of agents that draw nothing (`runs.beliefs`).

    Args:
        found: of `runs.decisions.decisions`.
        stream: the posts.
        agent: its name for readers.
    """
    import pandas as pd

    seeds, rounds = found["action"].shape
    item, action, spread, chance = (found[name].values.ravel() for name in ("item", "action", "spread", "chance"))
    label = stream.label[item]
    return pd.DataFrame(
        {
            "agent": agent,
            "seed": np.repeat(found["seed"].values, rounds),
            "round": np.tile(np.arange(1, rounds + 1), seeds),
            "row": stream.row[item],
            "label": label,
            "decision": np.array(stream.words)[action],
            # action 0 is the right one about a post that is to be blocked
            "right": (action != label) | (stream.reviews & (action == 1)),
            **{f"{word} value": found["value"].values[..., place].ravel() for place, word in enumerate(stream.words)},
            "spread": spread,
            "doubt": np.where(action == 1, 1 - chance, chance),
        }
    )


def closeness(decisions: pd.DataFrame, words: tuple[str, str]) -> np.ndarray:
    """How close every decision was, the closest least: how far its doubt is from a half, or without doubt its two values."""
    values = decisions[f"{words[1]} value"] - decisions[f"{words[0]} value"]
    return np.where(decisions["doubt"].isna(), values.abs(), (decisions["doubt"] - 0.5).abs())


def middle(dataset: xr.Dataset) -> int:
    """The stored round that is nearest to half the horizon: the second half begins after it."""
    times = dataset["time"].values
    return int(times[np.abs(times - dataset.attrs["horizon"] / 2).argmin()])


def handed_over(decisions: pd.DataFrame, words: tuple[str, str], after: int) -> pd.DataFrame:
    """Accuracy after a round if a person, who is always right, decides the most doubtful posts; a row for every agent."""
    import pandas as pd

    rows = []
    for agent, mine in decisions[decisions["round"] > after].groupby("agent", sort=False):
        order = np.argsort(closeness(mine, words), kind="stable")
        right = mine["right"].values[order]
        handed = [round(share * len(right)) for share in HANDED]
        rows.append(
            {"agent": agent} | {f"{s:.0%}": (n + right[n:].sum()) / len(right) for s, n in zip(HANDED, handed, strict=True)}
        )
    return pd.DataFrame(rows)


def summary(dataset: xr.Dataset) -> pd.DataFrame:
    """A row for every agent, for the best constant action and for a supervised fit: means over seeds, at the horizon.

    Columns: who, accuracy, accuracy and regret in the second half (after `middle`), how often action 1 was taken, free posts
    on which action 0 was, other posts on which action 1 was; with reviews, also how many a fixed threshold on the supervised
    fit, and random review, would need to be as accurate.

    Args:
        dataset: a study's, of one moderation environment with a supervised ceiling.
    """
    import pandas as pd

    environment = str(dataset["environment"].values[0])
    words = moderation.wording(dataset, environment)
    half = middle(dataset)
    rows = []
    for name, (regret, optimal) in _policies(dataset, environment).items():
        counts = moderation.decisions(dataset, environment, regret, optimal)
        accuracy = moderation.accuracy(dataset, environment, regret, optimal)
        right = (accuracy * dataset["time"]).transpose("seed", "time")
        late = (right.isel(time=-1) - right.sel(time=half)) / (dataset.attrs["horizon"] - half)
        free_wrong, other_wrong = _wrong(words)
        row = {
            "who": name,
            "accuracy": _mean(accuracy),
            "accuracy, second half": float(late.mean()),
            "regret, second half": _mean(regret - regret.sel(time=half)),
            _taken(words): _mean(counts.taken),
            free_wrong: _mean(counts.missed),
            other_wrong: _mean(counts.let_through),
        }
        if words.reviews:
            missed = counts.missed.isel(time=-1).transpose("seed")
            row |= {f"reviews, {key}": _mean(of(dataset, environment, missed)) for key, of in moderation.BASELINES.items()}
        rows.append(row)
    return pd.DataFrame(rows)


def learnt(summary: pd.DataFrame) -> str:
    """Which agents did better than the best constant action in the second half of the stream, by regret, in words."""
    late = summary.set_index("who")["regret, second half"]
    agents = late.drop([FLOOR, CEILING])
    better = " and ".join(agents.index[agents < late[FLOOR]])
    worse = " and ".join(agents.index[agents >= late[FLOOR]])
    said = [f"{better} did better than the best constant action in the second half"] if better else []
    if worse:
        said.append(
            f"{worse} did no better than the best constant action in the second half: the stream may be too short to learn from"
        )
    return "; ".join(said)


def _policies(dataset: xr.Dataset, environment: str) -> dict[str, tuple[xr.DataArray, xr.DataArray]]:
    """Name for readers -> regret and rounds without regret, (seed, time), of all that is compared."""
    found = {}
    for agent, label in zip(dataset["agent"].values, dataset["label"].values, strict=True):
        runs = agent_runs(dataset, str(agent))
        runs = runs.sel(environment=environment, ensemble_size=ensemble_sizes(runs)[0])
        found[str(label)] = runs["regret"], runs["optimal"]
    floor = best_constant(dataset, environment)
    words = moderation.wording(dataset, environment)
    cost = xr.where(floor["action_index"] == 0, words.free, words.hateful)
    found[FLOOR] = floor, dataset["time"] - floor / cost
    found[CEILING] = tuple(dataset[f"ceiling_{what}"].sel(environment=environment) for what in ("regret", "optimal"))
    return found


def _taken(words: moderation.Wording) -> str:
    return "reviewed" if words.reviews else "published"


def _wrong(words: moderation.Wording) -> tuple[str, str]:
    return ("removed by mistake", "reviewed in vain") if words.reviews else ("blocked by mistake", "published by mistake")


def _mean(values: xr.DataArray) -> float:
    return float(values.isel(time=-1).mean())
