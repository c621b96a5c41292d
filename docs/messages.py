"""The example of docs/moderation.md: 240 made-up messages to a shop for garden tools, half of them advertising.

    python docs/messages.py

Nobody wrote these, and no one is meant. The file is made of sentences below with a seed, so that it is the same everywhere.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path

OUTPUT = Path(__file__).with_name("messages.csv")

CUSTOMERS, ADVERTISERS = 120, 120

_TOOLS = [
    "rake",
    "hedge trimmer",
    "watering can",
    "wheelbarrow",
    "spade",
    "garden hose",
    "pruning saw",
    "lawn mower",
    "fork",
    "trowel",
]
_WHEN = ["last week", "on Monday", "two days ago", "yesterday", "in March", "a month ago"]
_GREETING = ["", "", "Hello, ", "Hi there, ", "Good morning, ", "Dear team, "]
_END = ["", "", " Thank you.", " Please let me know.", " Thanks in advance!", " Kind regards"]

#: What customers write.
_CUSTOMER = [
    "the {tool} that I ordered {when} has not arrived yet.",
    "the handle of my {tool} broke {when}, is there a spare part?",
    "can I return the {tool}? It is too heavy for me.",
    "do you have the {tool} in a smaller size?",
    "I bought a {tool} {when} and it works very well.",
    "my invoice for the {tool} shows the wrong address.",
    "how do I sharpen the blade of the {tool}?",
    "the {tool} came with a screw missing {when}.",
    "is there a discount if I order a {tool} for our whole allotment club?",
    "I paid for the {tool} twice {when}, please send one payment back.",
    "your offer for the {tool} ended {when}, does the price still hold?",
    "which {tool} would you recommend for clay soil?",
]

_WARES = [
    "phone cases",
    "watches",
    "printer ink",
    "vitamin drops",
    "sunglasses",
    "bus tours",
    "web pages",
    "loans",
    "lottery tickets",
]
_AGO = ["today", "this week", "until midnight", "for 24 hours", "now"]

#: What advertisers write.
_ADVERTISER = [
    "buy cheap {ware} {ago}, follow the link in our profile.",
    "congratulations, you were chosen to win free {ware} {ago}!",
    "we make your shop number one on every search page, {ware} included, ask {ago}.",
    "earn money from home {ago} by selling {ware} to your friends.",
    "huge discount on {ware} {ago}, order before it is too late.",
    "I saw your page and we can deliver {ware} at half your price {ago}.",
    "best {ware} in town, reply YES {ago} for a free sample.",
    "is your shop ready for more customers? Our {ware} bring them {ago}.",
]


def messages() -> list[tuple[str, str]]:
    """(message, yes or no) of all, in random order, no two the same."""
    source = random.Random(1)
    found: dict[str, str] = {}
    for answer, sentences, count in (("no", _CUSTOMER, CUSTOMERS), ("yes", _ADVERTISER, ADVERTISERS)):
        wanted = len(found) + count
        while len(found) < wanted:
            words = {"tool": _TOOLS, "when": _WHEN, "ware": _WARES, "ago": _AGO}
            sentence = source.choice(sentences).format(**{name: source.choice(entries) for name, entries in words.items()})
            text = source.choice(_GREETING) + sentence + source.choice(_END)
            found[text[0].upper() + text[1:]] = answer
    listed = list(found.items())
    source.shuffle(listed)
    return listed


def write(path: Path) -> None:
    """Write the messages as CSV with the columns message and advertising."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(["message", "advertising"])
        rows.writerows(messages())


if __name__ == "__main__":
    write(OUTPUT)
