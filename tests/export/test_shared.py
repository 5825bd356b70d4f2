"""Exported shared libraries give the results of eager execution; what is refused, and codes."""

import ctypes
import re
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest
from tests.backends.llvm.random_programs import Bundle, differing, is_differentiable

import wengert as wg

from .exported_calls import Library

pytestmark = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="needs a C compiler (cc)"
)
A = np.arange(6.0).reshape(2, 3) / 7


def model(x, p):
    return np.sum(np.tanh(A @ x) * p["a"]) + p["b"]


SPECS = (wg.spec(3), {"a": wg.spec(2), "b": wg.spec(())})
N = wg.spec("n")
VALUES = np.array([0.3, -1.0, 2.0]), np.array([1.5, -0.5]), np.array(0.25)


def test_every_derivative(tmp_path):
    names = ("value", "gradient", "value_and_gradient", "jacobian", "hessian", "jvp", "vjp", "hvp")
    exported = wg.jit(model).export(tmp_path / "model.so", SPECS, derivatives=names)
    library = Library(exported)
    x, a, b = VALUES
    p = {"a": a, "b": b}
    dot, cotangent = np.array([1.0, -2.0, 0.5]), np.array(3.0)
    value, gradient = wg.value_and_grad(model)(x, p)
    hessian = wg.hessian(model)(x, p)
    expected = {
        "model": (VALUES, [value]),
        "model_gradient": (VALUES, [gradient]),
        "model_value_and_gradient": (VALUES, [gradient, value]),
        "model_jacobian": (VALUES, [gradient]),
        "model_hessian": (VALUES, [hessian]),
        "model_jvp": ((*VALUES, dot), [gradient @ dot, value]),
        "model_vjp": ((*VALUES, cotangent), [3.0 * gradient, value]),
        "model_hvp": ((*VALUES, dot), [hessian @ dot]),
    }
    assert list(expected) == [f.name for f in exported.functions]
    for name, (given, results) in expected.items():
        for got, wanted in zip(library(name, *given), results, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-13, atol=1e-15)
    header = exported.header.read_text()
    assert "int model_hvp(const double *x, const double *p_a, const double *p_b," in header
    assert "const double *x_dot, double *product," in header
    assert "output hessian: float64[3][3], strides 24, 8 bytes" in header


def test_with_respect_to_several_arguments(tmp_path):
    def f(x, y):
        return np.sum(x * x * y)

    names = ("gradient", "jvp", "vjp")
    exported = wg.jit(f).export(tmp_path / "f.so", (N, N), derivatives=names, argnums=(0, 1))
    x, y = np.array([1.0, 2.0]), np.array([3.0, -1.0])
    library = Library(exported)
    np.testing.assert_allclose(library("f_gradient", x, y), [2 * x * y, x * x])
    np.testing.assert_allclose(
        library("f_jvp", x, y, y, x), [np.sum(2 * x * y * y + x**3), f(x, y)]
    )
    np.testing.assert_allclose(library("f_vjp", x, y, 2.0)[1], 2 * x * x)


def test_loops_and_sizes(tmp_path):
    """One function for all sizes; a loop whose length is a size, and its reverse pass."""

    def filtered(x, a):
        state = np.zeros(x.shape[1])
        total = 0.0
        for k in range(x.shape[0]):
            state = np.tanh(a * state + x[k])
            total = total + np.sum(state * state)
        return total

    exported = wg.jit(filtered).export(
        tmp_path / "loop.so", (wg.spec(("n", "m")), 0.5), derivatives=("value", "gradient", "hvp"),
        argnums=1,
    )  # fmt: skip
    library = Library(exported)
    rng = np.random.default_rng(0)
    for n, m in ((1, 1), (3, 2), (40, 7)):
        x = rng.normal(size=(n, m))
        np.testing.assert_allclose(library("filtered", x, 0.7)[0], filtered(x, 0.7), rtol=1e-13)
        slope = wg.grad(filtered, 1)(x, 0.7)
        np.testing.assert_allclose(library("filtered_gradient", x, 0.7)[0], slope, rtol=1e-12)
    assert library.work("filtered_gradient", {"n": 1000, "m": 7}) > 8 * 7 * 100


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", ["values", "gradient"])
def test_random_programs(seed, kind, tmp_path):
    bundle = Bundle(seed, named=seed % 3 == 2)
    if kind == "gradient" and not is_differentiable(bundle):
        pytest.skip("NumPy has no gradient")
    run = getattr(bundle, kind)
    exported = wg.jit(lambda *xs: run(*xs)).export(tmp_path / "f.so", tuple(bundle.specs), name="f")
    library = Library(exported)
    for world in bundle.worlds:
        with np.errstate(all="ignore"):
            wanted = run(*world)
        eps = bundle.eps if kind == "values" else bundle.coarse
        assert not differing(library("f", *world), wanted, eps), str(bundle)


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", ["float32", "complex128", "int32", "bool", "float16", "uint8"])
def test_dtypes(dtype, tmp_path):
    def f(x):
        return np.cumsum(x * x), x[::-1]

    x = np.array([1, 0, 3, 2, 5]).astype(dtype)
    library = Library(wg.jit(f).export(tmp_path / "f.so", wg.spec("n", dtype)))
    for got, wanted in zip(library("f", x), f(x), strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(got, wanted)


def test_threads_share_nothing(tmp_path):
    def f(x):
        return np.cumsum(np.sort(np.exp(x) @ x.T, axis=1), axis=0)

    library = Library(wg.jit(f).export(tmp_path / "f.so", wg.spec((30, 30))))
    inputs = [np.random.default_rng(k).normal(size=(30, 30)) for k in range(4)]
    wanted = [library("f", x)[0] for x in inputs]
    found = [[] for _ in inputs]

    def run(k):
        for _ in range(20):
            found[k].append(library("f", inputs[k])[0])

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for k in range(4):
        assert all(np.array_equal(x, wanted[k]) for x in found[k])


def test_sparse_derivatives(tmp_path):
    def chain(x):
        return np.sum(np.sin(x[1:]) * x[:-1])

    def residuals(x):
        return x[1:] * x[:-1] ** 2

    x = np.linspace(0.3, 2.0, 6)
    for f, what in ((chain, "sparse_hessian"), (residuals, "sparse_jacobian")):
        exported = wg.jit(f).export(tmp_path / f"{what}.so", wg.spec(6), derivatives=what)
        name = f"{f.__name__}_{what}"
        (entries,) = Library(exported)(name, x)
        matrix = getattr(wg, what)(f)(x)
        np.testing.assert_allclose(entries, matrix.data, rtol=1e-13)
        tables = dict(
            re.findall(rf"int64_t {name}_(\w+)\[\d+\] = {{([^}}]*)}}", exported.header.read_text())
        )
        tables = {k: [int(n) for n in v.split(",")] for k, v in tables.items()}
        assert tables["shape"] == list(matrix.shape)
        assert tables["columns"] == matrix.indices.tolist()
        assert tables["starts"] == matrix.indptr.tolist()
        assert tables["rows"] == matrix.tocoo().coords[0].tolist()


# ---- what is refused ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sums(tmp_path_factory):
    def sums(x, y):
        return np.cumsum(x) + y, np.sort(x)

    path = tmp_path_factory.mktemp("sums") / "sums.so"
    return Library(wg.jit(sums).export(path, (wg.spec("n"), wg.spec("n")), workspace=64))


def _arrays(n=6):
    return np.arange(float(n)), np.ones(n), np.full(n, 7.0), np.full(n, 7.0)


def test_codes(sums):
    x, y, a, b = _arrays()
    sizes = {"n": 6}
    assert sums.status("sums", [x, y], [a, b], sizes) == 0
    assert sums.status("sums", [x, None], [a, b], sizes) == 4
    assert sums.status("sums", [x, y], [a, None], sizes) == 4
    odd = np.frombuffer(np.zeros(7 * 8, np.uint8).data, np.uint8)[4:-4].view(np.float64)
    assert sums.status("sums", [odd, y], [a, b], sizes) == 4
    assert sums.status("sums", [x, y], [x, b], sizes) == 5
    assert sums.status("sums", [x, y], [a, a], sizes) == 5
    both = np.zeros(11)
    assert sums.status("sums", [x, y], [both[:6], both[5:]], sizes) == 5
    assert sums.status("sums", [x, y], [both[:5], both[5:10]], {"n": 5}) == 0
    assert sums.status("sums", [x, x], [a, b], sizes) == 0  # inputs may be the same
    for n in (0, -3, 1 << 61):
        assert sums.status("sums", [x, y], [a, b], {"n": n}, work=1 << 12) == 2
        assert sums.work("sums", {"n": n}) == -1


def test_a_workspace_that_is_too_small(tmp_path):
    def f(x):
        return np.cumsum(np.exp(x) @ np.exp(x).T, axis=0) @ x

    library = Library(wg.jit(f).export(tmp_path / "f.so", wg.spec(("n", "n"))))
    x, out = np.eye(90), np.full((90, 90), 7.0)
    needed = library.work("f", {"n": 90})
    assert needed > 90 * 90 * 8
    for work in (0, needed // 2, needed - 1):
        assert library.status("f", [x], [out], {"n": 90}, work) == 3
    assert np.all(out == 7.0)
    assert library.status("f", [x], [out], {"n": 90}, needed) == 0


def test_failures_and_nan(tmp_path):
    library = Library(
        wg.jit(lambda x, k: x[k]).export(tmp_path / "g.so", (wg.spec("n"), 3), name="g")
    )
    x, out = np.array([1.0, np.nan, np.inf]), np.zeros(())
    assert library.status("g", [x, np.array(5)], [out], {"n": 3}) == 1
    assert library.status("g", [x, np.array(-1)], [out], {"n": 3}) == 0
    assert out == np.inf
    assert library.status("g", [x, np.array(1)], [out], {"n": 3}) == 0
    assert np.isnan(out)


def test_sizes_that_do_not_fit_together(tmp_path):
    library = Library(
        wg.jit(lambda x: np.sum(x[5:])).export(tmp_path / "h.so", wg.spec("n"), name="h")
    )
    x, out = np.ones(8), np.zeros(())
    assert library.status("h", [x], [out], {"n": 8}) == 0
    assert out == 3.0
    assert library.status("h", [x], [out], {"n": 4}) == 2


def test_operations_that_need_python(tmp_path):
    @wg.extend.primitive
    def mine(x):
        return np.asarray(x) * 2.0

    with pytest.raises(wg.errors.BackendError, match=r"call back into Python for .*mine.*test_sh"):
        wg.jit(lambda x: mine(x) + 1.0).export(tmp_path / "f.so", wg.spec(3))
    import scipy.special

    with pytest.raises(wg.errors.BackendError, match=r"jv.*only in this Python process"):
        wg.jit(lambda x: scipy.special.jv(0.5, x)).export(tmp_path / "f.so", wg.spec(3))
    assert not list(tmp_path.iterdir())


def test_memory_without_a_bound(tmp_path):
    with pytest.raises(wg.errors.BackendError, match="workspace="):
        wg.jit(np.linalg.eigvalsh).export(tmp_path / "f.o", wg.spec((40, 40)))
    exported = wg.jit(np.linalg.eigvalsh).export(
        tmp_path / "f.o", wg.spec((40, 40)), workspace=9999
    )
    assert "Link with a library of BLAS and LAPACK" in exported.header.read_text()
    assert "dsyevd_" in exported.header.read_text()
    with pytest.raises(wg.errors.TraceError, match="number of elements is not known"):
        wg.jit(lambda x: np.nonzero(x)[0]).export(tmp_path / "f.so", wg.spec("n"))


def test_arguments(tmp_path):
    f = wg.jit(np.sin)
    with pytest.raises(wg.errors.ArgumentError, match="none of the derivatives"):
        f.export(tmp_path / "f.so", wg.spec(3), derivatives="slope")
    with pytest.raises(wg.errors.ArgumentError, match="suffix"):
        f.export(tmp_path / "f.txt", wg.spec(3))
    with pytest.raises(wg.errors.ArgumentError, match="format='fortran' is none of"):
        f.export(tmp_path / "f.so", wg.spec(3), format="fortran")
    with pytest.raises(wg.errors.ArgumentError, match="is not a target"):
        f.export(tmp_path / "f.o", wg.spec(3), target="z80")
    with pytest.raises(wg.errors.BackendError, match="cannot be run"):
        f.export(tmp_path / "f.so", wg.spec(3), linker="no-such-linker")
    with pytest.raises(wg.errors.BackendError, match=r"longdouble|float128"):
        f.export(tmp_path / "f.so", wg.spec(3, np.longdouble))


def test_names_that_c_reserves(tmp_path):
    def double(int, _x, work):
        return {"int": int + _x, "n": work}

    exported = wg.jit(double).export(tmp_path / "d.so", (N, N, N))
    (function,) = exported.functions
    assert function.name == "double_"
    names = [n for n, _ in (*function.inputs, *function.outputs)] + [n for _, n in function.sizes]
    assert len(set(names)) == len(names)
    assert not {"int", "double", "work", "work_bytes"} & set(names)
    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(Library(exported)("double_", x, x, x), [2 * x, x])


def test_variables_are_refused(tmp_path):
    scale = wg.nn.Parameter(np.ones(3))
    with pytest.raises(wg.errors.BackendError, match="variables"):
        wg.jit(lambda x: x * scale).export(tmp_path / "f.so", wg.spec(3))


def test_command(tmp_path, capsys, monkeypatch):
    (tmp_path / "energies.py").write_text(
        "import numpy as np\n\n"
        "def energy(x, k):\n    return 0.5 * k * np.sum((x[1:] - x[:-1]) ** 2)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    from wengert.cli import main

    given = ["energies.py:energy", "float64[n+1]", "[]", "--out", "energy.so"]
    assert main(["export", *given, "--derivatives", "value,gradient"]) == 0
    assert "energy, energy_gradient, for native" in capsys.readouterr().out
    library = ctypes.CDLL(str(tmp_path / "energy.so"))
    assert library.energy_work(ctypes.c_int64(3)) == 0
    given = ["energies.py:energy", "float64[3]", "[]", "--blas", "link", "--out", "energy.c"]
    for order, last in (([], None), (["--casadi"], "jac"), (["--casadi", "2"], "jac_jac")):
        assert main(["export", *given, *order]) == 0
        text = (tmp_path / "energy.c").read_text()
        assert "jac_jac_energy_casadi" not in text or last == "jac_jac"
        assert last is None or f"int {last}_energy_casadi(" in text
    assert main(["export", "energies.py:power", "--out", "energy.so"]) == 1
    assert main(["export", "energies.py:energy", "double(3)", "--out", "energy.so"]) == 1
    assert re.search("no function.*is not a spec", capsys.readouterr().err, re.DOTALL)


def test_same_files_again(tmp_path):
    """The same function gives the same bytes."""
    contents = []
    for _ in range(2):
        exported = wg.jit(model).export(tmp_path / "m.o", SPECS, derivatives="hvp")
        contents.append((exported.path.read_bytes(), exported.header.read_bytes()))
    assert contents[0] == contents[1]


def test_no_other_symbols(tmp_path):
    exported = wg.jit(model).export(tmp_path / "m.o", SPECS, derivatives=("value", "gradient"))
    if shutil.which("nm") is None:
        pytest.skip("needs nm")
    listed = subprocess.run(
        ["nm", "-g", str(exported.path)], capture_output=True, text=True, check=True
    )
    defined = {line.split()[-1] for line in listed.stdout.splitlines() if " U " not in line}
    assert defined == {"model", "model_work", "model_gradient", "model_gradient_work"}
