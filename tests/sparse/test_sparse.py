"""Sparse Jacobians and Hessians of known structure, for all forms of arguments."""

import pickle

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.sparse import issparse

import wengert as wg
from wengert.errors import (
    ArgumentError,
    NotDifferentiableError,
    ShapeError,
    StructureError,
    TraceError,
)


def tridiagonal(x):
    return 3.0 * x[1:-1] ** 2 - x[:-2] * x[2:]


def brusselator(y, n=500, a=1.0, b=3.0, diffusion=0.02):
    u, v = y[:n], y[n:]
    wide_u = np.concatenate([[a], u, [a]])
    wide_v = np.concatenate([[b / a], v, [b / a]])
    k = diffusion * (n + 1) ** 2
    du = a + u * u * v - (b + 1.0) * u + k * (wide_u[:-2] - 2.0 * u + wide_u[2:])
    dv = b * u - u * u * v + k * (wide_v[:-2] - 2.0 * v + wide_v[2:])
    return np.concatenate([du, dv])


def arrow(x):
    return np.concatenate([[np.sum(x**2)], x[1:] * x[0] + x[1:] ** 3])


def banded(x, width=3):
    return sum(np.roll(x, k) * np.sin(x) for k in range(-width, width + 1))


def agree(f, *args, passes=None, rtol=1e-12, **options):
    """Check the matrix against the dense one, the pattern, and the number of passes."""
    jac = wg.sparse_jacobian(f, **options)
    dense = wg.jacobian(f, options.get("argnums", 0))(*args)
    found = jac(*args)
    plan = jac.plan(*args)
    dense = dense.reshape(plan.shape)
    assert issparse(found) and found.dtype == dense.dtype
    np.testing.assert_allclose(
        found.toarray(), dense, rtol=rtol, atol=1e-13 * np.abs(dense).max(initial=1)
    )
    assert not np.any((dense != 0) & ~plan.pattern().toarray())
    if passes is not None:
        assert plan.passes == passes
    return plan


@pytest.mark.parametrize(
    ("f", "n", "passes"),
    [(tridiagonal, 50, 3), (banded, 70, 7), (lambda x: x**2, 9, 1), (brusselator, 1000, None)],
)
def test_known_structures(f, n, passes, rng):
    plan = agree(f, rng.normal(size=n), passes=passes, rtol=1e-11)
    assert plan.nnz <= 7 * n


def test_modes(rng):
    agree(tridiagonal, rng.normal(size=50), mode="rev")
    agree(tridiagonal, rng.normal(size=50), mode="fwd")


def test_brusselator_pattern_and_entries(rng):
    plan = wg.sparse_jacobian(brusselator).plan(wg.spec(1000))
    assert plan.shape == (1000, 1000) and plan.nnz == 8 * 500 - 4 and plan.passes <= 6


def test_full_rows_and_columns_are_set_apart(rng):
    plan = agree(arrow, rng.normal(size=40))
    assert plan.passes == 3 and plan.mode == "both"
    plan = agree(lambda x: x[0] * np.sin(x), rng.normal(size=40))
    assert plan.passes == 2
    plan = agree(lambda x: np.concatenate([x * x, np.sum(x)[None]]), rng.normal(size=40))
    assert plan.passes == 2
    with pytest.raises(AssertionError):
        assert wg.sparse_jacobian(arrow, mode="fwd").plan(wg.spec(40)).passes < 40


def test_several_diagonals_with_the_same_entry(rng):
    # A border that repeats its last element: two diagonals have an entry at the corners.
    def laplacian(x):
        y = np.pad(x, 2, mode="edge")
        return y[:-4] * x - y[1:-3] - y[3:-1] * y[2:-2] + np.sin(y[4:])

    agree(laplacian, rng.normal(size=12))


def test_assigned_entries(rng):
    def f(x):
        out = np.zeros(10) * x[0]
        out[::2] = x[:5] * x[5:]
        out[1::2] += np.cos(x[5:])
        return out

    agree(f, rng.normal(size=10))


def test_two_dimensions(rng):
    def heat(x):
        return (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]) * x[1:-1, 1:-1] ** 2

    plan = agree(heat, rng.normal(size=(9, 8)))
    assert plan.shape == (42, 72) and plan.passes <= 7


def test_constant_matrix(rng):
    d = np.diff(np.eye(30), 2, axis=0)
    assert agree(lambda x: d @ x**3, rng.normal(size=30), passes=3).nnz == 3 * 28


def test_sorted_rows(rng):
    plan = agree(lambda x: np.sort(x, axis=1), rng.normal(size=(6, 3)))
    assert plan.nnz == 54 and plan.passes == 3


def test_hessians(rng):
    def rosenbrock(x):
        return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    x = rng.normal(size=30)
    hess = wg.sparse_hessian(rosenbrock)
    np.testing.assert_allclose(hess(x).toarray(), wg.hessian(rosenbrock)(x), rtol=1e-12, atol=1e-10)
    assert hess.plan(x).nnz == 88 and hess.plan(x).passes <= 3

    def star(x):
        return np.sum(x[0] * x**2) + np.sum(np.exp(x))

    hess = wg.sparse_hessian(star)
    np.testing.assert_allclose(hess(x).toarray(), wg.hessian(star)(x), rtol=1e-12)
    assert hess.plan(x).passes == 2


def test_empty_arrays_and_scalars(rng):
    assert agree(lambda x: np.zeros(0), rng.normal(size=3)).shape == (0, 3)
    assert agree(lambda x: np.ones(4), rng.normal(size=3)).nnz == 0
    assert agree(lambda x: x * 2.0, np.zeros(0)).shape == (0, 0)
    assert agree(np.sin, np.float64(0.3)).shape == (1, 1)
    assert agree(np.sin, 0.3).shape == (1, 1)
    assert wg.sparse_hessian(np.sin)(0.3).toarray() == -np.sin(0.3)
    agree(lambda x: np.floor(x), rng.normal(size=3))


def test_dtypes(rng):
    x = rng.normal(size=6).astype(np.float32)
    agree(lambda x: x[1:] * x[:-1], x, rtol=1e-6)
    z = rng.normal(size=6) + 1j * rng.normal(size=6)
    agree(lambda z: z[1:] * np.exp(z[:-1]), z)
    agree(lambda z: np.abs(z[1:] * z[:-1]) ** 2, z)
    agree(lambda x: np.exp(1j * x[1:]) * x[:-1], z.real)
    with pytest.raises(NotDifferentiableError, match='Use mode="fwd"'):
        wg.sparse_jacobian(lambda z: z * z, mode="rev")(z)
    with pytest.raises(NotDifferentiableError, match='Use mode="rev"'):
        wg.sparse_jacobian(lambda z: np.abs(z), mode="fwd")(z)
    with pytest.raises(NotDifferentiableError, match="of their own"):
        wg.sparse_jacobian(lambda z: (z, np.abs(z)))(z)


def test_containers(rng):
    x, y = {"a": rng.normal(size=3), "b": rng.normal(size=(2, 2))}, rng.normal(size=3)

    def f(x, y, k):
        return [x["a"] * y * k, x["b"].ravel()[:3] + y[0]]

    found = wg.sparse_jacobian(f, (0, 1))(x, y, 2.0)
    dense = wg.jacobian(f, (0, 1))(x, y, 2.0)
    for row, wanted in zip(found, dense, strict=True):
        for block, of in (
            (row[0]["a"], wanted[0]["a"]),
            (row[0]["b"], wanted[0]["b"]),
            (row[1], wanted[1]),
        ):
            np.testing.assert_allclose(block.toarray(), of.reshape(block.shape), rtol=1e-13)
    by_name = wg.sparse_jacobian(f, argnames="y")(x, y=y, k=2.0)
    np.testing.assert_allclose(by_name[1].toarray(), dense[1][1])
    hess = wg.sparse_hessian(lambda x: np.sum(x["a"] ** 2 * x["b"][0, 0]))
    np.testing.assert_allclose(hess(x)["a"]["b"].toarray()[:, 0], 2.0 * x["a"])


def test_constant_results(rng):
    x = rng.normal(size=3)
    found = wg.sparse_jacobian(lambda x: (np.ones(2), x * x, np.argmax(x), np.zeros(3), x[:2]))(x)
    assert [m.shape for m in found] == [(2, 3), (3, 3), (1, 3), (3, 3), (2, 3)]
    assert [m.nnz for m in found] == [0, 3, 0, 0, 2]
    assert np.array_equal(found[1].toarray(), np.diag(2.0 * x))


def test_formats(rng):
    x = rng.normal(size=5)
    for format in ("csr", "csc", "coo"):
        assert wg.sparse_jacobian(tridiagonal, format=format)(x).format == format
    found = wg.sparse_jacobian(tridiagonal)(x)
    assert found.has_sorted_indices and found.has_canonical_format


def test_plans_are_cached(rng):
    calls = []

    def f(x):
        calls.append(0)
        return x[1:] * x[:-1]

    jac = wg.sparse_jacobian(f)
    plan = jac.plan(np.zeros(4))
    jac(np.ones(4))
    before = len(calls)
    for _ in range(3):
        assert jac(rng.normal(size=4)).nnz == 6
    assert len(calls) == before and jac.plan(wg.spec(4)) is not None
    assert jac.plan(rng.normal(size=4)) is plan
    assert jac.plan(np.zeros(5)).shape == (4, 5)
    assert np.array_equal(
        plan.matrix(plan.values(np.arange(4.0))).toarray(), jac(np.arange(4.0)).toarray()
    )
    with pytest.raises(ShapeError, match="was built for 4"):
        plan.values(np.zeros(5))


def test_values_can_be_differentiated_and_traced(rng):
    jac = wg.sparse_jacobian(tridiagonal)
    x = rng.normal(size=8)

    def total(x):
        return np.sum(np.sin(jac.values(x)))

    def dense(x):
        return np.sum(np.sin(wg.jacobian(tridiagonal)(x)))

    np.testing.assert_allclose(wg.grad(total)(x), wg.grad(dense)(x), rtol=1e-12)
    np.testing.assert_allclose(wg.jit(total)(x), dense(x), rtol=1e-12)
    with pytest.raises(TraceError, match=r"\.values"):
        wg.jit(lambda x: jac(x))(x)
    with pytest.raises(TraceError, match=r"\.values"):
        wg.grad(lambda x: jac(x).sum())(x)
    np.testing.assert_allclose(jac(wg.tensor(x)).toarray(), jac(x).toarray())


def test_zeros_times_infinity(rng):
    x = np.array([0.0, 1.0, 4.0])
    found = wg.sparse_jacobian(lambda x: np.sqrt(x[1:]) + x[:-1])(x).toarray()
    assert found.tolist() == [[1.0, 0.5, 0.0], [0.0, 1.0, 0.25]]
    with np.errstate(divide="ignore"):
        found = wg.sparse_jacobian(lambda x: np.sqrt(x[:-1]) + x[1:])(x).toarray()
    assert found.tolist() == [[np.inf, 1.0, 0.0], [0.0, 0.5, 1.0]]
    safe = wg.sparse_jacobian(lambda x: np.where(x > 0, np.sqrt(x), 0.0))(x).toarray()
    assert safe.tolist() == [[0.0, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.25]]


def test_stiff_equations_of_scipy(rng):
    n = 20
    start = np.concatenate([1.0 + np.sin(np.linspace(0, 2 * np.pi, n)), np.full(n, 3.0)])
    jac = wg.sparse_jacobian(lambda t, y: brusselator(y, n), argnums=1)
    done = solve_ivp(
        lambda t, y: brusselator(y, n), (0.0, 1.0), start, method="BDF", jac=jac, rtol=1e-8
    )
    plain = solve_ivp(lambda t, y: brusselator(y, n), (0.0, 1.0), start, method="BDF", rtol=1e-8)
    assert done.success and done.njev >= 1
    np.testing.assert_allclose(done.y[:, -1], plain.y[:, -1], rtol=1e-5)


def test_loops(rng):
    x = rng.normal(size=300)

    def rows(x):
        return wg.map(lambda row: row**2, x)

    assert agree(rows, x, passes=1).nnz == 300
    agree(lambda x: wg.scan(lambda c, row: (0.5 * c, c + row), 1.0, x)[1], x, passes=1)
    agree(lambda x: wg.scan(lambda c, r: (r, c * r), x[0], x[:40], reverse=True)[1], x[:40])
    with pytest.raises(ShapeError, match="while_loop"):
        wg.sparsity(
            lambda x: np.cumsum(
                wg.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1]), (0, x))[1]
            )
        )(wg.spec("n"))
    agree(
        lambda x: wg.while_loop(lambda c: c[0] < 10.0, lambda c: (c[0] * 2.0, c[1] * x), (1.0, x))[
            1
        ],
        x,
        passes=1,
    )


def test_errors():
    with pytest.raises(ArgumentError, match="mode='both' is not one of"):
        wg.sparse_jacobian(np.sin, mode="both")
    with pytest.raises(ArgumentError, match="format='dense' is not one of"):
        wg.sparse_jacobian(np.sin, format="dense")
    with pytest.raises(ArgumentError, match="only one argument is supported"):
        wg.sparse_hessian(np.sin, argnums=(0, 1))
    with pytest.raises(NotDifferentiableError, match="Cast it first"):
        wg.sparse_jacobian(np.square)(np.arange(3))
    with pytest.raises(StructureError, match="returned a str"):
        wg.sparse_jacobian(lambda x: "no")(np.ones(3))
    with pytest.raises(TraceError, match="the number of elements depends on values"):
        wg.sparse_jacobian(lambda x: x[x > 0])(np.ones(3))


def test_programs_as_they_are_written():
    """Buffers, loops and branches on values, as in the other transformations."""
    start, end = np.array([0, 1, 3, 2, 2]), np.array([1, 2, 0, 0, 3])

    def balance(x):
        power = np.zeros(4)
        np.add.at(power, start, np.sin(x[start] - x[end]))
        for k in range(1, 4):
            power[k] += x[k - 1] ** 2
        if x[0] > 0:
            return power
        return power * x

    for x in ([0.3, 0.7, 1.1, 0.9], [-0.3, 0.7, 1.1, 0.9]):
        x = np.array(x)
        found = wg.sparse_jacobian(balance)(x).toarray()
        np.testing.assert_allclose(found, wg.jacobian(balance)(x), rtol=1e-13, atol=1e-15)
        pattern = wg.sparsity(balance)(x).toarray()
        assert not np.any((found != 0.0) & ~pattern)


def test_names_and_pickles():
    jac = wg.sparse_jacobian(tridiagonal)
    assert repr(jac) == "<sparse_jacobian of tridiagonal>" and jac.__name__ == "tridiagonal"
    jac(np.ones(5))
    assert pickle.loads(pickle.dumps(jac)).plan(wg.spec(5)).nnz == 9
    again = pickle.loads(pickle.dumps(wg.sparse_jacobian(brusselator, mode="fwd")))
    assert again.plan(wg.spec(1000)).mode == "fwd"
    assert "5 x 7, 15 entries by 3 passes" in repr(jac.plan(wg.spec(7)))


def test_matrices_do_not_share_the_pattern(rng):
    """SciPy methods that modify the pattern do not affect the plan."""
    jac = wg.sparse_jacobian(lambda x: np.where(x > 0, x, 0.0))
    x = np.array([1.0, -1.0, 2.0])
    jac(x).eliminate_zeros()
    assert jac(-x).toarray().diagonal().tolist() == [0.0, 1.0, 0.0]
    assert jac(x).indices.dtype == np.int32


def test_full_patterns_are_an_error():
    with pytest.raises(ShapeError, match=r"more than 134,217,728.*wengert.jacobian"):
        wg.sparsity(np.sort)(wg.spec(100_000))
    assert wg.sparsity(lambda x: np.convolve(x, [1.0, 0.0, 2.0]))(wg.spec(100_000)).nnz == 200_000


def test_captured_values(rng):
    x = rng.normal(size=4)
    outer = lambda a: np.sum(wg.sparse_jacobian(lambda x: a * x * x).values(x))  # noqa: E731
    assert np.isclose(wg.grad(outer)(2.0), 2.0 * x.sum())
    assert np.isclose(wg.jit(wg.grad(outer))(2.0), 2.0 * x.sum())
    weight = wg.tensor(np.array([1.0, 0.0, 3.0]), requires_grad=True)
    jac = wg.sparse_jacobian(lambda x: weight * x[1:])
    with pytest.raises(TraceError, match=r"no_grad"):
        jac(x)
    with wg.no_grad():
        assert jac(x).data.tolist() == [1.0, 0.0, 3.0]
    values = jac.values(x)
    values.sum().backward()
    assert weight.grad.tolist() == [1.0, 1.0, 1.0]
    rows = wg.vmap(lambda x: wg.sparse_jacobian(np.square).values(x))(np.ones((3, 2)))
    assert rows.tolist() == [[2.0, 2.0]] * 3


def test_modes_of_modules_have_separate_plans(rng):
    class Either(wg.nn.Module):
        def forward(self, x):
            return x**2 if self.training else np.sum(x) * x

    model = Either()
    jac = wg.sparse_jacobian(model)
    x = rng.normal(size=3)
    plan = jac.plan(x)
    assert plan.nnz == 3 and np.allclose(jac(x).toarray(), np.diag(2.0 * x))
    model.eval()
    assert np.allclose(jac(x).toarray(), wg.jacobian(model)(x)) and jac.plan(x).nnz == 9
    assert np.allclose(plan.values(x), 2.0 * x)  # of the function as it was
    model.train()
    assert jac(x).nnz == 3


class Oscillator:
    stiffness = 3.0

    def rate(self, x):
        return self.stiffness * x * x

    slope = wg.sparse_jacobian(rate, argnums=1)


def test_methods(rng):
    x = rng.normal(size=3)
    assert np.allclose(Oscillator().slope(x).toarray(), np.diag(6.0 * x))


def test_plans_are_consistent_with_captured_values():
    """A change after the pattern was computed does not affect it; the next call has a new plan."""
    mask = np.array([1.0, 0.0, 1.0])
    jac = wg.sparse_jacobian(lambda x: mask * x)
    plan = jac.plan(np.ones(3))
    mask[:] = [0.0, 1.0, 1.0]
    assert plan.nnz == 2 and plan.values(np.ones(3)).tolist() == [1.0, 1.0]
    assert jac(np.ones(3)).toarray().tolist() == np.diag([0.0, 1.0, 1.0]).tolist()


def test_random_numbers_are_an_error_as_in_compiled_functions():
    with pytest.raises(TraceError, match="random"):
        wg.sparse_jacobian(lambda x: x * np.random.normal(size=3))(np.ones(3))
