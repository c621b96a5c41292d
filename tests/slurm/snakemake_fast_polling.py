"""Snakemake's command line with the SLURM executor looking at its jobs every second, for tests only.

    python tests/slurm/snakemake_fast_polling.py --profile ... (the arguments of snakemake)

After each look at which no job has finished, the executor plugin waits ten seconds longer before the next, up to
three minutes, and no setting changes that: short jobs take a minute to be noticed. Here the wait stays at one second.
Jobs are not affected, they start the unchanged `python -m snakemake`.

At each look the plugin (2.8.0) also asks `scontrol` for MinJobAge. If that takes more than ten seconds, as it may on a busy
machine, it turns to `sacct`; without accounting that fails, and the plugin then forgets all its jobs and waits for ever.
Asking every second meets this forty times as often as users do, so here MinJobAge is asked for until there is an answer, and
then kept.
"""

import functools
import time

import snakemake_executor_plugin_slurm as plugin
from snakemake.cli import main

ask = plugin.get_min_job_age


@functools.cache
def min_job_age() -> int | None:
    """MinJobAge of the cluster in seconds; None if a minute of asking gives no answer."""
    for _ in range(6):
        answer = ask()
        if answer is not None:
            return answer
        time.sleep(1)
    return None


if __name__ == "__main__":
    plugin.get_min_job_age = min_job_age
    plugin.Executor.next_seconds_between_status_checks = property(lambda self: 1, lambda self, value: None)
    main()
