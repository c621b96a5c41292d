"""Snakemake's command line with the SLURM executor looking at its jobs every second, for tests only.

    python tests/slurm/snakemake_fast_polling.py --profile ... (the arguments of snakemake)

After each look at which no job has finished, the executor plugin waits ten seconds longer before the next, up to
three minutes, and no setting changes that: short jobs take a minute to be noticed. Here the wait stays at one second.
Jobs are not affected, they start the unchanged `python -m snakemake`.
"""

import snakemake_executor_plugin_slurm as plugin
from snakemake.cli import main

if __name__ == "__main__":
    plugin.Executor.next_seconds_between_status_checks = property(lambda self: 1, lambda self, value: None)
    main()
