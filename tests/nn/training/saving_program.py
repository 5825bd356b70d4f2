"""A program whose child processes save checkpoints in a loop, and are killed at random times.

    saving_program.py FOLDER TIMES

After each kill it checks that the checkpoint is complete.  On a busy machine it continues until
some have been saved.  It prints the number of the last one, and the number of kills that left an
incomplete file.
"""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from wengert.nn.training.callbacks import Checkpoint, read_checkpoint

FOLDER, TIMES = Path(sys.argv[1]), int(sys.argv[2])
SOME = 5


class Run:
    """The part of a run that a checkpoint uses."""

    number, processes = 0, None

    def state_dict(self):
        self.number += 1
        return {"number": self.number, "values": np.full(200_000, self.number, np.int64)}

    def call(self, point, path):
        """Does nothing: there are no callbacks."""


def save_for_ever(run):
    checkpoint = Checkpoint(FOLDER)
    while True:
        checkpoint.save(run)


checkpoint, run, unfinished = Checkpoint(FOLDER), Run(), 0
checkpoint.begin(resumes=False)
checkpoint.save(run)
rng = np.random.default_rng(0)
for k in range(20 * TIMES):
    if k >= TIMES and run.number >= SOME:
        break
    child = os.fork()
    if child == 0:
        save_for_ever(run)
    time.sleep(rng.uniform(0.0, 0.06))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    found = read_checkpoint(FOLDER)
    assert found["number"] >= run.number and (found["values"] == found["number"]).all()
    run.number = found["number"]
    unfinished += len(list(FOLDER.glob(".*.part")))
    Checkpoint(FOLDER).begin(resumes=True)
    assert [p.name for p in FOLDER.iterdir()] == ["last.wengert"]
print(run.number, unfinished)
