"""Python loops and branches in compiled functions: values, gradients, and nodes of the graph."""

import math

import numpy as np
import pytest

import wengert as wg
from wengert._engine.core.graph_classes import bodies_of

RNG = np.random.default_rng(0)
V = RNG.normal(size=20)
A = RNG.normal(size=(14, 14))
P = A @ A.T + 14 * np.eye(14)


def accumulated(x):
    s = 0
    for i in range(x.shape[0]):
        s = s + np.sin(x[i]) * i
    return s


def rows_and_branches(x):
    s = 0
    for v in x:
        if v > 0:
            s += v
        elif v > -0.5:
            s -= 2 * v
        else:
            s -= 3.0
    return s


def stencil(A):
    A = A.copy()
    for _ in range(3):
        for i in range(1, A.shape[0] - 1):
            for j in range(1, A.shape[0] - 1):
                A[i, j] = (A[i - 1, j] + A[i, j - 1] + A[i, j] + A[i, j + 1] + A[i + 1, j]) / 5.0
    return (A * A).sum()


def cholesky(A):
    A = A.copy()
    A[0, 0] = np.sqrt(A[0, 0])
    for i in range(1, A.shape[0]):
        for j in range(i):
            A[i, j] -= np.dot(A[i, :j], A[j, :j])
            A[i, j] /= A[j, j]
        A[i, i] -= np.dot(A[i, :i], A[i, :i])
        A[i, i] = np.sqrt(A[i, i])
    return np.sum(np.tril(A))


def lu(A):
    A = A.copy()
    for i in range(A.shape[0]):
        for j in range(i):
            A[i, j] -= A[i, :j] @ A[:j, j]
            A[i, j] /= A[j, j]
        for j in range(i, A.shape[0]):
            A[i, j] -= A[i, :i] @ A[:i, j]
    return A.sum()


def durbin(r):
    y = np.empty_like(r)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y.sum()


def swapped(x):
    a, b = x * 1.0, x * 2.0
    for _ in range(11):
        b[1:-1] = 0.5 * (a[2:] + a[:-2])
        a, b = b, a
    return (a * b).sum()


def with_break(x):
    k, s = 0, 0.0
    for i in range(x.shape[0]):
        if x[i] < -1.0:
            break
        if x[i] < 0.1:
            continue
        s += x[i]
        k += 1
    else:
        s += 100.0
    return s * k + i


def early_return(x):
    for i in range(x.shape[0]):
        if 0.3 < x[i] < 0.7:
            return x[i] * i
    return x[0] - 1.0


def newton(x):
    a = x[0] ** 2 + 1.0
    y = a
    while abs(y * y - a) > 1e-12:
        y = 0.5 * (y + a / y)
    return y


def endless_with_break(x):
    y = x[1] ** 2 + 2.0
    steps = 0
    while True:
        y = 0.5 * y + 0.1
        steps += 1
        if y < 0.3 or steps > 30:
            break
    return y * steps


def defined_in_a_branch(x):
    for i in range(x.shape[0]):
        if x[i] > 0:
            last = x[i] * i
    return last * 2


def updated_rows(A):
    A = A.copy()
    for r in A:
        r *= 0.5
        r[0] = 1.0
    for r in A:
        r = r * 3.0
    return (A * A).sum()


def zipped(x):
    s = 0.0
    for k, (a, b) in enumerate(zip(x, x[::-1])):  # noqa: B905
        s += k * a * b
    for a in reversed(range(len(x))):
        s = s * 0.9 + x[a]
    return s


def masks(x):
    y = x * 1.0
    y[y > 0.2] = y[y > 0.2] ** 1.5
    m = y < 0
    y[m] *= -0.5
    return (y * y).sum() + y[m].mean() + np.sum(np.sqrt(y[y > 0.2]))


def histogram(x):
    h = np.zeros(5)
    for i in range(x.shape[0]):
        h[min(int(abs(x[i]) * 2), 4)] += x[i] * x[i]
    return (h * np.arange(5.0)).sum()


def helper(v, i):
    v[i] = v[i] * 2.0 if v[i] > 0 else v[i]


def written_by_a_callee(x):
    y = x * 1.0
    for i in range(y.shape[0]):
        helper(y, i)
    return (y * y).sum()


def closure_variable(x):
    total = 0.0

    def add(v):
        nonlocal total
        total += v * v

    for v in x:
        add(v)
    return total


def negative_step(x):
    y = x * 1.0
    for i in range(len(x) - 2, -1, -1):
        y[i] = y[i] * np.sin(y[i + 1])
    for i in range(len(x) - 1, 0, -3):
        y[i - 1] = y[i - 1] + y[i]
    return y.sum()


def float32_keeps(x):
    x = x.astype(np.float32)
    s = x[0] * 0
    for i in range(12):
        s += x[i] * i / 2
    return s


def chained(x):
    s = 0.0
    for i in range(x.shape[0]):
        if (x[i] and -1 < x[i] <= 0.5) or (i == 3 and not x[i] > 2):
            s += math.exp(x[i])
    return s


LOOPS = {
    accumulated: V, rows_and_branches: V, stencil: A, cholesky: P, lu: P, durbin: 0.1 * V,
    swapped: V, with_break: V, early_return: V, newton: V, endless_with_break: V,
    defined_in_a_branch: V, updated_rows: A, zipped: V, masks: V, histogram: V,
    written_by_a_callee: V, closure_variable: V, negative_step: V, float32_keeps: V, chained: V,
}  # fmt: skip


@pytest.mark.sample(3)
@pytest.mark.parametrize("f", LOOPS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("backend", ["llvm", "interpret"])
def test_values_and_gradients(f, backend):
    x = LOOPS[f]
    want = f(x.copy())
    found = wg.jit(f, backend=backend)(x.copy())
    np.testing.assert_allclose(found, want, rtol=1e-6 if f is float32_keeps else 1e-11)
    assert np.asarray(found).dtype == np.asarray(want).dtype
    slope = wg.jit(wg.grad(f), backend=backend)(x.copy())
    np.testing.assert_allclose(slope, wg.grad(f)(x.copy()), rtol=1e-6, atol=1e-9)


@pytest.mark.sample(1)
@pytest.mark.parametrize("f", [accumulated, rows_and_branches, cholesky, with_break, newton])
def test_forward_mode_and_second_order(f):
    x = LOOPS[f]
    t = np.cos(np.arange(x.size)).reshape(x.shape)
    slope = wg.jit(lambda x: wg.jvp(f, (x,), (t,))[1])(x)
    np.testing.assert_allclose(slope, (wg.grad(f)(x) * t).sum(), rtol=1e-8, atol=1e-10)
    curved = wg.jit(wg.grad(lambda x: (wg.grad(f)(x) * t).sum()))(x)
    eager = wg.grad(lambda x: (wg.grad(f)(x) * t).sum())(x)
    np.testing.assert_allclose(curved, eager, rtol=1e-6, atol=1e-8)


def operations(graph):
    """The names of all operations, also in bodies."""
    found = [n.op.name for n in graph.nodes]
    for n in graph.nodes:
        for body in bodies_of(n):
            found += operations(body)
    return found


def test_the_graph_does_not_grow_with_the_number_of_iterations():
    for f in (accumulated, rows_and_branches):
        sizes = {len(operations(wg.trace(f)(np.ones(n)))) for n in (20, 2000)}
        assert len(sizes) == 1
    assert "scan" in operations(wg.trace(rows_and_branches)(np.ones(20)))
    assert "while" in operations(wg.trace(with_break)(V))


def test_short_and_unrolled_loops():
    def short(x):
        for _ in range(3):
            x = np.sin(x)
        return x

    def unrolled(x):
        for _ in wg.unroll(range(30)):
            x = np.sin(x)
        return x

    assert operations(wg.trace(short)(1.0)).count("sin") == 3
    assert operations(wg.trace(unrolled)(1.0)).count("sin") == 30
    assert list(wg.unroll(range(3))) == [0, 1, 2] and len(wg.unroll([1, 2])) == 2


@pytest.mark.parametrize("n", [2, 3, 8])
def test_loops_in_short_loops_count_when_they_are_unrolled(n):
    """Unrolling both loops would give 64 copies of the body: only the inner loop is unrolled."""

    def f(x):
        y = np.zeros((n, n))
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                y[i, j] = np.sin(x[i, j]) * x[j, i]
        return np.sum(y)

    x = RNG.normal(size=(n, n))
    found = operations(wg.trace(f)(x))
    assert found.count("sin") == (8 if n == 8 else n * n)
    np.testing.assert_allclose(wg.jit(f)(x), f(x), rtol=1e-13)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(x), wg.grad(f)(x), rtol=1e-12)


def test_layers_of_different_shapes_are_unrolled():
    weights = [RNG.normal(size=(k + 2, k + 1)) for k in range(12)]

    def network(x):
        for i in range(12):
            x = np.tanh(weights[i] @ x)
        return x.sum()

    np.testing.assert_allclose(wg.jit(network)(np.ones(1)), network(np.ones(1)))


def test_lists_are_filled_by_python():
    def f(x):
        rows = []
        for i in range(12):
            rows.append(x * i)
        return np.stack(rows).sum()

    np.testing.assert_allclose(wg.jit(f)(V), f(V))


def test_traced_trip_counts():
    def power(x, n):
        y = 1.0
        for _ in range(n):
            y = y * x
        return y

    compiled = wg.jit(power)
    assert [float(compiled(2.0, n)) for n in (0, 1, 10, 30)] == [1.0, 2.0, 1024.0, 2.0**30]
    assert compiled.cache_info().programs == 1
    np.testing.assert_allclose(wg.jit(wg.grad(power))(2.0, 10), 10 * 2.0**9)


def test_integers_that_are_lengths_become_static():
    def f(n, x):
        y = np.zeros(n)
        for i in range(n):
            y[i] = x * i
        return y

    compiled = wg.jit(f)
    assert compiled(3, 2.0).tolist() == [0.0, 2.0, 4.0]
    assert compiled(12, 1.0).tolist() == list(map(float, range(12)))
    with pytest.raises(wg.errors.TraceError):
        wg.jit(f, source=False)(3, 2.0)


# ---- errors --------------------------------------------------------------------------------------


def checked(x):
    s = 0.0
    for v in x:
        assert v < 3.0, "too large"
        s += v
    return s


def raising(x):
    for v in x:
        if v > 3.0:
            raise OverflowError("an element is large")
    return x.sum()


@pytest.mark.parametrize("f, error", [(checked, AssertionError), (raising, OverflowError)])
def test_checks_in_loops(f, error):
    compiled = wg.jit(f)
    np.testing.assert_allclose(compiled(V), V.sum())
    with pytest.raises(error, match="large"):
        compiled(V + 5.0)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(V), np.ones(20))


def test_variables_without_a_value():
    with pytest.raises(UnboundLocalError, match="last"):
        wg.jit(defined_in_a_branch)(-np.abs(V))


def test_out_of_bounds_is_an_index_error():
    def f(x):
        s = 0.0
        for i in range(20):
            s += x[i + 5]
        return s

    with pytest.raises(IndexError):
        wg.jit(f)(V)


def test_branches_of_different_shapes_are_refused():
    def f(x):
        return x[:3] if x[0] > 0 else x

    with pytest.raises(wg.errors.TraceError, match="shape"):
        wg.jit(f)(V)


def test_float_ranges_are_refused():
    def f(x):
        for _ in range(x[0]):
            x = x * 2
        return x

    with pytest.raises(TypeError, match="integers"):
        wg.jit(f)(V)


def test_slices_of_unknown_length_cannot_be_results():
    def f(x):
        k = 0
        for v in x:
            if v > 0:
                k += 1
        return x[:k]

    with pytest.raises(wg.errors.TraceError, match="slice"):
        wg.jit(f)(V)


def test_a_failed_trace_leaves_nothing():
    seen = []

    def f(x):
        for i in range(30):
            x = x * 1.01
            if i == 2:
                seen.append(i)
        return x

    assert np.isclose(wg.jit(f)(2.0), 2.0 * 1.01**30)
    assert seen == [2]


def falling(w):
    x, v = 0.0, 1.0  # numbers of Python, which combine with float32 arrays as float32
    while x < 10.0:
        x, v = x + 0.1 * v, v + w * x
    return x * v


def test_a_derivative_of_a_while_loop_over_numbers_is_one_loop():
    graph = wg.trace(lambda w: wg.jvp(falling, (w,), (1.0,)))(0.5).simplify()
    assert sum(n.op.name == "while" for n in graph.nodes) == 1
    value, tangent = graph(0.5)
    step = 1e-6
    assert value == falling(0.5)
    difference = (falling(0.5 + step) - falling(0.5 - step)) / (2 * step)
    np.testing.assert_allclose(tangent, difference, rtol=1e-7)


def test_inlined_graphs_keep_numbers_of_python():
    def scaled(x, a):
        for _ in range(20):
            x = x * 1.01
        return a * x

    a = np.ones(3, np.float32)
    graph = wg.trace(scaled)(0.5, a)
    again = wg.trace(lambda x, a: graph(x, a))(0.5, a)
    assert [n.spec.dtype for n in again.outputs] == [np.dtype(np.float32)]
    assert again(0.5, a).dtype == np.float32


def rotated(a):
    a = a.copy()
    n = len(a)
    for _ in range(6):
        for p in range(n - 1):
            for q in range(p + 1, n):
                angle = 0.5 * np.arctan2(2.0 * a[p, q], a[q, q] - a[p, p])
                r = np.eye(n)
                r[p, p] = r[q, q] = np.cos(angle)
                r[p, q] = np.sin(angle)
                r[q, p] = -np.sin(angle)
                a = r.T @ a @ r
    return np.max(np.diag(a))


def test_short_loops_with_loops_inside_stay_loops():
    a = np.random.default_rng(5).normal(size=(4, 4))
    a += a.T
    assert len(wg.trace(rotated)(a).nodes) < 15
    np.testing.assert_allclose(wg.jit(rotated)(a), np.linalg.eigvalsh(a)[-1], rtol=1e-10)
    np.testing.assert_allclose(wg.jit(wg.grad(rotated))(a), wg.grad(rotated)(a), rtol=1e-9)


def test_short_loops_of_constant_length_are_unrolled_with_those_inside():
    def product(a, b):
        c = np.zeros((3, 3))
        for i in range(3):
            for j in range(3):
                for k in (0, 1, 2):
                    c[i, j] += a[i, k] * b[k, j]
        return c

    a, b = np.random.default_rng(5).normal(size=(2, 3, 3))
    assert not any(n.op.name in ("loop", "scan") for n in wg.trace(product)(a, b).nodes)
    np.testing.assert_allclose(wg.jit(product)(a, b), a @ b, rtol=1e-13)
