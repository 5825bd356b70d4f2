"""Exported C that CasADi calls: its functions by ctypes, and by CasADi where it is installed."""

import ctypes
import shutil
import subprocess
from itertools import pairwise

import numpy as np
import pytest

import wengert as wg
from wengert.errors import ArgumentError, BackendError

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
DOUBLES = ctypes.POINTER(ctypes.c_double)
COUNT = ctypes.c_longlong


def f(x, a, k):
    return np.tanh(a @ x) * k, np.sin(a) + np.sum(x)


SPECS = wg.spec(2), wg.spec((3, 2)), wg.spec(())
VALUES = np.array([0.1, 0.2]), np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), 1.5


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    folder = tmp_path_factory.mktemp("casadi")
    exported = wg.jit(f).export(folder / "f.c", SPECS, casadi=2)
    flags = "-std=c99 -Wall -Wextra -Werror -O1 -fPIC -shared".split()
    command = ["gcc", *flags, str(exported.path), "-o", str(folder / "f.so"), "-lm"]
    subprocess.run(command, check=True)
    return folder / "f.so"


class Function:
    """A function of the file, called as CasADi does."""

    def __init__(self, path, name):
        self.library, self.name = ctypes.CDLL(str(path)), name

    def named(self, end, kind):
        function = getattr(self.library, self.name + end)
        function.restype = kind
        return function

    def shapes(self, way):
        count = self.named(f"_n_{way}", COUNT)()
        names, shapes = (
            self.named(f"_name_{way}", ctypes.c_char_p),
            self.named(f"_sparsity_{way}", ctypes.POINTER(COUNT)),
        )
        assert names(COUNT(count)) is None
        assert not shapes(COUNT(-1))
        listed = {names(COUNT(k)).decode(): tuple(shapes(COUNT(k))[:2]) for k in range(count)}
        for k, (name, shape) in enumerate(listed.items()):
            if shapes(COUNT(k))[2] != 1:  # no elements are stored: each column begins at 0
                assert way == "out" and "_out_" in name
                assert shapes(COUNT(k))[2 : shape[1] + 3] == [0] * (shape[1] + 1)
        return listed

    def __call__(self, *values, without=()):
        counts = [COUNT() for _ in range(4)]
        assert self.named("_work", ctypes.c_int)(*map(ctypes.byref, counts)) == 0
        shapes = list(self.shapes("out").values())
        assert [c.value for c in counts[:3]] == [len(self.shapes("in")), len(shapes), 0]
        results = [np.full(s, np.nan, order="F") for s in shapes]
        given = [v if v is None else np.array(v, float, order="F") for v in values]
        inputs = (DOUBLES * len(given))(
            *[None if v is None else v.ctypes.data_as(DOUBLES) for v in given]
        )
        outputs = (DOUBLES * len(results))(
            *[None if k in without else r.ctypes.data_as(DOUBLES) for k, r in enumerate(results)]
        )
        work = np.full(counts[3].value + 1, np.pi)
        run = self.named("", ctypes.c_int)
        assert run(inputs, outputs, None, work.ctypes.data_as(DOUBLES), 0) == 0
        assert work[-1] == np.pi
        return results


def test_values(path):
    called = Function(path, "f_casadi")
    assert called.shapes("in") == {"x": (2, 1), "a": (3, 2), "k": (1, 1)}
    assert list(called.shapes("out").values()) == [(3, 1), (3, 2)]
    wanted = f(*VALUES)
    for got, value in zip(called(*VALUES), wanted, strict=True):
        np.testing.assert_allclose(np.reshape(got, value.shape), value, rtol=1e-14)
    zeros, other = called(*VALUES[:2], None), called(*VALUES, without=[0])
    np.testing.assert_array_equal(zeros[0], 0.0)
    assert np.all(np.isnan(other[0]))
    np.testing.assert_allclose(other[1], wanted[1], rtol=1e-14)


def test_jacobians(path):
    called = Function(path, "jac_f_casadi")
    assert len(called.shapes("in")) == 5
    blocks = called(*VALUES, None, None)
    wanted = [b for row in wg.jacobian(f, (0, 1, 2))(*VALUES) for b in row]
    for got, block in zip(blocks, wanted, strict=True):
        # rows and columns are those of arrays in Fortran's order
        out = block.ndim - {2: 1, 6: 2, 1: 0}[got.shape[1]]
        axes = [*range(out)][::-1] + [*range(out, block.ndim)][::-1]
        matrix = np.reshape(np.transpose(block, axes), got.shape)
        np.testing.assert_allclose(got, matrix, rtol=1e-12, atol=1e-15)


def test_second_derivatives(path):
    """Rows are the elements of a Jacobian by columns; results of f have no effect."""
    called = Function(path, "jac_jac_f_casadi")
    assert len(called.shapes("in")) == 11 and len(called.shapes("out")) == 30
    found = dict(zip(called.shapes("out"), called(*VALUES, *[None] * 8), strict=True))
    wanted = wg.jacobian(wg.jacobian(f, (0, 1, 2)), (0, 1, 2))(*VALUES)
    kinds = [np.ndim(v) for v in f(*VALUES)], [np.ndim(v) for v in VALUES]
    for o in range(2):
        for i, first in enumerate("xak"):
            for k, second in enumerate("xak"):
                name = (
                    f"jac_jac_{list(Function(path, 'f_casadi').shapes('out'))[o]}_{first}_{second}"
                )
                ends = np.cumsum([0, kinds[0][o], kinds[1][i], kinds[1][k]])
                parts = [range(a, b) for a, b in pairwise(ends)]
                axes = [*parts[1][::-1], *parts[0][::-1], *parts[2][::-1]]
                matrix = np.reshape(np.transpose(wanted[o][i][k], axes), found[name].shape)
                np.testing.assert_allclose(found[name], matrix, rtol=1e-11, atol=1e-14)
    assert all(np.all(np.isnan(v)) for n, v in found.items() if "_out_" in n)


def test_second_derivatives_in_casadi(path):
    ca = pytest.importorskip("casadi")
    external = ca.external("f_casadi", str(path))
    x, a, k = ca.MX.sym("x", 2), ca.MX.sym("a", 3, 2), ca.MX.sym("k")
    own = ca.sumsqr(ca.tanh(a @ x) * k) + ca.sum1(ca.vec(ca.sin(a) + ca.sum1(x)))
    first, second = external(x, a, k)
    ours = ca.sumsqr(first) + ca.sum1(ca.vec(second))
    everything = ca.vertcat(x, ca.vec(a), k)
    hessians = []
    for value in (ours, own):
        rows = [ca.vec(ca.gradient(value, v)) for v in (x, a, k)]
        blocks = [[ca.jacobian(r, v) for v in (x, a, k)] for r in rows]
        full = ca.vertcat(*[ca.horzcat(*row) for row in blocks])
        hessians.append(np.array(ca.Function("h", [x, a, k], [full])(*VALUES)))
    assert hessians[0].shape == (everything.shape[0],) * 2
    np.testing.assert_allclose(hessians[0], hessians[1], rtol=1e-11, atol=1e-12)


def test_external(path):
    ca = pytest.importorskip("casadi")
    external = ca.external("f_casadi", str(path))
    x, a, k = ca.MX.sym("x", 2), ca.MX.sym("a", 3, 2), ca.MX.sym("k")
    own = [ca.tanh(a @ x) * k, ca.sin(a) + ca.sum1(x)]
    for got, wanted in zip(external(x, a, k), own, strict=True):
        for by in (x, a, k):
            both = [ca.jacobian(got, by), ca.jacobian(wanted, by), got, wanted]
            one, two, three, four = ca.Function("g", [x, a, k], both)(*VALUES)
            np.testing.assert_allclose(np.array(one), np.array(two), rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(np.array(three), np.array(four), rtol=1e-12, atol=1e-14)


def test_what_casadi_cannot_call(tmp_path):
    with pytest.raises(BackendError, match="matrices of float64 of known sizes, and x"):
        wg.jit(np.sin).export(tmp_path / "f.c", wg.spec("n"), casadi=True)
    with pytest.raises(BackendError, match="at most two axes"):
        wg.jit(np.sin).export(tmp_path / "f.c", wg.spec((2, 2, 2)), casadi=True)
    with pytest.raises(BackendError, match="float64"):
        wg.jit(np.sin).export(tmp_path / "f.c", wg.spec(2, "float32"), casadi=True)
    with pytest.raises(ArgumentError, match="format='c'"):
        wg.jit(np.sin).export(tmp_path / "f.so", wg.spec(2), casadi=True)
    with pytest.raises(ArgumentError, match=r"casadi=3.*2 for second derivatives"):
        wg.jit(np.sin).export(tmp_path / "f.c", wg.spec(2), casadi=3)
