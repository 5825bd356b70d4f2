"""`python -m wengert.compat.autograd`: imports of autograd in unchanged programs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import wengert
from wengert.compat.autograd import import_hook
from wengert.errors import ArgumentError

SOURCES = str(Path(wengert.__file__).parents[1])
PROGRAM = """
import sys
import autograd
import autograd.numpy as np
import autograd.numpy.random as npr
import autograd.scipy.stats.norm as norm
from autograd import elementwise_grad, grad
from autograd.builtins import DictBox
from autograd.extend import defvjp, primitive
from autograd.misc.optimizers import adam
from autograd.numpy.linalg import inv
from autograd.numpy.numpy_boxes import ArrayBox
from autograd.numpy.numpy_vjps import unbroadcast_f
from autograd.scipy.special import gammaln
from autograd.test_util import check_grads
from autograd.tracer import getval
import helper

check_grads(lambda x: np.sum(gammaln(x) * norm.logpdf(x)))(np.array([1.0, 2.5]))
print(__name__, sys.argv[1:], float(grad(helper.square)(3.0)), grad.__module__)
"""


def run(folder, *arguments):
    """The output of `python -m wengert.compat.autograd` with these arguments."""
    environment = {**os.environ, "PYTHONPATH": SOURCES}
    command = [sys.executable, "-m", "wengert.compat.autograd", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture
def program(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "helper.py").write_text(
        "from autograd import numpy as anp\ndef square(x): return anp.square(x)\n"
    )
    return tmp_path


EXPECTED = "__main__ ['--a', 'b'] 6.0 wengert.compat.autograd.wrap_util\n"


def test_a_script_runs_unchanged(program):
    done = run(program.parent, str(program / "program.py"), "--a", "b")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split(".")[0] == EXPECTED.split(".")[0] and "wengert" in done.stdout
    done = run(program, "-m", "program", "--a", "b")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("__main__ ['--a', 'b'] 6.0 wengert")


def test_a_program_in_strict_mode(tmp_path):
    (tmp_path / "program.py").write_text(
        "import autograd.numpy as np\nfrom autograd import grad, strict\n"
        "print(strict.is_strict(), grad(np.sin)(0.0))\n"
    )
    for arguments in (["program.py"], ["-m", "program"]):
        done = run(tmp_path, "--strict", *arguments)
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == ["True", "1.0"]


def test_the_command_says_how_it_is_used(tmp_path):
    done = run(tmp_path)
    assert done.returncode == 2 and "usage" in done.stderr
    done = run(tmp_path, "--help")
    assert done.returncode == 0 and "usage" in done.stdout


def test_pytest_does_not_import_a_second_copy(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import autograd.test_util\nimport wengert.compat.autograd.test_util as ours\n"
        "def test_same(): assert autograd.test_util is ours\n"
    )
    done = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout


@pytest.fixture
def hook():
    kept = {name: sys.modules.pop(name) for name in list(sys.modules)
            if name.partition(".")[0] == "autograd"}  # fmt: skip
    yield import_hook
    import_hook.remove()
    sys.modules.update(kept)


def test_install_and_remove(hook):
    hook.install()
    hook.install()
    import autograd.numpy.linalg

    assert autograd is wengert.compat.autograd
    assert autograd.numpy.linalg is wengert.compat.autograd.numpy.linalg
    assert autograd.__spec__.name == "wengert.compat.autograd"
    with pytest.raises(ModuleNotFoundError, match="docs/autograd-users"):
        import autograd.nothing
    hook.install(strict=True)
    assert wengert.compat.autograd.strict.is_strict()
    hook.remove()
    assert not wengert.compat.autograd.strict.is_strict()
    assert "autograd" not in sys.modules and "autograd.numpy" not in sys.modules


def test_autograd_itself_must_not_be_imported_before(hook, monkeypatch):
    monkeypatch.setitem(sys.modules, "autograd", os)
    with pytest.raises(ArgumentError, match="import hook first"):
        hook.install()
