"""How often Snakemake looks for jobs that can start."""

from __future__ import annotations

import threading
from typing import Any


def steady(scheduler: Any) -> None:
    """Let a scheduler of Snakemake's have one look at a time ahead of it, where it has one more for every job that ended.

    It looks after each job that ends; and, where the number of jobs a timespan is limited, as it is by default, once more a
    timespan after each look. That one is followed by another for ever: n jobs that have ended make n looks a timespan, each of
    which goes through all jobs that are ready. And Snakemake cannot end before the last of them.

    A scheduler of another make stays as it is.
    """
    if not (hasattr(scheduler, "_schedule_reevalutation") and hasattr(scheduler, "_open_jobs")):
        return
    ahead: list[threading.Timer] = []

    def look() -> None:
        # first, or the look that follows could find this one ahead of it still, and be the last
        ahead.clear()
        # the semaphore on which the scheduler waits between looks
        scheduler._open_jobs.release()

    def look_later(delay: float) -> None:
        if not ahead:
            timer = threading.Timer(delay, look)
            timer.daemon = True
            ahead.append(timer)
            timer.start()

    scheduler._schedule_reevalutation = look_later
