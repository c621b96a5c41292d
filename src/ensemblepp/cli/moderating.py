"""The command that replays a user's own posts: what agents would have decided, and a page about it."""

from __future__ import annotations

import argparse
from pathlib import Path

from ensemblepp.arguments import folder
from ensemblepp.cli.shared import print_rows
from ensemblepp.errors import ConfigError

#: What is compared by default: values under which agents learn from embeddings.
AGENTS = ("ensemble++-text", "greedy-text")


def moderate(options: argparse.Namespace) -> None:
    place = options.output or Path(f"{options.posts.name.partition('.')[0]}-moderation")
    folder(place)
    for name in ("decisions.csv", "report.html"):
        if (place / name).is_dir():
            raise ConfigError(f"--output: '{place / name}' is a folder; name another with --output")
    if (place / "decisions.csv").exists():
        raise ConfigError(f"--output: '{place / 'decisions.csv'}' exists: delete it, or name another folder with --output")

    from ensemblepp.runs.moderate import PAGE, TABLE, WORK, moderate

    found = moderate(
        options.posts,
        text=options.text_column,
        label=options.label_column,
        threshold=options.threshold,
        agents=options.agents,
        language_model=options.language_model,
        scaling=options.scaling,
        actions=options.actions,
        ensemble_size=options.ensemble_size,
        seeds=options.seeds,
        folder=place / WORK,
        device=options.device,
    )
    found.write(place)
    columns = [name for name in found.summary.columns if name.startswith("accuracy")]
    rows = (
        (who, *(f"{share:.1%}" for share in shares))
        for who, *shares in found.summary[["who", *columns]].itertuples(index=False)
    )
    print_rows([("", *columns), *rows])
    print(found.about["learning"])
    print(place / TABLE)
    print(place / PAGE)
