"""docs/architecture.md describes the calls of functions correctly.

The functions named in a section of "The life of a call" are called, in the order of their first
calls.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")

# Run in a new process, so that lazy imports and caches behave as in a user's program.
SCRIPT = """
import os
import sys
import numpy as np
import wengert as wg

def f(x):
    return np.sum(np.tanh(x) * x)

root = os.path.dirname(wg.__file__) + os.sep
calls = {
    "Eager": lambda: wg.grad(f)(np.ones(3)),
    "Traced": lambda: wg.trace(f)(wg.spec(3)),
    "Compiled, first call": lambda: wg.jit(wg.grad(f))(np.ones(3)),
}
compiled = wg.jit(wg.grad(f))
calls["Compiled, second call"] = lambda: compiled(np.ones(3))
compiled(np.ones(3))
compiled(np.ones(3))

def note(frame, event, argument):
    if event == "call" and frame.f_code.co_filename.startswith(root):
        qualified = frame.f_code.co_qualname.replace(".<locals>", "").split(".")
        for name in qualified[-2:]:
            found.append((frame.f_code.co_filename[len(root):], name))

call, found = calls[sys.argv[1]], []
sys.setprofile(note)
call()
sys.setprofile(None)
for path, name in dict.fromkeys(found):
    print(path, name)
"""


def functions_called(title):
    command = [sys.executable, "-c", SCRIPT, title]
    environment = {**os.environ, "WENGERT_CACHE": "off"}  # no programs from the disk cache
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return [tuple(line.split()) for line in done.stdout.splitlines()]


def section(title):
    (text,) = re.findall(rf"^### {re.escape(title)}.*?\n(.*?)(?=^##)", PAGE, re.S | re.M)
    return text


def named_in(text):
    return re.findall(r"`([\w/]+\.py): (\w+)`", text)


@pytest.mark.parametrize("title", ["Eager", "Traced", "Compiled, first call"])
def test_the_functions_named_are_called_in_this_order(title):
    called, named = functions_called(title), named_in(section(title))
    assert len(named) >= 7
    missing = [one for one in named if one not in called]
    assert not missing, "the page names functions that this call does not reach"
    if not title.startswith("Compiled"):  # its steps overlap: discovery, tracing, code generation
        places = [called.index(one) for one in named]
        assert places == sorted(places), list(zip(named, places, strict=True))


def test_the_second_call_runs_no_python_of_the_package():
    assert functions_called("Compiled, second call") == []
