"""Machine instructions of a path, native code included, counted by valgrind's callgrind.

A process runs under valgrind and says itself what is counted: valgrind answers *client requests*,
a sequence of instructions that does nothing on a processor.  So no compiler is needed, and what
lies between the paths is not counted and costs little.  A count moves by a percent from run to run
(addresses, the state of dictionaries), and by nothing that neighbors do.  The import is left out:
a billion instructions take half a minute.

    missing    why this cannot be done here, or None
    measure    counts of all paths
    inside     what the process under valgrind does
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import mmap
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent.parent
WARM, CALLS, TIMES = 2, 10, 2  # calls not counted, calls of one count, counts of which the least is
ONCE = ("compile", "trace a gradient", "simplify", "trace", "eager hessian")  # long enough alone
# rax = address of the request, rdx = the answer where there is no valgrind, then its signal: four
# rotations that undo one another and an exchange of a register with itself.  Returns rdx.
REQUEST = "4889f8 31d2 48c1c703 48c1c70d 48c1c73d 48c1c733 4887db 4889d0 c3"
BASE = ord("C") << 24 | ord("T") << 16
ZERO, DUMP, START, STOP = BASE + 1, BASE + 3, BASE + 4, BASE + 5
UNDER = 0x1001
NOTHING = "nothing"


def missing() -> str | None:
    """Why machine instructions cannot be counted here."""
    if shutil.which("valgrind") is None:
        return "valgrind is not installed"
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return f"written for Linux x86_64, this is {platform.system()} {platform.machine()}"
    return None


def requester() -> Callable[..., int]:
    """A function that makes a client request of valgrind."""
    page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(bytes.fromhex(REQUEST))
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    call = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)(address)

    def request(what: int, *arguments: int, _page: Any = page) -> int:
        block = (ctypes.c_uint64 * 6)(what, *arguments)
        return int(call(ctypes.addressof(block)))

    return request


def inside(slowed: bool) -> None:
    """Count every path (or, `slowed`, three calls in the place of one)."""
    request = requester()
    if not request(UNDER):
        raise SystemExit("not under valgrind")

    def count(name: str, path: Callable[[], Any], calls: int) -> None:
        label = ctypes.create_string_buffer(f"{name}|{calls}".encode())
        if slowed:
            calls *= 3
        gc.collect()
        gc.disable()
        request(START)
        request(ZERO)
        for _ in range(calls):
            path()
        request(DUMP, ctypes.addressof(label))
        request(STOP)
        gc.enable()

    paths = importlib.import_module("guard.paths").PATHS
    made = {name: hot.make() for name, hot in paths.items() if name != "import"}
    for name, path in {NOTHING: lambda: None, **made}.items():
        for _ in range(WARM):
            path()
        for _ in range(TIMES):
            count(name, path, 1 if name in ONCE else CALLS)


def measure(slowed: bool = False) -> dict[str, float]:
    """Instructions of one call of each path."""
    code = f"from guard import instructions as i; i.inside({slowed})"
    with tempfile.TemporaryDirectory() as folder:
        command = ["valgrind", "--tool=callgrind", "--instr-atstart=no"]
        command += [f"--callgrind-out-file={folder}/out", sys.executable, "-c", code]
        fixed = {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1", "WENGERT_CACHE": "0"}
        done = subprocess.run(
            command, cwd=HERE, env=os.environ | fixed, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"the process under valgrind failed:\n{done.stderr[-3000:]}")
        counts: dict[str, float] = {}
        for dump in sorted(Path(folder).glob("out.*")):
            text = dump.read_text(errors="replace")
            label = re.search(r"^desc: Trigger: Client Request: (.*)\|(\d+)$", text, re.MULTILINE)
            total = re.search(r"^summary: (\d+)", text, re.MULTILINE)
            if label and total:
                each = int(total[1]) / int(label[2])
                counts[label[1]] = min(each, counts.get(label[1], each))
    nothing = counts.pop(NOTHING)
    return {name: count - nothing for name, count in counts.items()}
