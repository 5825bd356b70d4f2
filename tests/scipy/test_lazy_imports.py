"""Subpackages of wengert.scipy are imported when needed: by name, by a ufunc, by a saved graph."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.special

import wengert as wg
from wengert._engine.core.op import lookup
from wengert.errors import NotDifferentiableError, RegistryError

IMPORT_ONLY = """
import sys, wengert
print([m for m in ("scipy.special", "scipy.linalg", "wengert.scipy") if m in sys.modules])
"""
UFUNC = """
import scipy.special, numpy, wengert
print(float(wengert.grad(scipy.special.gammaln)(1.0)))
print(float(wengert.trace(wengert.grad(scipy.special.gammaln))(1.0)(1.0)))
"""
SAVED_GRAPH = """
import sys, wengert
print(float(wengert.load(sys.argv[1])(1.0)))
"""

LOOKUP = """
import sys, wengert
from wengert._engine.core.op import lookup
for name in sys.argv[1:]:
    assert lookup(name).name == name
print(sorted(m[14:] for m in sys.modules if m.startswith("wengert.scipy.") and m.count(".") == 2))
"""


def run_in_new_process(code, *arguments):
    """The output of a new process, by line."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.split("\n")[:-1]


def test_import_loads_no_scipy_packages():
    assert run_in_new_process(IMPORT_ONLY) == ["[]"]


def test_a_ufunc_of_scipy_finds_its_operation():
    assert [round(float(x), 12) for x in run_in_new_process(UFUNC)] == [
        -round(np.euler_gamma, 12)
    ] * 2


def test_a_saved_graph_finds_its_operations(tmp_path):
    path = tmp_path / "graph.wengert"
    wg.save(wg.trace(wg.grad(scipy.special.gammaln))(1.0), path)
    assert [round(float(x), 12) for x in run_in_new_process(SAVED_GRAPH, str(path))] == [
        -round(np.euler_gamma, 12)
    ]


def test_public_names_are_ufuncs_of_scipy():
    assert wg.scipy.special.gammaln is scipy.special.gammaln
    assert "special" in dir(wg.scipy)
    with pytest.raises(AttributeError, match="no attribute 'gammaln_'"):
        wg.scipy.special.gammaln_  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'fast'"):
        wg.scipy.fast  # noqa: B018


def test_only_the_package_of_an_operation_is_imported():
    engine = "scan convolution max_pool assume random_below"
    assert run_in_new_process(LOOKUP, *engine.split()) == ["[]"]
    found = run_in_new_process(LOOKUP, "fft.dct", "special.gammaln")[0]
    assert "'fft'" in found and "'stats'" not in found and "'ndimage'" not in found
    assert "'interpolate'" in run_in_new_process(LOOKUP, "interpolate.banded")[0]


def test_an_unknown_operation_is_an_error():
    with pytest.raises(RegistryError, match=r"special\.gammaln"):
        lookup("special.gammalm")


def test_the_error_of_an_unsupported_ufunc_has_its_name():
    with pytest.raises(NotDifferentiableError, match=r"scipy\.special\.\w+ was called"):
        scipy.special.nrdtrimn(wg.tensor(0.5), 1.0, 1.0)


def test_out_and_where_of_ufuncs_of_scipy():
    x = np.array([0.5, 1.5, 2.5])

    def f(x):
        y = np.zeros_like(x)
        scipy.special.gammaln(x, out=y)
        return np.sum(y) + np.sum(scipy.special.psi(x, where=x > 1, out=np.zeros_like(x)))

    want = scipy.special.psi(x) + np.where(x > 1, scipy.special.polygamma(1, x), 0.0)
    np.testing.assert_allclose(wg.grad(f)(x), want, rtol=1e-13)
