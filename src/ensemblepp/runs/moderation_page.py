"""A stream of posts on one page that opens from disk: nothing is fetched and nothing runs, and no post shows before a click."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from ensemblepp.analysis import outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

#: Posts that are shown, the most doubtful first.
SHOWN = 10


def page(
    about: Mapping[str, str],
    summary: pd.DataFrame,
    handed_over: pd.DataFrame,
    decisions: pd.DataFrame,
    texts: Mapping[int, str],
    words: tuple[str, str],
) -> str:
    """The page as HTML.

    Args:
        about: what was played, in words.
        summary, handed_over: as of `runs.moderate.Moderated`.
        decisions: the same, of the second half.
        texts: row -> post.
        words: the two actions'.
    """
    first = decisions[decisions["agent"] == decisions["agent"].iloc[0]]
    order = outcome.closeness(first, words).argsort(kind="stable")[:SHOWN]
    facts = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in about.items())
    posts = "".join(_post(row, texts[row["row"]], words) for row in first.iloc[order].to_dict("records"))
    sure = decisions.groupby("agent", sort=False)["doubt"].count()
    without = " and ".join(sure.index[sure == 0])
    return _PAGE.format(
        title=escape(about["file"]),
        facts=facts,
        summary=_table(summary),
        handed=_table(handed_over),
        without=f" Of {escape(without)} there {_NO_DOUBT}." if without else "",
        agent=escape(str(first["agent"].iloc[0])),
        meaning=_DOUBT if first["doubt"].notna().any() else f"There {_NO_DOUBT}",
        count=len(order),
        posts=posts,
    )


def _table(table: pd.DataFrame) -> str:
    head = "".join(f"<th scope='col'>{escape(str(name))}</th>" for name in table.columns)
    rows = "".join(f"<tr>{_cells(row)}</tr>" for row in table.to_dict("records"))
    return f"<div class='wide'><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"


def _cells(row: Mapping[str, object]) -> str:
    """Accuracies as percentages, counts as whole numbers."""
    shown = []
    for name, value in row.items():
        if isinstance(value, str):
            shown.append(value)
        else:
            shown.append(f"{value:.1%}" if name.startswith("accuracy") or name.endswith("%") else f"{round(value):,}")
    return "".join(f"<td>{escape(text)}</td>" for text in shown)


def _post(row: Mapping[str, object], text: str, words: tuple[str, str]) -> str:
    thought = ", ".join(f"{word} {row[f'{word} value']:.2f}" for word in words)
    doubt = ""
    if row["doubt"] == row["doubt"]:
        thought += f", difference ± {row['spread']:.2f}"
        doubt = f", doubt {row['doubt']:.2f}"
    verdict = "right" if row["right"] else "wrong"
    said = f"row {row['row']}, round {row['round']}: {row['decision']}, {verdict}{doubt}"
    return (
        f"<li>{escape(said)}<br><small>{escape(thought)}</small>"
        f"<details><summary>show the post</summary><blockquote dir='auto'>{escape(text)}</blockquote></details></li>"
    )


_DOUBT = (
    "Doubt is the chance that the other action gains more, by what the agent believed then: how often it would have decided "
    "otherwise with other draws. Numbers are the rewards it expected, and the standard deviation of their difference"
)

_NO_DOUBT = "is no doubt to tell, as it draws nothing: the closest decisions are those of the most equal expected rewards"

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Moderation of {title}</title>
<style>
:root {{ color-scheme: light dark; --line: #8886; --quiet: #8882; }}
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; overflow-wrap: anywhere; }}
h1, h2 {{ line-height: 1.2; }}
dl {{ display: grid; grid-template-columns: max-content 1fr; gap: 0.2rem 1rem; }}
dt {{ font-weight: 600; }}
dd {{ margin: 0; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; overflow-wrap: normal; }}
th, td {{ padding: 0.3rem 0.8rem; border-bottom: 1px solid var(--line); text-align: right; }}
td {{ font-variant-numeric: tabular-nums; }}
th:first-child, td:first-child {{ text-align: left; padding-left: 0; position: sticky; left: 0; background: Canvas; }}
li {{ margin-bottom: 1rem; }}
details {{ margin-top: 0.3rem; }}
summary {{ cursor: pointer; }}
blockquote {{ margin: 0.3rem 0; padding: 0.6rem; background: var(--quiet); white-space: pre-wrap; }}
@media (min-width: 40rem) {{ td:first-child {{ white-space: nowrap; }} }}
@media (max-width: 40rem) {{
  dl {{ grid-template-columns: 1fr; }}
  dd {{ margin-bottom: 0.5rem; }}
  table {{ font-size: 0.85rem; }}
  th, td {{ padding: 0.3rem; }}
}}
</style>
</head>
<body>
<h1>Moderation of {title}</h1>
<dl>{facts}</dl>
<h2>Accuracy and workload</h2>
<p>Every agent saw each post once, decided, and learnt from what came of it. The constant action that gains most is the floor; a
supervised fit that was given the labels of all other posts is the ceiling. Counts are posts, means over orders.</p>
{summary}
<h2>If a person decides the most doubtful posts</h2>
<p>Accuracy in the second half of the stream when so many posts, those of the closest decisions, are handed to a person who is
always right.{without}</p>
{handed}
<h2>The {count} most uncertain posts</h2>
<p>Of {agent}, in the second half of the stream: the closest decisions as they were taken. {meaning}. Posts may offend: each
shows when you open it. Rows count from 0.</p>
<ol>{posts}</ol>
</body>
</html>
"""
