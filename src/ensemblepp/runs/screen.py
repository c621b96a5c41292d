"""What Snakemake shows while it runs: a line per job with the time that is left, and no paths by the hundred."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

from snakemake.common import NOTHING_TO_BE_DONE_MSG
from snakemake.logging import ColorizingTextHandler, DefaultFormatter, LoggerManager, get_event, is_quiet_about
from snakemake.settings.types import OutputSettings
from snakemake_interface_logger_plugins.common import LogEvent

#: What says no more than the line of a job does.
_UNSEEN = frozenset({LogEvent.JOB_STARTED, LogEvent.JOB_FINISHED, LogEvent.PROGRESS})

#: So many inputs of a job that failed are named.
_SHOWN = 5


def shorten(manager: LoggerManager) -> None:
    """Shorten what Snakemake writes to the screen; the log file that it keeps stays as it is.

    Its own logger writes a line per job, wherever that goes. The logger plugin "rich" draws bars, which get the time left.
    """
    for handler in manager.logger.handlers:
        if isinstance(handler, ColorizingTextHandler):
            lines = JobLines(manager.settings)
            handler.setFormatter(lines)
            # before Snakemake's own filter, which may hold back what the counts come from
            handler.filters.insert(0, lines)
    for handler in manager.plugin_handlers:
        if hasattr(handler, "progress"):
            from rich.progress import TimeRemainingColumn

            handler.progress.columns = (*handler.progress.columns, TimeRemainingColumn(), "left")


def tell_nothing_to_be_done(manager: LoggerManager, tell: Callable[[], None]) -> None:
    """Call `tell` when Snakemake finds nothing to be done, of which no hook tells."""

    def watch(record: logging.LogRecord) -> bool:
        if record.msg == NOTHING_TO_BE_DONE_MSG:
            tell()
        return True

    manager.logger.addFilter(watch)


class JobLines(DefaultFormatter):
    """Snakemake's messages with one line for a job, as it starts."""

    def __init__(self, settings: OutputSettings) -> None:
        super().__init__(settings.quiet, settings.show_failed_logs)
        self._runs = not settings.dryrun
        self._done, self._total, self._start = 0, 0, time.monotonic()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a message is shown; counts those that tell of progress."""
        event = get_event(record)
        if event == LogEvent.RUN_INFO:
            self._total, self._start = record.stats["total"], time.monotonic()
        if event == LogEvent.PROGRESS:
            self._done, self._total = record.done, record.total
        return event not in _UNSEEN and not str(record.msg).startswith("Select jobs to execute")

    def format_job_info(self, msg: dict[str, Any]) -> str:
        """A job in one line, with how much is done; its reason in a second one, where reasons are asked for."""
        words = msg["rule_msg"] or f"rule {msg['rule_name']}"
        if self._runs:
            words = f"[{time.strftime('%H:%M:%S')}] {words} ({self._progress()})"
        return words if is_quiet_about(self.quiet, "reason") else f"{words}\nReason: {msg['reason']}"

    def _progress(self) -> str:
        done = f"{self._done} of {self._total} done"
        # the first jobs load libraries and compile, and say little of the others
        if self._done * 20 < self._total or not self._done:
            return done
        seconds = (time.monotonic() - self._start) / self._done * (self._total - self._done)
        return f"{done}, about {duration(seconds)} left"

    def format_job_error(self, msg: dict[str, Any]) -> str:
        """A job that failed; of many inputs the first ones."""
        inputs = list(msg["input"])
        if len(inputs) > _SHOWN:
            msg = msg | {"input": [*inputs[:_SHOWN], f"and {len(inputs) - _SHOWN} more"]}
        return super().format_job_error(msg)


def duration(seconds: float) -> str:
    """A time in words, with the unit that a person would take."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
