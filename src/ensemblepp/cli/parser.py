"""What can be said on the command line, and which function each command is."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ensemblepp.arguments import MAX_THREADS, Parser, finite, mapping, plan, specification, whole
from ensemblepp.cli import looking, moderating, preparing, presenting, running

#: The greatest number that an option takes; what is sensible is known to those who use it.
LARGEST = 2**63 - 1

_DECLARED = "how to read a data set under datasets, as JSON (default: what config/environments.yaml says there)"


def make_parser(serve: Callable[[argparse.Namespace], None]) -> argparse.ArgumentParser:
    """The parser of all commands; each leaves its function in `command`.

    Args:
        serve: the function of `serve`, which runs the others.
    """
    top = Parser(
        prog="python -m ensemblepp",
        description="Scalable exploration via Ensemble++. Run from the folder that holds the Snakefile.",
    )
    top.add_argument(
        "--threads", type=whole(1, MAX_THREADS), default=1, metavar="N", help="threads of the numerical libraries (default 1)"
    )
    top.add_argument("--version", action=_Version, help="say the version and leave")
    commands = top.add_subparsers(required=True, metavar="command")

    command = commands.add_parser(
        "quickstart",
        help="a first comparison in a minute: exact Thompson sampling, Ensemble++ and ensemble sampling, as a figure",
    )
    command.add_argument("--horizon", type=whole(1, LARGEST), default=1000, help="T, rounds (default 1000)")
    command.add_argument("--seeds", type=whole(2, LARGEST), default=20, help="how many (default 20)")
    command.add_argument(
        "--output", type=Path, default=Path("quickstart.png"), help=".pdf or .png to write (default quickstart.png)"
    )
    command.set_defaults(command=running.quickstart)

    command = commands.add_parser(
        "moderate",
        help="replay labelled posts of your own as a stream: decisions with their uncertainty, and a page about them",
    )
    command.add_argument("posts", type=Path, metavar="POSTS", help="a .csv, .parquet or .jsonl file, a row for every post")
    command.add_argument("--text-column", required=True, metavar="NAME", help="the column of the posts")
    words = "the column of the labels: yes or no, true or false, 1 or 0, where 1 is a post to be blocked; or scores"
    command.add_argument("--label-column", required=True, metavar="NAME", help=words)
    words = "labels are scores, and a post is to be blocked whose score is above this"
    command.add_argument("--threshold", type=finite, metavar="SCORE", help=words)
    words = "publish or block (default); or remove the post, or have a person review it"
    command.add_argument("--actions", choices=["publish_or_block", "remove_or_review"], default="publish_or_block", help=words)
    words = "the frozen model that embeds posts, of `list language_models` (default minilm)"
    command.add_argument("--language-model", default="minilm", metavar="NAME", help=words)
    words = "how embeddings are given to agents: as they are (default), of norm 1, or features of mean 0 and variance 1"
    command.add_argument("--scaling", choices=["none", "unit", "standardise"], default="none", help=words)
    words = f"neural agents, of `list agents` (default {' '.join(moderating.AGENTS)})"
    command.add_argument("--agents", nargs="+", default=list(moderating.AGENTS), metavar="NAME", help=words)
    command.add_argument("--ensemble-size", type=whole(1, LARGEST), default=8, help="M (default 8)")
    command.add_argument("--seeds", type=whole(1, LARGEST), default=1, help="orders of the posts (default 1)")
    command.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto", help="auto (default), cpu or cuda")
    words = "folder to make, for report.html, decisions.csv and what a second start goes on from (default: POSTS-moderation)"
    command.add_argument("--output", type=Path, metavar="FOLDER", help=words)
    command.set_defaults(command=moderating.moderate)

    command = commands.add_parser("simulate", help="run one block of seeds and write its run file")
    command.add_argument("--environment", help="name in config/environments.yaml")
    command.add_argument("--agent", help="name in config/agents.yaml")
    command.add_argument(
        "--ensemble-size", type=whole(0, LARGEST), help="M (0, the default, for agents without an ensemble)", default=0
    )
    command.add_argument("--horizon", type=whole(1, LARGEST), default=1000, help="T, rounds (default 1000)")
    command.add_argument("--seeds", default="0-9", help="a range of seeds, as 0-9 (the default)")
    command.add_argument(
        "--spec", type=specification, help="a block's resolved specification as JSON, instead of the options above"
    )
    _add_code(command)
    command.add_argument("--output", type=Path, help="run file to write (default: its place under results/)")
    command.set_defaults(command=running.simulate)

    command = commands.add_parser("serve", help="run jobs for the process that this one's standard input comes from")
    command.add_argument("--socket", type=Path, required=True, help="the socket to make")
    command.add_argument("--at-once", action="store_true", help="load libraries before the first job is there")
    command.add_argument("--also", nargs="*", default=[], metavar="MODULE", help="what to load besides, while no job asks")
    command.set_defaults(command=serve)

    command = commands.add_parser("retrieve", help="bring one raw file, from the folder ENSEMBLEPP_MIRROR or its sources")
    command.add_argument("--file", required=True, help="its path under data/raw")
    command.add_argument("--output", type=Path, required=True, help="file to write")
    command.set_defaults(command=preparing.retrieve)

    command = commands.add_parser("check-data", help="check raw files line by line, without touching prepared data")
    _add_raw(command, "JSON file to write when all is well")
    command.set_defaults(command=preparing.check_data)

    command = commands.add_parser("prepare", help="raw files to one prepared netCDF file")
    _add_raw(command, "netCDF file to write")
    command.set_defaults(command=preparing.prepare)

    command = commands.add_parser("language-model", help="bring a language model into a local folder")
    command.add_argument("--spec", type=mapping, required=True, help="an entry of language_models as JSON")
    command.add_argument("--folder", type=Path, required=True, help="the folder to make")
    _add_code(command)
    command.set_defaults(command=preparing.language_model)

    command = commands.add_parser("embed", help="posts to vectors by a language model")
    command.add_argument("--prepared", type=Path, required=True, help="the prepared posts")
    command.add_argument("--folder", type=Path, required=True, help="the language model's folder")
    command.add_argument("--posts", type=whole(1, LARGEST), required=True, help="how many posts, from the first")
    words = "hidden state of the last token, or the mean over tokens"
    command.add_argument("--pooling", choices=["last", "mean"], required=True, help=words)
    command.add_argument("--max-tokens", type=whole(1, LARGEST), required=True, help="longer texts are cut")
    words = "numbers that the model computes with: auto (default: bfloat16 where the device has instructions for it), or which"
    command.add_argument("--precision", choices=["auto", "float32", "bfloat16"], default="auto", help=words)
    command.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto", help="auto (default), cpu or cuda")
    command.add_argument("--output", type=Path, required=True, help="netCDF file to write")
    _add_code(command)
    command.set_defaults(command=preparing.embed)

    command = commands.add_parser("tokenise", help="posts to tokens by a language model's tokenizer")
    command.add_argument("--prepared", type=Path, required=True, help="the prepared posts")
    command.add_argument("--folder", type=Path, required=True, help="the language model's folder")
    command.add_argument("--posts", type=whole(1, LARGEST), required=True, help="how many posts, from the first")
    command.add_argument("--max-tokens", type=whole(1, LARGEST), required=True, help="longer texts are cut")
    command.add_argument("--output", type=Path, required=True, help="netCDF file to write")
    _add_code(command)
    command.set_defaults(command=preparing.tokenise)

    command = commands.add_parser("ceiling", help="what a supervised fit makes of embedded posts, each by a fit without it")
    command.add_argument("--embeddings", type=Path, required=True, help="the file of embeddings")
    words = "how an agent is shown them: as they are, of norm 1, or features of mean 0 and variance 1"
    command.add_argument("--scaling", choices=["none", "unit", "standardise"], required=True, help=words)
    command.add_argument("--output", type=Path, required=True, help="netCDF file to write")
    _add_code(command)
    command.set_defaults(command=preparing.ceiling)

    command = commands.add_parser("aggregate", help="run blocks of a study to one dataset")
    command.add_argument("--study", help="name in config/studies.yaml")
    command.add_argument("--plan", type=plan, help="the study's plan as JSON, instead of --study")
    command.add_argument("--output", type=Path, required=True, help="netCDF file to write")
    _add_code(command)
    command.set_defaults(command=presenting.aggregate)

    command = commands.add_parser("present", help="draw the figures and make the tables of a study's dataset")
    command.add_argument("--dataset", type=Path, required=True, help="the study's dataset")
    command.add_argument("--folder", type=Path, required=True, help="its figures/ and tables/ are written to")
    for kind in ("figures", "tables"):
        words = f"modules of ensemblepp.{kind}, or NAME=module:function for others"
        command.add_argument(f"--{kind}", nargs="*", default=[], metavar="NAME", help=words)
    _add_code(command)
    command.set_defaults(command=presenting.present)

    command = commands.add_parser(
        "claims", help="decide the paper's claims by the datasets that there are, and print the ledger"
    )
    command.add_argument("--scale", help="smoke, quick or paper, instead of the configured one")
    command.add_argument("--plan", type=mapping, help="the ledger's plan as JSON, instead of the configuration")
    words = ".csv, .json, .md and .tex files to write, instead of printing"
    command.add_argument("--output", type=Path, nargs="+", default=[], help=words)
    _add_code(command)
    command.set_defaults(command=presenting.claims)

    for kind in ("figure", "table"):
        command = commands.add_parser(kind, help=f"draw one {kind} from a study's dataset")
        words = f"module of ensemblepp.{kind}s, name under {kind}s in config/studies.yaml, or module:function"
        command.add_argument("--name", required=True, help=words)
        command.add_argument("--dataset", type=Path, required=True, help="the study's dataset")
        command.add_argument("output", type=Path, nargs="+", help="files to write; the suffix chooses the format")
        command.set_defaults(command=presenting.figure if kind == "figure" else presenting.table)

    command = commands.add_parser("plot", help="draw run files, such as `simulate` writes: regret by agent and environment")
    command.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="run files of equal horizons")
    command.add_argument(
        "--figure", default="nonlinear_regret", help="what to draw, as --name of figure (default nonlinear_regret)"
    )
    command.add_argument("--output", type=Path, default=Path("regret.png"), help=".pdf or .png (default regret.png)")
    command.set_defaults(command=running.plot)

    command = commands.add_parser("page", help="write the page with claims, figures and tables of the results that there are")
    command.add_argument("--scale", help="smoke, quick or paper, instead of the configured one")
    words = "a folder of results, such as results/paper-scale with --scale paper (default: results/<scale>)"
    command.add_argument("--folder", type=Path, help=words)
    command.add_argument("--plan", type=mapping, help="the page's plan as JSON, instead of the configuration")
    command.add_argument("--output", type=Path, help=".html file to write (default: index.html in that folder)")
    _add_code(command)
    command.set_defaults(command=presenting.page)

    command = commands.add_parser("report", help="make results/<scale>/report.html where it is missing or out of date")
    command.add_argument("--config", type=mapping, help="the configuration as JSON (default: the files in config/)")
    command.add_argument("--scale", help="smoke, quick or paper, instead of the configured one")
    command.set_defaults(command=presenting.report)

    command = commands.add_parser("render", help="the Snakemake that writes the page of `report`")
    command.add_argument("--settings", type=Path, required=True, help="the configuration, a JSON file")
    command.add_argument("--output", type=Path, required=True, help="HTML file to write")
    command.set_defaults(command=presenting.render)

    command = commands.add_parser(
        "check", help="verify results: whole, of the present configuration and code, finite; changes nothing"
    )
    words = "files or folders under results/ (default: the configured scale's); run from the folder that holds the Snakefile"
    command.add_argument("paths", type=Path, nargs="*", metavar="PATH", help=words)
    command.set_defaults(command=looking.check)

    command = commands.add_parser("why", help="what snakemake would make anew, and because of which edit; makes nothing")
    command.add_argument("targets", nargs="*", metavar="TARGET", help="files or rules, as snakemake takes them (default: all)")
    command.add_argument("--scale", help="smoke, quick or paper, instead of the configured one")
    command.set_defaults(command=looking.why)

    command = commands.add_parser("resume", help="start snakemake again as it was last started here, after whatever ended it")
    command.set_defaults(command=running.resume)

    command = commands.add_parser(
        "tune", help="take each agent's best setting from a study of settings, and write config/tuned.yaml"
    )
    command.add_argument("--study", required=True, help="a study whose grid has `settings`, made already")
    command.add_argument("--scale", default="paper", help="smoke, quick or paper (default)")
    command.set_defaults(command=presenting.tune)

    command = commands.add_parser("publish", help="what is small of the complete studies to results/paper-scale")
    command.add_argument("--scale", default="paper", help="smoke, quick or paper (default)")
    command.add_argument(
        "--folder", type=Path, default=Path("results/paper-scale"), help="where to (default results/paper-scale)"
    )
    command.add_argument(
        "--redraw", action="store_true", help="draw the figures there anew from the datasets there; no run is needed"
    )
    command.set_defaults(command=presenting.publish)

    command = commands.add_parser("pack", help="the finished runs of studies that are not complete, to go on elsewhere")
    command.add_argument("studies", nargs="+", metavar="STUDY", help="names in config/studies.yaml")
    command.set_defaults(command=presenting.pack)
    _packed(command)

    command = commands.add_parser("unpack", help="packed runs back to where the workflow goes on from them")
    command.add_argument("studies", nargs="*", metavar="STUDY", help="names in config/studies.yaml (default: all archives)")
    command.set_defaults(command=presenting.unpack)
    _packed(command)

    command = commands.add_parser("cost", help="what all studies' missing runs would take, from runs that were made here")
    command.add_argument("--study", help="one study, from short runs of its blocks instead: exact, and minutes long")
    command.add_argument("--scale", help="smoke, quick or paper, instead of the configured one")
    command.set_defaults(command=looking.cost)

    command = commands.add_parser("show", help="how the configuration resolves, and which value comes from where")
    shown = command.add_subparsers(required=True, metavar="agent|environment")
    command = shown.add_parser("agent", help="an agent in one environment: every value and where it is from, engine and device")
    command.add_argument("name", help="name in config/agents.yaml")
    command.add_argument("--environment", required=True, help="name in config/environments.yaml")
    command.set_defaults(command=looking.show_agent)
    command = shown.add_parser("environment", help="what an environment's class is built with, and the files that it reads")
    command.add_argument("name", help="name in config/environments.yaml")
    command.set_defaults(command=looking.show_environment)

    command = commands.add_parser("config", help="check the configuration; --write renews what is generated from its model")
    command.add_argument("--write", action="store_true", help="renew the JSON schema and the tables of config/README.md")
    command.add_argument(
        "files", nargs="*", type=Path, metavar="FILE", help="merged over those of config/, as --configfile does"
    )
    command.set_defaults(command=looking.show_configuration)

    command = commands.add_parser("list", help="the names that the configuration knows: studies, agents, environments and more")
    command.add_argument("what", nargs="?", choices=looking.LISTED, help=f"one of {', '.join(looking.LISTED)} (default: all)")
    command.set_defaults(command=looking.list_names)
    return top


def _add_raw(command: argparse.ArgumentParser, output: str) -> None:
    """What commands on the raw files of a data set take; `output` says what they write."""
    command.add_argument("--dataset", required=True, help="a published data set, or a name under datasets (`list datasets`)")
    command.add_argument("--declared", type=mapping, help=_DECLARED)
    command.add_argument("--output", type=Path, required=True, help=output)
    command.add_argument("raw", type=Path, nargs="+", help="the raw files")
    _add_code(command)


def _add_code(command: argparse.ArgumentParser) -> None:
    words = "the fingerprint that the workflow took of this job's code: other code is refused (default: any will do)"
    command.add_argument("--code", default="", help=words)


def _packed(command: argparse.ArgumentParser) -> None:
    """Which scale's runs, and where the archives are."""
    command.add_argument("--scale", default="paper", help="smoke, quick or paper (default)")
    words = "what is published; archives are in runs/ there (default results/paper-scale)"
    command.add_argument("--folder", type=Path, default=Path("results/paper-scale"), help=words)


class _Version(argparse.Action):
    """Say the version and leave; the package is not asked before."""

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, nargs=0, **keywords)

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from importlib.metadata import version

        print(f"ensemblepp {version('ensemblepp')}")
        parser.exit()
