"""An agent that takes its time, and says when it acted: for tests of jobs that end before their time."""

import json
import os
import time
from pathlib import Path

import numpy as np


class Slow:
    chains = (("none", "none"),)

    def __init__(self, seeds, *, dimension, ensemble_size, horizon, device):
        self.seeds = tuple(seeds)
        # of one block, on a cluster only: more memory than a job has at its first attempt
        self.ballast = "x" * (int(os.environ.get("BALLAST_MB", 0)) * 2**20) if self.seeds[0] == 2 else ""

    def act(self, decisions):
        if os.environ.get("TRACE"):
            with Path(os.environ["TRACE"]).open("a") as file:
                file.write(json.dumps([self.seeds[0], os.environ["SLURM_JOB_ID"], time.time()]) + "\n")
            time.sleep(float(os.environ["PAUSE"]))
        return decisions.choose(np.zeros((len(self.seeds), 1), dtype=int))

    def update(self, choice, reward):
        pass

    def __getstate__(self):
        return self.__dict__ | {"ballast": ""}
