"""A user's own labelled posts, replayed as a stream: the comparison of agents, and what each decided about every post."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr

from ensemblepp.analysis import outcome
from ensemblepp.analysis.moderation import WORDS
from ensemblepp.config.environments import LanguageModel
from ensemblepp.config.neural_agents import DropoutAgent, EpiNetAgent, NeuralAgentModel
from ensemblepp.config.resolution import Config
from ensemblepp.config.shipped import shipped
from ensemblepp.environments.moderation import Actions
from ensemblepp.environments.scaling import Scaling
from ensemblepp.errors import ConfigError, ResultError, one_of
from ensemblepp.runs import moderation_page, own_posts
from ensemblepp.runs.comparison import blocks_of, compare, configured, planned_in
from ensemblepp.runs.decisions import decisions
from ensemblepp.runs.given import Entries
from ensemblepp.runs.progress import Progress
from ensemblepp.storage.datasets import atomic_path

if TYPE_CHECKING:
    import pandas as pd

#: What is compared: values under which agents learn from embeddings.
AGENTS = ("ensemble++-text", "greedy-text")

#: What `Moderated.write` writes; the second is there when all is done.
PAGE, TABLE = "report.html", "decisions.csv"

#: Where a folder keeps what a second call need not make again.
WORK = "work"

#: The protocols' warm-up is meant for thousands of posts: of a shorter stream agents let one part in so many pass at most.
WAITED = 10

#: Agents whose draws `runs.beliefs` has no formula for.
_WITHOUT_FORMULA = EpiNetAgent, DropoutAgent

_NAME = "posts"


@dataclass(frozen=True)
class Moderated:
    """What came of a stream of posts.

    Attributes:
        summary: a row for every agent, the best constant action and a supervised fit (`analysis.outcome.summary`).
        decisions: a row for every decision (`analysis.outcome.decided`); `row` is the post's in the file, from 0.
        handed_over: accuracy if a person decides the most doubtful posts (`analysis.outcome.handed_over`).
        dataset: the comparison, as `compare` gives it.
        about: what was played, in words, for the page.
        texts: the post of every row that `decisions` names.
        words: the two actions'.
        after: the round after which the second half begins.
    """

    summary: pd.DataFrame
    decisions: pd.DataFrame
    handed_over: pd.DataFrame
    dataset: xr.Dataset
    about: dict[str, str]
    texts: dict[int, str]
    words: tuple[str, str]
    after: int

    def write(self, folder: str | Path) -> None:
        """Write `report.html` and `decisions.csv` to a folder, which is made.

        Raises:
            ResultError: it cannot be written to.
        """
        folder = writable(folder)
        with atomic_path(folder / PAGE) as temporary:
            late = self.decisions[self.decisions["round"] > self.after]
            page = moderation_page.page(self.about, self.summary, self.handed_over, late, self.texts, self.words)
            temporary.write_text(page, encoding="utf-8")
        with atomic_path(folder / TABLE) as temporary:
            self.decisions.to_csv(temporary, index=False, float_format="%.6g", lineterminator="\n", na_rep="None")


def moderate(
    file: str | Path,
    *,
    text: str,
    label: str,
    threshold: float | None = None,
    agents: Sequence[str] = AGENTS,
    language_model: str = "minilm",
    scaling: Scaling = "none",
    actions: Actions = "publish_or_block",
    ensemble_size: int = 8,
    seeds: int | Sequence[int] = 1,
    folder: str | Path | None = None,
    workers: int | None = None,
    device: str = "auto",
    progress: bool = True,
) -> Moderated:
    """Replay labelled posts as a stream: agents see each once, decide, and learn from what came of it.

    Args:
        file: CSV, Parquet or JSON lines (.csv, .parquet, .jsonl), a row for every post; rows with one text are one post.
        text: the column of the posts.
        label: the column of their labels: yes or no, true or false, 1 or 0, where 1 is a post to be blocked; or scores.
        threshold: labels are scores, and a post is to be blocked whose score is above this.
        agents: names of neural agents (`ensemblepp list agents`) with one pair of laws that learn from embeddings.
        language_model: a name under language_models of the shipped configuration; the frozen model that embeds posts.
        scaling: how embeddings are given to agents: none, unit or standardise.
        actions: publish_or_block, or remove_or_review, where a person looks at what is not removed.
        ensemble_size: M.
        seeds: how many orders of the posts, or which.
        folder: keeps embeddings and runs, and the posts among them: a call that was interrupted goes on where it was. None:
            nothing is kept.
        workers: processes at the same time; None: one for every processor.
        device: "cpu", "cuda", or "auto", which takes a GPU where there is one.
        progress: say on standard error how far it is.

    Raises:
        ConfigError: an argument is not allowed.
        DataError: there is a fault in the file.
        UnreachableError: the language model cannot be had.
        StoppedError: a run ended before its end; says why.
    """
    values = shipped()
    if language_model not in values["language_models"]:
        raise ConfigError(f"language_model: found '{language_model}': {one_of(values['language_models'], language_model)}")
    if actions not in WORDS:
        raise ConfigError(f"actions: found '{actions}': {one_of(WORDS, actions)}")
    model = LanguageModel.model_validate(values["language_models"][language_model])
    found = own_posts.read(Path(file), text=text, label=label, threshold=threshold)
    with contextlib.ExitStack() as stack:
        if folder is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="ensemblepp-"))
        folder = Path(folder)
        files = own_posts.places(folder, found, language_model, model, scaling)
        rounds = len(found.label)
        place = _environment(Path(file).name, files, scaling, actions, rounds)
        grid: dict[str, Any] = {"horizon": rounds, "seeds": seeds, "ensemble_sizes": ensemble_size, "device": device}
        config = _checked(list(agents), place, grid, folder)
        waits = {agent: {"warm_up": min(_warm_up(config, agent), rounds // WAITED)} for agent in agents}
        place = place._replace(values=waits)
        config = _checked(list(agents), place, grid, folder)
        writable(folder)
        with _told(progress, rounds, f"embedding {rounds} posts") as on_text:
            own_posts.make(
                folder, found, files, language_model, model, scaling, device=device, threads=workers or 1, on_text=on_text
            )
        dataset = compare(list(agents), place, **grid, folder=folder, workers=workers, progress=progress)
        blocks = list(blocks_of(planned_in(config, folder)))
        words = WORDS[actions]
        stream = outcome.Stream(words, actions == "remove_or_review", found.label, found.row)
        total = rounds * sum(last - first + 1 for first, last in (block.spec["seeds"] for block, _ in blocks))
        with _told(progress, total, "decisions") as on_step:
            tables = [
                outcome.decided(decisions(block, code, on_step), stream, config.agents[block.spec["agent"]["name"]].label)
                for block, code in blocks
            ]
    import pandas as pd

    decided, summary = pd.concat(tables, ignore_index=True), outcome.summary(dataset)
    about = {
        "file": Path(file).name,
        "posts": f"{rounds:,}, {int(found.label.sum()):,} of them to be blocked; {found.merged:,} rows left out, as an earlier "
        f"one has their text; {found.contradicted:,} posts had both labels",
        "language model": f"{language_model}, frozen; embeddings scaled: {scaling}",
        "actions": " or ".join(words[::-1]),
        "orders of the posts": str(dataset.sizes["seed"]),
        "ensemble size": str(ensemble_size),
        "learning": f"agents begin after {max(_warm_up(config, agent) for agent in agents)} posts; {outcome.learnt(summary)}",
    }
    texts = dict(zip(found.row.tolist(), found.text.tolist(), strict=True))
    after = outcome.middle(dataset)
    handed = outcome.handed_over(decided, words, after)
    return Moderated(summary, decided, handed, dataset, about, texts, words, after)


def writable(folder: str | Path) -> Path:
    """A folder that takes files; it is made.

    Raises:
        ResultError: it cannot be made or written to.
    """
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise ResultError(f"{path}: cannot be written to: {error.strerror}; name another folder") from None
    return path


def _environment(title: str, files: dict[str, str], scaling: str, actions: str, rounds: int) -> Entries:
    entry = {
        "kind": "custom",
        "title": title,
        "class": "ensemblepp.environments.moderation:Moderation",
        "plays_as": "pool",
        "options": {"scaling": scaling, "actions": actions, "passes": 1},
        "inputs": files,
        "longest": rounds,
    }
    return Entries([_NAME], {_NAME: entry}, like="moderation")


def _checked(agents: list[str], place: Entries, grid: dict[str, Any], folder: Path) -> Config:
    """The configuration of the comparison, before anything takes long."""
    seeds, size = grid["seeds"], grid["ensemble_sizes"]
    study = {
        "horizon": grid["horizon"],
        "seeds": seeds if isinstance(seeds, int) else list(seeds),
        "ensemble_sizes": [size],
        "seeds_per_block": 5,
    }
    config = configured(agents, place, folder, study, str(grid["device"]))
    allowed = [
        name
        for name, agent in config.agents.items()
        if isinstance(agent, NeuralAgentModel) and not isinstance(agent, _WITHOUT_FORMULA)
    ]
    for agent in agents:
        if agent not in allowed:
            raise ConfigError(f"agents: found '{agent}': {one_of(allowed, agent)}")
        options = config.agents[agent].options()
        if any(len(options.get(role, ())) > 1 for role in ("references", "perturbations")):
            raise ConfigError(f"agents: '{agent}' has several pairs of laws: choose an agent with one")
    return config


def _warm_up(config: Config, agent: str) -> int:
    return config.agent_for(agent, _NAME).model.model_dump()["warm_up"]


@contextlib.contextmanager
def _told(progress: bool, total: int, name: str) -> Iterator[Callable[[int], None]]:
    with contextlib.ExitStack() as stack:
        yield stack.enter_context(Progress(total, name)).step if progress else lambda count: None
