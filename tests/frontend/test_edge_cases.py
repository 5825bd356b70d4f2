"""Programs for which a front end, or the derivative of a loop, easily goes wrong, each in one way.

The compiled function has NumPy's value, and the compiled gradient agrees with the eager gradient.
"""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import TraceError

N = 11
X = np.random.default_rng(7).uniform(0.5, 1.5, N)
A = np.random.default_rng(8).uniform(0.5, 1.5, (N, N))
INDEX = np.array([0, 3, 3, 1, 0, 5, 9, 9, 9, 2, 10])
ZEROS = np.where(np.arange(N) % 4 == 2, 0.0, 1.25)


def final_and_initial(x, a):
    for i in range(1, N):
        x[i] = x[i] * x[i - 1]
    return x.sum()


def initial_on_the_right(x, a):
    for i in range(N - 1):
        x[i] = x[i + 1] * x[i]
    return x.sum()


def written_and_read(x, a):
    for i in range(N):
        for j in range(N):
            a[i, j] = a[i, j] * a[i, j]
    return a.sum()


def final_in_the_inner_loop_only(x, a):
    for _ in range(9):
        for i in range(N):
            x[i] = np.sin(x[i])
    return x.sum()


def repeated_indices(x, a):
    for i in range(N):
        x[INDEX[i]] += a[0, i] * x[INDEX[i]]
    return x.sum()


def remainders(x, a):
    for i in range(N):
        x[i % 3] = x[i % 3] * a[1, i]
    return x.sum()


def empty_slices(x, a):
    s = 0.0
    for i in range(N):
        for j in range(i):
            s += a[i, :j] @ a[j, :j]
    return s


def negative_steps(x, a):
    for i in range(N - 1, 0, -2):
        x[i - 1] = x[i - 1] * x[i]
    return x.sum()


def an_alias(x, a):
    y = x
    y[0] = 2 * y[1]
    return x.sum()


def a_view_read_after_a_store(x, a):
    s = 0.0
    for i in range(N):
        row = a[i]
        a[i, 0] = 5.0 * x[i]
        s += row[0]
    return s


def swapped_carries(x, a):
    p, q = x * 1.0, x * 2.0
    for _ in range(9):
        p, q = q, p
        p[1:-1] = 0.5 * (q[2:] + q[:-2])
    return (p * a[0]).sum()


def swapped_an_even_number_of_times(x, a):
    p, q = x * 1.0, x * 2.0
    for _ in range(10):
        p, q = q, p
        p[1:-1] = 0.5 * (q[2:] + q[:-2])
    return (p * a[0]).sum()


def overlapping_slices(x, a):
    for _ in range(9):
        x[1:] = x[:-1] * 0.5
        x[1:] += x[:-1]
    return (x * a[0]).sum()


def rows_are_views(x, a):
    for r in a:
        r *= 2
    for r in a:
        r = r * 2
    return (a * x).sum()


def an_integer_start(x, a):
    t = 0
    for v in x.astype(np.float32):
        t += v
    return t * 1.0


def possibly_unbound(x, a):
    for i in range(N):
        if x[i] > 0.7:
            last = x[i] * a[0, i]
    return last


def after_a_break(x, a):
    for i in range(N):
        if x[i] < 0.8:
            break
    return i * x[:i].sum()


def until_convergence(x, a):
    u, err = x * 1.0, 1.0
    while err > 1e-3:
        old = u.copy()
        u[1:-1] = 0.25 * (old[2:] + old[:-2])
        err = abs(u - old).max()
    return (u * a[0]).sum()


def late_binding(x, a):
    fs = []
    for i in range(N):

        def g():
            return x[i] * i  # noqa: B023

        fs.append(g)
    return sum(f() for f in fs)


def a_mask_rebound(x, a):
    mask = x > 0.7
    for _ in range(9):
        x[mask] = x[mask] ** 1.5
        mask = x > 1
    return x.sum()


def zero_to_a_power(x, a):
    y = x * ZEROS
    y[y > 0.0] = y[y > 0.0] ** 0.5
    return y.sum()


def a_short_circuit(x, a):
    z = x[:2]
    n = z.shape[0]
    if n > 3 and z[3] > 0:
        return z[0]
    return z[1] * 2.0


def an_operand_that_decides(x, a):
    n = (x > 0.7).sum()
    return x[0] / n if n else 0


def layers_of_other_shapes(x, a):
    params = [a[:5], a[:3, :5], a[:4, :3]] + [np.eye(4) * 0.5] * 9
    for w in params:
        x = np.tanh(w @ x)
    return x.sum()


def exits_in_every_nest(x, a):
    s = 0.0
    while True:
        for i in range(N):
            if x[i] * s > 3.0:
                break
            for j in range(N):
                if a[i, j] > 1.45:
                    continue
                if a[i, j] + s > 40.0:
                    return s * x[i]
                s += a[i, j] * 0.25
            else:
                s += x[i]
        else:
            s += 1.0
            continue
        s += 0.5
        if s > 5.0:
            break
    return s


def a_negative_index(x, a):
    for i in range(N):
        lo = i - 1
        x[i] -= x[lo] * 0.5
    return (x * a[0]).sum()


def division_by_zero_if_inverted(x, a):
    c = (x * 1.0).astype(np.float32)
    for i in range(1, N):
        c[i] = c[i - 1] * (a[0, i] * ZEROS[i])
    return c.sum()


def calls_that_write(x, a):
    c = np.zeros(N)
    for k in range(1, N):
        np.dot(a[0, :3], x[:3] * k, out=c[k : k + 1].reshape(()))
    np.add.at(c, INDEX, x)
    y = x * 1.0
    y.sort()
    return (c * y).sum()


def truncation(x, a):
    y = np.zeros(N, int)
    for i in range(N):
        y[i] = x[i] * 10.0
    return (y * x).sum()


VALUES = [
    final_and_initial, initial_on_the_right, written_and_read, final_in_the_inner_loop_only,
    repeated_indices, remainders, empty_slices, negative_steps, an_alias,
    a_view_read_after_a_store, swapped_carries, swapped_an_even_number_of_times,
    overlapping_slices, rows_are_views, an_integer_start, possibly_unbound, after_a_break,
    until_convergence, late_binding, a_mask_rebound, zero_to_a_power, a_short_circuit,
    an_operand_that_decides, layers_of_other_shapes, exits_in_every_nest, a_negative_index,
    division_by_zero_if_inverted, calls_that_write, truncation,
]  # fmt: skip


@pytest.mark.sample(3)
@pytest.mark.parametrize("f", VALUES, ids=lambda f: f.__name__)
def test_compiled_functions_are_right(f):
    def given():
        return X.copy(), A.copy()

    rtol = 1e-5 if f in (an_integer_start, division_by_zero_if_inverted) else 1e-11
    mine, plain = given(), given()
    np.testing.assert_allclose(wg.jit(f)(*mine), f(*plain), rtol=rtol)
    for one, other in zip(mine, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    found = wg.jit(wg.grad(f, (0, 1)))(*given())
    for compiled, eager in zip(found, wg.grad(f, (0, 1))(*given()), strict=True):
        assert np.isfinite(eager).all()
        np.testing.assert_allclose(compiled, eager, rtol=rtol, atol=1e-6 if rtol > 1e-6 else 1e-12)


def test_mutable_defaults_are_those_of_the_function():
    def f(x, acc=[], w=np.ones(3)):  # noqa: B006, B008
        acc.append(1)
        return x * w

    compiled = wg.jit(f)
    np.testing.assert_array_equal(compiled(2.0), f(2.0))
    f.__defaults__[1][0] = 5.0
    np.testing.assert_array_equal(compiled(2.0), [10.0, 2.0, 2.0])


def test_adding_a_fraction_to_integers_in_place_raises():
    def f(x):
        y = np.zeros(3, int)
        y += x
        return y

    for run in (f, wg.jit(f)):
        with pytest.raises(TypeError):
            run(0.5)


def test_recursion_on_data_is_refused():
    def f(x):
        return x if x < 1.0 else f(x * 0.5)

    for run in (wg.jit(f), wg.trace(f), wg.jit(wg.grad(f))):
        with pytest.raises(TraceError, match="recurses infinitely"):
            run(5.0)


def power_series(n, x):
    return 1.0 if n == 0 else x * power_series(n - 1, x) / n


def test_recursion_on_the_counter_of_a_loop_unrolls_the_loop():
    def f(x):
        s = sum(power_series(n, x) for n in range(12))
        for n in range(12, 16):
            s += power_series(n, x)
        return s

    np.testing.assert_allclose(wg.jit(f)(0.7), np.exp(0.7), rtol=1e-13)
    np.testing.assert_allclose(wg.jit(wg.grad(f))(0.7), np.exp(0.7), rtol=1e-12)


def test_a_store_out_of_bounds_raises_and_changes_nothing():
    def f(x, n):
        for i in range(n):
            x[i] = 1.0
        return x

    x = X.copy()
    with pytest.raises(IndexError):
        wg.jit(f)(x, N + 3)
    np.testing.assert_array_equal(x, X)


def test_a_million_iterations():
    def f(x):
        s = 0.0
        for i in range(1_000_000):
            s += x * i
        return s

    assert wg.jit(f)(2.0) == 999_999_000_000.0
    assert wg.jit(wg.grad(f))(2.0) == 499_999_500_000.0
