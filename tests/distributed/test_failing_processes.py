"""Processes that raise, are killed, or wait: all end, with a message."""

import os
import subprocess
import sys
import textwrap

import pytest
from tests.distributed.launch import ROOT, mpirun, started

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
    "is killed during a compiled loop": """
        import threading
        def f(x):
            return wg.fori_loop(0, 10**9, lambda i, y: d.allreduce(y, "mean"), x)
        if comm.rank == 1:
            threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
        wg.jit(f)(1.0)
    """,
    "ends while others wait": """
        if comm.rank == 1:
            d.allreduce(1.0)
    """,
    "ends while others wait in compiled code": """
        if comm.rank == 1:
            wg.jit(d.allreduce)(1.0)
    """,
    "leaves": """
        if comm.rank == 1:
            sys.exit(0)
        d.allreduce(np.ones(3))
    """,
    "scatters too few rows": """
        d.scatter(np.ones(comm.size + 1) if comm.rank == 0 else 1.0)
    """,
    "sends to a process that is not there": """
        if comm.rank == 1:
            d.send(np.ones(10), dest=100)
        d.barrier()
    """,
}
WORDS = {
    "raises": "the data of process 1 are missing",
    "raises in a thread": "the data of process 1 are missing",
    "raises in compiled code": "Run it without wengert.jit",
    "is killed": "signal 9",
    "is killed during a compiled loop": "signal 9",
    "ends while others wait": "process 0: the end of the program; process 1: allreduce(sum)",
    "ends while others wait in compiled code": "Run it without wengert.jit",
    "leaves": "process 0: allreduce(sum) (3,), float64; process 1: the end of the program",
    "scatters too few rows": "needs a row for each of the 2 processes",
    "sends to a process that is not there": "dest=100 is not a process of the world",
}
ENDS = "ends while others wait", "ends while others wait in compiled code"
# Each starts the processes, a few seconds.
QUICK = "raises in compiled code", "is killed", "ends while others wait"


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in PROGRAMS]
)
def test_all_processes_end(name, tmp_path):
    script = tmp_path / "program.py"
    start = """
        import os, signal, sys
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
    status, output = started(2, script, seconds=90.0)
    assert status != 0 and "killed after" not in output, output
    assert WORDS[name] in output, output
    assert output.count("not reached") == (name in ENDS), output


def test_mpi_that_cannot_be_used(tmp_path):
    """Not installed, without a library, not initialized, in another thread, finalized."""
    script = tmp_path / "program.py"
    program = """
        import os, sys, threading
        from wengert import distributed as d
        def refused(*ignored):
            try:
                d.allreduce(1.0)
            except Exception as error:
                print(type(error).__name__, error, flush=True)
        sys.modules["mpi4py"] = None
        refused()
        del sys.modules["mpi4py"]
        os.environ["MPI4PY_LIBMPI"] = "/nothing/libmpi.so"
        refused()
        del os.environ["MPI4PY_LIBMPI"]
        import mpi4py
        mpi4py.rc.initialize = False
        refused()
        from mpi4py import MPI
        MPI.Init_thread(MPI.THREAD_FUNNELED)
        assert d.allreduce(1.0) == 1.0
        thread = threading.Thread(target=refused)
        thread.start()
        thread.join()
        MPI.Finalize()
        refused()
    """
    script.write_text(textwrap.dedent(program))
    status, output = run_alone(script)
    lines = [line for line in output.splitlines() if "Error" in line]
    words = (
        "ImportError wengert.distributed needs mpi4py and an MPI library: pip install",
        "ImportError wengert.distributed needs mpi4py and an MPI library: pip install",
        "CommunicationError MPI is not initialized",
        "CommunicationError the world cannot be used: MPI was initialized for calls from the main",
        "CommunicationError the world cannot be used: MPI has been finalized",
    )
    assert status == 0 and len(lines) == len(words), output
    assert all(map(str.startswith, lines, words)), output


def test_processes_that_were_forked(tmp_path):
    """Operations are refused in a child, also compiled ones; the parent goes on."""
    script = tmp_path / "program.py"
    program = """
        import multiprocessing, os, sys
        import numpy as np
        import wengert as wg
        from wengert import distributed as d
        x = np.arange(3.0)
        compiled = wg.jit(d.allreduce)
        compiled(x), d.allreduce(x), d.sendrecv(x, 0, 0)
        def refused(f, x):
            try:
                f(x)
            except wg.errors.CommunicationError as error:
                return str(error)
            return "not refused"
        def child(_):
            functions = d.allreduce, lambda x: d.sendrecv(x, 0, 0), compiled, wg.jit(d.allgather)
            return [refused(f, x) for f in functions]
        with multiprocessing.get_context("fork").Pool(1) as pool:
            texts = pool.map(child, [0])[0] + [f"{pool.map(wg.grad(np.sin), [0.0])}"]
        assert all("forked after MPI was initialized" in t for t in (texts[0], texts[1], texts[3]))
        assert "failed" in texts[2] and texts[4] == "[np.float64(1.0)]", texts
        np.testing.assert_array_equal(compiled(x), d.allreduce(x))
        pid = os.fork()
        if pid == 0:  # an error of the child does not end all processes
            sys.excepthook(ValueError, ValueError("of the child"), None)
            os._exit(3)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 3
        print("the parent has", d.allreduce(x))
    """
    script.write_text(textwrap.dedent(program))
    status, output = run_alone(script)
    assert status == 0 and "the parent has [0. 1. 2.]" in output, output


def test_process_that_sends_to_itself(tmp_path):
    """It ends; and messages are logged if a handler is installed (mpi4jax's MPI4JAX_DEBUG)."""
    script = tmp_path / "program.py"
    program = """
        import logging
        import numpy as np
        import wengert as wg
        from wengert import distributed as d
        logging.basicConfig(level=logging.DEBUG)
        wg.jit(lambda x: d.sendrecv(x, source=0, dest=0))(np.ones(10))
        d.sendrecv(np.ones(10), source=0, dest=0, tag=2)
    """
    script.write_text(textwrap.dedent(program))
    status, output = run_alone(script)
    assert status == 0, output
    text = "process 0 of 1: exchange of float64[10], dest=0, source=0, tag=2 begins"
    assert output.count(" begins") == 1 and text in output, output


def run_alone(script):
    """The exit status and the output of a program, without mpirun."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=90.0,
        env=environment,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr
