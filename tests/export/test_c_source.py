"""Exported C: compiled without warnings, run with sanitizers, compared with eager execution."""

import shutil
import subprocess

import numpy as np
import pytest
import scipy.linalg
from tests.backends.llvm.random_programs import Bundle, differing, is_differentiable

import wengert as wg
from wengert._engine.ops.linalg.packed_factors import lu_packed, solve_packed

from .c_drivers import compiled, run
from .exported_calls import Library

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror")
SANITIZED = (*STRICT, "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover")


def library(exported, *options):
    """The C file compiled as a shared library."""
    path = exported.path.with_suffix(".so")
    done = subprocess.run(
        ["gcc", *STRICT, *(options or ("-O1",)), "-shared", "-fPIC", "-o", str(path),
         str(exported.path), "-lm"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[:3000]
    return Library(exported, path) if path.exists() else None


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", ["values", "gradient"])
def test_random_programs(seed, kind, tmp_path):
    bundle = Bundle(seed, named=seed % 3 == 2)
    if kind == "gradient" and not is_differentiable(bundle):
        pytest.skip("NumPy has no gradient")
    function = getattr(bundle, kind)
    exported = wg.jit(lambda *xs: function(*xs)).export(
        tmp_path / "f.c", tuple(bundle.specs), name="f"
    )
    for world in bundle.worlds:
        got = run(exported, "f", world, compiled(exported, "f", world, "gcc", *SANITIZED))
        with np.errstate(all="ignore"):
            wanted = function(*world)
        eps = bundle.eps if kind == "values" else bundle.coarse
        assert not differing(got, wanted, eps), str(bundle)


def test_functions_whose_results_nothing_reads(tmp_path):
    """A loop of which only a part is read calls vector functions whose results are not used."""
    bundle = Bundle(3)
    exported = wg.jit(lambda *xs: bundle.values(*xs)).export(
        tmp_path / "f.c", tuple(bundle.specs), name="f"
    )
    library(exported, "-fsyntax-only")


N, M = 9, 4
RNG = np.random.default_rng(3)
A = RNG.normal(size=(N, N)) + 4.0 * np.eye(N)
B, V = RNG.normal(size=(N, M)), RNG.normal(size=N)
LOWER, UPPER = np.tril(A), np.triu(A)

ALGEBRA = {
    "products": lambda a, b, v: (a @ b, a.T @ b, b.T @ b, a @ v, v @ a, a @ a.T),
    "solve": lambda a, b, v: (np.linalg.solve(a, v), np.linalg.solve(a.T, b)),
    "factors": lambda a, b, v: (
        solve_packed(*lu_packed(a), b), solve_packed(*lu_packed(a), b, trans=1),
        solve_packed(*lu_packed(a), v[:, None]), solve_packed(*lu_packed(a), v[:, None], trans=1),
    ),
    "inverse": lambda a, b, v: (np.linalg.inv(a), np.linalg.det(a), np.linalg.slogdet(a)[1]),
    "cholesky": lambda a, b, v: (
        np.linalg.cholesky(a @ a.T), scipy.linalg.cho_solve(scipy.linalg.cho_factor(a @ a.T), b),
    ),
    "triangles": lambda a, b, v: (
        scipy.linalg.solve_triangular(np.tril(a), b, lower=True),
        scipy.linalg.solve_triangular(np.triu(a), b),
        scipy.linalg.solve_triangular(np.triu(a), v, trans=1),
    ),
    "sorting": lambda a, b, v: (
        np.sort(a, axis=0), np.argsort(b, axis=1), np.median(v), np.lexsort((v > 0, v)),
    ),
    "derivatives": lambda a, b, v: wg.grad(
        lambda a, b: np.sum(np.sin(np.linalg.solve(a, b))) + np.log(np.linalg.det(a)), (0, 1)
    )(a, b),
}  # fmt: skip


@pytest.mark.parametrize("name", ALGEBRA)
@pytest.mark.parametrize("has_names", [False, True])
@pytest.mark.sample(len(ALGEBRA))
def test_linear_algebra_without_a_library(name, has_names, tmp_path):
    f = ALGEBRA[name]
    letters = {N: "n", M: "m"}
    specs = [wg.spec([letters[k] for k in x.shape] if has_names else x.shape) for x in (A, B, V)]
    called = library(wg.jit(lambda *xs: f(*xs)).export(tmp_path / f"{name}.c", specs, name="f"))
    for got, wanted in zip(called("f", A, B, V), f(A, B, V), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)


def test_elementary_functions_have_the_same_bits(tmp_path):
    def f(x):
        functions = (np.sin, np.cos, np.tan, np.exp, np.log, np.arctan, np.tanh, np.cbrt, np.rint)
        return np.stack([g(x) for g in functions])

    x = np.concatenate([RNG.uniform(0.001, 30.0, 300), [1e10, 1e22, 1e300, 5e-324]])
    called = library(wg.jit(f).export(tmp_path / "f.c", wg.spec("n")), "-O2")
    np.testing.assert_array_equal(called("f", x)[0], wg.jit(f)(x))


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128", "int64", "int8", "bool"])
def test_dtypes(dtype, tmp_path):
    def f(x):
        return x * x, np.cumsum(x), x[::-1], np.where(x == x[0], x, x[1])

    x = np.array([3, 0, 1, 2, 5, 4]).astype(dtype)
    called = library(wg.jit(f).export(tmp_path / "f.c", wg.spec("n", dtype)))
    for got, wanted in zip(called("f", x), f(x), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_float16_is_refused(tmp_path):
    with pytest.raises(wg.errors.BackendError, match="float16"):
        wg.jit(np.sin).export(tmp_path / "f.c", wg.spec(3, np.float16))


def test_loops_stay_loops(tmp_path):
    def simulated(u, x, steps):
        cost = 0.0
        for k in range(steps):
            x = x + 0.05 * np.stack([x[1], np.sin(x[0]) + u[k], x[3], u[k] - x[2]])
            cost = cost + x @ x + 0.1 * u[k] ** 2
        return cost

    sizes = {}
    for steps in (20, 200):
        exported = wg.jit(lambda u, x, steps=steps: simulated(u, x, steps)).export(
            tmp_path / f"s{steps}.c", (wg.spec(steps), wg.spec(4)), name="f",
            derivatives=("value", "gradient", "hessian"),
        )  # fmt: skip
        sizes[steps] = exported.path.stat().st_size
        u, x = RNG.normal(size=steps), RNG.normal(size=4)
        called = library(exported)
        np.testing.assert_allclose(called("f", u, x)[0], simulated(u, x, steps), rtol=1e-12)
        hessian = wg.jit(wg.hessian(lambda u: simulated(u, x, steps)))(u)  # noqa: B023
        np.testing.assert_allclose(called("f_hessian", u, x)[0], hessian, rtol=1e-9, atol=1e-12)
    assert sizes[200] < 1.05 * sizes[20] < 100_000


def test_one_of_several_branches(tmp_path):
    def f(x, k):
        return wg.switch(k, [np.sum, lambda x: np.sum(x * x), lambda x: np.sum(x**3)], x)

    exported = wg.jit(f).export(
        tmp_path / "f.c", (wg.spec(3), wg.spec((), "int64")), derivatives=("value", "gradient"),
        name="f",
    )  # fmt: skip
    called, x = library(exported), np.array([1.0, 2.0, -3.0])
    for k, (value, gradient) in enumerate(((0.0, x**0), (14.0, 2 * x), (-18.0, 3 * x * x))):
        assert called("f", x, k)[0] == value
        np.testing.assert_array_equal(called("f_gradient", x, k)[0], gradient)


def test_codes_and_names(tmp_path):
    def double(int, work):
        return {"int": np.cumsum(int) @ work, "x": int[::-1]}

    exported = wg.jit(double).export(tmp_path / "double.c", (wg.spec("n"), wg.spec("n")))
    called = library(exported, "-O2", "-fsanitize=undefined", "-fno-sanitize-recover")
    x, y = np.array([1.0, np.nan, 3.0]), np.ones(3)
    number, turned = np.zeros(()), np.zeros(3)
    assert called.status("double_", [x, y], [number, turned], {"n": 3}) == 0
    assert np.isnan(number)
    assert turned[0] == 3.0
    assert called.status("double_", [x, None], [number, turned], {"n": 3}) == 4
    assert called.status("double_", [x, y], [number, x], {"n": 3}) == 5
    assert called.status("double_", [x, y], [number, turned], {"n": 0}, work=64) == 2
    for dialect in ("-std=c99", "-std=c11", "-std=gnu17"):
        done = subprocess.run(
            ["gcc", dialect, "-Wall", "-Wextra", "-Werror", "-c", "-O2", str(exported.path),
             "-o", str(tmp_path / "d.o")],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    (tmp_path / "use.cpp").write_text('#include "double.h"\nint main() { return DOUBLE_OK; }\n')
    if shutil.which("g++"):
        subprocess.run(
            ["g++", "-Wall", "-Werror", "-c", str(tmp_path / "use.cpp"), "-o", "/dev/null"],
            check=True,
        )


def test_names_of_locals_and_of_the_library(tmp_path):
    def exp(v1, n0, in0, bytes):
        return {"out0": v1 + n0, "v2": in0 * bytes}

    specs = (wg.spec("n0"),) * 4
    called = library(wg.jit(exp).export(tmp_path / "e.c", specs, name="exp"), "-O2")
    (function,) = called.exported.functions
    assert function.name == "exp_"
    x = np.array([2.0, 3.0])
    np.testing.assert_array_equal(called("exp_", x, x, x, x), [2 * x, x * x])


def test_an_unknown_target_is_refused(tmp_path):
    with pytest.raises(wg.errors.ArgumentError, match="not a target"):
        wg.jit(np.sin).export(tmp_path / "f.c", wg.spec(3), target="abacus")
