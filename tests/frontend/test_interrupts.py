"""Ctrl-C in a compiled loop that does not end, and while a function is traced."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import wengert as wg

PROGRAM = """
import os, signal, threading
import numpy as np
import wengert as wg

class Filter:
    gain = 1.0

thing, buffer = Filter(), np.ones(3)

@wg.jit
def f(x, buffer):
    n = 0
    while True:
        buffer[0] = buffer[0] + x
        thing.gain = thing.gain * 0.5 + x
        n += 1
        if n * x > 3.0:
            break
    return buffer[0] * thing.gain

print(f(2.0, buffer), buffer[0], thing.gain)  # two steps; compiled from now on
try:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    f(-1.0, buffer)  # runs until the signal comes; so the result does not depend on the time
except KeyboardInterrupt:
    print("interrupted", buffer[0], thing.gain)
print(f(2.0, buffer), buffer[0], type(thing.gain).__name__)
"""


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals of POSIX")
def test_an_endless_loop_ends_and_changes_nothing(tmp_path):
    file = Path(tmp_path) / "endless.py"
    file.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(file)], env=dict(os.environ), capture_output=True, text=True,
        timeout=60,
    )  # fmt: skip
    gains = [1.0 * 0.25 + 3.0]
    gains.append(gains[0] * 0.25 + 3.0)
    lines = [f"{5.0 * gains[0]} 5.0 {gains[0]}", f"interrupted 5.0 {gains[0]}"]
    assert done.stdout.splitlines() == [*lines, f"{9.0 * gains[1]} 9.0 float"], done.stderr


class Counter:
    def __init__(self):
        self.total = 0.0

    def add(self, v, strike):
        self.total = self.total + v
        if strike.is_set():
            strike.clear()
            raise KeyboardInterrupt


def test_an_interrupt_while_a_loop_is_traced_leaves_no_value_of_the_trace():
    mine, strike, parts = Counter(), threading.Event(), [0.0, 1.0]
    strike.set()

    def f(x):
        for i in range(30):
            parts[0] = parts[0] + x[i]
            mine.add(x[i], strike)
        return mine.total + parts[0]

    x = np.arange(30.0)
    compiled = wg.jit(f)
    with pytest.raises(KeyboardInterrupt):
        compiled(x)
    assert (mine.total, parts) == (0.0, [0.0, 1.0])
    assert compiled(x) == 2.0 * np.sum(x)
    assert mine.total == parts[0] == np.sum(x)
