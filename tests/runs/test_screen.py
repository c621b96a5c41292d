"""What Snakemake's own logger and the logger plugin write to the screen, and how often."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from snakemake.common import NOTHING_TO_BE_DONE_MSG
from snakemake.logging import ColorizingTextHandler, LoggerManager
from snakemake.settings.enums import Quietness
from snakemake.settings.types import OutputSettings
from snakemake_interface_logger_plugins.common import LogEvent
from snakemake_interface_logger_plugins.registry import LoggerPluginRegistry

from ensemblepp.runs import screen
from ensemblepp.runs.screen import duration

MANY = [f"results/quick/runs/line/ts/M0/T9/seeds{seed}-{seed}.nc" for seed in range(336)]


@contextmanager
def manager(**settings: object) -> Iterator[LoggerManager]:
    """Snakemake's log with its own logger, whose screen is a text in memory."""
    made = LoggerManager(
        logging.Logger("snakemake"), OutputSettings(**{"quiet": {Quietness.HOST, Quietness.REASON}} | settings)
    )
    for handler in made.logger.handlers:
        if isinstance(handler, ColorizingTextHandler):
            handler.stream, handler.nocolor = io.StringIO(), True
    screen.shorten(made)
    try:
        yield made
    finally:
        made.stop()


def written(made: LoggerManager) -> list[str]:
    (handler,) = (handler for handler in made.logger.handlers if isinstance(handler, ColorizingTextHandler))
    return [line for line in handler.stream.getvalue().splitlines() if line]


def play(made: LoggerManager, jobs: int, *, message: str | None = "simulate line, ts") -> None:
    """The messages of a run of so many jobs, as Snakemake 9.27 sends them."""
    say = made.logger.info
    say("Job stats", extra={"event": LogEvent.RUN_INFO, "stats": {"simulate": jobs, "total": jobs}})
    for job in range(jobs):
        say("Select jobs to execute...")
        say("Execute 1 jobs...", extra={"event": LogEvent.JOB_STARTED, "jobs": [job]})
        facts = {"rule_name": "simulate", "rule_msg": message, "jobid": job, "reason": "Missing output files", "input": MANY}
        say("", extra={"event": LogEvent.JOB_INFO, **facts})
        say(f"Finished jobid: {job}", extra={"event": LogEvent.JOB_FINISHED, "job_id": job})
        say("", extra={"event": LogEvent.PROGRESS, "done": job + 1, "total": jobs})


def test_a_line_for_every_job_and_the_time_that_is_left():
    with manager() as made:
        play(made, 336)
        head, *lines = written(made)
    assert head == "Job stats"
    assert len(lines) == 336
    assert re.fullmatch(r"\[\d\d:\d\d:\d\d\] simulate line, ts \(0 of 336 done\)", lines[0])
    assert re.fullmatch(r"\[\d\d:\d\d:\d\d\] simulate line, ts \(335 of 336 done, about \d+ s left\)", lines[-1])
    assert "left" not in lines[5], "the first jobs say little of the others"


def test_a_rule_without_a_message_is_named_and_its_inputs_are_not():
    with manager() as made:
        play(made, 1, message=None)
        line = written(made)[-1]
    assert re.fullmatch(r"\[.{8}\] rule simulate \(0 of 1 done\)", line)


def test_reasons_where_they_are_asked_for():
    with manager(quiet={Quietness.HOST}) as made:
        play(made, 1)
        assert written(made)[-1] == "Reason: Missing output files"


def test_a_dry_run_counts_nothing():
    with manager(dryrun=True) as made:
        play(made, 1)
        assert written(made)[-1] == "simulate line, ts"


def test_counts_do_not_depend_on_what_is_silenced():
    with manager(quiet={Quietness.PROGRESS, Quietness.REASON}) as made:
        play(made, 2)
        assert "(1 of 2 done, about" in written(made)[-1]


def test_a_job_that_fails_names_a_few_of_its_inputs():
    facts = {"msg": None, "rule_name": "aggregate", "rule_msg": "aggregate study line", "jobid": 1, "input": MANY, "output": []}
    facts |= {"log": [], "conda_env": None, "shellcmd": "python -m ensemblepp", "aux": {}}
    with manager() as made:
        record = logging.makeLogRecord(facts | {"levelno": logging.ERROR, "levelname": "ERROR", "event": LogEvent.JOB_ERROR})
        made.logger.handle(record)
        text = "\n".join(written(made))
    assert "Error in rule aggregate:" in text
    assert f"input: {', '.join(MANY[:5])}, and 331 more\n" in text
    assert "python -m ensemblepp" in text


def test_the_bars_of_the_plugin_tell_the_time_that_is_left():
    from rich.progress import TimeRemainingColumn

    settings = LoggerPluginRegistry().get_plugin("rich").get_settings(None)
    with manager(log_handler_settings={"rich": settings}) as made:
        (handler,) = made.plugin_handlers
        assert any(isinstance(column, TimeRemainingColumn) for column in handler.progress.columns)


def test_that_nothing_is_to_be_done_is_told():
    told = []
    with manager() as made:
        screen.tell_nothing_to_be_done(made, lambda: told.append(True))
        made.logger.info("Building DAG of jobs...")
        assert not told
        made.logger.info(NOTHING_TO_BE_DONE_MSG)
        assert told
        assert written(made)[-1] == NOTHING_TO_BE_DONE_MSG


@pytest.mark.parametrize(("seconds", "words"), [(0.4, "0 s"), (119, "119 s"), (240, "4 min"), (9000, "2.5 h")])
def test_durations_in_words(seconds, words):
    assert duration(seconds) == words
