"""The pages for users of other libraries: blocks for the other library give the results of ours.

Blocks fenced as text are the other library's; those of Python also run in the test of all pages.
The other library is run in a process of its own, by this interpreter or by that of .venv-bench or
.venv-pymc, whichever has it; without one the test is skipped, by the library's name.
`make peers` makes both environments, and runs these tests.
"""

import contextlib
import functools
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENTS = [ROOT / name / "bin" / "python" for name in (".venv-bench", ".venv-pymc")]
# PyTensor compiles C by default, for a minute.
ENVIRONMENT = {**os.environ, "PYTENSOR_FLAGS": "cxx=,mode=FAST_COMPILE"}
PAGES = {
    "casadi": "value jacobian hessian forward reverse last path rows branch root slope",
    "jax": "value slope curvature rows along product total steps root chosen stored flat clipped",
    "pymc": "value slopes increasing bounded log_jacobian mode curvature solution",
    "torch": "gradient weight bias curvature rows partial maps entropy",
}
APPROXIMATE = {
    "casadi": {"end": 1e-8, "sensitivity": 1e-7, "minimum": 1e-5, "cost": 1e-6},
    # PyMC takes logarithms of constants in float32
    "pymc": {
        "value": 2e-8,
        "log_jacobian": 2e-8,
        "mode": 1e-4,
        "curvature": 1e-3,
        "solution": 1e-6,
    },
}
NAMES = {
    "autograd": "autograd", "casadi": "casadi", "jax": "jax", "pymc": "stan", "torch": "pytorch",
}  # fmt: skip
KEEP = """
import numpy as np
def number(x):
    return np.asarray(x.detach() if hasattr(x, "detach") else x, float)
np.savez({path!r}, **{{name: number(globals()[name]) for name in {names!r}}})
"""


@functools.cache
def interpreter(peer):
    """What can import a library, or None; found without importing it."""
    if importlib.util.find_spec(peer) is not None:
        return sys.executable
    found = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({peer!r}) is None)"
    for python in ENVIRONMENTS:
        if python.exists() and subprocess.run([str(python), "-c", found]).returncode == 0:
            return str(python)
    return None


def blocks(peer, language):
    page = (ROOT / "docs" / f"{NAMES[peer]}-users.md").read_text(encoding="utf-8")
    found = re.findall(rf"^```{language}\n(.*?)^```$", page, re.M | re.S)
    return [block for block in found if not block.startswith(("gcc", ">>>"))]


def run_by(peer, program, folder):
    if interpreter(peer) is None:
        pytest.skip(f"{peer} is installed neither here nor in .venv-bench or .venv-pymc")
    command = [interpreter(peer), "-W", "ignore", "-c", program]
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("peer", PAGES)
def test_both_sides_of_a_page_agree(peer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tolerances = dict.fromkeys(PAGES[peer].split(), 1e-9) | APPROXIMATE.get(peer, {})
    keep = KEEP.format(path=str(tmp_path / "found.npz"), names=sorted(tolerances))
    ours = {}
    for block in blocks(peer, "python"):  # first: they export what CasADi's blocks call
        with contextlib.redirect_stdout(None):
            exec(block, ours)
    run_by(peer, "\n".join([*blocks(peer, "text"), keep]), tmp_path)
    found = np.load(tmp_path / "found.npz")
    assert sorted(found) == sorted(tolerances)
    for name, tolerance in tolerances.items():
        here = ours[name].detach().numpy() if hasattr(ours[name], "detach") else ours[name]
        np.testing.assert_allclose(
            np.squeeze(np.asarray(here, float)), np.squeeze(found[name]), tolerance, tolerance,
            err_msg=name,
        )  # fmt: skip


@pytest.mark.slow
def test_programs_for_autograd_are_those_of_the_page(tmp_path):
    """Its first blocks, with the imports as they were."""
    own = [b for b in blocks("autograd", "python") if "defvjp" not in b and "wg." not in b]
    assert len(own) >= 2
    run_by("autograd", "\n".join(own).replace("wengert.compat.autograd", "autograd"), tmp_path)
