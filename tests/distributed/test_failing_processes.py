"""Processes that raise, are killed, or wait: all end, with a message."""

import textwrap

import pytest
from tests.distributed.launch import mpirun, started

pytestmark = pytest.mark.skipif(mpirun() is None, reason="mpi4py or mpirun is not installed")
PROGRAMS = {
    "raises": """
        if comm.rank == 1:
            raise ValueError("the data of process 1 are missing")
        d.allreduce(1.0)
    """,
    "raises in a thread": """
        import threading
        def fail():
            raise ValueError("the data of process 1 are missing")
        if comm.rank == 1:
            threading.Thread(target=fail).start()
        d.allreduce(1.0)
        d.recv(1.0, source=1 - comm.rank)
    """,
    "raises in compiled code": """
        f = wg.jit(lambda x: d.allreduce(np.linalg.cholesky(x)))
        f(np.eye(2) if comm.rank == 0 else -np.eye(2))
        d.barrier()
    """,
    "is killed": """
        if comm.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        d.allreduce(1.0)
    """,
}
WORDS = {
    "raises": "the data of process 1 are missing",
    "raises in a thread": "the data of process 1 are missing",
    "raises in compiled code": "Run it without wengert.jit",
    "is killed": "signal 9",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_processes_end(name, tmp_path):
    script = tmp_path / "program.py"
    start = """
        import os, signal
        import numpy as np
        import wengert as wg
        from wengert import distributed as d
        comm = d.world()
        d.barrier()
    """
    end = """
        print("not reached")
    """
    script.write_text(textwrap.dedent(start + PROGRAMS[name] + end))
    status, output = started(2, script, seconds=60.0)
    assert status != 0 and "killed after" not in output, output
    assert WORDS[name] in output, output
    assert "not reached" not in output, output
