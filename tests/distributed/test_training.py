"""Training with several processes, and processes that fail while they train.

`make test` runs the checks in two processes: test_all_checks.py.
"""

import textwrap

import pytest
from tests.distributed.launch import failures, mpirun, started

from wengert.nn.training import read_checkpoint

pytestmark = pytest.mark.skipif(mpirun() is None, reason="mpi4py or mpirun is not installed")
SLOW = pytest.mark.slow


@SLOW
@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("module", ["checks_of_training", "checks_of_compiled_training"])
def test_checks(module, count):
    assert failures(count, module) == {}


PROGRAM = """
    import os, signal, sys
    import numpy as np
    from wengert import distributed, nn
    from wengert.nn.training import Callback, Checkpoint

    comm = distributed.world()
    x = np.random.default_rng(0).normal(size=(64, 4))

    class Fails(Callback):
        def on_step_end(self, run):
            if run.step == 9:
                {fails}

    model = nn.Sequential(nn.Linear(4, 300, rng=0), nn.Tanh(), nn.Linear(300, 1, rng=1))
    nn.fit(
        model, (x, x.sum(axis=1, keepdims=True)), nn.MSELoss(), epochs=100, batch_size=8, comm=comm,
        checkpoint=Checkpoint(sys.argv[1], every_steps=1), callbacks=[Fails()], progress=False,
        compile={compile},
    )
    print("not reached")
"""
FAILURES = {
    "is killed": ("if run.rank == 1: os.kill(os.getpid(), signal.SIGKILL)", "signal 9"),
    "the first is killed": ("if run.rank == 0: os.kill(os.getpid(), signal.SIGKILL)", "signal 9"),
    "raises": ("if run.rank == 1: raise ValueError('no more memory')", "no more memory"),
    "raises at the second Ctrl-C": (
        "if run.rank == 1: [os.kill(os.getpid(), signal.SIGINT) for _ in range(2)]",
        "process 1 of 2 ended with KeyboardInterrupt",
    ),
    "exits": ("if run.rank == 1: sys.exit(3)", "process 1 of 2 ended with sys.exit(3)"),
    "writes no file": (
        "os.chmod(sys.argv[1], 0o500); run.checkpoint.folder = run.checkpoint.folder / 'none'",
        "No such file",
    ),
}


QUICK = ("raises",)  # test_failing_processes.py has processes that are killed


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in QUICK else SLOW) for n in FAILURES]
)
def test_all_processes_end(name, tmp_path):
    """With an error, and with the checkpoint of the last step that was completed."""
    script, folder = tmp_path / "program.py", tmp_path / "checkpoints"
    fails, words = FAILURES[name]
    script.write_text(textwrap.dedent(PROGRAM).format(fails=fails, compile=name == "is killed"))
    status, output = started(2, script, str(folder), seconds=60.0)
    assert status != 0 and "killed after" not in output, output
    assert words in output, output
    assert "not reached" not in output, output
    folder.chmod(0o700)
    saved = read_checkpoint(folder)
    assert saved["step"] == 8 and len(saved["processes"]) == 2
